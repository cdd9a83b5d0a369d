# shellcheck shell=bash
#
# network.sh: bench/run behind a slow line.  To be sourced by it.
#
# The destination reaches the source through bench/slowlink.c, which is given the
# rest of the run's conditions: a limit for each connection, or a delay.  Lines
# are WORK/NAME, sockets like those of the clusters.

# start_link NAME DELAY_MS MBIT
start_link() {
	local i
	as_postgres mkdir "$WORK/$1"
	# shellcheck disable=SC2016  # for the inner shell
	as_postgres sh -c 'echo $$ >"$0/link.pid"; exec "$1/slowlink" "$0/.s.PGSQL.5432" "$1/source/.s.PGSQL.5432" "$2" "$3"' \
		"$WORK/$1" "$WORK" "$2" "$3" &
	for ((i = 0; i < 100; i++)); do
		[[ ! -S $WORK/$1/.s.PGSQL.5432 ]] || return 0
		sleep 0.05
	done
	die "slowlink does not start"
}

stop_links() {
	local pidfile
	for pidfile in "$WORK"/*/link.pid; do
		kill "$(<"$pidfile")"
	done
	wait
}

# link_tables LINK SCHEMA CONNECTIONS
link_tables() {
	HOST=$WORK/$1 foreign_tables "$2" tidrange_fdw "connections '$3'"
}

# read_once WAY SCHEMA [OPTIONS]: all columns of a, counted in the destination
read_once() {
	local count
	PGOPTIONS=${3:-'-c max_parallel_workers_per_gather=0'} \
		measure at destination -c "SELECT count(*) FROM (SELECT * FROM $2.a OFFSET 0) t WHERE t IS NOT NULL"
	count=$(<"$WORK/measured")
	if [[ $count != "${rows[a]}" ]]; then
		say "WRONG: $1 saw $count rows of a, which has ${rows[a]}"
		mismatches=$((mismatches + 1))
	fi
	wall["$1 a"]+=" $WALL"
	cpu_destination["$1 a"]+=" $CPU_SERVER"
}

# copy_once WAY SCHEMA STATEMENT: of the source's table a, verified
copy_once() {
	at destination -c "CREATE UNLOGGED TABLE a (LIKE $2.a)" -c CHECKPOINT
	measure at destination -c "$3"
	wall["$1 a"]+=" $WALL"
	cpu_destination["$1 a"]+=" $CPU_SERVER"
	verify "$1" a
	at destination -c "DROP TABLE a"
}

network_row() {
	# shellcheck disable=SC2086  # lists
	printf '%-34s %8.2f %9.0f %8.2f\n' "$1" "$(seconds "$1" a)" "$(calc "${rows[a]} / $(seconds "$1" a)")" \
		"$(median ${cpu_destination["$1 a"]})"
}

network_title() {
	say
	say "$1, SCALE $SCALE, ${rows[a]} rows of a, median of $ROUNDS; PostgreSQL $PG_VERSION, $(nproc) processors"
	printf '%-34s %8s %9s %8s\n' way 'wall s' rows/s 'CPU dest'
}

# network_goal WHAT WAY RIVAL FACTOR: the rival takes FACTOR times as long or more
network_goal() {
	local times verdict
	times=$(ratio "$(seconds "$3" a)" "$(seconds "$2" a)")
	verdict=$(if holds "$(seconds "$3" a) >= $4 * $(seconds "$2" a)"; then say met; else say 'NOT MET'; fi)
	printf '%-60s %6s  >= %-5s %s\n' "$1" "$times" "$4" "$verdict"
}

run_capped() {
	local round writers=0 way
	start_link capped 0 "$MBIT"
	link_tables capped one 1
	link_tables capped four 4
	[[ $(at destination -c "SELECT count(*) FROM pg_proc WHERE proname = 'tidrange_fdw_parallel_insert'") == 0 ]] || writers=1
	for ((round = 1; round <= ROUNDS; round++)); do
		step "each connection $MBIT Mbit/s, round $round of $ROUNDS"
		read_once "1 connection" one
		read_once "4 connections" four
		copy_once "copy, 1 connection" one "SET max_parallel_workers_per_gather = 0; INSERT INTO a SELECT * FROM one.a"
		((!writers)) ||
			copy_once "copy, 4 writers" one "CALL tidrange_fdw_parallel_insert('INSERT INTO a SELECT * FROM one.a', workers => 4)"
	done
	network_title "Each connection $MBIT Mbit/s"
	for way in "1 connection" "4 connections" "copy, 1 connection" "copy, 4 writers"; do
		[[ ! ${wall["$way a"]:-} ]] || network_row "$way"
	done
	say
	network_goal "4 connections of one process, times as fast as 1" "4 connections" "1 connection" 3.6
	if ((writers)); then
		network_goal "4 writers, times as fast as 1 connection" "copy, 4 writers" "copy, 1 connection" 3.6
	else
		say "skipped: 4 writers: there is no procedure tidrange_fdw_parallel_insert in this build"
	fi
}

# Both lines are slowlink's, so that its own work is in both.
run_delay() {
	local round
	start_link near 0 0
	start_link far "$(calc "$DELAY / 2")" 0
	# those of a source on another machine; here the default would be 1
	link_tables near near 4
	link_tables far far 4
	for ((round = 1; round <= ROUNDS; round++)); do
		step "$DELAY ms round trip, round $round of $ROUNDS"
		read_once "serial, 0 ms" near
		read_once "serial, $DELAY ms" far
		read_once "default plan, 0 ms" near ' '
		read_once "default plan, $DELAY ms" far ' '
	done
	network_title "Round trips of 0 and $DELAY ms"
	network_row "serial, 0 ms"
	network_row "serial, $DELAY ms"
	network_row "default plan, 0 ms"
	network_row "default plan, $DELAY ms"
	say
	network_goal "serial, speed with $DELAY ms, as a part of that with 0 ms" "serial, $DELAY ms" "serial, 0 ms" 0.9
	network_goal "default plan, the same" "default plan, $DELAY ms" "default plan, 0 ms" 0.9
}

network_main() {
	build_program slowlink
	TABLES=(a)
	take_truth
	[[ $NETWORK != *capped* ]] || run_capped
	[[ $NETWORK != *delay* ]] || run_delay
	stop_links
	((mismatches == 0))
}
