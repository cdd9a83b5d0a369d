# shellcheck shell=bash
#
# goals.sh: the goals of bench/run, and whether they are met.  To be sourced by it.

declare -A GOAL_INSERT=([a]=1.6 [b]=1.9 [c]=1.8)
declare -A GOAL_WRITERS=([a]=2.1 [b]=2.1 [c]=2.0)
GOAL_CTAS=1.8

# goal TABLE WAY RIVAL FACTOR: WAY is that many times as fast
goal() {
	local ours theirs verdict="not measured" times=-
	ours=$(seconds "$2" "$1")
	theirs=$(seconds "$3" "$1")
	if [[ $ours && $theirs ]]; then
		times=$(ratio "$theirs" "$ours")
		verdict=$(if holds "$theirs >= $4 * $ours"; then say met; else say 'NOT MET'; fi)
	fi
	printf '%-5s %-11s %-12s %6s  >= %-5s %s\n' "$1" "$2" "$3" "$times" "$4" "$verdict"
}

show_goals() {
	local table
	say
	say "Goals: times as fast as"
	printf '%-5s %-11s %-12s %6s  %-8s %s\n' table way than times goal verdict
	for table in "${TABLES[@]}"; do
		goal "$table" ours pgfdw "${GOAL_INSERT[$table]}"
		goal "$table" ours dblink 1
		goal "$table" ours pgcopydb1 1
		goal "$table" ours-ctas pgfdw-ctas "$GOAL_CTAS"
		goal "$table" writers2 pgfdw "${GOAL_WRITERS[$table]}"
		goal "$table" writers2 pipes2 1
		goal "$table" writers2 pgcopydb2 1
	done
}
