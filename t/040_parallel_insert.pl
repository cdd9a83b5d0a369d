# CALL tidrange_fdw_parallel_insert(): several sessions insert one result.  What
# they insert together is what one statement inserts, once; who may call it, what
# it refuses, and how it ends early.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Test::More;
use TidrangeTest;

my $test = TidrangeTest->new(
	source_conf => "max_connections = 100\nlog_statement = all\n",
	destination_conf =>
	  "max_prepared_transactions = 10\nmax_worker_processes = 20\n");
my $local = $test->destination;

$test->create_server;
$test->create_table('t', 5000);
$test->import_tables('t');
my $sum = $test->remote_sql(TidrangeTest::checksum('t'));

# SQL of a call; the statement is quoted here.
sub call
{
	my ($statement, $arguments) = @_;
	return
	    'CALL tidrange_fdw_parallel_insert('
	  . TidrangeTest::literal($statement)
	  . ($arguments ? ", $arguments" : '') . ')';
}

sub target
{
	my ($name, $definition) = @_;
	$test->local_sql("DROP TABLE IF EXISTS $name CASCADE; CREATE TABLE $name $definition");
	return;
}

# Nothing is left anywhere: prepared transactions, workers, markers, sessions.
sub all_rests
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is( TidrangeTest::answer_within(
			$local, 2, <<'SQL', '0 0 0'), '0 0 0', "$name: nothing is left");
SELECT concat_ws(' ', (SELECT count(*) FROM pg_prepared_xacts),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'tidrange_fdw insert worker'),
    (SELECT count(*) FROM tidrange_fdw_insert_marker))
SQL
	$test->remote_rests("$name: the source is at rest");
	return;
}

# The call inserts exactly the rows of the source.
sub inserts_all
{
	my ($name, $definition, $arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	target('copy', $definition);
	is($test->local_error(call('INSERT INTO copy SELECT * FROM t', $arguments)) =~ s/^NOTICE.*\n(?:LOCATION.*\n)?//mgr,
		'', "$name: no error");
	is($test->local_sql(TidrangeTest::checksum('copy')), $sum, "$name: the rows of the source");
	all_rests($name);
	return;
}

# A call whose workers are held at their first row until all of them have one: a
# fast one would read everything before the others have come.
my $holder = $test->session;

sub call_together
{
	my ($statement, $count) = @_;

	TidrangeTest::shut_gate($local);
	$holder->start(call($statement, "workers => $count"));
	TidrangeTest::wait_at_gate($local, $count);
	TidrangeTest::open_gate($local);
	my ($out, $err) = $holder->finish;
	return $err =~ s/^.*NOTICE.*\n?(?:LOCATION.*\n?)?//mgr;
}

# ----- the rows ---------------------------------------------------------------

my $log = $test->remote_log_size;
target('copy', '(id int PRIMARY KEY, v text)');
is(call_together('INSERT INTO copy SELECT * FROM t WHERE gate(id)', 3), '', 'three workers: no error');
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'three workers: the rows of the source');
all_rests('three workers');
my @imports = grep { $_->{text} =~ /SET TRANSACTION SNAPSHOT/ } $test->remote_log($log);
is(scalar @imports, 2, 'the second and third worker adopt the snapshot of the first');
my %exports = map { $_->{text} =~ /SET TRANSACTION SNAPSHOT '([^']*)'/ ? ($1 => 1) : () } @imports;
is(scalar keys %exports, 1, 'it is one snapshot');
my %readers = map { $_->{pid} => 1 } grep { $_->{text} =~ /COPY \(SELECT/ } $test->remote_log($log);
is(scalar keys %readers, 3, 'three sessions read chunks');

inserts_all('one worker', '(id int PRIMARY KEY, v text)', 'workers => 1');
inserts_all('workers by default', '(id int PRIMARY KEY, v text)', '');

# A plain INSERT would have a parallel plan under these settings; a worker's must not.
target('copy', '(id int, v text)');
like($test->local_sql(TidrangeTest::workers(2) . 'EXPLAIN INSERT INTO copy SELECT * FROM t'), qr/Gather/, 'the plain statement is parallel');
is( $test->local_error(TidrangeTest::workers(2) . call('INSERT INTO copy SELECT * FROM t', 'workers => 2')) =~ s/^.*NOTICE.*\n?(?:LOCATION.*\n?)?//mgr,
	'', 'the call is divided all the same');
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'and inserts the rows of the source');
inserts_all('not atomic', '(id int PRIMARY KEY, v text)', 'workers => 4, atomic => false');
inserts_all('without an index', '(id int, v text)', 'workers => 4');
inserts_all('unlogged', '(id int, v text)', 'workers => 2');

like($test->local_error(
		'DROP TABLE copy; CREATE TABLE copy (id int, v text); '
		. call('INSERT INTO copy SELECT * FROM t', 'workers => 3') . "; SELECT 1/0"),
	qr/5000 rows inserted by 3 workers/, 'the number of rows is told');

# The source changes meanwhile.
{
	my $writer = $test->remote_session;
	$writer->start(<<'SQL');
DO $$ BEGIN FOR i IN 1..60 LOOP
    UPDATE t SET v = v WHERE id % 5 = i % 5; COMMIT;
END LOOP; END $$
SQL
	for my $i (1 .. 3)
	{
		inserts_all("writer at the source, $i", '(id int, v text)', 'workers => 3');
	}
	$writer->finish;
}

# ----- targets ----------------------------------------------------------------

target('copy', <<'SQL');
(k int GENERATED ALWAYS AS IDENTITY, id int NOT NULL CHECK (id > 0), v text,
    twice int GENERATED ALWAYS AS (id * 2) STORED, at timestamptz DEFAULT now(), s serial)
    PARTITION BY RANGE (id);
CREATE TABLE copy1 PARTITION OF copy FOR VALUES FROM (1) TO (2000);
CREATE TABLE copy2 PARTITION OF copy DEFAULT;
CREATE TABLE seen (id int);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO seen VALUES (new.id); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT ON copy FOR EACH ROW EXECUTE FUNCTION note();
CREATE TABLE parent (id int PRIMARY KEY);
INSERT INTO parent SELECT generate_series(1, 5000);
ALTER TABLE copy ADD FOREIGN KEY (id) REFERENCES parent DEFERRABLE INITIALLY DEFERRED
SQL
$test->local_sql(call('INSERT INTO copy (id, v) SELECT id, v FROM t', 'workers => 3'));
is( $test->local_sql(<<'SQL'), '5000|5000|5000|25005000|1|5000|1999', 'identity, generated columns, defaults, triggers, partitions, a deferred key; one now()');
SELECT count(*), count(DISTINCT k), count(DISTINCT s), sum(twice), count(DISTINCT at),
    (SELECT count(DISTINCT id) FROM seen), (SELECT count(*) FROM copy1)
FROM copy
SQL
all_rests('a target with everything');

target('few', '(id int PRIMARY KEY); INSERT INTO few SELECT generate_series(1, 4900); CREATE TABLE child (id int REFERENCES few DEFERRABLE INITIALLY DEFERRED)');
like($test->local_error(call('INSERT INTO child SELECT id FROM t', 'workers => 3')),
	qr/ERROR:  23503: .*violates foreign key.*CONTEXT:.*insert worker \d/s,
	'a violated deferred key ends the call');
is($test->local_sql('SELECT count(*) FROM child'), '0', 'and nothing is inserted');
like($test->local_error(call('INSERT INTO child SELECT id FROM t', 'workers => 3, atomic => false')),
	qr/ERROR:  23503/, 'not atomic: the same');
is($test->local_sql('SELECT count(*) FROM child'), '0', 'and nothing, for it is checked before anybody commits');
all_rests('a violated key');

# ----- statements -------------------------------------------------------------

target('copy', '(id int, v text)');
$test->local_sql('CREATE TABLE small AS SELECT i AS id, i % 10 AS g FROM generate_series(1, 5000, 2) i; ANALYZE small');
foreach my $case (
	[ 'a filter and expressions', 'INSERT INTO copy SELECT id + 1, upper(v) FROM t WHERE id % 3 = 0' ],
	[ 'a join', 'INSERT INTO copy SELECT t.id, g::text FROM t JOIN small USING (id)' ],
	[ 'a left join', 'INSERT INTO copy SELECT t.id, g::text FROM t LEFT JOIN small USING (id)' ],
	[ 'a semi-join', 'INSERT INTO copy SELECT * FROM t WHERE id IN (SELECT id FROM small WHERE g = 1)' ],
	[ 'an anti-join', 'INSERT INTO copy SELECT * FROM t WHERE NOT EXISTS (SELECT FROM small s WHERE s.id = t.id)' ],
	[ 'an aggregate beside', 'INSERT INTO copy SELECT t.id, n::text FROM t JOIN (SELECT g, count(*) n FROM small GROUP BY g) a ON a.g = t.id' ],
	[ 'a sub-select beside', 'INSERT INTO copy SELECT id, v FROM t WHERE id > (SELECT avg(id) FROM small)' ],
	[ 'a nested loop', 'INSERT INTO copy SELECT t.id, s.id::text FROM t JOIN small s ON s.id < t.id - 4900' ],
	[ 'ORDER BY', 'INSERT INTO copy SELECT * FROM t ORDER BY id' ],
	[ 'a CTE', 'WITH c AS (SELECT * FROM t) INSERT INTO copy SELECT * FROM c' ],
	[ 'no rows', 'INSERT INTO copy SELECT * FROM t WHERE id < 0' ],
	[ 'a join with nothing', 'INSERT INTO copy SELECT t.* FROM t JOIN small s USING (id) WHERE s.g > 100' ],
  )
{
	my ($name, $statement) = @$case;

	$test->local_sql("TRUNCATE copy; $statement");
	my $serial = $test->local_sql(TidrangeTest::checksum('copy'));
	$test->local_sql('TRUNCATE copy');
	$test->local_sql(call($statement, 'workers => 3'));
	is($test->local_sql(TidrangeTest::checksum('copy')), $serial, "$name: as one statement");
}
$test->remote_sql("CREATE TABLE u AS SELECT i AS id, i % 7 AS h FROM generate_series(1, 3000) i; ANALYZE u");
$test->import_tables('u');
$test->local_sql('TRUNCATE copy; INSERT INTO copy SELECT t.id, h::text FROM t JOIN u USING (id)');
my $joined = $test->local_sql(TidrangeTest::checksum('copy'));
$test->local_sql('TRUNCATE copy');
$log = $test->remote_log_size;
$test->local_sql(call('INSERT INTO copy SELECT t.id, h::text FROM t JOIN u USING (id)', 'workers => 3'));
is($test->local_sql(TidrangeTest::checksum('copy')), $joined, 'two foreign tables of one server');
is(scalar(grep { $_->{text} =~ /pg_export_snapshot/ } $test->remote_log($log)), 1,
	'under one snapshot');
all_rests('statements');

# Partitions of the source are read in chunks, too.
$test->remote_sql(<<'SQL');
CREATE TABLE parted (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (1) TO (1000);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (1000) TO (4000) PARTITION BY RANGE (id);
CREATE TABLE parted21 PARTITION OF parted2 FOR VALUES FROM (1000) TO (2500);
CREATE TABLE parted22 PARTITION OF parted2 DEFAULT;
CREATE TABLE parted3 PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT * FROM t;
ANALYZE parted;
SQL
$test->import_tables('parted');
$log = $test->remote_log_size;
$test->local_sql('TRUNCATE copy');
is(call_together('INSERT INTO copy SELECT * FROM parted WHERE gate(id)', 3), '', 'no error');
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'a partitioned source');
%readers = map { $_->{pid} => 1 } grep { $_->{text} =~ /COPY \(SELECT.*tidrange\.lo/s } $test->remote_log($log);
is(scalar keys %readers, 3, 'is read by all workers');

# A view cannot be divided: one worker reads it.
$test->remote_sql('CREATE VIEW all_of_t AS SELECT * FROM t');
$test->import_tables('all_of_t');
like($test->local_error('TRUNCATE copy; ' . call('INSERT INTO copy SELECT * FROM all_of_t', 'workers => 3') . '; SELECT 1/0'),
	qr/NOTICE:  00000: foreign table "all_of_t" is read by one worker\nDETAIL:  It cannot be divided/, 'a view is read by one worker');
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'and whole');

# An error among the commits of workers that need not be atomic.
$test->local_sql(<<'SQL');
CREATE TABLE late (id int);
CREATE FUNCTION fail_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.id = 4999 THEN RAISE EXCEPTION 'too late'; END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER fail_late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION fail_late();
SQL
like($test->local_error(call('INSERT INTO late SELECT id FROM t', 'workers => 3, atomic => false')),
	qr/ERROR:  P0001: too late/, 'an error of a deferred trigger');
is($test->local_sql('SELECT count(*) FROM late'), '0', 'comes before the first commit');

# ----- refusals ---------------------------------------------------------------

$test->create_server(name => 'elsewhere');
$test->local_sql("CREATE FOREIGN TABLE elsewhere_t (id int, v text) SERVER elsewhere OPTIONS (table_name 't')");
$test->local_sql(<<'SQL');
CREATE EXTENSION postgres_fdw;
CREATE SERVER other_wrapper FOREIGN DATA WRAPPER postgres_fdw;
CREATE USER MAPPING FOR PUBLIC SERVER other_wrapper;
CREATE FOREIGN TABLE other_wrapper_t (id int, v text) SERVER other_wrapper;
CREATE TABLE selfish (id int PRIMARY KEY, v text, up int REFERENCES selfish);
CREATE TABLE ruled (id int, v text);
CREATE RULE r AS ON INSERT TO ruled DO ALSO DELETE FROM small WHERE false;
CREATE VIEW w AS SELECT DISTINCT id, v FROM copy;
SQL
foreach my $case (
	[ 'SELECT count(*) FROM t', qr/It is not an INSERT/ ],
	[ 'INSERT INTO copy VALUES (1)', qr/reads no foreign table/ ],
	[ 'INSERT INTO copy SELECT id FROM small', qr/reads no foreign table/ ],
	[ 'INSERT INTO copy SELECT count(*) FROM t', qr/needs all rows/ ],
	[ 'INSERT INTO copy SELECT id FROM t GROUP BY id', qr/needs all rows/ ],
	[ 'INSERT INTO copy SELECT DISTINCT id FROM t', qr/needs all rows/ ],
	[ 'INSERT INTO copy SELECT row_number() OVER () FROM t', qr/window function needs all rows/ ],
	[ 'INSERT INTO copy SELECT id FROM t LIMIT 10', qr/LIMIT or OFFSET counts/ ],
	[ 'INSERT INTO copy SELECT id FROM t OFFSET 10', qr/LIMIT or OFFSET counts/ ],
	[ 'INSERT INTO copy SELECT id FROM t EXCEPT SELECT 1', qr/needs all rows|UNION ALL/ ],
	[ 'INSERT INTO copy SELECT id FROM t UNION ALL SELECT 1', qr/UNION ALL/ ],
	[ 'INSERT INTO copy SELECT a.id FROM t a JOIN t b USING (id)', qr/read more than once/ ],
	[ 'INSERT INTO copy SELECT s.id FROM small s LEFT JOIN t USING (id)', qr/outer join/ ],
	[ 'INSERT INTO copy SELECT s.id FROM small s FULL JOIN t USING (id)', qr/outer join/ ],
	[ 'INSERT INTO copy SELECT id FROM small WHERE id NOT IN (SELECT id FROM t)', qr/sub-select/ ],
	[ 'INSERT INTO copy SELECT id FROM small s WHERE NOT EXISTS (SELECT FROM t WHERE t.id = s.id)', qr/any row of the foreign table matches/ ],
	[ 'WITH c AS MATERIALIZED (SELECT * FROM t) INSERT INTO copy SELECT * FROM c', qr/WITH query/ ],
	[ 'INSERT INTO copy SELECT t.id FROM t, (SELECT id FROM small LIMIT 2) s', qr/every worker evaluates has a LIMIT/ ],
	[ 'INSERT INTO copy SELECT t.id FROM t, small s WHERE s.id = t.id AND s.g < random()', qr/volatile function/ ],
	[ 'INSERT INTO copy SELECT t.id FROM t JOIN copy USING (id)', qr/reads its target/ ],
	[ 'INSERT INTO copy SELECT t.id FROM t JOIN elsewhere_t USING (id)', qr/is on another server/ ],
	[ 'INSERT INTO copy SELECT t.id FROM t JOIN other_wrapper_t USING (id)', qr/is of another wrapper/ ],
	[ 'INSERT INTO copy SELECT id FROM t RETURNING id', qr/RETURNING/ ],
	[ 'WITH d AS (DELETE FROM small RETURNING id) INSERT INTO copy SELECT id FROM t', qr/WITH clause that modifies/ ],
	[ 'INSERT INTO selfish SELECT id, v FROM t', qr/refers to itself/ ],
	[ 'INSERT INTO ruled SELECT id, v FROM t', qr/rules/ ],
	[ 'INSERT INTO t SELECT id, v FROM t', qr/not a table/ ],
  )
{
	my ($statement, $reason) = @$case;
	my $error = $test->local_error(call($statement, 'workers => 2'));

	like($error, qr/ERROR:  0A000: statement cannot be divided/, "refused: $statement");
	like($error, $reason, '... for that reason');
}
like($test->local_error('CREATE TEMP TABLE x (id int); ' . call('INSERT INTO x SELECT id FROM t', '2')),
	qr/temporary/, 'a temporary target');
like($test->local_error('CREATE TEMP TABLE x (id int); ' . call('INSERT INTO copy SELECT t.id FROM t JOIN x USING (id)', '2')),
	qr/temporary/, 'a temporary source');
like($test->local_error('BEGIN; ' . call('INSERT INTO copy SELECT * FROM t', '2')),
	qr/ERROR:  25001: .*inside a transaction block/, 'in a transaction block');
like($test->local_error('DO $$ BEGIN ' . call('INSERT INTO copy SELECT * FROM t', '2') . '; EXCEPTION WHEN division_by_zero THEN END $$'),
	qr/ERROR:  25001/, 'in a block with a subtransaction');
like($test->local_error(call('INSERT INTO copy SELECT * FROM t', '11')),
	qr/ERROR:  55000: 11 workers cannot commit together because max_prepared_transactions is 10.*HINT/s, 'more than can be prepared');
like($test->local_error(call('INSERT INTO copy SELECT * FROM t', 'workers => 0')), qr/ERROR:  22023/, 'no worker');
like($test->local_error(call('INSERT INTO copy SELECT * FROM t; SELECT 1', '2')), qr/ERROR:  42601/, 'two statements');
like($test->local_error(call('INSERT INTO nothing SELECT * FROM t', '2')), qr/ERROR:  42P01/, 'a target that does not exist');
like($test->local_error('SET default_transaction_isolation = serializable; ' . call('INSERT INTO copy SELECT * FROM t', '2')),
	qr/ERROR:  0A000.*serializable/, 'serializable');
like($test->local_error('SET default_transaction_read_only = on; ' . call('INSERT INTO copy SELECT * FROM t', '2')),
	qr/ERROR:  25006/, 'read only');
all_rests('refusals');
$test->local_sql('TRUNCATE copy; SET default_transaction_isolation = \'repeatable read\'; ' . call('INSERT INTO copy SELECT * FROM t', '2'));
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'repeatable read');

# ----- workers that wait for each other ---------------------------------------

foreach my $atomic ('true', 'false')
{
	target('one', '(k int PRIMARY KEY, id int)');
	like($test->local_error(call('INSERT INTO one SELECT id % 4000, id FROM t', "workers => 3, atomic => $atomic")),
		qr/ERROR:  23505/, "the same key twice, atomic $atomic");
	is($test->local_sql('SELECT count(*) FROM one'), '0', 'nothing is inserted');
	like($test->local_error(call('INSERT INTO one SELECT id % 4000, id FROM t ON CONFLICT DO NOTHING', "workers => 3, atomic => $atomic")),
		qr/^$|ERROR:  (?:23505|40P01)/m, "ON CONFLICT DO NOTHING, atomic $atomic, does not hang");
	$test->local_sql('TRUNCATE one; INSERT INTO one SELECT generate_series(1, 4000)');
	$test->local_sql(call('INSERT INTO one SELECT id, id FROM t ON CONFLICT DO NOTHING', "workers => 3, atomic => $atomic"));
	is($test->local_sql('SELECT count(*) FROM one'), '5000', 'ON CONFLICT with rows of before');
	all_rests("the same key, atomic $atomic");
}
$test->local_sql(<<'SQL');
CREATE TABLE total (n int);
INSERT INTO total VALUES (0);
CREATE FUNCTION add_one() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN UPDATE total SET n = n + 1; RETURN NULL; END $$;
CREATE TABLE counted (id int);
CREATE TRIGGER add_one AFTER INSERT ON counted FOR EACH STATEMENT EXECUTE FUNCTION add_one();
SQL
like($test->local_error(call('INSERT INTO counted SELECT id FROM t', 'workers => 3')),
	qr/ERROR:  40P01: workers of the parallel insert wait for each other/, 'two workers update the same row');
is($test->local_sql('SELECT n FROM total'), '0', 'and it is as it was');
all_rests('the same row');

# An ALTER TABLE is queued while they work.
{
	target('copy', '(id int, v text)');
	my $caller = $test->session;
	my $other = $test->session;

	$test->local_sql('CREATE OR REPLACE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM gate(1); RETURN new; END $$; CREATE TRIGGER wait_here BEFORE INSERT ON copy FOR EACH ROW EXECUTE FUNCTION wait_here()');
	TidrangeTest::shut_gate($local);
	$caller->start(call('INSERT INTO copy SELECT * FROM t', 'workers => 3'));
	TidrangeTest::wait_at_gate($local, 3);
	$other->start('ALTER TABLE copy ADD COLUMN w int');
	is(TidrangeTest::answer_within($local, 10, "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'", '1'), '1', 'ALTER TABLE waits');

	# the progress view, from another session
	is($test->local_sql('SELECT count(*), min(worker), max(worker), min(workers), max(workers), count(DISTINCT caller_pid), min(phase) FROM tidrange_fdw_insert_progress'),
		'3|0|2|3|3|1|running', 'the progress of the workers');
	is($test->local_sql("SELECT min(caller_pid) FROM tidrange_fdw_insert_progress"), $caller->pid, 'the caller');
	TidrangeTest::open_gate($local);
	my ($out, $err) = $caller->finish;
	like($err, qr/5000 rows inserted by 3 workers/, 'the call ends');
	($out, $err) = $other->finish;
	is($err, '', 'and then ALTER TABLE');
	all_rests('queued DDL');
}

# An ALTER TABLE is queued before the second worker has its locks: it leaves.
{
	target('copy', '(id int, v text)');
	my $caller = $test->session;
	my $other = $test->session;

	TidrangeTest::shut_gate($local);
	$caller->start("SET tidrange_fdw.insert_crash_point = 'wait started 1'; "
		  . call('INSERT INTO copy SELECT * FROM t', 'workers => 2'));
	is(TidrangeTest::answer_within($local, 10, "SELECT string_agg(phase, ' ' ORDER BY worker) FROM tidrange_fdw_insert_progress", 'executed starting'),
		'executed starting', 'the first worker is ready, the second has not begun');
	$other->start('ALTER TABLE copy ADD COLUMN w int');
	is(TidrangeTest::answer_within($local, 10, "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'", '1'), '1', 'ALTER TABLE waits');
	TidrangeTest::open_gate($local);
	my ($out, $err) = $caller->finish;
	like($err, qr/5000 rows inserted by 1 worker/, 'the first worker does it all');
	($out, $err) = $other->finish;
	is($err, '', 'and then ALTER TABLE');
	is($test->local_sql('SELECT count(DISTINCT id) FROM copy'), '5000', 'the rows are there');
	all_rests('DDL between two workers');
}

# The source has no connection for some workers.
{
	$test->remote_sql('CREATE ROLE few LOGIN CONNECTION LIMIT 3; GRANT SELECT ON t TO few');
	$test->create_server(name => 'narrow', mapping => { user => 'few' });
	$test->local_sql("CREATE FOREIGN TABLE narrow_t (id int, v text) SERVER narrow OPTIONS (table_name 't')");
	target('copy', '(id int, v text)');
	$test->local_sql(call('INSERT INTO copy SELECT * FROM narrow_t', 'workers => 6'));
	is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'the source refuses some workers: the others read all');
	all_rests('few connections');
}

# Two are prepared, the first one is kept from it: that is not a call that was left.
foreach my $how ('go on', 'cancel', 'terminate')
{
	my $caller = $test->session;
	my $holder = $test->session;

	target('copy', '(id int, v text)');
	$holder->query('BEGIN; LOCK TABLE tidrange_fdw_insert_marker IN EXCLUSIVE MODE');
	$caller->start(call('INSERT INTO copy SELECT * FROM t', 'workers => 3'));
	is(TidrangeTest::answer_within($local, 10, 'SELECT count(*) FROM pg_prepared_xacts', '2'), '2', "$how: two parts are prepared");
	is($test->local_sql('SELECT count(*) FROM tidrange_fdw_recover_inserts()'), '0', "$how: recovery leaves a running call alone");
	$test->local_sql("SELECT pg_${how}_backend(" . $caller->pid . ')') if $how ne 'go on';
	$holder->query('COMMIT') if $how eq 'go on';
	my @output = $how eq 'terminate' ? () : $caller->finish;
	is(TidrangeTest::answer_within($local, 2, 'SELECT count(*) FROM pg_prepared_xacts', '0'), '0', "$how: nothing stays prepared");
	$holder->query('COMMIT') if $how ne 'go on';
	is($test->local_sql('SELECT count(*) FROM copy'), $how eq 'go on' ? '5000' : '0', "$how: all rows or none");
	all_rests("two prepared, $how");
}

# ----- cancel -----------------------------------------------------------------

foreach my $how ('cancel', 'terminate')
{
	my $caller = $test->session;

	target('copy', '(id int, v text)');
	$test->local_sql('CREATE TRIGGER wait_here BEFORE INSERT ON copy FOR EACH ROW EXECUTE FUNCTION wait_here()');
	TidrangeTest::shut_gate($local);
	$caller->start(call('INSERT INTO copy SELECT * FROM t', 'workers => 3'));
	TidrangeTest::wait_at_gate($local, 3);
	$test->local_sql("SELECT pg_${how}_backend(" . $caller->pid . ')');
	if ($how eq 'cancel')
	{
		my $start = time;
		my ($out, $err) = $caller->finish;

		like($err, qr/ERROR:  57014/, 'the call is cancelled');
		cmp_ok(time - $start, '<=', 2, 'soon');
	}
	all_rests("after $how");
	TidrangeTest::open_gate($local);
	is($test->local_sql('SELECT count(*) FROM copy'), '0', "after $how: nothing is inserted");
}
{
	my $caller = $test->session;

	TidrangeTest::shut_gate($local);
	$caller->start(call('INSERT INTO copy SELECT * FROM t', 'workers => 3'));
	TidrangeTest::wait_at_gate($local, 3);
	$test->local_sql('SELECT pg_terminate_backend(worker_pid) FROM tidrange_fdw_insert_progress WHERE worker = 1');
	my ($out, $err) = $caller->finish;
	like($err, qr/ERROR:  57P01:.*insert worker 1/s, 'a worker that is terminated ends the call');
	TidrangeTest::open_gate($local);
	all_rests('a terminated worker');
}

# ----- errors -----------------------------------------------------------------

target('copy', '(id int, v text)');
$test->local_sql(<<'SQL');
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.id = 3333 THEN
        RAISE EXCEPTION 'no such luck' USING ERRCODE = 'XX123', DETAIL = 'It was 3333.', HINT = 'Avoid it.';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER fail BEFORE INSERT ON copy FOR EACH ROW EXECUTE FUNCTION fail();
SQL
like($test->local_error(call('INSERT INTO copy SELECT * FROM t', 'workers => 3')),
	qr/ERROR:  XX123: no such luck\nDETAIL:  It was 3333.\nHINT:  Avoid it.\nCONTEXT:  PL\/pgSQL function fail\(\) line 4 at RAISE\ninsert worker \d/,
	'an error of a worker is the caller\'s, with all its parts');
is($test->local_sql('SELECT count(*) FROM copy'), '0', 'nothing is inserted');
all_rests('an error');

# ----- whose rights -----------------------------------------------------------

$test->local_sql(<<'SQL');
CREATE ROLE alice LOGIN;
CREATE ROLE bob LOGIN;
GRANT bob TO alice;
GRANT USAGE ON FOREIGN SERVER source TO bob;
GRANT SELECT ON t TO bob;
CREATE SCHEMA other AUTHORIZATION bob;
CREATE TABLE other.mine (id int, who text DEFAULT current_user, session text DEFAULT session_user,
    setting text DEFAULT current_setting('my.setting', true), path text DEFAULT current_setting('search_path'));
ALTER TABLE other.mine OWNER TO bob;
CREATE TABLE not_mine (id int);
CREATE TABLE rows_of (id int);
ALTER TABLE rows_of ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON rows_of FOR INSERT WITH CHECK (id < 4000);
GRANT INSERT ON rows_of TO bob;
ALTER USER MAPPING FOR PUBLIC SERVER source OPTIONS (ADD password_required 'false', ADD user 'postgres');
SQL
$test->local_sql('ALTER USER MAPPING FOR PUBLIC SERVER source OPTIONS (SET user \'' . $test->remote_sql('SELECT current_user') . '\')');
my $alice = [ '-U', 'alice' ];
is($test->local_error(
	"SET client_min_messages = warning; SET ROLE bob; SET my.setting = 'x'; SET search_path = other, public; " . call('INSERT INTO mine (id) SELECT id FROM t', 'workers => 3'),
	extra_params => $alice), '', 'a role that was set');
is($test->local_sql('SELECT count(*), min(who), max(who), min(session), max(session), min(setting), max(path) FROM other.mine'),
	'5000|bob|bob|alice|alice|x|other, public', 'current and session user, settings and search_path are the caller\'s');
like($test->local_error('SET ROLE bob; ' . call('INSERT INTO not_mine SELECT id FROM t', 'workers => 3'), extra_params => $alice),
	qr/ERROR:  42501: permission denied for table not_mine/, 'no right to the target');
like($test->local_error('SET ROLE bob; ' . call('INSERT INTO rows_of SELECT id FROM t', 'workers => 3'), extra_params => $alice),
	qr/ERROR:  42501: .*row-level security/, 'row-level security');
like($test->local_error('SET ROLE bob; INSERT INTO tidrange_fdw_insert_marker VALUES (1)', extra_params => $alice),
	qr/ERROR:  42501/, 'users have no right to the markers');
is($test->local_error("SET client_min_messages = warning; SET SESSION AUTHORIZATION bob; " . call('INSERT INTO other.mine (id) SELECT id FROM t', 'workers => 3')),
	'', 'SET SESSION AUTHORIZATION');
is($test->local_sql("SELECT count(*) FROM other.mine WHERE session = 'bob'"), '5000', 'the session user is that');
all_rests('rights');

# ----- little room ------------------------------------------------------------

$local->append_conf('postgresql.conf', "max_worker_processes = 2\nmax_prepared_transactions = 0\n");
$local->restart;
target('copy', '(id int, v text)');
like($test->local_error(call('INSERT INTO copy SELECT * FROM t', 'workers => 2')),
	qr/ERROR:  55000: .*max_prepared_transactions is 0.*HINT:.*atomic => false/s, 'without prepared transactions it is refused');
$test->local_sql(call('INSERT INTO copy SELECT * FROM t', 'workers => 2, atomic => false'));
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'but not if it need not be atomic');
$test->local_sql('TRUNCATE copy; ' . call('INSERT INTO copy SELECT * FROM t', 'workers => 1'));
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'nor with one worker');
$test->local_sql('TRUNCATE copy; ' . call('INSERT INTO copy SELECT * FROM t', 'workers => 8, atomic => false'));
is($test->local_sql(TidrangeTest::checksum('copy')), $sum, 'with the workers that there are');

$test->finish;
