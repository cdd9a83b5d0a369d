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
compute_query_id = on
CONF
my $source = $pair->source;

$pair->create_server;
$pair->create_table('ledger', 10000);
$pair->import_tables('ledger');
$source->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements');

my $truth = $pair->remote_sql(TidrangeTest::checksum('ledger'));
my $blocks = $pair->remote_sql(
	"SELECT pg_relation_size('ledger') / current_setting('block_size')::int");

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
		TidrangeTest::workers(4) . 'EXPLAIN (COSTS OFF) SELECT * FROM ledger'),
	qr/Workers Planned: 4\n.*Parallel Foreign Scan on ledger/s,
	'four workers are planned');

my $offset = $pair->remote_log_size;
is( $pair->local_sql(
		TidrangeTest::workers(4) . TidrangeTest::checksum('ledger')),
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
	qr/^START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY[;\s]*(SET LOCAL [^;]*[;\s]*)*LOCK TABLE [^;]*ledger[^;]* IN ACCESS SHARE MODE;\s*SELECT pg_export_snapshot\(\)/,
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
	  /^START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY[;\s]*(SET LOCAL [^;]*[;\s]*)*SET TRANSACTION SNAPSHOT '[^']+'/;
	# A late one may have found nothing to do.
	$nowait++
	  if $sql !~ /COPY/
	  || $sql =~
	  /^((?!COPY).)*LOCK TABLE [^;]*ledger[^;]* IN ACCESS SHARE MODE NOWAIT;.*COPY/s;
}
is($imported, scalar(@workers),
	'every other session imports the snapshot before any query');
is($nowait, scalar(@workers),
	'every other session locks with NOWAIT before it reads');

my @snapshots = map { $_->{sql} =~ /SET TRANSACTION SNAPSHOT '([^']+)'/g }
  statements(@log);
my %distinct = map { $_ => 1 } @snapshots;
is(scalar(keys %distinct), 1, 'there is one snapshot');

# auto_explain has logged the plan of every query that ran.
my $copies = grep { $_->{sql} =~ /\bCOPY \(/ } statements(@log);
my @plans = map { $_->{text} =~ /^\t(?: *->)? *(\S.* on ledger\b)/gm } @log;
cmp_ok($copies, '>=', int($blocks / 32), 'the table is read in chunks');
cmp_ok(scalar(@plans), '>=', $copies, 'the plan of every chunk is logged');
is( join("\n", grep { $_ !~ /^Tid Range Scan on ledger/ } @plans),
	'',
	'every chunk is a Tid Range Scan');

# ----- every block once, whoever reads it -------------------------------------

foreach my $participation (qw(on off))
{
	foreach my $count (0, 1, 2, 4)
	{
		my $name = "$count workers, leader participation $participation";
		my $settings = TidrangeTest::workers($count)
		  . "SET parallel_leader_participation = $participation;";
		my $parallel = $pair->local_sql(
			"$settings EXPLAIN (COSTS OFF) SELECT * FROM ledger") =~ /Gather/;

		$pair->remote_sql(
			"SELECT pg_stat_reset_single_table_counters('ledger'::regclass)");
		is( $pair->local_sql(
				$settings . TidrangeTest::checksum('ledger')),
			$truth,
			"$name: the rows are right");
		$pair->remote_is_left("$name: no session is left");

		my ($touched, $scans) = split /\|/,
		  $pair->remote_sql(
			'SELECT heap_blks_read + heap_blks_hit, seq_scan FROM pg_statio_user_tables '
			  . "JOIN pg_stat_user_tables USING (relid) WHERE relid = 'ledger'::regclass");

		cmp_ok($touched, '>=', $blocks, "$name: every block is read");
		cmp_ok($touched, '<=', 1.02 * $blocks, "$name: and read once");
		is($scans, $parallel ? 0 : 1,
			"$name: sequential scans are for serial plans");
		ok($parallel, "$name: the plan is parallel") if $count > 1;
	}
}

# ----- what is left in pg_stat_statements -------------------------------------

# The chunks must not flood it: their bounds are in no statement's text.
sub statement_entries
{
	my ($chunk_blocks) = @_;

	$pair->remote_sql('SELECT pg_stat_statements_reset()');
	$pair->local_sql(
		"ALTER SERVER source OPTIONS (SET chunk_blocks '$chunk_blocks');"
		  . TidrangeTest::workers(4)
		  . TidrangeTest::checksum('ledger'));
	$pair->remote_is_left("chunk_blocks $chunk_blocks: no session is left");
	return $pair->remote_sql(
		"SELECT left(query, 60) FROM pg_stat_statements WHERE query LIKE '%ledger%' ORDER BY 1"
	);
}

# What workers say that come in time for a chunk; not all do each time.
use constant WORKER_STATEMENTS => 5;

sub readers { return join "\n", grep { /^(COPY|SELECT)/ } split /\n/, shift }

my $entries = statement_entries(8);
my $all_small = $pair->remote_sql('SELECT count(*) FROM pg_stat_statements');
is( readers($entries), readers(statement_entries(64)),
	'pg_stat_statements does not show how many chunks there were');
my $all_large = $pair->remote_sql('SELECT count(*) FROM pg_stat_statements');
cmp_ok(abs($all_large - $all_small), '<=', WORKER_STATEMENTS, 'in no statement at all');
is(scalar(split /\n/, readers($entries)),
	1, 'one entry for all that reads the table');
# LOCK, LOCK NOWAIT, EXPLAIN, COPY
cmp_ok(scalar(split /\n/, $entries), '<=', 4,
	'at most four entries mention the table')
  or diag($entries);
$pair->local_sql("ALTER SERVER source OPTIONS (SET chunk_blocks '32')");

# ----- sessions in a session --------------------------------------------------

my $session = $pair->session;
my $query = TidrangeTest::checksum('ledger');

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
my ($out, $err) = $session->query('SELECT 1 / (id - 5000) FROM ledger');
like($err, qr/22012.*division by zero/s, 'an error in the middle of a scan');
$pair->remote_rests('nothing is left in a transaction after an error');
is($session->query($query), $truth, 'the session goes on');
is( $pair->remote_sql(
		"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'"),
	$remote_pid,
	'with the same remote session');

# an error in a worker, where only a worker can raise it
($out, $err) = $session->query(
	'SET parallel_leader_participation = off; SELECT 1 / (id - 5000) FROM ledger');
like($err, qr/22012.*division by zero.*parallel worker/s, 'an error in a worker');
$pair->remote_rests('nothing is left after an error in a worker');
$session->query('RESET parallel_leader_participation');

# savepoints are not mirrored, and one snapshot lasts for the transaction
($out, $err) = $session->query(<<"SQL");
BEGIN;
SAVEPOINT a;
$query;
SELECT 1 / (id - 5000) FROM ledger;
ROLLBACK TO a;
$query;
COMMIT;
SQL
is($out, "$truth\n$truth", 'an error inside a savepoint, then the table again');
$pair->remote_rests('nothing is left in a transaction after that');

$session->quit;
$pair->remote_is_left('the remote session ends with the local one');

$pair->finish;
