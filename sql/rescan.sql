-- The same scan again, with other parameters or the same.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.again (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.again SELECT i, repeat('x', 300) FROM generate_series(1, 40) i;
SELECT import_far('again');
ANALYZE r.again;

-- correlated subqueries: a parameter for the remote
EXPLAIN (VERBOSE, COSTS OFF)
SELECT g, (SELECT count(*) FROM f.again WHERE id > g) FROM generate_series(0, 4) g;
SELECT g, (SELECT count(*) FROM f.again WHERE id > g) FROM generate_series(0, 4) g;
SELECT g, (SELECT count(*) FROM f.again WHERE id > nullif(g, 2)) FROM generate_series(0, 4) g;
SELECT g FROM generate_series(38, 43) g WHERE EXISTS (SELECT FROM f.again WHERE id = g OR id = g - 1);
SELECT g, (SELECT max(id) FROM f.again WHERE length(v) + g + random() * 0 > 302) FROM generate_series(1, 4) g;

-- nested loops without anything in between
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT show_plan($$SELECT count(*), sum(a.id) FROM generate_series(1, 50) g JOIN f.again a ON a.id = g$$, 'VERBOSE OFF');
SELECT count(*), sum(a.id) FROM generate_series(1, 50) g JOIN f.again a ON a.id = g;
EXPLAIN (COSTS OFF)
SELECT count(*), sum(z.id) FROM f.again a, LATERAL (SELECT b.id FROM f.again b WHERE b.id = a.id LIMIT 1) z
WHERE a.id < 10;
SELECT count(*), sum(z.id) FROM f.again a, LATERAL (SELECT b.id FROM f.again b WHERE b.id = a.id LIMIT 1) z
WHERE a.id < 10;
SELECT count(*), sum(z.id) FROM f.again a, LATERAL (SELECT b.id FROM f.again b WHERE b.id >= a.id LIMIT 3) z
WHERE a.id > 36;

-- a Gather that is run again: workers are launched anew, the counter starts over
EXPLAIN (COSTS OFF)
SELECT g, n FROM generate_series(1, 4) g, LATERAL (SELECT count(*) + g * 0 AS n FROM f.again) x;
SELECT g, n FROM generate_series(1, 4) g, LATERAL (SELECT count(*) + g * 0 AS n FROM f.again) x;
SELECT * FROM explain_workers('SELECT g, n FROM generate_series(1, 4) g, LATERAL (SELECT count(*) + g * 0 AS n FROM f.again) x');
SET parallel_leader_participation = off;
SELECT g, n FROM generate_series(1, 4) g, LATERAL (SELECT count(*) + g * 0 AS n FROM f.again) x;
RESET parallel_leader_participation;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

-- nothing that the remote could look up: every row, again and again
SET max_parallel_workers_per_gather = 0;
SET enable_material = off;
EXPLAIN (VERBOSE, COSTS OFF)
SELECT count(*) FROM generate_series(1, 3) g LEFT JOIN f.again a ON a.id + random() * 0 > g;
SELECT count(*) FROM generate_series(1, 3) g LEFT JOIN f.again a ON a.id + random() * 0 > g;
RESET enable_material;
SET max_parallel_workers_per_gather = 2;

-- a recursive query that reads the table each round
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT show_plan($$WITH RECURSIVE walk(id) AS (
    SELECT 1
    UNION ALL
    SELECT a.id FROM walk w JOIN f.again a ON a.id = w.id + 7)
SELECT array_agg(id) FROM walk$$, 'VERBOSE OFF');
WITH RECURSIVE walk(id) AS (
    SELECT 1
    UNION ALL
    SELECT a.id FROM walk w JOIN f.again a ON a.id = w.id + 7)
SELECT array_agg(id) FROM walk;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- an InitPlan's result in the workers
SELECT show_plan('SELECT count(*) FROM f.again WHERE id < (SELECT 30)', 'VERBOSE');
SELECT count(*) FROM f.again WHERE id < (SELECT 30);
SELECT * FROM explain_workers('SELECT count(*) FROM f.again WHERE id < (SELECT 30)');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %1$s WHERE id > (SELECT avg(id) FROM %1$s)',
                          'r.again', 'f.again', '{2,4}');

-- parameters of a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE one_id(int) AS SELECT count(*), sum(id) FROM f.again WHERE id <= $1;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE one_id(10);
SELECT * FROM explain_workers('EXECUTE one_id(10)');
EXECUTE one_id(10);
EXECUTE one_id(20);
EXECUTE one_id(NULL);
PREPARE pattern(text, int[]) AS SELECT count(*) FROM f.again WHERE v LIKE $1 AND id = ANY ($2);
EXECUTE pattern('x%', '{1,2,NULL}');
EXECUTE pattern('\x%', '{1,2,3}');
EXECUTE pattern('''%', '{1,2,3}');
EXECUTE pattern('x%', NULL);
