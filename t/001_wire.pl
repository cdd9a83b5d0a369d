# What goes over the wire: who connects, in which order locks and snapshot are
# taken, how chunks are planned, and that every block is read once.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(
	source_conf => <<'CONF');
shared_preload_libraries = 'pg_stat_statements'
session_preload_libraries = 'auto_explain'
auto_explain.log_min_duration = 0
auto_explain.log_nested_statements = on
pg_stat_statements.track = all
compute_query_id = on
CONF
my $source = $pair->source;

$pair->create_server;
$pair->create_table('big', 10000);
$pair->import_tables('big');
$source->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements');

my $truth = $pair->remote_sql(TidrangeTest::checksum('big'));
my $blocks = $pair->remote_sql(
	"SELECT pg_relation_size('big') / current_setting('block_size')::int");

# Statements of our sessions in the log, in order.
sub statements
{
	my (@entries) = @_;
	my @found;

	foreach my $entry (@entries)
	{
		push @found, { %$entry, sql => $1 }
		  if $entry->{app} =~ /^tidrange_fdw /
		  && $entry->{text} =~ /^LOG:  statement: (.*)$/s;
	}
	return @found;
}

# ----- one scan by a leader and four workers ----------------------------------

like(
	$pair->local_sql(
		TidrangeTest::workers(4) . 'EXPLAIN (COSTS OFF) SELECT * FROM big'),
	qr/Workers Planned: 4\n.*Parallel Foreign Scan on big/s,
	'four workers are planned');

my $offset = $pair->remote_log_size;
is( $pair->local_sql(
		TidrangeTest::workers(4) . TidrangeTest::checksum('big')),
	$truth,
	'the rows are right');
$pair->remote_is_left('no session is left when the local one has ended');

my @log = $pair->remote_log($offset);
my %role;
my %first_message;
my %messages;

foreach my $statement (statements(@log))
{
	my $pid = $statement->{pid};

	$role{$pid} = $1
	  if $statement->{app} =~ /^tidrange_fdw \d+ (leader|worker \d)$/;
	push @{ $messages{$pid} }, $statement->{sql};
}
my @leaders = grep { ($role{$_} // '') eq 'leader' } keys %messages;
my @workers = grep { ($role{$_} // '') =~ /^worker/ } keys %messages;

is(scalar(@leaders), 1, 'one session says that it is the leader');
cmp_ok(scalar(@workers), '>=', 1, 'workers have sessions');
is( scalar(@leaders) + scalar(@workers),
	scalar(keys %messages),
	'application_name says who every session is');

# The leader's own transaction: the last one that it started.
my @leader = @{ $messages{ $leaders[0] } };
shift @leader until !@leader || $leader[0] =~ /REPEATABLE READ/;
my $leader_sql = join('; ', @leader);

like(
	$leader_sql,
	qr/^START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; (SET LOCAL [^;]*;\s*)*LOCK TABLE [^;]*big[^;]* IN ACCESS SHARE MODE;\s*SELECT pg_export_snapshot\(\)/,
	'the leader locks the table before its first query, and exports');
unlike(
	$leader_sql,
	qr/SET TRANSACTION SNAPSHOT/,
	'the leader imports no snapshot');

my $imported = 0;
my $nowait = 0;
foreach my $pid (@workers)
{
	my $sql = join('; ', @{ $messages{$pid} });

	$imported++
	  if $sql =~
	  /^START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;\s*(SET LOCAL [^;]*;\s*)*SET TRANSACTION SNAPSHOT '[^']+'/;
	$nowait++
	  if $sql =~
	  /LOCK TABLE [^;]*big[^;]* IN ACCESS SHARE MODE NOWAIT;.*COPY/s
	  && $sql !~ /COPY .*LOCK TABLE/s;
}
is($imported, scalar(@workers),
	'every other session imports the snapshot before any query');
is($nowait, scalar(@workers),
	'every other session locks with NOWAIT before it reads');

my @snapshots = map { $_->{sql} =~ /SET TRANSACTION SNAPSHOT '([^']+)'/g }
  statements(@log);
my %distinct = map { $_ => 1 } @snapshots;
is(scalar(keys %distinct), 1, 'there is one snapshot');

# auto_explain has logged the plan of each COPY.
my @plans = grep { $_->{text} =~ /Query Text:.*\bCOPY \(/s } @log;
my @chunk_plans = grep { $_->{text} =~ /Tid Range Scan on big/ } @plans;
cmp_ok(scalar(@plans), '>=', $blocks / 32 / 2, 'the plans of chunks are logged');
is(scalar(@chunk_plans), scalar(@plans), 'every chunk is a Tid Range Scan');
is(scalar(grep { $_->{text} =~ /(Seq|Index) Scan.* on big/ } @log),
	0, 'nothing scans the table another way');

# ----- every block once, whoever reads it -------------------------------------

foreach my $participation (qw(on off))
{
	foreach my $count (0, 1, 2, 4)
	{
		my $name = "$count workers, leader participation $participation";

		$pair->remote_sql(
			"SELECT pg_stat_reset_single_table_counters('big'::regclass)");
		is( $pair->local_sql(
				TidrangeTest::workers($count)
				  . "SET parallel_leader_participation = $participation;"
				  . TidrangeTest::checksum('big')),
			$truth,
			"$name: the rows are right");
		$pair->remote_is_left("$name: no session is left");

		my ($touched, $scans) = split /\|/,
		  $pair->remote_sql(
			'SELECT heap_blks_read + heap_blks_hit, seq_scan FROM pg_statio_user_tables '
			  . "JOIN pg_stat_user_tables USING (relid) WHERE relid = 'big'::regclass");

		cmp_ok($touched, '>=', $blocks, "$name: every block is read");
		cmp_ok($touched, '<=', 1.02 * $blocks, "$name: and read once");
		cmp_ok($scans, '<=', $count == 0 ? 1 : 0, "$name: no sequential scan");
	}
}

# ----- what is left in pg_stat_statements -------------------------------------

$pair->remote_sql('SELECT pg_stat_statements_reset()');
$pair->local_sql(TidrangeTest::workers(4) . TidrangeTest::checksum('big'));
$pair->remote_is_left('no session is left');
my $entries = $pair->remote_sql(
	"SELECT query FROM pg_stat_statements WHERE query LIKE '%big%' AND query NOT LIKE '%pg_stat_statements%'"
);
cmp_ok(scalar(split /\n/, $entries), '<=', 3,
	'pg_stat_statements has at most three entries of the table')
  or diag($entries);
cmp_ok(
	$pair->remote_sql(
		"SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%tidrange.lo%'"
	),
	'<=', 3,
	'the number of chunks does not show in pg_stat_statements');

# ----- sessions in a session --------------------------------------------------

my $session = $pair->session;
my $query = TidrangeTest::checksum('big');

$session->query(TidrangeTest::workers(4));
is($session->query("BEGIN; $query"), $truth, 'in a transaction block');
is( $pair->remote_sessions("state = 'idle in transaction'") =~ tr/\n// + 1,
	1,
	'one session holds the snapshot while the transaction is open');
like(
	$pair->remote_sessions("state = 'idle in transaction'"),
	qr/ leader idle in transaction/,
	'it is the leader\'s');
is($pair->remote_sessions("application_name LIKE '%worker%'"),
	'', 'the workers\' sessions are gone with the workers');
$session->query('COMMIT');
$pair->remote_rests('nothing is left in a transaction after COMMIT');
like($pair->remote_sessions, qr/^tidrange_fdw \d+ leader idle [^\n]*$/,
	'the leader keeps one idle session');

is( $pair->remote_sql(
		"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw "
		  . $session->pid
		  . " leader'"),
	1,
	'application_name carries the local process');

my $remote_pid = $pair->remote_sql(
	"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'");

$session->query("BEGIN; $query; ROLLBACK");
$pair->remote_rests('nothing is left in a transaction after ROLLBACK');
my ($out, $err) = $session->query('SELECT 1 / (id - 5000) FROM big');
like($err, qr/22012.*division by zero/s, 'an error in the middle of a scan');
$pair->remote_rests('nothing is left in a transaction after an error');
is($session->query($query), $truth, 'the session goes on');
is( $pair->remote_sql(
		"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'"),
	$remote_pid,
	'with the same remote session');

# an error in a worker, where only a worker can raise it
($out, $err) = $session->query(
	'SET parallel_leader_participation = off; SELECT 1 / (id - 5000) FROM big');
like($err, qr/22012.*division by zero.*parallel worker/s, 'an error in a worker');
$pair->remote_rests('nothing is left after an error in a worker');
$session->query('RESET parallel_leader_participation');

# savepoints are not mirrored, and one snapshot lasts for the transaction
($out, $err) = $session->query(<<"SQL");
BEGIN;
SAVEPOINT a;
$query;
SELECT 1 / (id - 5000) FROM big;
ROLLBACK TO a;
$query;
COMMIT;
SQL
is($out, "$truth\n$truth", 'an error inside a savepoint, then the table again');
$pair->remote_rests('nothing is left in a transaction after that');

$session->quit;
$pair->remote_is_left('the remote session ends with the local one');

$pair->finish;
