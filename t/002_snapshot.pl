# One snapshot for all participants, and a table that stays what it was while it
# is read: writers, rewrites, a reload, a table that is met late, and a swap of
# schemas.

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
$pair->create_table($_, 3000) foreach qw(ledger reload late);
$pair->remote_sql(<<'SQL');
CREATE TABLE busy (id int PRIMARY KEY, g int, v text)
    WITH (fillfactor = 20, autovacuum_enabled = off);
INSERT INTO busy SELECT i, 0, repeat('x', 100) FROM generate_series(1, 1400) i;
CREATE SCHEMA blue;
CREATE SCHEMA green;
CREATE TABLE blue.swap (id int, v text) WITH (fillfactor = 10);
INSERT INTO blue.swap SELECT i, repeat('b', 100) FROM generate_series(1, 3000) i;
CREATE TABLE green.swap (id int, v text) WITH (fillfactor = 10);
INSERT INTO green.swap SELECT i, repeat('g', 100) FROM generate_series(1, 3000) i;
CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
INSERT INTO parts SELECT i, 'v' FROM generate_series(0, 1999) i;
CREATE TABLE parent (id int, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT i, 'v' FROM generate_series(0, 999) i;
INSERT INTO child SELECT i, 'v' FROM generate_series(1000, 1999) i;
CREATE TABLE beneath AS SELECT i AS id, 'v'::text AS v FROM generate_series(0, 1999) i;
CREATE VIEW above AS SELECT * FROM beneath;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM beneath;
SQL
$pair->import_tables(qw(ledger reload late busy parts parent above kept));
$pair->local_sql(<<'SQL');
CREATE SCHEMA blue;
IMPORT FOREIGN SCHEMA blue FROM SERVER source INTO blue;
SQL

# ----- a writer that never rests ----------------------------------------------

# Every commit leaves 1400 rows of one generation g.
my $stop = $source->data_dir . '/writer.stop';
my $writer = $pair->remote_session;
my $vacuum = $pair->remote_session;

$writer->start(<<'SQL');
DO $$
BEGIN
    WHILE (pg_stat_file('writer.stop', true)).size IS NULL LOOP
        UPDATE busy SET g = g + 1, v = v || 'y' WHERE id % 7 = 0;
        DELETE FROM busy WHERE id % 7 = 1;
        UPDATE busy SET g = g + 1 WHERE id % 7 > 1;
        INSERT INTO busy
            SELECT id + 1, g, repeat('z', 100) FROM busy WHERE id % 7 = 0 AND id < 1400;
        INSERT INTO busy SELECT 1, g, 'one' FROM busy WHERE id = 7;
        COMMIT;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$
SQL

my $reader = $pair->session;
my $question =
  'SELECT count(*), count(DISTINCT id), sum(id), min(g) = max(g), min(g) FROM busy';
my %generations;
my @wrong;

$reader->query(TidrangeTest::workers(4));
like($reader->query("EXPLAIN (COSTS OFF) $question"),
	qr/Workers Planned: [234]/, 'the table is read in parallel');
foreach my $run (1 .. 25)
{
	$vacuum->start('VACUUM busy');
	$reader->query('SET parallel_leader_participation = '
		  . ($run % 2 ? 'on' : 'off'));

	my $first = $reader->query("BEGIN; $question");
	my $again = $reader->query($question);

	$reader->query('COMMIT');
	push @wrong, "run $run: $first"
	  if $first !~ /^1400\|1400\|980700\|t\|(\d+)$/;
	push @wrong, "run $run: first $first, then $again" if $first ne $again;
	$generations{$1} = 1 if $first =~ /(\d+)$/;
	$vacuum->finish;
}
is(join("\n", @wrong), '', 'every run sees one generation, every row once');
cmp_ok(scalar(keys %generations), '>', 5, 'the writer was at work meanwhile');
append_to_file($stop, 'x');
$writer->finish;

# ----- writers, and rewrites, in the middle of a scan -------------------------

my $truth = $pair->remote_sql(TidrangeTest::checksum('ledger'));
my $held =
  TidrangeTest::checksum('(SELECT * FROM ledger WHERE gate(id))') ;

# Start a scan and come back when its participants have read their first rows.
sub hold_scan
{
	my ($session, $sql, $participants) = @_;

	TidrangeTest::shut_gate($destination);
	$session->start($sql);
	TidrangeTest::wait_at_gate($destination, $participants);
	return;
}

sub release_scan
{
	my ($session) = @_;

	TidrangeTest::open_gate($destination);
	return $session->finish;
}

# The SQLSTATE of a statement that does not wait long.
sub impatient_remote
{
	my ($sql) = @_;
	my ($code, $out, $err) = $source->psql('postgres',
		"\\set VERBOSITY verbose\nSET lock_timeout = '300ms';\n$sql",
		timeout => TidrangeTest::PATIENCE);

	return $err =~ /ERROR:  (\w{5}):/ ? $1 : $code == 0 ? 'done' : $err;
}

foreach my $workers (0, 3)
{
	my $name = "$workers workers";

	$reader->query(TidrangeTest::workers($workers)
		  . 'RESET parallel_leader_participation');
	hold_scan($reader, $held, $workers ? 3 : 1);
	foreach my $rewrite (
		'VACUUM FULL ledger', 'TRUNCATE ledger',
		'CLUSTER ledger USING ledger_pkey',
		'ALTER TABLE ledger ALTER id TYPE bigint', 'DROP TABLE ledger')
	{
		is(impatient_remote($rewrite), '55P03', "$name: $rewrite waits");
	}
	is( impatient_remote(
			q(UPDATE ledger SET v = v || 'y' WHERE id % 3 = 0;
			DELETE FROM ledger WHERE id % 3 = 1;
			INSERT INTO ledger SELECT i, 'new' FROM generate_series(3001, 4000) i
			ON CONFLICT DO NOTHING)
		),
		'done',
		"$name: writers do not wait");
	is(impatient_remote('VACUUM ledger'), 'done', "$name: nor does VACUUM");
	is(scalar(release_scan($reader)), $truth, "$name: rows as they were");
	$truth = $pair->remote_sql(TidrangeTest::checksum('ledger'));
	is($reader->query(TidrangeTest::checksum('ledger')),
		$truth, "$name: the next transaction sees the changes");
}
is(impatient_remote('VACUUM FULL ledger'),
	'done', 'VACUUM FULL runs when nobody reads');
is($reader->query(TidrangeTest::checksum('ledger')),
	$truth, 'and the rows are the same');

# ----- a reload is never seen half-way ----------------------------------------

my $loader = $pair->remote_session;

foreach my $workers (0, 3)
{
	$reader->query(TidrangeTest::workers($workers));
	$reader->query('SELECT count(*) FROM reload');
	$loader->query('BEGIN; TRUNCATE reload');
	$reader->start('SELECT count(*), min(id), max(id) FROM reload');
	is( TidrangeTest::answer_within(
			$source,
			TidrangeTest::PATIENCE,
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%LOCK TABLE%'",
			't'),
		't',
		"$workers workers: the reader waits for the lock");
	$loader->query(
		"INSERT INTO reload SELECT i, 'v' FROM generate_series(1, 700) i; COMMIT"
	);
	is(scalar($reader->finish), '700|1|700',
		"$workers workers: it reads what was loaded");
}

# ----- a table that is first met when the snapshot is old ----------------------

foreach my $workers (0, 3)
{
	my $name = "$workers workers";
	my ($out, $err);

	$reader->query(TidrangeTest::workers($workers));
	$reader->query('SELECT count(*) FROM late');
	$reader->query('BEGIN; SELECT count(*) FROM reload');
	$pair->remote_sql(
		q(BEGIN; TRUNCATE late; INSERT INTO late SELECT i, 'v' FROM generate_series(1, 700) i; COMMIT)
	);
	($out, $err) = $reader->query('SELECT count(*) FROM late');
	is($out, '', "$name: a table rewritten since gives no rows");
	like($err, qr/ERROR:  40001: .*late.*rewritten/,
		"$name: but an error that says to retry");
	$reader->query('ROLLBACK');
	is($reader->query('SELECT count(*) FROM late'),
		'700', "$name: the next transaction reads it");

	# changed, but not rewritten: it is as it was
	$reader->query('BEGIN; SELECT count(*) FROM reload');
	$pair->remote_sql('DELETE FROM late WHERE id > 100; VACUUM late');
	is($reader->query('SELECT count(*) FROM late; COMMIT'),
		'700', "$name: a table changed since is read as it was");
	$pair->remote_sql(
		q(INSERT INTO late SELECT i, 'v' FROM generate_series(101, 700) i));
}

# The same where the rows are in other relations than the one that is named.
my %reload = (
	parts => q(TRUNCATE parts_high; INSERT INTO parts SELECT i, 'v' FROM generate_series(1000, 1999) i),
	parent => q(TRUNCATE child; INSERT INTO child SELECT i, 'v' FROM generate_series(1000, 1999) i),
	above => q(TRUNCATE beneath; INSERT INTO beneath SELECT i, 'v' FROM generate_series(0, 1999) i),
	kept => q(REFRESH MATERIALIZED VIEW kept));
foreach my $table (sort keys %reload)
{
	foreach my $cursor (0, 1)
	{
		my $name = $table . ($cursor ? ', beside an open cursor' : '');
		my ($out, $err);

		$reader->query(TidrangeTest::workers(0));
		is($reader->query("SELECT count(*) FROM $table"), '2000', "$name: before");
		$reader->query('BEGIN; SELECT count(*) FROM reload');
		$reader->query('DECLARE c CURSOR FOR SELECT * FROM ledger; FETCH c') if $cursor;
		$pair->remote_sql("BEGIN; $reload{$table}; COMMIT");
		($out, $err) = $reader->query("SELECT count(*) FROM $table");
		is($out, '', "$name: rewritten since, it gives no rows");
		like($err, qr/ERROR:  40001: .*$table.*rewritten/, "$name: but an error that says to retry");
		$reader->query('ROLLBACK');
		is($reader->query("SELECT count(*) FROM $table"), '2000', "$name: the next transaction reads it");
	}
}

# ----- blue and green ----------------------------------------------------------

$reader->query(TidrangeTest::workers(3));
my $swap = "SELECT count(*), string_agg(DISTINCT left(v, 1), '') FROM blue.swap";
is($reader->query($swap), '3000|b', 'before the swap');
hold_scan($reader, "$swap WHERE gate(id)", 3);
is( impatient_remote(
		'ALTER SCHEMA blue RENAME TO old; ALTER SCHEMA green RENAME TO blue'),
	'done',
	'a swap of schemas waits for nobody');
my ($out, $err) = release_scan($reader);
is($out, '', 'a swap in the middle of a scan gives no rows');
like($err, qr/ERROR:  40001: .*swap/, 'but an error that names the table');
is($reader->query($swap), '3000|g', 'after the swap');
$pair->remote_rests('nothing is left');

$pair->finish;
