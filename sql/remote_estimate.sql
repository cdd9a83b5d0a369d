-- Which plan is chosen when the remote is asked what a filter finds and costs:
-- look-up or scan, whole or chunked, nested loop or hash join. Settings and options
-- are those that a new installation has.
CREATE TABLE r.est (id int PRIMARY KEY, n int, v text) WITH (autovacuum_enabled = off);
INSERT INTO r.est SELECT i, i % 100, 'row number ' || i FROM generate_series(1, 250000) i;
VACUUM ANALYZE r.est;
CREATE TABLE r.tiny_est (id int PRIMARY KEY, n int, v text) WITH (autovacuum_enabled = off);
INSERT INTO r.tiny_est SELECT i, i % 10, 'row number ' || i FROM generate_series(1, 100) i;
VACUUM ANALYZE r.tiny_est;
IMPORT FOREIGN SCHEMA r LIMIT TO (est, tiny_est) FROM SERVER loopback INTO f;
SELECT relpages BETWEEN 1500 AND 2500 AS some_thousand_blocks FROM pg_class WHERE oid = 'r.est'::regclass;
CREATE TABLE est_few AS SELECT i * 1000 AS id FROM generate_series(1, 10) i;
CREATE TABLE est_many AS SELECT i AS id FROM generate_series(1, 100000) i;
ANALYZE est_few, est_many;

-- The rows that the plan expects of the query and those that it has, if they differ
-- by more than a factor of two.
CREATE FUNCTION badly_estimated(query text) RETURNS TABLE (expected numeric, had numeric)
LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    expected := plan->0->'Plan'->>'Plan Rows';
    had := plan->0->'Plan'->>'Actual Rows';
    RETURN QUERY SELECT expected, had WHERE expected NOT BETWEEN greatest(had, 1) / 2 AND greatest(had, 1) * 2;
END
$$;

-- a key: one statement, which the remote answers from its index
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.est WHERE id = 77777;
SELECT * FROM f.est WHERE id = 77777;
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.est WHERE id IN (1, 250000, 250001) ORDER BY id;
SELECT * FROM f.est WHERE id IN (1, 250000, 250001) ORDER BY id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM f.est WHERE id BETWEEN 1000 AND 1100;
SELECT count(*) FROM f.est WHERE id BETWEEN 1000 AND 1100;

-- 1 % of a column without an index, and most of one: chunked; too small for workers
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.est WHERE n = 5;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*), sum(id) FROM f.est WHERE n = 5;
SELECT count(*), sum(id) FROM r.est WHERE n = 5;
SELECT count(*), sum(id) FROM f.est WHERE n = 5;
EXPLAIN (COSTS OFF) SELECT count(*), sum(n) FROM f.est WHERE id > 1000;
SELECT count(*), sum(n) FROM r.est WHERE id > 1000;
SELECT count(*), sum(n) FROM f.est WHERE id > 1000;
-- a part of the table by ctid, small or large
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.est WHERE ctid < '(10,0)';
EXPLAIN (COSTS OFF) SELECT count(*), sum(n) FROM f.est WHERE ctid >= '(100,0)';

-- a tiny table: never parallel, and not asked about; a filter of ours: the scan
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.tiny_est WHERE n = 5;
EXPLAIN (COSTS OFF) SELECT * FROM f.tiny_est WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.est WHERE v ~ '7$' AND n = 7;

-- estimates of rows
SELECT query, b.* FROM unnest(ARRAY[
    'SELECT * FROM f.est', 'SELECT * FROM f.tiny_est',
    'SELECT * FROM f.est WHERE id = 77777', 'SELECT * FROM f.est WHERE n = 5',
    'SELECT * FROM f.est WHERE n = 5 AND id < 100000', 'SELECT * FROM f.est WHERE id > 249990',
    'SELECT * FROM f.est WHERE n = 500', 'SELECT * FROM f.est WHERE v IS NULL',
    $$SELECT * FROM f.est WHERE ctid < '(10,0)'$$]) query,
    badly_estimated(query) b;

-- joined on the key: looked up for few rows, read once for many
SELECT show_plan($$SELECT * FROM est_few JOIN f.est USING (id)$$, 'VERBOSE');
SELECT count(*), sum(n), min(v) FROM est_few JOIN f.est USING (id);
EXPLAIN (COSTS OFF) SELECT count(*), sum(n) FROM est_many JOIN f.est USING (id);
SELECT count(*), sum(n) FROM est_many JOIN f.est USING (id);
EXPLAIN (COSTS OFF) SELECT est_few.id FROM est_few WHERE EXISTS (SELECT FROM f.est WHERE est.id = est_few.id AND est.n = 0);
SELECT count(*) FROM est_few WHERE EXISTS (SELECT FROM f.est WHERE est.id = est_few.id AND est.n = 0);
EXPLAIN (COSTS OFF) SELECT est_few.id, e.v FROM est_few LEFT JOIN f.est e ON e.id = est_few.id + 1 AND e.n <> 2;
SELECT count(*), count(e.v) FROM est_few LEFT JOIN f.est e ON e.id = est_few.id + 1 AND e.n <> 2;
-- not on a column without an index, not from a tiny table
EXPLAIN (COSTS OFF) SELECT count(*) FROM est_few JOIN f.est ON n = est_few.id / 1000;
SELECT count(*) FROM est_few JOIN f.est ON n = est_few.id / 1000;
SELECT show_plan($$SELECT count(*) FROM est_few JOIN f.tiny_est ON tiny_est.id = est_few.id / 1000$$, 'VERBOSE OFF');
SELECT count(*) FROM est_few JOIN f.tiny_est ON tiny_est.id = est_few.id / 1000;

-- parameters, which the remote's planner cannot know
PREPARE by_key(int) AS SELECT * FROM f.est WHERE id = $1;
PREPARE by_n(int) AS SELECT count(*), sum(id) FROM f.est WHERE n = $1;
PREPARE by_range(int, int) AS SELECT count(*), sum(n) FROM f.est WHERE id >= $1 AND id < $2;
EXPLAIN (COSTS OFF) EXECUTE by_range(1, 200001);
EXPLAIN (COSTS OFF) EXECUTE by_range(1, 11);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_key(5);
EXECUTE by_key(5);
EXECUTE by_key(250000);
EXECUTE by_key(NULL);
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_n(5);
EXECUTE by_n(5);
EXECUTE by_n(NULL);
EXECUTE by_range(1, 200001);
EXECUTE by_range(1, 11);
RESET plan_cache_mode;

-- not asked: a key is no better than anything else, and nothing is looked up
ALTER FOREIGN TABLE f.est OPTIONS (ADD use_remote_estimate 'false');
EXPLAIN (COSTS OFF) SELECT * FROM f.est WHERE id = 77777;
SELECT * FROM f.est WHERE id = 77777;
EXPLAIN (COSTS OFF) SELECT * FROM est_few JOIN f.est USING (id);
SELECT count(*), sum(n), min(v) FROM est_few JOIN f.est USING (id);
-- asked about a tiny table as well, by the server's option, which the table's beats
ALTER SERVER loopback OPTIONS (ADD use_remote_estimate 'true');
EXPLAIN (COSTS OFF) SELECT * FROM f.est WHERE id = 77777;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT show_plan($$SELECT count(*) FROM est_few JOIN f.tiny_est ON tiny_est.id = est_few.id / 1000$$, 'VERBOSE');
SELECT count(*) FROM est_few JOIN f.tiny_est ON tiny_est.id = est_few.id / 1000;
ALTER SERVER loopback OPTIONS (DROP use_remote_estimate);
ALTER FOREIGN TABLE f.est OPTIONS (DROP use_remote_estimate);
RESET enable_hashjoin;
RESET enable_mergejoin;

-- in a transaction that has its snapshot, and beside a scan that is not finished
BEGIN;
SELECT count(*) FROM f.tiny_est;
EXPLAIN (COSTS OFF) SELECT * FROM f.est WHERE id = 77777;
SELECT * FROM f.est WHERE id = 77777;
DECLARE c CURSOR FOR SELECT id FROM f.est;
FETCH 1 FROM c;
SELECT * FROM f.est WHERE id = 77778;
FETCH 1 FROM c;
COMMIT;
