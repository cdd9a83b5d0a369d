# shellcheck shell=bash
#
# lib.sh: what script/test and script/demo share, to be sourced by them.
#
# It finds or installs PostgreSQL and a compiler, builds the extension in a copy
# of the tree, installs it into a private copy of the server's programs, starts
# throwaway clusters, and cleans up.  Everything lives in one temporary
# directory, WORK, which is owned by the operating system user that runs the
# servers (postgres when we are root, since PostgreSQL refuses root; otherwise
# ourselves).  However a script ends, its clusters are stopped and WORK is
# removed; what stays is the Debian packages that were missing.
#
# The private copy is why two runs, or a run beside an installed tidrange_fdw,
# cannot disturb each other: nothing is written to the system's directories.
# PostgreSQL finds its library and share directories relative to the program
# that runs, so a copy of all three under one prefix, here INSTALL, works as it
# is (make check in PostgreSQL's own tree rests on the same).
#
# A script sources this file, defines main, and ends with: run_main "$@"

set -euo pipefail
shopt -s inherit_errexit

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
WORK=
BODY=
PACKAGES=()  # that a script needs beside what all need
UNDO_INSTALL=()

# The caller's settings must not leak into the servers and clients started here.
for variable in $(compgen -e PG); do
	case $variable in
		PG_CONFIG | PG_TEST_*) ;;
		*) unset "$variable" ;;
	esac
done
unset variable MAKEFLAGS MAKELEVEL
export LANG=C.UTF-8 LC_ALL=C.UTF-8

say() {
	printf '%s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Run a command without a word, unless it fails: then show the end of what it said.
quietly() {
	local log
	log=$(mktemp "$WORK/log.XXXXXX")
	if ! "$@" >"$log" 2>&1; then
		tail -n 300 "$log" >&2
		printf '%s: failed: %s\n' "${0##*/}" "$*" >&2
		return 1
	fi
}

# ----- packages -------------------------------------------------------------

as_root() {
	if ((EUID == 0)); then
		"$@"
	else
		sudo "$@"
	fi
}

apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy -o Dpkg::Options::=--force-unsafe-io "$@" </dev/null
}

package_installed() {
	[[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# The newest major version whose server is installed where Debian puts it.
installed_major() {
	local server
	for server in $(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -rV); do
		[[ -x $server ]] || continue
		server=${server#/usr/lib/postgresql/}
		say "${server%%/*}"
		return
	done
	return 1
}

# The major version that this Debian suite installs by default.
default_major() {
	apt-cache depends postgresql | sed -n 's/^ *Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1
}

# Keep a server that is being installed from creating and starting a cluster of
# its own; undone by allow_services.
deny_services() {
	local policy=/usr/sbin/policy-rc.d dropin=/etc/postgresql-common/createcluster.d/tidrange_fdw.conf
	if [[ ! -e $policy ]]; then
		UNDO_INSTALL+=("$policy")
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 755 "$policy"
	fi
	if [[ ! -e $dropin ]]; then
		UNDO_INSTALL+=("$dropin")
		as_root mkdir -p "${dropin%/*}"
		say 'create_main_cluster = false' | as_root tee "$dropin" >/dev/null
	fi
}

allow_services() {
	((${#UNDO_INSTALL[@]})) || return 0
	as_root rm -f "${UNDO_INSTALL[@]}"
	as_root rmdir --ignore-fail-on-non-empty /etc/postgresql-common/createcluster.d 2>/dev/null || true
	UNDO_INSTALL=()
}

# Install those of these packages that are missing.
install_packages() {
	local missing=() package
	for package in "$@"; do
		package_installed "$package" || missing+=("$package")
	done
	((${#missing[@]})) || return 0
	say "installing packages: ${missing[*]}"
	quietly apt update
	deny_services
	quietly apt install --no-install-recommends "${missing[@]}"
	allow_services
}

# Install what is missing, and choose PG_CONFIG unless it was given.
ensure_packages() {
	local wanted=(gcc make libc6-dev libpq-dev perl libipc-run-perl locales "${PACKAGES[@]}") major
	if [[ ${NO_PACKAGES:-0} == 1 ]] || ! command -v dpkg-query >/dev/null; then
		: "${PG_CONFIG:=$(command -v pg_config || true)}"
		return
	fi
	if [[ -z ${PG_CONFIG:-} ]]; then
		if ! major=$(installed_major); then
			quietly apt update
			major=$(default_major)
			[[ $major ]] || die "no package of a PostgreSQL server is available"
		fi
		PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
		wanted+=("postgresql-$major" "postgresql-client-$major" "postgresql-server-dev-$major")
	fi
	install_packages "${wanted[@]}"
}

# Set the places of the PostgreSQL that PG_CONFIG speaks for.
find_postgres() {
	[[ -x ${PG_CONFIG:-} ]] || die "no pg_config at \"${PG_CONFIG:-}\""
	BINDIR=$("$PG_CONFIG" --bindir)
	PKGLIBDIR=$("$PG_CONFIG" --pkglibdir)
	SHAREDIR=$("$PG_CONFIG" --sharedir)
	PGXS_SRC=$("$PG_CONFIG" --pgxs)
	PGXS_SRC=${PGXS_SRC%/makefiles/pgxs.mk}
	PG_VERSION=$("$PG_CONFIG" --version)
	PG_VERSION=${PG_VERSION#PostgreSQL }
	PG_VERSION=${PG_VERSION%% *}
	PG_MAJOR=${PG_VERSION%%[!0-9]*}
	[[ -x $BINDIR/postgres && -f $PGXS_SRC/makefiles/pgxs.mk ]] ||
		die "$PG_CONFIG has no server or no PGXS beside it"
	INSTALL=$WORK/install
	PGBIN=$INSTALL$BINDIR
}

# ----- the temporary directory, and who owns it ------------------------------

# The directory's name is short because the path of a unix socket must be.
make_workdir() {
	local parent=${TMPDIR:-/tmp}
	((${#parent} <= 50)) || parent=/tmp
	WORK=$(mktemp -d "$parent/tidrange.XXXXXX")
}

give_workdir() {
	if ((EUID == 0)); then
		id postgres >/dev/null 2>&1 || die "servers do not run as root, and there is no user postgres"
		chown -R postgres: "$WORK"
	fi
}

# Run a command in WORK as the user that runs the servers.
as_postgres() {
	local clean=(env -C "$WORK" HOME="$WORK" TMPDIR="$WORK")
	if ((EUID == 0)); then
		runuser -u postgres -- "${clean[@]}" "$@"
	else
		"${clean[@]}" "$@"
	fi
}

# ----- build and install -----------------------------------------------------

# Print the extra compiler flags, the same for gcc and clang.  Debian's clang
# does not know a few of the flags that the server was built with by gcc.
compiler_flags() {
	local flags='-Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare'
	((PG_MAJOR < 18)) || flags+=' -Wno-missing-field-initializers'
	[[ $1 != clang* ]] || flags+=' -Wno-unknown-warning-option -Wno-ignored-attributes -Wno-ignored-optimization-argument -Wno-unused-command-line-argument'
	[[ ${CASSERT:-0} != 1 ]] || flags+=' -DUSE_ASSERT_CHECKING'
	say "$flags"
}

# Copy the tree to a directory of WORK, without what a build or test left in it.
copy_tree() {
	as_postgres mkdir "$1"
	tar -C "$ROOT" --exclude=./.git --exclude=./tmp_check --exclude=./tmp_check_iso \
		--exclude=./results --exclude=./output_iso --exclude='*.o' --exclude='*.so' --exclude='*.bc' \
		-cf - . | as_postgres tar -C "$1" --no-same-owner -xf -
}

# Make a target in a copy of the tree: make_in DIR COMPILER TARGET...
make_in() {
	local dir=$1 compiler=$2
	shift 2
	quietly as_postgres make -C "$dir" -j "$(nproc)" CC="$compiler" PG_CONFIG="$PG_CONFIG" \
		with_llvm=no COPT="$(compiler_flags "${compiler##*/}")" "$@"
}

# Copy the server's own programs, libraries and shared files to below INSTALL.
copy_server() {
	local dir
	for dir in "$BINDIR" "$PKGLIBDIR" "$SHAREDIR"; do
		as_postgres mkdir -p "$INSTALL$dir"
	done
	(cd "$BINDIR" && find . -maxdepth 1 \( -name 'pg*' -o -name 'postgres' -o -name postmaster -o -name psql \
		-o -name initdb -o -name '*db' -o -name '*user' \) -print0 | tar --null -T - -cf -) |
		as_postgres tar -C "$PGBIN" --no-same-owner -xf -
	tar -C "$PKGLIBDIR" --exclude=./pgxs --exclude=./bitcode -cf - . |
		as_postgres tar -C "$INSTALL$PKGLIBDIR" --no-same-owner -xf -
	tar -C "$SHAREDIR" --exclude=./man --exclude='./extension/tidrange_fdw*' -cf - . |
		as_postgres tar -C "$INSTALL$SHAREDIR" --no-same-owner -xf -
}

# Build the extension in a copy of the tree, BUILD, and install it for PGBIN.
build_and_install() {
	BUILD=$WORK/build
	copy_tree "$BUILD"
	make_in "$BUILD" "${CC:-gcc}" all
	copy_server
	make_in "$BUILD" "${CC:-gcc}" install DESTDIR="$INSTALL"
}

# ----- clusters --------------------------------------------------------------

# start_cluster NAME [SETTING=VALUE...]: a cluster with its socket in WORK/NAME,
# the only way to reach it (other than WORK's owner and root nobody can); hence
# any port will do.  It does not survive a crash, and need not.
start_cluster() {
	local dir=$WORK/$1 setting
	shift
	as_postgres mkdir "$dir"
	quietly as_postgres "$PGBIN/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync
	{
		say "listen_addresses = ''"
		say "unix_socket_directories = '$dir'"
		say "port = 5432"
		say "fsync = off"
		say "timezone = 'UTC'"
		for setting in "$@"; do
			say "${setting%%=*} = '${setting#*=}'"
		done
	} | as_postgres tee -a "$dir/data/postgresql.conf" >/dev/null
	quietly as_postgres "$PGBIN/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 start
}

# Stop every server that runs on a data directory in WORK, those that a test
# left behind too.
stop_all() {
	local pidfile
	[[ -d $WORK ]] || return 0
	find "$WORK" -name postmaster.pid 2>/dev/null | while read -r pidfile; do
		as_postgres "$PGBIN/pg_ctl" -D "${pidfile%/*}" -m immediate -w -t 30 stop >/dev/null 2>&1 </dev/null || true
	done
}

# ----- running ---------------------------------------------------------------

# Ask the body's process group to end, stop the servers that its programs may be
# waiting for, and after 10 seconds make it end.  A server killed that way would
# leave its shared memory behind, hence the order.
stop_body() {
	local i
	[[ $BODY ]] || return 0
	kill -TERM -- "-$BODY" 2>/dev/null || return 0
	stop_all
	for ((i = 0; i < 100; i++)); do
		kill -0 -- "-$BODY" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -KILL -- "-$BODY" 2>/dev/null || true
}

cleanup() {
	trap '' INT TERM HUP
	stop_body
	allow_services
	stop_all
	[[ ! -d $WORK ]] || rm -rf "$WORK"
}

# What is needed before main; a script may have its own.
prepare() {
	ensure_packages
	find_postgres
}

# Prepare, run main with the arguments, clean up, and exit as main did.  Main is
# a child in a process group of its own: bash would put a signal off until the
# program in the foreground ends, but it interrupts wait at once, and the group
# can be ended as a whole.  (A password for sudo is asked before that.)
run_main() {
	trap cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_workdir
	prepare
	give_workdir
	set -m
	main "$@" </dev/null &
	BODY=$!
	set +m
	wait "$BODY"
}
