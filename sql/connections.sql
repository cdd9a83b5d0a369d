-- Several connections in one process: every way to read a scan gives the rows
-- that the table has, whatever the number of connections.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET min_parallel_table_scan_size = 0;
-- all connections at once, instead of when this process has waited for long
SET tidrange_fdw.connection_patience = 0;
-- rows that cost the remote much are worth more sessions
SET cpu_tuple_cost = 1;
CREATE TABLE r.crowd (id int PRIMARY KEY, n int, v text)
    WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.crowd SELECT i, i % 40, repeat('x', i % 90) FROM generate_series(1, 1200) i;
ANALYZE r.crowd;
SELECT import_far('crowd', 2);
ALTER FOREIGN TABLE f.crowd OPTIONS (ADD connections '4');

CREATE FUNCTION connections(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER FOREIGN TABLE f.crowd OPTIONS (SET connections %L)', n);
END $$;

-- How many connections took part in reading a query's foreign tables.
CREATE FUNCTION used(query text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN (WITH RECURSIVE node AS (
        SELECT plan->0->'Plan' AS n
        UNION ALL
        SELECT json_array_elements(n->'Plans') FROM node)
        SELECT array_agg((n->'Participants'->0->>'Connections')::int) FROM node
        WHERE n->>'Node Type' = 'Foreign Scan');
END $$;

-- The same query on the local table and on the foreign one, with that many
-- connections: one row if all agree.
CREATE FUNCTION check_connections(query text, numbers text[] DEFAULT '{1,2,4}',
                                  OUT result text, OUT connections text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    wrapped text := format('SELECT string_agg(q::text, chr(10) ORDER BY q::text) FROM (%s) q', query);
    ways text[] := array_prepend('local', numbers);
    results text[];
    one text;
BEGIN
    EXECUTE format(wrapped, 'r.crowd') INTO one;
    results := ARRAY[one];
    FOR i IN 2..cardinality(ways) LOOP
        PERFORM connections(ways[i]::int);
        EXECUTE format(wrapped, 'f.crowd') INTO one;
        results := results || one;
    END LOOP;
    PERFORM connections(4);
    RETURN QUERY SELECT u.r, string_agg(u.w, ', ' ORDER BY u.n)
        FROM unnest(results, ways) WITH ORDINALITY u(r, w, n) GROUP BY u.r ORDER BY min(u.n);
END $$;

EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.crowd;
SELECT used('SELECT * FROM f.crowd');
SELECT connections(1);
SELECT used('SELECT * FROM f.crowd');
SELECT connections(3);
SELECT used('SELECT * FROM f.crowd');
SELECT connections(64);
SELECT used('SELECT * FROM f.crowd') BETWEEN '{5}' AND '{64}' AS used;
SELECT connections(4);

SELECT substring(result FROM '\d+') AS rows, connections FROM check_connections(
    'SELECT count(*), sum(hashtextextended(x::text, 0)::numeric) FROM %s x', '{1,2,3,4,8,64}');
SELECT * FROM check_connections('SELECT count(*), sum(id) FROM %s WHERE n < 7');
SELECT * FROM check_connections('SELECT count(*), sum(id) FROM %1$s WHERE pg_typeof(v)::text || n = ''text5''');
SELECT * FROM check_connections('SELECT count(*) FROM %s WHERE id < 0');
SELECT * FROM check_connections('SELECT count(*), sum(id) FROM (SELECT * FROM %s LIMIT 1000000) q');
SELECT * FROM check_connections('SELECT count(*) FROM (SELECT * FROM %s LIMIT 5) q');
SELECT * FROM check_connections('SELECT count(*) FROM (SELECT * FROM %s OFFSET 600) q');
SELECT * FROM check_connections('SELECT count(*), sum(a.id) FROM %1$s a JOIN %1$s b USING (id)');
SET enable_hashjoin = off;
SELECT * FROM check_connections('SELECT count(*), sum(a.id) FROM %1$s a JOIN %1$s b USING (id)');
SET enable_mergejoin = off;
SELECT * FROM check_connections('SELECT count(*), sum(a.id) FROM %1$s a JOIN %1$s b ON a.id = b.id WHERE a.n = 3 AND b.n = 3');
-- rescans: each outer row reads the table anew
SET enable_material = off;
SELECT * FROM check_connections('SELECT count(*), sum(b.id) FROM generate_series(1, 5) g JOIN %1$s b ON b.id %% 10 > g');
RESET enable_material;
RESET enable_mergejoin;
RESET enable_hashjoin;
SELECT * FROM check_connections('SELECT count(*), sum(id) FROM (SELECT * FROM %1$s UNION ALL SELECT * FROM %1$s UNION ALL SELECT * FROM %1$s) q');
SELECT * FROM check_connections('SELECT g, (SELECT count(*) FROM %1$s m WHERE m.n = g OR random() > 2) FROM generate_series(1, 3) g');
SELECT * FROM check_connections('SELECT g FROM generate_series(1198, 1202) g WHERE EXISTS (SELECT FROM %1$s m WHERE m.id = g OR random() > 2)');
SELECT used('SELECT a.id FROM f.crowd a JOIN f.crowd b USING (n)');

-- cursors
BEGIN;
DECLARE a CURSOR FOR SELECT id FROM f.crowd;
DECLARE b CURSOR FOR SELECT id FROM f.crowd;
CREATE TEMP TABLE seen (c text, id int);
DO $$
DECLARE
    a refcursor := 'a';
    b refcursor := 'b';
    x int;
    y int;
BEGIN
    LOOP
        FETCH a INTO x;
        INSERT INTO seen SELECT 'a', x WHERE x IS NOT NULL;
        FETCH b INTO y;
        INSERT INTO seen SELECT 'b', y WHERE y IS NOT NULL;
        EXIT WHEN x IS NULL AND y IS NULL;
    END LOOP;
END $$;
SELECT c, count(*), count(DISTINCT id), sum(id) FROM seen GROUP BY 1 ORDER BY 1;
CLOSE a;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id FROM f.crowd;
DECLARE d CURSOR FOR SELECT id FROM f.crowd;
MOVE 500 IN d;
MOVE FORWARD ALL IN c;
DECLARE e CURSOR FOR SELECT id FROM f.crowd;
MOVE 3 IN e;
CLOSE e;
SELECT count(*) FROM f.crowd;
MOVE ALL IN d;
COMMIT;
MOVE BACKWARD ALL IN c;
CREATE FUNCTION drain(c refcursor) RETURNS TABLE (n bigint, distinct_ids bigint, sum bigint) LANGUAGE plpgsql AS $$
DECLARE
    x int;
    ids int[] := '{}';
BEGIN
    LOOP
        FETCH c INTO x;
        EXIT WHEN NOT FOUND;
        ids := ids || x;
    END LOOP;
    RETURN QUERY SELECT count(*), count(DISTINCT i), sum(i) FROM unnest(ids) i;
END $$;
SELECT * FROM drain('c');
CLOSE c;
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT id FROM f.crowd;
MOVE FORWARD ALL IN s;
MOVE BACKWARD ALL IN s;
SELECT * FROM drain('s');
COMMIT;

-- loops, functions, calls that want some rows only
CREATE FUNCTION looped(most int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    rec record;
    n int := 0;
    total bigint := 0;
BEGIN
    FOR rec IN SELECT id FROM f.crowd LOOP
        n := n + 1;
        total := total + rec.id;
        EXIT WHEN n = most;
    END LOOP;
    RETURN n || CASE WHEN n = 1200 THEN ' ' || total ELSE '' END;
END $$;
CREATE FUNCTION of_sql() RETURNS SETOF int LANGUAGE sql VOLATILE AS 'SELECT id FROM f.crowd';
CREATE FUNCTION one_row() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    x int;
BEGIN
    SELECT id INTO x FROM f.crowd;
    RETURN x IS NOT NULL;
END $$;
SELECT looped(3), looped(700), looped(5000), looped(3), one_row();
SELECT count(*), count(DISTINCT x), sum(x) FROM of_sql() x;
SELECT count(x) FROM (SELECT of_sql() AS x LIMIT 17) q;
\set FETCH_COUNT 100
SELECT id FROM f.crowd ORDER BY id LIMIT 3;
\t
SELECT id FROM f.crowd \g | sort -un | grep -c .
\t
\unset FETCH_COUNT

-- a subtransaction that ends in mid-scan
BEGIN;
DECLARE outside CURSOR FOR SELECT id FROM f.crowd;
MOVE 100 IN outside;
SAVEPOINT a;
DECLARE inside CURSOR FOR SELECT id FROM f.crowd;
MOVE 300 IN inside;
SELECT 1 / 0;
ROLLBACK TO a;
SELECT count(*), sum(id) FROM f.crowd;
SAVEPOINT b;
DECLARE inside CURSOR FOR SELECT id FROM f.crowd;
MOVE 300 IN inside;
ROLLBACK TO b;
MOVE ALL IN outside;
SELECT count(*), sum(id) FROM f.crowd;
COMMIT;

-- a bad value in one block
CREATE TABLE r.crowd_bad (id int, v text) WITH (fillfactor = 10);
INSERT INTO r.crowd_bad SELECT i, CASE WHEN i = 900 THEN 'x' ELSE i || repeat(' ', 300) END FROM generate_series(1, 1000) i;
CREATE FOREIGN TABLE f.crowd_bad (id int, v int) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'crowd_bad', chunk_blocks '1', connections '8');
SELECT error_of('SELECT count(v) FROM f.crowd_bad');
SELECT count(*) FROM f.crowd;
SELECT error_of('SELECT count(v) FROM f.crowd_bad');

-- many tables of one server at once
CREATE TABLE f.crowd_all (LIKE r.crowd) PARTITION BY LIST (n);
DO $$
BEGIN
    FOR i IN 0..9 LOOP
        EXECUTE format('CREATE TABLE r.crowd_%s AS SELECT * FROM r.crowd WHERE n %% 10 = %s', i, i);
        EXECUTE format('CREATE FOREIGN TABLE f.crowd_%s PARTITION OF f.crowd_all FOR VALUES IN (%s, %s, %s, %s)
            SERVER loopback OPTIONS (schema_name ''r'', table_name ''crowd_%s'', chunk_blocks ''1'', connections ''3'')',
            i, i, i + 10, i + 20, i + 30, i);
    END LOOP;
END $$;
SELECT count(*), sum(hashtextextended(x::text, 0)::numeric) =
    (SELECT sum(hashtextextended(y::text, 0)::numeric) FROM r.crowd y) AS same FROM f.crowd_all x;
SELECT count(*), count(DISTINCT a.id) FROM f.crowd_all a JOIN f.crowd_all b USING (id);

-- Workers may have several each.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT rows, ways FROM check_scan('r.crowd', 'f.crowd', '{2}');
SELECT count(*) FROM (SELECT * FROM f.crowd LIMIT 9) q;

-- one session stays, and no transaction in it
SELECT * FROM remote_sessions(1);
