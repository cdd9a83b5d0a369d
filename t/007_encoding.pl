# Text arrives as the characters that the remote stores, whatever the encodings
# of source, destination and client.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(chunk_blocks => 4);
my $source = $pair->source;
my $destination = $pair->destination;

# ----- a client with another encoding -------------------------------------------

# Every type whose values are text in some way.
$pair->remote_sql(<<'SQL');
CREATE TABLE letters (id int, t text, v varchar(20), c char(9), j json, jb jsonb,
    a text[], n name, filler text) WITH (fillfactor = 10);
INSERT INTO letters SELECT i, w, w, w, json_build_object(w, w), jsonb_build_object(w, w),
    ARRAY[w, NULL, w], w, repeat('f', 500)
    FROM generate_series(1, 500) i,
    LATERAL (SELECT CASE i % 3 WHEN 0 THEN U&'\00e9t\00e9 \20ac' WHEN 1 THEN U&'\+01F600' ELSE U&'\00df\00e4' END AS w) w;
SQL
$pair->create_server;
$pair->import_tables('letters');

my $digest =
  "SELECT count(*), md5(string_agg(md5(convert_to(r::text, 'UTF8')), '' ORDER BY id)) FROM letters r";
my $truth = $pair->remote_sql($digest);
my $session = $pair->session;

foreach my $encoding (qw(UTF8 LATIN1 SQL_ASCII WIN1252 EUC_JP))
{
	foreach my $workers (0, 3)
	{
		$session->query(TidrangeTest::workers($workers)
			  . "SET client_encoding = '$encoding'");
		is($session->query($digest), $truth,
			"client encoding $encoding, $workers workers");
		is( $session->query(
				"SELECT count(*) FROM letters WHERE t = U&'\\00df\\00e4' AND v = t"),
			'167',
			"client encoding $encoding, $workers workers: a condition");
		$session->query('SET tidrange_fdw.force_text = on');
		is($session->query($digest), $truth,
			"client encoding $encoding, $workers workers, as text");
		$session->query('RESET tidrange_fdw.force_text');
	}
}
$session->query("SET client_encoding = 'LATIN1'");
is($session->query('SELECT t FROM letters WHERE id = 2'),
	"\xdf\xe4", 'a LATIN1 client gets LATIN1');
$session->quit;

# ----- sources and destinations with other encodings ------------------------------

foreach my $node ($source, $destination)
{
	$node->safe_psql('postgres',
		"CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
	$node->safe_psql('postgres',
		"CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
	);
}
$source->safe_psql('latin1', <<'SQL');
SET client_encoding = 'UTF8';
CREATE TABLE letters (id int, t text, v varchar(20), filler text) WITH (fillfactor = 10);
INSERT INTO letters SELECT i, 'été ß', 'ÿ', repeat('f', 500) FROM generate_series(1, 300) i;
SQL
$source->safe_psql('ascii', <<'SQL');
CREATE TABLE bytes (id int, plain text, t text, filler text) WITH (fillfactor = 10);
INSERT INTO bytes SELECT i, 'plain', CASE i WHEN 250 THEN E'\xe9' ELSE E'\xc3\xa9' END, repeat('f', 500)
    FROM generate_series(1, 300) i;
SQL
$destination->safe_psql('latin1', 'CREATE EXTENSION tidrange_fdw');
$destination->safe_psql('ascii', 'CREATE EXTENSION tidrange_fdw');

foreach my $case (
	[ 'postgres', 'from_latin1', 'latin1' ],
	[ 'postgres', 'from_ascii', 'ascii' ],
	[ 'latin1', 'from_utf8', 'postgres' ],
	[ 'ascii', 'from_latin1', 'latin1' ])
{
	my ($database, $name, $dbname) = @$case;

	$pair->create_server(
		database => $database,
		name => $name,
		options => { dbname => $dbname });
	$destination->safe_psql($database,
		"CREATE SCHEMA $name; IMPORT FOREIGN SCHEMA public FROM SERVER $name INTO $name"
	);
}

foreach my $workers (0, 3)
{
	my $local = $pair->session;
	my ($out, $err);

	$local->query(
		TidrangeTest::workers($workers) . "SET client_encoding = 'UTF8'");

	# LATIN1 to UTF8
	is( $local->query(
			'SELECT count(*), min(t), max(t), max(v), max(octet_length(t)) FROM from_latin1.letters'
		),
		"300|\xc3\xa9t\xc3\xa9 \xc3\x9f|\xc3\xa9t\xc3\xa9 \xc3\x9f|\xc3\xbf|8",
		"LATIN1 to UTF8, $workers workers");
	is( $local->query(
			"SELECT count(*) FROM from_latin1.letters WHERE v = U&'\\00ff'"),
		'300',
		"LATIN1 to UTF8, $workers workers: a condition");
	($out, $err) = $local->query(
		"SELECT count(*) FROM from_latin1.letters WHERE v = U&'\\20ac'");
	ok( $out eq '0' || $err =~ /22P05/,
		"LATIN1 to UTF8, $workers workers: a condition that LATIN1 cannot express"
	);
	$local->query('SELECT 1');

	# bytes of no encoding to UTF8
	is($local->query('SELECT count(plain) FROM from_ascii.bytes'),
		'300', "SQL_ASCII to UTF8, $workers workers: ASCII");
	is($local->query('SELECT count(t), max(octet_length(t)) FROM from_ascii.bytes WHERE id < 250'),
		'249|2', "SQL_ASCII to UTF8, $workers workers: what is UTF8");
	($out, $err) = $local->query('SELECT count(t) FROM from_ascii.bytes');
	is($out, '', "SQL_ASCII to UTF8, $workers workers: no result");
	like($err, qr/ERROR:  22021: invalid byte sequence for encoding "UTF8": 0xe9/,
		"SQL_ASCII to UTF8, $workers workers: an invalid byte");
	like($err, qr/column "t" of foreign table "bytes"/,
		"SQL_ASCII to UTF8, $workers workers: the column");
	$pair->remote_rests("$workers workers: the remote rests");
	$local->quit;

	# UTF8 to LATIN1
	$local = $pair->session(database => 'latin1');
	$local->query(
		TidrangeTest::workers($workers) . "SET client_encoding = 'UTF8'");
	is( $local->query(
			'SELECT count(*), max(t), max(octet_length(t)) FROM from_utf8.letters WHERE id % 3 = 2'
		),
		"167|\xc3\x9f\xc3\xa4|2",
		"UTF8 to LATIN1, $workers workers");
	($out, $err) = $local->query('SELECT count(t) FROM from_utf8.letters');
	is($out, '', "UTF8 to LATIN1, $workers workers: no result");
	like($err, qr/ERROR:  22P05: .*has no equivalent in encoding "LATIN1"/,
		"UTF8 to LATIN1, $workers workers: what LATIN1 lacks");
	$local->quit;

	# LATIN1 to bytes of no encoding
	$local = $pair->session(database => 'ascii');
	$local->query(TidrangeTest::workers($workers));
	is( $local->query(
			'SELECT count(*), max(encode(t::bytea, \'hex\')) FROM from_latin1.letters'
		),
		'300|e974e920df',
		"LATIN1 to SQL_ASCII, $workers workers: the bytes as they are");
	$local->quit;
}
$pair->remote_is_left('nothing is left');

$pair->finish;
