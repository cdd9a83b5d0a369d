# A remote that gives fewer connections than there are participants: the exact
# result or an error, never fewer rows, and no hang.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(chunk_blocks => 8);

$pair->create_table($_, 2000) foreach qw(one two three);
$pair->remote_sql('CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader');
$pair->create_server(mapping => { user => 'reader' });
$pair->import_tables(qw(one two three));
$pair->local_sql(<<'SQL');
CREATE VIEW three_tables AS
    SELECT * FROM one UNION ALL SELECT * FROM two UNION ALL SELECT * FROM three;
CREATE TABLE local_ids AS SELECT generate_series(1, 2000) AS id;
ALTER TABLE local_ids SET (parallel_workers = 2);
ANALYZE local_ids;
SQL

# A session with so many connections allowed to it, counted from none.
sub limited_session
{
	my ($limit) = @_;
	my $session;

	$pair->remote_sql("ALTER ROLE reader CONNECTION LIMIT $limit");
	$pair->remote_is_left("limit $limit: no connection is in use");
	$session = $pair->session;
	$session->query("SET statement_timeout = '50s'");
	return $session;
}

# The answer is `expected`, or an error with one of the codes of a refused
# connection; says which.
sub exact_or_error
{
	my ($session, $sql, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($out, $err) = $session->query($sql);

	if ($err ne '')
	{
		like($err, qr/ERROR:  53300:/, "$name (refused)");
		is($out, '', "$name: no rows beside the error");
		return 'error';
	}
	is($out, $expected, "$name (exact)");
	return 'exact';
}

# ----- limits crossed with leader participation -------------------------------

foreach my $limit (1, 2, 3)
{
	my $session = limited_session($limit);

	foreach my $participation (qw(on off))
	{
		my $name = "limit $limit, leader participation $participation";
		my $outcome;

		$session->query(TidrangeTest::workers(3)
			  . "SET parallel_leader_participation = $participation");
		foreach my $table (qw(one three_tables))
		{
			my $rows = $table eq 'one' ? 2000 : 6000;
			my $sum = $rows / 2000 * 2001000;
			my $sql =
			  "SELECT count(*), sum(id), sum(length(v)) FROM $table";

			like($session->query("EXPLAIN (COSTS OFF) $sql"),
				qr/Workers Planned: [123]\n.*Parallel Foreign Scan/s,
				"$name, $table: the plan is parallel");
			# Where nobody can read, each run waits for a while.
			foreach my $run (1 .. ($participation eq 'on' || $limit > 1 ? 3 : 1))
			{
				$outcome = exact_or_error($session, $sql,
					"$rows|$sum|" . 100 * $rows, "$name, $table, run $run");
			}

			# With the leader reading, or one worker let in, there is no
			# excuse.
			is($outcome, 'exact', "$name, $table: no error")
			  if $participation eq 'on' || $limit > 1;
		}
	}
	$session->quit;
}

# ----- a parallel hash join with refused workers ------------------------------

foreach my $participation (qw(on off))
{
	my $session = limited_session(2);
	my $sql =
	  'SELECT count(*), sum(one.id) FROM one JOIN local_ids USING (id)';
	my $name = "parallel hash join, leader participation $participation";

	$session->query(TidrangeTest::workers(3)
		  . "SET parallel_leader_participation = $participation;"
		  . 'SET enable_mergejoin = off; SET enable_nestloop = off');
	like($session->query("EXPLAIN (COSTS OFF) $sql"),
		qr/Parallel Hash Join.*Parallel Foreign Scan/s,
		"$name: the plan");
	foreach my $run (1 .. 3)
	{
		exact_or_error($session, $sql, '2000|2001000', "$name, run $run");
	}

	# Two foreign tables: one is hashed, the other probes.
	$sql = 'SELECT count(*), sum(one.id) FROM one JOIN two USING (id)';
	like($session->query("EXPLAIN (COSTS OFF) $sql"),
		qr/Parallel Hash Join.*Parallel Foreign Scan.*Parallel Foreign Scan/s,
		"$name: the plan for two foreign tables");
	foreach my $run (1 .. 3)
	{
		exact_or_error($session, $sql, '2000|2001000',
			"$name of two foreign tables, run $run");
	}
	$session->quit;
}

# ----- one connection for a whole session -------------------------------------

my $single = limited_session(1);

$single->query('SET max_parallel_workers_per_gather = 0');
foreach my $join (qw(hashjoin mergejoin nestloop))
{
	my $off = join('; ', map { "SET enable_$_ = " . ($_ eq $join ? 'on' : 'off') }
		  qw(hashjoin mergejoin nestloop));

	$single->query("$off; SET enable_material = on");
	is( $single->query('SELECT count(*), sum(a.id) FROM one a JOIN one b USING (id)'),
		'2000|2001000',
		"limit 1: self-join by $join");
	is( $single->query('SELECT count(*), sum(a.id) FROM one a JOIN two b USING (id)'),
		'2000|2001000',
		"limit 1: two tables joined by $join");
}

# The inner side of a nested loop is read again for each outer row.
$single->query('SET enable_material = off; SET enable_memoize = off');
is( $single->query(
		'SELECT count(*) FROM one a JOIN two b ON b.id = a.id + 1 WHERE a.id <= 20'
	),
	'20',
	'limit 1: rescans of one table while another is read');
$single->query('RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material');

is( $single->query(<<'SQL'), '200|2001000',
DO $$
DECLARE
    r record;
    n int := 0;
    s bigint;
BEGIN
    FOR r IN SELECT id FROM one WHERE id <= 200 LOOP
        PERFORM FROM two WHERE id = r.id;
        IF FOUND THEN
            n := n + 1;
        END IF;
        SELECT sum(id) INTO s FROM three;
    END LOOP;
    PERFORM set_config('result.n', n || '|' || s, false);
END $$;
SELECT current_setting('result.n')
SQL
	'limit 1: a plpgsql loop over one table that queries two others');

# Two cursors, read in turn.
is( $single->query(<<'SQL'),
BEGIN;
DECLARE a CURSOR FOR SELECT id FROM one ORDER BY id;
DECLARE b CURSOR FOR SELECT id FROM one;
DECLARE c CURSOR FOR SELECT id FROM two WHERE id > 1000;
MOVE 1 IN a;
MOVE 1 IN b;
MOVE 1 IN c;
FETCH 1 FROM a;
MOVE ALL IN b;
MOVE ALL IN c;
SELECT count(*) FROM three;
FETCH 1 FROM a;
COMMIT;
SQL
	"2\n2000\n3", 'limit 1: cursors read in turn');
$single->query('RESET ALL;' . TidrangeTest::workers(3));
is($single->query('SELECT count(*), sum(id) FROM three_tables'),
	'6000|6003000', 'limit 1: three tables, parallel plan, leader alone');
is( $pair->remote_sql(
		"SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'"),
	1,
	'one connection was enough');
$single->quit;

# ----- no connection at all ---------------------------------------------------

my $none = limited_session(0);

foreach my $workers (0, 3)
{
	my ($out, $err);

	$none->query(TidrangeTest::workers($workers));
	($out, $err) = $none->query('SELECT count(*) FROM one');
	is($out, '', "limit 0, $workers workers: no rows");
	like($err, qr/ERROR:  53300: .*too many connections/s,
		"limit 0, $workers workers: the remote's error");
}
$none->quit;

# ----- no worker at all -------------------------------------------------------

my $alone = limited_session(-1);

foreach my $participation (qw(on off))
{
	$alone->query(TidrangeTest::workers(3)
		  . "SET parallel_leader_participation = $participation;"
		  . 'DEALLOCATE ALL; PREPARE q AS SELECT count(*), sum(id) FROM three_tables;'
		  . 'SET plan_cache_mode = force_generic_plan; EXECUTE q');
	is( $alone->query('SET max_parallel_workers = 0; EXECUTE q'),
		'6000|6003000',
		"no worker is launched, leader participation $participation");
	is($alone->query('SET max_parallel_workers = 1; EXECUTE q'),
		'6000|6003000',
		"one worker is launched, leader participation $participation");
	$alone->query('RESET max_parallel_workers');
}
$alone->quit;
$pair->remote_is_left('nothing is left');

$pair->finish;
