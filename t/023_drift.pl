# A local column whose type is not the remote one's, and a remote table that
# changes after it was declared, or planned: the same rows or the same SQLSTATE
# as through postgres_fdw, which reads output text into the local type.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use ValuesTest;

my $test = ValuesTest->new;
my $types = <<'SQL';
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN yes AS bool;
CREATE DOMAIN dchar AS char(5);
SQL

$test->remote_sql($types);
$test->local_sql($types);

# Same names, other meanings.
$test->remote_sql(<<'SQL');
CREATE TYPE weather AS ENUM ('rain', 'sun', 'snow');
CREATE DOMAIN bounded AS int;
CREATE DOMAIN filled AS text;
CREATE TYPE trio AS (a int, b text, c int);
CREATE TYPE swapped AS (a int, b text);
SQL
$test->local_sql(<<'SQL');
CREATE TYPE weather AS ENUM ('sun', 'rain');
CREATE DOMAIN bounded AS int CHECK (VALUE < 100);
CREATE DOMAIN filled AS text NOT NULL;
CREATE TYPE trio AS (a int, b text);
CREATE TYPE swapped AS (b text, a int);
SQL

$test->link_databases;

my $settings_of = { ValuesTest::ways() };

# ----- pairs of types ---------------------------------------------------------

# Remote type, its values, local type, conditions on the local column.
my @pairs = (
	[ 'int', "(1), (-2147483648), (NULL)", 'bigint', 'v < 0', 'v = 1', 'v = 4294967297' ],
	[ 'int', "(1), (70000)", 'smallint', 'v = 1' ],
	[ 'int', "(1), (2)", 'smallint', 'v = 1' ],
	[ 'bigint', "(1), (9223372036854775807)", 'int', 'v = 1' ],
	[ 'bigint', "(1), (4607182418800017408)", 'float8', 'v = 1', 'v > 2' ],
	[ 'float8', "(1), (0.30000000000000004), ('NaN'), ('-0')", 'bigint', 'v = 1' ],
	[ 'float8', "(1), (0.30000000000000004), ('NaN'), ('-0')", 'numeric', 'v = 1', 'v = 0' ],
	[ 'float8', "(0.1), (1e300)", 'float4', 'v = 0.1' ],
	[ 'float4', "(0.1), ('Infinity')", 'float8', 'v = 0.1', 'v = 0.1::float4' ],
	[ 'int', "(1), (65)", 'text', "v = '1'", "v < '2'", 'length(v) = 2' ],
	[ 'int', "(0), (1)", 'bool', 'v', 'NOT v' ],
	[ 'int', "(0), (1)", 'oid', 'v = 1' ],
	[ 'oid', "(0), (4294967295)", 'int', 'v = 0' ],
	[ 'oid', "(0), (4294967295)", 'bigint', 'v = 4294967295', 'v > 0' ],
	[ 'int', "(0), (1)", 'float4', 'v = 1' ],
	[ 'int', "(0), (1)", 'date', "v = '2000-01-02'" ],
	[ 'text', "('1'), (' 2 '), ('03')", 'int', 'v = 2', 'v > 1' ],
	[ 'text', "('1'), ('x')", 'int', 'v = 1' ],
	[ 'text', "('a'), ('a '), ('abcdef')", 'varchar(5)', "v = 'a'" ],
	[ 'text', "('a'), ('a '), ('abcde     ')", 'varchar(5)', "v = 'a'", "v = 'abcde'" ],
	[ 'text', "('a'), ('a ')", 'char(5)', "v = 'a'", 'length(v) = 1', "v || '|' = 'a|'" ],
	[ 'text', "('a'), ('a ')", 'bytea', "v = 'a'" ],
	[ 'text', "('2020-01-02'), ('infinity')", 'date', "v = '2020-01-02'", "v > '2020-01-03'" ],
	[ 'text', "('ok'), ('sad'), (NULL)", 'mood', "v = 'ok'", "v > 'sad'", 'v IS NULL' ],
	[ 'text', "('ok'), ('bad')", 'mood', "v = 'ok'" ],
	[ 'text', "('{\"a\": 1}'), ('[]')", 'jsonb', "v = '[]'", "v ? 'a'" ],
	[ 'text', "('{1,2}'), ('{}')", 'int[]', "v = '{1,2}'", '1 = ANY (v)' ],
	[ 'varchar(20)', "('abc'), ('abcdefgh')", 'varchar(5)', "v = 'abc'" ],
	[ 'varchar(20)', "('abc'), ('abcde')", 'varchar(5)', "v = 'abc'" ],
	[ 'varchar(20)', "('abc'), ('abcde   ')", 'varchar(5)', "v = 'abcde'" ],
	[ 'varchar(5)', "('abc'), ('ab ')", 'varchar(20)', "v = 'ab'", "v = 'ab '" ],
	[ 'varchar(5)', "('abc'), ('ab ')", 'text', "v = 'ab'", "v = 'ab '" ],
	[ 'varchar(5)', "('abc'), ('ab ')", 'char(5)', "v = 'ab'", "v::text = 'ab'" ],
	[ 'varchar', "('abc')", 'name', "v = 'abc'" ],
	[ 'char(5)', "('a'), (''), ('abcde')", 'text', "v = 'a'", "v = 'a    '", 'length(v) = 5' ],
	[ 'char(5)', "('a'), (''), ('abcde')", 'varchar(3)', "v = 'a'" ],
	[ 'char(5)', "('a'), ('')", 'varchar(3)', "v = 'a'", "v = 'a  '" ],
	[ 'char(5)', "('a'), ('abcde')", 'char(3)', "v = 'a'" ],
	[ 'char(5)', "('a'), ('')", 'char(8)', "v = 'a'", "v = ''" ],
	[ 'char(5)', "('a'), ('')", 'bpchar', "v = 'a'", "octet_length(v) = 5" ],
	[ 'dchar', "('a'), ('')", 'text', "v = 'a'", 'length(v) = 5' ],
	[ 'char(5)', "('a'), ('')", 'dchar', "v = 'a'" ],
	[ 'name', "('abc')", 'text', "v = 'abc'" ],
	[ '"char"', "('a'), ('')", 'text', "v = 'a'", "v = ''" ],
	[ 'bool', "(true), (false), (NULL)", 'text', "v = 't'", "v = 'true'" ],
	[ 'bool', "(true), (false), (NULL)", 'int', 'v = 1' ],
	[ 'yes', "(true), (false), (NULL)", 'text', "v = 't'", "v = 'true'" ],
	[ 'yes', "(true), (false), (NULL)", 'bool', 'v', 'v IS NULL' ],
	[ 'bool', "(true), (false), (NULL)", 'yes', 'v' ],
	[ 'numeric', "(1.005), (-999.994), (NULL)", 'numeric(5,2)', 'v = 1.01', 'v = 1.005', 'v < 0' ],
	[ 'numeric', "(1.005), (999.995)", 'numeric(5,2)', 'v = 1.01' ],
	[ 'numeric', "('NaN'), (1)", 'numeric(5,2)', "v = 'NaN'" ],
	[ 'numeric', "('Infinity'), (1)", 'numeric(5,2)', "v = 1" ],
	[ 'numeric(5,2)', "(1.50), (2)", 'numeric', 'v = 1.5' ],
	[ 'numeric(5,2)', "(1.50), (2)", 'numeric(10,3)', 'v = 1.5' ],
	[ 'numeric', "(1.50), (2)", 'int', 'v = 2' ],
	[ 'numeric', "(2), (3.00)", 'int', 'v = 2' ],
	[ 'numeric', "(2.5)", 'float8', 'v = 2.5' ],
	[ 'numeric', "(2.5)", 'money', "v = '2.50'" ],
	[ 'money', "(2.5), (-1234.5)", 'numeric', 'v = 2.5' ],
	[ 'timestamp', "('2020-07-01 12:00'), ('infinity')", 'timestamptz', "v = '2020-07-01 12:00+00'", "v > '2020-07-01 12:00'" ],
	[ 'timestamptz', "('2020-07-01 12:00+00'), ('infinity')", 'timestamp', "v = '2020-07-01 12:00'" ],
	[ 'timestamp', "('2020-07-01 12:00:00.123456')", 'timestamp(3)', "v = '2020-07-01 12:00:00.123'" ],
	[ 'timestamp(3)', "('2020-07-01 12:00:00.123456')", 'timestamp', "v = '2020-07-01 12:00:00.123'" ],
	[ 'timestamp', "('2020-07-01 12:00:00'), ('-infinity')", 'date', "v = '2020-07-01'" ],
	[ 'date', "('2020-07-01'), ('-infinity'), ('0044-03-15 BC')", 'timestamp', "v = '2020-07-01'", "v < '0001-01-01'" ],
	[ 'date', "('2020-07-01')", 'text', "v = '2020-07-01'", "v = '07-01-2020'" ],
	[ 'timestamptz', "('2020-07-01 12:00+00')", 'text', "v LIKE '2020%'" ],
	[ 'interval', "('1 day 02:00:00.5')", 'interval(0)', "v = '1 day 02:00:01'", "v > '1 day 02:00:00.5'" ],
	[ 'interval', "('1 year 1 day 02:00:00.5')", 'interval year to month', "v = '1 year'" ],
	[ 'interval', "('1 day 02:00')", 'time', "v = '02:00'" ],
	[ 'time', "('02:00'), ('24:00')", 'interval', "v = '2 hours'" ],
	[ 'time', "('02:00')", 'timetz', "v = '02:00+00'" ],
	[ 'mood', "('ok'), ('sad'), (NULL)", 'text', "v = 'ok'", "v > 'p'", 'v IS NULL' ],
	[ 'weather', "('sun'), ('rain')", 'weather', "v = 'sun'", "v < 'rain'", "v > 'sun'", 'v IS NOT NULL' ],
	[ 'weather', "('sun'), ('snow')", 'weather', "v = 'sun'" ],
	[ 'weather', "('sun'), ('rain')", 'mood' ],
	[ 'weather[]', "('{sun,NULL}'), ('{rain}')", 'weather[]', "v = '{rain}'", "'sun' = ANY (v)" ],
	[ 'weather[]', "('{sun,NULL}'), ('{}')", 'text[]', "v = '{}'", "'sun' = ANY (v)" ],
	[ 'json', "('{\"b\" : 1, \"a\":2}'), ('[]')", 'jsonb', "v = '[]'", "v ? 'a'" ],
	[ 'json', "('{\"a\":\"\\u0000\"}')", 'jsonb' ],
	[ 'json', "('{\"a\":\"\\u0000\"}')", 'json' ],
	[ 'json', "('{\"a\":\"\\u0000\"}')", 'text', "length(v) > 1" ],
	[ 'jsonb', "('{\"b\" : 1, \"a\":2}')", 'json', "v->>'b' = '1'" ],
	[ 'jsonb', "('{\"b\" : 1, \"a\":2}')", 'text', "v LIKE '{%'" ],
	[ 'xml', "('<a>1</a>')", 'text', "v = '<a>1</a>'" ],
	[ 'text', "('<a>1</a>'), ('x<b')", 'xml' ],
	[ 'bytea', "('\\x00ff'), ('abc')", 'text', "v = '\\x00ff'", "v = 'abc'" ],
	[ 'uuid', "('00000000-0000-0000-0000-000000000001')", 'text', "v LIKE '0%1'" ],
	[ 'text', "('{00000000000000000000000000000001}')", 'uuid', "v = '00000000-0000-0000-0000-000000000001'" ],
	[ 'uuid', "('00000000-0000-0000-0000-000000000001')", 'bytea' ],
	[ 'inet', "('1.2.3.4'), ('10.0.0.0/8'), ('1.2.3.4/8')", 'text', "v = '1.2.3.4'" ],
	[ 'inet', "('1.2.3.4'), ('10.0.0.0/8')", 'cidr', "v = '10.0.0.0/8'" ],
	[ 'inet', "('1.2.3.4/8')", 'cidr' ],
	[ 'cidr', "('1.2.3.4/32'), ('10.0.0.0/8')", 'inet', "v = '1.2.3.4'" ],
	[ 'bit(5)', "(B'00101')", 'bit(3)' ],
	[ 'bit(5)', "(B'00101')", 'varbit(4)' ],
	[ 'bit(5)', "(B'00101')", 'varbit', "v = B'00101'" ],
	[ 'varbit', "(B'00101')", 'bit(5)', "v = B'00101'" ],
	[ 'varbit', "(B'00101'), (B'1')", 'bit(5)' ],
	[ 'bit(5)', "(B'00101')", 'int' ],
	[ 'int[]', "('{1,2}'), ('[0:1]={7,8}')", 'bigint[]', "v = '{1,2}'", 'v[0] = 7' ],
	[ 'int[]', "('{1,2}'), ('[0:1]={7,8}')", 'text', "v = '{1,2}'", "v LIKE '[%'" ],
	[ 'numeric[]', "('{1.005,NULL}')", 'numeric(5,2)[]', "v = '{1.01,NULL}'" ],
	[ 'varchar(20)[]', "('{abcdefgh}')", 'varchar(5)[]' ],
	[ 'char(3)[]', "('{a,\"b  \"}')", 'text[]', "v = '{a,b}'", "v[1] = 'a  '" ],
	[ 'char(3)[]', "('{a,\"b  \"}')", 'char(4)[]', "v = '{a,b}'" ],
	[ 'int', "(1), (NULL)", 'int[]' ],
	[ 'int', "(5), (NULL)", 'posint', 'v = 5', 'v IS NULL' ],
	[ 'int', "(5), (-5)", 'posint', 'v = 5' ],
	[ 'posint', "(5), (7)", 'int', 'v = 5' ],
	[ 'posint', "(5), (7)", 'bigint', 'v = 5' ],
	[ 'bounded', "(5), (NULL)", 'bounded', 'v = 5', 'v < 10', 'v IS NULL' ],
	[ 'bounded', "(5), (500)", 'bounded', 'v = 5', 'v < 10' ],
	[ 'bounded[]', "('{5,NULL}')", 'bounded[]', 'v[1] = 5' ],
	[ 'bounded[]', "('{5,500}')", 'bounded[]', 'v[1] = 5' ],
	[ 'filled', "('x'), ('')", 'filled', "v = 'x'" ],
	[ 'filled', "('x'), (NULL)", 'filled', "v = 'x'" ],
	[ 'text', "('x'), (NULL)", 'filled', "v = 'x'" ],
	[ 'filled[]', "('{x,NULL}')", 'filled[]' ],
	[ 'pair', "('(1,x)'), ('(,)'), (NULL)", 'text', "v = '(1,x)'" ],
	[ 'pair', "('(1,x)'), ('(,)')", 'swapped' ],
	[ 'swapped', "('(1,2)'), ('(,)')", 'swapped', "(v).a = 2" ],
	[ 'trio', "('(1,x,3)')", 'trio' ],
	[ 'trio[]', "('{\"(1,x,3)\"}')", 'trio[]' ],
	[ 'text', "('(1,x)'), ('(,)')", 'pair', '(v).a = 1', "v = '(1,x)'" ],
	[ 'int4range', "('[1,3)'), ('empty')", 'int8range', "v = '[1,3)'", 'v @> 2::bigint' ],
	[ 'int4range', "('[1,3)')", 'numrange', "v = '[1,3)'", 'v @> 2.5' ],
	[ 'int4range', "('[1,3)')", 'int4multirange', "v = '{[1,3)}'" ],
	[ 'int4range', "('[1,3)')", 'text', "v = '[1,3)'" ],
	[ 'regclass', "('pg_class'), ('pg_type')", 'text', "v = 'pg_class'" ],
	[ 'regclass', "('pg_class'), ('pg_type')", 'oid' ],
	[ 'regclass', "('pg_class'), ('d0')", 'regclass', "v = 'pg_class'" ],
	[ 'regtype', "('mood'), ('int')", 'regtype' ],
	[ 'regtype', "('weather'), ('int')", 'text' ],
	[ 'xid', "('3'), ('4294967295')", 'bigint', 'v = 3' ],
	[ 'tid', "('(1,2)')", 'point' ],
	[ 'pg_lsn', "('1/2')", 'text', "v = '1/2'" ],
	[ 'tsvector', "('a:1 b')", 'text' ],
	[ 'text', "('b a:1A')", 'tsvector', "v @@ 'a'" ],
	[ 'point', "('(1,2)')", 'text', "v = '(1,2)'" ],
	[ 'macaddr', "('08:00:2b:01:02:03')", 'macaddr8', "v = '08:00:2b:ff:fe:01:02:03'" ]);

my $make = '';
my $declare = '';
my %query;

foreach my $n (0 .. $#pairs)
{
	my ($remote, $rows, $local, @quals) = @{ $pairs[$n] };
	$rows =~ s/\((-?[\d.e]+)\)/('$1')/g;
	my $label = sprintf('%03d %s as %s', $n, $remote, $local);

	# Enough for several chunks, of which only the last has the values.
	$make .= "CREATE TABLE d$n (k int, v $remote, z text); "
	  . "INSERT INTO d$n SELECT -i, (SELECT v::$remote FROM (VALUES $rows) t(v) LIMIT 1), repeat('z', 300) FROM generate_series(1, 60) i; "
	  . "INSERT INTO d$n SELECT row_number() OVER (), v::$remote FROM (VALUES $rows) t(v);\n";
	$declare .= "CREATE FOREIGN TABLE SCHEMA.d$n (k int, v $local, z text) SERVER SERVER OPTIONS (schema_name 'public');\n";
	$query{"$label: rows"} = "SELECT count(*), md5(string_agg(whole_row::text, ' ' ORDER BY k)), string_agg(v::text, '|' ORDER BY k) FILTER (WHERE k > 0) FROM SCHEMA.d$n whole_row";
	$query{"$label: without it"} = "SELECT count(*), sum(k) FROM SCHEMA.d$n";
	$query{"$label: WHERE $_"} = "SELECT count(*), sum(k), md5(string_agg(v::text, ' ' ORDER BY k)) FROM SCHEMA.d$n WHERE $_"
	  foreach @quals;
}

sub in_schema
{
	my ($schema, $server, $sql) = @_;

	$sql =~ s/SERVER SERVER/SERVER $server/g;
	$sql =~ s/SCHEMA\./$schema./g;
	return $sql;
}

$test->remote_sql($make);
$test->local_sql(in_schema('f', 'ours', $declare));
$test->local_sql(in_schema('r', 'theirs', $declare));

# An error is as good as its SQLSTATE; that of "malformed" rows is none.
sub outcome_classes
{
	my (%outcome) = @_;

	s/^(ERROR \w+).*/$1/s foreach values %outcome;
	return %outcome;
}

my %theirs = outcome_classes(
	$test->local_outcomes('', map { $_ => in_schema('r', '', $query{$_}) } keys %query));

# Where postgres_fdw has the remote answer a condition that means something else
# there, the truth is what a local copy answers.
my %copied = $test->local_outcomes("CREATE SCHEMA copy;\n",
	map { ("d$_" => "CREATE TABLE copy.d$_ AS SELECT * FROM r.d$_") } 0 .. $#pairs);
my %truth = %theirs;

foreach my $n (0 .. $#pairs)
{
	next if $copied{"d$n"} ne '';
	my @labels = grep { /^0*$n / } keys %query;
	my %answers = outcome_classes(
		$test->local_outcomes('', map { $_ => in_schema('copy', '', $query{$_}) } @labels));

	$truth{$_} = $answers{$_} foreach keys %answers;
}
note("postgres_fdw answers otherwise than a copy: $_: $theirs{$_}, not $truth{$_}")
  foreach grep { $theirs{$_} ne $truth{$_} } sort keys %truth;

# All of it serially; in parallel, where it takes its time, a part; and what
# travels as text anyway is not asked for twice.
my %asked = (
	'serial, binary' => [ sort keys %query ],
	'serial, text' => [ grep { /: rows$/ } sort keys %query ],
	'parallel, binary' => [ grep { /^..[05].*(rows|WHERE)/ } sort keys %query ],
	'parallel, text' => [ grep { /^..3.*(rows|WHERE)/ } sort keys %query ]);

foreach my $way (sort keys %asked)
{
	my @labels = @{ $asked{$way} };
	my %messages = $test->local_outcomes($settings_of->{$way},
		map { $_ => in_schema('f', '', $query{$_}) } @labels);
	my %ours = outcome_classes(%messages);
	my %expected = map { $_ => $truth{$_} } @labels;

	# With a value that no local column can hold there is no local copy to
	# compare with.  postgres_fdw may have the remote drop that row; to say that
	# it cannot be read is as good.
	foreach my $label (grep { /WHERE/ && $ours{$_} ne $expected{$_} } @labels)
	{
		my ($pair) = $label =~ /^(.*): WHERE/;

		$expected{$label} = $ours{$label}
		  if $ours{$label} =~ /^ERROR/ && $ours{$label} eq $truth{"$pair: rows"};
	}
	my @wrong = ValuesTest::same_outcomes(\%ours, \%expected, "pairs of types: $way");
	diag("$_: $messages{$_}") foreach grep { $messages{$_} =~ /^ERROR/ } @wrong;
}

# Errors say where.
my $error = $test->local_error('SELECT v FROM f.d' . (grep { $pairs[$_][0] eq 'text' && $pairs[$_][2] eq 'int' && $pairs[$_][1] =~ /x/ } 0 .. $#pairs)[0]);
like($error, qr/ERROR:  22P02: invalid input syntax for type integer: "x"/, 'an error has the SQLSTATE of its kind');
like($error, qr/column "v" of foreign table "d\d+"/, 'it names the column and the foreign table');

# ----- the remote table changes -----------------------------------------------

$test->remote_sql('CREATE TABLE changing (k int, v bigint, w text); '
	  . 'INSERT INTO changing SELECT i, i, i FROM generate_series(1, 2000) i');
$test->declare_both('changing', 'k int, v bigint, w text');

# One psql, which calls another between PREPARE and EXECUTE.
sub prepared
{
	my ($settings, $alter, $query) = @_;
	my $connection = $test->source->connstr('postgres');
	my ($code, $out, $err) = $test->destination->psql('postgres', <<"SQL", on_error_stop => 0, timeout => ValuesTest::PATIENCE);
\\set VERBOSITY sqlstate
$settings
SET plan_cache_mode = force_generic_plan;
PREPARE q AS $query;
EXECUTE q;
\\! psql -XqAt -d "$connection" -c "$alter"
EXECUTE q;
SQL
	$err =~ s/^psql:\S+ //mg;
	return "$out\n$err";
}

foreach my $way (sort keys %$settings_of)
{
	my $sum = 'SELECT sum(v), min(v), max(v) FROM f.changing';

	is( prepared($settings_of->{$way}, 'ALTER TABLE changing ALTER v TYPE double precision', $sum),
		"2001000|1|2000\n2001000|1|2000\n",
		"bigint becomes double precision between PREPARE and EXECUTE: $way");
	is( prepared($settings_of->{$way}, 'UPDATE changing SET v = 0.5 WHERE k = 2000; ALTER TABLE changing ALTER w TYPE bytea USING w::bytea', $sum),
		"2001000|1|2000\nERROR:  22P02",
		"a value that is no bigint: $way");
	$test->remote_sql('ALTER TABLE changing ALTER v TYPE bigint USING k, ALTER w TYPE text USING k');

	# The bits of 1.0 and of 4607182418800017408 are the same.
	my $condition = 'SELECT count(*) FROM f.changing WHERE v = 4607182418800017408 OR v = 1';

	is( prepared($settings_of->{$way}, 'ALTER TABLE changing ALTER v TYPE double precision', $condition),
		"1\n1\n", "the same in a condition: $way");
	$test->remote_sql('ALTER TABLE changing ALTER v TYPE bigint USING k');

	is( prepared($settings_of->{$way}, 'ALTER TABLE changing RENAME w TO u', 'SELECT count(v) FROM f.changing'),
		"2000\n2000\n", "another column is renamed: $way");
	my %outcome = outcome_classes(
		$test->local_outcomes($settings_of->{$way},
			'missing' => 'SELECT w FROM f.changing',
			'others' => 'SELECT count(*), sum(v) FROM f.changing',
			'condition' => "SELECT count(*) FROM f.changing WHERE w = '1'"));
	is_deeply(
		\%outcome,
		{ missing => 'ERROR 42703', others => '2000|2001000', condition => 'ERROR 42703' },
		"a column that is no more is an error for those who want it: $way");
	like($test->local_error("$settings_of->{$way} SELECT w FROM f.changing"),
		qr/"w".*changing/s, "which names column and table: $way");
	$test->remote_sql('ALTER TABLE changing RENAME u TO w');
}

# The columns are found by name, wherever they are and whatever came and went.
$test->remote_sql('ALTER TABLE changing DROP COLUMN v; ALTER TABLE changing ADD x text DEFAULT repeat(\'x\', 200); '
	  . 'ALTER TABLE changing ADD v bigint; UPDATE changing SET v = -k');
$test->local_sql(<<'SQL');
ALTER FOREIGN TABLE f.changing DROP COLUMN w;
ALTER FOREIGN TABLE f.changing ADD v2 text OPTIONS (column_name 'v');
ALTER FOREIGN TABLE f.changing ADD w2 int OPTIONS (column_name 'w');
SQL
foreach my $way (sort keys %$settings_of)
{
	is( $test->local_sql("$settings_of->{$way} SELECT count(*), sum(k), sum(v), sum(v2::int), sum(w2) FROM f.changing"),
		'2000|2001000|-2001000|-2001000|2001000',
		"dropped and added columns on either side: $way");
	is( $test->local_sql("$settings_of->{$way} SELECT whole_row FROM f.changing whole_row WHERE v2 = '-7'"),
		'(7,-7,-7,7)', "the row as a whole: $way");
}

# What an outdated local enum or domain cannot hold is an error that names it.
like($test->local_error('SELECT v FROM f.d' . (grep { $pairs[$_][0] eq 'weather' && $pairs[$_][1] =~ /snow/ } 0 .. $#pairs)[0]),
	qr/22P02: invalid input value for enum weather: "snow".*column "v"/s,
	'an enum label that is missing here');
like($test->local_error('SELECT v FROM f.d' . (grep { $pairs[$_][0] eq 'bounded' && $pairs[$_][1] =~ /500/ } 0 .. $#pairs)[0]),
	qr/23514: value for domain bounded violates check constraint.*column "v"/s,
	'a domain that is stricter here');
like($test->local_error('SELECT v FROM f.d' . (grep { $pairs[$_][0] eq 'filled' && $pairs[$_][1] =~ /NULL/ } 0 .. $#pairs)[0]),
	qr/23502: domain filled does not allow null values.*column "v"/s,
	'a domain that takes no NULL here');

$test->finish;
