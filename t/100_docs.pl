# The documentation says what the code does: options, settings and functions
# with their defaults, the files of the source, versions, links.
#
# doc/OPTIONS.md is read in two forms: an entry is a heading "### `name`" with
# lines "- **Key:** value" below it; a table has its option in the first column
# and the titles of the others in its first row.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');

sub slurp
{
	return slurp_file("$root/$_[0]");
}

# ----- parsing ----------------------------------------------------------------

# "`x`; more" and "x; more" are x, "none; more" is nothing.
sub plain_value
{
	my ($text) = @_;

	return $1 if $text =~ /^`([^`]*)`/;
	$text =~ s/;.*//s;
	return $text eq 'none' ? '' : $text;
}

# The text below each heading of a document, by the heading's text.
sub sections
{
	my ($text) = @_;
	my (%sections, $title);

	foreach my $line (split /\n/, $text)
	{
		$title = $1 if $line =~ /^#+ (.*)/;
		$sections{$title} .= "$line\n" if defined $title;
	}
	return %sections;
}

# The rows of the first table in a text: a hash each, by the column's title.
sub table_rows
{
	my ($text) = @_;
	my (@titles, @rows);

	foreach my $line (split /\n/, $text)
	{
		next unless $line =~ /^\|(.*)\|$/;
		my @cells = map { s/^\s+|\s+$//gr } split /\|/, $1;

		next if $cells[0] =~ /^-+$/;
		if (!@titles)
		{
			@titles = @cells;
			next;
		}
		my %row;
		@row{@titles} = @cells;
		push @rows, \%row;
	}
	return @rows;
}

# "- **Key:** value", with the lines that continue it
sub entry_fields
{
	my ($text) = @_;
	my %fields = $text =~ /^- \*\*([\w ]+):\*\* (.*(?:\n  \S.*)*)/mg;

	s/\s*\n\s*/ /g foreach values %fields;
	return %fields;
}

# ----- options, settings, functions -------------------------------------------

my $node = PostgreSQL::Test::Cluster->new('docs');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION tidrange_fdw');

my $manual = slurp('doc/OPTIONS.md');
my %manual = sections($manual);

# name|where|type|default
my (@documented, @incomplete);
foreach my $title (sort keys %manual)
{
	if ($title =~ /^`(\w+)`$/)
	{
		my $name = $1;
		my %entry = entry_fields($manual{$title});

		push @incomplete, "$name: $_"
		  for grep { !$entry{$_} }
		  ('Where', 'Type', 'Default', 'Range', 'Effect', 'Bad value');
		push @incomplete, "$name: SQL"
		  if $manual{$title} !~ /^```sql\n.*\b$name\b.*^```$/ms;
		push @documented, join('|',
			$name, map { plain_value($entry{$_} // '') } qw(Where Type Default));
	}
	elsif ($title =~ /^Connection parameters/)
	{
		push @documented, join('|', map { plain_value($_) } @$_{qw(Option Where Type Default)})
		  foreach table_rows($manual{$title});
	}
}
is(join("\n", sort @documented),
	$node->safe_psql('postgres', <<'SQL'), 'OPTIONS.md has the options');
SELECT line FROM (
    SELECT concat_ws('|', name, context, type, coalesce(default_value, '')) AS line
    FROM tidrange_fdw_options()) l
ORDER BY line COLLATE "C"
SQL
is_deeply(\@incomplete, [], 'no entry of OPTIONS.md lacks a part');

# Every option is in the chapter of each object that has it.
my %chapters;
foreach my $chapter ($manual =~ /^(## .*?)(?=^## |\z)/msg)
{
	$chapters{ lc $1 } = $chapter if $chapter =~ /^## (.*)/;
}
foreach my $option (@documented)
{
	my ($name, $where) = split /\|/, $option;

	like($chapters{$_} // '', qr/`$name`/, "$name is in the chapter $_")
	  foreach split /, /, $where;
}

# name|default|who
is( join("\n",
		sort map { join('|', map { plain_value($_) } @$_{ 'Setting', 'Default', 'Who may set it' }) }
		  table_rows($manual{'Settings'})),
	$node->safe_psql('postgres', <<'SQL'), 'OPTIONS.md has the settings');
LOAD 'tidrange_fdw';
SELECT concat_ws('|', name, boot_val, context)
FROM pg_settings WHERE name LIKE 'tidrange_fdw.%' ORDER BY name COLLATE "C"
SQL

is( join("\n",
		sort map { plain_value($_->{'Function'}) . '|' . $_->{'Returns'} }
		  table_rows($manual{'Functions'})),
	$node->safe_psql('postgres', <<'SQL'), 'OPTIONS.md has the functions');
SELECT line FROM (
    SELECT p.proname || '('
        || regexp_replace(pg_get_function_identity_arguments(p.oid), '(, )?OUT .*', '')
        || ')|'
        || coalesce((SELECT string_agg(a.name, ', ' ORDER BY a.position)
                     FROM unnest(p.proargnames, p.proargmodes)
                         WITH ORDINALITY a(name, mode, position)
                     WHERE a.mode = 'o'), pg_get_function_result(p.oid)) AS line
    FROM pg_proc p
    JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
    WHERE d.deptype = 'e' AND p.prokind = 'f'
    AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'tidrange_fdw')
    AND p.prorettype <> 'fdw_handler'::regtype
    AND p.proname <> 'tidrange_fdw_validator') l
ORDER BY line COLLATE "C"
SQL

is( join("\n",
		map { plain_value($_->{'Procedure'}) } table_rows($manual{'Procedure'})),
	$node->safe_psql('postgres', <<'SQL'), 'OPTIONS.md has the procedure');
SELECT p.proname || '(' || regexp_replace(pg_get_function_identity_arguments(p.oid), '\mIN ', '', 'g') || ')'
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.deptype = 'e' AND p.prokind = 'p'
AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'tidrange_fdw')
SQL

my ($columns) = $manual{'View'} =~ /insert:\s+(.*?)\./s;
is($columns =~ s/\s+/ /gr,
	$node->safe_psql('postgres', <<'SQL'), 'OPTIONS.md has the columns of the view');
SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = 'tidrange_fdw_insert_progress'::regclass AND attnum > 0
SQL

# The options of IMPORT are named by the hint that refuses another one.
my ($code, $out, $err) = $node->psql('postgres', <<'SQL');
CREATE SERVER nowhere FOREIGN DATA WRAPPER tidrange_fdw;
CREATE USER MAPPING FOR CURRENT_USER SERVER nowhere;
IMPORT FOREIGN SCHEMA public FROM SERVER nowhere INTO public OPTIONS (nothing '');
SQL
my ($valid) = $err =~ /Valid options in this context are: ([\w, ]+)/;
is( join(', ', map { plain_value($_->{'Option'}) } table_rows($manual{'IMPORT FOREIGN SCHEMA'})),
	$valid,
	'OPTIONS.md has the options of IMPORT FOREIGN SCHEMA');

# The short list in the README.
my $readme = slurp('README.md');
my %readme = sections($readme);
my %known = map { (split /\|/)[0] => $_ } @documented;

foreach my $row (table_rows($readme{'Options'}))
{
	my $option = join('|', map { plain_value($_) } @$row{qw(Option Where Type Default)});
	my ($name) = split /\|/, $option;

	is($option, $known{$name}, "README.md and OPTIONS.md agree on $name");
}

$node->stop;

# ----- the map of the source --------------------------------------------------

my $architecture = slurp('doc/ARCHITECTURE.md');
my $source = join "\n", map { slurp_file($_) } glob("$root/*.[ch]");
my %rooms = map { $_ => 1 }
  $architecture =~ /^\|\s*((?:`\w+\.[ch]`(?:, )?)+)\s*\|/mg;
my %mapped = map { $_ => 1 } map { /`(\w+\.[ch])`/g } keys %rooms;

is( join(' ', sort grep { /\.c$/ } keys %mapped),
	join(' ', sort map { s/.*\///r } glob("$root/*.c")),
	'ARCHITECTURE.md has a room for every file');
ok(-e "$root/$_", "$_ of ARCHITECTURE.md exists")
  foreach sort keys %mapped;
foreach my $function (sort keys %{ { map { $_ => 1 } $architecture =~ /`(\w+)\(\)`/g } })
{
	like($source, qr/\b$function\s*\(/,
		"$function() of ARCHITECTURE.md exists");
}

is( join(' ', grep { slurp($_) =~ /PG_VERSION_NUM [<>=]/ } map { s/.*\///r } glob("$root/*.[ch]")),
	'compat.h',
	'only compat.h looks at the version it is compiled for');

# ----- versions ---------------------------------------------------------------

my ($version) = slurp('tidrange_fdw.control') =~ /^default_version = '(.*)'$/m;
my $meta = decode_json(slurp('META.json'));
my ($changes) = slurp('CHANGELOG.md') =~ /^## (\S+) \(/m;

is($meta->{version}, $version, 'META.json has the version of the control file');
is($meta->{provides}{tidrange_fdw}{version},
	$version, 'META.json provides that version');
is($changes, $version, 'CHANGELOG.md begins with it');
ok(-e "$root/tidrange_fdw--$version.sql", 'its SQL file exists');
is($meta->{provides}{tidrange_fdw}{file},
	"tidrange_fdw--$version.sql", 'META.json names it');
ok(-e "$root/$meta->{provides}{tidrange_fdw}{docfile}",
	'META.json names a document that exists');

# ----- links ------------------------------------------------------------------

# What GitHub makes of a heading.
sub anchor
{
	my ($heading) = @_;
	my $anchor = lc $heading;

	$anchor =~ s/[^\w\- ]//g;
	return $anchor =~ s/ /-/gr;
}

foreach my $file (qw(README.md CHANGELOG.md), map { s/^\Q$root\E\///r } glob("$root/doc/*.md"))
{
	my $text = slurp($file) =~ s/^```.*?^```$//msgr;

	while ($text =~ /\[[^]]*\]\(([^)\s]+)\)/g)
	{
		my $link = $1;
		my ($target, $fragment) = split /#/, $link, 2;

		next if $target =~ /^https?:/;
		my $path = $target eq '' ? $file : dirname($file) . "/$target";
		my $exists = -e "$root/$path";

		ok($exists, "$file: $link leads to a file");
		next if !$exists || !defined $fragment;
		ok( scalar(
				grep { anchor($_) eq $fragment }
				  slurp($path) =~ /^#+ (.*)$/mg),
			"$file: $link leads to a heading");
	}
}

done_testing();
