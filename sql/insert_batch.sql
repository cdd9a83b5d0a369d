-- INSERT ... SELECT from a foreign table writes its rows in batches where nobody
-- can see a difference, and row by row where somebody could.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE r.batch_src (id int PRIMARY KEY, n int, v text)
    WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.batch_src SELECT i, i % 50, repeat('x', i % 90) FROM generate_series(1, 2500) i;
SELECT import_far('batch_src', 16);
CREATE SCHEMA t;
CREATE TABLE t.plain (id int, n int, v text);
CREATE TABLE t.log (what text, n bigint);
CREATE TABLE t.seen (id int, n int, v text);
CREATE FUNCTION t.rows() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT count(*) FROM t.seen';
CREATE FUNCTION t.logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.log VALUES (TG_WHEN || ' ' || TG_LEVEL || ' ' || TG_TABLE_NAME, t.rows());
    RETURN NEW;
END $$;

-- How EXPLAIN says that rows are inserted.
CREATE FUNCTION way_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || statement LOOP
        CONTINUE WHEN line !~ '^ +Insert: ';
        RETURN substring(line FROM 'Insert: (.*)');
    END LOOP;
    RETURN 'not said';
END $$;

-- Fills the target from the local table (%s in the statement), from the foreign
-- one row by row, and from it as it comes, and compares rows, their number as
-- the statement reports it, and the log.
CREATE FUNCTION try(statement text, target text DEFAULT 't.plain', columns text DEFAULT 'x',
                    OUT way text, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
    summary text := format('SELECT count(*), sum(hashtextextended((%s)::text, 0)::numeric),
                                   (SELECT string_agg(l::text, '' '' ORDER BY l::text) FROM t.log l)
                            FROM %s x', columns, target);
    source text[] := '{r.batch_src,f.batch_src,f.batch_src}';
    results text[];
    result record;
    reported bigint;
BEGIN
    FOR i IN 1..3 LOOP
        EXECUTE format('TRUNCATE %s, t.log RESTART IDENTITY CASCADE', target);
        PERFORM set_config('tidrange_fdw.batch_insert', CASE i WHEN 2 THEN 'off' ELSE 'on' END, true);
        EXECUTE format(statement, source[i]);
        GET DIAGNOSTICS reported = ROW_COUNT;
        EXECUTE summary INTO result;
        results := results || (result::text || reported);
    END LOOP;
    way := way_of(format(statement, 'f.batch_src'));
    rows := reported;
    same := results[1] = ALL (results);
END $$;

--
-- In batches
--
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO t.plain SELECT * FROM f.batch_src;
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
-- the bounds of a batch
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s WHERE id <= 999');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s WHERE id <= 1000');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s WHERE id <= 1001');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s WHERE id <= 2000');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s WHERE id < 0');
SELECT * FROM try('INSERT INTO t.plain SELECT id, n, repeat(md5(id::text), 3000) FROM %s WHERE id < 20');
SELECT * FROM try('INSERT INTO t.plain SELECT id, NULL, NULL FROM %s');
-- one WAL record a page instead of one a row
CREATE FUNCTION wal_records(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || statement INTO plan;
    RETURN plan->0->'Plan'->>'WAL Records';
END $$;
SELECT wal_records('INSERT INTO t.plain SELECT * FROM f.batch_src') < 500 AS few;
SET tidrange_fdw.batch_insert = off;
SELECT way_of('INSERT INTO t.plain SELECT * FROM f.batch_src');
SELECT wal_records('INSERT INTO t.plain SELECT * FROM f.batch_src') >= 2500 AS many;
RESET tidrange_fdw.batch_insert;

-- indexes, constraints, defaults, generated and numbered columns
CREATE TABLE t.parent (n int PRIMARY KEY) WITH (autovacuum_enabled = off);
INSERT INTO t.parent SELECT generate_series(0, 49);
CREATE TABLE t.full (
    no int GENERATED ALWAYS AS IDENTITY, gone int,
    id int PRIMARY KEY CHECK (id > 0), n int NOT NULL REFERENCES t.parent DEFERRABLE, v text DEFAULT 'none',
    twice int GENERATED ALWAYS AS (id * 2) STORED, ser serial, at timestamptz DEFAULT now(),
    up int REFERENCES t.full, EXCLUDE USING btree (id WITH =), UNIQUE (id) DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE t.full DROP COLUMN gone;
CREATE INDEX ON t.full (n, lower(v)) WHERE id > 5;
CREATE INDEX ON t.full USING gin (to_tsvector('simple', v));
SELECT * FROM try('INSERT INTO t.full (id, n, up) SELECT id, n, nullif(id - 1, 0) FROM %s', 't.full', '(x.id, x.n, x.v, x.twice, x.up)');
SET enable_seqscan = off;
SELECT count(*), count(*) FILTER (WHERE no = ser) FROM t.full WHERE n = 7 AND lower(v) = 'none' AND id > 5;
SELECT count(*) FROM t.full WHERE to_tsvector('simple', v) @@ 'none';
RESET enable_seqscan;
SELECT * FROM try('INSERT INTO t.full (id, n, v) SELECT id, n, v FROM %s ORDER BY id %% 7, id', 't.full', '(x.no, x.id, x.n, x.v)');
-- what fails, fails as it did, and leaves nothing
SELECT error_of('INSERT INTO t.full (id, n) SELECT id, n FROM f.batch_src');
TRUNCATE t.full;
SELECT error_of('INSERT INTO t.full (id, n) SELECT id, n + 1 FROM f.batch_src');
SELECT error_of('INSERT INTO t.full (id, n) SELECT n + 1, n FROM f.batch_src');
ALTER TABLE t.full DROP no, DROP ser, DROP at;
SELECT error_of('INSERT INTO t.full (id, n) SELECT id - 1, n FROM f.batch_src');
SELECT error_of('INSERT INTO t.full (id, n) SELECT id, nullif(n, 49) FROM f.batch_src');
SELECT error_of('INSERT INTO t.full (id, n) SELECT id, n / (2444 - id + length(v) * 0) FROM f.batch_src');
SELECT count(*) FROM t.full;
BEGIN;
INSERT INTO t.plain SELECT * FROM f.batch_src WHERE id < 5;
SAVEPOINT s;
INSERT INTO t.plain SELECT * FROM f.batch_src;
ROLLBACK TO s;
INSERT INTO t.plain SELECT * FROM f.batch_src WHERE id > 2495;
COMMIT;
SELECT count(*), count(DISTINCT id) FROM t.plain WHERE id < 5 OR id > 2495;
-- with a Gather below, and with other nodes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) INSERT INTO t.plain SELECT * FROM f.batch_src;
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
SELECT * FROM try('INSERT INTO t.plain (n, id) SELECT n, count(*) FROM %s GROUP BY n');
SELECT * FROM try('INSERT INTO t.plain SELECT s.id, p.n, s.v FROM %s s JOIN t.parent p USING (n)');
RESET max_parallel_workers_per_gather;
SET max_parallel_workers_per_gather = 0;
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s UNION ALL SELECT n, id, v FROM r.batch_src');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s s WHERE NOT EXISTS (SELECT FROM t.plain p WHERE p.id = s.id)');
SELECT * FROM try('INSERT INTO t.plain (id) SELECT (SELECT count(*) FROM t.plain) FROM %s');
SELECT * FROM try('WITH s AS MATERIALIZED (SELECT * FROM %s) INSERT INTO t.plain SELECT * FROM s');
-- volatile, but blind
SELECT * FROM try('INSERT INTO t.plain SELECT id, n, CASE WHEN random() < 2 AND gen_random_uuid() IS NOT NULL AND clock_timestamp() > ''2000-01-01'' THEN v END FROM %s');
-- other kinds of targets
CREATE UNLOGGED TABLE t.unlogged (LIKE t.plain);
SELECT * FROM try('INSERT INTO t.unlogged SELECT * FROM %s', 't.unlogged');
CREATE TEMPORARY TABLE temporary (LIKE t.plain);
SELECT * FROM try('INSERT INTO temporary SELECT * FROM %s', 'temporary');
CREATE TABLE t.empty ();
SELECT * FROM try('INSERT INTO t.empty SELECT FROM %s', 't.empty');
CREATE TABLE t.child (extra int) INHERITS (t.plain);
SELECT * FROM try('INSERT INTO t.child SELECT *, id FROM %s', 't.child');
SELECT way_of('INSERT INTO t.plain SELECT * FROM r.batch_src');

-- partitions of other shapes, and more of them than keep a batch
CREATE TABLE t.part (id int, n int, v text) PARTITION BY LIST (n);
CREATE TABLE t.part_1 PARTITION OF t.part FOR VALUES IN (1, 2, 3);
CREATE TABLE t.part_2 PARTITION OF t.part FOR VALUES IN (4, 5, 6) PARTITION BY RANGE (id);
CREATE TABLE t.part_2_1 PARTITION OF t.part_2 FOR VALUES FROM (0) TO (700);
CREATE TABLE t.part_2_2 (v text, gone int, id int, n int, tail int DEFAULT 1 CHECK (tail = 1));
ALTER TABLE t.part_2_2 DROP COLUMN gone;
ALTER TABLE t.part_2_2 DROP COLUMN tail;
ALTER TABLE t.part_2 ATTACH PARTITION t.part_2_2 FOR VALUES FROM (700) TO (100000);
CREATE INDEX ON t.part (id);
SELECT error_of('INSERT INTO t.part SELECT * FROM f.batch_src');
CREATE TABLE t.part_d PARTITION OF t.part DEFAULT PARTITION BY LIST (n);
DO $$
BEGIN
    FOR i IN 0..50 LOOP
        CONTINUE WHEN i BETWEEN 1 AND 6;
        EXECUTE format('CREATE TABLE t.part_d_%s PARTITION OF t.part_d FOR VALUES IN (%s)', i, i);
    END LOOP;
END $$;
SELECT * FROM try('INSERT INTO t.part SELECT * FROM %s', 't.part', '(x.tableoid, x)');
SELECT * FROM try('INSERT INTO t.part SELECT * FROM %s ORDER BY n', 't.part', '(x.tableoid, x)');
SELECT tableoid::regclass, count(*), count(DISTINCT n) FROM t.part WHERE n < 8 GROUP BY 1 ORDER BY 1;
SELECT * FROM try('INSERT INTO t.part_2 SELECT * FROM %s WHERE n IN (4, 5, 6)', 't.part', '(x.tableoid, x)');
SELECT * FROM try('INSERT INTO t.part_2_2 SELECT v, id, n FROM %s WHERE n IN (4, 5, 6) AND id > 700', 't.part', '(x.tableoid, x)');
SELECT error_of('INSERT INTO t.part_2 SELECT * FROM f.batch_src');
SELECT error_of('INSERT INTO t.part_2_2 SELECT v, id, n FROM f.batch_src WHERE n < 10');

-- triggers that fire afterwards, when all rows are there
CREATE TABLE t.other (id int, n int, v text);
CREATE TRIGGER a AFTER INSERT ON t.seen FOR EACH ROW WHEN (NEW.id < 4) EXECUTE FUNCTION t.logs();
CREATE TRIGGER b BEFORE INSERT ON t.seen FOR EACH STATEMENT EXECUTE FUNCTION t.logs();
CREATE TRIGGER c AFTER INSERT ON t.seen FOR EACH STATEMENT EXECUTE FUNCTION t.logs();
CREATE TRIGGER u BEFORE UPDATE OR DELETE ON t.seen FOR EACH ROW EXECUTE FUNCTION t.logs();
SELECT * FROM try('INSERT INTO t.seen SELECT * FROM %s', 't.seen');
SELECT * FROM t.log ORDER BY 1, 2;

-- in the order of the rows, also across partitions
CREATE TABLE t.history (no serial, id int);
CREATE FUNCTION t.remembers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.history (id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER h AFTER INSERT ON t.part FOR EACH ROW EXECUTE FUNCTION t.remembers();
TRUNCATE t.part;
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO t.part SELECT * FROM f.batch_src ORDER BY id;
INSERT INTO t.part SELECT * FROM f.batch_src ORDER BY id;
SELECT count(*), bool_and(no = id) AS in_order FROM t.history;
DROP TRIGGER h ON t.part;

--
-- Row by row: what somebody could see
--
SELECT * FROM try('INSERT INTO t.seen SELECT id, t.rows(), v FROM %s WHERE id <= 1100', 't.seen');
SELECT min(n), max(n) FROM t.seen;
SELECT * FROM try('INSERT INTO t.seen SELECT id, n, v FROM %s WHERE t.rows() < 10 AND id <= 1100', 't.seen');
SELECT * FROM try('INSERT INTO t.seen SELECT id, (SELECT t.rows() + s.n), v FROM %s s WHERE id <= 1100', 't.seen');
SELECT * FROM try('INSERT INTO t.seen SELECT id, l.n, v FROM %s s, LATERAL (SELECT t.rows() + s.n AS n OFFSET 0) l WHERE id <= 1100', 't.seen');
SELECT * FROM try('INSERT INTO t.seen SELECT id, n, v FROM %s WHERE id <= 1100 UNION ALL SELECT id, t.rows(), v FROM r.batch_src WHERE id <= 1100', 't.seen', 'x.id');
-- an aggregate is never volatile, but its functions may be
CREATE FUNCTION t.adds(bigint, int) RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM t.seen';
CREATE AGGREGATE t.peek(int) (sfunc = t.adds, stype = bigint, initcond = '0');
SELECT * FROM try('INSERT INTO t.seen SELECT id, t.peek(n) OVER (ORDER BY id), v FROM %s WHERE id <= 1100', 't.seen');
SELECT * FROM try('INSERT INTO t.seen SELECT id, t.peek(n), v FROM %s WHERE id <= 1100 GROUP BY id, v', 't.seen', 'x.id');
CREATE FUNCTION t.count_rows(int) RETURNS int LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT $1 + count(*)::int FROM t.seen';
CREATE VIEW t.counted AS SELECT id, t.count_rows(n) AS n, v FROM f.batch_src;
SELECT way_of('INSERT INTO t.seen SELECT * FROM t.counted');
CREATE DOMAIN t.small AS int CHECK (VALUE < t.count_rows(1000));
SELECT * FROM try('INSERT INTO t.seen SELECT (id %% 1000)::t.small, n, v FROM %s WHERE id <= 1100', 't.seen');
CREATE TABLE t.defaults (id int, n bigint DEFAULT t.rows(), v text);
SELECT * FROM try('INSERT INTO t.defaults (id) SELECT id FROM %s WHERE id <= 1100', 't.defaults');
CREATE TABLE t.checks (id int, n int, v text, CONSTRAINT growing CHECK (id <= t.count_rows(id)));
SELECT * FROM try('INSERT INTO t.checks SELECT * FROM %s WHERE id <= 1100', 't.checks');
-- a domain hides what is volatile from the tests of CREATE TABLE
CREATE DOMAIN t.growing AS int CHECK (VALUE <= t.count_rows(VALUE) + 1);
CREATE TABLE t.hidden_check (id int, CHECK (id::t.growing IS NOT NULL));
CREATE TABLE t.hidden_column (id int, g bool GENERATED ALWAYS AS (id::t.growing IS NOT NULL) STORED);
CREATE TABLE t.hidden_index (id int);
CREATE INDEX hidden ON t.hidden_index ((id::t.growing IS NOT NULL));
CREATE TABLE t.hidden_key (id int) PARTITION BY RANGE ((id::t.growing));
CREATE TABLE t.hidden_part PARTITION OF t.hidden_key DEFAULT;
CREATE TABLE t.hidden_condition (id int);
CREATE TRIGGER w AFTER INSERT ON t.hidden_condition FOR EACH ROW WHEN (NEW.id::t.growing IS NULL) EXECUTE FUNCTION t.logs();
SELECT target, way_of(format('INSERT INTO t.%s (id) SELECT id FROM f.batch_src', target))
FROM unnest('{hidden_check,hidden_column,hidden_index,hidden_key,hidden_condition}'::text[]) target;
SELECT * FROM try('INSERT INTO t.hidden_check SELECT id FROM %s WHERE id <= 1100', 't.hidden_check');
-- a condition is evaluated when its row is written: what counts calls, counts others
CREATE SEQUENCE t.calls;
CREATE TABLE t.numbers (id int, n bigint);
CREATE TRIGGER w AFTER INSERT ON t.numbers FOR EACH ROW WHEN (nextval('t.calls') < 0) EXECUTE FUNCTION t.logs();
INSERT INTO t.numbers SELECT id, nextval('t.calls') FROM f.batch_src WHERE id <= 5;
SELECT array_agg(n ORDER BY id) FROM t.numbers;
-- who asks whether the transaction has an ID, learns that the first row is written
CREATE TABLE t.ids (id int, x text);
INSERT INTO t.ids SELECT id, pg_current_xact_id_if_assigned()::text FROM f.batch_src WHERE id <= 5;
SELECT way_of('INSERT INTO t.ids SELECT id, v FROM f.batch_src'), count(*), count(x) FROM t.ids;
CREATE TABLE t.conditions (id int, n int, v text);
CREATE TRIGGER w AFTER INSERT ON t.conditions FOR EACH ROW WHEN (t.rows() > 3) EXECUTE FUNCTION t.logs();
SELECT * FROM try('INSERT INTO t.conditions SELECT * FROM %s WHERE id <= 1100', 't.conditions');
CREATE TABLE t.before (id int, n int, v text);
CREATE TRIGGER b BEFORE INSERT ON t.before FOR EACH ROW EXECUTE FUNCTION t.logs();
SELECT * FROM try('INSERT INTO t.before SELECT * FROM %s WHERE id <= 1100', 't.before');
CREATE FUNCTION t.counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.log SELECT 'new rows', count(*) FROM fresh;
    RETURN NULL;
END $$;
CREATE TRIGGER n AFTER INSERT ON t.other REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION t.counts();
SELECT * FROM try('INSERT INTO t.other SELECT * FROM %s', 't.other');
CREATE TABLE t.once (n int PRIMARY KEY, v text);
SELECT * FROM try('INSERT INTO t.once SELECT n, ''one'' FROM %s ON CONFLICT DO NOTHING', 't.once');
SELECT * FROM try('INSERT INTO t.once SELECT id, v FROM %s ON CONFLICT (n) DO UPDATE SET v = ''two''', 't.once');
SELECT way_of('INSERT INTO t.plain SELECT * FROM f.batch_src RETURNING id');
SELECT way_of('WITH d AS (DELETE FROM t.plain RETURNING *) INSERT INTO t.plain SELECT * FROM f.batch_src');
CREATE VIEW t.view AS SELECT * FROM t.plain WHERE id > 0 WITH CHECK OPTION;
SELECT way_of('INSERT INTO t.view SELECT * FROM f.batch_src');
SELECT error_of('INSERT INTO t.view SELECT id - 1, n, v FROM f.batch_src');
-- one partition is enough
CREATE TRIGGER b BEFORE INSERT ON t.part_2_1 FOR EACH ROW EXECUTE FUNCTION t.logs();
SELECT * FROM try('INSERT INTO t.part SELECT * FROM %s', 't.part', '(x.tableoid, x)');
DROP TRIGGER b ON t.part_2_1;
CREATE TRIGGER b BEFORE INSERT ON t.part FOR EACH STATEMENT EXECUTE FUNCTION t.logs();
SELECT way_of('INSERT INTO t.part SELECT * FROM f.batch_src');
DROP TRIGGER b ON t.part;
-- a plan that was made before the trigger
SET plan_cache_mode = force_generic_plan;
PREPARE fill AS INSERT INTO t.plain SELECT * FROM f.batch_src;
SELECT way_of('EXECUTE fill');
TRUNCATE t.plain, t.log;
EXECUTE fill;
CREATE TRIGGER b BEFORE INSERT ON t.plain FOR EACH ROW EXECUTE FUNCTION t.logs();
SELECT way_of('EXECUTE fill');
EXECUTE fill;
SELECT count(*), (SELECT count(*) FROM t.log) AS logged FROM t.plain;
DROP SCHEMA t CASCADE;
DROP TABLE r.batch_src;
DROP FOREIGN TABLE f.batch_src;
DROP FUNCTION try(text, text, text), way_of(text), wal_records(text);
