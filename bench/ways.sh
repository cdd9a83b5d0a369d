# shellcheck shell=bash
#
# ways.sh: the ways of bench/run to copy a table of the source into the table of
# the same name of the destination.  To be sourced by it.

SOURCE_CONNINFO() {
	say "host=$WORK/source port=5432 user=postgres dbname=postgres"
}

# The foreign tables; the keys by which pgcopydb divides a table.
prepare_ways() {
	foreign_tables ours
	foreign_tables ours_c1 tidrange_fdw "connections '1'"
	foreign_tables ours_c4 tidrange_fdw "connections '4'"
	foreign_tables pgfdw postgres_fdw "fetch_size '10000'"
	at destination -c "CREATE EXTENSION dblink"
	at source -c "CREATE UNIQUE INDEX ON a (id)" -c "CREATE UNIQUE INDEX ON c (id)"
}

# way_statement WAY TABLE: of those that are one statement of the destination
way_statement() {
	local columns
	case $1 in
		pgfdw | ours) say "INSERT INTO $2 SELECT * FROM $1.$2" ;;
		ours-par) say "INSERT INTO $2 SELECT * FROM ours.$2" ;;
		ours-c1 | ours-c4) say "INSERT INTO $2 SELECT * FROM ${1//-/_}.$2" ;;
		*-ctas) say "CREATE $UNLOGGED TABLE $2 AS SELECT * FROM ${1%-ctas}.$2" ;;
		writers*) say "CALL tidrange_fdw_parallel_insert('INSERT INTO $2 SELECT * FROM ours.$2', workers => ${1#writers})" ;;
		dblink)
			columns=$(at destination -c "SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
				FROM pg_attribute WHERE attrelid = 'ours.$2'::regclass AND attnum > 0")
			say "INSERT INTO $2 SELECT * FROM dblink('$(SOURCE_CONNINFO)', 'SELECT * FROM $2') AS t($columns)"
			;;
	esac
}

# way_options WAY: PGOPTIONS for it
way_options() {
	case $1 in
		ours-c1 | ours-c4) say '-c max_parallel_workers_per_gather=0' ;;
		ours-par) say '-c parallel_setup_cost=0 -c parallel_tuple_cost=0' ;;
	esac
}

# way_plan WAY TABLE: what the destination's planner says of it
way_plan() {
	local explained
	case $1 in
		ours*) ;;
		writers*) say "${1#writers} writers" && return ;;
		*) say - && return ;;
	esac
	explained=$(PGOPTIONS=$(way_options "$1") at destination -c "EXPLAIN (VERBOSE, COSTS OFF) $(way_statement "$1" "$2")")
	if [[ $explained =~ Workers\ Planned:\ ([0-9]+) ]]; then
		say "${BASH_REMATCH[1]} workers"
	elif [[ $explained =~ Connections:\ ([0-9]+) ]]; then
		say "1 to ${BASH_REMATCH[1]} conn"
	else
		say "1 conn"
	fi
}

# way_copy WAY TABLE: do it
way_copy() {
	case $1 in
		pipe) one_pipe "$2" ;;
		pipes2) two_pipes "$2" ;;
		pgcopydb*) pgcopydb_copy "${1#pgcopydb}" "$2" ;;
		*) at destination -c "$(way_statement "$1" "$2")" ;;
	esac
}

# one_pipe TABLE [SNAPSHOT CONDITION]
one_pipe() {
	local adopt=()
	[[ ! ${2:-} ]] || adopt=(-c "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" -c "SET TRANSACTION SNAPSHOT '$2'")
	at source "${adopt[@]}" -c "COPY (SELECT * FROM $1 ${3:+WHERE $3}) TO STDOUT (FORMAT binary)" |
		at destination -c "COPY $1 FROM STDIN (FORMAT binary)"
}

# A session holds the snapshot until both are through.
two_pipes() {
	local table=$1 snapshot half other status=0
	coproc HOLDER { at source; }
	# The descriptors and the process disappear from the variables when it ends.
	local to=${HOLDER[1]} from=${HOLDER[0]} holder=$HOLDER_PID
	cat >&"$to" <<-SQL
		BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
		SELECT pg_export_snapshot(), pg_relation_size('$table') / current_setting('block_size')::int / 2;
	SQL
	IFS='|' read -r snapshot half <&"$from"
	one_pipe "$table" "$snapshot" "ctid < '($half,0)'" &
	other=$!
	one_pipe "$table" "$snapshot" "ctid >= '($half,0)'" || status=$?
	wait "$other" || status=$?
	exec {to}>&-
	wait "$holder" || status=$?
	return "$status"
}

# ----- pgcopydb --------------------------------------------------------------

# pgcopydb_copy JOBS TABLE
pgcopydb_copy() {
	local size filters=$WORK/filters
	size=$(at source -c "SELECT pg_relation_size('$2')")
	printf '[include-only-table]\npublic.%s\n' "$2" >"$filters"
	local split=()
	(($1 == 1)) || split=("PGCOPYDB_SPLIT_TABLES_LARGER_THAN=$((size / $1 / 1024 + 1))kB")
	env -C "$WORK" HOME="$WORK" TMPDIR="$WORK" "PATH=$PGBIN:$PATH" "${split[@]}" pgcopydb copy table-data \
		--source "postgres://postgres@/postgres?host=$WORK/source&port=5432" \
		--target "postgres://postgres@/postgres?host=$WORK/destination&port=5432" \
		--dir "$WORK/pgcopydb" --table-jobs "$1" --filters "$filters"
}

# pgcopydb_seconds JOBS: from the summary that it has just printed.  Its rows, OID |
# Schema | Name | copy duration | ..., are the parts of the table; a duration reads
# 82ms, 1s023, 10s or 1m02s.  A job that had no part does not divide the time.
pgcopydb_seconds() {
	awk -F ' *[|] *' -v jobs="$1" '
		function seconds(text) {
			if (text ~ /^[0-9]+ms$/)
				return text / 1000
			if (text ~ /^[0-9]+s[0-9]*$/)
				return text + substr(text, index(text, "s") + 1) / 1000
			if (text ~ /^[0-9]+m[0-9]+s$/)
				return text * 60 + substr(text, index(text, "m") + 1)
			print "pgcopydb: what duration is \"" text "\"?" >"/dev/stderr"
			exit 1
		}
		$1 ~ /^ *[0-9]+$/ { parts++; sum += seconds($4) }
		END {
			if (!parts || sum <= 0) {
				print "pgcopydb: no durations in its summary" >"/dev/stderr"
				exit 1
			}
			printf "%.3f\n", sum / (parts < jobs ? parts : jobs)
		}' "$WORK/measured"
}
