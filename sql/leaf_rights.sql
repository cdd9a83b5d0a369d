-- Row-level security and grants belong to the relation that a query names. Where
-- they would make a difference, chunks go through the parent; rows are those that the
-- remote user sees there.
CREATE ROLE far_reader LOGIN;
GRANT USAGE ON SCHEMA r TO far_reader;
DO $$
BEGIN
    EXECUTE format('CREATE SERVER as_reader FOREIGN DATA WRAPPER tidrange_fdw
                        OPTIONS (host %L, port %L, dbname %L, chunk_blocks ''1'', parallel_workers ''8'', fdw_startup_cost ''0'')',
                   split_part(current_setting('unix_socket_directories'), ',', 1),
                   current_setting('port'), current_database());
END
$$;
CREATE USER MAPPING FOR CURRENT_USER SERVER as_reader OPTIONS (user 'far_reader');
CREATE FUNCTION rights_plan(query text) RETURNS SETOF text LANGUAGE sql
SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0 SET min_parallel_table_scan_size = 0
SET max_parallel_workers_per_gather = 4 AS $$
    SELECT trim(l) FROM show_plan(query, 'ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF') l
    WHERE l ~ 'Parallel Foreign Scan|Remote SQL|Remote Blocks|Leaves|Read |Blocks Claimed|Blocks Finished'
$$;

CREATE TABLE r.tenants (id int, tenant int, v text) PARTITION BY RANGE (id);
CREATE TABLE r.tenants_1 PARTITION OF r.tenants FOR VALUES FROM (0) TO (1000) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.tenants_2 PARTITION OF r.tenants FOR VALUES FROM (1000) TO (1100) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.tenants_3 PARTITION OF r.tenants FOR VALUES FROM (2000) TO (3000) WITH (autovacuum_enabled = off);
INSERT INTO r.tenants SELECT i, i % 4, repeat('x', 100) FROM generate_series(0, 1099) i;
CREATE FOREIGN TABLE f.tenants (id int, tenant int, v text) SERVER as_reader OPTIONS (schema_name 'r');

-- everything granted: leaf by leaf
GRANT SELECT ON r.tenants, r.tenants_1, r.tenants_2, r.tenants_3 TO far_reader;
SELECT * FROM check_scan('r.tenants', 'f.tenants');
SELECT rights_plan('SELECT * FROM f.tenants');

-- the parent only, as is usual: through the parent
REVOKE SELECT ON r.tenants_1, r.tenants_2, r.tenants_3 FROM far_reader;
SELECT * FROM check_scan('r.tenants', 'f.tenants');
SELECT regexp_replace(rights_plan('SELECT * FROM f.tenants'), '\{[0-9,]+\}', '{...}');
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE ctid < '(5,0)' AND id > 3$$, 'r.tenants', 'f.tenants');
SELECT * FROM check_query('SELECT id, ctid FROM %s WHERE id BETWEEN 990 AND 1010', 'r.tenants', 'f.tenants', '{4}');

-- all but one leaf, and a leaf in a schema without USAGE
GRANT SELECT ON r.tenants_1, r.tenants_2 TO far_reader;
SELECT l FROM rights_plan('SELECT count(*) FROM f.tenants') l WHERE l ~ 'Read';
GRANT SELECT ON r.tenants_3 TO far_reader;
CREATE SCHEMA hidden;
ALTER TABLE r.tenants_2 SET SCHEMA hidden;
SELECT * FROM check_scan('r.tenants', 'f.tenants', '{4}');
SELECT rights_plan('SELECT count(*) FROM f.tenants');
ALTER TABLE hidden.tenants_2 SET SCHEMA r;

-- a policy on one leaf does not hold for those who read the parent
ALTER TABLE r.tenants_1 ENABLE ROW LEVEL SECURITY;
CREATE POLICY one ON r.tenants_1 USING (tenant = 1);
SELECT * FROM check_scan('r.tenants', 'f.tenants', '{4}');
SELECT rights_plan('SELECT count(*) FROM f.tenants');
CREATE FOREIGN TABLE f.tenants_1 (id int, tenant int, v text) SERVER as_reader OPTIONS (schema_name 'r');
SELECT * FROM check_scan('(SELECT * FROM r.tenants_1 WHERE tenant = 1)', 'f.tenants_1', '{4}');
SELECT rights_plan('SELECT count(*) FROM f.tenants_1');
ALTER TABLE r.tenants_1 DISABLE ROW LEVEL SECURITY;

-- a policy on the parent holds for its leaves
ALTER TABLE r.tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY two ON r.tenants USING (tenant = 2);
SELECT * FROM check_scan('(SELECT * FROM r.tenants WHERE tenant = 2)', 'f.tenants');
SELECT rights_plan('SELECT count(*) FROM f.tenants WHERE v LIKE ''x%''');
-- one that reads another table
CREATE TABLE r.allowed (tenant int);
INSERT INTO r.allowed VALUES (0), (3);
GRANT SELECT ON r.allowed TO far_reader;
CREATE POLICY three ON r.tenants USING (tenant IN (SELECT tenant FROM r.allowed));
SELECT * FROM check_scan('(SELECT * FROM r.tenants WHERE tenant IN (0, 2, 3))', 'f.tenants', '{4}');

-- inheritance: the parent's own rows are those of a leaf too
CREATE TABLE r.mother (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.daughter (more int) INHERITS (r.mother) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.mother SELECT i, repeat('m', 100) FROM generate_series(1, 100) i;
INSERT INTO r.daughter SELECT i, repeat('d', 100) FROM generate_series(101, 500) i;
GRANT SELECT ON r.mother TO far_reader;
CREATE FOREIGN TABLE f.mother (id int, v text) SERVER as_reader OPTIONS (schema_name 'r');
SELECT * FROM check_scan('r.mother', 'f.mother');
SELECT rights_plan('SELECT * FROM f.mother');
ALTER FOREIGN TABLE f.mother OPTIONS (ADD only 'true');
SELECT * FROM check_scan('ONLY r.mother', 'f.mother');
SELECT rights_plan('SELECT * FROM f.mother');

-- refused where the option says so, in a view as well
GRANT CREATE ON SCHEMA r TO far_reader;
SET ROLE far_reader;
CREATE VIEW r.my_tenants AS SELECT id FROM r.tenants;
RESET ROLE;
CREATE FOREIGN TABLE f.strict_view (id int) SERVER as_reader
    OPTIONS (schema_name 'r', table_name 'my_tenants', refuse_row_security 'true');
CREATE FOREIGN TABLE f.lax_view (id int) SERVER as_reader
    OPTIONS (schema_name 'r', table_name 'my_tenants');
CREATE FOREIGN TABLE f.strict (id int) SERVER as_reader
    OPTIONS (schema_name 'r', table_name 'tenants', refuse_row_security 'true');
CREATE FOREIGN TABLE f.strict_1 (id int) SERVER as_reader
    OPTIONS (schema_name 'r', table_name 'tenants_1', refuse_row_security 'true');
\pset format unaligned
\pset tuples_only on
SELECT error_of('SELECT count(*) FROM f.strict');
SELECT error_of('SELECT count(*) FROM f.strict_view');
SELECT count(*) FROM f.lax_view;
SELECT count(*) FROM f.strict_1;
BEGIN;
SELECT count(*) FROM f.tenants;
SAVEPOINT s;
SELECT count(*) FROM f.strict;
ROLLBACK TO s;
SELECT count(*) FROM f.tenants;
COMMIT;
ALTER SERVER as_reader OPTIONS (ADD refuse_row_security 'true');
SELECT error_of('SELECT count(*) FROM f.tenants');
ALTER FOREIGN TABLE f.tenants OPTIONS (ADD refuse_row_security 'false');
SELECT count(*) FROM f.tenants;
ALTER SERVER as_reader OPTIONS (DROP refuse_row_security);
\pset format aligned
\pset tuples_only off
-- nothing is hidden from the owner
CREATE FOREIGN TABLE f.strict_owner (id int) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'tenants', refuse_row_security 'true');
SELECT count(*) FROM f.strict_owner;

-- through the parent, where a leaf has no blocks of its own: whole
CREATE ACCESS METHOD heap_three TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE r.tenants_4 PARTITION OF r.tenants FOR VALUES FROM (3000) TO (4000) USING heap_three;
INSERT INTO r.tenants SELECT i, i % 4, 'four' FROM generate_series(3000, 3019) i;
SELECT * FROM check_scan('(SELECT * FROM r.tenants WHERE tenant IN (0, 2, 3))', 'f.tenants', '{4}');
SELECT rights_plan('SELECT count(*) FROM f.tenants');

-- columns only: one statement
ALTER TABLE r.tenants DISABLE ROW LEVEL SECURITY;
REVOKE SELECT ON r.tenants FROM far_reader;
GRANT SELECT (id) ON r.tenants TO far_reader;
SELECT * FROM check_query('SELECT count(id), sum(id) FROM %s', 'r.tenants', 'f.tenants');
SELECT rights_plan('SELECT sum(id) FROM f.tenants');
\set VERBOSITY terse
SELECT sum(tenant) FROM f.tenants;
\set VERBOSITY default

SELECT tidrange_fdw_disconnect_all();
DROP FOREIGN TABLE f.mother, f.tenants, f.tenants_1, f.strict, f.strict_1, f.strict_view, f.lax_view, f.strict_owner;
DROP SERVER as_reader CASCADE;
DROP TABLE r.mother, r.daughter, r.tenants, r.allowed CASCADE;
DROP OWNED BY far_reader;
DROP ROLE far_reader;
