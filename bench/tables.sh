# shellcheck shell=bash
#
# tables.sh: the tables that the benchmarks read, and the foreign tables for
# them.  To be sourced after bench/measure.sh.
#
#   a  (int, text)                           4,000,000 rows times SCALE
#   b  16 columns of order lines               600,000
#   c  wide: jsonb, bytea, arrays, uuid ...     60,000

# shellcheck disable=SC2034  # for the caller
BENCH_SETTINGS=(
	shared_buffers=256MB wal_level=minimal max_wal_senders=0 max_wal_size=16GB
	checkpoint_timeout=1h autovacuum=off jit=off
)

create_tables() {
	at "$1" -f "$ROOT/bench/decode_tables.sql"
}

# fill_source SCALE
fill_source() {
	create_tables source
	at source -v scale="$1" -f "$ROOT/bench/decode_rows.sql"
}

# foreign_tables SCHEMA [WRAPPER [OPTION]]: in the destination, of all tables of
# the source, through a server of the same name.  OPTION is SQL: connections '1'
# HOST, if set, is where the source is reached.
foreign_tables() {
	local schema=$1 wrapper=${2:-tidrange_fdw} option=${3:+, $3}
	at destination -v schema="$schema" -v wrapper="$wrapper" -v host="${HOST:-$WORK/source}" <<-SQL
		SET client_min_messages = warning;
		CREATE EXTENSION IF NOT EXISTS :"wrapper";
		CREATE SERVER :"schema" FOREIGN DATA WRAPPER :"wrapper"
			OPTIONS (host :'host', port '5432', dbname 'postgres'$option);
		CREATE USER MAPPING FOR CURRENT_USER SERVER :"schema" OPTIONS (user 'postgres');
		CREATE SCHEMA :"schema";
		IMPORT FOREIGN SCHEMA public FROM SERVER :"schema" INTO :"schema";
	SQL
}
