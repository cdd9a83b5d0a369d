# Large values and wide rows arrive, and the memory that this takes is bounded
# by four times the largest row.  What no COPY can send is the remote's error.

use strict;
use warnings FATAL => 'all';

use Digest::MD5 qw(md5_hex);
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use ValuesTest;

use constant MB => 1_000_000;

# What a process has without us: buffers, catalogs, the executor.
use constant BASE => 40 * MB;

my $meminfo = -r '/proc/meminfo' ? slurp_file('/proc/meminfo') : '';
my ($available) = $meminfo =~ /^MemAvailable: *(\d+) kB/m;

plan skip_all => 'needs Linux, for /proc tells the memory of a process' if !$available;
plan skip_all => 'needs 8 GB of free memory' if $available < 8_000_000;

my $test = ValuesTest->new(
	source_conf => "wal_level = minimal\nmax_wal_senders = 0\nmax_wal_size = 8GB\nshared_buffers = 32MB\n",
	destination_conf => "shared_buffers = 32MB\n");
my %ways = ValuesTest::ways();

# The largest values are made when they are asked for, which is faster than to
# read them.  The table is written in the transaction that made it, hence not
# logged.
$test->remote_sql(<<'SQL');
CREATE FUNCTION filled(letters text, size int) RETURNS bytea LANGUAGE sql AS $$
    SELECT convert_to(repeat(letters, size / length(letters)), 'UTF8')
$$;
CREATE VIEW one AS SELECT 1 AS k, filled('abcdefgh', 600000000) AS b UNION ALL SELECT 2, 'small';
CREATE VIEW two AS SELECT 1 AS k, filled('abcdefgh', 450000000) AS a, filled('ijklmnop', 450000000) AS b;
CREATE VIEW too_much AS SELECT filled('abcdefgh', 600000000) AS a, filled('ijklmnop', 600000000) AS b;
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

# The answer of a query, by its checksum, and how far the memory of its session
# went.  It is a cursor's, which keeps no row; an aggregate keeps a copy of the
# first.
sub answer_and_peak
{
	my ($settings, $query) = @_;
	my $result = $test->local_sql(<<"SQL");
$settings
BEGIN;
DECLARE c NO SCROLL CURSOR FOR $query;
FETCH ALL FROM c;
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\\s*(\\d+) kB')::bigint * 1024;
COMMIT;
SQL
	my ($answer, $peak) = $result =~ /\A(.*)\n(\d+)\z/s;

	return (md5_hex($answer), $peak);
}

# OFFSET 0 keeps functions from being sent.
my %query = (
	one => 'SELECT k, length(b), md5(b) FROM (SELECT * FROM f.one OFFSET 0) q',
	two => 'SELECT k, length(a), length(b), md5(a), md5(b) FROM (SELECT * FROM f.two OFFSET 0) q',
	forty => 'SELECT k, octet_length(t), md5(t) FROM (SELECT * FROM f.forty OFFSET 0) q',
	hundred => "SELECT count(*), sum(octet_length(t)), md5(string_agg(md5(t || u), ' ' ORDER BY k)) FROM f.hundred",
	wide => ValuesTest::checksum('f.wide'));

# What the source would answer; of the largest, what it did.
my %truth = map { $_ => md5_hex($test->remote_sql($query{$_} =~ s/f\.//r)) } ('hundred', 'wide');

$truth{one} = md5_hex("1|600000000|e2e913c5ceadc224e78c436c718d6d62\n2|5|eb5c1399a871211c7e7ed732d15e3a8b");
$truth{two} = md5_hex('1|450000000|450000000|f81b6d1c69e7c399efd42cd21aae9736|f249eb56dabaa4396574d218e22ac9a4');
$truth{forty} = '9d74da20acb803385aa9529a19cabac0';

my @cases = (
	[ 'one', 'a value of 600 MB', 600 * MB ], [ 'two', 'a row of 900 MB', 900 * MB ],
	[ 'forty', '20 rows of 40 MB', 40 * MB ], [ 'hundred', '1000 rows of 100 kB', MB / 10 ],
	[ 'wide', '1600 columns', MB / 100 ]);

foreach my $case (@cases)
{
	my ($table, $name, $size) = @$case;
	my ($answer, $peak) = answer_and_peak($ways{'serial, binary'}, $query{$table});

	is($answer, $truth{$table}, $name);
	cmp_ok($peak, '<=', BASE + 4 * $size, "$name: memory stays within four times the row");
	note(sprintf('peak: %.0f MB', $peak / MB));
}
foreach my $way ('serial, text', 'parallel, binary', 'parallel, text')
{
	is(md5_hex($test->local_sql($ways{$way} . $query{$_})), $truth{$_}, "$_: $way") foreach ('hundred', 'wide');
}

# More than COPY can put into one message.
my ($code, $out, $err) = $test->destination->psql('postgres', <<"SQL", on_error_stop => 0, timeout => ValuesTest::PATIENCE);
\\set VERBOSITY verbose
$ways{'serial, binary'}
SELECT length(a), length(b) FROM (SELECT a, b FROM f.too_much OFFSET 0) q;
SELECT length(b) FROM f.one WHERE k = 2;
SELECT count(*) FROM f.forty;
SQL
like($err, qr/ERROR:  54000: (?:out of memory.*Cannot enlarge string buffer|string buffer exceeds maximum allowed length).*foreign table "too_much"/s, 'a row of more than 1 GB is an error of the remote, shown as it is');
like($out, qr/^5\n20$/m, 'and the session goes on');

$test->finish;
