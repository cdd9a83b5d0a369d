-- Values of every length around the change of the varlena header (126 bytes),
-- before and behind columns that shift their alignment in the row's buffer.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE r.text_length (a text, t text, b bool, v varchar, bin bytea, c char(130), n int2, z text)
    WITH (fillfactor = 10);
INSERT INTO r.text_length
SELECT repeat('a', pad), repeat('t', n), true, repeat('é', n / 2), decode(repeat('00', n), 'hex'),
       repeat('c', n % 130), n % 1000, repeat('z', n)
    FROM unnest(ARRAY[0, 1, 2, 125, 126, 127, 128, 129, 255, 256, 10000]) n,
         generate_series(0, 8) pad;
-- out of line, compressed and not
INSERT INTO r.text_length (t) SELECT repeat('x', 1024 * 1024);
INSERT INTO r.text_length (bin)
    SELECT string_agg(sha512(i::text::bytea), '') FROM generate_series(1, 16384) i;
SELECT import_far('text_length');

EXPLAIN (COSTS OFF) SELECT * FROM f.text_length;
SELECT max(length(t)), max(length(bin)), md5(string_agg(t || z, '' ORDER BY a, t)) =
       (SELECT md5(string_agg(t || z, '' ORDER BY a, t)) FROM r.text_length) AS same
    FROM f.text_length;
SELECT * FROM check_scan('r.text_length', 'f.text_length', '{1,4}');
SET tidrange_fdw.force_text = on;
SELECT * FROM check_scan('r.text_length', 'f.text_length', '{1,4}');
RESET tidrange_fdw.force_text;

-- A row that a sort, a hash table or a tuplestore keeps outlives the buffer.
SELECT * FROM check_query(
    'SELECT count(*), count(DISTINCT t), max(length(x.t || x.z)) FROM (SELECT * FROM %s ORDER BY t, z, a OFFSET 0) x',
    'r.text_length', 'f.text_length', '{4}');
SELECT * FROM check_query(
    'SELECT t.z = u.z, count(*), sum(length(t.t)) FROM %1$s t JOIN %1$s u ON t.z = u.z AND t.a = u.a GROUP BY 1',
    'r.text_length', 'f.text_length', '{4}');
