-- LIMIT is sent to the remote where it counts the rows of the scan itself, and only
-- there; the number of rows is right in any case.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.lim (id int, n int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.lim SELECT i, i % 7, repeat('x', 130) FROM generate_series(1, 100) i;
SELECT import_far('lim');
CREATE TABLE lim_here (id int);
INSERT INTO lim_here SELECT generate_series(1, 20);
ANALYZE lim_here;

-- What is sent after the LIMIT key word, and how many rows come, serial and parallel.
CREATE FUNCTION limited(query text, OUT sent text, OUT serial bigint, OUT parallel bigint)
LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
        sent := concat_ws(' ', sent, CASE WHEN line ~ 'Remote SQL' THEN coalesce(substring(line FROM ' LIMIT (\d+)$'), '-') END);
    END LOOP;
    EXECUTE format('SELECT count(*) FROM (%s) x', query) INTO parallel;
    SET LOCAL max_parallel_workers_per_gather = 0;
    EXECUTE format('SELECT count(*) FROM (%s) x', query) INTO serial;
    SET LOCAL max_parallel_workers_per_gather = 2;
END
$$;

EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.lim WHERE n = 3 LIMIT 5;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM f.lim WHERE n = 3 OFFSET 2 LIMIT 5;
SET max_parallel_workers_per_gather = 2;

SELECT query, l.* FROM unnest(ARRAY[
    -- sent, with what OFFSET skips
    'SELECT * FROM f.lim LIMIT 7', 'SELECT id + 1 FROM f.lim WHERE n = 3 LIMIT 7',
    'SELECT * FROM f.lim OFFSET 10 LIMIT 7', 'SELECT * FROM f.lim FETCH FIRST 7 ROWS ONLY',
    'SELECT * FROM f.lim LIMIT 99', 'SELECT * FROM f.lim LIMIT 1000', 'SELECT * FROM f.lim WHERE n = 3 OFFSET 10 LIMIT 7',
    'SELECT * FROM f.lim OFFSET 95 LIMIT 7', 'SELECT * FROM f.lim OFFSET 100 LIMIT 7',
    'SELECT random() FROM f.lim LIMIT 7', 'SELECT FROM f.lim LIMIT 7', 'SELECT * FROM f.lim LIMIT 3 + 4',
    $$SELECT * FROM f.lim WHERE ctid >= '(2,0)' AND ctid < '(4,0)' LIMIT 7$$,
    'SELECT * FROM (SELECT * FROM f.lim LIMIT 9) x WHERE v ~ ''x''', 'SELECT count(*) FROM (SELECT * FROM f.lim LIMIT 9) x',
    'SELECT * FROM f.lim OFFSET NULL LIMIT 7',
    -- none at all, no limit
    'SELECT * FROM f.lim LIMIT 0', 'SELECT * FROM f.lim LIMIT NULL', 'SELECT * FROM f.lim LIMIT ALL', 'SELECT * FROM f.lim OFFSET 90',
    'SELECT * FROM f.lim OFFSET 1 LIMIT 0', 'SELECT * FROM f.lim WHERE false LIMIT 7',
    -- rows are sorted, dropped, joined or combined before they are counted
    'SELECT * FROM f.lim ORDER BY id LIMIT 7', 'SELECT * FROM f.lim WHERE v ~ ''x'' LIMIT 7', 'SELECT * FROM f.lim WHERE id > random() LIMIT 7',
    'SELECT * FROM f.lim WHERE n = 3 AND v ~ ''y'' LIMIT 7', 'SELECT * FROM f.lim JOIN lim_here USING (id) LIMIT 7',
    'SELECT lim_here.id FROM f.lim JOIN lim_here USING (id) WHERE n = 3 LIMIT 2 FOR UPDATE OF lim_here',
    'SELECT * FROM f.lim a, f.lim b WHERE a.id = b.id AND b.n = 6 LIMIT 7', 'SELECT * FROM f.lim, generate_series(1, 3) LIMIT 7',
    'SELECT * FROM f.lim LEFT JOIN lim_here USING (id) WHERE lim_here.id IS NULL LIMIT 7', 'SELECT * FROM f.lim WHERE id IN (SELECT id FROM lim_here WHERE id > 15) LIMIT 7',
    'SELECT * FROM f.lim l WHERE EXISTS (SELECT FROM lim_here WHERE lim_here.id = l.id + random() * 0 AND id > 15) LIMIT 7', 'SELECT * FROM f.lim WHERE random() >= 0 LIMIT 7',
    'SELECT n FROM f.lim GROUP BY n LIMIT 6', 'SELECT DISTINCT n FROM f.lim LIMIT 6', 'SELECT DISTINCT ON (n) n, v FROM f.lim LIMIT 6',
    'SELECT count(*) FROM f.lim LIMIT 7', 'SELECT max(id) FROM f.lim HAVING max(id) > 7 LIMIT 7', 'SELECT row_number() OVER (), id FROM f.lim LIMIT 7',
    'SELECT generate_series(1, 2), id FROM f.lim LIMIT 7', 'SELECT generate_series(1, id % 2), id FROM f.lim LIMIT 7', 'SELECT unnest(''{}''::int[]), id FROM f.lim LIMIT 7',
    'SELECT id FROM f.lim UNION ALL SELECT id FROM f.lim LIMIT 150', 'SELECT id FROM f.lim UNION SELECT id FROM lim_here LIMIT 90',
    'SELECT id FROM f.lim EXCEPT SELECT id FROM lim_here LIMIT 7', '(SELECT id FROM f.lim LIMIT 3) UNION ALL (SELECT id FROM f.lim LIMIT 4)',
    'SELECT n FROM f.lim ORDER BY n FETCH FIRST 3 ROWS WITH TIES', 'SELECT * FROM f.lim WHERE (SELECT true) LIMIT 7',
    'SELECT * FROM f.lim LIMIT (SELECT 7)', 'SELECT lim_here.id, x.* FROM lim_here, LATERAL (SELECT l.id FROM f.lim l WHERE l.id > lim_here.id LIMIT 3) x',
    'SELECT lim_here.id, x.* FROM lim_here, LATERAL (SELECT l.id FROM f.lim l LIMIT lim_here.id) x',
    'WITH x AS MATERIALIZED (SELECT * FROM f.lim) SELECT * FROM x WHERE n = 3 LIMIT 7', 'SELECT * FROM (SELECT * FROM f.lim OFFSET 0) x WHERE n = 3 LIMIT 7'
    ]) query, limited(query) l;
-- larger than any table
SELECT * FROM limited('SELECT * FROM f.lim OFFSET 10 LIMIT 9223372036854775807');
SELECT * FROM limited('SELECT * FROM f.lim OFFSET 9223372036854775807 LIMIT 9223372036854775807');

-- a limit that is not known, or not for good, when the plan is made
CREATE FUNCTION wanted() RETURNS bigint STABLE LANGUAGE sql AS $$SELECT current_setting('limit_test.wanted')::bigint$$;
SET limit_test.wanted = 7;
SET max_parallel_workers_per_gather = 0;
PREPARE by_parameter(bigint, bigint) AS SELECT id FROM f.lim OFFSET $1 LIMIT $2;
PREPARE by_setting AS SELECT id FROM f.lim LIMIT current_setting('limit_test.wanted')::bigint;
PREPARE by_function AS SELECT id FROM f.lim OFFSET wanted() LIMIT 7;
SELECT count(*) FROM (SELECT id FROM f.lim LIMIT wanted()) x;
CREATE TABLE got AS EXECUTE by_setting;
CREATE TABLE got_by_function AS EXECUTE by_function;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_parameter(1, 7);
SET plan_cache_mode = force_generic_plan;
CREATE TABLE got_seven AS EXECUTE by_setting;
CREATE TABLE got_seven_by_function AS EXECUTE by_function;
SET limit_test.wanted = 70;
CREATE TABLE got_seventy AS EXECUTE by_setting;
CREATE TABLE got_seven_after_seventy AS EXECUTE by_function;
SELECT (SELECT count(*) FROM got) AS seven, (SELECT count(*) FROM got_by_function) AS seven, (SELECT count(*) FROM got_seven) AS seven,
    (SELECT count(*) FROM got_seven_by_function) AS seven, (SELECT count(*) FROM got_seventy) AS seventy,
    (SELECT count(*) FROM got_seven_after_seventy) AS seven;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_parameter(1, 7);
CREATE TABLE got_three AS EXECUTE by_parameter(97, 7);
CREATE TABLE got_ninety AS EXECUTE by_parameter(10, NULL);
CREATE TABLE got_none AS EXECUTE by_parameter(NULL, 0);
SELECT (SELECT count(*) FROM got_three) AS three, (SELECT count(*) FROM got_ninety) AS ninety, (SELECT count(*) FROM got_none) AS none;
DO $$
DECLARE
    n int;
BEGIN
    FOR i IN 5..8 LOOP
        SELECT count(*) INTO n FROM (SELECT FROM f.lim LIMIT i) x;
        RAISE NOTICE '% of %', n, i;
    END LOOP;
END
$$;

SET max_parallel_workers_per_gather = 2;

-- where the filter moves here, because the column is another type there, so does the limit
CREATE FOREIGN TABLE f.lim_text (id text, n text) SERVER loopback OPTIONS (schema_name 'r', table_name 'lim', chunk_blocks '1', parallel_workers '2');
SELECT * FROM limited('SELECT id FROM f.lim_text WHERE n = ''3'' LIMIT 7');
SELECT p FROM show_plan('SELECT id FROM f.lim_text WHERE n = ''3'' LIMIT 14', 'ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF') p
WHERE p ~ 'Filter|Remote SQL';
-- and from all chunks together it comes once
SELECT * FROM check_query('SELECT count(*), count(DISTINCT id), count(DISTINCT id) FILTER (WHERE n = 3) FROM (SELECT * FROM %s WHERE n = 3 LIMIT 12) x', 'r.lim', 'f.lim');
