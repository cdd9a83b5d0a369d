# DDL that waits behind the leader's lock blocks every later lock request on the
# table.  Workers that come after it must not hang: they bow out, and the leader
# reads on.  Where it does not take part, there is an error.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(chunk_blocks => 8);
my $source = $pair->source;
my $destination = $pair->destination;

$pair->create_server;
$pair->create_table($_, 2000) foreach qw(one two three);
$pair->import_tables(qw(one two three));
$pair->local_sql(<<'SQL');
CREATE VIEW three_tables AS
    SELECT * FROM one UNION ALL SELECT * FROM two UNION ALL SELECT * FROM three;
-- May not run below a Gather, so that a Gather runs below a nested loop.
CREATE FUNCTION rounds(n int) RETURNS SETOF int
    LANGUAGE plpgsql PARALLEL RESTRICTED AS $$
BEGIN
    RETURN QUERY SELECT generate_series(1, n);
END $$;
SQL

my $reader = $pair->session;
my $ddl = $pair->remote_session;
my $sql = 'SELECT count(*), sum(id), sum(length(v)) FROM one';
my $answer = '2000|2001000|200000';

# Start DDL and wait until it stands in the queue.
sub queue_ddl
{
	my ($statement) = @_;

	$ddl->start($statement);
	my $waits = TidrangeTest::answer_within(
		$source,
		TidrangeTest::PATIENCE,
		'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $ddl->pid,
		'Lock');
	die "DDL does not wait: $statement" if $waits ne 'Lock';
	return;
}

# ----- queued between two statements of a transaction -------------------------

foreach my $statement (
	'ALTER TABLE one ADD COLUMN z int; ALTER TABLE one DROP COLUMN z',
	'REINDEX TABLE one',
	'REINDEX INDEX one_pkey',
	'VACUUM FULL one',
	'TRUNCATE two; INSERT INTO two SELECT i, repeat(\'x\', 100) FROM generate_series(1, 2000) i')
{
	my ($name) = $statement =~ /^(\w+(?: FULL| TABLE| INDEX)?)/;
	my ($out, $err);

	$reader->query(TidrangeTest::workers(3)
		  . 'SET parallel_leader_participation = on');
	$reader->query('BEGIN; SELECT count(*) FROM three_tables');
	queue_ddl($statement);

	# a new statement, new workers
	is($reader->query($sql), $answer, "$name: one table, exact");
	cmp_ok($reader->elapsed, '<', 10, "$name: it does not hang");
	is($reader->query('SELECT count(*), sum(id) FROM three_tables'),
		'6000|6003000', "$name: Parallel Append, exact");
	cmp_ok($reader->elapsed, '<', 10, "$name: nor does that");
	is($reader->query('SET LOCAL max_parallel_workers_per_gather = 0;' . $sql),
		$answer, "$name: a serial plan, exact");

	# workers of the second and third round are late
	$reader->query('SET LOCAL max_parallel_workers_per_gather = 3;'
		  . 'SET LOCAL enable_material = off; SET LOCAL enable_hashjoin = off;'
		  . 'SET LOCAL enable_mergejoin = off');
	is( $reader->query(
			'SELECT count(*) FROM rounds(3) g JOIN one ON one.id > g'
		),
		'5994',
		"$name: rescans, exact");

	# The leader does not read: exact or an error, but no hang.  (Workers are
	# patient, so not for every kind of DDL.)
	if ($statement !~ /^(ALTER|REINDEX TABLE)/)
	{
		$reader->query('ROLLBACK');
		$ddl->finish;
		next;
	}
	$reader->query('SET LOCAL parallel_leader_participation = off');
	($out, $err) = $reader->query($sql);
	if ($err eq '')
	{
		is($out, $answer, "$name: leader participation off, exact");
	}
	else
	{
		like($err, qr/ERROR:  55P03:/,
			"$name: leader participation off, an error");
		is($out, '', "$name: no rows beside the error");
	}
	cmp_ok($reader->elapsed, '<', 20, "$name: no hang either");

	$reader->query('ROLLBACK');
	($out, $err) = $ddl->finish;
	is($err, '', "$name: the DDL runs when the reader has ended");
	$pair->remote_rests("$name: nothing is left");
}
is($reader->query('SET parallel_leader_participation = on;' . $sql),
	$answer, 'and the rows are what they were');

# ----- queued while a scan runs ------------------------------------------------

# Every second round starts new workers; the DDL comes in the first one.
foreach my $statement ('ALTER TABLE one ADD COLUMN z int; ALTER TABLE one DROP COLUMN z',
	'REINDEX TABLE one')
{
	my ($name) = $statement =~ /^(\w+ TABLE)/;

	$name .= ' during a scan';

	$reader->query('SET enable_material = off; SET enable_hashjoin = off;'
		  . 'SET enable_mergejoin = off');
	my $join =
	  'SELECT count(*) FROM rounds(2) g JOIN one ON one.id > g AND gate(one.id)';
	like(
		$reader->query("EXPLAIN (COSTS OFF) $join"),
		qr/Nested Loop.*Gather.*Parallel Foreign Scan/s,
		"$name: a plan that starts workers twice");
	TidrangeTest::shut_gate($destination);
	$reader->start($join);
	TidrangeTest::wait_at_gate($destination, 1);
	queue_ddl($statement);
	TidrangeTest::open_gate($destination);
	is(scalar($reader->finish), '3997', "$name: exact");
	cmp_ok($reader->elapsed, '<', 15, "$name: it does not hang");
	$ddl->finish;
}
$reader->query('RESET ALL');

# ----- DDL before the reader ---------------------------------------------------

# The reader waits as any query would, and reads what the DDL has left.
my $holder = $pair->remote_session;

$reader->query(TidrangeTest::workers(3) . $sql);
$holder->query('BEGIN; SELECT count(*) FROM one');
queue_ddl(q(ALTER TABLE one ALTER v TYPE text USING v || 'y'));
$reader->start($sql);
is( TidrangeTest::answer_within(
		$source,
		TidrangeTest::PATIENCE,
		"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %' AND wait_event_type = 'Lock'",
		'1'),
	'1',
	'only the leader waits in the queue');
$holder->query('COMMIT');
$ddl->finish;
is(scalar($reader->finish), '2000|2001000|202000', 'it reads the altered table');

# ----- a cycle that the remote cannot see --------------------------------------

# A transaction that has locked `three` waits for `one`, which we read; we ask
# for `three` on a connection of its own.
$reader->query('BEGIN; DECLARE c CURSOR FOR SELECT id FROM one; MOVE 1 IN c');
$holder->query('BEGIN; LOCK TABLE three IN ACCESS EXCLUSIVE MODE');
$holder->start('LOCK TABLE one IN ACCESS EXCLUSIVE MODE');
my ($out, $err) = $reader->query('SELECT count(*) FROM three');
like(
	$err,
	qr/ERROR:  (55P03|40P01):/,
	'a cycle through two connections ends with an error');
cmp_ok($reader->elapsed, '<', 20, 'in time');
$reader->query('ROLLBACK');
$holder->finish;
$holder->query('ROLLBACK');
is($reader->query('SELECT count(*) FROM three'), '2000', 'the session goes on');
$pair->remote_rests('nothing is left');

$pair->finish;
