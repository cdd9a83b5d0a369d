# INSERT ... SELECT that reads in parallel, beside other sessions: triggers that
# somebody makes meanwhile, conflicts with rows that are not committed, cancels and
# processes that die.  Whatever ends it leaves nothing behind.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

use constant SOON => 2;

my $pair = TidrangeTest->new(chunk_blocks => 8);
my $source = $pair->source;
my $destination = $pair->destination;

$pair->create_guarded;
$pair->local_sql(<<'SQL');
CREATE TABLE target (id int PRIMARY KEY, v text);
CREATE TABLE seen (id int);
CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (1000) TO (10000)
    PARTITION BY RANGE (id);
CREATE TABLE parts_leaf PARTITION OF parts_high DEFAULT;
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seen VALUES (NEW.id);
    RETURN NEW;
END $$;
SQL

my $trigger =
  'CREATE TRIGGER see BEFORE INSERT ON parts_leaf FOR EACH ROW EXECUTE FUNCTION see()';
my $parallel = qr/Insert on .*Gather.*Workers Planned: 2.*Parallel Foreign Scan/s;
my $session = $pair->session;
my $other = $pair->session;
my ($out, $err);

$session->query(TidrangeTest::workers(2));

# Is the session waiting for a lock?
sub waits_for_lock
{
	my ($waiting, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(
		TidrangeTest::answer_within(
			$destination,
			TidrangeTest::PATIENCE,
			"SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = "
			  . $waiting->pid,
			'1'),
		'1', $name);
}

# ----- a trigger on a partition ------------------------------------------------

$session->query('SET plan_cache_mode = force_generic_plan');
$session->query('PREPARE fill AS INSERT INTO parts SELECT * FROM guarded');
like($session->query('EXPLAIN (COSTS OFF) EXECUTE fill'),
	$parallel, 'the prepared plan is parallel');

TidrangeTest::shut_gate($source);
$session->start('EXECUTE fill');
TidrangeTest::wait_at_gate($source, 3);
$other->start($trigger);
waits_for_lock($other, 'a new trigger waits for the insert');
TidrangeTest::open_gate($source);
($out, $err) = $session->finish;
is($err, '', 'the insert is not disturbed');
$other->finish;
is( $session->query('SELECT count(*), sum(id), (SELECT count(*) FROM seen) FROM parts'),
	'3000|4501500|0', 'all rows, none through the trigger');

# The plan is still the old one: nothing has invalidated it.
$session->query('TRUNCATE parts; EXECUTE fill');
is( $session->query('SELECT count(*), sum(id), (SELECT count(*) FROM seen) FROM parts'),
	'3000|4501500|2001', 'the old plan runs the trigger');

# One that is made but not committed is waited for.
$session->query('DROP TRIGGER see ON parts_leaf; TRUNCATE parts, seen; EXECUTE fill; TRUNCATE parts');
$other->query("BEGIN; $trigger");
$session->start('EXECUTE fill');
waits_for_lock($session, 'the insert waits for a trigger in the making');
$other->query('COMMIT');
($out, $err) = $session->finish;
is($err, '', 'the insert goes on');
is( $session->query('SELECT count(*), sum(id), (SELECT count(*) FROM seen) FROM parts'),
	'3000|4501500|2001', 'with the trigger');
$session->query('RESET plan_cache_mode');

# A partition is attached while rows are inserted, deep enough for nobody to know of
# it before, and with a trigger.  Its rows can no longer be inserted as those before.
$session->query(<<'SQL');
CREATE TABLE deep (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE deep_low PARTITION OF deep FOR VALUES FROM (0) TO (2000);
CREATE TABLE deep_high PARTITION OF deep FOR VALUES FROM (2000) TO (10000)
    PARTITION BY RANGE (id);
CREATE TABLE deep_2 PARTITION OF deep_high FOR VALUES FROM (2000) TO (2001);
CREATE TABLE late (id int, v text);
CREATE TRIGGER see BEFORE INSERT ON late FOR EACH ROW EXECUTE FUNCTION see();
SET max_parallel_workers_per_gather = 0;
SQL
TidrangeTest::shut_gate($source);
$session->start('INSERT INTO deep SELECT * FROM guarded');
TidrangeTest::wait_at_gate($source, 1);
$other->query('ALTER TABLE deep_high ATTACH PARTITION late FOR VALUES FROM (2001) TO (10000)');
TidrangeTest::open_gate($source);
($out, $err) = $session->finish;
like($err, qr/ERROR: +\w*:? *partition "late" was attached while rows were inserted/,
	'a partition that comes too late');
like($err, qr/DETAIL: +Its rows cannot be inserted in batches: "late" has a trigger/, 'why it matters');
is($session->query('SELECT count(*) FROM deep'), '0', 'no row is left');
$session->query('TRUNCATE seen; INSERT INTO deep SELECT * FROM guarded; RESET max_parallel_workers_per_gather');
is($session->query('SELECT count(*), (SELECT count(*) FROM seen) FROM deep'),
	'3000|1000', 'the next one runs the trigger');
$session->query('TRUNCATE seen; ' . TidrangeTest::workers(2));

# ----- conflicts with rows of others --------------------------------------------

my $insert = 'INSERT INTO target SELECT * FROM ledger';

like($session->query("EXPLAIN (COSTS OFF) $insert ON CONFLICT DO NOTHING"),
	$parallel, 'ON CONFLICT DO NOTHING is parallel');
foreach my $end (qw(COMMIT ROLLBACK))
{
	$other->query("BEGIN; INSERT INTO target SELECT i, 'other' FROM generate_series(1000, 1009) i");
	$session->start("$insert ON CONFLICT DO NOTHING");
	waits_for_lock($session, "ON CONFLICT DO NOTHING waits before $end");
	$other->query($end);
	($out, $err) = $session->finish;
	is($err, '', "ON CONFLICT DO NOTHING after $end: no error");
	is( $session->query("SELECT count(*), sum(id), count(*) FILTER (WHERE v = 'other') FROM target; TRUNCATE target"),
		'3000|4501500|' . ($end eq 'COMMIT' ? 10 : 0),
		"ON CONFLICT DO NOTHING after $end: the rows");
}
$other->query("BEGIN; INSERT INTO target VALUES (2000, 'other')");
$session->start($insert);
waits_for_lock($session, 'an insert waits for the key of another one');
$other->query('COMMIT');
($out, $err) = $session->finish;
like($err, qr/ERROR:  23505: /, 'and fails when that is committed');
is($session->query('SELECT id, v FROM target; TRUNCATE target'),
	'2000|other', 'nothing of it stays');

# ----- ended in the middle -------------------------------------------------------

sub remote_pid
{
	my ($role) = @_;
	return $pair->remote_sql(
		"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %$role%' AND state = 'active' ORDER BY 1 LIMIT 1"
	);
}

foreach my $case (
	[ 'cancel', qr/57014: /,
		sub { $pair->local_sql('SELECT pg_cancel_backend(' . $session->pid . ')') } ],
	[ 'end of a worker\'s remote session', qr/08006: /,
		sub { $pair->remote_sql('SELECT pg_terminate_backend(' . remote_pid('worker') . ')') } ],
	[ 'end of the leader\'s remote session', qr/08006: /,
		sub { $pair->remote_sql('SELECT pg_terminate_backend(' . remote_pid('leader') . ')') } ],
	[ 'end of a local worker', qr/57P01: /,
		sub { $pair->local_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' ORDER BY pid LIMIT 1") } ])
{
	my ($name, $error, $act) = @$case;

	foreach my $around ('', 'savepoint, ')
	{
		$session->query('BEGIN; INSERT INTO target VALUES (-1, NULL); SAVEPOINT s')
		  if $around;
		TidrangeTest::shut_gate($source);
		$session->start('INSERT INTO target SELECT * FROM guarded');
		TidrangeTest::wait_at_gate($source, 3);
		my $start = Time::HiRes::time();
		$act->();
		($out, $err) = $session->finish;
		cmp_ok(Time::HiRes::time() - $start,
			'<', SOON, "$around$name: returns in time");
		like($err, qr/ERROR:  $error/, "$around$name: the error");
		TidrangeTest::open_gate($source);
		if ($around)
		{
			($out, $err) =
			  $session->query('ROLLBACK TO s; COMMIT; SELECT count(*), sum(id) FROM target');
			is($out, '1|-1', "$around$name: what was before it stays, no more");
			is($err, '', "$around$name: the transaction can commit");
		}
		$pair->remote_rests("$around$name: the remote rests");
		is($session->query('DELETE FROM target WHERE id = -1; SELECT count(*) FROM target'),
			'0', "$around$name: nothing stays");
		($out, $err) = $session->query("$insert; SELECT count(*), sum(id) FROM target; TRUNCATE target");
		is($out, '3000|4501500', "$around$name: the next one is right");
	}
}

# A remote that gives the leader its session, and no more
$pair->remote_sql('ALTER ROLE reader CONNECTION LIMIT 1');
$session->query('SELECT tidrange_fdw_disconnect_all()');
is($session->query("$insert; SELECT count(*), sum(id) FROM target"),
	'3000|4501500', 'one remote session is enough');
$pair->remote_rests('the remote rests in the end');
$pair->finish;
