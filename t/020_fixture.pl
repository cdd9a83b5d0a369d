# Every table of the fixture has the same rows here, through postgres_fdw and
# there: serial and parallel, in binary and as text, and under settings of either
# side that change how values are written or which function a name means.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use ValuesTest;

my $test = ValuesTest->new;
my $fixture = slurp_file("$FindBin::RealBin/fixture.sql");
my ($types) = $fixture =~ /\A(.*?)^-- tables$/ms;

# The role that aclitem values name.
foreach my $node ($test->source, $test->destination)
{
	$node->safe_psql('postgres', <<'SQL');
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgres') THEN CREATE ROLE postgres; END IF;
END $$;
SQL
}

$test->remote_sql($fixture);

# The same types with other OIDs, the enum's labels in another order of making.
$test->local_sql('CREATE DOMAIN shifts_the_oids AS int;');
$test->local_sql($types);

$test->link_databases(chunk_blocks => 8);
$test->import_both('public', 'EXCEPT (vw)');
$test->import_both('"Sche.ma"');
$test->declare_both('vw', 'id int, v text');

# Name of the foreign table => schema on the source.
my %schema_of = map { $_ => 'public' }
  qw(gap nul zero nocol pt par kid vw mv toast drp gen ty esc);
$schema_of{$_} = '"Sche.ma"' foreach '"Ta""ble é 表"', '"T"', 't';

# ----- the rows ---------------------------------------------------------------

my %rows = ValuesTest::fixture_rows();

# Of all tables as they are in a schema, or in schemas by table.
sub checksums
{
	my ($schema) = @_;
	return map {
		# A view's column ctid was not declared.
		my $table = "$schema.$_";

		$table = "$schema_of{$_}.$_" if $schema eq '';
		$table = '(SELECT id, v FROM public.vw)' if $schema eq '' && $_ eq 'vw';
		($_ => ValuesTest::checksum($table));
	} keys %rows;
}

my %truth = $test->remote_outcomes('', checksums(''));

is_deeply(
	{ map { $_ => (split /\|/, $truth{$_})[0] } keys %truth },
	\%rows, 'the fixture has the rows that it should have');
ValuesTest::same_outcomes({ $test->local_outcomes('', checksums('r')) },
	\%truth, 'through postgres_fdw');

my %ways = ValuesTest::ways();

like(
	$test->local_sql(
		$ways{'parallel, binary'}
		  . 'EXPLAIN (COSTS OFF) '
		  . ValuesTest::checksum('f.gap')),
	qr/Gather.*Parallel Foreign Scan/s,
	'the parallel checks are parallel');
like(
	$test->local_sql(
		$ways{'serial, text'} . 'EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.gap'),
	qr/Text Columns: id \(.*force_text.*\), v \(/,
	'EXPLAIN says which columns travel as text, and why');

foreach my $way (sort keys %ways)
{
	ValuesTest::same_outcomes(
		{ $test->local_outcomes($ways{$way}, checksums('f')) },
		\%truth, "all tables: $way");
}

# ----- questions --------------------------------------------------------------

# Label => statements, and what they answer.
my @questions = (
	[ 'count', 'SELECT count(*) FROM f.gap', '3999' ],
	[ 'limit', 'SELECT count(*) FROM (SELECT * FROM f.gap LIMIT 7) q', '7' ],
	[
		'partitions',
		'SELECT count(*), count(DISTINCT id), min(id), max(id) FROM f.pt',
		'3000|3000|0|2999'
	],
	[
		'rescan',
		'SELECT l.i, (SELECT count(*) FROM f.gap g WHERE g.id > 19990 + l.i) FROM generate_series(1, 5) l(i)',
		"1|9\n2|8\n3|7\n4|6\n5|5"
	],
	[
		'initplan', 'SELECT count(*) FROM f.gap WHERE id < (SELECT 100)', '99'
	],
	[
		'edges',
		"SELECT count(*) FROM f.ty WHERE n = 'NaN' OR d = 'infinity' OR ts > '294276-12-31' OR c = 'a'",
		'2'
	],
	[ 'date', "SELECT count(*) FROM f.ty WHERE d = '2020-02-03'", '1' ],
	[
		'date, local style',
		"SET datestyle = 'SQL, DMY'; SELECT count(*) FROM f.ty WHERE d = '03/02/2020'; RESET datestyle",
		'1'
	],
	[
		'timestamptz, local zone',
		"SET timezone = 'Asia/Kolkata'; SELECT k FROM f.ty WHERE tz = '2020-07-03 09:35:06'; RESET timezone",
		'4'
	],
	[
		'interval, local style',
		"SET intervalstyle = 'sql_standard'; SELECT k FROM f.ty WHERE iv = '-1 mon +2 days -03:04:05'; RESET intervalstyle",
		'1'
	],
	[
		'BC dates', "SELECT k FROM f.ty WHERE d < '0001-01-01'", '2'
	],
	[
		'char(n)',
		"SELECT count(*) FILTER (WHERE c = 'a'), count(*) FILTER (WHERE c = 'a   '), "
		  . "count(*) FILTER (WHERE c::text = 'a'), count(*) FILTER (WHERE length(c) = 1), "
		  . "count(*) FILTER (WHERE v = 'a'), count(*) FILTER (WHERE v = 'a ') FROM f.ty",
		'1|1|1|2|0|1'
	],
	[
		'char(n), in WHERE',
		"SELECT (SELECT count(*) FROM f.ty WHERE c = 'a'), (SELECT count(*) FROM f.ty WHERE c = 'a   '), "
		  . "(SELECT count(*) FROM f.ty WHERE c::text = 'a'), (SELECT count(*) FROM f.ty WHERE length(c) = 1), "
		  . "(SELECT count(*) FROM f.ty WHERE v = 'a'), (SELECT count(*) FROM f.ty WHERE v = 'a ')",
		'1|1|1|2|0|1'
	],
	[
		'floats in WHERE',
		"SELECT (SELECT k FROM f.ty WHERE f8 = 0.1::float8 + 0.2), (SELECT k FROM f.ty WHERE f8 = 5e-324), "
		  . "(SELECT k FROM f.ty WHERE f4 = '-0'), (SELECT k FROM f.ty WHERE f4 = 'NaN'), (SELECT k FROM f.ty WHERE f4 = 0.1::real)",
		'4|2|2|1|4'
	],
	[
		'the largest number last',
		"SELECT k FROM f.ty WHERE n IS NOT NULL ORDER BY n DESC LIMIT 1", '1'
	],
	[
		'array subscripts',
		'SELECT array_dims(ia), ia[0], array_dims(ta) FROM f.ty WHERE k = 1',
		'[0:1]|7|[1:2][1:2]'
	],
	[
		'a null and its looks',
		"SELECT (SELECT count(*) FROM f.esc WHERE v IS NULL), (SELECT count(*) FROM f.esc WHERE v = E'\\\\N')",
		'1|1'
	],
	[
		'enum', "SELECT count(*) FROM f.ty WHERE e < 'ok'", '1'
	],
	[ 'lengths of toasted values', 'SELECT sum(length(b)) FROM f.toast', '4000000' ],
	[
		'names', q{SELECT count(*), sum("Col.1"), sum("%d %s") FROM f."Ta""ble é 表" WHERE "select" = 'q'},
		'500|125250|125250'
	],
	[
		'twins', q{SELECT (SELECT sum(id) FROM f."T"), (SELECT sum(id) FROM f.t)},
		'1|5'
	],
	[
		'savepoint',
		'BEGIN; SELECT count(*) FROM f.gap; SAVEPOINT a; SELECT 1 / (count(*) - 3999) FROM f.gap; '
		  . 'ROLLBACK TO a; SELECT count(*) FROM f.gap; COMMIT',
		"3999\n3999"
	],
	[
		'generic plan',
		'SET plan_cache_mode = force_generic_plan; PREPARE q(int) AS SELECT count(*) FROM f.gap WHERE id <= $1; '
		  . 'EXECUTE q(10); EXECUTE q(NULL); DEALLOCATE q; RESET plan_cache_mode',
		"10\n0"
	],
	[
		'create table as',
		'CREATE TABLE c1 AS SELECT * FROM f.gap; SELECT count(*) FROM c1 EXCEPT ALL SELECT count(*) FROM r.gap; '
		  . 'SELECT * FROM c1 EXCEPT ALL SELECT * FROM r.gap; DROP TABLE c1',
		''
	],
	[
		'cursor with hold',
		'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM f.gap; COMMIT; '
		  . 'MOVE 3998 IN c; FETCH ALL FROM c; CLOSE c',
		'20000'
	],
	[
		'prepare transaction',
		"BEGIN; SELECT count(*) FROM f.gap; PREPARE TRANSACTION 'x'; COMMIT PREPARED 'x'",
		'3999'
	]);
my %statement = map { $_->[0] => $_->[1] } @questions;
my %answer = map { $_->[0] => $_->[2] } @questions;

foreach my $way (sort keys %ways)
{
	ValuesTest::same_outcomes(
		{ $test->local_outcomes($ways{$way}, %statement) },
		\%answer, "questions: $way");
}
like(
	$test->local_sql(
		    $ways{'parallel, binary'}
		  . 'EXPLAIN (COSTS OFF) CREATE TABLE c1 AS SELECT * FROM f.gap'),
	qr/Gather.*Parallel Foreign Scan/s,
	'CREATE TABLE AS reads in parallel');

# ----- settings that must not matter ------------------------------------------

# Functions, operators, types and tables that take the place of the right ones
# where the names that are sent are not qualified.
my $evil = <<'SQL';
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE FUNCTION evil.never(int4, int4) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION evil.never(tid, tid) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION evil.never(oid, oid) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION evil.never(text, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE OPERATOR evil.= (FUNCTION = evil.never, LEFTARG = int4, RIGHTARG = int4);
CREATE OPERATOR evil.= (FUNCTION = evil.never, LEFTARG = oid, RIGHTARG = oid);
CREATE OPERATOR evil.= (FUNCTION = evil.never, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR evil.< (FUNCTION = evil.never, LEFTARG = tid, RIGHTARG = tid);
CREATE OPERATOR evil.>= (FUNCTION = evil.never, LEFTARG = tid, RIGHTARG = tid);
CREATE FUNCTION evil.pg_relation_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION evil.pg_relation_filenode(regclass) RETURNS oid LANGUAGE sql AS 'SELECT 1::oid';
CREATE FUNCTION evil.pg_export_snapshot() RETURNS text LANGUAGE sql AS $$ SELECT 'evil'::text $$;
CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '(0,0)'::text $$;
CREATE FUNCTION evil.set_config(text, text, bool) RETURNS text LANGUAGE sql AS $$ SELECT ''::text $$;
CREATE FUNCTION evil.row_security_active(oid) RETURNS bool LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION evil.format_type(oid, int4) RETURNS text LANGUAGE sql AS $$ SELECT 'integer'::text $$;
CREATE FUNCTION evil.textin(cstring) RETURNS text LANGUAGE internal IMMUTABLE STRICT AS 'byteain';
CREATE FUNCTION evil.int4out(int4) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'date_out';
CREATE FUNCTION evil.int8out(int8) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'timestamp_out';
CREATE TYPE evil.tid AS (a int);
CREATE TABLE evil.gap (id int, v text);
CREATE TABLE evil.pg_class (oid oid);
CREATE TABLE evil.pg_attribute (attrelid oid);
SQL

$test->remote_sql($evil);
$test->local_sql($evil);
$test->remote_sql(<<'SQL');
CREATE ROLE hostile LOGIN;
GRANT USAGE ON SCHEMA "Sche.ma" TO hostile;
GRANT SELECT ON ALL TABLES IN SCHEMA public, "Sche.ma" TO hostile;
ALTER ROLE hostile SET datestyle = 'SQL, DMY';
ALTER ROLE hostile SET intervalstyle = 'sql_standard';
ALTER ROLE hostile SET timezone = 'Asia/Kolkata';
ALTER ROLE hostile SET bytea_output = 'escape';
ALTER ROLE hostile SET search_path = 'evil', 'pg_catalog';
ALTER ROLE hostile SET extra_float_digits = 0;
ALTER ROLE hostile SET quote_all_identifiers = on;
ALTER ROLE hostile SET standard_conforming_strings = off;
ALTER ROLE hostile SET backslash_quote = off;
ALTER ROLE hostile SET escape_string_warning = on;
ALTER ROLE hostile SET xmloption = document;
ALTER ROLE hostile SET xmlbinary = hex;
ALTER ROLE hostile SET array_nulls = off;
ALTER ROLE hostile SET transform_null_equals = on;
ALTER ROLE hostile SET row_security = off;
ALTER ROLE hostile SET client_encoding = 'LATIN1';
ALTER ROLE hostile SET default_transaction_isolation = 'read committed';
ALTER ROLE hostile SET default_transaction_read_only = off;
ALTER ROLE hostile SET enable_tidscan = off;
ALTER ROLE hostile SET client_min_messages = error;
SQL

my $hostile_here = <<'SQL';
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
SET timezone = 'Asia/Kolkata';
SET extra_float_digits = 0;
SET bytea_output = 'escape';
SET xmloption = document;
SET xmlbinary = hex;
SET array_nulls = off;
SET transform_null_equals = on;
SET standard_conforming_strings = off;
SET quote_all_identifiers = on;
SET row_security = off;
SET search_path = evil, pg_catalog;
SET client_encoding = 'LATIN1';
SQL

# Copies are made under the settings, and compared without them.  Procedures
# make them, since not every name can be written in LATIN1.
my $n = 0;
my %copy = map { $_ => 'copies.t' . $n++ } sort keys %rows;
my %copy_checksums =
  map { $_ => ValuesTest::checksum($copy{$_}) } keys %copy;

$test->local_sql(
	join("\n",
		'CREATE SCHEMA copies;',
		map {
			"CREATE PROCEDURE $copy{$_}() LANGUAGE plpgsql AS \$\$ BEGIN "
			  . "CREATE TABLE $copy{$_} AS SELECT * FROM f.$_; END \$\$;"
		} sort keys %copy));

sub compare_copies
{
	my ($settings, $name) = @_;
	my %made = $test->local_outcomes($settings,
		map { $_ => "CALL $copy{$_}()" } keys %copy);
	my %got = $test->local_outcomes('', %copy_checksums);

	$got{$_} = $made{$_} foreach grep { $made{$_} ne '' } keys %made;
	ValuesTest::same_outcomes(\%got, \%truth, $name);
	$test->local_sql(
		join(' ', map { "DROP TABLE IF EXISTS $_;" } values %copy));
	return;
}

foreach my $way (sort keys %ways)
{
	compare_copies($ways{$way} . $hostile_here, "hostile settings here: $way");
}
$test->local_sql(
	"ALTER USER MAPPING FOR PUBLIC SERVER ours OPTIONS (ADD user 'hostile')");
is($test->local_sql('SELECT count(*) FROM f.gap'), '3999', 'the role may read');
foreach my $way (sort keys %ways)
{
	compare_copies($ways{$way} . ($way =~ /text/ ? $hostile_here : ''),
		"hostile settings of the role there: $way");
}

# WHERE clauses go there as constants, which must be read as they were meant.
foreach my $way ('serial, binary', 'parallel, binary')
{
	ValuesTest::same_outcomes(
		{ $test->local_outcomes($ways{$way}, %statement) },
		\%answer, "questions to the hostile role: $way");
}

$test->finish;
