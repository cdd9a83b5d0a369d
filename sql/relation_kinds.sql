-- Everything that can be selected from: right, in parallel where blocks can be told
-- apart, else by one statement, and the plan says why.
SET max_parallel_workers_per_gather = 4;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION kinds_plan(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(l) FROM show_plan(query, 'ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF') l
    WHERE l ~ 'Foreign Scan|Remote SQL|Read |Blocks Claimed|Blocks Finished'
$$;
CREATE TABLE r.base (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.base SELECT i, repeat('b', i % 90) FROM generate_series(1, 1000) i;

-- a view
CREATE VIEW r.plain_view AS SELECT id, v FROM r.base WHERE id > 100;
SELECT import_far('plain_view');
SELECT * FROM check_scan('r.plain_view', 'f.plain_view');
SELECT kinds_plan('SELECT id FROM f.plain_view');
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.plain_view;

-- a view with a column called ctid, which is no address of a row
CREATE VIEW r.ctid_view AS SELECT id, '(0,1)'::tid AS ctid FROM r.base;
CREATE FOREIGN TABLE f.ctid_view (id int, c tid OPTIONS (column_name 'ctid')) SERVER loopback
    OPTIONS (schema_name 'r', parallel_workers '4', chunk_blocks '1');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s', 'r.ctid_view', 'f.ctid_view');
CREATE SCHEMA imported;
IMPORT FOREIGN SCHEMA r LIMIT TO (ctid_view) FROM SERVER loopback INTO imported;
SELECT attname, attfdwoptions FROM pg_attribute WHERE attrelid = 'imported.ctid_view'::regclass AND attnum > 0;
SELECT count(*), max(ctid_) FROM imported.ctid_view;
SELECT count(*), min(c), max(c) FROM f.ctid_view;
SELECT count(*) FROM f.ctid_view WHERE c = '(0,1)';
SELECT kinds_plan('SELECT id, c FROM f.ctid_view');
\set VERBOSITY terse
SELECT count(*) FROM f.ctid_view WHERE ctid = '(0,1)';
SELECT ctid FROM f.ctid_view;
\set VERBOSITY default

-- a materialized view, with an index and after a refresh
CREATE MATERIALIZED VIEW r.mat WITH (fillfactor = 10) AS SELECT * FROM r.base;
CREATE UNIQUE INDEX ON r.mat (id);
SELECT import_far('mat');
SELECT * FROM check_scan('r.mat', 'f.mat');
SELECT kinds_plan('SELECT id FROM f.mat');
INSERT INTO r.base VALUES (1001, 'new');
REFRESH MATERIALIZED VIEW r.mat;
SELECT * FROM check_scan('r.mat', 'f.mat', '{4}');
REFRESH MATERIALIZED VIEW CONCURRENTLY r.mat;
SELECT * FROM check_scan('r.mat', 'f.mat', '{4}');
CREATE MATERIALIZED VIEW r.mat_unready AS SELECT 1 AS id WITH NO DATA;
SELECT import_far('mat_unready');
\set VERBOSITY terse
SELECT * FROM f.mat_unready;
\set VERBOSITY default

-- a foreign table, a sequence
CREATE FOREIGN TABLE r.onward (id int, v text) SERVER loopback OPTIONS (table_name 'base');
CREATE FOREIGN TABLE f.onward (id int, v text) SERVER loopback
    OPTIONS (schema_name 'r', parallel_workers '4', chunk_blocks '1');
SELECT * FROM check_scan('r.base', 'f.onward');
SELECT kinds_plan('SELECT id FROM f.onward');
CREATE SEQUENCE r.counter START 5;
CREATE FOREIGN TABLE f.counter (last_value bigint, is_called bool) SERVER loopback
    OPTIONS (schema_name 'r', parallel_workers '4', chunk_blocks '1');
SELECT * FROM f.counter;
SELECT nextval('r.counter'), nextval('r.counter');
SELECT * FROM f.counter;
SELECT kinds_plan('SELECT last_value FROM f.counter');

-- an unlogged table, another access method
CREATE UNLOGGED TABLE r.unlogged WITH (fillfactor = 10, autovacuum_enabled = off) AS SELECT * FROM r.base;
SELECT import_far('unlogged');
SELECT * FROM check_scan('r.unlogged', 'f.unlogged');
CREATE ACCESS METHOD heap_two TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE r.stored_otherwise USING heap_two AS SELECT * FROM r.base;
SELECT import_far('stored_otherwise');
SELECT * FROM check_scan('r.stored_otherwise', 'f.stored_otherwise');
SELECT kinds_plan('SELECT id FROM f.stored_otherwise');
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.stored_otherwise;

-- a typed table, a table with generated columns and identity, one without columns
CREATE TYPE r.twosome AS (id int, v text);
CREATE TABLE r.typed OF r.twosome WITH (autovacuum_enabled = off);
INSERT INTO r.typed SELECT * FROM r.base;
SELECT import_far('typed');
SELECT * FROM check_scan('r.typed', 'f.typed', '{4}');
CREATE TABLE r.computed (id int GENERATED ALWAYS AS IDENTITY, n int, twice int GENERATED ALWAYS AS (n * 2) STORED)
    WITH (autovacuum_enabled = off);
INSERT INTO r.computed (n) SELECT generate_series(1, 1000);
CREATE FOREIGN TABLE f.computed (id int, n int, twice int) SERVER loopback
    OPTIONS (schema_name 'r', parallel_workers '4', chunk_blocks '1');
SELECT * FROM check_scan('r.computed', 'f.computed', '{4}');
CREATE TABLE r.bare () WITH (autovacuum_enabled = off);
INSERT INTO r.bare SELECT FROM generate_series(1, 1000);
SELECT import_far('bare');
SELECT * FROM check_query('SELECT count(*) FROM %s', 'r.bare', 'f.bare', '{4}');

-- a system catalog, mapped (no relfilenode of its own) or not
CREATE FOREIGN TABLE f.far_proc (oid oid, proname name, prosrc text) SERVER loopback
    OPTIONS (schema_name 'pg_catalog', table_name 'pg_proc', parallel_workers '4', chunk_blocks '7');
SELECT (SELECT count(*) FROM pg_proc) - count(*) AS difference FROM f.far_proc;
CREATE FOREIGN TABLE f.far_class (oid oid, relname name) SERVER loopback
    OPTIONS (schema_name 'pg_catalog', table_name 'pg_class', parallel_workers '4', chunk_blocks '1');
SELECT (SELECT count(*) FROM pg_class) - count(*) AS difference FROM f.far_class;
SELECT l FROM kinds_plan('SELECT proname FROM f.far_proc') l WHERE l ~ 'Foreign Scan|Read';
CREATE FOREIGN TABLE f.far_settings (name text, setting text) SERVER loopback
    OPTIONS (schema_name 'pg_catalog', table_name 'pg_settings', parallel_workers '4', chunk_blocks '1');
SELECT count(*) > 100 FROM f.far_settings;
SELECT setting FROM f.far_settings WHERE name = 'block_size';

-- an index or a composite type cannot be selected from
CREATE INDEX base_index ON r.base (id);
CREATE FOREIGN TABLE f.base_index (id int) SERVER loopback OPTIONS (schema_name 'r');
CREATE FOREIGN TABLE f.twosome (id int) SERVER loopback OPTIONS (schema_name 'r');
\set VERBOSITY terse
SELECT * FROM f.base_index;
SELECT * FROM f.twosome;
