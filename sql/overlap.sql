-- Scans that run at the same time over one server: joins of a table with
-- itself, two tables of one transaction, loops and cursors that take turns.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.overlap (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.overlap SELECT i, repeat('x', 300) FROM generate_series(1, 60) i;
CREATE TABLE r.overlap2 (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.overlap2 SELECT i, repeat('y', 300) FROM generate_series(31, 90) i;
SELECT import_far('overlap');
SELECT import_far('overlap2');
ANALYZE r.overlap, r.overlap2;

\set self 'SELECT count(*), sum(a.id), sum(length(a.v || b.v)) FROM %1$s a JOIN %1$s b USING (id)'
\set both 'SELECT count(*), sum(a.id), sum(length(a.v || b.v)) FROM f.overlap a JOIN f.overlap2 b USING (id)'

SET enable_mergejoin = off; SET enable_nestloop = off;
EXPLAIN (COSTS OFF) :both;
:both;
SELECT * FROM check_query(:'self', 'r.overlap', 'f.overlap', '{1,8}');
SET enable_parallel_hash = off;
EXPLAIN (COSTS OFF) :both;
:both;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) :both;
:both;
RESET enable_parallel_hash;
RESET enable_mergejoin;
SET max_parallel_workers_per_gather = 2;

SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) :both;
:both;
SELECT * FROM check_query(:'self', 'r.overlap', 'f.overlap', '{1,8}');

-- the inner table is read once a row of the outer one
RESET enable_nestloop; SET enable_mergejoin = off; SET enable_material = off;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) :both;
:both;
SELECT * FROM check_query(:'self' || ' WHERE a.id <= 6', 'r.overlap', 'f.overlap', '{2}');
RESET ALL;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

-- two tables, one after the other, one within the other
BEGIN;
SELECT count(*) FROM f.overlap;
SELECT count(*) FROM f.overlap2;
:both;
COMMIT;
SELECT (SELECT count(*) FROM f.overlap), (SELECT sum(id) FROM f.overlap2);
SELECT count(*) FROM (SELECT id FROM f.overlap UNION ALL SELECT id FROM f.overlap2) u;
SELECT count(*) FROM (SELECT id FROM f.overlap INTERSECT SELECT id FROM f.overlap2) u;

-- a loop over one that asks the other
DO $$
DECLARE
    one record;
    n bigint;
    rows int := 0;
    matches int := 0;
BEGIN
    FOR one IN SELECT id FROM f.overlap LOOP
        rows := rows + 1;
        SELECT count(*) INTO n FROM f.overlap2 WHERE id = one.id;
        matches := matches + n;
        IF one.id = 7 THEN
            EXECUTE 'SELECT count(*) FROM f.overlap' INTO n;
            RAISE NOTICE 'the same table within: %', n;
        END IF;
    END LOOP;
    RAISE NOTICE '% rows, % matches', rows, matches;
END
$$;

-- cursors, alternately
BEGIN;
DECLARE one CURSOR FOR SELECT id FROM f.overlap ORDER BY ctid;
DECLARE two CURSOR FOR SELECT id FROM f.overlap2 WHERE id > 0;
DECLARE three CURSOR FOR SELECT id FROM f.overlap WHERE id > 0;
FETCH 3 FROM one;
FETCH 2 FROM two;
FETCH 2 FROM three;
FETCH 2 FROM one;
SELECT count(*) FROM f.overlap2;
MOVE 50 IN two;
FETCH 2 FROM three;
MOVE ALL IN one;
MOVE ALL IN two;
MOVE ALL IN three;
FETCH FROM one;
COMMIT;
