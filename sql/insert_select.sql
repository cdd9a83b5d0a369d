-- INSERT ... SELECT from a foreign table: parallel where that is safe, by one
-- process where it is not, and the same rows either way.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE r.src (id int PRIMARY KEY, n int, v text)
    WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.src SELECT i, i % 50, repeat('x', i % 90) FROM generate_series(1, 1500) i;
SELECT import_far('src', 16);
CREATE SCHEMA t;
CREATE TABLE t.plain (id int, n int, v text);
CREATE TABLE t.log (what text, n bigint);
CREATE SEQUENCE t.seq;
CREATE FUNCTION t.logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.log VALUES (TG_WHEN || ' ' || TG_LEVEL || ' ' || TG_TABLE_NAME, 1);
    RETURN NEW;
END $$;
-- Unsafe as every function that does not say otherwise.  What it does cannot be
-- done while workers run: up to 16 a block with EXCEPTION, in all an INSERT.
CREATE FUNCTION t.caught(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN $1;
EXCEPTION WHEN division_by_zero THEN
    RETURN 0;
END $$;
CREATE FUNCTION t.writes(int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.log VALUES ('writes', $1);
    RETURN $1;
END $$;

-- The nodes of the plan down to the scan, or the reason if it is not parallel.
CREATE FUNCTION plan_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    nodes text;
    why text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || statement LOOP
        IF nodes IS NULL OR line ~ '->' THEN
            nodes := concat_ws(' > ', nodes,
                regexp_replace(regexp_replace(line, '^ *(-> +)?', ''), ' (on|using) .*', ''));
        END IF;
        why := coalesce(why, substring(line FROM 'Insert Not Parallel: (.*)'));
    END LOOP;
    RETURN CASE WHEN why IS NULL AND nodes ~ 'Parallel Foreign Scan' THEN substring(nodes FROM '.*Parallel Foreign Scan')
                ELSE 'serial: ' || coalesce(why, 'no reason') END;
END $$;

-- Fills the target from the local table and from the foreign one (%s in the
-- statement) and compares them, and how much was logged.  Where rows get
-- numbers, only some columns can be compared.
CREATE FUNCTION try(statement text, target text DEFAULT 't.plain', columns text DEFAULT 'x',
                    OUT plan text, OUT rows bigint, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
    summary text := format('SELECT count(*), coalesce(sum(hashtextextended((%s)::text, 0)::numeric), 0) AS sum, (SELECT count(*) FROM t.log) AS logged FROM %s x',
                           columns, target);
    here record;
    there record;
BEGIN
    EXECUTE format('TRUNCATE %s, t.log RESTART IDENTITY CASCADE', target);
    EXECUTE format(statement, 'r.src');
    EXECUTE summary INTO here;
    plan := plan_of(format(statement, 'f.src'));
    EXECUTE format('TRUNCATE %s, t.log RESTART IDENTITY CASCADE', target);
    EXECUTE format(statement, 'f.src');
    EXECUTE summary INTO there;
    rows := there.count;
    same := here = there;
END $$;

--
-- Safe
--
EXPLAIN (COSTS OFF) INSERT INTO t.plain SELECT * FROM f.src;
SELECT * FROM explain_workers('INSERT INTO t.plain SELECT * FROM f.src');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
CREATE TABLE t.parent (n int PRIMARY KEY) WITH (autovacuum_enabled = off);
CREATE TABLE t.full (
    id int PRIMARY KEY CHECK (id > 0), n int REFERENCES t.parent DEFERRABLE, v text DEFAULT 'none',
    twice int GENERATED ALWAYS AS (id * 2) STORED, at timestamptz DEFAULT now(),
    up int REFERENCES t.full, EXCLUDE USING btree (id WITH =), UNIQUE (id) DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX ON t.full (n, lower(v)) WHERE id > 5;
INSERT INTO t.parent SELECT generate_series(0, 49);
SELECT * FROM try('INSERT INTO t.full (id, n, up) SELECT id, n, nullif(id - 1, 0) FROM %s', 't.full', '(x.id, x.n, x.v, x.twice, x.up)');
SELECT * FROM try('INSERT INTO t.full (id, n, v) SELECT id, n, repeat(md5(id::text), 400) FROM %s WHERE id <= 100', 't.full', '(x.id, x.n, x.v)');
CREATE TABLE t.once (n int PRIMARY KEY, v text);
SELECT * FROM try('INSERT INTO t.once SELECT n, ''one'' FROM %s ON CONFLICT DO NOTHING', 't.once');
SELECT * FROM try('INSERT INTO t.once SELECT id, v FROM %s WHERE id < 200 ON CONFLICT (n) DO NOTHING', 't.once');
SELECT e FROM error_of('INSERT INTO t.full (id, n) SELECT id, n FROM f.src') e LIMIT 1;
TRUNCATE t.full;
SELECT e FROM error_of('INSERT INTO t.full (id, n) SELECT id, n + 1 FROM f.src') e LIMIT 1;
SELECT e FROM error_of('INSERT INTO t.full (id, n) SELECT id - 1, n FROM f.src') e LIMIT 1;
SELECT count(*) FROM t.full;
CREATE TABLE t.part (id int, n int, v text) PARTITION BY LIST (n);
CREATE TABLE t.part_1 PARTITION OF t.part FOR VALUES IN (1, 2, 3);
CREATE TABLE t.part_2 PARTITION OF t.part FOR VALUES IN (4, 5, 6) PARTITION BY RANGE (id);
CREATE TABLE t.part_2_1 PARTITION OF t.part_2 FOR VALUES FROM (0) TO (700);
CREATE TABLE t.part_2_2 (v text, gone int, id int, n int);
ALTER TABLE t.part_2_2 DROP COLUMN gone;
ALTER TABLE t.part_2 ATTACH PARTITION t.part_2_2 FOR VALUES FROM (700) TO (100000);
CREATE TABLE t.part_d PARTITION OF t.part DEFAULT;
SELECT * FROM try('INSERT INTO t.part SELECT * FROM %s', 't.part');
SELECT tableoid::regclass, count(*) FROM t.part GROUP BY 1 ORDER BY 1;

-- above the scan, and beside it
SELECT * FROM try('INSERT INTO t.plain (n, id) SELECT n, count(*) FROM %s GROUP BY n');
SELECT * FROM try('INSERT INTO t.plain (n) SELECT DISTINCT n FROM %s');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s ORDER BY id LIMIT 77');
SELECT * FROM try('INSERT INTO t.plain SELECT id, n, v FROM %s WHERE n < 10 AND length(v) > 3');
SELECT * FROM try('INSERT INTO t.plain SELECT s.id, s.n, s.v FROM %s s JOIN t.parent p ON p.n = s.n WHERE p.n > 7');
SELECT * FROM try('INSERT INTO t.plain (id) VALUES ((SELECT count(*) FROM %s))');
CREATE VIEW t.src_view AS SELECT * FROM f.src WHERE id > 3;
SELECT plan_of('INSERT INTO t.plain SELECT * FROM t.src_view');
WITH i AS (INSERT INTO t.plain SELECT * FROM f.src RETURNING id) SELECT count(*) FROM i;
SELECT count(*), sum(id) FROM t.plain;

-- triggers that fire afterwards
CREATE TABLE t.after (id int, n int, v text);
CREATE FUNCTION t.counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.log SELECT 'new rows', count(*) FROM fresh;
    RETURN NULL;
END $$;
CREATE TRIGGER a AFTER INSERT ON t.after FOR EACH ROW WHEN (NEW.id < 4) EXECUTE FUNCTION t.logs();
CREATE TRIGGER b AFTER INSERT ON t.after REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION t.counts();
CREATE CONSTRAINT TRIGGER c AFTER INSERT ON t.after DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id > 1498) EXECUTE FUNCTION t.logs();
CREATE TRIGGER u BEFORE UPDATE OR DELETE ON t.after FOR EACH ROW EXECUTE FUNCTION t.logs();
SELECT plan_of('INSERT INTO t.after SELECT * FROM f.src');
TRUNCATE t.log;
BEGIN;
INSERT INTO t.after SELECT * FROM f.src;
SELECT what, count(*), sum(n) FROM t.log GROUP BY 1 ORDER BY 1;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT what, count(*), sum(n) FROM t.log GROUP BY 1 ORDER BY 1;
COMMIT;
SELECT count(*), sum(id) FROM t.after;

-- wherever it stands
CREATE FUNCTION t.copy() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    inserted bigint;
    one t.plain;
BEGIN
    INSERT INTO t.plain SELECT * FROM f.src;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    BEGIN
        INSERT INTO t.plain SELECT * FROM f.src;
        INSERT INTO t.plain SELECT 1 / (id - 700), n, v FROM f.src;
    EXCEPTION WHEN division_by_zero THEN
        INSERT INTO t.plain SELECT * FROM f.src WHERE id <= 500;
    END;
    INSERT INTO t.plain SELECT * FROM f.src WHERE id = 3 RETURNING * INTO one;
    RETURN inserted + one.id;
END $$;
CREATE FUNCTION t.copy_sql() RETURNS SETOF int LANGUAGE sql AS
    'INSERT INTO t.plain SELECT * FROM f.src WHERE n < 2 RETURNING n';
TRUNCATE t.plain;
SELECT t.copy(), t.copy() FROM generate_series(1, 2);
SELECT count(*), sum(id) FROM t.plain;
SELECT sum(x), count(*) FROM t.copy_sql() x;
TRUNCATE t.plain;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SAVEPOINT a;
INSERT INTO t.plain SELECT * FROM f.src;
ROLLBACK TO a;
INSERT INTO t.plain SELECT * FROM f.src WHERE id <= 5;
RELEASE a;
COMMIT;
SELECT count(*) FROM t.plain;
CREATE TEMP TABLE temporary (LIKE t.plain);
SELECT * FROM try('INSERT INTO temporary SELECT * FROM %s', 'temporary');
SET parallel_leader_participation = off;
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
SET max_parallel_workers = 0;
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
RESET parallel_leader_participation;
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
RESET max_parallel_workers;

-- an error in mid-insert leaves nothing
TRUNCATE t.plain;
CREATE FOREIGN TABLE f.bad (id int, n int, v int) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'bad', chunk_blocks '8', parallel_workers '8');
CREATE TABLE r.bad (id int, n int, v text) WITH (fillfactor = 10);
INSERT INTO r.bad SELECT i, i, CASE WHEN i = 900 THEN 'x' ELSE i::text END FROM generate_series(1, 1000) i;
SELECT plan_of('INSERT INTO t.plain SELECT * FROM f.bad');
SELECT regexp_replace(error_of('INSERT INTO t.plain SELECT * FROM f.bad'), 'parallel worker', 'worker');
SELECT count(*) FROM t.plain;

--
-- Not safe: the statement
--
SELECT * FROM try('INSERT INTO t.plain SELECT nextval(''t.seq''), n, v FROM %s', columns => '(x.n, x.v)');
SELECT * FROM try('INSERT INTO t.plain SELECT id, (SELECT t.writes(1)), v FROM %s');
SELECT * FROM try('INSERT INTO t.plain WITH c AS MATERIALIZED (SELECT t.writes(2) AS w) SELECT id, w, v FROM %s, c');
SELECT * FROM try('INSERT INTO t.plain SELECT id, n, v FROM %s UNION ALL SELECT t.writes(3), 1, NULL');
CREATE FUNCTION t.inlined(int) RETURNS int LANGUAGE sql AS 'SELECT t.writes($1)';
SELECT * FROM try('INSERT INTO t.plain SELECT t.inlined(id), n, v FROM %s WHERE id < 9');
SELECT * FROM try('INSERT INTO t.plain SELECT id, n, v FROM %s WHERE t.caught(id) < 9');
SELECT * FROM try('INSERT INTO t.plain SELECT id, n, v FROM %s RETURNING t.caught(id)');
-- columns of members of UNION ALL, two levels down, planned before and after the scan
SELECT * FROM try('INSERT INTO t.plain SELECT s.id, q.x, s.v FROM (SELECT DISTINCT x FROM (SELECT t.caught(n) AS x FROM t.parent UNION ALL SELECT n FROM t.parent) u OFFSET 0) q JOIN %s s ON s.n = q.x');
SELECT * FROM try('INSERT INTO t.plain SELECT s.id, q.x, s.v FROM %s s JOIN (SELECT DISTINCT x FROM (SELECT t.caught(n) AS x FROM t.parent UNION ALL SELECT n FROM t.parent) u OFFSET 0) q ON s.n = q.x');
SELECT * FROM try('INSERT INTO t.plain (id) SELECT count(*) FROM %s s, (SELECT t.caught(n) AS x FROM t.parent UNION ALL SELECT n FROM t.parent) u WHERE u.x = s.n');
SELECT * FROM try('INSERT INTO t.plain (id) SELECT max(id) FROM (SELECT id FROM %s UNION ALL SELECT t.caught(n) FROM t.parent) u GROUP BY id %% 7');
WITH d AS (DELETE FROM t.log RETURNING 1) INSERT INTO t.plain SELECT * FROM f.src WHERE id < 0;
SELECT plan_of('WITH d AS (DELETE FROM t.log RETURNING 1) INSERT INTO t.plain SELECT * FROM f.src');
SELECT * FROM try('INSERT INTO t.parent SELECT DISTINCT n FROM %s ON CONFLICT (n) DO UPDATE SET n = excluded.n', 't.parent');

-- Not safe: domains, in the statement and in columns
CREATE DOMAIN t.numbered AS int CHECK (VALUE < nextval('t.seq') + 1000000);
CREATE DOMAIN t.below AS t.numbered CHECK (VALUE IS NULL OR VALUE > -1);
CREATE DOMAIN t.through AS int CHECK (VALUE::t.numbered IS NOT NULL);
CREATE TYPE t.pair AS (a int, b t.numbered);
CREATE TYPE t.span AS RANGE (subtype = t.numbered);
CREATE TABLE t.domain_1 (id t.below);
CREATE TABLE t.domain_2 (id t.numbered[]);
CREATE TABLE t.domain_3 (id t.pair);
CREATE TABLE t.domain_4 (id t.through);
CREATE TABLE t.domain_5 (id t.span);
SELECT * FROM try('INSERT INTO t.domain_1 SELECT id FROM %s', 't.domain_1');
SELECT * FROM try('INSERT INTO t.domain_2 SELECT ARRAY[id, n] FROM %s', 't.domain_2');
SELECT * FROM try('INSERT INTO t.domain_3 SELECT ROW(id, n)::t.pair FROM %s', 't.domain_3');
SELECT * FROM try('INSERT INTO t.domain_4 SELECT id FROM %s', 't.domain_4');
SELECT * FROM try('INSERT INTO t.domain_5 SELECT t.span(n, id + 60) FROM %s', 't.domain_5');
SELECT * FROM try('INSERT INTO t.plain SELECT id::t.below, n, v FROM %s');
SELECT * FROM try('INSERT INTO t.plain SELECT (format(''(%%s,1)'', id)::t.pair).a, n, v FROM %s');
SELECT * FROM try('INSERT INTO t.plain SELECT (json_populate_record(NULL::t.pair, json_build_object(''a'', id))).a, n, v FROM %s');
SELECT * FROM try('INSERT INTO t.plain SELECT id, j.b, v FROM %s, json_to_record(json_build_object(''b'', n)) AS j(b t.numbered)');
SELECT * FROM try('INSERT INTO t.plain SELECT id, x.b, v FROM %s, XMLTABLE(''/r'' PASSING xmlelement(NAME r, n) COLUMNS b t.numbered PATH ''.'') x WHERE id < 50');
-- and in the source, which workers would decode
CREATE TABLE r.spans (id int, s int4range) WITH (fillfactor = 10);
INSERT INTO r.spans SELECT i, int4range(i, i + 1) FROM generate_series(1, 1000) i;
CREATE FOREIGN TABLE f.spans (id int, s t.span) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'spans', chunk_blocks '8', parallel_workers '8');
SELECT plan_of('INSERT INTO t.plain SELECT lower(s)::int FROM f.spans');
SELECT count(*), sum(lower(s)) FROM f.spans;

-- Not safe: the target
CREATE TABLE t.serial (id serial, n int, k int GENERATED BY DEFAULT AS IDENTITY);
CREATE TABLE t.default_1 (id int, n int DEFAULT t.writes(7));
CREATE TABLE t.check_1 (id int CHECK (t.caught(id) > 0));
CREATE TABLE t.check_2 (id int CHECK (id::t.numbered IS NOT NULL));
CREATE TABLE t.generated_1 (id int, g int GENERATED ALWAYS AS (t.caught(id)) STORED);
CREATE TABLE t.index_1 (id int);
CREATE INDEX index_expression ON t.index_1 (t.caught(id));
CREATE TABLE t.index_2 (id int);
CREATE INDEX index_predicate ON t.index_2 (id) WHERE t.caught(id) > 0;
CREATE FUNCTION t.compare(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN btint4cmp($1, $2);
EXCEPTION WHEN division_by_zero THEN
    RETURN 0;
END $$;
CREATE OPERATOR CLASS t.caught_ops FOR TYPE int USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 t.compare(int, int);
CREATE TABLE t.index_3 (id int);
CREATE INDEX index_class ON t.index_3 (id t.caught_ops);
CREATE FUNCTION t.equal(int, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN $1 = $2;
EXCEPTION WHEN division_by_zero THEN
    RETURN false;
END $$;
CREATE OPERATOR t.=== (FUNCTION = t.equal, LEFTARG = int, RIGHTARG = int, COMMUTATOR = OPERATOR(t.===));
CREATE OPERATOR CLASS t.exclude_ops FOR TYPE int USING hash AS OPERATOR 1 t.===, FUNCTION 1 hashint4(int);
CREATE TABLE t.exclude_1 (id int, EXCLUDE USING hash (id t.exclude_ops WITH OPERATOR(t.===)));
CREATE TABLE t.key_1 (id int, n int, v text) PARTITION BY LIST (t.caught(n));
CREATE TABLE t.key_1_d PARTITION OF t.key_1 DEFAULT;
CREATE TABLE t.key_2 (id int, n int, v text) PARTITION BY RANGE (id t.caught_ops);
CREATE TABLE t.key_2_1 PARTITION OF t.key_2 FOR VALUES FROM (0) TO (10000);
CREATE TABLE t.rule_1 (id int);
CREATE RULE also AS ON INSERT TO t.rule_1 DO ALSO INSERT INTO t.log VALUES ('rule', 1);
CREATE VIEW t.view_1 AS SELECT id, n FROM t.plain;
CREATE VIEW t.view_2 AS SELECT id, n FROM t.plain WHERE id > 0 WITH CHECK OPTION;
CREATE VIEW t.view_3 AS SELECT 1 AS id;
CREATE FUNCTION t.instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.log VALUES ('instead', NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER instead INSTEAD OF INSERT ON t.view_3 FOR EACH ROW EXECUTE FUNCTION t.instead();
SELECT * FROM try('INSERT INTO t.serial (n) SELECT n FROM %s', 't.serial', 'x.n');
SELECT * FROM try('INSERT INTO t.default_1 (id) SELECT id FROM %s', 't.default_1');
SELECT name, (try(format('INSERT INTO t.%s (id) SELECT id FROM %%s', name), 't.' || name)).*
FROM unnest('{check_1,check_2,generated_1,index_1,index_2,index_3,exclude_1,key_1,key_2,rule_1}'::text[]) name;
SELECT * FROM try('INSERT INTO t.view_1 SELECT id, n FROM %s');
SELECT * FROM try('INSERT INTO t.view_2 SELECT id, n FROM %s');
SELECT * FROM try('INSERT INTO t.view_3 SELECT id FROM %s', 't.log');

-- row-level security
CREATE ROLE insert_select_user;
GRANT USAGE ON SCHEMA f, t TO insert_select_user;
GRANT ALL ON ALL TABLES IN SCHEMA f, t TO insert_select_user;
GRANT USAGE ON FOREIGN SERVER loopback TO insert_select_user;
CREATE USER MAPPING FOR insert_select_user SERVER loopback OPTIONS (user :'USER', password_required 'false');
CREATE TABLE t.secured (id int, n int, v text);
ALTER TABLE t.secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON t.secured USING (true) WITH CHECK (t.caught(id) > 0);
GRANT ALL ON t.secured TO insert_select_user;
SET ROLE insert_select_user;
SELECT plan_of('INSERT INTO t.secured SELECT * FROM f.src');
INSERT INTO t.secured SELECT * FROM f.src;
SELECT count(*), sum(id) FROM t.secured;
RESET ROLE;

-- a foreign table as a partition
CREATE TABLE r.sink (id int, n int, v text);
CREATE TABLE t.mixed (id int, n int, v text) PARTITION BY RANGE (id);
CREATE TABLE t.mixed_1 PARTITION OF t.mixed FOR VALUES FROM (0) TO (5000);
SELECT plan_of('INSERT INTO t.mixed SELECT * FROM f.src');
CREATE FOREIGN TABLE t.mixed_2 PARTITION OF t.mixed FOR VALUES FROM (5000) TO (9000)
    SERVER loopback OPTIONS (schema_name 'r', table_name 'sink');
SELECT plan_of('INSERT INTO t.mixed SELECT * FROM f.src');

-- triggers before
CREATE TABLE t.before_1 (id int, n int, v text);
CREATE TRIGGER a BEFORE INSERT ON t.before_1 FOR EACH ROW WHEN (NEW.id < 3) EXECUTE FUNCTION t.logs();
CREATE TABLE t.before_2 (id int, n int, v text);
CREATE TRIGGER b BEFORE INSERT ON t.before_2 FOR EACH STATEMENT EXECUTE FUNCTION t.logs();
CREATE TABLE t.when_1 (id int, n int, v text);
CREATE TRIGGER w AFTER INSERT ON t.when_1 FOR EACH ROW WHEN (t.writes(NEW.id) < 3) EXECUTE FUNCTION t.logs();
CREATE TABLE t.when_2 (id int, n int, v text);
CREATE TRIGGER w AFTER INSERT ON t.when_2 FOR EACH ROW WHEN (NEW.id::t.numbered < 3) EXECUTE FUNCTION t.logs();
SELECT name, (try(format('INSERT INTO t.%s SELECT * FROM %%s', name), 't.' || name)).*
FROM unnest('{before_1,before_2,when_1,when_2}'::text[]) name;
ALTER TABLE t.before_1 DISABLE TRIGGER a;
SELECT * FROM try('INSERT INTO t.before_1 SELECT * FROM %s', 't.before_1');
ALTER TABLE t.before_1 ENABLE REPLICA TRIGGER a;
SELECT * FROM try('INSERT INTO t.before_1 SELECT * FROM %s', 't.before_1');
SET session_replication_role = replica;
SELECT * FROM try('INSERT INTO t.before_1 SELECT * FROM %s', 't.before_1');
SELECT count(*) FROM t.log;
ALTER TABLE t.before_1 ENABLE ALWAYS TRIGGER a;
SELECT * FROM try('INSERT INTO t.before_1 SELECT * FROM %s', 't.before_1');
RESET session_replication_role;
CREATE TRIGGER deep BEFORE INSERT ON t.part_2_2 FOR EACH ROW EXECUTE FUNCTION t.logs();
SELECT * FROM try('INSERT INTO t.part SELECT * FROM %s', 't.part');
DROP TRIGGER deep ON t.part_2_2;

-- A plan that is made once, while something changes that invalidates nothing
SET plan_cache_mode = force_generic_plan;
PREPARE fill AS INSERT INTO t.part SELECT * FROM f.src;
TRUNCATE t.part;
EXPLAIN (COSTS OFF) EXECUTE fill;
EXECUTE fill;
CREATE TRIGGER deep BEFORE INSERT ON t.part_2_2 FOR EACH ROW EXECUTE FUNCTION t.logs();
TRUNCATE t.log;
EXECUTE fill;
SELECT count(*), sum(id) FROM t.part;
SELECT what, count(*) FROM t.log GROUP BY 1;
DROP TRIGGER deep ON t.part_2_2;
CREATE FUNCTION launched(query text) RETURNS boolean LANGUAGE sql AS
    'SELECT launched FROM explain_workers(query)';
SET tidrange_fdw.parallel_insert = off;
SELECT launched('EXECUTE fill');
SELECT * FROM try('INSERT INTO t.plain SELECT * FROM %s');
RESET tidrange_fdw.parallel_insert;
SELECT launched('EXECUTE fill');
SELECT count(*), sum(id) FROM t.part;
DEALLOCATE fill;
RESET plan_cache_mode;

-- nothing is left on the remote
SELECT * FROM remote_sessions(2);
DROP OWNED BY insert_select_user;
DROP ROLE insert_select_user;
DROP FOREIGN TABLE f.spans;
DROP SCHEMA t CASCADE;
