# Every type that a column can have, with values at its edges, alone and within
# arrays, domains, composites and ranges, arrives as it is.  The types are those
# of pg_type; a type without values here fails the test, unless its input
# function accepts none.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use ValuesTest;

# ----- values -----------------------------------------------------------------

# Literals; what begins with = is an expression.  NULL comes by itself.
my %values = (
	bool => [ 't', 'f' ],
	bytea => [
		'', '\x00', '\x00ff5c27', q{=decode(repeat('ab', 125), 'hex')},
		q{=decode(repeat('00', 126), 'hex')}, q{=decode(repeat('cd', 127), 'hex')},
		q{=decode(repeat('0f', 5000), 'hex')}
	],
	'"char"' => [ '', 'a', '\\', ' ', q{'}, '"', q{=1::"char"}, q{=127::"char"} ],
	name => [ '', 'a', 'NULL', 'with "quote"', q{=repeat('é', 31)}, q{=repeat('x', 63)} ],
	int8 => [ '0', '-1', '9223372036854775807', '-9223372036854775808' ],
	int2 => [ '0', '-1', '32767', '-32768' ],
	int4 => [ '0', '-1', '2147483647', '-2147483648' ],
	int2vector => [ '', '1', '1 -2 32767' ],
	oidvector => [ '', '1', '1 4294967295' ],
	text => [
		'', ' ', 'NULL', '\N', '\.', "a\tb\nc\rd\be", '{}', '{"a",NULL}', '(,)', '"', '\'', 'a,b',
		'=chr(1) || chr(31) || chr(127)', 'é', '表', '😀', q{=repeat('x', 125)}, q{=repeat('x', 126)},
		q{=repeat('x', 127)}, q{=repeat('x', 128)}, q{=repeat('é', 63)}, q{=repeat('é', 64)},
		q{=repeat('😀', 2000)}, q{=repeat('x', 70000)}
	],
	varchar => [ '', 'a ', 'NULL', '表', q{=repeat('y', 126)}, q{=repeat('y', 300)} ],
	bpchar => [ '', 'a', 'a  ', ' a', q{=repeat('z', 126)}, q{=repeat('é', 300)} ],
	oid => [ '0', '1', '2147483648', '4294967295' ],
	xid => [ '0', '3', '4294967295' ],
	xid8 => [ '0', '18446744073709551615' ],
	cid => [ '0', '4294967295' ],
	tid => [ '(0,0)', '(0,1)', '(4294967295,65535)' ],
	json => [ 'null', '{}', ' { "a" : 1, "a":2 } ', '{"a":"\u0000"}', '"\ud83d\ude00"', '[1e400, -0.0]' ],
	jsonb => [
		'null', '{}', '[]', '"\u00e9"', '{"b":1e-30,"a":[null,true,"\\\\\""],"long key 123":{"x":{}}}',
		'1234567890123456789012345678901234567890.5', '-0.0', q{=to_jsonb(repeat('j', 70000))}
	],
	jsonpath => [ '$', '$.a[*] ? (@ > 1)', 'strict $."x y".size()', '$.a like_regex "^a\\\\d" flag "i"' ],
	xml => [ '<a>é</a>', 'text &amp; more', '', '<a/><b/>', '<?xml version="1.0" encoding="LATIN1"?><x/>' ],
	point => [ '(0,-0)', '(NaN,Infinity)', '(0.1,1e300)' ],
	lseg => [ '[(0,0),(0.1,-1)]' ],
	path => [ '((0,0),(1,1))', '[(0,0),(1,1)]', '[(0.30000000000000004,5e-324)]' ],
	box => [ '(1,1),(0,0)', '(Infinity,1),(-Infinity,-1)' ],
	polygon => [ '((0,0))', '((0,0),(1,0),(0.1,0.2))' ],
	line => [ '{1,2,3}', '{-1,0,0.1}' ],
	circle => [ '<(0,0),0>', '<(0.1,1),1e100>' ],
	float4 => [ '0', '-0', 'NaN', 'Infinity', '-Infinity', '1.17549435e-38', '1e-45', '3.4028235e38', '0.1', '16777217' ],
	float8 => [
		'0', '-0', 'NaN', 'Infinity', '-Infinity', '5e-324', '1.7976931348623157e308', '0.1',
		'=0.1::float8 + 0.2', '9007199254740993'
	],
	numeric => [
		'0', '0.000', '-0.0', 'NaN', 'Infinity', '-Infinity', '1e1000', '1e-1000', '-1.50', '123456789.987654321', '9999', '10000',
		'0.0001', '0.00001', q{=('1' || repeat('0', 131071))::numeric}, q{=('-0.' || repeat('0', 16382) || '1')::numeric}
	],
	money => [ '0', '-0.01', '92233720368547758.07', '-92233720368547758.08', '12.34' ],
	macaddr => [ '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff' ],
	macaddr8 => [ '08:00:2b:01:02:03:04:05', 'ff:ff:ff:ff:ff:ff:ff:ff' ],
	inet => [ '1.2.3.4', '1.2.3.4/8', '0.0.0.0/0', '::1/64', '::', '::ffff:1.2.3.4' ],
	cidr => [ '10.0.0.0/8', '1.2.3.4/32', '::/0', '2001:db8::/32' ],
	aclitem => [ 'postgres=r/postgres', '=/postgres', 'postgres=a*w*/postgres' ],
	date => [ 'infinity', '-infinity', '4714-11-24 BC', '0001-12-31 BC', '0001-01-01', '2000-01-01', '5874897-12-31' ],
	time => [ '00:00', '24:00', '23:59:59.999999', '00:00:00.000001' ],
	timetz => [ '00:00+00', '24:00+14', '23:59:59.999999-15:59:59', '12:00:00.5+05:30' ],
	timestamp => [
		'infinity', '-infinity', '4714-11-24 00:00:00 BC', '2000-01-01', '1999-12-31 23:59:59.999999',
		'294276-12-31 23:59:59.999999'
	],
	timestamptz => [
		'infinity', '-infinity', '4714-11-24 00:00:00+00 BC', '2000-01-01 00:00+00', '1900-01-01 00:00+00',
		'294276-12-31 23:59:59.999999+00'
	],
	interval => [
		'0', '-1 mon +2 days -03:04:05', '178000000 years', '-178000000 years', '1 mon -1 day 00:00:00.000001', '-00:00:00.5',
		'1 year -2 mons', '100000 hours', '-1 day +24:00:00'
	],
	bit => [ '', '0', '1', '00101', q{=repeat('10', 600)::bit(1200)} ],
	varbit => [ '', '1', '00000000', '101010101', q{=repeat('1', 1111)::varbit} ],
	uuid => [ '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff' ],
	refcursor => [ '', 'cursor "1"' ],
	regproc => [ '-', 'now', 'array_in' ],
	regprocedure => [ '-', 'pg_catalog.sum(integer)', 'lower(text)' ],
	regoper => [ '0', 'pg_catalog.||/' ],
	regoperator => [ '0', '+(integer,integer)', '!~~(text,text)' ],
	regclass => [ '-', 'pg_class', 'information_schema.tables', '4294967290' ],
	regcollation => [ '-', '"C"', 'pg_catalog."default"' ],
	regtype => [ '-', 'integer', 'timestamp with time zone', 'text[]', '"char"' ],
	regrole => [ '-', 'pg_read_all_data' ],
	regnamespace => [ '-', 'pg_catalog', 'information_schema' ],
	regconfig => [ 'simple', 'english' ],
	regdictionary => [ 'simple', 'english_stem' ],
	pg_lsn => [ '0/0', 'FFFFFFFF/FFFFFFFF' ],
	tsvector => [
		'', 'a', q{'a b':1A,3C 'c''d':16383}, q{'\\\\'}, q{=to_tsvector('simple', repeat('é word ', 100))}
	],
	tsquery => [ '', 'a', q{!a & (b:*A <-> 'c d' | e)} ],
	txid_snapshot => [ '1:1:', '10:20:10,14,15' ],
	pg_snapshot => [ '1:1:', '10:20:10,14,15', '18446744073709551614:18446744073709551615:' ],
	int4range => [ 'empty', '(,)', '[1,3)', '[5,)', '[-2147483648,2147483647)' ],
	int8range => [ 'empty', '[1,9223372036854775807)' ],
	numrange => [ 'empty', '(,)', '[1.50,1.5]', '(-Infinity,NaN]', '(0.000,)' ],
	daterange => [ 'empty', '[2000-01-01,infinity]', '(-infinity,2000-01-01)' ],
	tsrange => [ 'empty', '["2000-01-01 00:00","infinity"]', '(,"294276-12-31 23:59:59.999999")' ],
	tstzrange => [ 'empty', '["2000-01-01 00:00+00",)', '["4714-11-24 00:00:00+00 BC",infinity]' ],
	int4multirange => [ '{}', '{(,)}', '{[1,3),[5,)}' ],
	int8multirange => [ '{}', '{[1,9223372036854775807)}' ],
	nummultirange => [ '{}', '{[0.1,0.20),(1,NaN]}' ],
	datemultirange => [ '{}', '{[2000-01-01,2000-02-01),[infinity,infinity]}' ],
	tsmultirange => [ '{}', '{[2000-01-01,2000-02-01)}' ],
	tstzmultirange => [ '{}', '{["2000-01-01 00:00+00",infinity)}' ],

	# domains that come with every database
	'information_schema.cardinal_number' => ['1'],
	'information_schema.character_data' => [ '', 'a "b"' ],
	'information_schema.sql_identifier' => [ '', 'a "b"' ],
	'information_schema.time_stamp' => [ 'infinity', '2000-01-01 00:00:00.12+00' ],
	'information_schema.yes_or_no' => [ 'YES', 'NO' ],

	# our own, see below
	'v.mood' => [ 'sad', 'ok', '', 'so "so", {x}', '表', 'NULL' ],
	'v.pair' => [ '(,)', '(1,)', '(,"")', '(2,"a,(b) \"\" \\\\\\\\ é")', '(3,NULL)' ],
	'v.cut' => [ '(,)', '(1,2020-01-01)' ],
	'v.nested' => [ '(,,,)', '("(1,x)","{""(2,y)"",NULL}",ok,7)' ],
	'v.positive' => [ '1', '2147483647' ],
	'v.even' => [ '2', '2147483646' ],
	'v.label' => [ '', 'a', 'a   ', 'abcd' ],
	'v.yes' => [ 't', 'f' ],
	'v.somewhere' => [ '10.0.0.0/8', '1.2.3.4/32' ],
	'v.numbers' => [ '{}', '{1,NULL}', '[0:1]={7,8}', '{{1,2},{3,NULL}}' ],
	'v.moods' => [ '{}', '{sad,NULL,"so \\"so\\", {x}"}' ],
	'v.pair_only' => [ '(1,x)', '(,)' ],
	'v.cents' => [ '0.00', '-999.99', 'NaN' ],
	'v.text_range' => [ 'empty', '(,)', '[a,b)', '["","x y"]', '["a,b","c\\"d"]' ],
	'v.text_multirange' => [ '{}', '{[a,b),["c,d",)}' ],
	'v.pair_range' => [ 'empty', '["(1,a)","(2,b)")' ],
	'v.pair_multirange' => [ '{}', '{["(1,a)","(2,b)"),["(3,)",)}' ],
	'v.mood_range' => [ 'empty', '[sad,ok)', '(,"so ""so"", {x}"]' ],
	'v.mood_multirange' => [ '{}', '{[sad,ok)}' ],
	'v.positive_range' => [ 'empty', '[1,7]' ],
	'v.positive_multirange' => [ '{}', '{[1,7],[9,)}' ],

	# extensions, where they are at hand
	hstore => [ '', 'a=>1', '"x y"=>NULL, "q\\"q"=>"\\\\\\\\", "é"=>""' ],
	citext => [ '', 'MiXed É', q{=repeat('X', 200)} ],
	ltree => [ '', 'a', 'Top.Science.A_1' ],
	lquery => [ 'a.*{1,2}.!b|c@*' ],
	ltxtquery => [ 'a & !b@' ],
	cube => [ '()', '(1)', '(1,2),(3,-0.1)' ],
	seg => [ '1', '1.50 .. 2.0', '~1e10', '< 5' ],
	query_int => [ '1', '1&(2|!3)' ],
	ean13 => ['9780393040029'],
	isbn => ['039304002X'],
	isbn13 => ['978-0-393-04002-9'],
	issn => ['1436-4522'],
	issn13 => [q{=issn13('1436-4522')}],
	ismn => ['M-2306-7118-7'],
	ismn13 => [q{=ismn13('M-2306-7118-7')}],
	upc => ['036000291452']);

# In schema v of both databases; but so that the OIDs differ.
my @own_types = split /;\n/, <<'SQL';
CREATE TYPE v.mood AS ENUM ('sad', 'ok', '', 'so "so", {x}', '表', 'NULL');
CREATE TYPE v.pair AS (a int, b text);
CREATE TYPE v.cut AS (a int, gone v.mood, c date); ALTER TYPE v.cut DROP ATTRIBUTE gone;
CREATE TYPE v.nested AS (p v.pair, ps v.pair[], m v.mood, n numeric);
CREATE DOMAIN v.positive AS int CHECK (VALUE > 0);
CREATE DOMAIN v.even AS v.positive CHECK (VALUE % 2 = 0);
CREATE DOMAIN v.label AS char(4);
CREATE DOMAIN v.yes AS bool;
CREATE DOMAIN v.somewhere AS cidr;
CREATE DOMAIN v.numbers AS int[] CHECK (cardinality(VALUE) < 10);
CREATE DOMAIN v.moods AS v.mood[];
CREATE DOMAIN v.pair_only AS v.pair CHECK ((VALUE).a IS NULL OR (VALUE).a > 0);
CREATE DOMAIN v.cents AS numeric(5,2);
CREATE TYPE v.text_range AS RANGE (SUBTYPE = text, COLLATION = "C", MULTIRANGE_TYPE_NAME = v.text_multirange);
CREATE TYPE v.pair_range AS RANGE (SUBTYPE = v.pair, MULTIRANGE_TYPE_NAME = v.pair_multirange);
CREATE TYPE v.mood_range AS RANGE (SUBTYPE = v.mood, MULTIRANGE_TYPE_NAME = v.mood_multirange);
CREATE TYPE v.positive_range AS RANGE (SUBTYPE = v.positive, MULTIRANGE_TYPE_NAME = v.positive_multirange)
SQL
my @extensions = qw(hstore citext ltree cube seg intarray isn);

# ----- the two databases ------------------------------------------------------

my $test = ValuesTest->new;
my $available = $test->remote_sql('SELECT name FROM pg_available_extensions');

@extensions = grep { $available =~ /^$_$/m } @extensions;
my $extensions = join('', map { "CREATE EXTENSION $_;\n" } @extensions);
my $prelude = <<'SQL';
SET client_min_messages = error;
SET check_function_bodies = off;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgres') THEN CREATE ROLE postgres; END IF;
END $$;
CREATE SCHEMA v;
CREATE SCHEMA made;
SQL

my $own_types = join(";\n", @own_types) . ";\n";

# The source has the extensions first, the destination has them last.
$test->remote_sql("$prelude $extensions $own_types");
$test->local_sql(
	"$prelude CREATE TYPE v.shift AS (a int); $own_types $extensions");

# Every type that a column can have, but no arrays (each type brings its own)
# and no rows of tables.
my $every_type = <<'SQL';
SELECT CASE WHEN n.nspname IN ('pg_catalog', 'public') THEN quote_ident(t.typname)
            ELSE quote_ident(n.nspname) || '.' || quote_ident(t.typname) END,
       n.nspname = 'pg_catalog' AND t.typsend <> 0, t.typname IN ('int2vector', 'oidvector')
    FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE t.typtype <> 'p' AND t.typisdefined AND (c.oid IS NULL OR c.relkind = 'c')
      AND (t.typcategory <> 'A' OR t.typtype = 'd' OR t.typname IN ('int2vector', 'oidvector'))
      AND n.nspname !~ '^pg_toast'
    ORDER BY 1
SQL
my @types = map { [ split /\|/ ] } split /\n/, $test->remote_sql($every_type);

# The quotes that keep a type from being one with a modifier are not in the keys.
sub values_of
{
	my ($type) = @_;
	my ($plain) = $type =~ /^"(?!char")(\w+)"$/;

	return $values{ $plain // $type };
}

# Types of which nobody can write a value.
my @unlisted = grep { !defined values_of($_) } map { $_->[0] } @types;
my %refused = $test->remote_outcomes('', map { $_ => "SELECT ''::$_" } @unlisted);

is_deeply(
	[ grep { $refused{$_} !~ /^ERROR \w+: .*(cannot accept a value of type|not implemented)/i } @unlisted ],
	[],
	'every type that accepts values has some here');
note("skipped, since their input functions accept no value: @unlisted");

# ----- the tables -------------------------------------------------------------

# For a type T, its values v, and each of them
#   in an array av, a composite cv, and an array of those acv;
#   in a domain dv, an array of those adv, a domain over an array dav,
#   a composite of arrays and domains xv.
my (@tables, $made, $sql, $types_sql);

foreach my $type (@types)
{
	my ($name, $has_send, $is_vector) = @$type;
	my $list = values_of($name) // next;
	my $n = scalar(@tables);
	my $rows = join(
		', ',
		map {
			my $value = $list->[$_];
			my $expression =
			  $value =~ /^=([\w(].*)/s ? $1 : ValuesTest::literal($value);

			'(' . ($_ + 1) . ", CAST(($expression) AS $name))"
		} 0 .. $#$list);

	# ARRAY[] of vectors would be taken for more dimensions.
	my $array = sub {
		my (@elements) = @_;

		return "CAST(ARRAY[" . join(', ', @elements) . "] AS ${name}[])"
		  if $is_vector ne 't';
		return "CAST('{' || concat_ws(',', "
		  . join(', ', map { $_ eq 'NULL' ? "'NULL'" : "'\"' || $_\::text || '\"'" } @elements)
		  . ") || '}' AS ${name}[])";
	};

	$types_sql .= <<"SQL";
CREATE DOMAIN made.d$n AS $name;
CREATE DOMAIN made.e$n AS ${name}[];
CREATE TYPE made.c$n AS (a int, b $name);
CREATE TYPE made.x$n AS (a ${name}[], b made.d$n, c made.e$n, d text, e made.c$n);
SQL
	my $one = $array->('v');
	my $some = $array->('v', 'NULL', 'w');
	my $square = "ARRAY[$one, $one]::${name}[]";

	$square = $one if $is_vector eq 't';
	$sql .= <<"SQL";
CREATE TABLE made.t$n (k int, v $name, av ${name}[], dv made.d$n, dav made.e$n, cv made.c$n, xv made.x$n,
    adv made.d$n\[], acv made.c$n\[], axv made.x$n\[], z text) WITH (fillfactor = 10);
WITH e(k, v) AS (VALUES $rows), e2 AS (SELECT k, v, coalesce(lead(v) OVER w, first_value(v) OVER w) AS w FROM e WINDOW w AS (ORDER BY k))
INSERT INTO made.t$n SELECT k + i, v, CASE i WHEN 0 THEN $some ELSE $one END, v::made.d$n, ${some}::made.e$n,
    ROW(k, v)::made.c$n, ROW($some, v, $one, 'x', ROW(i, v))::made.x$n, ARRAY[v, NULL]::made.d$n\[],
    ARRAY[ROW(k, v), NULL, ROW(NULL, NULL)]::made.c$n\[], ARRAY[ROW($one, v, NULL, '', NULL), NULL]::made.x$n\[], 'end'
    FROM e2, generate_series(0, 100, 100) i;
INSERT INTO made.t$n (k, av, dav, adv, acv, cv, xv) VALUES
    (201, '{}', '{}', '{}', '{}', '(,)', '(,,,,)'), (202, '{NULL}', '{NULL}', '{NULL}', '{NULL}', NULL, NULL);
INSERT INTO made.t$n (k, av, z) SELECT 203, $square, 'square' FROM made.t$n, LATERAL (SELECT v) q(v1) WHERE k = 1;
INSERT INTO made.t$n (k, av, dav) SELECT 204, q.a, q.a FROM made.t$n,
    LATERAL (SELECT ('[-1:1]=' || regexp_replace(av::text, '^\\[[^{]*=', ''))::${name}[] a) q WHERE k = 1;
INSERT INTO made.t$n (k) SELECT 300 + i FROM generate_series(1, 20) i;
SQL
	push @tables,
	  {
		name => "t$n",
		type => $name,
		send => $has_send eq 't'
	  };
}

$test->remote_sql("SET client_min_messages = error; $types_sql $sql");

# Made in the opposite order, type by type, for other OIDs.
$test->local_sql(
	join('', reverse($types_sql =~ /((?:CREATE[^;]*;\n){4})/g)));

# Rows of the catalogs as values: the types of these columns are those of
# tables.  Some hold what no input function accepts.
my @catalogs = split /\n/, $test->remote_sql(<<'SQL');
SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
    AND relname NOT IN ('pg_statistic', 'pg_statistic_ext_data', 'pg_largeobject') AND NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND atttypid = 'anyarray'::regtype)
    ORDER BY 1
SQL

$test->remote_sql(
	join("\n",
		map {
			"CREATE TABLE made.$_ (v pg_catalog.$_, av pg_catalog.$_\[]); "
			  . "INSERT INTO made.$_ SELECT c, ARRAY[c, NULL] FROM pg_catalog.$_ c ORDER BY c::text COLLATE \"C\" LIMIT 20;"
		} @catalogs));

$test->link_databases(chunk_blocks => 2);
$test->import_both('made');

# ----- comparing --------------------------------------------------------------

# The rows as text; and what the types' own send functions make of the values,
# which are all in the arrays.
# Binary forms of arrays and rows hold OIDs, which are the same only for types
# that come with every database.
sub checks
{
	my ($schema) = @_;

	return map {
		my $send = $_->{send}
		  ? ", md5(string_agg(coalesce(array_send(av)::text, '-'), ' ' ORDER BY k))"
		  : '';

		("$_->{type} ($_->{name})" =>
			  "SELECT count(*), md5(string_agg(whole_row::text, E'\\n' ORDER BY whole_row::text COLLATE \"C\"))$send "
			  . "FROM $schema.$_->{name} whole_row")
	} @tables;
}

# Where something differs, show the first rows that do.
sub show_rows
{
	my ($settings, @wrong) = @_;

	foreach my $label (@wrong[ 0 .. ($#wrong > 2 ? 2 : $#wrong) ])
	{
		my ($table) = $label =~ /\((t\d+)\)$/ or next;
		my $query = "SELECT left(whole_row::text, 1000) FROM %s.$table whole_row ORDER BY k, 1";
		my %got = $test->local_outcomes($settings, rows => sprintf($query, 'f'));
		my %expected = $test->remote_outcomes('', rows => sprintf($query, 'made'));
		my @got = split /\n/, $got{rows};
		my @expected = split /\n/, $expected{rows};

		foreach my $i (0 .. $#expected)
		{
			next if ($got[$i] // '') eq $expected[$i];
			diag("$label: got      " . ($got[$i] // ''));
			diag("$label: expected $expected[$i]");
			last;
		}
	}
	return;
}

my %truth = $test->remote_outcomes('', checks('made'));

is_deeply([ grep { $truth{$_} !~ /^\d/ } keys %truth ], [], 'the source can check itself')
  or diag($truth{$_}) foreach grep { $truth{$_} !~ /^\d/ } keys %truth;
is_deeply([ grep { (split /\|/, $truth{$_})[0] < 20 } keys %truth ], [], 'it has the rows');

my %theirs = $test->local_outcomes('', checks('r'));
my @theirs_wrong = grep { $theirs{$_} ne $truth{$_} } sort keys %truth;
note("postgres_fdw gets wrong: @theirs_wrong");

my %ways = ValuesTest::ways();

# There are many tables and starting workers takes its time: one is enough.
$_ .= "SET max_parallel_workers_per_gather = 1;\n" foreach grep { !/_gather = 0/ } values %ways;

like(
	$test->local_sql(
		"$ways{'parallel, binary'} EXPLAIN (COSTS OFF) SELECT * FROM f.t0"),
	qr/Parallel Foreign Scan/,
	'the parallel checks are parallel');

foreach my $way (sort keys %ways)
{
	my @wrong = ValuesTest::same_outcomes(
		{ $test->local_outcomes($ways{$way}, checks('f')) },
		\%truth, "every type: $way");
	show_rows($ways{$way}, @wrong);
}

# The settings of the session and of its psql change nothing.
my $hostile = <<'SQL';
SET datestyle = 'SQL, DMY'; SET intervalstyle = 'sql_standard'; SET timezone = 'Asia/Kolkata'; SET extra_float_digits = 0;
SET bytea_output = 'escape'; SET xmloption = document; SET array_nulls = off; SET quote_all_identifiers = on;
SET standard_conforming_strings = off; SET client_encoding = 'LATIN1'; SET search_path = v;
SQL
foreach my $way ('serial, binary', 'serial, text')
{
	$test->local_sql('CREATE SCHEMA c');
	my %made = $test->local_outcomes($ways{$way} . $hostile,
		map { ("$_->{type} ($_->{name})" => "CREATE TABLE c.$_->{name} AS SELECT * FROM f.$_->{name}") } @tables);
	my %got = $test->local_outcomes('', checks('c'));

	$got{$_} = $made{$_} foreach grep { $made{$_} ne '' } keys %made;
	ValuesTest::same_outcomes(\%got, \%truth, "every type under hostile settings: $way");
	$test->local_sql('SET client_min_messages = error; DROP SCHEMA c CASCADE');
}

# Rows of catalogs: the same as through postgres_fdw, be it an error.
my %catalog_rows =
  map { $_ => ValuesTest::checksum("r.$_") } @catalogs;
%theirs = $test->local_outcomes('', %catalog_rows);
s/^(ERROR \w+).*/$1/s foreach values %theirs;
%catalog_rows = map { $_ => ValuesTest::checksum("f.$_") } @catalogs;
foreach my $way ('parallel, binary', 'serial, binary', 'serial, text')
{
	my %ours = $test->local_outcomes($ways{$way}, %catalog_rows);

	s/^(ERROR \w+).*/$1/s foreach values %ours;
	ValuesTest::same_outcomes(\%ours, \%theirs, "rows of catalogs: $way");
}

$test->finish;
