-- Plans that hang on what the remote says of a table: unique columns, views, widths,
-- the blocks that conditions on ctid leave; and which expressions and parameters of
-- each kind are sent. Settings and options are those of a new installation.
CREATE TABLE r.pc (id int PRIMARY KEY, u int UNIQUE, "odd ""name" int UNIQUE, n int, v text)
    WITH (autovacuum_enabled = off);
INSERT INTO r.pc SELECT i, -i, i * 2, i % 100, repeat('x', 200) FROM generate_series(1, 60000) i;
CREATE UNIQUE INDEX ON r.pc (n, id);
CREATE UNIQUE INDEX ON r.pc ((n + id * 1000));
CREATE VIEW r.pc_view AS SELECT * FROM r.pc;
CREATE VIEW r.pc_groups AS SELECT n, count(*) AS rows FROM r.pc GROUP BY n;
CREATE TABLE r.pc_parent (id int PRIMARY KEY);
CREATE TABLE r.pc_child () INHERITS (r.pc_parent);
INSERT INTO r.pc_child SELECT i / 2 FROM generate_series(1, 20000) i;
ANALYZE r.pc, r.pc_parent, r.pc_child;
IMPORT FOREIGN SCHEMA r LIMIT TO (pc, pc_view, pc_groups, pc_parent) FROM SERVER loopback INTO f;
CREATE TABLE pc_keys AS SELECT i * 10 AS id FROM generate_series(1, 1000) i;
ANALYZE pc_keys;

-- What the plan expects of a query, in its first line: within a factor of two of
-- `truth`, or the figure.
CREATE FUNCTION expects(query text, truth float8, OUT rows text, OUT width int)
LANGUAGE plpgsql AS $$
DECLARE
    plan json;
    n float8;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    n := plan->0->'Plan'->>'Plan Rows';
    width := plan->0->'Plan'->>'Plan Width';
    rows := CASE WHEN n BETWEEN truth / 2 AND truth * 2 THEN 'good' ELSE n::text END;
END
$$;

-- A unique column of the remote is known to be one, without ANALYZE here; the width
-- of its rows as well.
SELECT attname FROM pg_stats WHERE schemaname = 'f' AND tablename LIKE 'pc%';
SELECT query, e.* FROM (VALUES
    ('SELECT v FROM f.pc', 60000),
    ('SELECT * FROM pc_keys k JOIN f.pc ON pc.id = k.id', 1000),
    ('SELECT * FROM pc_keys k JOIN f.pc ON pc.u = k.id', 1000),
    ('SELECT * FROM pc_keys k JOIN f.pc ON pc."odd ""name" = k.id', 1000),
    ('SELECT * FROM f.pc a JOIN f.pc b USING (id)', 60000),
    ('SELECT id, count(*) FROM f.pc GROUP BY id', 60000),
    ('SELECT * FROM pc_keys k WHERE EXISTS (SELECT FROM f.pc WHERE pc.id = k.id)', 1000),
    ('SELECT * FROM f.pc_view', 60000),
    ('SELECT id FROM f.pc_view', 60000),
    ('SELECT * FROM f.pc_view WHERE id < 1000', 1000),
    ('SELECT * FROM f.pc_groups', 100)) q(query, truth), expects(query, truth) e;
-- but the children of a table are not in its index
SELECT expects('SELECT id, count(*) FROM f.pc_parent GROUP BY id', 20000) AS not_known;
-- It is for estimates only: the remote may lose it at any time. No join stops at the
-- first match, and none is left out.
SET enable_nestloop = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM pc_keys k JOIN f.pc ON pc.u = k.id;
EXPLAIN (COSTS OFF) SELECT k.id FROM pc_keys k LEFT JOIN f.pc USING (id);
RESET enable_nestloop;
EXPLAIN (COSTS OFF) SELECT id, v, count(*) FROM f.pc GROUP BY id, v;
ALTER TABLE r.pc DROP CONSTRAINT pc_u_key;
UPDATE r.pc SET u = 10 WHERE id <= 5;
SELECT count(*), count(DISTINCT pc.id) FROM pc_keys k JOIN f.pc ON pc.u = k.id;
SELECT count(*) FROM pc_keys k LEFT JOIN f.pc ON pc.u = k.id;

-- a view is planned by the remote, unless that is forbidden; a filter of a large one
-- is asked about
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM pc_keys k JOIN f.pc_view USING (id) WHERE k.id < 30;
SELECT count(*), sum(id), sum(n) FROM pc_keys k JOIN f.pc_view USING (id) WHERE k.id < 30;
SELECT * FROM pc_keys k JOIN f.pc_groups g ON g.n = k.id WHERE k.id < 30 ORDER BY 1;
CREATE FOREIGN TABLE f.pc_view2 (id int, v text) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'pc_view', use_remote_estimate 'false');
SELECT expects('SELECT * FROM f.pc_view2', 60000);

-- what conditions on ctid leave decides on workers and costs: none for a few blocks
CREATE FUNCTION workers_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Workers Planned' THEN
            RETURN trim(line);
        END IF;
    END LOOP;
    RETURN 'serial';
END
$$;
ALTER FOREIGN TABLE f.pc OPTIONS (ADD use_remote_estimate 'false');
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = '1MB';
SET max_parallel_workers_per_gather = 8;
SELECT relpages BETWEEN 1700 AND 2000 AS blocks FROM pg_class WHERE oid = 'r.pc'::regclass;
SELECT qual, workers_of('SELECT count(*) FROM f.pc WHERE ' || qual) FROM unnest(ARRAY[
    'true', $$ctid >= '(0,0)'$$, $$ctid < '(800,0)'$$, $$ctid >= '(500,0)' AND '(800,0)' > ctid$$, $$ctid < '(100,0)'$$,
    $$ctid = '(5,5)'$$, $$ctid = ANY ('{"(5,5)","(1000,5)"}')$$, $$ctid = ANY ('{"(5,5)","(9,5)",NULL}')$$,
    $$ctid > '(5,0)' AND ctid < '(3,0)'$$, $$ctid >= '(100000,0)'$$]) qual;
PREPARE tids(tid, tid) AS SELECT count(*) FROM f.pc WHERE ctid >= $1 AND ctid < $2;
SELECT workers_of($$EXECUTE tids('(0,0)', '(800,0)')$$), workers_of($$EXECUTE tids('(0,0)', '(20,0)')$$);
SET plan_cache_mode = force_generic_plan;
SELECT workers_of($$EXECUTE tids('(0,0)', '(20,0)')$$);
EXECUTE tids('(0,0)', '(800,0)');
SELECT count(*) FROM r.pc WHERE ctid < '(800,0)';
RESET plan_cache_mode;
RESET parallel_setup_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
ALTER FOREIGN TABLE f.pc OPTIONS (DROP use_remote_estimate);

-- Look-ups: the connection is opened once, so the first costs no more than the others
CREATE FUNCTION cost_of(query text, fdw_startup_cost float8) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE format('ALTER SERVER loopback OPTIONS (ADD fdw_startup_cost %L)', fdw_startup_cost);
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    ALTER SERVER loopback OPTIONS (DROP fdw_startup_cost);
    RETURN plan->0->'Plan'->>'Total Cost';
END
$$;
\set lookups 'SELECT * FROM (SELECT * FROM pc_keys WHERE id <= 500) k JOIN f.pc ON pc.id = k.id'
EXPLAIN (COSTS OFF) :lookups;
SELECT round(cost_of(:'lookups', 110) - cost_of(:'lookups', 100)) AS of_about_fifty_lookups;
SELECT round(cost_of('SELECT * FROM f.pc_groups', 110) - cost_of('SELECT * FROM f.pc_groups', 100)) AS of_a_scan;

-- a column that no worker may decode: a domain whose check calls an unsafe function
CREATE FUNCTION pc_positive(int) RETURNS boolean LANGUAGE plpgsql PARALLEL UNSAFE AS 'BEGIN RETURN $1 > 0; END';
CREATE FUNCTION pc_positive_safe(int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN $1 > 0; END';
CREATE DOMAIN pc_unsafe AS int CHECK (pc_positive(VALUE));
CREATE DOMAIN pc_safe AS int CHECK (pc_positive_safe(VALUE));
CREATE FOREIGN TABLE f.pc_domains (id pc_unsafe, u int, n pc_safe) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'pc', chunk_blocks '64', parallel_workers '2');
ALTER FOREIGN TABLE f.pc_domains ALTER n TYPE int, ADD id2 pc_safe OPTIONS (column_name 'id');
CREATE FOREIGN TABLE f.pc_arrays (id int, a pc_unsafe[] OPTIONS (column_name 'v')) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'pc', chunk_blocks '64', parallel_workers '2');
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT query, workers_of(query) FROM unnest(ARRAY[
    'SELECT count(*) FROM f.pc_domains', 'SELECT sum(u) FROM f.pc_domains', 'SELECT sum(id2) FROM f.pc_domains',
    'SELECT sum(id) FROM f.pc_domains', 'SELECT sum(u) FROM f.pc_domains WHERE id + 0 > 5',
    'SELECT count(x) FROM f.pc_domains x', 'SELECT count(*) FROM f.pc_arrays', 'SELECT count(a) FROM f.pc_arrays']) query;
SELECT count(*), sum(id), sum(id2), count(DISTINCT id) FROM f.pc_domains;
SELECT sum(id2) FROM f.pc_domains;
RESET parallel_setup_cost;
RESET min_parallel_table_scan_size;

-- char(n): blanks at the end, compared there as here
CREATE TABLE r.pc_char (c char(5), v text);
INSERT INTO r.pc_char VALUES ('a', 'a'), ('a ', 'a '), ('ab', 'ab'), ('', ''), (NULL, NULL), ('B', 'B');
IMPORT FOREIGN SCHEMA r LIMIT TO (pc_char) FROM SERVER loopback INTO f;
SELECT qual, string_agg(format('%s %s', result, ways), E'\n') FROM unnest(ARRAY[
    $$c = 'a'$$, $$c = 'a '$$, $$c::text = 'a'$$, $$length(c) = 1$$, $$c IN ('a  ', 'B')$$, $$c LIKE 'a%%'$$, $$c LIKE 'a '$$,
    $$c = v$$, $$c::text = v$$, $$c < 'ab'$$, $$c || 'x' = 'ax'$$, $$v = 'a '$$, $$c IS DISTINCT FROM 'a'$$]) qual,
    check_query('SELECT count(*), min(v COLLATE "C") FROM %s WHERE ' || qual, 'r.pc_char', 'f.pc_char', '{}') GROUP BY qual ORDER BY qual COLLATE "C";

-- a foreign table in a subplan that no worker can run: they open no connection of ours
CREATE FUNCTION pc_restricted(bigint) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
CREATE TABLE pc_local AS SELECT i AS id FROM generate_series(1, 1000) i;
ALTER TABLE pc_local SET (parallel_workers = 2);
ANALYZE pc_local;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT show_plan('SELECT count(*) FROM pc_local WHERE id > (SELECT pc_restricted(min(n)) FROM f.pc)', 'VERBOSE OFF');
SELECT count(*) FROM pc_local WHERE id > (SELECT pc_restricted(min(n)) FROM f.pc);
SELECT show_plan('SELECT count(*), sum((SELECT count(*) FROM f.pc WHERE pc.id = pc_local.id AND pc.n = 7)) FROM pc_local WHERE id < 10', 'VERBOSE OFF');
SELECT count(*), sum((SELECT count(*) FROM f.pc WHERE pc.id = pc_local.id AND pc.n = 7)) FROM pc_local WHERE id < 10;
SELECT * FROM remote_sessions(1);

-- any number of workers gives the same sum, before and after ANALYZE
CREATE TABLE r.pc_few (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.pc_few SELECT i, repeat('x', 100) FROM generate_series(1, 300) i;
SELECT import_far('pc_few');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s WHERE id > 0', 'r.pc_few', 'f.pc_few', '{1,2,3,4,5,6,7,8}');
ANALYZE f.pc_few;
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s WHERE id > 0', 'r.pc_few', 'f.pc_few', '{1,2,3,4,5,6,7,8}');

-- partitions on two servers below one Parallel Append
DO $$
BEGIN
    EXECUTE format('CREATE SERVER loopback_too FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (host %L, port %L, dbname %L)',
                   split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database());
END
$$;
CREATE USER MAPPING FOR CURRENT_USER SERVER loopback_too;
CREATE TABLE r.pc_more AS SELECT id + 1000 AS id, v FROM r.pc_few;
CREATE TABLE f.pc_both (id int, v text) PARTITION BY RANGE (id);
ALTER TABLE f.pc_both ATTACH PARTITION f.pc_few FOR VALUES FROM (0) TO (1000);
CREATE FOREIGN TABLE f.pc_more PARTITION OF f.pc_both FOR VALUES FROM (1000) TO (2000) SERVER loopback_too
    OPTIONS (schema_name 'r', table_name 'pc_more', chunk_blocks '1', parallel_workers '4');
CREATE VIEW r.pc_both AS SELECT * FROM r.pc_few UNION ALL SELECT * FROM r.pc_more;
SET max_parallel_workers_per_gather = 4;
SET enable_partitionwise_aggregate = on;
SELECT show_plan('SELECT count(*) FROM f.pc_both', 'VERBOSE OFF');
SELECT * FROM check_scan('r.pc_both', 'f.pc_both', '{4}');
RESET enable_partitionwise_aggregate;
SELECT show_plan('SELECT count(*) FROM f.pc_both', 'VERBOSE OFF');
SELECT * FROM check_scan('r.pc_both', 'f.pc_both', '{1,4}');
SELECT show_plan('SELECT * FROM f.pc_both ORDER BY id', 'VERBOSE OFF');
SELECT * FROM check_query('SELECT md5(array_agg(id)::text) FROM (SELECT id FROM %s ORDER BY id) x', 'r.pc_both', 'f.pc_both', '{4}');
SELECT tidrange_fdw_disconnect_all() IS NOT NULL AS done;

-- whole rows that are null
INSERT INTO r.pc_char VALUES (NULL, NULL);
SELECT * FROM check_query('SELECT count(*) FROM %s t WHERE t IS NULL', 'r.pc_char', 'f.pc_char', '{}');
SELECT * FROM check_query('SELECT count(*) FROM %s t WHERE t IS NOT NULL', 'r.pc_char', 'f.pc_char', '{}');
SELECT * FROM check_query('SELECT t FROM %s t WHERE NOT (t IS NULL) AND ctid >= ''(0,1)''', 'r.pc_char', 'f.pc_char', '{}');

-- rows have a price
SET max_parallel_workers_per_gather = 0;
SELECT cost_of('SELECT * FROM f.pc_few', 0) AS cheap \gset
ALTER SERVER loopback OPTIONS (ADD fdw_tuple_cost '1.2');
SELECT round(cost_of('SELECT * FROM f.pc_few', 0) - :cheap) AS for_one_more_each;
ALTER SERVER loopback OPTIONS (DROP fdw_tuple_cost);
