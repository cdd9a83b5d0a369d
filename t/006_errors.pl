# Bad input: one error with the remote's code and words, the foreign table, the
# column and the remote SQL; no password anywhere; the session goes on, and no
# remote session is left in a transaction.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(chunk_blocks => 8);
my $source = $pair->source;
my $destination = $pair->destination;
my $secret = 'open sesame 4711';
my $wrong = 'close sesame 4712';

$pair->create_table('ledger', 2000);
$pair->remote_sql(<<"SQL");
SET log_statement = 'none';
CREATE ROLE keeper LOGIN PASSWORD '$secret';
GRANT SELECT ON ledger TO keeper;
CREATE TABLE odd (id int, v text, n numeric) WITH (fillfactor = 10);
INSERT INTO odd SELECT i, CASE i WHEN 1500 THEN 'x' ELSE i::text END, CASE i WHEN 1501 THEN 1e10 ELSE i END
    FROM generate_series(1, 2000) i;
ALTER TABLE odd ADD COLUMN filler text;
UPDATE odd SET filler = repeat('f', 500);
CREATE TABLE private (id int);
SQL

# Passwords are asked of keeper, of nobody else.
my $hba = slurp_file($source->data_dir . '/pg_hba.conf');
unlink $source->data_dir . '/pg_hba.conf';
$source->append_conf('pg_hba.conf', "local all keeper scram-sha-256\n$hba");
$source->reload;

sub server_sql
{
	my ($name, $dbname, $port, $mapping) = @_;
	return "CREATE SERVER $name FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (host '"
	  . $source->host
	  . "', port '$port', dbname '$dbname', chunk_blocks '8'); CREATE USER MAPPING FOR PUBLIC SERVER $name OPTIONS ($mapping);";
}

$pair->local_sql("SET log_statement = 'none'; CREATE ROLE clerk LOGIN;"
	  . server_sql('good', 'postgres', $source->port, "user 'keeper', password '$secret'")
	  . server_sql('bad_password', 'postgres', $source->port, "user 'keeper', password '$wrong'")
	  . server_sql('no_password', 'postgres', $source->port, "user 'keeper'")
	  . server_sql('bad_role', 'postgres', $source->port, "user 'nobody at all'")
	  . server_sql('bad_database', 'nowhere', $source->port, "user 'keeper', password '$secret'")
	  . server_sql('down', 'postgres', 1, "user 'keeper', password '$secret'")
	  . server_sql('trusting', 'postgres', $source->port, "password '$secret'")
	  . server_sql('open', 'postgres', $source->port, "user '" . $source->safe_psql('postgres', 'SELECT current_user') . "'")
	  . join('',
		map { "CREATE FOREIGN TABLE t_$_ (id int, v text) SERVER $_ OPTIONS (schema_name 'public', table_name 'ledger');" }
		  qw(good bad_password no_password bad_role bad_database down trusting open))
	  . <<'SQL');
CREATE FOREIGN TABLE absent (id int) SERVER open OPTIONS (schema_name 'public', table_name 'absent');
CREATE FOREIGN TABLE absent_schema (id int) SERVER open OPTIONS (schema_name 'nowhere', table_name 't');
CREATE FOREIGN TABLE absent_column (id int, w text) SERVER open OPTIONS (schema_name 'public', table_name 'ledger');
CREATE FOREIGN TABLE private (id int) SERVER good OPTIONS (schema_name 'public', table_name 'private');
CREATE FOREIGN TABLE odd_int (id int, v int) SERVER open OPTIONS (schema_name 'public', table_name 'odd');
CREATE FOREIGN TABLE odd_smallint (id int, n smallint) SERVER open OPTIONS (schema_name 'public', table_name 'odd');
CREATE FOREIGN TABLE odd_short (id int, v varchar(3)) SERVER open OPTIONS (schema_name 'public', table_name 'odd');
CREATE DOMAIN below AS int CHECK (VALUE < 1990);
CREATE FOREIGN TABLE odd_domain (id below, n numeric) SERVER open OPTIONS (schema_name 'public', table_name 'odd');
GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk;
GRANT USAGE ON FOREIGN SERVER open TO clerk;
SQL

my $session = $pair->session;

# One error, with this code and these words; afterwards all is as before.
sub one_error
{
	my ($sql, $code, @words) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $name = "$sql: $code";
	my ($out, $err) = $session->query($sql);

	is($out, '', "$name, no rows");
	like($err, qr/ERROR:  $code: /, "$name, the code");
	is(scalar(() = $err =~ /ERROR: /g), 1, "$name, one error");
	like($err, $_, "$name, $_") foreach @words;
	unlike($err, qr/sesame/, "$name, no password");
	$pair->remote_rests("$name, the remote rests");
	is($session->query('SELECT count(*), sum(id) FROM t_good'),
		'2000|2001000', "$name, the session goes on");
	return;
}

foreach my $workers (0, 3)
{
	$session->query(TidrangeTest::workers($workers));

	# getting there
	one_error('SELECT * FROM t_down', '08001',
		qr/could not connect to server "down"/,
		qr/No such file or directory/, qr/foreign table "t_down"/);
	one_error('SELECT * FROM t_bad_password', '28P01',
		qr/could not connect to server "bad_password"/,
		qr/password authentication failed for user "keeper"/,
		qr/foreign table "t_bad_password"/);
	one_error('SELECT * FROM t_no_password', '08001',
		qr/could not connect to server "no_password"/,
		qr/no password supplied/);
	one_error('SELECT * FROM t_bad_role', '28000',
		qr/role "nobody at all" does not exist/);
	one_error('SELECT * FROM t_bad_database', '3D000',
		qr/could not connect to server "bad_database"/,
		qr/database "nowhere" does not exist/,
		qr/foreign table "t_bad_database"/);

	# what is there
	one_error('SELECT * FROM absent', '42P01',
		qr/relation "public.absent" does not exist/,
		qr/remote SQL command: .*absent/,
		qr/foreign table "absent"/);
	one_error('SELECT * FROM absent_schema', '3F000|42P01',
		qr/(schema|relation) "nowhere/,
		qr/remote SQL command: /, qr/foreign table "absent_schema"/);
	one_error('SELECT * FROM absent_column', '42703',
		qr/column "w" of remote table public.ledger does not exist/,
		qr/column "w" of foreign table "absent_column"/);
	one_error('SELECT id FROM absent_column WHERE w IS NOT NULL', '42703',
		qr/"?w"? .*does not exist/, qr/foreign table "absent_column"/);
	is($session->query('SELECT count(id) FROM absent_column'),
		'2000', 'a missing column that is not asked for does no harm');
	one_error('SELECT * FROM private', '42501',
		qr/permission denied for table private/,
		qr/remote SQL command: /, qr/CONTEXT:(?!.*column ").*foreign table "private"/s);

	# values that do not fit
	one_error('SELECT sum(v) FROM odd_int', '22P02',
		qr/invalid input syntax for type integer: "x"/,
		qr/column "v" of foreign table "odd_int"/);
	one_error('SELECT sum(n) FROM odd_smallint', '22P02|22003',
		qr/smallint/,
		qr/column "n" of foreign table "odd_smallint"/);
	one_error('SELECT max(v) FROM odd_short', '22001',
		qr/value too long for type character varying\(3\)/,
		qr/column "v" of foreign table "odd_short"/);
	one_error('SELECT max(id) FROM odd_domain', '23514',
		qr/value for domain below violates check constraint/,
		qr/column "id" of foreign table "odd_domain"/);

	# an error that the remote raises in the middle
	one_error('SELECT count(*) FROM t_good WHERE 1 / (id - 1500) = 7', '22012',
		qr/division by zero/,
		qr/remote SQL command: COPY \(SELECT.*1500/,
		qr/foreign table "t_good"/);
	one_error('SELECT count(*) FROM t_good WHERE 1 / (id - 1500) = 7 AND v < \'y\' COLLATE "C"',
		'22012', qr/division by zero/);

	# names that no error names: a conversion here does not say a column
	my ($out, $err) = $session->query('SELECT 1 / (id - 1500) FROM t_good');

	like($err, qr/22012/, 'a local division by zero');
	unlike($err, qr/column "/, 'which is not the fault of a column\'s value');
}

# Nested: the error does not break the transaction for a savepoint.
is( $session->query(
		'BEGIN; SELECT count(*) FROM t_good; SAVEPOINT a;'), '2000',
	'a savepoint');
my ($out, $err) = $session->query('SELECT sum(v) FROM odd_int');
like($err, qr/22P02/, 'an error after it');
($out, $err) = $session->query('ROLLBACK TO a; SELECT * FROM t_down');
like($err, qr/08001/, 'and one of another server');
is($session->query('ROLLBACK TO a; SELECT count(*) FROM t_good; COMMIT'),
	'2000', 'the transaction goes on');

# ----- users who are no superusers --------------------------------------------

foreach my $workers (0, 3)
{
	my $name = "$workers workers";

	$session->query(TidrangeTest::workers($workers) . 'SET ROLE clerk');
	($out, $err) = $session->query('SELECT count(*) FROM t_good');
	is($out, '2000', "$name: with a password that is used");
	is($err, '', "$name: and no error");
	($out, $err) = $session->query('SELECT count(*) FROM t_open');
	like($err, qr/2F003: password is required/,
		"$name: without a password");
	like($err, qr/must provide a password in the user mapping/,
		"$name: it is said where to put it");
	($out, $err) = $session->query('SELECT count(*) FROM t_trusting');
	like($err, qr/2F003: password is required/,
		"$name: with a password that nobody asks for");
	$session->query('RESET ROLE');
}
$session->query(
	"ALTER USER MAPPING FOR PUBLIC SERVER open OPTIONS (ADD password_required 'false')"
);
$session->query('SET ROLE clerk');
is($session->query('SELECT count(*) FROM t_open'),
	'2000', 'with the permission of a superuser');
$session->query('RESET ROLE');
$session->query(
	'ALTER USER MAPPING FOR PUBLIC SERVER open OPTIONS (DROP password_required)');

# A view reads as its owner, in workers too.
$session->query(
	'CREATE VIEW owned AS SELECT * FROM t_open; GRANT SELECT ON owned TO clerk');
foreach my $workers (0, 3)
{
	$session->query(TidrangeTest::workers($workers) . 'SET ROLE clerk');
	is($session->query('SELECT count(*), sum(id) FROM owned'),
		'2000|2001000', "$workers workers: a view reads as its owner");
	$session->query('RESET ROLE');
}

$session->quit;
$pair->remote_is_left('no session is left');

foreach my $node ($source, $destination)
{
	unlike(slurp_file($node->logfile),
		qr/sesame/, 'no password in the log of ' . $node->name);
}

$pair->finish;
