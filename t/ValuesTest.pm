# What the tests of values share: a source and a destination cluster, whose
# tables are read through tidrange_fdw (schema f) and through postgres_fdw
# (schema r), and ways to say that two sides have the same rows.

package ValuesTest;

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Every call of psql ends within this many seconds, or the test fails.
use constant PATIENCE => 120;

# Settings for a plan of either kind, whatever the size of the table.
use constant SERIAL => "SET max_parallel_workers_per_gather = 0;\n";
use constant PARALLEL => <<'SQL';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SQL
use constant FORCE_TEXT => "SET tidrange_fdw.force_text = on;\n";

# Every way to read: name => settings.
sub ways
{
	return (
		'serial, binary' => SERIAL,
		'serial, text' => SERIAL . FORCE_TEXT,
		'parallel, binary' => PARALLEL,
		'parallel, text' => PARALLEL . FORCE_TEXT);
}

# The tables of fixture.sql, and how many rows each has.
sub fixture_rows
{
	return (
		gap => 3999,
		nul => 5000,
		zero => 0,
		nocol => 300,
		pt => 3000,
		par => 1000,
		kid => 1000,
		vw => 3999,
		mv => 3999,
		toast => 40,
		drp => 1000,
		gen => 100,
		'"Ta""ble é 表"' => 500,
		'"T"' => 1,
		t => 2,
		ty => 2000,
		esc => 10);
}

# Two running clusters.  source_conf, destination_conf: lines for
# postgresql.conf.
sub new
{
	my ($class, %args) = @_;
	my $self = bless {}, $class;

	foreach my $side (qw(source destination))
	{
		my $node = PostgreSQL::Test::Cluster->new($side);

		$node->init(extra => [ '-E', 'UTF8', '--locale=C' ]);
		$node->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
jit = off
max_worker_processes = 16
max_parallel_workers = 8
max_prepared_transactions = 5
CONF
		$node->append_conf('postgresql.conf', $args{"${side}_conf"} // '');
		$node->start;
		$self->{$side} = $node;
	}
	return $self;
}

sub source { return $_[0]->{source}; }
sub destination { return $_[0]->{destination}; }

# 'it''s', whatever standard_conforming_strings is
sub literal
{
	my ($text) = @_;

	return 'NULL' unless defined $text;
	$text =~ s/'/''/g;
	return "'$text'" unless $text =~ /\\/;
	$text =~ s/\\/\\\\/g;
	return "E'$text'";
}

# "it""s"
sub identifier
{
	my ($name) = @_;

	$name =~ s/"/""/g;
	return "\"$name\"";
}

# Servers "ours" and "theirs" in a database of the destination, for one of the
# source; schemas f and r.
sub link_databases
{
	my ($self, %args) = @_;
	my $where = join(', ',
		'host ' . literal($self->source->host),
		'port ' . literal($self->source->port),
		'dbname ' . literal($args{from} // 'postgres'));
	my $chunk_blocks = $args{chunk_blocks} // 1;

	$self->destination->safe_psql($args{to} // 'postgres', <<"SQL");
CREATE EXTENSION IF NOT EXISTS tidrange_fdw;
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
DROP SERVER IF EXISTS ours, theirs CASCADE;
CREATE SERVER ours FOREIGN DATA WRAPPER tidrange_fdw OPTIONS ($where, chunk_blocks '$chunk_blocks');
CREATE SERVER theirs FOREIGN DATA WRAPPER postgres_fdw OPTIONS ($where, fetch_size '1000');
CREATE USER MAPPING FOR PUBLIC SERVER ours;
CREATE USER MAPPING FOR PUBLIC SERVER theirs;
DROP SCHEMA IF EXISTS f, r CASCADE;
CREATE SCHEMA f;
CREATE SCHEMA r;
SQL
	return;
}

# Import a schema of the source through both.  `limit`: LIMIT TO ... or EXCEPT ...
sub import_both
{
	my ($self, $schema, $limit, $database) = @_;

	$limit //= '';
	$self->destination->safe_psql($database // 'postgres', <<"SQL");
IMPORT FOREIGN SCHEMA $schema $limit FROM SERVER ours INTO f;
IMPORT FOREIGN SCHEMA $schema $limit FROM SERVER theirs INTO r;
SQL
	return;
}

# One foreign table of the same definition in f and r.
sub declare_both
{
	my ($self, $name, $columns, $options, $database) = @_;

	$options = "OPTIONS (schema_name 'public'"
	  . (defined $options ? ", $options" : '') . ')';
	$self->destination->safe_psql($database // 'postgres', <<"SQL");
CREATE FOREIGN TABLE f.$name ($columns) SERVER ours $options;
CREATE FOREIGN TABLE r.$name ($columns) SERVER theirs $options;
SQL
	return;
}

# ----- running SQL ------------------------------------------------------------

sub remote_sql
{
	my ($self, $sql, $database) = @_;
	return $self->source->safe_psql($database // 'postgres', $sql,
		timeout => PATIENCE);
}

sub local_sql
{
	my ($self, $sql, $database) = @_;
	return $self->destination->safe_psql($database // 'postgres', $sql,
		timeout => PATIENCE);
}

# What each of the labelled statements gives: its output, or its SQLSTATE and
# message.  One session for all, where `settings` were run before.  Takes label
# => statement, ...; returns label => outcome, ...
sub outcomes
{
	my ($self, $node, $database, $settings, %statements) = @_;
	my @labels = sort keys %statements;
	my $script = $settings;
	my %outcome;

	foreach my $i (0 .. $#labels)
	{
		$script .= "\\echo '\@\@\@' $i\n$statements{$labels[$i]};\n"
		  . "\\if :ERROR\n\\echo ERROR :SQLSTATE: :LAST_ERROR_MESSAGE\n\\endif\n";
	}
	my ($code, $out, $err) = $node->psql($database, $script,
		on_error_stop => 0, timeout => PATIENCE);

	diag("psql ended with $code: $err") if $code != 0;
	foreach my $part (split /^\@\@\@ /m, $out)
	{
		my ($i, $result) = split /\n/, $part, 2;

		next unless defined $i && $i =~ /^\d+$/;
		$result //= '';
		$result =~ s/\n\z//;
		$outcome{ $labels[$i] } = $result;
	}
	return %outcome;
}

sub local_outcomes
{
	my ($self, $settings, %statements) = @_;
	return $self->outcomes($self->destination, 'postgres', $settings,
		%statements);
}

sub remote_outcomes
{
	my ($self, $settings, %statements) = @_;
	return $self->outcomes($self->source, 'postgres', $settings, %statements);
}

# The error of one statement at verbose verbosity, '' if it succeeds.
sub local_error
{
	my ($self, $sql, $database) = @_;
	my ($code, $out, $err) = $self->destination->psql(
		$database // 'postgres',
		"\\set VERBOSITY verbose\n$sql",
		on_error_stop => 1,
		timeout => PATIENCE);

	return $code == 0 ? '' : $err;
}

# ----- comparing --------------------------------------------------------------

# Count and checksum of the rows as text.  The alias is no column's name, or it
# would be that column which is checked.
sub checksum
{
	my ($table) = @_;
	return
	    "SELECT count(*), md5(string_agg(whole_row::text, E'\\n' "
	  . "ORDER BY whole_row::text COLLATE \"C\")) FROM $table whole_row";
}

# Do the labels have the outcomes that are expected?  One test; what differs is
# shown.
sub same_outcomes
{
	my ($got, $expected, $name) = @_;
	my @wrong = grep { ($got->{$_} // 'nothing') ne $expected->{$_} }
	  sort keys %$expected;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok(@wrong == 0 && keys %$expected > 0, $name);
	diag(
		"$_: got " . ($got->{$_} // 'nothing') . ", expected $expected->{$_}")
	  foreach @wrong[ 0 .. ($#wrong > 19 ? 19 : $#wrong) ];
	diag('and ' . (@wrong - 20) . ' more') if @wrong > 20;
	return @wrong;
}

sub finish
{
	my ($self) = @_;

	$self->destination->stop('fast');
	$self->source->stop('fast');
	done_testing();
	return;
}

1;
