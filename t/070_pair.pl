# Two servers that need not be of one version: what the source has arrives as a
# dump and restore would bring it, in every way of reading; snapshot, cancel,
# ctid, IMPORT FOREIGN SCHEMA and ANALYZE work; and no chunk is a sequential scan.
#
# TIDRANGE_SOURCE is the connection string of a superuser on a throwaway server
# that is the source; without it a second cluster of the local version is.  That
# server is known by its connection alone: script/test-matrix runs this file for
# pairs of versions.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ValuesTest;

use constant PATIENCE => 60;

my $local = PostgreSQL::Test::Cluster->new('destination');
$local->init(extra => [ '-E', 'UTF8', '--locale=C' ]);
$local->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
jit = off
max_worker_processes = 16
max_parallel_workers = 8
CONF
$local->start;

my $own_source;
my $conninfo = $ENV{TIDRANGE_SOURCE};
if (!defined $conninfo)
{
	$own_source = PostgreSQL::Test::Cluster->new('source');
	$own_source->init(extra => [ '-E', 'UTF8', '--locale=C' ]);
	$own_source->append_conf('postgresql.conf',
		"autovacuum = off\njit = off\n");
	$own_source->start;
	$conninfo = sprintf 'host=%s port=%s user=%s dbname=postgres',
	  $own_source->host, $own_source->port, scalar(getpwuid($<));
}
my %where = $conninfo =~ /(\w+)=(\S+)/g;

# ----- running SQL ------------------------------------------------------------

# psql in the source; dies of an error.
sub remote
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run(
		[
			'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $conninfo, '-f', '-'
		],
		'<', \$sql, '>', \$out, '2>', \$err,
		IPC::Run::timeout(PATIENCE))
	  or die "on the source: $err";
	chomp $out;
	return $out;
}

sub here
{
	my ($sql) = @_;
	return $local->safe_psql('postgres', $sql, timeout => PATIENCE);
}

# The local error, at verbose verbosity; '' without one.
sub error_here
{
	my ($sql) = @_;
	my ($code, $out, $err) = $local->psql(
		'postgres', "\\set VERBOSITY verbose\n$sql",
		on_error_stop => 1,
		timeout => PATIENCE);
	return $code == 0 ? '' : $err;
}

# Ask the source until the answer is right or the time is up; the last answer.
sub remote_within
{
	my ($seconds, $query, $expected) = @_;
	my $deadline = time + $seconds;

	while (1)
	{
		my $answer = remote($query);

		return $answer if $answer eq $expected || time > $deadline;
		sleep 0.05;
	}
}

my $sessions = "SELECT count(*) FROM pg_stat_activity "
  . "WHERE application_name LIKE 'tidrange_fdw %'";
my %ways = ValuesTest::ways();
my ($serial, $parallel) = @ways{ 'serial, binary', 'parallel, binary' };
my $source_version = remote('SHOW server_version_num');
my $local_version = here('SHOW server_version_num');
my $by_blocks = $source_version >= 140000;

note("source $source_version, local server $local_version");

# ----- the fixture ------------------------------------------------------------

my $fixture = slurp_file("$FindBin::RealBin/fixture.sql");

# Multiranges and infinite numerics came in 14; where one side has none, other
# values stand in on both.
if ($source_version < 140000 || $local_version < 140000)
{
	$fixture =~ s/int4multirange/text/g;
	$fixture =~ s/\(2, '-Infinity',/(2, '-1e-1000',/;
}

my ($types) = $fixture =~ /\A(.*?)^-- tables$/ms;
my $role = "DO \$\$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = "
  . "'postgres') THEN CREATE ROLE postgres; END IF; END \$\$;\n";

remote($role . $fixture);
here($role . "CREATE DOMAIN shifts_the_oids AS int;\n" . $types);
here(<<"SQL");
CREATE EXTENSION tidrange_fdw;
CREATE SERVER source FOREIGN DATA WRAPPER tidrange_fdw
    OPTIONS (host '$where{host}', port '$where{port}', dbname '$where{dbname}', chunk_blocks '8');
CREATE USER MAPPING FOR PUBLIC SERVER source OPTIONS (user '$where{user}');
CREATE SCHEMA f;
CREATE SCHEMA baseline;
IMPORT FOREIGN SCHEMA public EXCEPT (vw) FROM SERVER source INTO f;
IMPORT FOREIGN SCHEMA "Sche.ma" FROM SERVER source INTO f;
CREATE FOREIGN TABLE f.vw (id int, v text) SERVER source OPTIONS (schema_name 'public');
SQL

# Name of the foreign table => rows, and what it is on the source.
my %rows = ValuesTest::fixture_rows();
my %there = map { $_ => "SELECT * FROM public.$_" } keys %rows;
$there{vw} = 'SELECT id, v FROM public.vw';
$there{$_} = "SELECT * FROM \"Sche.ma\".$_" foreach '"Ta""ble é 表"', '"T"', 't';

# What a dump and restore makes: COPY out in text, and in again.
my $file = PostgreSQL::Test::Utils::tempdir() . '/table';
foreach my $table (sort keys %rows)
{
	my $columns = $table eq 'nocol' ? '' : "LIKE f.$table";

	remote("\\copy ($there{$table}) TO '$file'\n");
	here("CREATE TABLE baseline.$table ($columns);\n"
		  . "\\copy baseline.$table FROM '$file'\n");
}
my %truth = ValuesTest->outcomes($local, 'postgres', '',
	map { $_ => ValuesTest::checksum("baseline.$_") } keys %rows);
is_deeply({ map { $_ => (split /\|/, $truth{$_})[0] } keys %truth },
	\%rows, 'the fixture was copied');

foreach my $way (sort keys %ways)
{
	ValuesTest::same_outcomes(
		{
			ValuesTest->outcomes(
				$local, 'postgres', $ways{$way},
				map { $_ => ValuesTest::checksum("f.$_") } keys %rows)
		},
		\%truth,
		"all tables as after dump and restore: $way");
}

# ----- IMPORT FOREIGN SCHEMA ----------------------------------------------------

# A sequence of source columns, as the local catalog and the remote one have it.
my $columns =
    "SELECT string_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod), "
  . "',' ORDER BY c.relname COLLATE \"C\", a.attnum) FROM pg_attribute a "
  . "JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
  . "WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relname IN ('gap', 'ty', 'drp', 'kid') ";
is(here("$columns AND n.nspname = 'f'"),
	remote("$columns AND n.nspname = 'public'"),
	'imported columns have the types of the source');

# ----- which plan ---------------------------------------------------------------

my $count = 'SELECT count(v) FROM f.gap';
my $plan = here("$parallel EXPLAIN (COSTS OFF, VERBOSE) $count");
if ($by_blocks)
{
	like($plan, qr/Gather.*Parallel Foreign Scan/s, 'the plan is parallel');
}
else
{
	unlike($plan, qr/Gather/, 'the plan is not parallel');
	like(
		$plan,
		qr/Read Whole: remote server is older than 14/,
		'EXPLAIN VERBOSE says why');
}

# The source's sequential scans of a table since its statistics were last asked.
sub seq_scans
{
	my ($table) = @_;

	# A session tells what it did when it ends.
	is(remote_within(10, $sessions, '0'), '0', 'no session is left');
	return remote("SELECT pg_stat_clear_snapshot(); "
		  . "SELECT seq_scan FROM pg_stat_user_tables WHERE relid = 'public.$table'::regclass")
	  =~ s/^\n//r;
}

# Before 15 statistics arrive later, so wait until there are as many.
sub more_seq_scans
{
	my ($table, $before, $more) = @_;
	my $query =
	  "SELECT seq_scan - $before FROM pg_stat_user_tables WHERE relid = 'public.$table'::regclass";

	sleep 1 if $source_version < 150000;
	return remote_within($source_version < 150000 ? 10 : 2, $query, $more);
}

# All blocks of a table that was just analyzed, so that planning reads none.
remote('CREATE TABLE many (id int, v text) WITH (fillfactor = 10); '
	  . "INSERT INTO many SELECT i, repeat('m', 100) FROM generate_series(1, 5000) i; "
	  . 'ANALYZE many');
here('IMPORT FOREIGN SCHEMA public LIMIT TO (many) FROM SERVER source INTO f');
my $blocks = remote("SELECT pg_relation_size('many') / 8192");
cmp_ok($blocks, '>', 500, 'the table has more than 60 chunks');

my $before = seq_scans('many');
is(here("$parallel SELECT count(*), count(v), sum(id) FROM f.many WHERE id > 0"),
	'5000|5000|12502500', 'a scan in chunks');
remote_within(10, $sessions, '0');
is(more_seq_scans('many', $before, $by_blocks ? 0 : 1),
	$by_blocks ? 0 : 1,
	$by_blocks ? 'no chunk is a sequential scan' : 'there is one sequential scan');

# 19 has a parallel Tid Range Scan of its own, which must stay out of chunks.
if ($source_version >= 180000)
{
	my $launched =
	  "SELECT parallel_workers_launched FROM pg_stat_database WHERE datname = 'postgres'";
	my $eager = join('',
		map { "ALTER DATABASE postgres SET $_;" } 'max_parallel_workers_per_gather = 4',
		'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
		"min_parallel_table_scan_size = '2MB'");    # no catalog is as large
	my $workers_before;

	remote($eager);
	# that they come at all
	remote("SELECT count(v) FROM many WHERE ctid < '(1000,0)' AND id > 0");
	$workers_before = remote($launched);
	cmp_ok($workers_before, '>', 0, 'the source likes parallel plans')
	  if $source_version >= 190000;
	is(here("$parallel SELECT count(v) FROM f.many WHERE id > 0"),
		'5000', 'a scan in chunks of such a source');
	remote_within(10, $sessions, '0');
	is(remote($launched), $workers_before, 'no chunk has workers of its own');
	remote('ALTER DATABASE postgres RESET ALL');
}

# ----- ctid -----------------------------------------------------------------------

my @conditions = (
	"ctid >= '(100,0)' AND ctid < '(200,0)'",
	"ctid > '(300,2)'",
	"ctid <= '(7,1)'",
	"ctid = '(5,3)'",
	"ctid = ANY ('{\"(1,1)\",\"(2,2)\",\"(9999,1)\"}')",
	"ctid >= '(100,0)' AND id % 3 = 0");
foreach my $condition (@conditions)
{
	my $answer = remote("SELECT count(*), sum(id) FROM many WHERE $condition");

	like($answer, qr/^[1-9]/, "$condition: there are rows");
	foreach my $settings ($serial, $parallel)
	{
		is(here($settings . "SELECT count(*), sum(id) FROM f.many WHERE $condition"),
			$answer, "$condition: " . ($settings eq $serial ? 'serial' : 'parallel'));
	}
}

# ----- snapshot -------------------------------------------------------------------

foreach my $settings ($serial, $parallel)
{
	my $way = $settings eq $serial ? 'serial' : 'parallel';
	my $sum = 'SELECT count(*), sum(id), max(length(v)) FROM f.many';
	my $change = "UPDATE many SET v = v || 'y' WHERE id % 7 = 0; "
	  . 'DELETE FROM many WHERE id % 7 = 1; INSERT INTO many SELECT -id, v FROM many WHERE id % 7 = 2';
	my $psql = "psql -XAtq -d \"$conninfo\" -c \"$change\"";
	my $old = here($settings . $sum);
	my $script = "$settings BEGIN;\n$sum;\n\\! $psql\n$sum;\n$sum;\nCOMMIT;\n";

	is(here($script), "$old\n$old\n$old", "$way: one snapshot a transaction");
	is(here($settings . $sum),
		remote('SELECT count(*), sum(id), max(length(v)) FROM many'),
		"$way: a new one sees the change");
	isnt(here($settings . $sum), $old, "$way: there was a change");
}

# ----- cancel ---------------------------------------------------------------------

foreach my $settings ($serial, $parallel)
{
	my $way = $settings eq $serial ? 'serial' : 'parallel';
	my $locker = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', "$conninfo application_name=locker", '-c',
			'BEGIN; LOCK TABLE gap; SELECT pg_sleep(60)'
		],
		'<', \'', '>', \my $out, '2>', \my $err);
	my $held = "SELECT count(*) FROM pg_locks WHERE relation = 'gap'::regclass "
	  . "AND mode = 'AccessExclusiveLock' AND granted";
	my $begin;

	is(remote_within(PATIENCE, $held, '1'), '1', "$way: the table is locked");
	$begin = time;
	like(
		error_here(
			$settings . "SET statement_timeout = '500ms'; SELECT count(v) FROM f.gap"),
		qr/57014/, "$way: a statement that waits for the source is cancelled");
	cmp_ok(time - $begin, '<', 10, "$way: soon");
	is(remote_within(5, $sessions, '0'), '0', "$way: no session is left");
	remote("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'locker'");
	eval { $locker->finish; };
	is(here($settings . $count), '3999', "$way: the next one reads");
}

# ----- ANALYZE --------------------------------------------------------------------

remote('ANALYZE gap');
here('ANALYZE f.gap; ANALYZE f.ty');
is(here("SELECT reltuples, relpages > 0 FROM pg_class WHERE oid = 'f.gap'::regclass"),
	'3999|t', 'ANALYZE counts rows');
is(here("SELECT null_frac FROM pg_stats WHERE schemaname = 'f' AND tablename = 'ty' AND attname = 'n'"),
	'0.9985', 'and looks at columns');

# ----- writing here ---------------------------------------------------------------

here("$parallel CREATE TABLE copied AS SELECT * FROM f.ty; CREATE TABLE inserted (LIKE f.ty); "
	  . 'INSERT INTO inserted SELECT * FROM f.ty');
is(here(ValuesTest::checksum('copied')), $truth{ty}, 'CREATE TABLE AS');
is(here(ValuesTest::checksum('inserted')), $truth{ty}, 'INSERT ... SELECT');

is(remote_within(5, $sessions, '0'), '0', 'no session is left at the end');
$local->stop('fast');
$own_source->stop('fast') if $own_source;
done_testing();
