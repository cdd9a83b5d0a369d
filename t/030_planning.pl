# What planning asks of the remote and how long it waits for that; and what the
# plans then do there: look-ups, ranges of blocks, samples.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

# The remote has two seconds to answer; the rest is for a slow machine.
use constant WAIT_SECONDS => 3.2;

my $pair = TidrangeTest->new(source_conf => "log_statement = all\nlog_connections = on\n");

$pair->create_table('big', 20000);
$pair->remote_sql(<<'SQL');
CREATE TABLE fresh AS SELECT i AS id, repeat('x', 30) AS v FROM generate_series(1, 400000) i;
CREATE TABLE wide AS SELECT i AS id, repeat('x', 700) AS v FROM generate_series(1, 3000) i;
CREATE TABLE small AS SELECT i AS id, 'x'::text AS v FROM generate_series(1, 70) i;
CREATE TABLE gone AS SELECT i AS id, repeat('x', 100) AS v FROM generate_series(1, 20000) i;
DELETE FROM gone WHERE id <= 10000;
CREATE TABLE grown AS SELECT i AS id, 'x'::text AS v FROM generate_series(1, 1000) i;
ANALYZE grown;
INSERT INTO grown SELECT i, 'x' FROM generate_series(1001, 30000) i;
CREATE TABLE parted (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (20000);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (20000) TO (50000);
INSERT INTO parted SELECT i, 'x' FROM generate_series(1, 40000) i;
CREATE TABLE parent (id int, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO child SELECT i, 'x' FROM generate_series(1, 20000) i;
ANALYZE parted, parent, child;
CREATE TABLE "fresh's" (id int, v text);
SQL
$pair->create_server(options => { chunk_blocks => undef });
$pair->import_tables(qw(big fresh wide small gone grown parted parent), q{"fresh's"});

# The rows that the first line of the plan expects.
sub expected_rows
{
	my ($session, $query) = @_;
	my ($rows) = $session->query("EXPLAIN $query") =~ /rows=(\d+)/;
	return $rows;
}

# How often the pattern is in the log since the offset. (Not by entries: those of a
# session without a name yet are no entries of remote_log.)
sub logged
{
	my ($offset, $pattern) = @_;
	return scalar(() = slurp_file($pair->source->logfile, $offset) =~ /$pattern/g);
}

# ----- sizes ------------------------------------------------------------------

my $session = $pair->session;

is($session->query('SHOW max_parallel_workers_per_gather'), '2', 'default settings');
my $fresh_blocks = $pair->remote_sql("SELECT pg_relation_size('fresh') / 8192");
cmp_ok($fresh_blocks, '>=', 3000, 'a large table that was never analyzed');
is($pair->remote_sql("SELECT reltuples FROM pg_class WHERE relname = 'fresh'"),
	'-1', 'indeed');
like($session->query('EXPLAIN (VERBOSE, COSTS OFF) SELECT count(v) FROM fresh'),
	qr/Gather\n.*Workers Planned: 2\n.*Parallel Foreign Scan.*Remote Blocks: $fresh_blocks\n?/s,
	'freshly imported, its plan is parallel');

my %truth = (
	big => 20000, fresh => 400000, wide => 3000, small => 70, gone => 10000,
	grown => 30000, parted => 40000, parent => 20000);
foreach my $table (sort keys %truth)
{
	my $rows = expected_rows($session, "SELECT * FROM $table");

	ok($rows >= $truth{$table} / 2 && $rows <= $truth{$table} * 2,
		"$table: $rows rows expected, $truth{$table} there");
}
cmp_ok(expected_rows($session, q{SELECT * FROM "fresh's"}), '<=', 1000,
	'an empty table with a name to be quoted');

# Known for a while, in a session.
my $offset = $pair->remote_log_size;
$session->query("EXPLAIN SELECT * FROM $_") foreach sort keys %truth;
is(logged($offset, qr/statement: /), 0, 'sizes are not asked for again');

# A remote session that was ended while it was idle is replaced.
$pair->remote_sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tidrange_fdw %'});
$pair->remote_is_left('sessions are gone');
is($session->query('EXPLAIN (COSTS OFF) SELECT v FROM big WHERE id = 7'),
	'Foreign Scan on big', 'planning with a session that was killed');
$session->quit;

# ----- one question a server ---------------------------------------------------

$pair->create_server(name => 'second');
$pair->local_sql(<<'SQL');
CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id);
DO $$
BEGIN
    FOR i IN 0..99 LOOP
        EXECUTE format('CREATE FOREIGN TABLE part%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)
            SERVER %I OPTIONS (schema_name ''public'', table_name ''small'')',
            i, i * 100, (i + 1) * 100, CASE WHEN i % 2 = 0 THEN 'source' ELSE 'second' END);
    END LOOP;
END
$$;
SQL
$offset = $pair->remote_log_size;
my $plan = $pair->local_sql('EXPLAIN (COSTS OFF) SELECT count(*) FROM parts WHERE v IS NOT NULL');
is(scalar(() = $plan =~ /Foreign Scan on part/g), 100, 'a plan with 100 foreign partitions');
is(logged($offset, qr/statement: [^\n]*pg_relation_size/),
	2, 'one question to each of two servers');
is(logged($offset, qr/connection authorized.*tidrange_fdw/), 2, 'two connections');
# (SELECT 1 asks how fast a server on this machine is.)
cmp_ok(logged($offset, qr/statement: (?!SELECT 1$)/m), '<=', 4, 'and not much else');

# ----- a look-up, and ranges of blocks -------------------------------------------

# Counters of a remote table, when nobody of ours is there who could add to them.
sub counters
{
	my ($columns, $table) = @_;

	$pair->remote_is_left('counters are final');
	return split /\|/,
	  $pair->remote_sql("SELECT $columns FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid) WHERE pg_stat_user_tables.relname = '$table'");
}
my $scans = 'seq_scan, idx_scan, idx_tup_fetch, seq_tup_read';
my @before = counters($scans, 'big');
is($pair->local_sql('SELECT id FROM big WHERE id = 4711'), '4711', 'a key');
my @after = counters($scans, 'big');
is_deeply([ map { $after[$_] - $before[$_] } 0 .. 3 ],
	[ 0, 1, 1, 0 ], 'one index scan for one row, no sequential one');

$pair->local_sql('CREATE TABLE keys AS SELECT i * 100 AS id FROM generate_series(1, 5) i; ANALYZE keys');
@before = counters($scans, 'big');
is($pair->local_sql('SELECT count(*), sum(id) FROM keys JOIN big USING (id)'), '5|1500', 'five keys of a join');
@after = counters($scans, 'big');
is_deeply([ map { $after[$_] - $before[$_] } 0 .. 3 ],
	[ 0, 5, 5, 0 ], 'five index scans');

$pair->local_sql("ALTER FOREIGN TABLE big OPTIONS (ADD use_remote_estimate 'false')");
my $blocks = 'heap_blks_read + heap_blks_hit';
foreach my $case (
	[ q{ctid >= '(1000,0)' AND ctid < '(1100,0)'}, 100, 500 ],
	[ q{ctid > (SELECT '(3900,0)'::tid)}, 100, 500 ],
	[ q{ctid = (SELECT '(2000,2)'::tid)}, 1, 1 ],
	[ q{'(7,3)' >= ctid}, 8, 38 ],
	[ q{ctid = '(2000,2)'}, 1, 1 ],
	[ q{ctid >= '(3000,0)' AND ctid < '(2000,0)'}, 0, 0 ])
{
	my ($qual, $wanted, $rows) = @$case;
	my $sql = "SELECT count(*) FROM big WHERE $qual";
	my $parallel = TidrangeTest::workers(3);

	# no workers for less than two chunks, if the planner knows that
	like($pair->local_sql("$parallel EXPLAIN (COSTS OFF) $sql"),
		$wanted < 64 && $qual !~ /SELECT/ ? qr/^ *->  Foreign Scan/m : qr/Parallel Foreign Scan/, "$qual: the plan");
	@before = counters($blocks, 'big');
	is($pair->local_sql("$parallel $sql"), $rows, "$qual: rows");
	@after = counters($blocks, 'big');
	cmp_ok($after[0] - $before[0], '<=', $wanted, "$qual: blocks read");
}
$pair->local_sql('ALTER FOREIGN TABLE big OPTIONS (DROP use_remote_estimate)');

# ----- look-ups that end early ----------------------------------------------------

# None of these is worth a connection of its own.
foreach my $sql (
	'SELECT count(*), sum(x.id) FROM generate_series(1, 60) g, LATERAL (SELECT id FROM big WHERE id >= g LIMIT 1) x',
	'SELECT count(*), sum(x.id) FROM (SELECT id FROM small WHERE id <= 60) s, LATERAL (SELECT id FROM big WHERE id >= s.id LIMIT 1) x',
	'SELECT count(*), sum(g) FROM generate_series(1, 60) g WHERE EXISTS (SELECT FROM big WHERE id = g OFFSET 0)',
	'SELECT count(*), sum(s.id) FROM (SELECT id FROM small WHERE id <= 60) s WHERE EXISTS (SELECT FROM big WHERE id = s.id OFFSET 0)')
{
	$offset = $pair->remote_log_size;
	is($pair->local_sql("SET max_parallel_workers_per_gather = 0; $sql"), '60|1830', $sql);
	cmp_ok(logged($offset, qr/connection authorized/), '<=', 4, '... with few connections');
}

# ----- ANALYZE --------------------------------------------------------------------

SKIP:
{
	my ($code) = $pair->source->psql('postgres', "LOAD 'auto_explain'");

	skip 'auto_explain is not installed', 6 if $code != 0;
	$pair->source->append_conf('postgresql.conf', <<'CONF');
session_preload_libraries = auto_explain
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_timing = off
CONF
	$pair->source->reload;
	foreach my $target (10, 100)
	{
		$offset = $pair->remote_log_size;
		$pair->local_sql("SET default_statistics_target = $target; ANALYZE fresh");
		my ($plan) = grep { $_->{text} =~ /plan:.*COPY.*fresh/s } $pair->remote_log($offset);
		my ($rows) = ($plan ? $plan->{text} : '') =~ /actual rows=(\d+)/;

		cmp_ok($rows, '<=', 1.25 * 300 * $target, "statistics target $target: $rows rows were sent");
		cmp_ok($rows, '>=', 0.7 * 300 * $target, '... which is a sample large enough');
		my ($tuples, $pages) = split /\|/,
		  $pair->local_sql("SELECT reltuples, relpages FROM pg_class WHERE oid = 'fresh'::regclass");
		ok($tuples > 320000 && $tuples < 480000 && $pages == $fresh_blocks,
			"... and tells $tuples rows, $pages blocks");
	}
}

# ----- a remote that does not answer ------------------------------------------------

# Where nobody listens, and where somebody does who never says a word.
my $deaf = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20)
  or die "cannot listen: $!";
my $nobody = PostgreSQL::Test::Cluster::get_free_port();
my %away = (away => $nobody, silent => $deaf->sockport);

foreach my $server (sort keys %away)
{
	$pair->create_server(name => $server, options => { host => '127.0.0.1', port => $away{$server} });
	$pair->local_sql(<<"SQL");
CREATE FOREIGN TABLE ${server}1 (id int, v text) SERVER $server;
CREATE FOREIGN TABLE ${server}2 (id int, v text) SERVER $server;
CREATE TABLE ${server}_parts (id int, v text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE ${server}_part1 PARTITION OF ${server}_parts FOR VALUES FROM (1) TO (1000) SERVER source
    OPTIONS (schema_name 'public', table_name 'small');
CREATE FOREIGN TABLE ${server}_part2 PARTITION OF ${server}_parts FOR VALUES FROM (1000) TO (2000) SERVER $server;
SQL
}

# A plan comes, with these nodes, and soon enough.
sub planned
{
	my ($session, $sql, $pattern, $seconds, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($out, $err) = $session->query($sql);

	is($err, '', "$name: no error");
	like($out, $pattern, "$name: the plan");
	cmp_ok($session->elapsed, '<', $seconds, "$name: time");
	return;
}

foreach my $server (sort keys %away)
{
	my $session = $pair->session;
	my $explain = 'EXPLAIN (COSTS OFF)';

	planned($session, "$explain SELECT * FROM ${server}_parts WHERE id = 7",
		qr/Foreign Scan on ${server}_part1/, 1.5, "$server: pruned when planned");
	planned($session, "$explain SELECT * FROM ${server}1 JOIN ${server}2 USING (id) WHERE ${server}1.id < 7 AND ${server}2.v = 'x'",
		qr/Foreign Scan on ${server}1/, WAIT_SECONDS, $server);
	planned($session, "$explain SELECT * FROM ${server}1 WHERE id = 5",
		qr/Foreign Scan on ${server}1/, 0.7, "$server: not asked again");
	planned($session, "SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT id FROM ${server}_parts WHERE id = \$1; $explain EXECUTE p(7)",
		qr/Foreign Scan on ${server}_part1/, WAIT_SECONDS, "$server: pruned when run");
	is($session->query('EXECUTE p(7)'), '7', "$server: and the others answer");
	$session->quit;
}

# ----- a remote table that is locked ----------------------------------------------

my $locker = $pair->remote_session;
my $unknowing = $pair->session;
my $knowing = $pair->session;

$knowing->query('EXPLAIN SELECT * FROM big, grown, fresh, wide');
$locker->query('BEGIN; LOCK TABLE big, fresh, wide, grown IN ACCESS EXCLUSIVE MODE');
foreach my $case ([ 'size unknown', $unknowing ], [ 'size known', $knowing ])
{
	my ($name, $session) = @$case;

	planned($session, 'EXPLAIN (COSTS OFF) SELECT * FROM big WHERE id = 7',
		qr/Foreign Scan on big/, WAIT_SECONDS, "locked, $name");
	planned($session, 'EXPLAIN (COSTS OFF) SELECT * FROM big JOIN fresh USING (id) JOIN wide USING (id) JOIN grown USING (id) WHERE big.id < 70 AND fresh.id < 70 AND wide.id < 70 AND grown.id < 70',
		qr/Foreign Scan on big/, WAIT_SECONDS, "locked, $name, a join");
	planned($session, 'EXPLAIN (COSTS OFF) SELECT * FROM small WHERE id = 7',
		qr/Foreign Scan on small/, WAIT_SECONDS, "locked, $name, another table");
}
$locker->query('COMMIT');
is($unknowing->query('SELECT count(*) FROM big WHERE id < 70'), '69', 'and it is read when it can be');
is($knowing->query('SELECT count(*) FROM big JOIN fresh USING (id) WHERE big.id < 70'), '69', 'in either session');

$pair->finish;
