-- One view of the remote in one local transaction, savepoints or not, and no
-- remote transaction afterwards.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.tx (id int, v text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO r.tx SELECT i, repeat('x', 300) FROM generate_series(1, 60) i;
CREATE TABLE r.tx2 AS SELECT i AS id FROM generate_series(1, 10) i;
SELECT import_far('tx');
SELECT import_far('tx2');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f.tx;

-- errors and savepoints
BEGIN;
SELECT count(*) FROM f.tx;
SELECT * FROM remote_sessions(1);
SAVEPOINT a;
\set SHOW_CONTEXT never
SELECT count(*), sum(1 / (id - 30)) FROM f.tx;
\set SHOW_CONTEXT errors
ROLLBACK TO a;
SELECT count(*) FROM f.tx;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT count(*), sum(1 / (id - 30)) FROM f.tx;
ROLLBACK TO a;
SELECT count(*) FROM f.tx;
RELEASE a;
SELECT count(*) FROM f.tx;
COMMIT;
SELECT * FROM remote_sessions(1);
BEGIN;
SAVEPOINT a;
SELECT count(*) FROM f.tx;
ROLLBACK TO a;
SELECT count(*) FROM f.tx;
SAVEPOINT b;
DECLARE c CURSOR FOR SELECT id FROM f.tx;
FETCH 1 FROM c;
ROLLBACK TO b;
SELECT count(*) FROM f.tx, f.tx2;
DECLARE c CURSOR FOR SELECT id FROM f.tx;
FETCH 1 FROM c;
SAVEPOINT d;
FETCH 1 FROM c;
SELECT 1 / 0;
ROLLBACK TO d;
FETCH 1 FROM c;
COMMIT;
SELECT * FROM remote_sessions(1);

-- the same in the exception blocks of plpgsql
DO $$
DECLARE
    n bigint;
BEGIN
    FOR i IN 1..3 LOOP
        BEGIN
            EXECUTE 'SELECT count(*), sum(1 / (id - 30)) FROM f.tx' INTO n;
        EXCEPTION WHEN division_by_zero THEN
            EXECUTE 'SELECT count(*) FROM f.tx' INTO n;
            RAISE NOTICE '% rows after an error', n;
        END;
    END LOOP;
END
$$;

-- What is committed after the first scan stays unseen, also in a table that is
-- read later; our own rows too, since another session reads.
BEGIN;
SELECT count(*) FROM f.tx;
INSERT INTO r.tx SELECT i, 'own' FROM generate_series(61, 70) i;
INSERT INTO r.tx2 VALUES (11);
SELECT count(*) FROM f.tx;
SELECT count(*) FROM f.tx2;
COMMIT;
SELECT count(*) FROM f.tx;
SELECT count(*) FROM f.tx2;

-- A remote transaction that ends with an aborted one, and with each of many
DO $$
DECLARE
    n bigint;
BEGIN
    FOR i IN 1..20 LOOP
        EXECUTE 'SELECT count(*) FROM f.tx' INTO n;
        COMMIT;
        IF n <> 70 THEN
            RAISE WARNING '% rows', n;
        END IF;
    END LOOP;
END
$$;
SELECT * FROM remote_sessions(1);
BEGIN;
SELECT count(*) FROM f.tx2;
SELECT 1 / 0;
ROLLBACK;
SELECT * FROM remote_sessions(1);
SELECT sum(1 / (id - 5)) FROM f.tx2;
SELECT * FROM remote_sessions(1);

-- no session is kept where none is wanted
ALTER SERVER loopback OPTIONS (ADD keep_connections 'off');
SELECT count(*) FROM f.tx;
SELECT * FROM remote_sessions(0);
ALTER SERVER loopback OPTIONS (DROP keep_connections);
