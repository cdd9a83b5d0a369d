# A hot standby as the source: the same rows as on the primary, under one
# snapshot; a conflict with recovery is an error that says what to do, never a
# part of the rows; in a list of hosts all sessions go to one server.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(chunk_blocks => 8, streaming => 1);
my $primary = $pair->source;
my $local = $pair->destination;

$pair->create_table('ledger', 4000);
$primary->backup('base');

# A standby of that name.
sub new_standby
{
	my ($name) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', <<"CONF");
max_standby_streaming_delay = -1
hot_standby_feedback = off
wal_receiver_status_interval = 1
primary_conninfo = '${\$primary->connstr} application_name=$name'
CONF
	$standby->start;
	return $standby;
}

my $standby = new_standby('standby');
my $question = 'SELECT count(*), sum(id), max(length(v)) FROM ledger';
my $settings = TidrangeTest::workers(3);

# The primary's changes are visible on that standby.
sub catch_up
{
	my ($node) = @_;
	my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');

	is( TidrangeTest::answer_within(
			$node, TidrangeTest::PATIENCE,
			"SELECT pg_last_wal_replay_lsn() >= '$lsn'", 't'),
		't', 'the standby is as far as the primary');
	return;
}

catch_up($standby);

# The standby alone, with IMPORT FOREIGN SCHEMA from it.
$pair->create_server(
	options => { host => $standby->host, port => $standby->port });
$pair->import_tables('ledger');
my $all = $primary->safe_psql('postgres', $question);

is($pair->local_sql($question), $all, 'serial');
like($pair->local_sql("$settings EXPLAIN (COSTS OFF) $question"),
	qr/Workers Planned: 3/, 'a parallel plan');
is($pair->local_sql($settings . $question), $all, 'parallel');
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'),
	't', 'from a standby');

$pair->local_sql("$settings CREATE TABLE copied AS SELECT * FROM ledger; "
	  . 'CREATE TABLE inserted (LIKE ledger); INSERT INTO inserted SELECT * FROM ledger;');
is($pair->local_sql($question =~ s/ledger/copied/r), $all, 'CREATE TABLE AS');
is($pair->local_sql($question =~ s/ledger/inserted/r), $all, 'INSERT ... SELECT');
$pair->local_sql('ANALYZE ledger');
is($pair->local_sql("SELECT reltuples FROM pg_class WHERE relname = 'ledger'"),
	'4000', 'ANALYZE');

# Three processes, each on a session of its own, before the gate.
sub start_at_gate
{
	my ($session) = @_;

	TidrangeTest::shut_gate($local);
	$session->start("$question WHERE gate(id)");
	TidrangeTest::wait_at_gate($local, 3);
	return;
}

# ----- one snapshot ---------------------------------------------------------------

my $session = $pair->session;
$session->query($settings);
start_at_gate($session);
cmp_ok(
	$standby->safe_psql('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'"),
	'>=', 3, 'workers have sessions on the standby');
$primary->safe_psql('postgres',
	"INSERT INTO ledger SELECT -id, v FROM ledger WHERE id % 7 = 1");
catch_up($standby);
TidrangeTest::open_gate($local);
is(scalar($session->finish), $all, 'changes of the primary during a scan are not seen');
$all = $primary->safe_psql('postgres', $question);
is(scalar($session->query($question)), $all, 'and are afterwards');

# ----- recovery conflict ----------------------------------------------------------

# Remove rows that a scan on the standby still sees.
sub remove_rows
{
	my ($remainder) = @_;
	$primary->safe_psql('postgres',
		"DELETE FROM ledger WHERE abs(id) % 10 = $remainder");
	$primary->safe_psql('postgres', 'VACUUM ledger');
	return;
}

# From now on the standby gives way to recovery at once.
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->reload;

my $hint = qr/HINT:  Retry the transaction.*hot_standby_feedback/;

start_at_gate($session);
remove_rows(3);
catch_up($standby);
TidrangeTest::open_gate($local);
my ($out, $err) = $session->finish;
is($out, '', 'conflict: no rows');
like($err, qr/ERROR:  40001: /, 'conflict: an error that says to retry');
like($err, $hint, 'conflict: with a hint');
unlike($err, qr/terminating connection.*\n.*LOCATION/,
	'conflict: it is not the local connection that ends');
$all = $primary->safe_psql('postgres', $question);
is(scalar($session->query($question)), $all, 'conflict: the session reads again');

# Between two statements of a transaction.
is(scalar($session->query("BEGIN; $question")), $all, 'a transaction');
remove_rows(5);
catch_up($standby);
($out, $err) = $session->query($question);
is($out, '', 'conflict in a transaction: no rows');
like($err, qr/ERROR:  40001: /, 'conflict in a transaction: an error that says to retry');
like($err, $hint, 'conflict in a transaction: with a hint');
$session->query('ROLLBACK');
$all = $primary->safe_psql('postgres', $question);
is(scalar($session->query($question)), $all, 'conflict in a transaction: another one reads');

# The primary keeps what the standby still needs.
$standby->append_conf('postgresql.conf', 'hot_standby_feedback = on');
$standby->reload;
is( TidrangeTest::answer_within(
		$primary, TidrangeTest::PATIENCE,
		"SELECT backend_xmin IS NOT NULL FROM pg_stat_replication WHERE application_name = 'standby'",
		't'),
	't',
	'feedback arrives');
start_at_gate($session);
# the snapshot of this very scan is known there
my $xmin = $standby->safe_psql('postgres',
	"SELECT min(backend_xmin::text::bigint) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'");
is( TidrangeTest::answer_within(
		$primary, TidrangeTest::PATIENCE,
		"SELECT backend_xmin::text::bigint <= $xmin FROM pg_stat_replication WHERE application_name = 'standby'",
		't'),
	't',
	'feedback covers the scan');
remove_rows(7);
catch_up($standby);
TidrangeTest::open_gate($local);
is(scalar($session->finish), $all, 'with feedback the scan ends as if nothing happened');
$session->quit;

# ----- lists of hosts -------------------------------------------------------------

# The names of the servers that our sessions came to.
my @nodes = ($primary, $standby);
my $sessions =
  "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'";
$all = $primary->safe_psql('postgres', $question);
catch_up($standby);

my %list = (
	host => join(',', map { $_->host } @nodes),
	port => join(',', map { $_->port } @nodes));
my @lists = (
	[ 'only standbys', 1, { %list, target_session_attrs => 'standby' } ],
	[ 'only primaries', 0, { %list, target_session_attrs => 'primary' } ]);

# libpq balances since 16.
my $can_balance = $pair->local_error(
	"CREATE SERVER probe FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (load_balance_hosts 'random')") eq '';
push @lists, map { [ "balanced, run $_", undef, { %list, load_balance_hosts => 'random' } ] } 1 .. 6
  if $can_balance;
note('load_balance_hosts is ' . ($can_balance ? '' : 'not ') . 'known');

my $serial = 0;
foreach my $case (@lists)
{
	my ($name, $expected, $options) = @$case;
	my $schema = 'list' . ++$serial;
	my $by_list = $pair->session;
	my @came;

	$pair->create_server(name => $schema, options => $options);
	$by_list->query($settings . <<"SQL");
CREATE SCHEMA $schema;
IMPORT FOREIGN SCHEMA public LIMIT TO (ledger) FROM SERVER $schema INTO $schema;
SET search_path = $schema, public;
SQL
	start_at_gate($by_list);
	@came = map { $_->safe_psql('postgres', $sessions) } @nodes;
	TidrangeTest::open_gate($local);
	is(scalar($by_list->finish), $all, "$name: the rows");
	cmp_ok($came[0] > $came[1] ? $came[0] : $came[1],
		'>=', 3, "$name: workers are there");
	ok((grep { $_ == 0 } @came), "$name: all sessions are on one server");
	cmp_ok($came[$expected], '>', 0, "$name: on the right one")
	  if defined $expected;
	$by_list->quit;
	TidrangeTest::answer_within($_, TidrangeTest::PATIENCE, $sessions, '0')
	  foreach @nodes;
}

$standby->stop('fast');
$pair->finish;
