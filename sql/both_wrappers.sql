-- postgres_fdw and tidrange_fdw in one session, in either order: what the two
-- libraries have in common must not be taken from the wrong one.
SELECT NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw') AS skip \gset
\if :skip
\echo 'skipped: postgres_fdw is not available'
\quit
\endif
SET client_min_messages = warning;
CREATE EXTENSION postgres_fdw;
DO $$
BEGIN
    EXECUTE format('CREATE SERVER peer FOREIGN DATA WRAPPER postgres_fdw
                        OPTIONS (host %L, port %L, dbname %L, fetch_size ''7'')',
                   split_part(current_setting('unix_socket_directories'), ',', 1),
                   current_setting('port'), current_database());
END
$$;
CREATE USER MAPPING FOR CURRENT_USER SERVER peer;
CREATE TABLE r.both (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.both SELECT i, repeat('x', 300) FROM generate_series(1, 60) i;
SELECT import_far('both');
ANALYZE r.both;
CREATE FOREIGN TABLE f.both_peer (id int, v text) SERVER peer OPTIONS (schema_name 'r', table_name 'both');

-- ours is loaded first, then the other
\c -
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM check_scan('r.both', 'f.both', '{2}');
SELECT count(*), sum(id) FROM f.both_peer WHERE v LIKE 'x%';
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.id), sum(b.id) FROM f.both a JOIN f.both_peer b USING (id);
SELECT count(*), sum(a.id), sum(b.id) FROM f.both a JOIN f.both_peer b USING (id);
\set VERBOSITY terse
ALTER SERVER peer OPTIONS (ADD chunk_blocks '1');
ALTER SERVER loopback OPTIONS (ADD fetch_size '1');
\set VERBOSITY default

-- the other first
\c -
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), sum(id) FROM f.both_peer WHERE v LIKE 'x%';
SELECT * FROM check_scan('r.both', 'f.both', '{2}');
SELECT * FROM check_scan('f.both_peer', 'f.both', '{2}');
SELECT count(*), sum(a.id), sum(b.id) FROM f.both a JOIN f.both_peer b USING (id);
BEGIN;
INSERT INTO f.both_peer VALUES (61, 'new');
SELECT count(*) FROM f.both;
ROLLBACK;
SELECT count(*) FROM f.both;
SET client_min_messages = warning;
DROP EXTENSION postgres_fdw CASCADE;
