# Large values: a few blocks of a table may stand for most of its bytes. Their size
# decides about workers, chunks are small enough for all of them, and a block of huge
# rows is divided by its line pointers.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(source_conf => 'log_statement = all');
my $source = $pair->source;

$pair->create_server(options => { chunk_blocks => undef });
$pair->remote_sql(<<'SQL');
CREATE TABLE huge (id int, v text) WITH (autovacuum_enabled = off);
ALTER TABLE huge ALTER v SET STORAGE EXTERNAL;
INSERT INTO huge SELECT i, repeat(chr(97 + i % 26), 1000000) FROM generate_series(1, 40) i;
CREATE TABLE mixed (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE mixed_huge PARTITION OF mixed FOR VALUES FROM (0) TO (100);
ALTER TABLE mixed_huge ALTER v SET STORAGE EXTERNAL;
CREATE TABLE mixed_small PARTITION OF mixed FOR VALUES FROM (100) TO (100000);
INSERT INTO mixed SELECT i, repeat(chr(97 + i % 26), 1000000) FROM generate_series(1, 20) i;
INSERT INTO mixed SELECT i, repeat('s', 100) FROM generate_series(100, 20099) i;
SQL
$pair->import_tables(qw(huge mixed));

my $session = $pair->session;
my $sum = 'SELECT count(*), sum(id), sum(length(v)), md5(string_agg(md5(v), \'\' ORDER BY id)) FROM %s';

is($pair->remote_sql('SELECT pg_relation_size(\'huge\') / 8192'), '1', 'one block of rows');

# Which applications were sent chunks, and with which lower bounds.
sub chunks_of
{
	my ($offset) = @_;
	my (%apps, %bounds);

	foreach my $entry ($pair->remote_log($offset))
	{
		my ($app) = $entry->{app} =~ /tidrange_fdw \d+ (.*)/ or next;
		next if $entry->{text} !~ /COPY \(/;
		my ($lo, $hi) = $entry->{text} =~
		  /set_config\('tidrange.lo', '(\S+)', true\), set_config\('tidrange.hi', '(\S+)', true\)/
		  or next;
		$apps{$app}++;
		$bounds{"$lo $hi"}++;
	}
	return (\%apps, \%bounds);
}

# The chunks, put side by side, are the whole table.
sub covers
{
	my ($bounds, $name) = @_;
	my @sorted = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
	  map { [ /\((\d+),(\d+)\) \((\d+),(\d+)\)/ ] } keys %$bounds;
	my $gaps = 0;

	for my $i (1 .. $#sorted)
	{
		$gaps++
		  if "$sorted[$i][0],$sorted[$i][1]" ne "$sorted[$i - 1][2],$sorted[$i - 1][3]";
	}
	is($gaps, 0, "$name: no gap, no overlap");
	is("$sorted[0][0],$sorted[0][1]", '0,0', "$name: from the first block");
	is($sorted[-1][2], '4294967295', "$name: to the last, whatever comes");
	return;
}

foreach my $when ('never analyzed', 'analyzed')
{
	$pair->remote_sql('ANALYZE') if $when eq 'analyzed';
	$session = $pair->session;

	# no setting at all: 40 MB are worth two workers
	like($session->query('EXPLAIN (COSTS OFF) SELECT id, length(v) FROM huge'),
		qr/Gather.*Workers Planned: 2.*Parallel Foreign Scan on huge/s,
		"$when: the TOAST table counts for the plan");
	unlike($session->query('EXPLAIN (COSTS OFF) SELECT id FROM huge'),
		qr/Gather/, "$when: not where no large column is read");
	my $offset = $pair->remote_log_size;
	is($session->query(sprintf $sum, 'huge'),
		$pair->remote_sql(sprintf $sum, 'huge'), "$when: exact");
	my ($apps, $bounds) = chunks_of($offset);
	cmp_ok(scalar(keys %$bounds), '>', 2, "$when: one block in several chunks");
	covers($bounds, $when);
	my @sizes = map { /\(0,(\d+)\) \(0,(\d+)\)/ && $1 < 40 ? $2 - $1 : () } keys %$bounds;
	my ($largest) = sort { $b <=> $a } @sizes;
	cmp_ok(scalar(@sizes), '>=', 2, "$when: several have rows");
	cmp_ok($largest, '<=', 30, "$when: and none most of them");

	# all workers, each with something
	$session->query(TidrangeTest::workers(3)
		  . 'ALTER FOREIGN TABLE huge OPTIONS (ADD parallel_workers \'3\')')
	  if $when eq 'analyzed';
	is($session->query('SELECT count(*), sum(id) FROM huge'),
		'40|820', "$when: without the large column too");
}
foreach my $workers (1, 3)
{
	$session->query("SET max_parallel_workers_per_gather = $workers");
	is($session->query(sprintf $sum, 'huge'),
		$pair->remote_sql(sprintf $sum, 'huge'), "$workers workers: exact");
}

# dead and moved rows: line pointers that lead elsewhere
$pair->remote_sql('DELETE FROM huge WHERE id % 3 = 0; UPDATE huge SET id = id + 100 WHERE id % 3 = 1');
is($session->query(sprintf $sum, 'huge'),
	$pair->remote_sql(sprintf $sum, 'huge'), 'after deletes and updates: exact');
is($session->query('SELECT count(*) FROM huge WHERE ctid >= \'(0,10)\' AND ctid < \'(0,30)\''),
	$pair->remote_sql('SELECT count(*) FROM huge WHERE ctid >= \'(0,10)\' AND ctid < \'(0,30)\''),
	'a condition on ctid within the block');

# a leaf of large values beside one of small ones
$session->query('SET max_parallel_workers_per_gather = 3');
is($session->query(sprintf $sum, 'mixed'),
	$pair->remote_sql(sprintf $sum, 'mixed'), 'leaves of both kinds: exact');

# blocks are counted as blocks
like($session->query('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT id, length(v) FROM huge'),
	qr/Remote Blocks: 1\b.*Blocks Claimed: 1\b.*Blocks Finished: 1\b/s,
	'one block was claimed, however many parts it was read in');

# pinned: a block is not divided
$pair->remote_sql('INSERT INTO huge SELECT i, \'small\' FROM generate_series(1000, 1999) i');
$session = $pair->session;
$session->query(TidrangeTest::workers(3));
$session->query('ALTER FOREIGN TABLE huge OPTIONS (ADD chunk_blocks \'1\')');
my $offset = $pair->remote_log_size;
is($session->query(sprintf $sum, 'huge'),
	$pair->remote_sql(sprintf $sum, 'huge'), 'chunk_blocks: exact');
my ($apps, $bounds) = chunks_of($offset);
is(scalar(grep { /,[1-9]/ } keys %$bounds), 0, 'chunk_blocks: no block is divided');
covers($bounds, 'chunk_blocks');
$pair->remote_rests('nothing is left');

$pair->finish;
