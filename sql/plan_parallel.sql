-- When a parallel plan is chosen, with the settings as they come.
CREATE TABLE r.large (id int, v text) WITH (autovacuum_enabled = off);
INSERT INTO r.large SELECT i, repeat('x', 60) FROM generate_series(1, 300000) i;
SELECT pg_relation_size('r.large') / 8192 >= 3000 AS large, relpages, reltuples
FROM pg_class WHERE oid = 'r.large'::regclass;
CREATE TABLE r.tiny AS SELECT 1 AS id;
CREATE VIEW r.large_view AS SELECT * FROM r.large;
IMPORT FOREIGN SCHEMA r LIMIT TO (large, tiny, large_view) FROM SERVER loopback INTO f;

-- never analyzed on either side, no option, no setting
SHOW max_parallel_workers_per_gather;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
EXPLAIN (COSTS OFF) SELECT min(id), max(length(v)) FROM f.large;
EXPLAIN (COSTS OFF) SELECT id % 10, count(*) FROM f.large GROUP BY 1;
SELECT * FROM explain_workers('SELECT count(*), sum(id) FROM f.large');
SELECT count(*), sum(id) FROM f.large;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.tiny;
SELECT * FROM check_query('SELECT count(*), sum(id), sum(length(v)) FROM %s', 'r.large', 'f.large');

-- more workers where they are allowed: by size, as core counts them, or as the option says
SET max_parallel_workers_per_gather = 8;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
ALTER FOREIGN TABLE f.large OPTIONS (ADD parallel_workers '7');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
SET max_parallel_workers_per_gather = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
RESET max_parallel_workers_per_gather;

-- none where the option, the server's option or the setting says so
ALTER FOREIGN TABLE f.large OPTIONS (SET parallel_workers '0');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
ALTER FOREIGN TABLE f.large OPTIONS (DROP parallel_workers);
ALTER SERVER loopback OPTIONS (ADD parallel_workers '0');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
ALTER FOREIGN TABLE f.large OPTIONS (ADD parallel_workers '1');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
ALTER SERVER loopback OPTIONS (DROP parallel_workers);
ALTER FOREIGN TABLE f.large OPTIONS (DROP parallel_workers);
SET min_parallel_table_scan_size = '100MB';
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large;
RESET min_parallel_table_scan_size;

-- not for a tiny table, nor one without blocks, however cheap
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER FOREIGN TABLE f.tiny OPTIONS (ADD parallel_workers '4');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.tiny;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large_view;
SELECT count(*) FROM f.large_view;
SELECT show_plan('SELECT count(*) FROM f.large_view', 'ANALYZE, TIMING OFF, SUMMARY OFF');

-- nor where a function or the command forbids it
EXPLAIN (COSTS OFF) SELECT * FROM f.large;
CREATE FUNCTION unsafe(int) RETURNS int LANGUAGE sql PARALLEL UNSAFE AS 'SELECT $1';
CREATE FUNCTION restricted(int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large WHERE unsafe(id) IS NOT NULL;
EXPLAIN (COSTS OFF) SELECT restricted(id) FROM f.large;
BEGIN;
DECLARE c CURSOR FOR SELECT count(*) FROM f.large;
EXPLAIN (COSTS OFF) DECLARE d CURSOR FOR SELECT count(*) FROM f.large;
COMMIT;

-- A plan below Gather must not hold a whole scan in each worker.
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.large a JOIN f.tiny b USING (id);
SELECT count(*) FROM f.large a JOIN f.tiny b USING (id);
EXPLAIN (COSTS OFF) SELECT count(*) FROM r.large a JOIN f.tiny b USING (id);
SELECT count(*) FROM r.large a JOIN f.tiny b USING (id);
EXPLAIN (COSTS OFF) SELECT count(*) FROM r.large WHERE id IN (SELECT id FROM f.tiny);
SELECT count(*) FROM r.large WHERE id IN (SELECT id FROM f.tiny);
