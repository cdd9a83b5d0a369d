-- What cannot be read gives one clear error, and the session goes on.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE r.wrong (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.wrong SELECT i, i FROM generate_series(1, 300) i;
INSERT INTO r.wrong VALUES (301, 'x301');
CREATE FOREIGN TABLE f.wrong (id int, v int) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'wrong', chunk_blocks '1', parallel_workers '4');

-- a value that does not fit, in the last block
SELECT count(*), sum(v) FROM f.wrong WHERE id <= 300;
SELECT count(*), sum(v) FROM f.wrong;
SELECT count(*), sum(id) FROM f.wrong;
SET max_parallel_workers_per_gather = 4;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM f.wrong;
SELECT count(*), sum(v) FROM f.wrong WHERE id <= 300;
\set SHOW_CONTEXT never
SELECT count(*), sum(v) FROM f.wrong;
SELECT count(*), sum(v) FROM f.wrong;
\set SHOW_CONTEXT errors
SELECT count(*), sum(id) FROM f.wrong;

-- an error that only the remote sees, while rows are on their way
SET max_parallel_workers_per_gather = 0;
CREATE FOREIGN TABLE f.wrong_text (id int, v text) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'wrong', chunk_blocks '1', parallel_workers '4');
SELECT count(*) FROM f.wrong_text WHERE 1 / (id - 250) = 0;
SET max_parallel_workers_per_gather = 4;
\set SHOW_CONTEXT never
SELECT count(*) FROM f.wrong_text WHERE 1 / (id - 250) = 0;
\set SHOW_CONTEXT errors
SELECT count(*) FROM f.wrong_text;
SET max_parallel_workers_per_gather = 0;

-- missing objects
CREATE FOREIGN TABLE f.missing (id int) SERVER loopback OPTIONS (schema_name 'r');
CREATE FOREIGN TABLE f.missing_schema (id int) SERVER loopback
    OPTIONS (schema_name 'no such schema', table_name 'wrong');
CREATE FOREIGN TABLE f.missing_column (
    id int, "Gone" int, w text OPTIONS (column_name 'gone too')) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'wrong');
EXPLAIN (COSTS OFF) SELECT * FROM f.missing;
\pset format unaligned
\pset tuples_only on
SELECT error_of('SELECT * FROM f.missing');
SELECT error_of('SELECT * FROM f.missing_schema');
SELECT error_of('SELECT * FROM f.missing_column');
SELECT error_of('SELECT w FROM f.missing_column');
SELECT error_of('SELECT count(*) FROM f.missing_column WHERE "Gone" = 1');
\pset format aligned
\pset tuples_only off
SELECT count(*), count(id) FROM f.missing_column;
\set VERBOSITY sqlstate
SELECT * FROM f.missing;
SELECT * FROM f.missing_column;
\set VERBOSITY default

-- writing is refused by name
INSERT INTO f.wrong_text VALUES (1, 'x');
UPDATE f.wrong_text SET v = 'x';
DELETE FROM f.wrong_text;
TRUNCATE f.wrong_text;
COPY f.wrong_text FROM stdin;
\.
SELECT count(*) FROM r.wrong;

-- what else a table may be asked for
SELECT count(*) FROM f.wrong_text TABLESAMPLE SYSTEM (50);

-- the server is away, or knows no such database or role
DO $$
BEGIN
    EXECUTE format('CREATE SERVER nobody FOREIGN DATA WRAPPER tidrange_fdw
                        OPTIONS (host %L, port ''1'', dbname %L)',
                   split_part(current_setting('unix_socket_directories'), ',', 1), current_database());
    EXECUTE format('CREATE SERVER wrong_database FOREIGN DATA WRAPPER tidrange_fdw
                        OPTIONS (host %L, port %L, dbname ''no such database'')',
                   split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'));
END
$$;
CREATE USER MAPPING FOR CURRENT_USER SERVER nobody;
CREATE USER MAPPING FOR CURRENT_USER SERVER wrong_database;
CREATE FOREIGN TABLE f.nobody (id int) SERVER nobody OPTIONS (schema_name 'r', table_name 'wrong');
CREATE FOREIGN TABLE f.wrong_database (id int) SERVER wrong_database OPTIONS (schema_name 'r', table_name 'wrong');
EXPLAIN (COSTS OFF) SELECT * FROM f.nobody;
\set VERBOSITY terse
SELECT * FROM f.nobody;
SELECT * FROM f.wrong_database;
IMPORT FOREIGN SCHEMA r FROM SERVER nobody INTO f;
\set VERBOSITY sqlstate
SELECT * FROM f.nobody;
SELECT * FROM f.wrong_database;
IMPORT FOREIGN SCHEMA r FROM SERVER nobody INTO f;
\set VERBOSITY default

-- no user mapping
DROP USER MAPPING FOR CURRENT_USER SERVER wrong_database;
EXPLAIN (COSTS OFF) SELECT * FROM f.wrong_database;
\set VERBOSITY sqlstate
SELECT * FROM f.wrong_database;
\set VERBOSITY default
SELECT count(*) FROM f.wrong_text;
SELECT * FROM remote_sessions(1);

-- rows cannot be locked on the remote, so that is refused rather than ignored
\set VERBOSITY default
SELECT id FROM f.wrong FOR UPDATE;
SELECT id FROM f.wrong FOR KEY SHARE;
