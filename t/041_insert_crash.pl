# A parallel insert whose server crashes, at every step: after
# tidrange_fdw_recover_inserts() all rows are there or none, and nothing is left.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Test::More;
use TidrangeTest;
use Time::HiRes qw(sleep time);

my $test = TidrangeTest->new(
	destination_conf => <<'CONF');
max_prepared_transactions = 10
restart_after_crash = on
CONF
my $local = $test->destination;

$test->create_server;
$test->create_table('t', 2000);
$test->import_tables('t');
$test->local_sql('CREATE TABLE copy (id int PRIMARY KEY, v text)');
my $sum = $test->remote_sql(TidrangeTest::checksum('t'));

# The server has crashed and is back.
sub wait_for_restart
{
	my $deadline = time + TidrangeTest::PATIENCE;

	while (1)
	{
		my ($code, $out) = $local->psql('postgres', 'SELECT 1');
		return if $code == 0;
		die 'the server does not come back' if time > $deadline;
		sleep 0.05;
	}
}

# Crash at a point; how many parts are prepared afterwards.
sub crash_at
{
	my ($point, $arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($code, $out, $err) = $local->psql('postgres', <<"SQL");
TRUNCATE copy;
CHECKPOINT;
SET tidrange_fdw.insert_crash_point = '$point';
CALL tidrange_fdw_parallel_insert('INSERT INTO copy SELECT * FROM t', $arguments);
SQL

	isnt($code, 0, "$point: the server crashes");
	wait_for_restart();
	return $test->local_sql('SELECT count(*) FROM pg_prepared_xacts');
}

# The point, parts prepared after the crash, and whether the rows are there in the
# end.  How many parts are prepared when one worker dies depends on who is fastest.
foreach my $case (
	[ 'started 0', '0', 0 ],
	[ 'started 2', '0', 0 ],
	[ 'locked 0', '0', 0 ],
	[ 'locked 1', '0', 0 ],
	[ 'executed 0', '0', 0 ],
	[ 'executed 2', '0', 0 ],
	[ 'all executed', '0', 0 ],
	[ 'preparing 0', '[0-2]', 0 ],
	[ 'preparing 1', '[0-2]', 0 ],
	[ 'prepared 0', '[1-3]', 0 ],
	[ 'prepared 2', '[1-3]', 0 ],
	[ 'all prepared', '3', 0 ],
	[ 'finished 0', '2', 1 ],
	[ 'finished 1', '1', 1 ],
	[ 'finished 2', '0', 1 ],
	[ 'all finished', '0', 1 ],
  )
{
	my ($point, $prepared, $committed) = @$case;
	my $left = crash_at($point, 'workers => 3');

	like($left, qr/^$prepared$/, "$point: so many parts are left");
	my $actions = $test->local_sql('SELECT count(*), count(DISTINCT action), min(action) FROM tidrange_fdw_recover_inserts()');
	is($actions,
		$left == 0 ? '0|0|' : "$left|1|" . ($committed ? 'committed' : 'rolled back'),
		"$point: recovery ends them");
	is($test->local_sql(TidrangeTest::checksum('copy')), $committed ? $sum : '0 0',
		"$point: " . ($committed ? 'all rows' : 'no row'));
	is($test->local_sql('SELECT (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM tidrange_fdw_insert_marker)'),
		'0|0', "$point: nothing is left");
	$test->remote_rests("$point: the source is at rest");
}

# Whoever has made the call may end it, and nobody else but a superuser.
crash_at('all prepared', 'workers => 2');
$test->local_sql('CREATE ROLE alice LOGIN');
my ($code, $out) = $local->psql('postgres', 'SELECT count(*) FROM tidrange_fdw_recover_inserts()',
	extra_params => [ '-U', 'alice' ]);
is("$code $out", '0 0', 'another user ends nothing');
is($test->local_sql('SELECT count(*) FROM tidrange_fdw_recover_inserts()'), '2', 'the owner does');
like( $test->local_error('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT tidrange_fdw_recover_inserts()'),
	qr/ERROR:  55000/, 'not with an old snapshot');

# Not atomic: before the first commit nothing is there, between the commits a part.
is(crash_at('all executed', 'workers => 3, atomic => false'), '0', 'not atomic: nothing is prepared');
is($test->local_sql('SELECT count(*) FROM copy'), '0', 'not atomic: before the first commit nothing is inserted');
is(crash_at('all finished', 'workers => 3, atomic => false'), '0', 'not atomic: nothing is prepared');
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'not atomic: all is committed');

# One worker needs no preparing.
crash_at('committing 0', 'workers => 1');
is($test->local_sql('SELECT count(*) FROM copy'), '0', 'one worker, before its commit');
crash_at('committed 0', 'workers => 1');
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'one worker, after it');

# The server is stopped while the workers work.
{
	my $caller = $test->session;

	$test->local_sql(<<'SQL');
TRUNCATE copy;
CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM gate(1); RETURN new; END $$;
CREATE TRIGGER wait_here BEFORE INSERT ON copy FOR EACH ROW EXECUTE FUNCTION wait_here();
SQL
	TidrangeTest::shut_gate($local);
	$caller->start("CALL tidrange_fdw_parallel_insert('INSERT INTO copy SELECT * FROM t', 3)");
	TidrangeTest::wait_at_gate($local, 3);
	$local->restart;
	TidrangeTest::open_gate($local);
	is($test->local_sql('SELECT (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM copy)'),
		'0|0', 'a fast shutdown rolls all back');
}

# A worker is killed from outside.
{
	my $caller = $test->session;

	TidrangeTest::shut_gate($local);
	$caller->start("CALL tidrange_fdw_parallel_insert('INSERT INTO copy SELECT * FROM t', 3)");
	TidrangeTest::wait_at_gate($local, 3);
	kill 'KILL', $test->local_sql('SELECT worker_pid FROM tidrange_fdw_insert_progress WHERE worker = 1');
	my $deadline = time + TidrangeTest::PATIENCE;
	sleep 0.05 while !eval { $test->remote_sessions("state <> 'idle' AND application_name LIKE 'tidrange_fdw %'") eq '' } && time < $deadline;
	wait_for_restart();
	TidrangeTest::open_gate($local);
	$test->local_sql('SELECT tidrange_fdw_recover_inserts()');
	is($test->local_sql('SELECT (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM copy)'),
		'0|0', 'a killed worker: no row, nothing is left');
}

$test->finish;
