-- Copies of a foreign table by every command that makes one.
SET max_parallel_workers_per_gather = 2;
CREATE TABLE r.origin (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.origin SELECT i, repeat('x', i) FROM generate_series(1, 400) i;
SELECT import_far('origin');
CREATE SCHEMA copies;
CREATE FUNCTION check_copy(name text) RETURNS text LANGUAGE sql AS $$
    SELECT rows || ' rows' || CASE WHEN ways = 'local, serial' THEN '' ELSE ', but not the same' END
    FROM check_scan('r.origin', name, '{}')
$$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;

EXPLAIN (COSTS OFF) CREATE TABLE copies.ctas AS SELECT * FROM f.origin;
SELECT * FROM explain_workers('CREATE TABLE copies.ctas AS SELECT * FROM f.origin');
SELECT check_copy('copies.ctas');
DROP TABLE copies.ctas;
CREATE TABLE copies.ctas AS SELECT * FROM f.origin;
SELECT check_copy('copies.ctas');
DO $$ BEGIN EXECUTE 'CREATE TABLE copies.executed AS SELECT * FROM f.origin'; END $$;
SELECT check_copy('copies.executed');
SELECT * INTO copies.into FROM f.origin;
SELECT check_copy('copies.into');
EXPLAIN (COSTS OFF) CREATE MATERIALIZED VIEW copies.mv AS SELECT * FROM f.origin;
CREATE MATERIALIZED VIEW copies.mv AS SELECT * FROM f.origin;
SELECT check_copy('copies.mv');
UPDATE r.origin SET v = 'changed' WHERE id = 7;
REFRESH MATERIALIZED VIEW copies.mv;
SELECT check_copy('copies.mv');
CREATE TABLE copies.no_data AS SELECT * FROM f.origin WITH NO DATA;
SELECT count(*) FROM copies.no_data;

-- INSERT takes no parallel plan from core, but from us
CREATE TABLE copies.inserted (LIKE r.origin);
EXPLAIN (COSTS OFF) INSERT INTO copies.inserted SELECT * FROM f.origin;
INSERT INTO copies.inserted SELECT * FROM f.origin;
SELECT check_copy('copies.inserted');
WITH i AS (INSERT INTO copies.inserted SELECT * FROM f.origin WHERE id > 390 RETURNING id % 2 = 0 AS even)
SELECT even, count(*) FROM i GROUP BY 1 ORDER BY 1;

-- UPDATE and DELETE of local tables with a foreign one beside it, and COPY
UPDATE copies.into i SET v = o.v || '!' FROM f.origin o WHERE o.id = i.id AND o.id <= 3;
SELECT id, v FROM copies.into WHERE id <= 3 ORDER BY id;
DELETE FROM copies.into i USING f.origin o WHERE o.id = i.id AND o.id > 5;
SELECT count(*) FROM copies.into;
COPY (SELECT id, v FROM f.origin WHERE id < 4 ORDER BY id) TO stdout;
COPY f.origin TO stdout;
SET client_min_messages = warning;
DROP SCHEMA copies CASCADE;
