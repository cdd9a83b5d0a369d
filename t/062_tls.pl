# TLS with verify-full, and IPv6: every session of a scan is encrypted and checks
# the server's name, workers' too, though they go to the leader's address; a wrong
# authority or name is an error, never an unchecked session.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket;
use Test::More;
use TidrangeTest;

# ----- two authorities, a certificate for one name -----------------------------------

my $dir = PostgreSQL::Test::Utils::tempdir();

sub openssl
{
	my @arguments = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'openssl', @arguments ], '>', \$out, '2>', \$err)
	  or BAIL_OUT("openssl @arguments: $err");
	return;
}

foreach my $authority ('good', 'bad')
{
	openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2',
		'-subj', "/CN=$authority authority",
		'-keyout', "$dir/$authority.key", '-out', "$dir/$authority.crt");
}
append_to_file("$dir/extensions", "subjectAltName = DNS:source.test\n");
openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=source.test',
	'-keyout', "$dir/server.key", '-out', "$dir/server.csr");
openssl('x509', '-req', '-in', "$dir/server.csr", '-days', '2',
	'-CA', "$dir/good.crt", '-CAkey', "$dir/good.key", '-CAcreateserial',
	'-extfile', "$dir/extensions", '-out', "$dir/server.crt");
chmod 0600, "$dir/server.key" or die;

my $probe;
my $have_ipv6 = socket($probe, AF_INET6, SOCK_STREAM, 0)
  && bind($probe, pack_sockaddr_in6(0, Socket::inet_pton(AF_INET6, '::1')));

my $addresses = '127.0.0.1' . ($have_ipv6 ? ',::1' : '');
my $pair = TidrangeTest->new(
	chunk_blocks => 8,
	source_conf => <<"CONF");
listen_addresses = '$addresses'
ssl = on
ssl_cert_file = '$dir/server.crt'
ssl_key_file = '$dir/server.key'
password_encryption = 'scram-sha-256'
CONF
my $source = $pair->source;
my $local = $pair->destination;

$pair->create_table('ledger', 4000);
$pair->remote_sql("CREATE ROLE reader LOGIN PASSWORD 'se cret'; GRANT SELECT ON ledger TO reader");

# Over the network with TLS and a password only.
unlink $source->data_dir . '/pg_hba.conf';
append_to_file($source->data_dir . '/pg_hba.conf', <<'HBA');
local all all trust
hostssl all reader 127.0.0.1/32 scram-sha-256
hostssl all reader ::1/128 scram-sha-256
HBA
$source->reload;

my $question = 'SELECT count(*), sum(id) FROM ledger';
my $all = $pair->remote_sql($question);
my %verified = (
	host => 'source.test',
	hostaddr => '127.0.0.1',
	sslmode => 'verify-full',
	sslrootcert => "$dir/good.crt");
my $serial = 0;

# A server by these options, and its schema.
sub server_by
{
	my (%options) = @_;
	my $name = 'tls' . ++$serial;

	$pair->create_server(
		name => $name,
		options => \%options,
		mapping => { user => 'reader', password => 'se cret' });
	$pair->local_sql("CREATE SCHEMA $name; "
		  . "CREATE FOREIGN TABLE $name.ledger (id int, v text) SERVER $name OPTIONS (schema_name 'public')");
	return $name;
}

my @ways = ([ 'IPv4', '127.0.0.1' ]);
push @ways, [ 'IPv6', '::1' ] if $have_ipv6;
note('IPv6 is ' . ($have_ipv6 ? '' : 'not ') . 'there');

foreach my $way (@ways)
{
	my ($name, $address) = @$way;
	my $schema = server_by(%verified, hostaddr => $address);
	my $session = $pair->session;

	$session->query(TidrangeTest::workers(3) . "SET search_path = $schema, public");
	TidrangeTest::shut_gate($local);
	$session->start("$question WHERE gate(id)");
	TidrangeTest::wait_at_gate($local, 4);
	is( $pair->remote_sql(
			"SELECT count(*) >= 4, bool_and(ssl), bool_and(host(client_addr) = '$address') "
			  . "FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE usename = 'reader'"),
		't|t|t', "$name: leader and workers have encrypted sessions");
	TidrangeTest::open_gate($local);
	is(scalar($session->finish), $all, "$name: the rows");

	# much in one record, little in the next: nothing may wait for what has come
	is(scalar($session->query("SELECT count(*), sum(length(v)) FROM ledger a")),
		'4000|400000', "$name: wide rows");
	$session->query('SET max_parallel_workers_per_gather = 0');
	is(scalar($session->query($question)), $all, "$name: serial");
	my ($out, $err) = $session->query(
		"SET statement_timeout = '300ms'; SELECT count(*) FROM ledger a, ledger b, ledger c WHERE a.v || b.v <> c.v; RESET statement_timeout");
	like($err, qr/57014/, "$name: a cancel");
	is(scalar($session->query($question)), $all, "$name: and on");
	$session->quit;
}

# An address alone, whose name the certificate does not have, and so on.
foreach my $case (
	[ 'another name', qr/source\.test/, { %verified, host => 'other.test' } ],
	[ 'an address only', qr/source\.test/, { %verified, host => '127.0.0.1', hostaddr => undef } ],
	[ 'another authority', qr/certificate verify failed/, { %verified, sslrootcert => "$dir/bad.crt" } ],
	[ 'no file of an authority', qr/does not exist/, { %verified, sslrootcert => "$dir/none.crt" } ],
	[ 'no TLS', qr/no encryption|SSL off/, { %verified, sslmode => 'disable', sslrootcert => undef } ])
{
	my ($name, $reason, $options) = @$case;
	my $schema = server_by(%$options);

	foreach my $workers (0, 3)
	{
		my $error = $pair->local_error(
			TidrangeTest::workers($workers) . "SELECT count(*) FROM $schema.ledger");

		like($error, qr/ERROR:  (08001|28000): could not connect to server "$schema"/,
			"$name, $workers workers: an error");
		like($error, $reason, "$name, $workers workers: the reason");
		unlike($error, qr/se cret/, "$name, $workers workers: no password in it");
	}
}

# The name is checked for each address of a list, and for the workers' one.
my $schema = server_by(
	%verified,
	host => 'source.test,source.test',
	hostaddr => '127.0.0.1,127.0.0.1',
	port => '1,' . $source->port);
is($pair->local_sql(TidrangeTest::workers(3) . "SELECT count(*), sum(id) FROM $schema.ledger"),
	$all, 'a list that begins with a dead port');

$pair->finish;
