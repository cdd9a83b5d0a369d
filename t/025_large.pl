# Large values and wide rows arrive, and the memory that this takes is bounded
# by four times the largest row.  What no COPY can send is the remote's error.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use ValuesTest;

use constant MB => 1_000_000;

# What a process has without us: buffers, catalogs, the executor.
use constant BASE => 80 * MB;

my $meminfo = -r '/proc/meminfo' ? slurp_file('/proc/meminfo') : '';
my ($available) = $meminfo =~ /^MemAvailable: *(\d+) kB/m;

plan skip_all => 'needs Linux, for /proc tells the memory of a process' if !$available;
plan skip_all => 'needs 8 GB of free memory' if $available < 8_000_000;

my $test = ValuesTest->new(
	source_conf => "wal_level = minimal\nmax_wal_senders = 0\nmax_wal_size = 8GB\nshared_buffers = 32MB\n",
	destination_conf => "shared_buffers = 32MB\n");
my %ways = ValuesTest::ways();

# Written in the transaction that made the table, hence not logged.
$test->remote_sql(<<'SQL');
CREATE FUNCTION filled(letters text, size int) RETURNS bytea LANGUAGE sql AS $$
    SELECT convert_to(repeat(letters, size / length(letters)), 'UTF8')
$$;
BEGIN;
CREATE TABLE one (k int, b bytea);
ALTER TABLE one ALTER b SET STORAGE EXTERNAL;
INSERT INTO one VALUES (1, filled('abcdefgh', 600000000)), (2, 'small');
COMMIT;
CREATE VIEW two AS SELECT k, substr(b, 1, 450000000) AS a, substr(b, 100000001, 450000000) AS b FROM one WHERE k = 1;
CREATE VIEW too_much AS SELECT k, b AS a, b FROM one;
CREATE VIEW forty AS SELECT i AS k, repeat(chr(64 + i) || 'é', 40000000 / 3) AS t FROM generate_series(1, 20) i;
BEGIN;
CREATE TABLE hundred (k int, t text, u text) WITH (toast_tuple_target = 128);
ALTER TABLE hundred ALTER t SET STORAGE EXTERNAL, ALTER u SET STORAGE PLAIN;
INSERT INTO hundred SELECT i, repeat(chr(64 + i % 26) || 'xyz', 25000), repeat('p', 3000) FROM generate_series(1, 1000) i;
COMMIT;
SQL
# Columns of several types in turn; a page holds one row.
my @column = (
	[ 'int', 'i + N' ], [ 'bool', '(i + N) % 2 = 0' ], [ 'smallint', '(i + N)::smallint' ],
	[ 'text', 'chr(64 + (i + N) % 26)' ], [ '"char"', "'x'" ]);
$test->remote_sql('CREATE TABLE wide ('
	  . join(', ', map { "c$_ $column[$_ % @column][0]" } 1 .. 1600)
	  . '); INSERT INTO wide SELECT '
	  . join(', ', map { my $n = $_; $n == 7 ? 'NULL' : $column[ $n % @column ][1] =~ s/N/$n/r } 1 .. 1600)
	  . ' FROM generate_series(1, 60) i; INSERT INTO wide (c1600) VALUES (NULL)');

$test->link_databases(chunk_blocks => 8);
$test->import_both('public');

# The answer of a query in a session of its own, and how far its memory went.
sub answer_and_peak
{
	my ($settings, $query) = @_;
	my ($answer, $peak) = split /\n/, $test->local_sql(<<"SQL");
$settings
$query;
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\\s*(\\d+) kB')::bigint * 1024;
SQL
	return ($answer, $peak);
}

# name, query (where OFFSET 0 keeps functions from being sent), answer, size of the largest row
my @cases = (
	[
		'a value of 600 MB',
		'SELECT k, length(b), md5(b) FROM (SELECT * FROM f.one OFFSET 0) q WHERE k = 1',
		$test->remote_sql('SELECT k, length(b), md5(b) FROM one WHERE k = 1'),
		600 * MB
	],
	[
		'a row of 900 MB',
		'SELECT k, length(a), length(b), md5(substr(a, 400000000)), md5(substr(b, 440000000)) FROM (SELECT * FROM f.two OFFSET 0) q',
		$test->remote_sql('SELECT k, length(a), length(b), md5(substr(a, 400000000)), md5(substr(b, 440000000)) FROM two'),
		900 * MB
	],
	[
		'20 rows of 40 MB',
		'SELECT count(*), sum(octet_length(t)), md5(string_agg(md5(t), \' \' ORDER BY k)) FROM (SELECT * FROM f.forty OFFSET 0) q',
		$test->remote_sql('SELECT count(*), sum(octet_length(t)), md5(string_agg(md5(t), \' \' ORDER BY k)) FROM forty'),
		40 * MB
	],
	[
		'1000 rows of 100 kB',
		'SELECT count(*), sum(octet_length(t)), md5(string_agg(md5(t || u), \' \' ORDER BY k)) FROM (SELECT * FROM f.hundred OFFSET 0) q',
		$test->remote_sql('SELECT count(*), sum(octet_length(t)), md5(string_agg(md5(t || u), \' \' ORDER BY k)) FROM hundred'),
		MB / 10
	],
	[
		'1600 columns',
		ValuesTest::checksum('f.wide'),
		$test->remote_sql(ValuesTest::checksum('wide')),
		MB / 100
	]);

foreach my $case (@cases)
{
	my ($name, $query, $expected, $size) = @$case;
	my @how = ('serial, binary');

	push @how, 'parallel, binary' if $size < 10 * MB;
	push @how, 'serial, text' if $size < 10 * MB;
	foreach my $way (@how)
	{
		my ($settings, $read) = ($ways{$way}, $query);

		# A Gather above the scan would take the rows' copies through the leader.
		$read =~ s/ OFFSET 0\)/)/ if $way =~ /parallel/;
		my ($answer, $peak) = answer_and_peak($settings, $read);

		is($answer, $expected, "$name: $way");
		cmp_ok($peak, '<=', BASE + 4 * $size, "$name: memory stays within four times the row: $way")
		  if $way =~ /serial/;
		note(sprintf('peak: %.0f MB', $peak / MB));
	}
}
is( $test->local_sql("$ways{'parallel, binary'} SELECT sum(length(b)) FROM f.one"),
	'600000005', 'a value of 600 MB beside small ones, in parallel');

# More than COPY can put into one message.
my ($code, $out, $err) = $test->destination->psql('postgres', <<"SQL", on_error_stop => 0, timeout => ValuesTest::PATIENCE);
\\set VERBOSITY verbose
$ways{'serial, binary'}
SELECT length(a), length(b) FROM (SELECT a, b FROM f.too_much OFFSET 0) q;
SELECT length(b) FROM f.one WHERE k = 2;
SELECT count(*) FROM f.forty;
SQL
like($err, qr/ERROR:  54000: out of memory.*Cannot enlarge string buffer.*foreign table "too_much"/s, 'a row of more than 1 GB is an error of the remote, shown as it is');
like($out, qr/^5\n20$/m, 'and the session goes on');

$test->finish;
