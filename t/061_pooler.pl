# A source behind PgBouncer, in session and in transaction mode: exact rows, and
# nothing of our settings is left in the pooled server sessions.  A pool that is
# smaller than the number of participants makes them fewer, not the rows.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;
use Time::HiRes qw(sleep);

$ENV{PATH} .= ':/usr/sbin';
my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split /:/, $ENV{PATH};
BAIL_OUT('pgbouncer is not installed') if !$pgbouncer;

my $pair = TidrangeTest->new(chunk_blocks => 8);
my $source = $pair->source;
my $user = getpwuid($<);
my @poolers;

$pair->create_table('ledger', 4000);

# ----- the pooler -------------------------------------------------------------

# Start one; its options for create_server.
sub start_pooler
{
	my ($mode, $size) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();

	append_to_file("$dir/users", "\"$user\" \"\"\n");
	append_to_file("$dir/pgbouncer.ini", <<"INI");
[databases]
postgres = host=${\$source->host} port=${\$source->port} dbname=postgres user=$user
[pgbouncer]
listen_addr =
listen_port = $port
unix_socket_dir = $dir
auth_type = trust
auth_file = $dir/users
pool_mode = $mode
default_pool_size = $size
query_wait_timeout = 30
logfile = $dir/log
pidfile = $dir/pid
INI
	system_or_bail($pgbouncer, '-q', '-d', "$dir/pgbouncer.ini");
	foreach (1 .. 100)
	{
		last if -S "$dir/.s.PGSQL.$port" && -s "$dir/pid";
		sleep 0.1;
	}
	push @poolers, "$dir/pid";
	return { host => $dir, port => $port };
}

sub stop_poolers
{
	foreach my $file (splice @poolers)
	{
		kill 'INT', slurp_file($file) if -s $file;
	}
	return;
}
END { stop_poolers(); }

# What a stranger finds in a session of the pool, all of ours or not.
sub settings_there
{
	my ($pool) = @_;
	my ($code, $out, $err) = (undef, '', '');
	my $connstr = "host=$pool->{host} port=$pool->{port} dbname=postgres user=$user";

	$code = IPC::Run::run(
		[
			'psql', '-XAtq', '-d', $connstr, '-c',
			"SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN "
			  . "('search_path', 'TimeZone', 'DateStyle', 'IntervalStyle', 'extra_float_digits', "
			  . "'default_transaction_isolation', 'default_transaction_read_only', 'transaction_isolation', "
			  . "'statement_timeout', 'enable_seqscan', 'enable_indexscan', 'max_parallel_workers_per_gather', "
			  . "'client_connection_check_interval', 'idle_in_transaction_session_timeout') OR name LIKE 'tidrange.%'"
		],
		'>', \$out, '2>', \$err);
	die "psql through the pooler: $err" if !$code;
	return $out;
}

# ----- each mode, each size of the pool ---------------------------------------------

my $question = 'SELECT count(*), sum(id), max(length(v)) FROM ledger';
my $all = $pair->remote_sql($question);
my $serial = 0;

foreach my $case (
	[ 'session', 10 ], [ 'session', 2 ], [ 'session', 1 ],
	[ 'transaction', 10 ], [ 'transaction', 2 ], [ 'transaction', 1 ])
{
	my ($mode, $size) = @$case;
	my $name = "$mode mode, $size server sessions";
	my $pool = start_pooler($mode, $size);
	my $schema = 'pool' . ++$serial;
	my $strange = settings_there($pool);
	my $session = $pair->session;

	$pair->create_server(
		name => $schema,
		options => $pool,
		mapping => { user => $user });
	$session->query(<<"SQL");
CREATE SCHEMA $schema;
IMPORT FOREIGN SCHEMA public LIMIT TO (ledger) FROM SERVER $schema INTO $schema;
SET search_path = $schema, public;
SQL
	$session->query(TidrangeTest::workers(0));
	is(scalar($session->query($question)), $all, "$name: serial");
	is(scalar($session->query('SELECT v FROM ledger WHERE id = 7')),
		'x' x 100, "$name: one row");
	is(scalar($session->query("SELECT count(*) FROM (SELECT FROM ledger LIMIT 5) x")),
		'5', "$name: a scan that ends early");

	$session->query(TidrangeTest::workers(4));
	like(scalar($session->query("EXPLAIN (COSTS OFF) $question")),
		qr/Workers Planned: 4/, "$name: workers are planned");
	foreach my $run (1 .. 3)
	{
		is(scalar($session->query($question)), $all, "$name: parallel, run $run");
	}

	# held open at the gate, as many take part as there are sessions
	TidrangeTest::shut_gate($pair->destination);
	$session->start("$question WHERE gate(id)");
	TidrangeTest::wait_at_gate($pair->destination, $size > 4 ? 4 : 1);
	TidrangeTest::open_gate($pair->destination);
	is(scalar($session->finish), $all, "$name: all take part");

	# one snapshot over several statements
	is(scalar($session->query("BEGIN; $question")), $all, "$name: in a transaction");
	$pair->remote_sql('INSERT INTO ledger SELECT -id, v FROM ledger WHERE id BETWEEN 1 AND 100');
	is(scalar($session->query($question)), $all, "$name: that goes on");
	$session->query('COMMIT');
	isnt(scalar($session->query($question)), $all, "$name: the next one sees a change");
	$pair->remote_sql('DELETE FROM ledger WHERE id < 0');

	# a statement that is cancelled at the source
	my ($out, $err) = $session->query(
		"SET statement_timeout = '300ms'; SELECT count(*) FROM ledger a, ledger b, ledger c WHERE a.v || b.v <> c.v; RESET statement_timeout");
	like($err, qr/57014/, "$name: a cancel");
	is(scalar($session->query($question)), $all, "$name: and on");
	$session->quit;

	is( TidrangeTest::answer_within(
			$source, TidrangeTest::PATIENCE,
			"SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in trans%' OR state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
			'0'),
		'0',
		"$name: no transaction is left open");
	is(settings_there($pool), $strange, "$name: no setting is left behind");
	stop_poolers();
	TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", '0');
}

$pair->finish;
