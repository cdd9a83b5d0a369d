-- A local domain, type or length that is stricter than the remote column's is
-- enforced here, for NULL too.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.loose (id int, n int, v varchar(20)) WITH (fillfactor = 10);
INSERT INTO r.loose SELECT i, i, 'v' || i || repeat(' ', 12) FROM generate_series(1, 200) i;
CREATE DOMAIN f.small AS int CHECK (value < 150);
CREATE DOMAIN f.given AS int NOT NULL;
CREATE DOMAIN f.not_seven AS text CHECK (value IS DISTINCT FROM '7');
CREATE FOREIGN TABLE f.loose (id int, n int, v varchar(20)) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'loose', chunk_blocks '1', parallel_workers '2');

EXPLAIN (VERBOSE, COSTS OFF) SELECT id, n FROM f.loose;
SELECT * FROM check_scan('r.loose', 'f.loose');

ALTER FOREIGN TABLE f.loose ALTER n TYPE f.small;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id, n FROM f.loose WHERE n < 10;
SELECT count(*), sum(n) FROM f.loose WHERE id < 150;
\set SHOW_CONTEXT never
SELECT count(*), sum(n) FROM f.loose WHERE id <= 150;
\set SHOW_CONTEXT errors
SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(n) FROM f.loose WHERE id <= 150;
SET max_parallel_workers_per_gather = 2;

ALTER FOREIGN TABLE f.loose ALTER n TYPE f.given;
SELECT count(*), sum(n) FROM f.loose;
UPDATE r.loose SET n = NULL WHERE id = 100;
SELECT count(*), sum(n) FROM f.loose WHERE id < 100;
\set SHOW_CONTEXT never
SELECT count(*), sum(n) FROM f.loose WHERE id <= 100;
\set SHOW_CONTEXT errors
SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(n) FROM f.loose WHERE id <= 100;
SET max_parallel_workers_per_gather = 2;
-- not needed, not sent, not checked
SELECT count(*), sum(id) FROM f.loose;

SET max_parallel_workers_per_gather = 0;
-- a NULL that passes the check; a text domain over an integer column
ALTER FOREIGN TABLE f.loose ALTER n TYPE f.not_seven;
SELECT id, n, n IS NULL AS is_null FROM f.loose WHERE id BETWEEN 98 AND 101 ORDER BY id;
SELECT max(n) FROM f.loose WHERE id < 10;

-- other types and lengths
ALTER FOREIGN TABLE f.loose ALTER n TYPE bigint;
SELECT sum(n), pg_typeof(sum(n)) FROM f.loose;
ALTER FOREIGN TABLE f.loose ALTER n TYPE float8, ALTER v TYPE varchar(16);
SELECT show_plan('SELECT n, v FROM f.loose', 'ANALYZE, TIMING OFF, SUMMARY OFF, VERBOSE');
SELECT sum(n), min(length(v)), max(length(v)) FROM f.loose;
ALTER FOREIGN TABLE f.loose ALTER v TYPE varchar(2);
SELECT id, v FROM f.loose WHERE id < 10 ORDER BY id;
SELECT id, v FROM f.loose WHERE id = 10;
ALTER FOREIGN TABLE f.loose ALTER n TYPE int2, ALTER v TYPE char(18);
UPDATE r.loose SET n = 40000 WHERE id = 10;
SELECT id, n, v || '|' AS v FROM f.loose WHERE id < 4 ORDER BY id;
SELECT id, n FROM f.loose WHERE id = 10;
