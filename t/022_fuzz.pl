# Tables of random columns with random values arrive as they are.  The seed is
# printed; TIDRANGE_TEST_SEED sets it, TIDRANGE_TEST_SECONDS how long to go on.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use ValuesTest;

my $seed = $ENV{TIDRANGE_TEST_SEED} || (time * 1000) % 2**31;
my $seconds = $ENV{TIDRANGE_TEST_SECONDS} || 12;
my $least_rounds = 3;
my $rows_in_round = 400;

# Also where the test passes, so that a run can be repeated.
diag("TIDRANGE_TEST_SEED=$seed");
srand($seed);

# ----- random values ----------------------------------------------------------

sub below { return int(rand($_[0])); }
sub one_of { return $_[ below(scalar(@_)) ]; }

# Around where the header of a varlena grows, where its alignment matters, and
# where it is compressed and moved out of line.
sub random_length
{
	return one_of(
		below(8), below(40), 120 + below(12), 252 + below(10),
		below(600), (below(20) == 0 ? below(20000) : below(4)));
}

# A character of one to four bytes; none that is not one, and no zero.
sub random_code
{
	return one_of(
		32 + below(95), 32 + below(95), 1 + below(127),
		128 + below(0x800 - 128), 0x800 + below(0xD800 - 0x800),
		0xE000 + below(0x10000 - 0xE000), 0x10000 + below(0x100000));
}

# As bytes of UTF-8.
sub random_text
{
	my ($length) = @_;
	my $plain = below(3) > 0;
	my $text = '';

	$text .= pack('U', $plain ? 32 + below(95) : random_code())
	  while length($text) < $length;
	utf8::encode($text);
	return $text;
}

sub random_word
{
	return join('', map { chr(97 + below(26)) } 0 .. below(9));
}

sub digits
{
	my ($count) = @_;
	return join('', map { below(10) } 1 .. $count);
}

sub random_numeric
{
	my $sign = one_of('', '-');

	return one_of('NaN', 'Infinity', '-Infinity') if below(30) == 0;
	return $sign . '0' . one_of('', '.0', '.000', '.' . '0' x below(60)) if below(10) == 0;
	return $sign . (1 + below(9)) . digits(below(4)) . 'e' . one_of('', '-') . below(one_of(10, 100, 1001)) if below(4) == 0;
	return $sign . one_of('0', digits(1 + below(one_of(4, 20, 200)))) . '.' . digits(1 + below(one_of(4, 20, 200))) if below(2) == 0;
	return $sign . digits(1 + below(one_of(3, 9, 30)));
}

sub random_integer
{
	my ($bytes) = @_;
	my $bits = 1 + below(8 * $bytes - 1);
	my $value = 0;

	$value = $value * 2 + below(2) for 1 .. $bits;
	return one_of($value, -$value, -1 - $value, 0, $value);
}

sub random_float
{
	my ($format, $special) = @_;

	return one_of('NaN', 'Infinity', '-Infinity', '-0', '0', @$special) if below(8) == 0;
	return sprintf($format, (rand() - 0.5) * 10**(below(70) - 35));
}

sub random_date
{
	return one_of('infinity', '-infinity') if below(20) == 0;
	return sprintf('%04d-%02d-%02d%s', 1 + below(one_of(4700, 9999)), 1 + below(12), 1 + below(28),
		'') if below(3) > 0;
	return sprintf('%04d-%02d-%02d BC', 1 + below(4700), 1 + below(12), 1 + below(28));
}

sub random_time
{
	return sprintf('%02d:%02d:%02d%s', below(24), below(60), below(60), one_of('', '.' . digits(6), '.5'));
}

sub random_timestamp
{
	my ($zone) = @_;
	my $date = random_date();

	return $date if $date =~ /infinity/;
	my $era = $date =~ s/ BC$// ? ' BC' : '';
	return "$date " . random_time() . $zone . $era;
}

sub random_interval
{
	my $sign = sub { return one_of('', '-'); };

	return $sign->() . below(170000000) . ' years ' . $sign->() . below(12) . ' mons' if below(10) == 0;
	return $sign->() . below(30) . ' mons ' . $sign->() . below(60) . ' days ' . $sign->() . random_time();
}

sub random_bits
{
	my ($length) = @_;
	return join('', map { below(2) } 1 .. $length);
}

sub random_hex
{
	my ($bytes) = @_;
	return join('', map { sprintf('%02x', below(256)) } 1 .. $bytes);
}

sub random_json
{
	my ($depth, $jsonb) = @_;
	my $string = sub {
		my $text = random_text(below(4) ? below(12) : random_length());
		$text =~ s/(["\\])/\\$1/g;
		$text =~ s/([\x01-\x1f])/sprintf('\\u%04x', ord($1))/ge;
		return "\"$text\"";
	};
	my $kind = below($depth > 2 ? 4 : 6);

	return one_of('null', 'true', 'false') if $kind == 0;
	return one_of(random_integer(8), digits(0) . below(100) . '.' . digits(1 + below(30)), '1.50e-' . below(200)) if $kind == 1;
	return $string->() if $kind <= 3;
	return '[' . join(one_of(',', ', '), map { random_json($depth + 1) } 1 .. below(4)) . ']' if $kind == 4;
	return '{' . join(',', map { $string->() . one_of(':', ' : ') . random_json($depth + 1) } 1 .. below(4)) . '}';
}

# {a,NULL,"b"}, perhaps of two dimensions, perhaps with other lower bounds.
sub random_array
{
	my ($element) = @_;
	my $quote = sub {
		my ($value) = @_;
		return 'NULL' unless defined $value;
		$value =~ s/(["\\])/\\$1/g;
		return "\"$value\"";
	};
	my $row = sub {
		my ($length) = @_;
		return '{' . join(',', map { $quote->(below(5) ? $element->() : undef) } 1 .. $length) . '}';
	};
	my $length = below(6);
	my $height = 1 + below(3);
	my $lower = below(9) - 4;

	return '{}' if $length == 0;
	if (below(4) == 0)
	{
		my $array = '{' . join(',', map { $row->($length) } 1 .. $height) . '}';

		return $array if below(2);
		return sprintf('[%d:%d][%d:%d]=%s', $lower, $lower + $height - 1, -$lower, -$lower + $length - 1, $array);
	}
	return $row->($length) if below(3);
	return sprintf('[%d:%d]=%s', $lower, $lower + $length - 1, $row->($length));
}

sub random_composite
{
	my (@fields) = @_;
	return '(' . join(
		',',
		map {
			my $value = $_;

			if (defined $value)
			{
				$value =~ s/(["\\])/$1$1/g;
				$value = "\"$value\"";
			}
			$value // '';
		} @fields) . ')';
}

sub random_range
{
	my ($bound, $sort) = @_;

	return 'empty' if below(10) == 0;
	my @ends = sort { $sort->($a, $b) } $bound->(), $bound->();
	$ends[ below(2) ] = '' if below(5) == 0;
	return one_of('[', '(') . join(',', map { $_ eq '' ? '' : "\"$_\"" } @ends) . one_of(']', ')');
}

sub small_integer { return below(2000) - 1000; }

my @moods = ('sad', 'ok', '', 'so "so", {x}', '表');
my %type = (
	bool => sub { one_of('t', 'f') },
	int2 => sub { one_of(random_integer(2), -32768, 32767) },
	int4 => sub { one_of(random_integer(4), -2147483648, 2147483647) },
	int8 => sub { one_of(random_integer(8), '-9223372036854775808', '9223372036854775807') },
	float4 => sub { random_float('%.9g', [ '1e-45', '3.4028235e38' ]) },
	float8 => sub { random_float('%.17g', [ '5e-324', '1.7976931348623157e308' ]) },
	numeric => \&random_numeric,
	'numeric(20,4)' => sub { one_of('', '-') . digits(1 + below(15)) . '.' . digits(1 + below(6)) },
	money => sub { one_of('', '-') . digits(1 + below(15)) . '.' . digits(2) },
	text => sub { random_text(random_length()) },
	varchar => sub { random_text(random_length()) },
	'varchar(30)' => sub { random_text(below(8)) },
	'char(9)' => sub { one_of('', ' ', 'é', random_word()) },
	name => sub { random_text(below(15)) },
	bytea => sub { '\x' . random_hex(random_length()) },
	date => \&random_date,
	time => \&random_time,
	timetz => sub { random_time() . one_of('+', '-') . sprintf('%02d:%02d', below(15), below(60)) },
	timestamp => sub { random_timestamp('') },
	'timestamp(2)' => sub { random_timestamp('') },
	timestamptz => sub { random_timestamp(one_of('+00', '-08', '+05:30')) },
	interval => \&random_interval,
	uuid => sub { random_hex(16) },
	json => sub { random_json(0) },
	jsonb => sub { random_json(0) },
	'bit(7)' => sub { random_bits(7) },
	varbit => sub { random_bits(random_length()) },
	inet => sub { join('.', map { below(256) } 1 .. 4) . one_of('', '/' . below(33)) },
	macaddr => sub { random_hex(6) },
	point => sub { '(' . random_float('%.17g', []) . ',' . random_float('%.17g', []) . ')' },
	oid => sub { below(2**32) },
	xid8 => sub { below(2**52) },
	pg_lsn => sub { sprintf('%X/%X', below(2**32), below(2**32)) },
	tsvector => sub { join(' ', map { random_word() . ':' . (1 + below(16000)) . one_of('', 'A', 'B') } 0 .. below(5)) },
	regtype => sub { one_of('integer', 'text', 'numeric[]', '-', '"char"') },
	int4range => sub { random_range(\&small_integer, sub { $_[0] <=> $_[1] }) },
	numrange => sub { random_range(sub { small_integer() . '.' . digits(3) }, sub { $_[0] <=> $_[1] }) },
	int4multirange => sub { '{' . join(',', map { random_range(\&small_integer, sub { $_[0] <=> $_[1] }) } 1 .. below(4)) . '}' },
	mood => sub { one_of(@moods) },
	small => sub { one_of('', random_word(), 'x  ') },
	positive => sub { 1 + below(2**31 - 1) },
	pair => sub { random_composite(random_integer(4), one_of(undef, random_text(below(20))), one_of(@moods)) });

foreach my $element (qw(bool int2 int4 int8 float4 float8 numeric text varchar bytea date timestamptz interval uuid jsonb mood pair positive))
{
	$type{"${element}[]"} = sub { random_array($type{$element}) };
}
my @type_names = sort keys %type;

# As COPY wants a field.
sub copy_field
{
	my ($value) = @_;

	return '\N' unless defined $value;
	$value =~ s/\\/\\\\/g;
	$value =~ s/\t/\\t/g;
	$value =~ s/\n/\\n/g;
	$value =~ s/\r/\\r/g;
	return $value;
}

# ----- the two sides ----------------------------------------------------------

my $test = ValuesTest->new;
my $own_types = <<'SQL';
CREATE TYPE mood AS ENUM ('sad', 'ok', '', 'so "so", {x}', '表');
CREATE DOMAIN small AS varchar(20);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text, c mood);
SQL

$test->remote_sql($own_types);
$test->local_sql("CREATE TYPE shift AS (a int); $own_types");
$test->link_databases(chunk_blocks => 3);

# A hash of the rows as text, and for each column one of its text and one of its
# binary form, where that holds no OIDs of our types.
sub check
{
	my ($table, @types) = @_;
	my @columns = ("count(*)", "md5(string_agg(whole_row::text, E'\\n' ORDER BY k))");

	foreach my $i (0 .. $#types)
	{
		push @columns, "md5(string_agg(coalesce(c$i\::text, '-'), E'\\n' ORDER BY k))";
		push @columns, "md5(string_agg(coalesce(array_send(ARRAY[c$i])::text, '-'), ' ' ORDER BY k))"
		  unless $types[$i] =~ /^(mood|small|positive|pair)/;
	}
	return 'SELECT ' . join(', ', @columns) . " FROM $table whole_row";
}

my %ways = ValuesTest::ways();
my $start = time;
my $round = 0;
my $failed = 0;

while (!$failed && ($round < $least_rounds || time - $start < $seconds))
{
	my $table = 'fuzz' . $round++;
	my @columns = map { one_of(@type_names) } 0 .. 3 + below(20);
	my $nulls = one_of(0, 10, 50);

	# Every type has its turn.
	$columns[0] = $type_names[ ($round * 3) % @type_names ];
	$columns[1] = $type_names[ ($round * 3 + 1) % @type_names ];
	$columns[2] = $type_names[ ($round * 3 + 2) % @type_names ];
	my $definition = join(', ', map { "c$_ $columns[$_]" } 0 .. $#columns);
	my $copy = "CREATE TABLE $table (k int, $definition) WITH (fillfactor = 30);\nCOPY $table FROM STDIN;\n";

	foreach my $k (1 .. $rows_in_round)
	{
		$copy .= join("\t", $k, map { copy_field(below(100) < $nulls ? undef : $type{$_}->()) } @columns) . "\n";
	}
	$test->remote_sql("$copy\\.\n");
	$test->import_both('public', "LIMIT TO ($table)");

	my $truth = $test->remote_sql(check($table, @columns));

	foreach my $way (sort keys %ways)
	{
		my %got = $test->local_outcomes($ways{$way}, rows => check("f.$table", @columns));

		next if $got{rows} eq $truth;
		$failed++;
		fail("round $round: $way: $definition");
		diag("got      $got{rows}");
		diag("expected $truth");
	}
	is($test->local_sql(check("r.$table", @columns)), $truth, "round $round: through postgres_fdw as well")
	  if $round == 1;
}
ok(!$failed, 'rows of random values arrive as they are') or diag("TIDRANGE_TEST_SEED=$seed");
note("$round tables of $rows_in_round rows");

$test->finish;
