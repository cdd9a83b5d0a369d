-- Where ranges of blocks begin and end: tables of few or strange blocks, one
-- tuple a page, and conditions on the ctid that cut through.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;

-- no block, one block
CREATE TABLE r.empty (id int);
SELECT import_far('empty');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.empty;
SELECT * FROM check_scan('r.empty', 'f.empty');
CREATE TABLE r.one_block (id int);
INSERT INTO r.one_block SELECT generate_series(1, 10);
SELECT import_far('one_block');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.one_block;
SELECT * FROM check_scan('r.one_block', 'f.one_block');

-- one tuple a page; never analyzed
CREATE TABLE r.wide (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.wide SELECT i, repeat('x', 1000) FROM generate_series(0, 39) i;
SELECT relpages, reltuples FROM pg_class WHERE oid = 'r.wide'::regclass;
SELECT import_far('wide');
-- (what the source's planner expects of a table without statistics varies)
ALTER SERVER loopback OPTIONS (ADD fdw_startup_cost '0', ADD fdw_tuple_cost '10');
EXPLAIN (VERBOSE, COSTS OFF)
SELECT count(*), min(ctid), max(ctid) FROM f.wide WHERE ctid >= '(10,0)' AND ctid < '(20,0)';
SELECT * FROM check_scan('r.wide', 'f.wide');
ANALYZE r.wide;
SELECT result, ways, bounds FROM unnest(ARRAY[
    'true',
    $$ctid >= '(10,0)'$$, $$ctid > '(10,0)'$$, $$ctid > '(10,1)'$$,
    $$ctid >= '(39,1)'$$, $$ctid > '(39,1)'$$, $$ctid >= '(4294967295,0)'$$,
    $$ctid < '(20,0)'$$, $$ctid <= '(20,0)'$$, $$ctid <= '(20,1)'$$,
    $$ctid < '(0,0)'$$, $$ctid < '(0,2)'$$, $$ctid < '(4294967295,65535)'$$,
    $$ctid >= '(10,0)' AND ctid < '(20,0)'$$,
    $$ctid > '(10,1)' AND ctid <= '(20,1)'$$,
    $$ctid >= '(20,0)' AND ctid < '(10,0)'$$,
    $$ctid = '(7,1)'$$, $$ctid = '(7,2)'$$,
    $$ctid = ANY ('{"(3,1)","(30,1)","(300,1)"}')$$,
    $$ctid::text IS NULL$$]) bounds,
    check_query('SELECT count(*), min(ctid), max(ctid) FROM %s WHERE ' || bounds,
                'r.wide', 'f.wide', '{3}');

-- only the blocks between the bounds are claimed
CREATE FUNCTION blocks_claimed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        RETURN QUERY SELECT trim(line) WHERE line ~ 'Blocks';
    END LOOP;
END
$$;
SELECT blocks_claimed('SELECT count(*) FROM f.wide');
SELECT blocks_claimed($$SELECT count(*) FROM f.wide WHERE ctid >= '(10,0)'$$);
SELECT blocks_claimed($$SELECT count(*) FROM f.wide WHERE ctid <= '(20,1)'$$);
SELECT blocks_claimed($$SELECT count(*) FROM f.wide WHERE ctid >= '(10,0)' AND ctid < '(20,0)'$$);

-- every size of a chunk around that of the table
CREATE FUNCTION check_chunk_blocks(n bigint) RETURNS TABLE (rows text, ways text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER FOREIGN TABLE f.wide OPTIONS (SET chunk_blocks %L)', n);
    RETURN QUERY SELECT * FROM check_scan('r.wide', 'f.wide', '{1,8}');
END
$$;
SELECT n, rows, ways FROM unnest(ARRAY[2, 3, 7, 19, 20, 21, 39, 40, 41, 4294967295]) n,
    check_chunk_blocks(n);
ALTER FOREIGN TABLE f.wide OPTIONS (SET chunk_blocks '1');

-- The blocks are others when the plan is run than when it was made: an emptied
-- middle, a tail of dead rows, the tail cut off, nothing left, more than before.
CREATE TABLE r.moving (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.moving SELECT i, repeat('x', 1000) FROM generate_series(0, 39) i;
SELECT import_far('moving');
\set total 'count(*), sum(id), min(ctid), max(ctid)'
PREPARE parallel AS SELECT :total FROM f.moving;
SET max_parallel_workers_per_gather = 0;
PREPARE serial AS SELECT :total FROM f.moving;
EXPLAIN (COSTS OFF) EXECUTE serial;
SET max_parallel_workers_per_gather = 4;
EXPLAIN (COSTS OFF) EXECUTE parallel;
\pset tuples_only on
DELETE FROM r.moving WHERE id BETWEEN 8 AND 31;
SELECT :total FROM r.moving; EXECUTE serial; EXECUTE parallel;
VACUUM r.moving;
EXECUTE serial; EXECUTE parallel;
DELETE FROM r.moving WHERE id > 3;
SELECT :total FROM r.moving; EXECUTE serial; EXECUTE parallel;
VACUUM r.moving;
EXECUTE serial; EXECUTE parallel;
DELETE FROM r.moving;
SELECT :total FROM r.moving; EXECUTE serial; EXECUTE parallel;
TRUNCATE r.moving;
EXECUTE serial; EXECUTE parallel;
INSERT INTO r.moving SELECT i, repeat('x', 1000) FROM generate_series(0, 99) i;
SELECT :total FROM r.moving; EXECUTE serial; EXECUTE parallel;
SELECT * FROM explain_workers('EXECUTE parallel');
\pset tuples_only off

-- no size of a chunk
ALTER FOREIGN TABLE f.wide OPTIONS (SET chunk_blocks '0');
ALTER FOREIGN TABLE f.wide OPTIONS (SET chunk_blocks '-1');
ALTER FOREIGN TABLE f.wide OPTIONS (SET chunk_blocks '4294967296');
ALTER SERVER loopback OPTIONS (DROP fdw_startup_cost, DROP fdw_tuple_cost);
