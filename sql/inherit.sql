-- Inheritance: a parent with rows of its own and children at several levels; a
-- child that inherits in two ways is read once. The option only leaves children out.
SET max_parallel_workers_per_gather = 4;
CREATE TABLE r.par (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.kid (extra int) INHERITS (r.par) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.kid2 (more text) INHERITS (r.par) WITH (autovacuum_enabled = off);
CREATE TABLE r.grandkid () INHERITS (r.kid, r.kid2) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.odd_kid (gone int, v text, id int) WITH (autovacuum_enabled = off);
ALTER TABLE r.odd_kid DROP COLUMN gone;
ALTER TABLE r.odd_kid INHERIT r.par;
INSERT INTO r.par SELECT i, 'parent' FROM generate_series(1, 10) i;
INSERT INTO r.kid SELECT i, repeat('k', 100), -i FROM generate_series(11, 1010) i;
INSERT INTO r.grandkid SELECT i, 'grandchild', i, 'more' FROM generate_series(2001, 2500) i;
INSERT INTO r.odd_kid SELECT 'odd', i FROM generate_series(3001, 3100) i;

-- small as they are, one statement would be the cheaper way
ALTER SERVER loopback OPTIONS (ADD fdw_startup_cost '0');
SELECT import_far('par'), import_far('kid'), import_far('kid2');
SELECT * FROM check_scan('r.par', 'f.par');
SELECT * FROM check_scan('r.kid', 'f.kid');
SELECT * FROM check_scan('r.kid2', 'f.kid2');
SELECT count(*), count(DISTINCT id) FROM f.par;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT trim(l) FROM show_plan('SELECT id FROM f.par', 'ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF') l
    WHERE l ~ 'Foreign Scan|Remote SQL|Leaves|Read |Blocks Claimed|Blocks Finished';
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE ctid < '(3,0)'$$, 'r.par', 'f.par');
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE id > 2400$$, 'r.par', 'f.par');

-- a constraint that excludes a child
ALTER FOREIGN TABLE f.kid OPTIONS (ADD use_remote_estimate 'false');
ALTER TABLE r.kid ADD CHECK (id < 10000);
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE id >= 10000$$, 'r.kid', 'f.kid');

-- only
CREATE FOREIGN TABLE f.par_only (id int, v text) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'par', only 'true', chunk_blocks '1', parallel_workers '8');
CREATE FOREIGN TABLE f.kid_only (id int, v text, extra int) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'kid', only 'on', chunk_blocks '1', parallel_workers '8');
SELECT * FROM check_scan('ONLY r.par', 'f.par_only');
SELECT * FROM check_scan('ONLY r.kid', 'f.kid_only');
SELECT count(*) FROM f.par_only;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.kid_only;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.kid_only WHERE id = 100;
SELECT count(*) FROM f.kid_only WHERE id = 100;
ANALYZE f.par_only, f.par;
SELECT relname, reltuples, relpages FROM pg_class WHERE oid IN ('f.par_only'::regclass, 'f.par'::regclass) ORDER BY 1;
ALTER FOREIGN TABLE f.par_only OPTIONS (SET only 'false');
SELECT count(*) FROM f.par_only;
ALTER FOREIGN TABLE f.par_only OPTIONS (SET only 'perhaps');
CREATE SERVER only_server FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (only 'true');

-- a child that is a temporary table of another session is none for the reader
CREATE TEMP TABLE my_kid () INHERITS (r.par);
INSERT INTO my_kid VALUES (4001, 'mine');
SELECT count(*) FROM r.par;
SELECT count(*) FROM f.par;
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM f.par;
SET max_parallel_workers_per_gather = 4;
DROP TABLE my_kid;

-- rows in a child only, in a parent only
CREATE TABLE r.bare_par (id int) WITH (autovacuum_enabled = off);
CREATE TABLE r.bare_kid () INHERITS (r.bare_par) WITH (autovacuum_enabled = off);
INSERT INTO r.bare_kid SELECT generate_series(1, 1000);
SELECT import_far('bare_par');
SELECT * FROM check_scan('r.bare_par', 'f.bare_par');
CREATE FOREIGN TABLE f.bare_par_only (id int) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'bare_par', only 'true', chunk_blocks '1', parallel_workers '2');
SELECT * FROM check_scan('ONLY r.bare_par', 'f.bare_par_only');
ALTER SERVER loopback OPTIONS (DROP fdw_startup_cost);
