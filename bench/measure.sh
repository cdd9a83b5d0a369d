# shellcheck shell=bash
#
# measure.sh: measures what a command costs: wall time, and CPU time of each
# cluster and of the clients.  To be sourced after script/lib.sh; the clusters
# are those that start_cluster made, "source" (the remote side) and
# "destination" (the local side).
#
# It also has the small things that demo and benchmarks share: step, at, drain.
#
# The CPU time of a cluster is that of its postmaster and of all its children,
# the dead ones included: a postmaster inherits the times of the children it has
# waited for.  Thus parallel workers, and sessions that have ended, are counted.

step() {
	printf '[%3d s] %s\n' "$SECONDS" "$*"
}

# at CLUSTER ARGUMENT...: psql as the superuser there
at() {
	local cluster=$1
	shift
	"$PGBIN/psql" -XqAt -v ON_ERROR_STOP=1 -h "$WORK/$cluster" -p 5432 -U postgres -d postgres "$@"
}

# build_program NAME [FLAG...]: WORK/NAME from bench/NAME.c of the tree's copy
build_program() {
	local name=$1
	shift
	quietly as_postgres "${CC:-gcc}" -O2 -Wall -Wextra -Werror -Wno-unused-parameter -I"$("$PG_CONFIG" --includedir)" \
		-o "$WORK/$name" "$BUILD/bench/$name.c" -L"$("$PG_CONFIG" --libdir)" "$@"
}

# drain QUERY: read it from the source by the bare libpq client
drain() {
	"$WORK/drain" "host=$WORK/source port=5432 user=postgres dbname=postgres" "$1"
}

# fingerprint CLUSTER TABLE: its count and its order-free checksum
fingerprint() {
	at "$1" -c "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM $2 t"
}

# cluster_cpu NAME: CPU seconds so far, from /proc.  A process name may contain
# blanks, so fields are counted from the parenthesis behind it.
cluster_cpu() {
	local postmaster ticks
	read -r postmaster <"$WORK/$1/data/postmaster.pid"
	ticks=$(getconf CLK_TCK)
	{ cat /proc/[0-9]*/stat 2>/dev/null || true; } | awk -v postmaster="$postmaster" -v ticks="$ticks" '
		{
			pid = $1
			sub(/^.*\) /, "")
			if (pid == postmaster || $2 == postmaster)
				sum += $12 + $13 + $14 + $15
		}
		END { printf "%.2f\n", sum / ticks }'
}

# settled_cpu NAME: the same, once it has stopped moving, for sessions end a
# little later than their clients.
settled_cpu() {
	local before='' now i
	for ((i = 0; i < 20; i++)); do
		now=$(cluster_cpu "$1")
		[[ $now != "$before" ]] || break
		before=$now
		sleep 0.05
	done
	say "$now"
}

# measure COMMAND...: run it and set WALL, CPU_SERVER (the destination), CPU_CLIENT
# (the command's own processes) and CPU_REMOTE (the source), all in seconds.  The
# command's standard output goes to WORK/measured.
# shellcheck disable=SC2034  # the results are for the caller
measure() {
	local server_before remote_before TIMEFORMAT='%3R %3U %3S' user system status=0
	server_before=$(settled_cpu destination)
	remote_before=$(settled_cpu source)
	{ time "$@" >"$WORK/measured" 2>"$WORK/measured.err" || status=$?; } 2>"$WORK/measured.time"
	if ((status)); then
		cat "$WORK/measured.err" >&2
		return "$status"
	fi
	read -r WALL user system <"$WORK/measured.time"
	CPU_SERVER=$(calc "$(settled_cpu destination) - $server_before")
	CPU_REMOTE=$(calc "$(settled_cpu source) - $remote_before")
	CPU_CLIENT=$(calc "$user + $system")
}

# calc EXPRESSION: the value of an awk expression, with three decimals.
calc() {
	awk "BEGIN { printf \"%.3f\", $1 }"
}

# holds EXPRESSION: is it true?
holds() {
	awk "BEGIN { exit !($1) }"
}

# ratio A B: A / B with two decimals, or - if there is no A or no B.
ratio() {
	if [[ $1 ]] && holds "${2:-0} > 0"; then
		awk "BEGIN { printf \"%.2f\", $1 / $2 }"
	else
		say -
	fi
}

# median NUMBER...: of an odd number of them.
median() {
	printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"
}
