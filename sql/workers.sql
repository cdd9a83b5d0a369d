-- Any number of workers reads the same rows, whether the leader takes part or
-- not, and also where none of the planned ones can be launched.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;

CREATE TABLE r.workers (id int, v text) WITH (autovacuum_enabled = off);
INSERT INTO r.workers SELECT i, repeat('x', i % 700) FROM generate_series(1, 1000) i;
SELECT import_far('workers');

EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM f.workers;
EXPLAIN (COSTS OFF) SELECT * FROM f.workers;
SELECT * FROM check_scan('r.workers', 'f.workers');

-- the leader only gathers
SET parallel_leader_participation = off;
SELECT * FROM check_scan('r.workers', 'f.workers');
RESET parallel_leader_participation;

-- chunks of several blocks, of more than the table has, and adaptive ones
ALTER FOREIGN TABLE f.workers OPTIONS (SET chunk_blocks '7');
SELECT * FROM check_scan('r.workers', 'f.workers');
ALTER FOREIGN TABLE f.workers OPTIONS (SET chunk_blocks '4294967295');
SELECT * FROM check_scan('r.workers', 'f.workers');
ALTER FOREIGN TABLE f.workers OPTIONS (DROP chunk_blocks);
SELECT * FROM check_scan('r.workers', 'f.workers');
ALTER FOREIGN TABLE f.workers OPTIONS (ADD chunk_blocks '1');

-- no worker to be had when the plan is run
PREPARE totals AS SELECT count(*), sum(id), sum(length(v)) FROM f.workers;
EXPLAIN (COSTS OFF) EXECUTE totals;
SELECT count(*), sum(id), sum(length(v)) FROM r.workers;
SELECT * FROM explain_workers('EXECUTE totals');
EXECUTE totals;
SET max_parallel_workers = 0;
SELECT * FROM explain_workers('EXECUTE totals');
EXECUTE totals;
SET parallel_leader_participation = off;
SELECT * FROM explain_workers('EXECUTE totals');
EXECUTE totals;
RESET parallel_leader_participation;
RESET max_parallel_workers;
SELECT * FROM explain_workers('EXECUTE totals');
EXECUTE totals;
DEALLOCATE totals;

-- a parallel plan that plpgsql runs without workers
DO $$
DECLARE
    n bigint;
    total bigint;
BEGIN
    SELECT count(*), sum(id) INTO n, total FROM f.workers;
    RAISE NOTICE '% rows, sum %', n, total;
END
$$;

-- rows come in the order of Gather Merge and through a parallel hash join
EXPLAIN (COSTS OFF)
SELECT id FROM f.workers WHERE length(v) > 690 ORDER BY id;
SELECT id FROM f.workers WHERE length(v) > 690 ORDER BY id;
SELECT * FROM check_query(
    'SELECT id %% 10 AS digit, count(*), sum(id) FROM %s GROUP BY 1',
    'r.workers', 'f.workers');
