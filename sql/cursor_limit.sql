-- Scans that are not read to their end, or not in one go.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.many (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.many SELECT i, repeat('x', 300) FROM generate_series(1, 200) i;
SELECT import_far('many');

-- LIMIT, over a parallel plan and over a serial one
EXPLAIN (COSTS OFF) SELECT * FROM f.many LIMIT 7;
SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM f.many LIMIT 7) x;
SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM f.many LIMIT 0) x;
SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM f.many LIMIT NULL) x;
SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM f.many OFFSET 150) x;
SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM f.many OFFSET 3 LIMIT 7) x;
SELECT id FROM f.many ORDER BY id / 4 FETCH FIRST 5 ROWS WITH TIES;
SELECT show_plan('SELECT EXISTS (SELECT 1 FROM f.many), NOT EXISTS (SELECT 1 FROM f.many WHERE id = 0)', 'ANALYZE OFF');
SELECT EXISTS (SELECT 1 FROM f.many), NOT EXISTS (SELECT 1 FROM f.many WHERE id = 0);
SELECT count(*) FROM f.many;
SELECT * FROM check_query('SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM %s LIMIT 7) x',
                          'r.many', 'f.many');

-- LIMIT and then the same table in one transaction
BEGIN;
SELECT count(*) FROM (SELECT * FROM f.many LIMIT 7) x;
SELECT count(*) FROM f.many;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT count(*) FROM (SELECT * FROM f.many LIMIT 7) x;
SELECT EXISTS (SELECT 1 FROM f.many);
SELECT count(*) FROM f.many;
COMMIT;

-- a parallel plan executed in parts, as plpgsql and psql do
DO $$
DECLARE
    one record;
    n int := 0;
    total bigint := 0;
BEGIN
    FOR one IN SELECT id FROM f.many LOOP
        n := n + 1;
        total := total + one.id;
    END LOOP;
    RAISE NOTICE '% rows, sum %', n, total;
    n := 0;
    FOR one IN SELECT id FROM f.many LOOP
        n := n + 1;
        EXIT WHEN n = 3;
    END LOOP;
    RAISE NOTICE 'left after %', n;
    SELECT count(*) INTO n FROM f.many;
    RAISE NOTICE '% rows', n;
END
$$;
CREATE FUNCTION ids() RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT id FROM f.many;
END
$$;
SELECT count(*), sum(ids) FROM ids();
\set FETCH_COUNT 64
SELECT id FROM f.many WHERE id BETWEEN 98 AND 102;
\unset FETCH_COUNT

-- cursors: in parts, closed early, kept after commit, backward
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM f.many;
FETCH 2 FROM c;
FETCH 3 FROM c;
MOVE 190 IN c;
FETCH ALL FROM c;
FETCH FROM c;
CLOSE c;
DECLARE c CURSOR FOR SELECT id FROM f.many;
FETCH 1 FROM c;
CLOSE c;
SELECT count(*) FROM f.many;
DECLARE untouched CURSOR FOR SELECT id FROM f.many;
DECLARE c SCROLL CURSOR FOR SELECT id FROM f.many;
FETCH 2 FROM c;
MOVE FORWARD ALL IN c;
MOVE BACKWARD ALL IN c;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
FETCH ABSOLUTE 100 FROM c;
FETCH BACKWARD 2 FROM c;
DECLARE open CURSOR FOR SELECT id FROM f.many;
FETCH 1 FROM open;
COMMIT;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM f.many;
FETCH 2 FROM held;
COMMIT;
FETCH 2 FROM held;
MOVE FORWARD ALL IN held;
CLOSE held;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM f.many;
FETCH 1 FROM c;
ROLLBACK;
SELECT count(*) FROM f.many;
