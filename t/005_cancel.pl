# Whatever ends a scan early, a cancel, a timeout, a process that dies, or a
# caller who has enough rows: the local session returns at once, the remote ones
# stop soon after, and the next query is right.

use strict;
use warnings FATAL => 'all';

use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(chunk_blocks => 8);
my $source = $pair->source;
my $destination = $pair->destination;

$pair->create_guarded;

use constant SOON => 2;
my $question = 'SELECT count(*), sum(id) FROM ledger';
my $answer = '3000|4501500';
my $guarded = 'SELECT count(*), sum(id) FROM guarded';
my $slow = 'SELECT count(*) FROM ledger WHERE pg_sleep(0.001) IS NOT NULL';
my $session = $pair->session;

# The session's last query ended soon, the remote rests, and the next query of
# the session is right.
sub all_is_well
{
	my ($session, $allowed, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	cmp_ok($session->elapsed, '<', $allowed, "$name: returns in time");
	$pair->remote_rests("$name: the remote rests");
	is($session->query($question), $answer, "$name: the next query is right");
	return;
}

# ----- statement_timeout at many moments ---------------------------------------

foreach my $run (1 .. 40)
{
	my $timeout = 5 + int(295 * ($run - 1) / 39);
	my $workers = $run % 4 == 0 ? 0 : 3;
	my $name = "timeout after $timeout ms, $workers workers";
	my ($out, $err);

	# A new session connects, an old one has a connection.
	if ($run % 5 == 0)
	{
		$session->quit;
		$session = $pair->session;
	}
	$session->query(TidrangeTest::workers($workers)
		  . 'SET parallel_leader_participation = '
		  . ($run % 3 ? 'on' : 'off'));
	($out, $err) = $session->query(
		"SET statement_timeout = $timeout; $slow; RESET statement_timeout");
	like($err, qr/ERROR:  57014: canceling statement due to statement timeout/,
		"$name: the error");
	all_is_well($session, $timeout / 1000 + SOON, $name);
}

# ----- the same inside a savepoint ----------------------------------------------

$session->query(
	TidrangeTest::workers(3) . 'RESET parallel_leader_participation');
$session->query("BEGIN; $question");
foreach my $run (1 .. 15)
{
	my $timeout = 5 + 12 * $run;
	my ($out, $err) = $session->query(
		"SAVEPOINT s; SET LOCAL statement_timeout = $timeout; $slow");

	like($err, qr/57014/, "savepoint, timeout after $timeout ms: the error");
	is( $session->query("ROLLBACK TO s; $question"),
		$answer,
		"savepoint, timeout after $timeout ms: the transaction goes on");
}
$session->query('COMMIT');
$pair->remote_rests('savepoint: the remote rests');

# A command that waits for a lock stops with the subtransaction, while the
# transaction around it goes on.
{
	my $blocker = $pair->remote_session;
	my $fresh = $pair->session;
	my ($out, $err);

	# The size is known then: it is the scan that waits, not the planner.
	$fresh->query('SELECT count(*) FROM ledger');
	$blocker->query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
	$fresh->query("BEGIN; SAVEPOINT s; SET LOCAL statement_timeout = 300");
	($out, $err) = $fresh->query('SELECT count(*) FROM ledger');
	like($err, qr/57014/, 'a wait for a lock, in a savepoint: the error');
	is( TidrangeTest::answer_within(
			$pair->source, 2, TidrangeTest::remote_sessions_query("wait_event_type = 'Lock'"), ''),
		'', 'a wait for a lock, in a savepoint: the remote waits no more');
	$blocker->query('COMMIT');
	is($fresh->query('ROLLBACK TO s; SELECT count(*), sum(id) FROM ledger; COMMIT'),
		$answer, 'a wait for a lock, in a savepoint: the transaction goes on');
	$fresh->quit;
	$blocker->quit;
}

# ----- cancels while everybody waits for the remote -----------------------------

# Start a scan of `guarded`; back when that many remote sessions are at the gate.
sub start_guarded
{
	my ($session, $participants, $sql) = @_;

	TidrangeTest::shut_gate($source);
	$session->start($sql // $guarded);
	TidrangeTest::wait_at_gate($source, $participants);
	return;
}

# Our remote sessions of a role, by process.
sub remote_pids
{
	my ($role) = @_;
	return split /\n/,
	  $pair->remote_sql(
		"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %$role%' AND state = 'active' ORDER BY 1"
	  );
}

sub local_workers
{
	return split /\n/,
	  $pair->local_sql(
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' ORDER BY 1"
	  );
}

like($session->query("EXPLAIN (COSTS OFF) $guarded"),
	qr/Workers Planned: 3\n.*Parallel Foreign Scan/s,
	'the guarded table is read in parallel');

my @cases = (
	[ 'cancel of the leader', qr/57014: canceling statement due to user request/,
		sub { $pair->local_sql('SELECT pg_cancel_backend(' . $session->pid . ')') } ],
	[ 'cancel of the leader\'s remote query', qr/57014: /,
		sub { $pair->remote_sql('SELECT pg_cancel_backend(' . (remote_pids('leader'))[0] . ')') } ],
	[ 'cancel of a worker\'s remote query', qr/57014: /,
		sub { $pair->remote_sql('SELECT pg_cancel_backend(' . (remote_pids('worker'))[0] . ')') } ],
	[ 'end of the leader\'s remote session', qr/08006: /,
		sub { $pair->remote_sql('SELECT pg_terminate_backend(' . (remote_pids('leader'))[0] . ')') } ],
	[ 'end of a worker\'s remote session', qr/08006: /,
		sub { $pair->remote_sql('SELECT pg_terminate_backend(' . (remote_pids('worker'))[0] . ')') } ],
	[ 'end of a local worker', qr/57P01: .*parallel worker/s,
		sub { $pair->local_sql('SELECT pg_terminate_backend(' . (local_workers())[0] . ')') } ]);

foreach my $case (@cases)
{
	my ($name, $error, $act) = @$case;
	my ($out, $err);

	start_guarded($session, 4);
	my $start = Time::HiRes::time();
	$act->();
	($out, $err) = $session->finish;
	cmp_ok(Time::HiRes::time() - $start, '<', SOON, "$name: returns in time");
	is($out, '', "$name: no rows");
	like($err, qr/ERROR:  $error/, "$name: the error");
	$pair->remote_rests("$name: the remote rests");
	TidrangeTest::open_gate($source);
	is($session->query($question), $answer, "$name: the next query is right");
	is($session->query($guarded), $answer, "$name: so is the same one");
}

# A plan without workers
$session->query('SET max_parallel_workers_per_gather = 0');
foreach my $case (@cases[ 0, 1, 3 ])
{
	my ($name, $error, $act) = @$case;
	my ($out, $err);

	start_guarded($session, 1);
	my $start = Time::HiRes::time();
	$act->();
	($out, $err) = $session->finish;
	cmp_ok(Time::HiRes::time() - $start,
		'<', SOON, "serial, $name: returns in time");
	like($err, qr/ERROR:  $error/, "serial, $name: the error");
	$pair->remote_rests("serial, $name: the remote rests");
	TidrangeTest::open_gate($source);
	is($session->query($question), $answer,
		"serial, $name: the next query is right");
}

# ----- remote sessions that die between queries ---------------------------------

my $end_leader =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'";

foreach my $workers (0, 3)
{
	my ($out, $err);

	$session->query(TidrangeTest::workers($workers) . $question);
	$pair->remote_sql($end_leader);
	is($session->query($question), $answer,
		"$workers workers: an idle session that died is replaced");
	$session->query("BEGIN; $question");
	$pair->remote_sql($end_leader);
	($out, $err) = $session->query($question);
	like($err, qr/ERROR:  08\w{3}: /,
		"$workers workers: one that held the snapshot is not");
	is($out, '', "$workers workers: no rows");
	$session->query('ROLLBACK');
	all_is_well($session, SOON, "$workers workers, afterwards");
}

# ----- a remote that has stopped answering --------------------------------------

foreach my $workers (0, 3)
{
	my $name = "stopped remote, $workers workers";
	my @stopped;
	my ($out, $err);

	$session->query(TidrangeTest::workers($workers));
	start_guarded($session, $workers ? 4 : 1);
	@stopped = remote_pids('');
	kill 'STOP', @stopped;
	my $start = Time::HiRes::time();
	$pair->local_sql('SELECT pg_cancel_backend(' . $session->pid . ')');
	($out, $err) = $session->finish;
	cmp_ok(Time::HiRes::time() - $start, '<', SOON, "$name: returns in time");
	like($err, qr/ERROR:  57014: /, "$name: the error");
	is($session->query($question), $answer, "$name: the next query is right");
	kill 'CONT', @stopped;
	TidrangeTest::open_gate($source);
	$pair->remote_rests("$name: the remote rests when it goes on");
}

# ----- enough rows ---------------------------------------------------------------

# The others wait for rows that do not come; they must be told.  (A worker's rows
# reach the leader only when they fill a part of the queue, so enough of them must
# come at once.)
foreach my $participation (qw(on off))
{
	my $name = "leader participation $participation";

	$session->query(TidrangeTest::workers(3)
		  . "SET parallel_leader_participation = $participation");
	foreach my $query (
		'SELECT count(*) FROM (SELECT * FROM guarded LIMIT 5) q',
		'SELECT count(*) FROM (SELECT id FROM guarded OFFSET 3 LIMIT 2) q',
		'SELECT EXISTS (SELECT FROM guarded WHERE v IS NOT NULL)::int')
	{
		like($session->query("EXPLAIN (COSTS OFF) $query"),
			qr/Gather.*Parallel Foreign Scan/s,
			"$name: a parallel plan for $query");
		TidrangeTest::shut_gate($source);
		like($session->query($query), qr/^[125]$/, "$name: its result");
		cmp_ok($session->elapsed, '<', 2 * SOON, "$name: it returns in time");
		$pair->remote_rests("$name: the remote rests");
		TidrangeTest::open_gate($source);
		is($session->query($guarded), $answer,
			"$name: the next query is right");
	}
}
$session->query('RESET parallel_leader_participation');

# Cursors and loops, inside their transaction
foreach my $workers (0, 3)
{
	my $active = TidrangeTest::remote_sessions_query("state = 'active'");

	$session->query(TidrangeTest::workers($workers));
	TidrangeTest::shut_gate($source);
	$session->query('BEGIN; DECLARE c CURSOR FOR SELECT id FROM guarded');
	is($session->query('FETCH 2 FROM c'), "1\n2",
		"$workers workers: two rows from a cursor");
	is($session->query('FETCH 1 FROM c'), '3', "$workers workers: and one more");
	$session->query('CLOSE c');
	is(TidrangeTest::answer_within($source, SOON, $active, ''),
		'', "$workers workers: a closed cursor stops the remote");
	is($session->query($question), $answer,
		"$workers workers: the transaction goes on");
	$session->query(<<'SQL');
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT id FROM guarded LOOP
        EXIT WHEN r.id >= 5;
    END LOOP;
END $$
SQL
	is(TidrangeTest::answer_within($source, SOON, $active, ''),
		'', "$workers workers: a loop that was left stops the remote");
	is($session->query("$question; COMMIT"),
		$answer, "$workers workers: the transaction goes on after that");
	TidrangeTest::open_gate($source);
}

# Shutdown is not the end: all rows come after many a FETCH, and in a loop.
is( $session->query(<<'SQL'),
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM ledger;
FETCH 2 FROM c;
MOVE 2995 IN c;
FETCH ALL FROM c;
COMMIT;
SQL
	"1\n2\n2998\n2999\n3000", 'a cursor goes on after each FETCH');
is( $session->query(<<'SQL'), '3000',
DO $$
DECLARE
    r record;
    n int := 0;
BEGIN
    FOR r IN SELECT id FROM ledger LOOP
        n := n + 1;
    END LOOP;
    SELECT n + count(*) - 3000 INTO n FROM ledger;
    PERFORM set_config('test.n', n::text, false);
END $$;
SELECT current_setting('test.n')
SQL
	'a loop sees all rows, SELECT INTO too');

# ----- waiting for a lock, and for a connection ----------------------------------

my $holder = $pair->remote_session;
foreach my $workers (0, 3)
{
	my ($out, $err);

	$session->query(TidrangeTest::workers($workers) . $question);
	$holder->query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
	($out, $err) =
	  $session->query("SET statement_timeout = 300; $question; RESET statement_timeout");
	like($err, qr/57014/, "lock wait, $workers workers: the error");
	cmp_ok($session->elapsed, '<', 0.3 + SOON,
		"lock wait, $workers workers: returns in time");
	$pair->remote_rests("lock wait, $workers workers: the remote rests");
	$holder->query('COMMIT');
	is($session->query($question), $answer,
		"lock wait, $workers workers: the next query is right");
}

# A server that accepts and never says a word.
my $mute = IO::Socket::INET->new(
	Listen => 5,
	LocalAddr => '127.0.0.1',
	Proto => 'tcp') or die "could not listen: $!";

$pair->create_server(
	name => 'mute',
	options => { host => '127.0.0.1', port => $mute->sockport });
$pair->local_sql('CREATE FOREIGN TABLE mute (id int) SERVER mute');
foreach my $workers (0, 3)
{
	my $fresh = $pair->session;
	my ($out, $err);

	$fresh->query(TidrangeTest::workers($workers));
	($out, $err) = $fresh->query('SET statement_timeout = 300; SELECT * FROM mute');
	like($err, qr/57014/, "mute server, $workers workers: the error");
	cmp_ok($fresh->elapsed, '<', 0.3 + SOON,
		"mute server, $workers workers: returns in time");
	($out, $err) = $fresh->query('SET statement_timeout = 0; EXPLAIN SELECT * FROM mute');
	is($err, '', "mute server, $workers workers: EXPLAIN does not fail");
	cmp_ok($fresh->elapsed, '<', 5, "mute server, $workers workers: nor hang");
	$fresh->query('EXPLAIN SELECT * FROM mute');
	cmp_ok($fresh->elapsed, '<', 1,
		"mute server, $workers workers: it does not ask again");
	($out, $err) = $fresh->query('SET statement_timeout = 700; SELECT * FROM mute');
	like($err, qr/57014/, "mute server, $workers workers: the error when planned");
	cmp_ok($fresh->elapsed, '<', 0.7 + SOON,
		"mute server, $workers workers: and it returns in time");
	$fresh->query("SET statement_timeout = 0");
	is($fresh->query($question), $answer,
		"mute server, $workers workers: another server answers");
	$fresh->quit;
}
$pair->local_sql("ALTER SERVER mute OPTIONS (ADD connect_timeout '1')");
my ($out, $err) = $session->query('SELECT * FROM mute');
like($err, qr/ERROR:  08001: .*mute.*timeout expired/s,
	'connect_timeout is obeyed');
cmp_ok($session->elapsed, '<', 5, 'and in time');

all_is_well($session, 5, 'in the end');
$pair->finish;
