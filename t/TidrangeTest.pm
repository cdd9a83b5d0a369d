# What the TAP tests share: two clusters, the foreign server between them,
# sessions that run while the test does something else, and questions to both
# sides that are asked until the answer is right or the time is up.
#
# Nothing here sleeps in order to synchronise.  A scan is held open by a gate: a
# function that waits as long as a file stands in its server's data directory.

package TidrangeTest;

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

# Every query of a test ends within this many seconds, or the test fails.
use constant PATIENCE => 60;

# How soon a remote session must be at rest after the local one is.
use constant REST_SECONDS => 2;

# Two running clusters: source holds the real tables, destination the foreign
# ones.  Arguments: source_conf, destination_conf (lines for postgresql.conf),
# source_init, destination_init (arguments for initdb), chunk_blocks, streaming
# (the source may have standbys).
sub new
{
	my ($class, %args) = @_;
	my $self = bless {
		chunk_blocks => $args{chunk_blocks} // 32,
		sessions => []
	}, $class;

	foreach my $side (qw(source destination))
	{
		my $node = PostgreSQL::Test::Cluster->new($side);

		$node->init(
			allows_streaming => ($side eq 'source' && $args{streaming}) ? 1 : 0,
			extra => $args{"${side}_init"} // [ '-E', 'UTF8', '--locale=C' ]);
		$node->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
jit = off
max_worker_processes = 32
max_parallel_workers = 16
log_line_prefix = '%m [%p] [%a] '
CONF
		$node->append_conf('postgresql.conf', $args{"${side}_conf"})
		  if $args{"${side}_conf"};
		$node->start;
		$node->safe_psql('postgres', gate_function());
		$self->{$side} = $node;
	}
	$self->{destination}
	  ->safe_psql('postgres', 'CREATE EXTENSION tidrange_fdw');
	return $self;
}

sub source { return $_[0]->{source}; }
sub destination { return $_[0]->{destination}; }

# ----- the foreign server -----------------------------------------------------

# 'it''s'
sub literal
{
	my ($text) = @_;
	$text =~ s/'/''/g;
	return "'$text'";
}

sub option_list
{
	my (%options) = @_;
	return join(', ', map { "$_ " . literal($options{$_}) } sort keys %options);
}

# Create a foreign server (default name: source) for database postgres of the
# source, and a user mapping for PUBLIC.  `options` go to the server, where undef
# removes a default; `mapping` are the options of the mapping.
sub create_server
{
	my ($self, %args) = @_;
	my $name = $args{name} // 'source';
	my %options = (
		host => $self->source->host,
		port => $self->source->port,
		dbname => 'postgres',
		chunk_blocks => $self->{chunk_blocks},
		%{ $args{options} // {} });
	my %mapping = %{ $args{mapping} // {} };

	delete $options{$_} for grep { !defined $options{$_} } keys %options;
	$self->destination->safe_psql(
		$args{database} // 'postgres',
		"CREATE SERVER $name FOREIGN DATA WRAPPER tidrange_fdw OPTIONS ("
		  . option_list(%options) . ');'
		  . "CREATE USER MAPPING FOR PUBLIC SERVER $name"
		  . (%mapping ? ' OPTIONS (' . option_list(%mapping) . ')' : ''));
	return;
}

# Import the named tables of the source's schema public.
sub import_tables
{
	my ($self, @tables) = @_;

	$self->destination->safe_psql('postgres',
		    'IMPORT FOREIGN SCHEMA public LIMIT TO ('
		  . join(', ', @tables)
		  . ') FROM SERVER source INTO public');
	return;
}

# A table of about `rows` / 5 blocks of the source, never vacuumed by itself.
sub create_table
{
	my ($self, $name, $rows) = @_;

	$self->source->safe_psql('postgres', <<"SQL");
CREATE TABLE $name (id int PRIMARY KEY, v text)
    WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO $name SELECT i, repeat('x', 100) FROM generate_series(1, $rows) i;
ANALYZE $name;
SQL
	return;
}

# Tables ledger and guarded of 3000 rows, read as the role reader; `tables` are
# others to import, `options` go to the server.  Of `guarded` the rows up to 1500 come at once, the others when the
# source's gate is open.  A policy is the way to make a remote scan slow: quals with
# functions of ours are not sent.
sub create_guarded
{
	my ($self, %args) = @_;

	$self->create_table($_, 3000) foreach qw(ledger guarded);
	$self->remote_sql(<<'SQL');
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY guard ON guarded USING (id <= 1500 OR gate(id));
CREATE ROLE reader LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
GRANT EXECUTE ON FUNCTION pg_stat_file(text, boolean) TO reader;
SQL
	$self->create_server(
		mapping => { user => 'reader' },
		options => $args{options});
	$self->import_tables('ledger', 'guarded', @{ $args{tables} // [] });
	return;
}

# Settings under which small tables are read by that many workers.
sub workers
{
	my ($count) = @_;
	return <<"SQL";
SET max_parallel_workers_per_gather = $count;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SQL
}

# Count and order-free checksum: the same text for the same rows.
sub checksum
{
	my ($table) = @_;
	return "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(r::text, 0)::numeric), 0) FROM $table r";
}

# ----- running SQL ------------------------------------------------------------

sub local_sql
{
	my ($self, $sql) = @_;
	return $self->destination->safe_psql('postgres', $sql,
		timeout => PATIENCE);
}

sub remote_sql
{
	my ($self, $sql) = @_;
	return $self->source->safe_psql('postgres', $sql, timeout => PATIENCE);
}

# The error that SQL ends with, at verbose verbosity; '' if it succeeds.
sub local_error
{
	my ($self, $sql, %args) = @_;
	my ($code, $out, $err) = $self->destination->psql(
		$args{database} // 'postgres',
		"\\set VERBOSITY verbose\n$sql",
		on_error_stop => 1,
		timeout => PATIENCE,
		extra_params => $args{extra_params} // []);
	return $code == 0 ? '' : $err;
}

# A psql of the destination that stays; see TidrangeTest::Session.
sub session
{
	my ($self, %args) = @_;
	return $self->session_of($self->destination, %args);
}

sub remote_session
{
	my ($self, %args) = @_;
	return $self->session_of($self->source, %args);
}

sub session_of
{
	my ($self, $node, %args) = @_;
	my $session = TidrangeTest::Session->new($node, %args);

	push @{ $self->{sessions} }, $session;
	return $session;
}

# End the sessions and both clusters.
sub finish
{
	my ($self) = @_;

	open_gate($_) for ($self->source, $self->destination);
	$_->quit for @{ $self->{sessions} };
	$self->destination->stop('fast');
	$self->source->stop('fast');
	done_testing();
	return;
}

# ----- the gate ---------------------------------------------------------------

# gate(x) is true, once the gate is open.
sub gate_function
{
	return <<'SQL';
CREATE FUNCTION gate(x anyelement) RETURNS boolean
    LANGUAGE plpgsql PARALLEL SAFE COST 1000 AS $$
BEGIN
    WHILE (pg_stat_file('gate.shut', true)).size IS NOT NULL LOOP
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN true;
END $$;
SQL
}

sub shut_gate
{
	my ($node) = @_;
	append_to_file($node->data_dir . '/gate.shut', 'x');
	return;
}

sub open_gate
{
	my ($node) = @_;
	unlink $node->data_dir . '/gate.shut';
	return;
}

# Wait until that many processes stand before the gate.
sub wait_at_gate
{
	my ($node, $count) = @_;
	my $waiting = answer_within($node, PATIENCE,
		"SELECT count(*) >= $count FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
		't');

	die "nobody came to the gate" if $waiting ne 't';
	return;
}

# ----- asking until the answer is right ---------------------------------------

# Ask until the answer is `expected` or the time is up; the last answer.
sub answer_within
{
	my ($node, $seconds, $query, $expected) = @_;
	my $deadline = time + $seconds;

	while (1)
	{
		my $answer =
		  $node->safe_psql('postgres', $query, timeout => PATIENCE);

		return $answer if $answer eq $expected || time > $deadline;
		sleep 0.02;
	}
}

# Our sessions on the source that match the condition, one a line.
sub remote_sessions_query
{
	my ($condition) = @_;
	return
	  "SELECT application_name || ' ' || state || ' ' || left(query, 80) FROM pg_stat_activity "
	  . "WHERE application_name LIKE 'tidrange_fdw %' AND ($condition) ORDER BY 1";
}

sub remote_sessions
{
	my ($self, $condition) = @_;
	return $self->remote_sql(remote_sessions_query($condition // 'true'));
}

# Soon nothing is left on the source but idle sessions of leaders.
sub remote_rests
{
	my ($self, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(
		answer_within(
			$self->source,
			REST_SECONDS,
			remote_sessions_query(
				"state <> 'idle' OR application_name NOT LIKE '% leader'"),
			''),
		'',
		$name);
}

# No session of ours at all is left on the source.
sub remote_is_left
{
	my ($self, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(
		answer_within(
			$self->source, REST_SECONDS, remote_sessions_query('true'), ''),
		'',
		$name);
}

# The source's log since `offset`, as [pid, application, message] each, where a
# message goes on over lines of its own.
sub remote_log
{
	my ($self, $offset) = @_;
	my @entries;

	foreach my $line (
		split /\n/,
		slurp_file($self->source->logfile, $offset // 0))
	{
		if ($line =~ /^\d{4}-\S+ \S+ \S+ \[(\d+)\] \[([^]]*)\] (.*)$/)
		{
			push @entries, { pid => $1, app => $2, text => $3 };
		}
		elsif (@entries)
		{
			$entries[-1]{text} .= "\n$line";
		}
	}
	return @entries;
}

sub remote_log_size
{
	my ($self) = @_;
	return -s $self->source->logfile;
}

# ----- a session that runs beside the test ------------------------------------

package TidrangeTest::Session;

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use Time::HiRes qw(time);

# psql, connected, that goes on after errors.
sub new
{
	my ($class, $node, %args) = @_;
	my $self =
	  bless { stdin => '', stdout => '', stderr => '', count => 0 }, $class;
	my @command = (
		$node->installed_command('psql'),
		'-XAtq', '-d', $node->connstr($args{database} // 'postgres'),
		'-v', 'VERBOSITY=verbose', '-f', '-');

	$self->{timeout} = IPC::Run::timeout(TidrangeTest::PATIENCE);
	$self->{run} = IPC::Run::start(
		\@command, '<', \$self->{stdin}, '>', \$self->{stdout}, '2>',
		\$self->{stderr}, $self->{timeout});
	$self->{pid} = $self->query('SELECT pg_backend_pid()');
	return $self;
}

# The backend's process.
sub pid { return $_[0]->{pid}; }

# Send SQL and come back at once.
sub start
{
	my ($self, $sql) = @_;
	my $mark = 'end of query ' . ++$self->{count};

	$self->{mark} = qr/\Q$mark\E\n/;
	$self->{stdin} .= "$sql\n;\n\\echo '$mark'\n\\warn '$mark'\n";
	$self->{started} = time;
	$self->{timeout}->start(TidrangeTest::PATIENCE);
	$self->{run}->pump_nb while $self->{stdin} ne '';
	return;
}

# What was started has ended: its output and, in list context, its errors.
sub finish
{
	my ($self) = @_;
	my $mark = $self->{mark};

	$self->{timeout}->start(TidrangeTest::PATIENCE);
	$self->{run}->pump
	  until $self->{stdout} =~ $mark && $self->{stderr} =~ $mark;
	$self->{elapsed} = time - $self->{started};

	my ($out, $err) = ($self->{stdout}, $self->{stderr});

	$self->{stdout} = $self->{stderr} = '';
	s/\n?$mark// for ($out, $err);
	die "query failed: $err" if $err ne '' && !wantarray;
	return wantarray ? ($out, $err) : $out;
}

sub query
{
	my ($self, $sql) = @_;
	$self->start($sql);
	return $self->finish;
}

# Seconds that the last query took.
sub elapsed { return $_[0]->{elapsed}; }

sub quit
{
	my ($self) = @_;
	my $run = delete $self->{run} // return;

	$self->{stdin} .= "\\q\n";
	$self->{timeout}->start(TidrangeTest::PATIENCE);
	eval { $run->finish; 1 } or $run->kill_kill;
	return;
}

1;
