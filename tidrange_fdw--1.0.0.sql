/* tidrange_fdw--1.0.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION tidrange_fdw" to load this file. \quit

CREATE FUNCTION tidrange_fdw_handler()
RETURNS fdw_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE FUNCTION tidrange_fdw_validator(text[], oid)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER tidrange_fdw
  HANDLER tidrange_fdw_handler
  VALIDATOR tidrange_fdw_validator;

CREATE FUNCTION tidrange_fdw_options(OUT name text, OUT context text,
  OUT type text, OUT default_value text, OUT description text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION tidrange_fdw_options() IS
  'every option, where it may be set, its type, default and meaning';

CREATE FUNCTION tidrange_fdw_get_connections(OUT server_name text,
  OUT in_transaction boolean, OUT remote_pid integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION tidrange_fdw_get_connections() IS
  'the open remote sessions of this process';

CREATE FUNCTION tidrange_fdw_disconnect(server_name text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION tidrange_fdw_disconnect(text) IS
  'closes the sessions on one server; true if there was one';

CREATE FUNCTION tidrange_fdw_disconnect_all()
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION tidrange_fdw_disconnect_all() IS
  'closes the sessions on all servers; true if there was one';

CREATE FUNCTION tidrange_fdw_chunks(nblocks bigint, participants int DEFAULT 1,
  chunk_blocks bigint DEFAULT 0, OUT participant int, OUT lower text,
  OUT upper text, OUT blocks bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION tidrange_fdw_chunks(bigint, int, bigint) IS
  'how a table of so many blocks would be divided among participants that are equally fast';

CREATE FUNCTION tidrange_fdw_leaf_chunks(leaves bigint[],
  participants int DEFAULT 1, chunk_blocks bigint DEFAULT 0,
  first bigint DEFAULT 0, beyond bigint DEFAULT 4294967295,
  toast_blocks bigint DEFAULT 0, OUT participant int, OUT leaf int,
  OUT lower text, OUT upper text, OUT blocks bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION tidrange_fdw_leaf_chunks(bigint[], int, bigint, bigint, bigint, bigint) IS
  'the same for a table with leaves of these sizes, of which blocks from first to below beyond are read';

-- One row for each parallel insert whose first part is committed and others may
-- not be: see insert_recover.c.
CREATE TABLE tidrange_fdw_insert_marker (
  call text PRIMARY KEY,
  made timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE PROCEDURE tidrange_fdw_parallel_insert(statement text,
  workers int DEFAULT NULL, atomic boolean DEFAULT true)
AS 'MODULE_PATHNAME'
LANGUAGE C;

COMMENT ON PROCEDURE tidrange_fdw_parallel_insert(text, int, boolean) IS
  'runs an INSERT ... SELECT from a foreign table in several sessions, each inserting some of the rows';

CREATE FUNCTION tidrange_fdw_recover_inserts(OUT part text, OUT action text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION tidrange_fdw_recover_inserts() IS
  'commits or rolls back what parallel inserts have left prepared when the server crashed';

CREATE VIEW tidrange_fdw_insert_progress AS
SELECT m[1]::int AS caller_pid, a.pid AS worker_pid,
  m[2]::int AS worker, m[3]::int AS workers, m[4] AS phase,
  m[5]::bigint AS rows_inserted, m[6]::bigint AS rows_read,
  m[7]::bigint AS chunks, m[8]::bigint AS blocks, m[9]::bigint AS blocks_total
FROM pg_catalog.pg_stat_activity a
CROSS JOIN LATERAL pg_catalog.regexp_match(a.query,
  '^parallel insert of caller (\d+), worker (\d+) of (\d+): (\w+), rows inserted (\d+), read (\d+), chunks (\d+), blocks (\d+) of (\d+)$') m
WHERE a.backend_type = 'tidrange_fdw insert worker';

COMMENT ON VIEW tidrange_fdw_insert_progress IS
  'what the workers of running parallel inserts have done so far';

GRANT SELECT ON tidrange_fdw_insert_progress TO PUBLIC;
