-- Columns that are not sent, not there, elsewhere or called otherwise.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.few (a int, gone int, b text, "Col.C" int) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.few SELECT i, -i, 'b' || i, i * 10 FROM generate_series(1, 90) i;
SELECT import_far('few');

-- no column is needed
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM f.few;
SELECT * FROM check_query('SELECT count(*) FROM %s', 'r.few', 'f.few');
SELECT * FROM check_query('SELECT count(*), count(NULL) FROM (SELECT NULL FROM %s) x', 'r.few', 'f.few', '{2}');
SELECT count(*) FROM f.few WHERE a > 45;
SELECT count(*) FROM (SELECT FROM f.few) x;
CREATE TABLE r.no_columns ();
INSERT INTO r.no_columns SELECT FROM generate_series(1, 5000);
SELECT import_far('no_columns');
SELECT * FROM check_scan('r.no_columns', 'f.no_columns');
CREATE FOREIGN TABLE f.few_none () SERVER loopback
    OPTIONS (schema_name 'r', table_name 'few', chunk_blocks '1', parallel_workers '2');
EXPLAIN (COSTS OFF) SELECT * FROM f.few_none;
SELECT count(*), count(x) FROM f.few_none x;

-- whole rows
EXPLAIN (VERBOSE, COSTS OFF) SELECT few FROM f.few WHERE a = 7;
SELECT few FROM f.few WHERE a = 7;
SELECT row_to_json(few), few IS NOT NULL, (few).b FROM f.few WHERE a = 7;
SELECT * FROM check_query('SELECT count(*), count(x), count(DISTINCT x) FROM %s x', 'r.few', 'f.few', '{2}');

-- only some
EXPLAIN (VERBOSE, COSTS OFF) SELECT b FROM f.few WHERE a < 3 AND length(b) + random() > 0;
SELECT b FROM f.few WHERE a < 3 AND length(b) + random() > 0 ORDER BY b;

-- dropped there, dropped here, added, reordered, renamed
ALTER TABLE r.few DROP gone;
ALTER FOREIGN TABLE f.few DROP gone;
SELECT * FROM check_scan('r.few', 'f.few', '{2}');
ALTER TABLE r.few ADD d int DEFAULT 5;
SELECT * FROM check_scan('(SELECT a, b, "Col.C" FROM r.few)', 'f.few', '{2}');
ALTER FOREIGN TABLE f.few DROP b, ADD d int, ADD b2 text OPTIONS (column_name 'b');
SELECT * FROM f.few WHERE a = 7;
SELECT * FROM check_scan('(SELECT a, "Col.C", d, b FROM r.few)', 'f.few', '{2}');
SELECT few FROM f.few WHERE b2 = 'b7';
ALTER FOREIGN TABLE f.few RENAME "Col.C" TO c;
SELECT c, b2 FROM f.few WHERE c = 70;
CREATE FOREIGN TABLE f.few_other (
    b text OPTIONS (column_name 'a'), a text OPTIONS (column_name 'b'), d int OPTIONS (column_name 'Col.C'))
    SERVER loopback OPTIONS (schema_name 'r', table_name 'few', chunk_blocks '1', parallel_workers '2');
SET max_parallel_workers_per_gather = 0;
SELECT show_plan($$SELECT * FROM f.few_other WHERE b = '7'$$, 'ANALYZE, TIMING OFF, SUMMARY OFF, VERBOSE');
SET max_parallel_workers_per_gather = 2;
SELECT * FROM f.few_other WHERE b = '7';
SELECT * FROM f.few_other WHERE a = 'b7';
SELECT * FROM check_scan('(SELECT a::text AS b, b AS a, "Col.C" FROM r.few)', 'f.few_other', '{2}');
ALTER TABLE r.few RENAME b TO b_new;
SELECT * FROM f.few WHERE a = 7;
SELECT a, c FROM f.few WHERE a = 7;

-- a generated column, on either side or both
CREATE TABLE r.generated (a int, g int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO r.generated SELECT generate_series(1, 10);
SELECT import_far('generated');
SELECT * FROM check_scan('r.generated', 'f.generated', '{2}');
CREATE TABLE r.copied (LIKE r.generated INCLUDING GENERATED);
INSERT INTO r.copied (a) SELECT a FROM f.generated;
SELECT * FROM check_scan('r.copied', 'f.generated', '{2}');
