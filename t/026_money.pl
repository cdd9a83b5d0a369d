# money is text on the wire, and its meaning hangs on lc_monetary: what must not
# be misread is refused, what means the same is read.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

# Locales of our own making: the system may have none but C.
my $locales = PostgreSQL::Test::Utils::tempdir();
system('localedef', '-i', $_, '-f', 'UTF-8', "$locales/$_.UTF-8") == 0
  or die "no locale $_"
  foreach qw(de_DE en_US ja_JP fr_FR);
$ENV{LOCPATH} = $locales;

my $test = TidrangeTest->new;

$test->remote_sql(<<'SQL');
SET lc_monetary = 'C';
CREATE DOMAIN price AS money;
CREATE TABLE m (id int, v money, a money[], p price);
INSERT INTO m VALUES (1, '1234.56', ARRAY['0.01', NULL]::money[], '-1'), (2, NULL, '{}', NULL),
    (3, '-92233720368547758.08', ARRAY[['92233720368547758.07']]::money[], '0');
CREATE TABLE plain (id int, v numeric);
INSERT INTO plain VALUES (1, 2.5);
SQL
$test->local_sql('CREATE DOMAIN price AS money');
$test->create_server;
$test->import_tables('m', 'plain');

# The stored integers of all, which no locale changes.
my $stored = q{SELECT id, encode(cash_send(v), 'hex'), encode(array_send(a), 'hex'), encode(cash_send(p), 'hex') FROM m ORDER BY id};
my $expected = $test->remote_sql($stored);

sub set_remote
{
	my ($locale) = @_;
	$test->remote_sql("ALTER DATABASE postgres SET lc_monetary = '$locale'");
	$test->local_sql('SELECT tidrange_fdw_disconnect_all()');
	return;
}

# remote, local, are they read alike?
foreach my $case (
	[ 'C', 'C', 1 ], [ 'de_DE.UTF-8', 'de_DE.UTF-8', 1 ], [ 'en_US.UTF-8', 'en_US.UTF-8', 1 ],
	[ 'ja_JP.UTF-8', 'ja_JP.UTF-8', 1 ], [ 'fr_FR.UTF-8', 'fr_FR.UTF-8', 1 ],
	[ 'de_DE.UTF-8', 'C', 0 ], [ 'C', 'de_DE.UTF-8', 0 ], [ 'ja_JP.UTF-8', 'en_US.UTF-8', 0 ],
	[ 'en_US.UTF-8', 'ja_JP.UTF-8', 0 ], [ 'fr_FR.UTF-8', 'de_DE.UTF-8', 0 ])
{
	my ($remote, $local, $same) = @$case;
	my $set = "SET lc_monetary = '$local';";

	set_remote($remote);
	if ($same)
	{
		is($test->local_sql("$set $stored"), $expected, "money, $remote read under $local");
		next;
	}
	foreach my $column (qw(v a p))
	{
		like($test->local_error("$set SELECT $column FROM m"),
			qr/ERROR:  0A000: money of the remote server cannot be read under this lc_monetary\nDETAIL:  The remote server writes -1234567.89 as .*, this one as .*\nHINT:  Set lc_monetary.*\nCONTEXT:  column "$column"/,
			"$column, $remote is refused under $local");
	}
	is($test->local_sql("$set SELECT count(*), sum(id) FROM m"), '3|6',
		"other columns, $remote under $local");
	is($test->local_sql("$set SELECT v FROM plain"), '2.5', "numeric, $remote under $local");
}

$test->finish;
