# Databases of different encodings, sessions of any client_encoding, and names
# of every kind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use ValuesTest;

my $test = ValuesTest->new;
my %ways = ValuesTest::ways();

# Name of the database => encoding.
my %source = (
	postgres => 'UTF8',
	latin1 => 'LATIN1',
	euc_jp => 'EUC_JP',
	sql_ascii => 'SQL_ASCII');

# What is in each of them, as bytes of UTF-8: what it is called, then the text.
my %words = (
	UTF8 => [ 'é', '表', '😀', 'naïve', '日本語' ],
	LATIN1 => [ 'é', 'ÿ', 'naïve', '¤' ],
	EUC_JP => [ '表', '日本語', 'かな' ],
	SQL_ASCII => [ 'plain', 'é', '表' ]);

# Text in every type that can hold it, long and short.
my $types = "CREATE TYPE word AS ENUM ('plain'%s); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN d AS text;";
my $columns = 'k int, v text, vc varchar(40), c char(8), n name, a text[], j json, jb jsonb, x xml, p pair, pa pair[], d d, e word, '
  . 'ts tsvector, long text';

sub enum_labels
{
	my ($encoding) = @_;
	return join('', map { ", '$_'" } grep { $_ ne 'plain' } @{ $words{$encoding} });
}

foreach my $database (sort keys %source)
{
	my $encoding = $source{$database};
	# Raw bytes are taken as they are by an SQL_ASCII database.
	my $settings = $encoding eq 'SQL_ASCII' ? '' : "SET client_encoding = 'UTF8';\n";

	$test->remote_sql("CREATE DATABASE $database ENCODING '$encoding' LOCALE 'C' TEMPLATE template0")
	  if $database ne 'postgres';
	$test->remote_sql($settings . sprintf($types, enum_labels($encoding)) . "CREATE TABLE t ($columns) WITH (fillfactor = 10);"
		  . join('',
			map {
				my ($w, $k) = ($words{$encoding}[$_], $_ + 1);

				"INSERT INTO t VALUES ($k, '$w', '$w', '$w', '$w', ARRAY['$w', NULL, '{$w}'], '{\"$w\":1}', '[\"$w\"]', '<a>$w</a>', "
				  . "($k, '$w'), ARRAY[($k, '$w'), NULL]::pair[], '$w', '$w', '''$w''', repeat('$w', 500));\n";
			} 0 .. $#{ $words{$encoding} })
		  . "INSERT INTO t (k, v) SELECT i, 'plain' FROM generate_series(10, 60) i; ANALYZE t", $database);
}

# The checksum that is the same in databases of all encodings, since it is one
# of the bytes in UTF-8.
my $check = q{SELECT count(*), md5(string_agg(encode(convert_to(whole_row::text, 'UTF8'), 'hex'), ' ' ORDER BY k)),
    string_agg(length(v)::text, ' ' ORDER BY k) FILTER (WHERE k < 10) FROM %s whole_row};
my %truth = map { $_ => $test->remote_sql(sprintf($check, 't'), $_) } grep { $_ ne 'sql_ascii' } keys %source;

# Servers and foreign tables in both databases of the destination.  An enum
# needs labels that the database can hold.
$test->local_sql("CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
foreach my $database ('postgres', 'latin1')
{
	my %labels = map { $_ => 1 } map { @{ $words{$_} } } ($database eq 'latin1' ? 'LATIN1' : keys %words);

	delete $labels{plain};
	$test->local_sql("SET client_encoding = 'UTF8';" . sprintf($types, join('', map { ", '$_'" } sort keys %labels))
		  . 'CREATE EXTENSION tidrange_fdw; CREATE EXTENSION postgres_fdw;', $database);
	foreach my $from (sort keys %source)
	{
		my $where = 'host ' . ValuesTest::literal($test->source->host) . ', port ' . ValuesTest::literal($test->source->port)
		  . ", dbname '$from'";

		$test->local_sql(<<"SQL", $database);
CREATE SERVER ours_$from FOREIGN DATA WRAPPER tidrange_fdw OPTIONS ($where, chunk_blocks '1');
CREATE SERVER theirs_$from FOREIGN DATA WRAPPER postgres_fdw OPTIONS ($where);
CREATE USER MAPPING FOR PUBLIC SERVER ours_$from;
CREATE USER MAPPING FOR PUBLIC SERVER theirs_$from;
CREATE FOREIGN TABLE f_$from ($columns) SERVER ours_$from OPTIONS (schema_name 'public', table_name 't');
CREATE FOREIGN TABLE r_$from ($columns) SERVER theirs_$from OPTIONS (schema_name 'public', table_name 't');
SQL
	}
}

# ----- encodings --------------------------------------------------------------

foreach my $way (sort keys %ways)
{
	foreach my $from ('postgres', 'latin1', 'euc_jp')
	{
		is($test->local_sql($ways{$way} . sprintf($check, "f_$from")),
			$truth{$from}, "$source{$from} to UTF8: $way");
	}
	is($test->local_sql($ways{$way} . sprintf($check, 'f_latin1'), 'latin1'),
		$truth{latin1}, "LATIN1 to LATIN1: $way");
	is( $test->local_sql($ways{$way} . sprintf($check, '(SELECT * FROM f_postgres WHERE k = 1)'), 'latin1'),
		$test->remote_sql(sprintf($check, '(SELECT * FROM t WHERE k = 1)')),
		"UTF8 to LATIN1, what it can hold: $way");
	is( $test->local_sql($ways{$way} . sprintf($check, 'f_sql_ascii')),
		$test->local_sql(sprintf($check, 'r_sql_ascii')),
		"SQL_ASCII to UTF8, where it is UTF-8: $way");
	like($test->local_error("$ways{$way} SELECT v FROM f_postgres", 'latin1'),
		qr/ERROR:  22P05: character with byte sequence .* in encoding "UTF8" has no equivalent in encoding "LATIN1"/,
		"UTF8 to LATIN1, what it cannot hold: $way");
	like($test->local_error("$ways{$way} SELECT v FROM f_euc_jp", 'latin1'),
		qr/ERROR:  (0A000|22P05|22023|08001)/, "EUC_JP to LATIN1, which nothing converts: $way");
	is($test->local_sql("$ways{$way} SELECT count(*) FROM f_postgres", 'latin1'),
		'56', "the session goes on: $way");
}

# The client's encoding is nobody's business but the client's.
foreach my $client ('LATIN1', 'EUC_JP', 'SQL_ASCII', 'SJIS', 'WIN1252')
{
	foreach my $way ('serial, binary', 'parallel, binary', 'serial, text')
	{
		$test->local_sql(join("\n",
			"$ways{$way} SET client_encoding = '$client';",
			map { "CREATE TABLE c_$_ AS SELECT * FROM f_$_;" } 'postgres', 'latin1', 'euc_jp'));
		is_deeply(
			[ map { $test->local_sql(sprintf($check, "c_$_")) } 'postgres', 'latin1', 'euc_jp' ],
			[ @truth{ 'postgres', 'latin1', 'euc_jp' } ],
			"client_encoding $client: $way");
		$test->local_sql('DROP TABLE c_postgres, c_latin1, c_euc_jp');
	}
}

# Words in conditions are found, whatever the client writes them in.
foreach my $way ('serial, binary', 'parallel, binary')
{
	is( $test->local_sql("$ways{$way} SET client_encoding = 'LATIN1'; SELECT k FROM f_latin1 WHERE v = '\xe9'"
			  . " AND c = '\xe9' AND e = '\xe9' AND n = '\xe9' AND a[1] = '\xe9'"),
		'1', "a word in a condition, from a LATIN1 client: $way");
	is( $test->local_sql("$ways{$way} SELECT k FROM f_euc_jp WHERE v = '日本語' AND e = '日本語' AND d = '日本語'"),
		'2', "a word in a condition, from a UTF8 client: $way");
	is( $test->local_sql("$ways{$way} SET client_encoding = 'UTF8'; SELECT v FROM f_latin1 WHERE v = 'ÿ'", 'latin1'),
		'ÿ', "between LATIN1 databases, for a UTF8 client: $way");
}

# ----- bytes that are no text -------------------------------------------------

# Of SQL_ASCII; 0xE9 alone is no UTF-8.
$test->remote_sql(<<'SQL', 'sql_ascii');
CREATE TYPE ascii_pair AS (a int, b text);
CREATE TYPE bad_word AS ENUM ('plain', E'\xe9');
CREATE TABLE bad (k int, v text, vc varchar(40), c char(8), n name, a text[], j json, jb jsonb, p ascii_pair, e bad_word, s "char",
    long text, filler text) WITH (fillfactor = 10);
INSERT INTO bad SELECT i, 'plain', 'plain', 'plain', 'plain', '{plain}', '{}', '{}', '(1,plain)', 'plain', 'p', repeat('plain', 100),
    repeat('x', 300) FROM generate_series(1, 100) i;
UPDATE bad SET v = E'\xe9', vc = E'caf\xe9', c = E'\xe9', n = E'\xe9', a = ARRAY[E'\xe9'], j = E'"\xe9"', jb = E'"\xe9"',
    p = (1, E'\xe9'), e = E'\xe9', s = E'\xe9', long = repeat('plain ascii ', 100) || E'\xe9' || 'more' WHERE k = 77;
SQL
foreach my $database ('postgres', 'latin1')
{
	$test->local_sql(<<'SQL', $database);
CREATE TYPE ascii_pair AS (a int, b text);
CREATE TYPE bad_word AS ENUM ('plain');
CREATE FOREIGN TABLE f_bad (k int, v text, vc varchar(40), c char(8), n name, a text[], j json, jb jsonb, p ascii_pair, e bad_word,
    s "char", long text, filler text) SERVER ours_sql_ascii OPTIONS (schema_name 'public', table_name 'bad');
SQL
}
foreach my $way (sort keys %ways)
{
	foreach my $column (qw(v vc c n a j jb p e long))
	{
		like($test->local_error("$ways{$way} SELECT count($column) FROM (SELECT $column FROM f_bad OFFSET 0) q"),
			qr/ERROR:  22021: invalid byte sequence for encoding "UTF8": 0xe9.*CONTEXT:.*column "$column" of foreign table "f_bad"/s,
			"bytes that are no UTF-8 in column $column: $way");
	}
	is($test->local_sql("$ways{$way} SELECT count(filler) FROM (SELECT filler FROM f_bad OFFSET 0) q"),
		'100', "the other columns can be read: $way");
	is($test->local_sql("$ways{$way} SELECT length(v), length(long), a[1] = v FROM f_bad WHERE k = 77", 'latin1'),
		'1|1205|t', "any byte is a character of LATIN1: $way");
}

# ----- names ------------------------------------------------------------------

my @names = (
	'x' x 63, 'é' x 31 . 'x', '表' x 21, 'select', 'SELECT', 'user', 'Tab', 'tab', 'TAB', 'a.b', 'a"b', '"quoted"', q{a'b}, '100%',
	'%s %d %n', '%', '$1', '$lo', 'emoji 😀', ' ', ' led', 'trailing ', 'back\\slash', "new\nline", "tab\tulator", '{x,y}', '--', ';',
	'/*', 'U&', 'a,b', '(x)', 'ctid2', 'public2', 'q', 'whole', 'c', 'v', 'i', 'oid', 'any', 'array', 'row', 'order', 'limit', '7', 'é');
my $create = '';

foreach my $name (@names)
{
	my $id = ValuesTest::identifier($name);
	my $label = ValuesTest::literal($name);

	# A schema, and in it types and a table of that name, with a column of it.
	$create .= "CREATE SCHEMA $id; CREATE TYPE $id.$id AS ENUM ('other', $label); "
	  . "CREATE DOMAIN $id." . ValuesTest::identifier(substr('d' . $name, 0, 40) =~ s/[\x80-\xff]//gr) . " AS text;\n";
}
$test->remote_sql($create);
$test->local_sql("SET client_min_messages = error; $create");

my $number = 0;
my ($fill, $declare) = ('', '');
my (%rows_query, %conditions_query, %expected_rows, %expected_conditions);

foreach my $name (@names)
{
	my $n = $number++;
	my $id = ValuesTest::identifier($name);
	my $label = ValuesTest::literal($name);
	my $domain = ValuesTest::identifier(substr('d' . $name, 0, 40) =~ s/[\x80-\xff]//gr);

	$fill .= "CREATE SCHEMA in_$n; CREATE TABLE in_$n.$id ($id $id.$id, k int, a $id.$id\[], t $id.$domain); "
	  . "INSERT INTO in_$n.$id SELECT CASE i % 3 WHEN 0 THEN $label ELSE 'other' END::$id.$id, i, ARRAY[$label, NULL]::$id.$id\[], $label "
	  . "FROM generate_series(1, 300) i;\n"
	  . "CREATE TABLE $id.only_$n ($id text); INSERT INTO $id.only_$n VALUES ($label);\n";
	$declare .= "CREATE SCHEMA in_$n; IMPORT FOREIGN SCHEMA in_$n FROM SERVER ours_postgres INTO in_$n;\n"
	  . "IMPORT FOREIGN SCHEMA $id FROM SERVER ours_postgres INTO $id;\n";
	$rows_query{$n} = "SELECT count(*), md5(string_agg(whole_row_::text, E'\\n' ORDER BY k)) FROM in_$n.$id whole_row_";
	$conditions_query{$n} = "SELECT (SELECT count(*) FROM in_$n.$id WHERE $id = $label), (SELECT count(*) FROM in_$n.$id WHERE t <> $label), "
	  . "(SELECT count(*) FROM in_$n.$id WHERE $id IS NOT NULL), (SELECT count(*) FROM in_$n.$id WHERE a[1] = $label AND k < 11), "
	  . "(SELECT count(*) FROM $id.only_$n WHERE $id = $label)";
	$expected_conditions{$n} = '100|0|300|10|1';
}
$test->remote_sql($fill);
$test->local_sql($declare);
%expected_rows = $test->remote_outcomes('', %rows_query);
is(scalar(grep { /^300\|/ } values %expected_rows), scalar(@names), 'the source has tables of all names');
$_ .= "SET max_parallel_workers_per_gather = 1;\n" foreach grep { !/_gather = 0/ } values %ways;
foreach my $way ('serial, binary', 'serial, text', 'parallel, binary')
{
	ValuesTest::same_outcomes({ $test->local_outcomes($ways{$way}, %rows_query) },
		\%expected_rows, "tables of all names: $way");
}
foreach my $way ('serial, binary', 'parallel, binary')
{
	ValuesTest::same_outcomes({ $test->local_outcomes($ways{$way}, %conditions_query) },
		\%expected_conditions, "conditions on columns of all names: $way");
}

# Names stand in messages as they are.
foreach my $name ('%s %d %n', 'a"b', 'emoji 😀', '100%')
{
	my $id = ValuesTest::identifier($name);

	$test->local_sql("CREATE FOREIGN TABLE public.$id ($id int) SERVER ours_postgres OPTIONS (schema_name "
		  . ValuesTest::literal('in_' . (grep { $names[$_] eq $name } 0 .. $#names)[0]) . ', table_name ' . ValuesTest::literal($name) . ')');
	like($test->local_error("SELECT * FROM public.$id"),
		qr/22P02: invalid input syntax for type integer: "other".*column "\Q$name\E" of foreign table "\Q$name\E"/s,
		"a message about $name");
	like($test->local_sql("EXPLAIN (VERBOSE) SELECT * FROM public.$id"), qr/Foreign Scan on public\.\Q$id\E/, "EXPLAIN of $name");
}

$test->finish;
