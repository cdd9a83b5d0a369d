-- Foreign tables among others: partitions, UNION ALL, inheritance.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;

CREATE TABLE r.a1 (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.a1 SELECT i, repeat('x', 300) FROM generate_series(1, 30) i;
CREATE TABLE r.a2 (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.a2 SELECT i, repeat('y', 300) FROM generate_series(101, 150) i;
CREATE TABLE r.a3 (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.a3 SELECT i, repeat('z', 300) FROM generate_series(201, 270) i;
SELECT import_far('a1', 1, 3), import_far('a2', 1, 3), import_far('a3', 1, 3);
CREATE TABLE r.a0 (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.a0 SELECT i, repeat('w', 300) FROM generate_series(301, 340) i;
CREATE VIEW r.all_a AS
    SELECT * FROM r.a0 UNION ALL SELECT * FROM r.a1 UNION ALL SELECT * FROM r.a2 UNION ALL SELECT * FROM r.a3;

EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM
    (SELECT * FROM f.a1 UNION ALL SELECT * FROM f.a2 UNION ALL SELECT * FROM f.a3) u;
SELECT count(*), sum(id) FROM
    (SELECT * FROM r.a1 UNION ALL SELECT * FROM r.a2 UNION ALL SELECT * FROM r.a3) u;
SELECT count(*), sum(id) FROM
    (SELECT * FROM f.a1 UNION ALL SELECT * FROM f.a2 UNION ALL SELECT * FROM f.a3) u;
SELECT * FROM explain_workers('SELECT count(*), sum(id) FROM
    (SELECT * FROM f.a1 UNION ALL SELECT * FROM f.a2 UNION ALL SELECT * FROM f.a3) u');

CREATE TABLE f.parts (id int, v text) PARTITION BY RANGE (id);
ALTER TABLE f.parts ATTACH PARTITION f.a1 FOR VALUES FROM (0) TO (100);
ALTER TABLE f.parts ATTACH PARTITION f.a2 FOR VALUES FROM (100) TO (200);
ALTER TABLE f.parts ATTACH PARTITION f.a3 FOR VALUES FROM (200) TO (300);
CREATE TABLE f.a0 PARTITION OF f.parts FOR VALUES FROM (300) TO (400) WITH (autovacuum_enabled = off);
INSERT INTO f.parts SELECT * FROM r.a0;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM f.parts;
SELECT * FROM check_scan('r.all_a', 'f.parts');
SET parallel_leader_participation = off;
SELECT * FROM check_scan('r.all_a', 'f.parts');
RESET parallel_leader_participation;
SET enable_parallel_append = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM f.parts;
SELECT * FROM check_scan('r.all_a', 'f.parts', '{3}');
RESET enable_parallel_append;
SELECT * FROM check_query('SELECT * FROM (SELECT id FROM %s ORDER BY id DESC LIMIT 3) x', 'r.all_a', 'f.parts', '{3}');
SELECT * FROM check_query('SELECT count(*) FROM (SELECT id FROM %s LIMIT 77) x', 'r.all_a', 'f.parts');
SELECT * FROM check_query('SELECT count(*), sum(a.id) FROM %1$s a JOIN %1$s b USING (id)', 'r.all_a', 'f.parts', '{1,3}');
SELECT tableoid::regclass, count(*) FROM f.parts GROUP BY 1 ORDER BY tableoid::regclass::text COLLATE "C";

-- pruned: when planned, and when run
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.parts WHERE id < 100;
SELECT count(*) FROM f.parts WHERE id < 100;
SET plan_cache_mode = force_generic_plan;
PREPARE part(int) AS SELECT id FROM f.parts WHERE id = $1;
EXPLAIN (COSTS OFF) EXECUTE part(120);
EXECUTE part(120);
EXECUTE part(320);
EXECUTE part(NULL);

-- a partition whose server is away does no harm where it is pruned
SET client_min_messages = warning;
CREATE SERVER away FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (host '/nonexistent', port '1');
CREATE USER MAPPING FOR CURRENT_USER SERVER away;
CREATE FOREIGN TABLE f.a4 PARTITION OF f.parts FOR VALUES FROM (400) TO (500) SERVER away OPTIONS (schema_name 'r');
SELECT count(*) FROM f.parts WHERE id < 200;
EXECUTE part(120);
EXECUTE part(320);
\set VERBOSITY terse
EXECUTE part(420);
SELECT count(*) FROM f.parts;
\set VERBOSITY default
DROP FOREIGN TABLE f.a4;
DROP SERVER away CASCADE;

-- rows cannot be put there
INSERT INTO f.parts VALUES (1, 'x');
INSERT INTO f.parts VALUES (399, 'x');
SELECT count(*) FROM f.parts;
DROP TABLE f.parts CASCADE;
