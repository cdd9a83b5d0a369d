# Plans that meet the real remote: many partitions and a dead shard, ranges of blocks
# that change from rescan to rescan, LIMIT that must not wait, and text that the two
# sides sort differently.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

# The remote has two seconds to answer; the rest is for a slow machine.
use constant WAIT_SECONDS => 4;

my $pair = TidrangeTest->new(source_conf => "log_statement = all\nlog_connections = on\n");

$pair->create_table('big', 20000);
$pair->remote_sql(q{CREATE TABLE small AS SELECT i AS id, 'x'::text AS v FROM generate_series(1, 70) i; ANALYZE small});
$pair->create_server;
$pair->import_tables(qw(big small));

# How often the pattern is in the log since the offset.
sub logged
{
	my ($offset, $pattern) = @_;
	return scalar(() = slurp_file($pair->source->logfile, $offset) =~ /$pattern/g);
}

# ----- 500 partitions, of which one is on a server that is away --------------------

my $nobody = PostgreSQL::Test::Cluster::get_free_port();

$pair->create_server(name => 'away', options => { host => '127.0.0.1', port => $nobody });
$pair->local_sql(<<'SQL');
CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id);
DO $$
BEGIN
    FOR i IN 0..499 LOOP
        EXECUTE format('CREATE FOREIGN TABLE part%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)
            SERVER %I OPTIONS (schema_name ''public'', table_name ''small'')',
            i, i * 100, (i + 1) * 100, CASE WHEN i = 250 THEN 'away' ELSE 'source' END);
    END LOOP;
END
$$;
SQL
my $session = $pair->session;
my $offset = $pair->remote_log_size;
my ($plan, $err) = $session->query('EXPLAIN (COSTS OFF) SELECT * FROM parts WHERE v IS NOT NULL');
is($err, '', '500 partitions, one shard away: planned');
is(scalar(() = $plan =~ /Foreign Scan on part/g), 500, '... all of them');
cmp_ok($session->elapsed, '<', WAIT_SECONDS, '... soon');
is(logged($offset, qr/statement: [^\n]*pg_relation_size/), 1, '... with one question');

$session->query("SET plan_cache_mode = force_generic_plan; PREPARE p(int) AS SELECT count(*) FROM parts WHERE id = \$1");
($plan, $err) = $session->query('EXPLAIN (COSTS OFF) EXECUTE p(7)');
is($err, '', 'pruned when run: planned');
like($plan, qr/Subplans Removed: 499/, '... and pruned');
is($session->query('EXECUTE p(7)'), '1', 'the partition that is left answers');
cmp_ok($session->elapsed, '<', WAIT_SECONDS, '... soon');
($plan, $err) = $session->query('EXECUTE p(25001)');
like($err, qr/could not connect|connection/i, 'the dead shard is an error when it is read');
is($session->query('EXECUTE p(8)'), '1', 'and no harm to the others');
$session->quit;

# ----- blocks read for bounds that change ------------------------------------------

sub blocks_read
{
	$pair->remote_is_left('counters are final');
	return $pair->remote_sql(q{SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'big'});
}

foreach my $workers (0, 3)
{
	my $before = blocks_read();
	my $sql = q{SELECT string_agg(n::text, ' ' ORDER BY lo) FROM (SELECT lo, (SELECT count(*) FROM big WHERE ctid >= (SELECT lo) AND ctid < (SELECT hi)) AS n
        FROM (VALUES ('(0,0)'::tid, '(10,0)'::tid), ('(100,0)', '(90,0)'), ('(2000,0)', '(2100,0)'), ('(3990,0)', '(9999,0)')) b(lo, hi)) x};

	is($pair->local_sql(TidrangeTest::workers($workers) . $sql), '50 0 500 50', "$workers workers: four ranges");
	cmp_ok(blocks_read() - $before, '<=', 140, '... and no block outside is read');
}

# Outer rows' bounds: over one session, whatever their number.
$offset = $pair->remote_log_size;
is($pair->local_sql('SELECT sum(n) FROM generate_series(0, 39) g, LATERAL (SELECT count(*) AS n FROM big '
	  . q{WHERE ctid >= ('(' || g || ',0)')::tid AND ctid < ('(' || g + 1 || ',0)')::tid OFFSET 0) x}),
	'200', 'bounds from outer rows');
cmp_ok(logged($offset, qr/connection authorized/), '<=', 4, '... do not open a connection each');

# ----- LIMIT: nobody waits for the slowest -----------------------------------------

# The row that is wanted is in the first chunks; each of the others would take long.
$pair->local_sql(q{CREATE FUNCTION slow_here(x int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE COST 1000 AS
    'BEGIN IF x > 10000 THEN PERFORM pg_sleep(0.05); END IF; RETURN x = 7; END'});
$session = $pair->session;
$session->query(TidrangeTest::workers(3));
$plan = $session->query('EXPLAIN (COSTS OFF) SELECT id FROM big WHERE slow_here(id) LIMIT 1');
like($plan, qr/Limit.*Gather.*Parallel Foreign Scan/s, 'LIMIT over a selective filter is parallel');
is($session->query('SELECT id FROM big WHERE slow_here(id) LIMIT 1'), '7', 'LIMIT: the row');
cmp_ok($session->elapsed, '<', 20, '... without waiting for the other 500 seconds');
$pair->remote_rests('... and nothing runs there afterwards');

$session->quit;
my $before = blocks_read();
is($pair->local_sql(TidrangeTest::workers(3) . 'SELECT count(*) FROM (SELECT * FROM big LIMIT 5) x'), '5', 'LIMIT 5 with workers');
cmp_ok(blocks_read() - $before, '<=', 400, '... reads a small part of the table');

# ----- two sides that sort differently ----------------------------------------------

SKIP:
{
	skip 'no ICU collations', 12
	  if $pair->local_sql(q{SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'}) eq '0';

	$pair->remote_sql(<<'SQL');
CREATE TABLE words (w text, n int);
INSERT INTO words SELECT w || CASE WHEN i > 0 THEN i::text ELSE '' END, i
FROM unnest('{a-1,a1,A,b,B,a,ab,aB,a-b,Ab,"a b",é,e,f,_,"",Z,z}'::text[]) w, generate_series(0, 40) i;
INSERT INTO words VALUES (NULL, 99);
ANALYZE words;
SQL
	$pair->local_sql(<<'SQL');
CREATE FOREIGN TABLE words (w text COLLATE "en-x-icu", n int) SERVER source OPTIONS (schema_name 'public');
CREATE TABLE words_here (w text COLLATE "en-x-icu", n int);
INSERT INTO words_here SELECT * FROM words;
CREATE FOREIGN TABLE words_c (w text COLLATE "C", n int) SERVER source OPTIONS (schema_name 'public', table_name 'words');
ANALYZE words_here;
SQL
	my $merge = 'SET enable_hashjoin = off; SET enable_nestloop = off;';
	my $join = 'SELECT count(*), sum(a.n) FROM words a JOIN words_here b USING (w)';

	like($pair->local_sql("$merge EXPLAIN (COSTS OFF) $join"),
		qr/Merge Join.*Sort.*->  Foreign Scan on words a/s, 'merge join: our sort above the scan');
	is($pair->local_sql("$merge $join"), $pair->local_sql($join), 'merge join and hash join agree');
	is($pair->local_sql("$merge $join"), $pair->local_sql($join =~ s/words a/words_here a/r), '... with the copy');
	$join = 'SELECT count(*), sum(a.n) FROM words_c a JOIN words_here b ON a.w = b.w COLLATE "C"';
	is($pair->local_sql("$merge $join"), $pair->local_sql($join =~ s/words_c a/words_here a/r), 'merge join under C');
	unlike($pair->local_sql(q{EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM words WHERE w < 'b'}),
		qr/Remote SQL:.*WHERE/, 'an order that the remote does not know is not sent');
	like($pair->local_sql(q{EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM words_c WHERE w < 'b'}),
		qr/Remote SQL:.*WHERE.*COLLATE "C"/, 'that of C is, with its name');
	foreach my $qual (q{w >= 'a' AND w < 'b'}, q{w LIKE 'a%'}, q{w > 'A' AND w <= 'e'}, q{w BETWEEN 'Ab' AND 'b'},
		q{w = 'a-1'}, q{w = ANY ('{a,A,é}')}, q{w ILIKE 'AB%'}, q{upper(w) = 'É'}, q{w ~ '^[a-b]'}, q{NOT w < 'B'},
		q{w COLLATE "C" < 'a'}, q{greatest(w, 'b') = 'b'}, q{w IS DISTINCT FROM 'a'}, q{starts_with(w, 'a-')},
		q{(w, n) < ('b', 5)}, q{CASE WHEN w < 'b' THEN n ELSE -n END > 3})
	{
		my $rows = 'SELECT count(*), min(w COLLATE "C"), sum(n) FROM';
		my $truth = $pair->local_sql("$rows words_here WHERE $qual");

		is($pair->local_sql("$rows words WHERE $qual"), $truth, "$qual: as on a local copy");
		is($pair->local_sql(TidrangeTest::workers(2) . "$rows words WHERE $qual"), $truth, "$qual: in parallel");
	}
	is($pair->local_sql(TidrangeTest::workers(2) . 'SELECT md5(string_agg(w, \'|\' ORDER BY w, n)) FROM words'),
		$pair->local_sql('SELECT md5(string_agg(w, \'|\' ORDER BY w, n)) FROM words_here'), 'ORDER BY');
}

# ----- constants under a remote with settings of its own ---------------------------

$pair->remote_sql(<<'SQL');
CREATE TABLE consts (id int, d date, ts timestamp, tz timestamptz, iv interval, b bytea, f float8, t text, a text[], n numeric);
INSERT INTO consts SELECT i, date '2020-01-01' + i, timestamp '2020-01-01' + i * interval '1 h', timestamptz '2020-01-01 00:00+00' + i * interval '1 h',
    i * interval '1 day 1 min', decode(lpad(to_hex(i), 4, '0'), 'hex'), i / 3.0, E'a\\' || i || '''', ARRAY[NULL, i::text, 'NULL', 'x\y"z'], i / 7.0
FROM generate_series(1, 400) i;
ANALYZE consts;
ALTER DATABASE postgres SET datestyle = 'SQL, DMY';
ALTER DATABASE postgres SET intervalstyle = 'sql_standard';
ALTER DATABASE postgres SET timezone = 'Asia/Kolkata';
ALTER DATABASE postgres SET bytea_output = 'escape';
ALTER DATABASE postgres SET extra_float_digits = -5;
ALTER DATABASE postgres SET standard_conforming_strings = off;
ALTER DATABASE postgres SET escape_string_warning = off;
ALTER DATABASE postgres SET backslash_quote = off;
ALTER DATABASE postgres SET transform_null_equals = on;
ALTER DATABASE postgres SET array_nulls = off;
ALTER DATABASE postgres SET quote_all_identifiers = on;
ALTER DATABASE postgres SET search_path = 'nowhere';
SQL
$pair->import_tables('consts');
$pair->local_sql('CREATE TABLE consts_here AS SELECT * FROM consts');
is($pair->local_sql('SELECT count(*) FROM consts_here'), '400', 'a copy');
my @quals = (q{d = '2020-02-03'}, q{ts < '2020-01-05 10:00'}, q{tz > '2020-01-05 10:00+02'}, q{iv > '3 days 1 min'},
	q{b < '\x0010'}, q{f = 5 / 3.0::float8}, q{t = E'a\\\\5\\''}, q{t = ANY (ARRAY[E'a\\\\5\\'', 'q'])},
	q{a = ARRAY[NULL, '5', 'NULL', 'x\y"z']}, q{n = 5 / 7.0}, q{t LIKE E'a\\\\\\\\1%'}, q{d IN ('2020-02-03', '2020-03-02')},
	q{iv = '-1 day'::interval * -5 + '5 min'}, q{nullif(t, 'a') = NULL}, q{a[2] = '7' AND a[1] IS NULL});
foreach my $qual (@quals)
{
	my $rows = 'SELECT count(*), min(id), max(id) FROM';

	is($pair->local_sql("$rows consts WHERE $qual"), $pair->local_sql("$rows consts_here WHERE $qual"), "$qual: as here");
}

# ----- members of extensions ---------------------------------------------------------

SKIP:
{
	my $available = $pair->remote_sql('SELECT name FROM pg_available_extensions');

	skip 'no contrib extensions', 8 if $available !~ /^hstore$/m || $available !~ /^citext$/m;
	foreach my $side (qw(remote_sql local_sql))
	{
		$pair->$side('CREATE SCHEMA ext; CREATE EXTENSION hstore SCHEMA ext; CREATE EXTENSION citext SCHEMA ext');
	}
	$pair->remote_sql(q{CREATE TABLE public.members AS SELECT i AS id, ext.hstore('k', i::text) AS h, ('T' || i)::ext.citext AS c FROM generate_series(1, 50) i});
	$pair->import_tables('members');
	my %sql = (
		hstore => q{SELECT id FROM members WHERE h OPERATOR(ext.?) 'k' AND h OPERATOR(ext.@>) 'k=>7'::ext.hstore},
		citext => q{SELECT id FROM members WHERE c OPERATOR(ext.=) 't7'::ext.citext});

	foreach my $extension (sort keys %sql)
	{
		unlike($pair->local_sql("EXPLAIN (VERBOSE, COSTS OFF) $sql{$extension}"), qr/Remote SQL:.*WHERE/, "$extension is not listed");
		is($pair->local_sql($sql{$extension}), '7', '... evaluated here');
	}
	$pair->local_sql(q{ALTER SERVER source OPTIONS (ADD extensions 'hstore, citext')});
	foreach my $extension (sort keys %sql)
	{
		like($pair->local_sql("EXPLAIN (VERBOSE, COSTS OFF) $sql{$extension}"), qr/Remote SQL:.*WHERE.*OPERATOR\(ext\./, "$extension is listed");
		is($pair->local_sql($sql{$extension}), '7', '... evaluated there');
	}
}

$pair->finish;
