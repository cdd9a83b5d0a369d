-- Conditions on ctid cut the blocks that are read, as core's Tid Range Scan does:
-- the cases of its regression test, each against the table itself, serial and
-- parallel, with the number of blocks that were claimed.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

-- ten blocks of up to four rows; none in block 4, none at offset 1
CREATE TABLE r.tids (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.tids SELECT i, repeat('x', 130) FROM generate_series(1, 40) i;
DELETE FROM r.tids WHERE ctid >= '(4,0)' AND ctid < '(5,0)' OR ctid::text LIKE '%,1)';
SELECT count(*), min(ctid), max(ctid) FROM r.tids;
SELECT import_far('tids');
ALTER FOREIGN TABLE f.tids OPTIONS (ADD use_remote_estimate 'false');

-- The blocks that the chunked scans of a query claim, in all; none: not chunked.
CREATE FUNCTION claimed(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
    RETURN (SELECT sum(m[1]::bigint) FROM regexp_matches(plan, '"Blocks Claimed": (\d+)', 'g') m);
END
$$;

EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.tids WHERE ctid >= '(2,0)' AND '(7,3)' > ctid;
-- Which blocks a condition leaves, and whether it finds the rows that it finds in
-- the table itself, serial and parallel. The planner makes no workers for a block or
-- none, so the values are also hidden from it, as results of an InitPlan.
CREATE FUNCTION check_qual(qual text, OUT claimed bigint, OUT result text, OUT same bool)
LANGUAGE plpgsql AS $$
DECLARE
    total text := 'SELECT format(''%s %s %s'', count(*), min(ctid), max(ctid)) FROM tids t WHERE ' || qual;
    hidden text := regexp_replace(total, $q$'(\([0-9,]+\))'$q$, $q$(SELECT '\1'::tid)$q$, 'g');
    serial text;
    parallel text;
    from_hidden text;
BEGIN
    SET LOCAL search_path = r, public;
    EXECUTE total INTO result;
    SET LOCAL search_path = f, public;
    claimed := claimed(hidden);
    EXECUTE hidden INTO from_hidden;
    EXECUTE total INTO parallel;
    SET LOCAL max_parallel_workers_per_gather = 0;
    EXECUTE total INTO serial;
    same := result = serial AND result = parallel AND result = from_hidden;
    SET LOCAL max_parallel_workers_per_gather = 2;
END
$$;
SELECT qual, c.* FROM unnest(ARRAY[
    -- upper bound, either way round
    $$ctid < '(1,0)'$$, $$ctid <= '(1,5)'$$, $$ctid < '(0,0)'$$, $$ctid <= '(0,0)'$$,
    $$ctid < '(0,1)'$$, $$ctid <= '(3,0)'$$, $$'(1,0)' > ctid$$, $$'(1,0)' >= ctid$$,
    -- lower bound
    $$ctid > '(2,8)'$$, $$ctid >= '(2,0)'$$, $$ctid > '(9,4)'$$, $$ctid >= '(9,5)'$$,
    $$'(2,8)' < ctid$$, $$'(2,0)' <= ctid$$, $$ctid > '(0,0)'$$,
    -- both, more than both, one block, in the middle of a block, the empty block
    $$ctid > '(1,4)' AND '(7,3)' >= ctid$$, $$'(1,4)' <= ctid AND '(7,3)' > ctid$$,
    $$ctid BETWEEN '(3,3)' AND '(3,4)'$$, $$ctid >= '(4,0)' AND ctid < '(5,0)'$$,
    $$ctid > '(1,0)' AND ctid > '(6,0)' AND ctid < '(9,0)' AND ctid < '(8,0)' AND id <> 32$$,
    -- contradictory
    $$ctid > '(9,0)' AND ctid < '(3,0)'$$, $$ctid >= '(3,3)' AND ctid < '(3,3)'$$,
    $$ctid = '(3,3)' AND ctid IN ('(5,3)', '(6,3)')$$, $$ctid = '(3,3)' AND ctid > '(3,3)'$$,
    -- beyond the end, and the largest there are
    $$ctid > '(10,0)'$$, $$ctid >= '(9999,0)'$$, $$ctid < '(9999,0)'$$, $$ctid >= '(9,6)'$$,
    $$ctid >= '(4294967295,0)'$$, $$ctid > '(4294967295,65535)'$$, $$ctid <= '(4294967295,65535)'$$,
    $$ctid = '(4294967295,0)'$$, $$ctid >= '(2147483648,0)'$$, $$ctid < '(2147483648,0)'$$,
    -- equal to one, to one of many
    $$ctid = '(3,3)'$$, $$'(3,3)' = ctid$$, $$ctid = '(3,1)'$$, $$ctid = '(3,0)'$$,
    $$ctid = ANY ('{"(2,2)","(6,3)","(6,3)",NULL}')$$, $$ctid IN ('(5,2)', '(77,1)')$$,
    $$ctid = ANY ('{}')$$, $$ctid = ANY (ARRAY[NULL::tid])$$,
    -- unknown
    $$ctid >= NULL$$, $$ctid = ANY (NULL::tid[])$$, $$ctid > '(2,0)' AND ctid < NULL::tid$$,
    -- these say nothing of a range
    $$ctid <> '(3,3)'$$, $$ctid <> ALL ('{"(3,3)"}')$$, $$NOT ctid < '(8,0)'$$,
    $$(ctid < '(1,0)' OR ctid > '(9,0)')$$, $$ctid IS NOT NULL$$, $$ctid = ctid$$,
    $$ctid >= ctid AND ctid < '(1,0)'$$
    ]) qual, check_qual(qual) c;

-- parameters: of a generic plan, NULL among them
SET plan_cache_mode = force_generic_plan;
PREPARE between_tids(tid, tid) AS SELECT count(*), min(ctid), max(ctid) FROM f.tids WHERE ctid >= $1 AND ctid < $2;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE between_tids('(2,0)', '(4,0)');
EXECUTE between_tids('(2,0)', '(4,0)');
EXECUTE between_tids('(8,3)', '(10,0)');
EXECUTE between_tids('(4,0)', '(2,0)');
EXECUTE between_tids('(4,0)', NULL);
SELECT claimed($$EXECUTE between_tids('(2,0)', '(4,0)')$$), claimed($$EXECUTE between_tids('(8,3)', '(10,0)')$$),
    claimed($$EXECUTE between_tids('(4,0)', '(2,0)')$$), claimed($$EXECUTE between_tids('(4,0)', NULL)$$);
PREPARE any_tid(tid[]) AS SELECT count(*), min(ctid), max(ctid) FROM f.tids WHERE ctid = ANY ($1);
EXECUTE any_tid('{"(2,2)","(6,3)"}');
EXECUTE any_tid('{}');
EXECUTE any_tid(NULL);
SELECT claimed($$EXECUTE any_tid('{"(2,2)","(6,3)"}')$$), claimed($$EXECUTE any_tid('{}')$$), claimed('EXECUTE any_tid(NULL)');

-- the result of an InitPlan
SELECT show_plan($$SELECT count(*) FROM f.tids WHERE ctid < (SELECT '(3,0)'::tid OFFSET 0)$$, 'VERBOSE');
SELECT claimed($$SELECT count(*) FROM f.tids WHERE ctid < (SELECT '(3,0)'::tid OFFSET 0)$$);
SELECT * FROM check_query($$SELECT count(*), max(ctid) FROM %1$s WHERE ctid > (SELECT min(ctid) FROM %1$s WHERE id > 20)$$,
                          'r.tids', 'f.tids', '{2}');
SELECT * FROM check_query('SELECT count(*) FROM %s WHERE ctid < (SELECT NULL::tid OFFSET 0)', 'r.tids', 'f.tids', '{2}');

-- A Gather that is run again with other bounds, of which the first are empty. (The
-- bounds come from InitPlans that depend on the outer row.)
CREATE VIEW tid_bounds (n, lo, hi) AS
    VALUES (1, '(8,0)'::tid, '(8,0)'::tid), (2, '(0,0)', '(2,0)'), (3, '(6,0)', NULL), (4, '(9,3)', '(99,0)'),
        (5, '(7,0)', '(6,0)'), (6, '(0,0)', '(4294967295,65535)'), (7, '(4294967295,0)', '(0,0)'), (8, '(5,3)', '(8,2)');
\set again 'SELECT n, (SELECT count(*) FROM %s WHERE ctid >= (SELECT lo) AND ctid < (SELECT hi)) FROM tid_bounds ORDER BY n'
SELECT show_plan(format(:'again', 'f.tids'), 'VERBOSE OFF');
SELECT claimed(format(:'again', 'f.tids'));
SELECT * FROM check_query(:'again', 'r.tids', 'f.tids', '{1,2,4}');
SET parallel_leader_participation = off;
SELECT * FROM check_query(:'again', 'r.tids', 'f.tids', '{2}');
RESET parallel_leader_participation;

-- values of outer rows: nested loop, LATERAL, self-join on the ctid
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
EXPLAIN (VERBOSE, COSTS OFF)
SELECT n, x.* FROM tid_bounds, LATERAL (SELECT count(*) FROM f.tids WHERE ctid >= lo AND ctid < hi OFFSET 0) x;
SELECT * FROM check_query('SELECT n, x.* FROM tid_bounds, LATERAL (SELECT count(*), min(ctid) FROM %s WHERE ctid >= lo AND ctid < hi) x',
                          'r.tids', 'f.tids', '{2}');
SELECT * FROM check_query('SELECT n, id FROM tid_bounds LEFT JOIN %s t ON t.ctid > lo AND t.ctid < hi AND mod(id, 5) = 3',
                          'r.tids', 'f.tids', '{2}');
SELECT * FROM check_query('SELECT count(*), sum(b.id) FROM %1$s a JOIN %1$s b ON a.ctid = b.ctid',
                          'r.tids', 'f.tids', '{2}');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
SELECT * FROM check_query('SELECT count(*), sum(b.id) FROM %1$s a JOIN %1$s b ON a.ctid = b.ctid', 'r.tids', 'f.tids', '{2}');
SELECT * FROM check_query('SELECT count(*) FROM %1$s a WHERE EXISTS (SELECT FROM %1$s b WHERE b.ctid > a.ctid AND b.id = a.id + 1)',
                          'r.tids', 'f.tids', '{2}');

-- rows that are made after the plan: in blocks that the bounds have, and beyond
PREPARE from_eight AS SELECT count(*), max(ctid) FROM f.tids WHERE ctid >= '(8,0)';
EXECUTE from_eight;
INSERT INTO r.tids SELECT i, repeat('y', 130) FROM generate_series(101, 110) i;
EXECUTE from_eight;
TRUNCATE r.tids;
EXECUTE from_eight;
