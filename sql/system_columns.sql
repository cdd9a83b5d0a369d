-- System columns: the ctid is the remote's, tableoid ours, others mean nothing.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.sys (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.sys SELECT i, repeat('x', 400) FROM generate_series(1, 40) i;
SELECT import_far('sys');

EXPLAIN (VERBOSE, COSTS OFF) SELECT ctid, id FROM f.sys;
SELECT * FROM check_scan('(SELECT ctid, * FROM r.sys)', '(SELECT ctid, * FROM f.sys)');
SELECT * FROM check_query('SELECT ctid, id FROM %s WHERE ctid = ''(3,1)''', 'r.sys', 'f.sys', '{2}');
SELECT * FROM check_query('SELECT count(*) FROM %s WHERE ctid IS NOT NULL', 'r.sys', 'f.sys', '{2}');
SELECT * FROM check_query('SELECT count(*) FROM %s WHERE ctid < ''(1,0)''', 'r.sys', 'f.sys', '{2}');
SELECT * FROM check_query('SELECT count(*) FROM %1$s a JOIN %1$s b ON a.ctid = b.ctid AND a.id = b.id',
                          'r.sys', 'f.sys', '{2}');
-- a condition on the ctid that is evaluated here
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM f.sys WHERE ctid::text LIKE '(3,%' AND random() >= 0;
SELECT count(*) FROM f.sys WHERE ctid::text LIKE '(3,%' AND random() >= 0;

SELECT tableoid::regclass, count(*) FROM f.sys GROUP BY 1;
SELECT count(*) FROM f.sys WHERE tableoid = 'f.sys'::regclass;
SELECT count(*) FROM f.sys WHERE tableoid = 'r.sys'::regclass;
EXPLAIN (VERBOSE, COSTS OFF) SELECT tableoid, id FROM f.sys;
SELECT id, ctid, tableoid::regclass, sys IS NOT NULL AS whole FROM f.sys WHERE id = 7;

-- the others have no meaning here, which is said
SELECT count(*) FROM f.sys WHERE xmin::text IS NULL;
SELECT count(xmax), count(cmin), count(cmax) FROM f.sys;

-- a column called ctid is no ctid
CREATE VIEW r.sys_view AS SELECT id, id * 2 AS ctid FROM r.sys;
CREATE FOREIGN TABLE f.sys_view (id int, c int OPTIONS (column_name 'ctid')) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'sys_view', parallel_workers '2', chunk_blocks '1');
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.sys_view WHERE c > 70;
SELECT * FROM f.sys_view WHERE c > 70 ORDER BY id;
SELECT error_of('SELECT ctid, id FROM f.sys_view WHERE id < 3');
SELECT show_plan('SELECT count(*) FROM f.sys_view', 'ANALYZE, TIMING OFF, SUMMARY OFF');
CREATE FOREIGN TABLE f.sys_column (id int, c tid OPTIONS (column_name 'ctid')) SERVER loopback
    OPTIONS (schema_name 'r', table_name 'sys', parallel_workers '2', chunk_blocks '1');
SELECT error_of('SELECT * FROM f.sys_column');
