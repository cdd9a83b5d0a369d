# Several connections in one process: when they are opened, that they show one
# moment, what a refused or a lost one does, cancels, and what they cost in memory.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

use constant SOON => 2;

my $pair = TidrangeTest->new(
	chunk_blocks => 8,
	source_conf => 'log_statement = all');
my $source = $pair->source;
my $destination = $pair->destination;

$pair->remote_sql(<<'SQL');
CREATE TABLE wide (id int, v text) WITH (fillfactor = 10);
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i, repeat(chr(97 + i % 20), 20000) FROM generate_series(1, 4000) i;
CREATE TABLE worse (id int, v text) WITH (fillfactor = 10);
INSERT INTO worse SELECT i, CASE WHEN i = 2500 THEN 'x' ELSE i || repeat(' ', 100) END FROM generate_series(1, 3000) i;
SQL
$pair->create_guarded(tables => ['wide'], options => { connections => 4 });
$pair->local_sql(
	"CREATE FOREIGN TABLE worse (id int, v int) SERVER source; ALTER FOREIGN TABLE wide OPTIONS (ADD connections '8', ADD chunk_blocks '25')"
);

my $settings = <<'SQL';
SET max_parallel_workers_per_gather = 0;
SET min_parallel_table_scan_size = 0;
SET cpu_tuple_cost = 1;
SQL
my $at_once = 'SET tidrange_fdw.connection_patience = 0';
my $never = 'SET tidrange_fdw.connection_patience = 60000';
my $question = 'SELECT count(*), sum(id) FROM ledger';
my $guarded = 'SELECT count(*), sum(id) FROM guarded';
my $answer = '3000|4501500';
my $session = $pair->session;
my ($out, $err);

$session->query($settings);

sub active_sessions
{
	my ($role) = @_;
	return
	  "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %$role' AND state = 'active' ORDER BY 1";
}

sub one_of
{
	my ($role) = @_;
	return (split /\n/, $pair->remote_sql(active_sessions($role)))[0];
}

# Start a scan of `guarded`; back when that many sessions are at the gate.
sub start_guarded
{
	my ($count, $sql) = @_;

	TidrangeTest::shut_gate($source);
	$session->start($sql // $guarded);
	TidrangeTest::wait_at_gate($source, $count);
	return;
}

# ----- how many there may be -----------------------------------------------------

# Where the source is on the same machine it is one, unless somebody says otherwise.
sub planned
{
	return $pair->local_sql("$settings EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM ledger");
}

like(planned(), qr/ctid >= \$lo.*Connections: 4/s, 'the option of the server');
$pair->local_sql('ALTER SERVER source OPTIONS (DROP connections)');
unlike(planned(), qr/\$lo|Connections/, 'a source on this machine: one statement');
$pair->local_sql("ALTER FOREIGN TABLE ledger OPTIONS (ADD connections '3')");
like(planned(), qr/ctid >= \$lo.*Connections: 3/s, 'the option of the table');
$pair->local_sql("ALTER FOREIGN TABLE ledger OPTIONS (DROP connections);
	ALTER SERVER source OPTIONS (ADD connections '4')");

# ----- when they are opened ------------------------------------------------------

# The remote says nothing for as long as the gate is shut: with the patience that
# is the default, all four sessions are there in the end.
$session->query('RESET tidrange_fdw.connection_patience');
start_guarded(4);
is($pair->remote_sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'"),
	'4', 'a remote that is silent gets all connections, no more');
TidrangeTest::open_gate($source);
is($session->finish, $answer, 'and the result is right');
$pair->remote_rests('one of them stays, at rest');

my $offset = $pair->remote_log_size;
$session->query($at_once);
is($session->query($question), $answer, 'all at once: the result');
my @adopted = grep { $_->{app} =~ /leader extra$/ && $_->{text} =~ /SET TRANSACTION SNAPSHOT/ }
  $pair->remote_log($offset);
my %adopters = map { $_->{pid} => 1 } @adopted;
is(scalar(keys %adopters), 3, 'three more sessions have adopted the snapshot');
$offset = $pair->remote_log_size;
$session->query($never);
is($session->query($question), $answer, 'one connection: the result');
is(scalar(grep { $_->{app} =~ /extra/ } $pair->remote_log($offset)),
	0, 'with patience there is no second session');

# ----- one moment -----------------------------------------------------------------

# The other sessions begin after all this has been committed.
$session->query("BEGIN; DECLARE c CURSOR FOR SELECT id, v FROM ledger");
is($session->query('FETCH 1 FROM c'), '1|' . 'x' x 100, 'the first row');
$pair->remote_sql(<<'SQL');
UPDATE ledger SET v = 'changed' WHERE id % 3 = 0;
DELETE FROM ledger WHERE id % 3 = 1;
INSERT INTO ledger SELECT i, 'new' FROM generate_series(5000, 6000) i;
SQL
my $rows = $session->query("$at_once; FETCH ALL FROM c");
is(scalar(grep { /^\d+\|x{100}$/ } split /\n/, $rows), 2999, 'the rows are the old ones, all of them');
my %ids = map { /^(\d+)/ => 1 } split /\n/, $rows;
is(scalar(keys %ids), 2999, 'each once');
$session->query('COMMIT');
is($session->query($question),
	$pair->remote_sql($question), 'the next transaction sees the changes');
$pair->remote_sql(<<'SQL');
TRUNCATE ledger;
INSERT INTO ledger SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i;
SQL

# ----- refused ----------------------------------------------------------------------

foreach my $limit (1 .. 3)
{
	$pair->remote_sql("ALTER ROLE reader CONNECTION LIMIT $limit");
	$session->query('SELECT tidrange_fdw_disconnect_all()');
	is($session->query($question), $answer, "connection limit $limit: the result");
	is($session->query(
			'SELECT count(*), sum(a.id) FROM ledger a JOIN ledger b USING (id) JOIN ledger c USING (id)'),
		$answer, "connection limit $limit: three scans at once");
	is($session->query(
			"BEGIN; DECLARE c CURSOR FOR SELECT id FROM ledger; MOVE 1000 IN c; $question; MOVE ALL IN c; COMMIT"),
		$answer, "connection limit $limit: a cursor beside");
}
$pair->remote_sql('ALTER ROLE reader CONNECTION LIMIT -1');

# A change of the table that waits for us keeps others from locking it.
{
	my $changer = $pair->remote_session;

	$session->query("$never; BEGIN; DECLARE c CURSOR FOR SELECT id FROM ledger");
	is($session->query('FETCH 1 FROM c'), '1', 'one connection has the lock');
	$changer->start('ALTER TABLE ledger ADD COLUMN more int');
	is( TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
			"SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = " . $changer->pid, '1'),
		'1', 'a change of the table waits for it');
	($out, $err) = $session->query(
		"$at_once; SET client_min_messages = debug1; FETCH ALL FROM c; RESET client_min_messages");
	is(scalar(split /\n/, $out), 2999, 'the scan goes on with what it has');
	like($err, qr/no further connection: .*lock/, 'and says why');
	$session->query('COMMIT');
	$changer->finish;
	is($session->query($question), $answer, 'afterwards all is well');
	$changer->quit;
}

# ----- cancelled, lost -----------------------------------------------------------------

foreach my $case (
	[ 'cancel', qr/57014: canceling statement due to user request/,
		sub { $pair->local_sql('SELECT pg_cancel_backend(' . $session->pid . ')') } ],
	[ 'cancel of a further remote query', qr/57014: /,
		sub { $pair->remote_sql('SELECT pg_cancel_backend(' . one_of('extra') . ')') } ],
	[ 'end of a further remote session', qr/08006: /,
		sub { $pair->remote_sql('SELECT pg_terminate_backend(' . one_of('extra') . ')') } ],
	[ 'end of the first remote session', qr/08006: /,
		sub { $pair->remote_sql('SELECT pg_terminate_backend(' . one_of('leader') . ')') } ])
{
	my ($name, $error, $act) = @$case;

	start_guarded(4);
	my $start = Time::HiRes::time();
	$act->();
	($out, $err) = $session->finish;
	cmp_ok(Time::HiRes::time() - $start, '<', SOON, "$name: returns in time");
	is($out, '', "$name: no rows");
	like($err, qr/ERROR:  $error/, "$name: the error");
	$pair->remote_rests("$name: the remote rests");
	TidrangeTest::open_gate($source);
	is($session->query($guarded), $answer, "$name: the next query is right");
}

# In a savepoint, the transaction goes on.
$session->query("BEGIN; $question; SAVEPOINT s");
start_guarded(4);
$pair->remote_sql('SELECT pg_terminate_backend(' . one_of('extra') . ')');
($out, $err) = $session->finish;
like($err, qr/ERROR:  08006: /, 'savepoint: a lost session is an error');
TidrangeTest::open_gate($source);
is($session->query("ROLLBACK TO s; $guarded; COMMIT"), $answer, 'savepoint: it can be gone back to');

# Enough rows, while other streams wait
TidrangeTest::shut_gate($source);
is($session->query('SELECT count(*) FROM (SELECT * FROM guarded LIMIT 700) q'), '700', 'LIMIT');
cmp_ok($session->elapsed, '<', SOON, 'LIMIT: returns in time');
is($session->query("BEGIN; DECLARE c CURSOR FOR SELECT id FROM guarded; MOVE 700 IN c; CLOSE c; $question"),
	$answer, 'a cursor that is closed early');
is(TidrangeTest::answer_within($source, SOON, active_sessions(''), ''), '', 'and its sessions stop');
$session->query('COMMIT');
TidrangeTest::open_gate($source);

($out, $err) = $session->query('SELECT count(v) FROM worse');
like($err, qr/ERROR:  22P02: .*column "v" of foreign table "worse"/s, 'a bad value is an error');
is($session->query($question), $answer, 'and the next query is right');

# Very many scans leave no more behind than one.
is($session->query("SELECT sum((SELECT count(*) FROM ledger WHERE id > g OR random() > 2)) FROM generate_series(1, 20) g"),
	'59790', 'rescans');
$pair->remote_rests('one session rests');
is($pair->local_sql("SELECT 1"), '1', 'the server lives');

# ----- memory ---------------------------------------------------------------------------

# Private memory of a process in kB
sub memory
{
	my ($pid) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m;
	return $kb;
}

SKIP:
{
	skip 'no /proc', 3 unless -r '/proc/self/status';

	# What is not drained is not read: the remote sessions wait for us.
	$session->query("$question; BEGIN; DECLARE c CURSOR FOR SELECT id, v FROM wide");
	$session->query('MOVE 1 IN c');
	my $before = memory($session->pid);
	$session->query('MOVE 100 IN c');
	is( TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
			"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %' AND wait_event = 'ClientWrite'", '8'),
		'8', 'eight remote sessions wait until somebody reads');
	$session->query('MOVE 200 IN c');
	cmp_ok(memory($session->pid) - $before, '<', 8 * 1024, 'memory of eight streams is bounded');
	is($session->query('MOVE ALL IN c; SELECT count(*) FROM ledger; COMMIT'), '3000', 'the rest comes');
}
$pair->remote_rests('in the end the remote rests');
$pair->finish;
