-- Foreign scans in every place of a plan: hashed and probing in Parallel Hash, below
-- Append, Materialize and Memoize, in data-changing commands, joins of all kinds.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;

CREATE TABLE r.js (id int PRIMARY KEY, n int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.js SELECT i, i % 10, repeat('x', 130) FROM generate_series(1, 60) i;
ANALYZE r.js;
SELECT import_far('js', 1, 3);
CREATE TABLE js_here (id int, n int) WITH (parallel_workers = 3, autovacuum_enabled = off);
INSERT INTO js_here SELECT i, i % 7 FROM generate_series(31, 90) i;
ANALYZE js_here;
\set both 'SELECT count(*), sum(a.id), sum(b.id), sum(a.n - b.n) FROM '

-- Parallel Hash with the foreign table on either side, and on both
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT show_plan(:'both' || 'f.js a JOIN js_here b USING (id)', 'VERBOSE OFF');
SELECT * FROM check_query(:'both' || '%s a JOIN js_here b USING (id)', 'r.js', 'f.js', '{1,3}');
SET enable_parallel_hash = off;
SELECT show_plan(:'both' || 'f.js a JOIN js_here b USING (id)', 'VERBOSE OFF');
SELECT * FROM check_query(:'both' || '%s a JOIN js_here b USING (id)', 'r.js', 'f.js', '{1,3}');
RESET enable_parallel_hash;
INSERT INTO js_here SELECT i, i % 7 FROM generate_series(91, 5000) i;
ANALYZE js_here;
SELECT show_plan(:'both' || 'f.js a JOIN js_here b USING (id)', 'VERBOSE OFF');
SELECT * FROM check_query(:'both' || '%s a JOIN js_here b USING (id)', 'r.js', 'f.js', '{1,3}');
DELETE FROM js_here WHERE id > 90;
ANALYZE js_here;
SELECT show_plan(:'both' || 'f.js a JOIN f.js b USING (id)', 'VERBOSE OFF');
SELECT * FROM check_query(:'both' || '%1$s a JOIN %1$s b USING (id)', 'r.js', 'f.js', '{1,3}');
-- in several batches, and without the leader
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT * FROM check_query('SELECT count(*), sum(length(a.v) + length(b.v)) FROM %1$s a JOIN %1$s b USING (n)', 'r.js', 'f.js', '{1,3}');
SET parallel_leader_participation = off;
SELECT * FROM check_query('SELECT count(*), sum(length(a.v) + length(b.v)) FROM %1$s a JOIN %1$s b USING (n)', 'r.js', 'f.js', '{1,3}');
RESET parallel_leader_participation;
RESET work_mem;
RESET hash_mem_multiplier;

-- each kind of join, each method
CREATE FUNCTION all_joins(OUT kind text, OUT method text, OUT result text, OUT ways text) RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    FOREACH method IN ARRAY ARRAY['hashjoin', 'mergejoin', 'nestloop'] LOOP
        PERFORM set_config('enable_' || m, (m = method)::text, true)
            FROM unnest(ARRAY['hashjoin', 'mergejoin', 'nestloop']) m;
        FOREACH kind IN ARRAY ARRAY[
            '%s a JOIN js_here b ON a.id = b.id', '%s a LEFT JOIN js_here b ON a.id = b.id', '%s a RIGHT JOIN js_here b ON a.id = b.id',
            '%s a FULL JOIN js_here b ON a.id = b.id',
            'js_here b, LATERAL (SELECT * FROM %s a WHERE a.id = b.id + 1 LIMIT 1) a',
            '%s a, (SELECT id - 9 AS id FROM js_here) b WHERE EXISTS (SELECT FROM js_here WHERE id = a.id) AND a.id = b.id',
            'js_here b, (SELECT id - 7 AS id FROM js_here) a WHERE EXISTS (SELECT FROM %s f WHERE f.id = b.id) AND a.id = b.id',
            'js_here a, js_here b WHERE NOT EXISTS (SELECT FROM %s f WHERE f.id = a.id) AND a.id = b.id'] LOOP
            RETURN QUERY SELECT kind, method, c.* FROM check_query('SELECT count(*), sum(a.id), sum(b.id) FROM ' || kind, 'r.js', 'f.js', '{3}') c;
        END LOOP;
    END LOOP;
END
$$;
SELECT kind, result, string_agg(method, ' ') AS methods FROM all_joins() GROUP BY 1, 2 ORDER BY kind COLLATE "C", 2;
RESET enable_mergejoin;
RESET enable_nestloop;

-- Memoize and Materialize above look-ups and whole scans
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 0;
ALTER FOREIGN TABLE f.js OPTIONS (ADD use_remote_estimate 'true');
ALTER SERVER loopback OPTIONS (ADD fdw_startup_cost '0.01');
SELECT show_plan($$SELECT count(*), sum(a.id) FROM js_here b JOIN f.js a ON a.id = b.n$$, 'VERBOSE');
SELECT count(*), sum(a.id) FROM js_here b JOIN r.js a ON a.id = b.n;
SELECT count(*), sum(a.id) FROM js_here b JOIN f.js a ON a.id = b.n;
SELECT count(*), sum(a.id) FROM (SELECT nullif(n, 3) AS n FROM js_here) b LEFT JOIN r.js a ON a.id = b.n;
SELECT count(*), sum(a.id) FROM (SELECT nullif(n, 3) AS n FROM js_here) b LEFT JOIN f.js a ON a.id = b.n;
ALTER SERVER loopback OPTIONS (DROP fdw_startup_cost);
ALTER FOREIGN TABLE f.js OPTIONS (DROP use_remote_estimate);
SELECT show_plan($$SELECT count(*), sum(a.id) FROM js_here b JOIN f.js a ON a.id + 0.0 = b.id + 0.0$$, 'VERBOSE OFF');
SELECT count(*), sum(a.id) FROM js_here b JOIN f.js a ON a.id + 0.0 = b.id + 0.0;
RESET enable_hashjoin;
RESET enable_mergejoin;
SET max_parallel_workers_per_gather = 3;

-- UNION ALL of ten foreign tables
DO $$
BEGIN
    FOR i IN 0..9 LOOP
        EXECUTE format('CREATE FOREIGN TABLE f.js%s (id int, n int, v text) SERVER loopback
            OPTIONS (schema_name ''r'', table_name ''js'', chunk_blocks ''4'', parallel_workers ''2'')', i);
    END LOOP;
    EXECUTE 'CREATE VIEW f.js_ten AS ' || (SELECT string_agg('SELECT * FROM f.js' || i || ' WHERE n = ' || i, ' UNION ALL ') FROM generate_series(0, 9) i);
END
$$;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.js_ten;
SELECT * FROM check_scan('r.js', 'f.js_ten', '{1,3}');
SET enable_parallel_append = off;
SELECT * FROM check_scan('r.js', 'f.js_ten', '{3}');
RESET enable_parallel_append;
SELECT * FROM remote_sessions(1);

-- local tables changed by what a foreign one says
SET max_parallel_workers_per_gather = 0;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE js_here SET n = js.n FROM f.js WHERE js_here.id = js.id AND js.n < 5;
EXPLAIN (COSTS OFF) MERGE INTO js_here USING f.js ON js_here.id = js.id WHEN MATCHED THEN DELETE;
CREATE TABLE js_truth AS TABLE js_here;
DO $$
DECLARE
    command text;
BEGIN
    FOREACH command IN ARRAY ARRAY[
        'UPDATE %1$I h SET n = -js.n FROM %2$I.js WHERE h.id = js.id AND js.n < 5',
        'DELETE FROM %1$I h USING %2$I.js WHERE h.id = js.id AND js.n = 4',
        'MERGE INTO %1$I h USING %2$I.js ON h.id = js.id
            WHEN MATCHED AND js.n = 9 THEN DELETE
            WHEN MATCHED THEN UPDATE SET n = js.n + 100
            WHEN NOT MATCHED THEN INSERT VALUES (js.id, js.n)'] LOOP
        EXECUTE format(command, 'js_here', 'f');
        EXECUTE format(command, 'js_truth', 'r');
    END LOOP;
END
$$;
SELECT count(*), sum(id), sum(n), count(*) FILTER (WHERE n >= 100) FROM js_here;
(TABLE js_here EXCEPT ALL TABLE js_truth) UNION ALL (TABLE js_truth EXCEPT ALL TABLE js_here);
INSERT INTO js_here SELECT id, n FROM f.js WHERE id = 17 RETURNING *;
WITH moved AS (DELETE FROM js_here WHERE id IN (SELECT id FROM f.js WHERE n = 7) RETURNING id)
SELECT count(*), count(js.id) FROM moved LEFT JOIN f.js USING (id);
SELECT count(*) FROM (SELECT js.id FROM js_here JOIN f.js USING (id) WHERE js.n = 1 FOR UPDATE OF js_here) x;

-- subqueries: correlated, stopped early, uncorrelated, in a target list
SET max_parallel_workers_per_gather = 3;
SELECT * FROM check_query('SELECT b.id, (SELECT max(id) FROM %s a WHERE a.n = b.id) FROM generate_series(8, 11) b(id)', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('SELECT count(*) FROM generate_series(1, 12) g WHERE EXISTS (SELECT FROM %s a WHERE a.n > g)', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('SELECT count(*) FROM %1$s a WHERE id NOT IN (SELECT id FROM %1$s WHERE n <> 3)', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('SELECT count(*) FROM %1$s a WHERE id > ALL (SELECT id FROM %1$s b WHERE b.id < a.n * 4)', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('SELECT n, count(*), min(id) FROM %s GROUP BY ROLLUP (n) HAVING count(*) > (SELECT min(n) FROM %1$s)', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY n ORDER BY id DESC) AS k FROM %s) x WHERE k = 1', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('SELECT id FROM %1$s WHERE n = 1 INTERSECT SELECT id FROM %1$s WHERE id < 30', 'r.js', 'f.js', '{3}');
SELECT * FROM check_query('WITH c AS MATERIALIZED (SELECT * FROM %s WHERE n = 2) SELECT count(*), sum(x.id) FROM c x JOIN c y USING (id)', 'r.js', 'f.js', '{3}');
