# What a participant holds in memory does not grow with the table, only with the
# widest row.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

plan skip_all => 'needs /proc' unless -r '/proc/self/status';

my $pair = TidrangeTest->new(chunk_blocks => 64);

$pair->remote_sql(<<'SQL');
CREATE TABLE small AS SELECT i AS id, repeat('x', 200) AS v, i::numeric AS n, ARRAY[i, i] AS a
    FROM generate_series(1, 20000) i;
CREATE TABLE large AS SELECT i AS id, repeat('x', 200) AS v, i::numeric AS n, ARRAY[i, i] AS a
    FROM generate_series(1, 200000) i;
-- filler: a few rows a block, for chunks
CREATE TABLE wide AS SELECT i AS id, repeat(chr(65 + i % 26), 5000000) AS v, repeat('f', 1900) AS filler
    FROM generate_series(1, 60) i;
SQL
$pair->create_server;
$pair->import_tables(qw(small large wide));
$pair->local_sql(<<'SQL');
ALTER FOREIGN TABLE wide OPTIONS (chunk_blocks '4');
-- Kilobytes that belong to this process alone.
CREATE FUNCTION private_memory() RETURNS int LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s+(\d+)')::int
$$;
SQL

# The most that any participant held, in kB, looked at every so many rows.
sub peak
{
	my ($workers, $table, $every, $columns) = @_;
	my $sql =
	  "SELECT max(CASE WHEN id % $every = 0 THEN private_memory() END), count(*), $columns FROM $table";
	my ($plan, $result) = split /\n#\n/,
	  $pair->local_sql(TidrangeTest::workers($workers)
		  . "EXPLAIN (COSTS OFF) $sql; SELECT '#'; $sql");

	like($plan, $workers ? qr/Gather/ : qr/^(?!.*Gather)/s,
		"$table, $workers workers: the plan");
	my ($peak, $rows, $sum) = split /\|/, $result;
	note "$table, $workers workers: $peak kB, $rows rows";
	return ($peak, $rows, $sum);
}

foreach my $workers (0, 2)
{
	my $columns = 'sum(length(v) + n + a[1])';
	my ($small, $small_rows) = peak($workers, 'small', 100, $columns);
	my ($large, $large_rows, $sum) = peak($workers, 'large', 1000, $columns);

	is("$small_rows $large_rows $sum", '20000 200000 40040200000',
		"$workers workers: all rows");
	cmp_ok($large, '<', $small + 2048,
		"$workers workers: ten times the table, the same memory");

	# libpq's buffer, its copy of the row, our value
	my ($wide, $wide_rows, $length) =
	  peak($workers, 'wide', 1, 'sum(length(v))');

	is("$wide_rows $length", '60 300000000', "$workers workers: wide rows");
	cmp_ok($wide, '<', $small + 6 * 5000,
		"$workers workers: six times a wide row at most");
}

# A stream that gives its connection up goes to a file, not to memory.
$pair->remote_sql(
	'CREATE ROLE reader LOGIN CONNECTION LIMIT 1; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader'
);
$pair->create_server(name => 'narrow', mapping => { user => 'reader' });
$pair->local_sql(<<'SQL');
CREATE SCHEMA narrow;
IMPORT FOREIGN SCHEMA public FROM SERVER narrow INTO narrow;
SQL
my ($parked) = split /\|/, $pair->local_sql(<<'SQL');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SET work_mem = '1MB';
SET max_parallel_workers_per_gather = 0;
SELECT max(CASE WHEN a.id % 100 = 0 THEN private_memory() END), count(*)
    FROM narrow.large a JOIN narrow.small b USING (id);
SQL
my ($plain) = peak(0, 'small', 100, 'count(v)');
cmp_ok($parked, '<', $plain + 3 * 1024 + 3072, 'two streams on one connection');

$pair->finish;
