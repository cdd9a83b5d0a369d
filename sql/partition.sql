-- Partitioned tables: the leaves at any depth are read one by one, by their own
-- blocks, and each row once. One leaf has other columns before it, one is empty, one
-- is a foreign table, one has another access method, one has a name to be quoted.
CREATE ACCESS METHOD heap_too TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE r.elsewhere (id int, k text, v text);
CREATE TABLE r.pt (id int, k text, v text) PARTITION BY RANGE (id);
CREATE TABLE r.pt_low PARTITION OF r.pt FOR VALUES FROM (0) TO (1000)
    WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.pt_sub PARTITION OF r.pt FOR VALUES FROM (1000) TO (3000) PARTITION BY LIST (k);
CREATE TABLE r."pt sub's A" PARTITION OF r.pt_sub FOR VALUES IN ('a') WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.pt_sub_rest PARTITION OF r.pt_sub DEFAULT WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE TABLE r.pt_empty PARTITION OF r.pt FOR VALUES FROM (3000) TO (4000);
CREATE TABLE r.pt_other PARTITION OF r.pt FOR VALUES FROM (4000) TO (4300) USING heap_too;
CREATE FOREIGN TABLE r.pt_far PARTITION OF r.pt FOR VALUES FROM (5000) TO (5300)
    SERVER loopback OPTIONS (table_name 'elsewhere');
CREATE TABLE r.pt_odd (gone int, v text, k text, also_gone text, id int) WITH (autovacuum_enabled = off);
ALTER TABLE r.pt_odd DROP COLUMN gone, DROP COLUMN also_gone;
ALTER TABLE r.pt ATTACH PARTITION r.pt_odd FOR VALUES FROM (6000) TO (6300);
CREATE TABLE r.pt_default PARTITION OF r.pt DEFAULT WITH (autovacuum_enabled = off);
CREATE INDEX ON r.pt_low (id);
INSERT INTO r.pt SELECT i, chr(97 + i % 3), repeat('v', i % 50) FROM generate_series(0, 4299) i WHERE i NOT BETWEEN 3000 AND 3999;
INSERT INTO r.pt SELECT i, chr(97 + i % 3), 'odd' FROM generate_series(6000, 6299) i;
INSERT INTO r.pt SELECT i, NULL, NULL FROM generate_series(10000, 10499) i;
INSERT INTO r.pt VALUES (NULL, 'no key', NULL);
INSERT INTO r.elsewhere SELECT i, 'far', 'away' FROM generate_series(5000, 5299) i;

-- small as they are, one statement would be the cheaper way
ALTER SERVER loopback OPTIONS (ADD fdw_startup_cost '0');
SELECT import_far('pt'), import_far('pt_sub'), import_far('pt_odd'), import_far('pt_other');
SELECT * FROM check_scan('r.pt', 'f.pt');
SELECT * FROM check_scan('r.pt_sub', 'f.pt_sub');
SELECT * FROM check_scan('r.pt_odd', 'f.pt_odd');
SELECT * FROM check_scan('r.pt_other', 'f.pt_other');

-- in chunks of other sizes, one that is larger than any leaf among them
CREATE FUNCTION check_chunk_blocks(n text) RETURNS TABLE (rows text, ways text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER FOREIGN TABLE f.pt OPTIONS (SET chunk_blocks %L)', n);
    RETURN QUERY SELECT * FROM check_scan('r.pt', 'f.pt', '{1,4}');
END
$$;
SELECT n, c.* FROM unnest('{2,7,1000,4294967295}'::text[]) n, check_chunk_blocks(n) c;
ALTER FOREIGN TABLE f.pt OPTIONS (DROP chunk_blocks);
SELECT * FROM check_scan('r.pt', 'f.pt', '{1,4}');
ALTER FOREIGN TABLE f.pt OPTIONS (ADD chunk_blocks '1');

-- what is sent, and of which leaves
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
CREATE FUNCTION leaves_of(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(l) FROM show_plan(query, 'ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF') l
    WHERE l ~ 'Foreign Scan|Remote SQL|Leaves|Read |Blocks Claimed|Blocks Finished|Filtered'
$$;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id, v FROM f.pt;
SELECT leaves_of('SELECT id, v FROM f.pt');

-- conditions: those that leave only some leaves to be read, in one statement if the
-- source thinks that little of the table is left
SELECT leaves_of('SELECT count(*) FROM f.pt WHERE id >= 6000');
SELECT leaves_of($$SELECT count(*) FROM f.pt WHERE ctid < '(3,0)' AND id < 4000$$);
ALTER FOREIGN TABLE f.pt OPTIONS (ADD use_remote_estimate 'false');
SELECT leaves_of('SELECT count(*) FROM f.pt WHERE id >= 6000');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s WHERE id >= 6000', 'r.pt', 'f.pt');
SELECT leaves_of('SELECT count(*) FROM f.pt WHERE id < 1000');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s WHERE id < 1000', 'r.pt', 'f.pt');
SELECT leaves_of('SELECT count(*) FROM f.pt WHERE id BETWEEN 1000 AND 2999 AND k IS NOT NULL');
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE id BETWEEN 1000 AND 2999 AND k <> 'a'$$, 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s WHERE id = 4100', 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT count(*), sum(id) FROM %s WHERE id = 5100', 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT count(*) FROM %s WHERE id IS NULL', 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT count(*) FROM %s WHERE id = 1 AND id = 2000', 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT count(*) FROM %s WHERE v IS NULL', 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT * FROM %s WHERE mod(id, 500) = 1', 'r.pt', 'f.pt', '{4}');

-- ctid is that of a row in its leaf: bounds cut the blocks of each
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE ctid < '(3,0)' AND id < 5000$$, 'r.pt', 'f.pt');
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE ctid >= '(2,4)' AND ctid < '(60,0)' AND id < 5000$$, 'r.pt', 'f.pt');
SELECT * FROM check_query($$SELECT count(*), sum(id) FROM %s WHERE ctid = '(1,2)' AND id < 5000$$, 'r.pt', 'f.pt');
SELECT * FROM check_query($$SELECT count(*) FROM %s WHERE ctid = ANY ('{"(0,1)","(30,1)"}') AND id < 5000$$, 'r.pt', 'f.pt');
SELECT * FROM check_query($$SELECT count(*) FROM %s WHERE ctid >= '(100000,0)' AND id < 5000$$, 'r.pt', 'f.pt');
SELECT * FROM check_query('SELECT id, ctid FROM %s WHERE id BETWEEN 2990 AND 4010', 'r.pt', 'f.pt', '{4}');
SELECT leaves_of($$SELECT count(*) FROM f.pt WHERE ctid < '(3,0)' AND id < 4000$$);

-- parameters and rescans: other leaves every time
SET plan_cache_mode = force_generic_plan;
PREPARE by_range(int, int) AS SELECT count(*), sum(id) FROM f.pt WHERE id >= $1 AND id < $2;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_range(0, 10);
SELECT leaves_of('EXECUTE by_range(0, 10)');
EXECUTE by_range(0, 10);
EXECUTE by_range(990, 1010);
EXECUTE by_range(2000, 20000);
EXECUTE by_range(NULL, 1);
RESET plan_cache_mode;
ALTER FOREIGN TABLE f.pt OPTIONS (DROP use_remote_estimate);
SET enable_material = off;
SELECT o.lo, i.* FROM (VALUES (0), (1500), (4100), (5200), (6000), (20000)) o(lo),
    LATERAL (SELECT count(*), sum(id) FROM f.pt WHERE id >= o.lo AND id < o.lo + 100) i ORDER BY 1;
SELECT o.lo, i.* FROM (VALUES (0), (1500), (4100), (5200), (6000), (20000)) o(lo),
    LATERAL (SELECT count(*), sum(id) FROM r.pt WHERE id >= o.lo AND id < o.lo + 100) i ORDER BY 1;
RESET enable_material;

-- several scans of one table in a transaction, overlapping; few rows of many
BEGIN;
SELECT count(*) FROM f.pt a JOIN f.pt b USING (id) WHERE a.id < 1000 AND b.id > 900;
SELECT count(*) FROM f.pt WHERE id > 2500;
DECLARE c CURSOR FOR SELECT id FROM f.pt WHERE id >= 6000 ORDER BY id;
FETCH 2 FROM c;
SELECT count(*) FROM f.pt;
FETCH 2 FROM c;
COMMIT;
SELECT count(*) FROM (SELECT FROM f.pt LIMIT 10) x;
SELECT count(*), sum(id) FROM f.pt WHERE tableoid = 'f.pt'::regclass;

-- the whole-table way, where the remote prunes
SET max_parallel_workers_per_gather = 0;
SELECT leaves_of('SELECT * FROM f.pt WHERE id = 77');
SET max_parallel_workers_per_gather = 4;

-- without rows, without partitions, without columns
CREATE TABLE r.pt_void (id int) PARTITION BY RANGE (id);
CREATE TABLE r.pt_nothing (id int) PARTITION BY RANGE (id);
CREATE TABLE r.pt_nothing_1 PARTITION OF r.pt_nothing FOR VALUES FROM (0) TO (10);
CREATE TABLE r.pt_nothing_2 PARTITION OF r.pt_nothing FOR VALUES FROM (10) TO (20);
SELECT import_far('pt_void'), import_far('pt_nothing');
SELECT * FROM check_scan('r.pt_void', 'f.pt_void');
SELECT * FROM check_scan('r.pt_nothing', 'f.pt_nothing');
CREATE FOREIGN TABLE f.pt_bare () SERVER loopback OPTIONS (schema_name 'r', table_name 'pt', chunk_blocks '1', parallel_workers '4');
SELECT * FROM check_query('SELECT count(*) FROM %s', 'r.pt', 'f.pt_bare');

-- many small leaves
CREATE TABLE r.pt_many (id int, n int) PARTITION BY RANGE (id);
DO $$
BEGIN
    FOR i IN 0..99 LOOP
        EXECUTE format('CREATE TABLE r.pt_many_%s PARTITION OF r.pt_many FOR VALUES FROM (%s) TO (%s)',
                       i, i * 10, i * 10 + 10);
    END LOOP;
END
$$;
INSERT INTO r.pt_many SELECT i, i % 7 FROM generate_series(0, 999) i WHERE i / 10 % 3 > 0;
SELECT import_far('pt_many');
SELECT * FROM check_scan('r.pt_many', 'f.pt_many');
SELECT leaves_of('SELECT count(*) FROM f.pt_many');
SELECT leaves_of('SELECT count(*) FROM f.pt_many WHERE id BETWEEN 400 AND 500');

-- the option only: of a partitioned table nothing
CREATE FOREIGN TABLE f.pt_only (id int) SERVER loopback OPTIONS (schema_name 'r', table_name 'pt', only 'true');
SELECT count(*) FROM f.pt_only;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.pt_only;
ANALYZE f.pt;
SELECT reltuples FROM pg_class WHERE oid = 'f.pt'::regclass;

-- many small leaves are read by one statement, unless they are large or free
ALTER SERVER loopback OPTIONS (DROP fdw_startup_cost);
EXPLAIN (COSTS OFF) SELECT * FROM f.pt_many;

-- ANALYZE looks at some blocks of each leaf
CREATE TABLE r.pt_sample (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE r.pt_sample_1 PARTITION OF r.pt_sample FOR VALUES FROM (0) TO (8000) WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE TABLE r.pt_sample_2 PARTITION OF r.pt_sample FOR VALUES FROM (8000) TO (10000) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.pt_sample SELECT i, repeat('x', 100) FROM generate_series(0, 9999) i;
SELECT import_far('pt_sample');
SET default_statistics_target = 1;
ANALYZE f.pt_sample;
SELECT reltuples BETWEEN 6000 AND 14000 AS about_right, relpages
    FROM pg_class WHERE oid = 'f.pt_sample'::regclass;
SELECT attname, n_distinct FROM pg_stats WHERE schemaname = 'f' AND tablename = 'pt_sample' ORDER BY 1;
RESET default_statistics_target;
