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
