# Partitioned tables over the wire: what each leaf is asked for, that leaves which the
# condition rules out are left alone, and that nothing that happens to partitions
# meanwhile changes the answer.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TidrangeTest;

my $pair = TidrangeTest->new(
	chunk_blocks => 4,
	source_conf => "track_activity_query_size = 4096\nlog_statement = all");
my $source = $pair->source;
my $destination = $pair->destination;

# Small as they are, one statement would be the cheaper way.
$pair->create_server(options => { fdw_startup_cost => 0 });
$pair->remote_sql(<<'SQL');
CREATE ROLE grantee LOGIN;
CREATE TABLE pt (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE pt_1 PARTITION OF pt FOR VALUES FROM (0) TO (1000) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE pt_2 PARTITION OF pt FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (id);
CREATE TABLE pt_2a PARTITION OF pt_2 FOR VALUES FROM (1000) TO (1600) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE pt_2b PARTITION OF pt_2 FOR VALUES FROM (1600) TO (2000) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE pt_3 PARTITION OF pt FOR VALUES FROM (2000) TO (2500) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE INDEX ON pt (id);
INSERT INTO pt SELECT i, repeat('x', 100) FROM generate_series(0, 2499) i;
CREATE TABLE later (id int, v text) WITH (fillfactor = 10);
INSERT INTO later SELECT i, repeat('x', 100) FROM generate_series(5000, 5999) i;
ANALYZE;
GRANT SELECT ON pt TO grantee;
SQL
$pair->import_tables('pt');
$pair->create_server(name => 'granted', options => { fdw_startup_cost => 0 }, mapping => { user => 'grantee' });
$pair->local_sql(<<'SQL');
CREATE FOREIGN TABLE granted_pt (id int, v text) SERVER granted OPTIONS (schema_name 'public', table_name 'pt');
SQL

my $answer = '2500|3123750|250000';
my $session = $pair->session;

$session->query(TidrangeTest::workers(3));

# ----- what the source did ----------------------------------------------------

# seq_scan and heap blocks of the leaves since the last reset; asked until the
# sessions have reported.  A little more than once is once: the planner looks at
# the first and the last row by index, for a condition at each planning.
sub leaf_statistics
{
	my ($expected, $slack) = @_;

	$slack //= 1.2;
	return TidrangeTest::answer_within($source, 10, <<"SQL", $expected);
SELECT string_agg(s.relname || ' ' || s.seq_scan || ' ' ||
    CASE WHEN io.heap_blks_read + io.heap_blks_hit = 0 THEN 'none'
         WHEN (io.heap_blks_read + io.heap_blks_hit) * 8192
              BETWEEN pg_relation_size(s.relid) AND pg_relation_size(s.relid) * $slack THEN 'once'
         ELSE (io.heap_blks_read + io.heap_blks_hit)::text || ' of ' || pg_relation_size(s.relid) / 8192 END,
    ', ' ORDER BY s.relname)
FROM pg_stat_user_tables s JOIN pg_statio_user_tables io USING (relid) WHERE s.relname LIKE 'pt\\__%'
SQL
}

sub reset_statistics
{
	$pair->local_sql('SELECT 1');
	$pair->remote_sql('SELECT pg_stat_reset()');
	return;
}

foreach my $table (qw(pt granted_pt))
{
	my $way = $table eq 'pt' ? 'leaf by leaf' : 'through the parent';

	$session->query('SELECT tidrange_fdw_disconnect_all()');
	reset_statistics();
	is($session->query("SELECT count(*), sum(id), sum(length(v)) FROM $table"),
		$answer, "$way: exact");
	$session->query('SELECT tidrange_fdw_disconnect_all()');
	is( leaf_statistics('pt_1 0 once, pt_2a 0 once, pt_2b 0 once, pt_3 0 once'),
		'pt_1 0 once, pt_2a 0 once, pt_2b 0 once, pt_3 0 once',
		"$way: each block once, and no sequential scan");
	my $plan = $session->query(
		"EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT count(*) FROM $table");
	$table eq 'pt'
	  ? like($plan, qr/FROM ONLY \$leaf .*Remote Leaves: 4/s, "$way: EXPLAIN says so")
	  : like($plan, qr/Read Through Parent: right to read the parent only/,
		"$way: EXPLAIN says so");
}

# Chunked, and by one statement, which is what costs would choose here.
foreach my $chunked (1, 0)
{
	my $way = $chunked ? 'chunked' : 'whole';
	my $scans = $chunked ? 0 : 1;
	my $expected = "pt_1 0 none, pt_2a $scans once, pt_2b $scans once, pt_3 0 none";

	$session->query('ALTER FOREIGN TABLE pt OPTIONS ('
		  . ($chunked ? 'ADD use_remote_estimate \'false\'' : 'DROP use_remote_estimate') . ')');
	$session->query('SELECT tidrange_fdw_disconnect_all()');
	reset_statistics();
	is($session->query('SELECT count(*), sum(id) FROM pt WHERE id BETWEEN 1100 AND 1999'),
		'900|1394550', "a condition on the key, $way: exact");
	$session->query('SELECT tidrange_fdw_disconnect_all()');
	is(leaf_statistics($expected, 1.9), $expected,
		"$way: only the leaves are read that can hold rows");
}

$session->query('SELECT tidrange_fdw_disconnect_all()');
reset_statistics();
is($session->query('SET max_parallel_workers_per_gather = 0; SELECT id, length(v) FROM pt WHERE id = 1234'),
	'1234|100', 'one key, one statement');
$session->query('SELECT tidrange_fdw_disconnect_all(); SET max_parallel_workers_per_gather = 3');
like(leaf_statistics('pt_1 0 none, pt_2a 0 1 of 34, pt_2b 0 none, pt_3 0 none'),
	qr/^pt_1 0 none, pt_2a 0 [12] of \d+, pt_2b 0 none, pt_3 0 none$/,
	'the source prunes, and uses the index of the leaf');

# The leaves are locked and listed in the order that makes the answer right.
my $offset = $pair->remote_log_size;
$session->query('SELECT count(*) FROM pt');
my @leader = map { $_->{text} } grep { $_->{app} =~ /leader$/ } $pair->remote_log($offset);
my ($lock) = grep { $leader[$_] =~ /LOCK TABLE public\.pt IN ACCESS SHARE MODE/ } 0 .. $#leader;
my ($export) = grep { $leader[$_] =~ /pg_export_snapshot/ } 0 .. $#leader;
my ($list) = grep { $leader[$_] =~ /AS leaf_name/ } 0 .. $#leader;
ok(defined $lock && defined $export && defined $list, 'lock, snapshot and list are there');
cmp_ok($lock, '<=', $export, 'the lock comes first');
cmp_ok($export, '<=', $list, 'then the snapshot, then the list');
my @copies = grep { /COPY \(SELECT/ } map { $_->{text} } $pair->remote_log($offset);
my %copied;
$copied{$_}++ for map { /FROM ONLY public\.(\w+) WHERE ctid/ } @copies;
is(join(' ', sort keys %copied), 'pt_1 pt_2a pt_2b pt_3', 'each leaf is named');

# ----- what happens meanwhile -------------------------------------------------

my $ddl = $pair->remote_session;
my $counting = 'SELECT count(*), sum(id), sum(length(v)) FROM %s WHERE gate(id)';

# Read with everybody at the gate, let `sql` happen on the source (to its end, or
# until it waits for a lock), open the gate.
sub read_while
{
	my ($table, $sql, $waits) = @_;

	TidrangeTest::shut_gate($destination);
	$session->start(sprintf($counting, $table));
	TidrangeTest::wait_at_gate($destination, 2);
	$ddl->start($sql);
	if ($waits)
	{
		my $waiting = TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
			'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $ddl->pid,
			'Lock');
		is($waiting, 'Lock', "$table: $sql waits");
	}
	else
	{
		my ($out, $err) = $ddl->finish;
		is($err, '', "$table: $sql does not wait");
	}
	TidrangeTest::open_gate($destination);
	is(scalar($session->finish), $answer, "$table: and the answer is the same");
	if ($waits)
	{
		my ($out, $err) = $ddl->finish;
		is($err, '', "$table: afterwards it is done");
	}
	return;
}

foreach my $table (qw(pt granted_pt))
{
	read_while($table, 'ALTER TABLE pt ATTACH PARTITION later FOR VALUES FROM (5000) TO (6000)');
	is($session->query("SELECT count(*) FROM $table"), '3500', "$table: the next statement reads the new leaf");
	$pair->remote_sql('ALTER TABLE pt DETACH PARTITION later');
	read_while($table, 'ALTER TABLE pt DETACH PARTITION pt_3', 1);
	is($session->query("SELECT count(*) FROM $table"), '2000', "$table: the next one does not read the old leaf");
	$pair->remote_sql('ALTER TABLE pt ATTACH PARTITION pt_3 FOR VALUES FROM (2000) TO (2500)');
	read_while($table, 'ALTER TABLE pt DETACH PARTITION pt_3 CONCURRENTLY', 1);
	$pair->remote_sql('ALTER TABLE pt ATTACH PARTITION pt_3 FOR VALUES FROM (2000) TO (2500)');
	read_while($table, 'CREATE TABLE pt_new PARTITION OF pt FOR VALUES FROM (7000) TO (8000)', 1);
	read_while($table, 'DROP TABLE pt_new', 1);
}

# A row that moves to another leaf is read once.
$pair->remote_sql("CREATE TABLE pt_rest PARTITION OF pt DEFAULT");
read_while('pt', 'UPDATE pt SET id = id + 20000 WHERE id % 10 = 0');
$pair->remote_sql('UPDATE pt SET id = id - 20000 WHERE id >= 20000');

# In one transaction the view stays that of its first statement.
$session->query('BEGIN; SELECT count(*) FROM pt');
$pair->remote_sql('INSERT INTO pt VALUES (100, \'late\')');
is($session->query('SELECT count(*), sum(id), sum(length(v)) FROM pt'), $answer, 'a later row is not read');
$session->query('COMMIT');
$pair->remote_sql("DELETE FROM pt WHERE v = 'late'");

# ----- DDL that waits for a leaf, and workers that come later -------------------

foreach my $statement ('ALTER TABLE pt_1 ADD CHECK (id < 100000)', 'REINDEX TABLE pt_2a',
	'TRUNCATE pt_3; INSERT INTO pt SELECT i, repeat(\'x\', 100) FROM generate_series(2000, 2499) i',
	'VACUUM FULL pt_2b')
{
	my ($name) = $statement =~ /^(\w+)/;

	$session->query('BEGIN; SELECT count(*) FROM pt');
	$ddl->start($statement);
	TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
		'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $ddl->pid, 'Lock');
	is($session->query('SELECT count(*), sum(id), sum(length(v)) FROM pt'),
		$answer, "$name of a leaf waits: the next statement is exact");
	cmp_ok($session->elapsed, '<', 10, "$name: and does not hang");
	is($session->query('SELECT count(*), sum(id) FROM pt WHERE id >= 1600'),
		'900|1844550', "$name: nor one that reads a part of the leaves");
	$session->query('COMMIT');
	my ($out, $err) = $ddl->finish;
	is($err, '', "$name: then it is done");
}

# A leaf that is rewritten before it is locked.
$pair->remote_sql('CREATE TABLE other (LIKE pt)');
my $isolated = $pair->session;
$isolated->query(TidrangeTest::workers(3));
$pair->local_sql("CREATE FOREIGN TABLE far_other (id int, v text) SERVER source OPTIONS (schema_name 'public', table_name 'other')");
$isolated->query('BEGIN; SELECT count(*) FROM far_other');
$pair->remote_sql('VACUUM FULL pt_2a');
my ($out, $err) = $isolated->query('SELECT count(*) FROM pt');
like($err, qr/ERROR:  40001:.*rewritten after the snapshot/, 'a leaf that was rewritten after the snapshot');
$isolated->query('ROLLBACK');
is(scalar($isolated->query('SELECT count(*) FROM pt')), '2500', 'and in the next transaction');

# ----- partitions that come and go between snapshot and lock ----------------------

$pair->remote_sql('GRANT SELECT ON other TO grantee');
$pair->local_sql("CREATE FOREIGN TABLE granted_other (id int, v text) SERVER granted OPTIONS (schema_name 'public', table_name 'other')");
$pair->local_sql("CREATE FOREIGN TABLE pt_whole (id int, v text) SERVER source OPTIONS (schema_name 'public', table_name 'pt', connections '1')");
$pair->local_sql("CREATE FOREIGN TABLE pt_four (id int, v text) SERVER source OPTIONS (schema_name 'public', table_name 'pt', connections '4')");
my $back = 'ALTER TABLE pt ATTACH PARTITION pt_3 FOR VALUES FROM (2000) TO (2500)';

foreach my $case (
	[ 'by leaf', 'far_other', 'pt', 3, 0 ],
	[ 'through the parent', 'granted_other', 'granted_pt', 3, 1 ],
	[ 'over several connections', 'far_other', 'pt_four', 0, 0 ],
	[ 'whole', 'far_other', 'pt_whole', 0, 1 ])
{
	my ($way, $before, $table, $workers, $fails) = @$case;

	$isolated->query("BEGIN; SET LOCAL max_parallel_workers_per_gather = $workers; SELECT count(*) FROM $before");
	$pair->remote_sql('ALTER TABLE pt DETACH PARTITION pt_3');
	($out, $err) = $isolated->query("SELECT count(*), sum(id), sum(length(v)) FROM $table");
	$fails
	  ? like($err, qr/ERROR:  40001:.*partitions of remote table .* were removed/,
		"a partition was detached, $way: an error")
	  : is($out, $answer, "a partition was detached, $way: exact");
	$isolated->query('ROLLBACK');
	$pair->remote_sql($back);
}
$isolated->query('BEGIN; SELECT count(*) FROM far_other');
$pair->remote_sql('CREATE TABLE kept AS SELECT * FROM pt_3; DROP TABLE pt_3');
($out, $err) = $isolated->query('SELECT count(*) FROM pt');
like($err, qr/ERROR:  40001:/, 'a partition was dropped');
$isolated->query('ROLLBACK');
$pair->remote_sql('CREATE TABLE pt_3 PARTITION OF pt FOR VALUES FROM (2000) TO (2500); INSERT INTO pt SELECT * FROM kept');

foreach my $case ([ 'far_other', 'pt' ], [ 'granted_other', 'granted_pt' ])
{
	my ($before, $table) = @$case;

	$isolated->query("BEGIN; SELECT count(*) FROM $before");
	$pair->remote_sql('ALTER TABLE pt ATTACH PARTITION later FOR VALUES FROM (5000) TO (6000)');
	is(scalar($isolated->query("SELECT count(*), sum(id), sum(length(v)) FROM $table")),
		$answer, "$table: a partition was attached: it is not read");
	$isolated->query('COMMIT');
	$pair->remote_sql('ALTER TABLE pt DETACH PARTITION later');
}

# Attached while the leader waits for the lock of another table: it has locked the
# parent, not the new leaf, and has no snapshot yet.
$ddl->query('BEGIN; LOCK TABLE other');
$session->start('SELECT count(*), sum(p.id) FROM pt p LEFT JOIN far_other o ON o.id = p.id');
TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
	"SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'LOCK TABLE'", 't');
$pair->remote_sql('ALTER TABLE pt ATTACH PARTITION later FOR VALUES FROM (5000) TO (6000)');
$ddl->query('COMMIT');
is(scalar($session->finish), '3500|8623250', 'attached between lock and snapshot: read');
$pair->remote_sql('ALTER TABLE pt DETACH PARTITION later');

# ----- one statement locks what it reads ------------------------------------------

$pair->remote_sql(<<'SQL');
CREATE TABLE flat (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE flat_1 PARTITION OF flat FOR VALUES FROM (0) TO (100);
CREATE TABLE flat_2 PARTITION OF flat FOR VALUES FROM (100) TO (200);
CREATE TABLE flat_3 PARTITION OF flat FOR VALUES FROM (200) TO (300);
INSERT INTO flat SELECT i, 'v' || i FROM generate_series(0, 299) i;
ANALYZE flat;
SQL
$pair->import_tables('flat');
my $lookup = $pair->session;
my $locks = "SELECT string_agg(relation::regclass::text, ' ' ORDER BY relation::regclass::text) FROM pg_locks "
  . "WHERE relation::regclass::text LIKE 'flat%' AND pid = (SELECT pid FROM pg_stat_activity WHERE application_name = 'tidrange_fdw "
  . $lookup->pid . " leader')";

$offset = $pair->remote_log_size;
is($lookup->query('BEGIN; SELECT v FROM flat WHERE id = 150'), 'v150', 'a look-up');
# the planner looks at the parent's indexes since 16
like($pair->remote_sql($locks), qr/^flat flat_2 flat_2_pkey(?: flat_pkey)?$/, 'locks its leaf alone, and keeps the lock');
ok((grep { $_->{text} =~ /LOCK TABLE ONLY public\.flat IN/ } $pair->remote_log($offset)),
	'the parent was locked without its leaves');
is($lookup->query('SELECT v FROM flat WHERE id = 151'), 'v151', 'again');
$pair->remote_sql('BEGIN; TRUNCATE flat_3; INSERT INTO flat SELECT i, \'new\' FROM generate_series(200, 299) i; COMMIT');
is($lookup->query('SELECT v FROM flat WHERE id = 50'), 'v50', 'a leaf that was rewritten meanwhile is of no concern to others');
($out, $err) = $lookup->query('SELECT v FROM flat WHERE id = 250');
like($err, qr/ERROR:  40001:.*partitions of remote table public\.flat were rewritten/, 'to those who read it, it is an error');
$lookup->query('ROLLBACK');
is($lookup->query('SELECT v FROM flat WHERE id = 250'), 'new', 'and in the next transaction');
$ddl->start('BEGIN; LOCK TABLE flat_3; SELECT pg_sleep(0.5); TRUNCATE flat_3; COMMIT');
TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
	"SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'", 't');
($out, $err) = $lookup->query('SELECT v FROM flat WHERE id = 250');
like($err, qr/ERROR:  40001:/, 'one that is being rewritten, too');
$ddl->finish;
is($lookup->query('SELECT count(*) FROM flat'), '200', 'and then it is empty');

# A partition cannot leave a parent that is locked, even without its partitions.
$lookup->query('BEGIN; SELECT v FROM flat WHERE id = 150');
$ddl->start('ALTER TABLE flat DETACH PARTITION flat_1');
TidrangeTest::answer_within($source, TidrangeTest::PATIENCE,
	'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $ddl->pid, 'Lock');
is($lookup->query('SELECT v FROM flat WHERE id = 50'), 'v50', 'a partition that is to be detached is read');
is($lookup->query(TidrangeTest::workers(3) . "SELECT count(*), min(v) FROM flat"), '200|v0', 'and so it is in parallel');
$lookup->query('COMMIT');
$ddl->finish;
is($lookup->query('SELECT count(*) FROM flat'), '100', 'then it is gone');
$pair->remote_sql('ALTER TABLE flat ATTACH PARTITION flat_1 FOR VALUES FROM (0) TO (100)');

# Several tables of one statement, look-ups and scans.
is( $lookup->query('SET max_parallel_workers_per_gather = 0; SELECT a.v, b.v, c.v FROM flat a, flat b, pt c WHERE a.id = 1 AND b.id = 150 AND c.id = 7'),
	'v1|v150|' . 'x' x 100, 'look-ups in several partitioned tables');
is( $lookup->query('SET max_parallel_workers_per_gather = 3; SELECT count(*), sum(a.id) FROM flat a WHERE EXISTS (SELECT FROM flat b WHERE b.id = 150)'),
	'200|19900', 'a look-up and a scan of one table');
$lookup->query('SELECT tidrange_fdw_disconnect_all()');

# ----- few locks ----------------------------------------------------------------

# The lock table of the source has room for one participant: the others leave their
# part to it.
$pair->remote_sql(<<'SQL');
CREATE TABLE sixty (id int, v text) PARTITION BY RANGE (id);
DO $$
BEGIN
    FOR i IN 0..59 LOOP
        EXECUTE format('CREATE TABLE sixty_%s PARTITION OF sixty FOR VALUES FROM (%s) TO (%s)', i, i * 10, i * 10 + 10);
    END LOOP;
END
$$;
INSERT INTO sixty SELECT i, 'x' FROM generate_series(0, 599) i;
SQL
$pair->import_tables('sixty');
$pair->local_sql("ALTER FOREIGN TABLE sixty OPTIONS (ADD chunk_blocks '1')");
# (another session: this one does not ask for sizes after it had to wait above)
my $crowd = $pair->session;
$crowd->query(TidrangeTest::workers(3));
is($crowd->query('SELECT count(*), sum(id) FROM sixty'), '600|179700', 'sixty leaves');
$ddl->query(<<'SQL');
DO $$
BEGIN
    FOR i IN 1..1000000 LOOP
        PERFORM pg_advisory_lock(i);
    END LOOP;
EXCEPTION WHEN out_of_memory THEN
    NULL;
END
$$;
SELECT count(pg_advisory_unlock(i)) FROM generate_series(1, 90) i
SQL
my $crowded = $crowd->query('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT count(*) FROM sixty');
like($crowded, qr/Blocks Claimed: 60\b.*Blocks Finished: 60\b/s, 'a full lock table: all is read');
unlike($crowded, qr/Worker \d+: chunks=[1-9]/, 'by the one who got its locks');
is($crowd->query('SELECT count(*), sum(id) FROM sixty'), '600|179700', 'exactly');
$ddl->query('SELECT pg_advisory_unlock_all()');

# ----- few sessions -------------------------------------------------------------

$isolated->query('SELECT tidrange_fdw_disconnect_all()');
$pair->remote_sql('ALTER ROLE grantee CONNECTION LIMIT 1');
$session->query('SELECT tidrange_fdw_disconnect_all()');
is($session->query('SELECT count(*), sum(id), sum(length(v)) FROM granted_pt'),
	$answer, 'one session is enough');
$pair->remote_sql('GRANT SELECT ON pt, pt_1, pt_2a, pt_2b, pt_3, pt_rest TO grantee');
$session->query('SELECT tidrange_fdw_disconnect_all()');
is($session->query('SELECT count(*), sum(id), sum(length(v)) FROM granted_pt'),
	$answer, 'leaf by leaf too');
$pair->remote_sql('ALTER ROLE grantee CONNECTION LIMIT -1');
$session->query('SET parallel_leader_participation = off');
is($session->query('SELECT count(*), sum(id), sum(length(v)) FROM granted_pt'),
	$answer, 'only workers read');
$session->query('RESET parallel_leader_participation');
$pair->remote_rests('nothing is left');

$pair->finish;
