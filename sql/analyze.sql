-- ANALYZE of foreign tables: rows, pages and statistics close to those of the table
-- itself. The sample is random: what is shown are limits that it does not leave.
SET default_statistics_target = 10;
CREATE TABLE r.ana (id int PRIMARY KEY, gone int, n int, v text, w text) WITH (autovacuum_enabled = off);
INSERT INTO r.ana SELECT i, i, i % 50, repeat('x', i % 100), CASE WHEN i % 4 = 0 THEN 'w' || i % 3 END
FROM generate_series(1, 200000) i;
ANALYZE r.ana;
IMPORT FOREIGN SCHEMA r LIMIT TO (ana) FROM SERVER loopback INTO f;

-- What pg_class and pg_stats say of a foreign table, beside what is true of another
-- relation: rows within a fifth, pages exactly.
CREATE FUNCTION check_sizes(far regclass, truth text, pages bigint, OUT rows bool, OUT relpages bool)
LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE 'SELECT count(*) FROM ' || truth INTO n;
    SELECT reltuples BETWEEN n * 0.8 AND n * 1.2, c.relpages = pages INTO rows, relpages
        FROM pg_class c WHERE oid = far;
END
$$;
SELECT relpages, reltuples FROM pg_class WHERE oid = 'f.ana'::regclass;
ANALYZE f.ana;
SELECT * FROM check_sizes('f.ana', 'r.ana', pg_relation_size('r.ana') / 8192);
SELECT attname, null_frac BETWEEN CASE attname WHEN 'w' THEN 0.7 ELSE 0 END AND CASE attname WHEN 'w' THEN 0.8 ELSE 0 END AS null_frac,
    CASE attname WHEN 'id' THEN n_distinct < -0.9 WHEN 'n' THEN n_distinct = 50 WHEN 'w' THEN n_distinct = 3 ELSE n_distinct > 90 END AS n_distinct,
    avg_width BETWEEN CASE attname WHEN 'v' THEN 45 WHEN 'w' THEN 3 ELSE 4 END AND CASE attname WHEN 'v' THEN 60 ELSE 4 END AS avg_width,
    abs(correlation) > 0.9 AS sorted
FROM pg_stats WHERE schemaname = 'f' AND tablename = 'ana' AND attname <> 'gone' ORDER BY attname COLLATE "C";

-- joins are estimated with it
CREATE TABLE ana_few AS SELECT i * 1000 AS id FROM generate_series(1, 10) i;
ANALYZE ana_few;
CREATE FUNCTION estimate(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END
$$;
SELECT estimate('SELECT FROM ana_few JOIN f.ana USING (id)') BETWEEN 5 AND 20 AS key,
    estimate('SELECT FROM f.ana WHERE n = 5') BETWEEN 2000 AND 8000 AS condition,
    estimate('SELECT FROM f.ana GROUP BY n') = 50 AS groups;

-- some columns; columns that were dropped, on either side or both
ALTER TABLE r.ana DROP COLUMN gone;
ALTER FOREIGN TABLE f.ana DROP COLUMN gone, DROP COLUMN v, ADD COLUMN n2 int OPTIONS (column_name 'n');
ANALYZE f.ana (id, n2);
SELECT attname, n_distinct > 0 AS repeats FROM pg_stats WHERE schemaname = 'f' AND tablename = 'ana' ORDER BY attname COLLATE "C";

-- a smaller table than the sample: all of it, whatever is in it
CREATE TABLE r.ana_small (id int, a int[], t timestamptz, j jsonb) WITH (autovacuum_enabled = off);
INSERT INTO r.ana_small SELECT i, ARRAY[i, NULL], '2020-01-01'::timestamptz + i * interval '1 day', '{"a": 1}' FROM generate_series(1, 500) i;
IMPORT FOREIGN SCHEMA r LIMIT TO (ana_small) FROM SERVER loopback INTO f;
ANALYZE f.ana_small;
SELECT relpages = pg_relation_size('r.ana_small') / 8192, reltuples FROM pg_class WHERE oid = 'f.ana_small'::regclass;
SELECT attname, null_frac, n_distinct, correlation FROM pg_stats WHERE schemaname = 'f' AND tablename = 'ana_small' ORDER BY attname COLLATE "C";

-- no rows, with and without blocks; none any more
CREATE TABLE r.ana_empty (id int) WITH (autovacuum_enabled = off);
IMPORT FOREIGN SCHEMA r LIMIT TO (ana_empty) FROM SERVER loopback INTO f;
ANALYZE f.ana_empty;
SELECT reltuples FROM pg_class WHERE oid = 'f.ana_empty'::regclass;
SELECT count(*) FROM f.ana_empty;
INSERT INTO r.ana_empty SELECT generate_series(1, 1000);
ANALYZE f.ana_empty;
SELECT reltuples FROM pg_class WHERE oid = 'f.ana_empty'::regclass;
DELETE FROM r.ana_empty;
ANALYZE f.ana_empty;
SELECT reltuples FROM pg_class WHERE oid = 'f.ana_empty'::regclass;
-- rows in a part of the blocks only
CREATE TABLE r.ana_holes (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.ana_holes SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i;
DELETE FROM r.ana_holes WHERE id / 1000 % 2 = 0;
IMPORT FOREIGN SCHEMA r LIMIT TO (ana_holes) FROM SERVER loopback INTO f;
ANALYZE f.ana_holes;
SELECT * FROM check_sizes('f.ana_holes', 'r.ana_holes', pg_relation_size('r.ana_holes') / 8192);

-- what has no blocks of its own: a view, partitioned and inheritance parents; a
-- materialized view; a table without columns
CREATE VIEW r.ana_view AS SELECT id, n FROM r.ana WHERE id <= 100000;
CREATE MATERIALIZED VIEW r.ana_mat AS SELECT id, n FROM r.ana WHERE id <= 100000;
CREATE TABLE r.ana_parts (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE r.ana_part1 PARTITION OF r.ana_parts FOR VALUES FROM (0) TO (50000) WITH (autovacuum_enabled = off);
CREATE TABLE r.ana_part2 PARTITION OF r.ana_parts FOR VALUES FROM (50000) TO (100001) WITH (autovacuum_enabled = off);
INSERT INTO r.ana_parts SELECT * FROM r.ana_view;
CREATE TABLE r.ana_parent (id int, n int) WITH (autovacuum_enabled = off);
CREATE TABLE r.ana_child () INHERITS (r.ana_parent) WITH (autovacuum_enabled = off);
INSERT INTO r.ana_child SELECT * FROM r.ana_view;
INSERT INTO r.ana_parent VALUES (0, 0);
CREATE TABLE r.ana_none () WITH (autovacuum_enabled = off);
INSERT INTO r.ana_none SELECT FROM generate_series(1, 90);
IMPORT FOREIGN SCHEMA r LIMIT TO (ana_view, ana_mat, ana_parts, ana_parent, ana_none) FROM SERVER loopback INTO f;
ANALYZE f.ana_view, f.ana_mat, f.ana_parts, f.ana_parent, f.ana_none;
SELECT name, (check_sizes(('f.' || name)::regclass, 'r.' || name, pages)).* FROM (VALUES
    ('ana_view', 1), ('ana_mat', pg_relation_size('r.ana_mat') / 8192),
    ('ana_parts', (pg_relation_size('r.ana_part1') + pg_relation_size('r.ana_part2')) / 8192),
    ('ana_parent', (pg_relation_size('r.ana_parent') + pg_relation_size('r.ana_child')) / 8192),
    ('ana_none', pg_relation_size('r.ana_none') / 8192)) names(name, pages);
SELECT tablename, attname, n_distinct FROM pg_stats WHERE schemaname = 'f' AND attname = 'n' AND tablename <> 'ana' ORDER BY tablename COLLATE "C";

-- through a partitioned table here
CREATE TABLE parent_here (id int, n int) PARTITION BY RANGE (id);
ALTER TABLE parent_here ATTACH PARTITION f.ana_mat FOR VALUES FROM (0) TO (100001);
CREATE TABLE part_here PARTITION OF parent_here FOR VALUES FROM (200000) TO (300000) WITH (autovacuum_enabled = off);
INSERT INTO parent_here SELECT 200000 + i, i % 50 FROM generate_series(1, 1000) i;
ANALYZE parent_here;
SELECT attname, n_distinct = 50 AS fifty FROM pg_stats WHERE tablename = 'parent_here' AND inherited AND attname = 'n';

-- inside a transaction that reads, and one that is at a savepoint; errors
BEGIN;
SELECT count(*) FROM f.ana_small;
ANALYZE f.ana_small;
SAVEPOINT s;
ANALYZE f.ana_empty;
ROLLBACK TO s;
SELECT count(*) FROM f.ana_small;
COMMIT;
DROP TABLE r.ana_empty;
SELECT error_of('ANALYZE f.ana_empty');
ALTER TABLE r.ana_small RENAME COLUMN t TO u;
SELECT error_of('ANALYZE f.ana_small');
SELECT count(*) FROM f.ana_small;
