-- PREPARE TRANSACTION: the remote transaction has only read and is ended.
SELECT current_setting('max_prepared_transactions')::int = 0 AS skip \gset
\if :skip
\echo 'skipped: max_prepared_transactions is 0'
\quit
\endif
CREATE TABLE r.two_phase AS SELECT i AS id FROM generate_series(1, 11) i;
SELECT import_far('two_phase');
BEGIN;
INSERT INTO r.two_phase VALUES (12);
SELECT count(*) FROM f.two_phase;
SELECT * FROM remote_sessions(1);
PREPARE TRANSACTION 'tidrange_fdw';
SELECT * FROM remote_sessions(1);
SELECT count(*) FROM f.two_phase;
COMMIT PREPARED 'tidrange_fdw';
SELECT count(*) FROM f.two_phase;

-- in mid-scan
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM f.two_phase;
FETCH 1 FROM c;
CLOSE c;
SELECT EXISTS (SELECT FROM f.two_phase);
PREPARE TRANSACTION 'tidrange_fdw';
SELECT * FROM remote_sessions(1);
ROLLBACK PREPARED 'tidrange_fdw';
SELECT count(*) FROM f.two_phase;
