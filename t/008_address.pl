# Every session of a scan goes to the server that the leader's goes to, whatever
# the options would lead to by now: a list of hosts, a socket, TCP.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $tcp = "listen_addresses = '127.0.0.1'\nlog_connections = on\n";
my $pair = TidrangeTest->new(chunk_blocks => 8, source_conf => $tcp);
my $source = $pair->source;

# A second source with the same table and other rows.
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init(extra => [ '-E', 'UTF8', '--locale=C' ]);
$other->append_conf('postgresql.conf',
	"${tcp}autovacuum = off\nlog_line_prefix = '%m [%p] [%a] '");
$other->start;

$pair->create_table('ledger', 2000);
$other->safe_psql('postgres', <<'SQL');
CREATE TABLE ledger (id int PRIMARY KEY, v text) WITH (fillfactor = 10);
INSERT INTO ledger SELECT -i, repeat('y', 100) FROM generate_series(1, 2000) i;
SQL

my $directory = $source->host;
my ($port, $other_port) = ($source->port, $other->port);
my $question = 'SELECT count(*), sum(id) FROM ledger';
my %answer = (source => '2000|2001000', other => '2000|-2001000');

# How our sessions came since `offset`: [local] or an address, one each.
sub arrivals
{
	my ($node, $offset) = @_;
	my $log = slurp_file($node->logfile, $offset);
	my %pids;

	$pids{$1} = 1 while $log =~ /\[(\d+)\] \[tidrange_fdw [^]]*\] LOG:/g;
	return map { $log =~ /\[$_\] \[\S*\] LOG:  connection received: host=(\S+)/ ? $1 : '?' }
	  keys %pids;
}

sub distinct
{
	my %seen = map { $_ => 1 } @_;
	return join(', ', sort keys %seen);
}

# A server by options, and a session that uses it with workers.
my $serial = 0;
sub session_by
{
	my (%options) = @_;
	my $name = 'by' . ++$serial;
	my $session = $pair->session;

	$pair->create_server(name => $name, options => \%options);
	$session->query(
		TidrangeTest::workers(3) . <<"SQL");
CREATE SCHEMA $name;
IMPORT FOREIGN SCHEMA public LIMIT TO (ledger) FROM SERVER $name INTO $name;
SET search_path = $name, public;
SQL
	like($session->query("EXPLAIN (COSTS OFF) $question"),
		qr/Workers Planned: 3/, "$name: workers are planned");
	return $session;
}

# The answer, asked so that workers have their part in it.
sub ask_all
{
	my ($session) = @_;

	TidrangeTest::shut_gate($pair->destination);
	$session->start("$question WHERE gate(id)");
	TidrangeTest::wait_at_gate($pair->destination, 3);
	TidrangeTest::open_gate($pair->destination);
	return scalar($session->finish);
}

# ----- one way at a time ----------------------------------------------------------

foreach my $case (
	[ 'a socket', '[local]', host => $directory ],
	[ 'TCP', '127.0.0.1', host => '127.0.0.1' ],
	[ 'an address', '127.0.0.1', host => undef, hostaddr => '127.0.0.1' ],
	[ 'a name and an address', '127.0.0.1', host => 'no.such.host.invalid', hostaddr => '127.0.0.1' ],
	[ 'a list that begins with a dead socket', '127.0.0.1',
		host => "$directory/nowhere,127.0.0.1", port => "$port,$port" ],
	[ 'a list that begins with a dead port', '[local]',
		host => "127.0.0.1,$directory", port => "1,$port" ])
{
	my ($name, $way, %options) = @$case;
	my $offset = $pair->remote_log_size;
	my $session = session_by(%options);

	is(ask_all($session), $answer{source}, "$name: the rows");
	$session->quit;
	$pair->remote_is_left("$name: no session is left");
	my @arrivals = arrivals($source, $offset);
	is(distinct(@arrivals), $way, "$name: all come that way");
	cmp_ok(scalar(@arrivals), '>=', 3, "$name: workers come");
}

# ----- two servers in a list ------------------------------------------------------

# The leader finds the first one away and goes to the second; then the first comes
# back, and workers that followed the list would go there.
foreach my $case (
	[ 'sockets', "$directory,$directory" ],
	[ 'addresses', '127.0.0.1,127.0.0.1' ])
{
	my ($name, $hosts) = @$case;
	my $session;
	my $offset = -s $other->logfile;
	my $source_offset;

	$source->stop('fast');
	$session = session_by(host => $hosts, port => "$port,$other_port");
	is($session->query("BEGIN; $question"),
		$answer{other}, "$name: the leader reads from the second");
	$source->start;
	$source_offset = $pair->remote_log_size;
	foreach my $run (1 .. 3)
	{
		is(ask_all($session),
			$answer{other}, "$name: so do the workers, run $run");
	}
	is($session->query("COMMIT; $question"),
		$answer{other}, "$name: and while the leader's session lasts");
	is(scalar(arrivals($source, $source_offset)),
		0, "$name: nobody came to the first");
	cmp_ok(scalar(arrivals($other, $offset)),
		'>', 2, "$name: workers came to the second");
	$session->quit;

	# A new session begins at the start of the list.
	$session = $pair->session;
	$session->query(
		TidrangeTest::workers(3) . "SET search_path = by$serial, public");
	is($session->query($question),
		$answer{source}, "$name: a new session reads from the first");
	$session->quit;
}

# ----- an option that changes -----------------------------------------------------

my $session = session_by(host => $directory);
is($session->query("BEGIN; $question"), $answer{source}, 'before ALTER SERVER');
$pair->local_sql(
	"ALTER SERVER by$serial OPTIONS (SET port '$other_port')");
is($session->query($question),
	$answer{source}, 'ALTER SERVER does not split a transaction');
is($session->query("COMMIT; $question"),
	$answer{other}, 'but leads the next one elsewhere');
$session->quit;

$other->stop('fast');
$pair->finish;
