-- The arithmetic of claims, at sizes that no table here has.

-- nothing, little, and what a growing chunk looks like
SELECT * FROM tidrange_fdw_chunks(0);
SELECT * FROM tidrange_fdw_chunks(1, 64);
SELECT * FROM tidrange_fdw_chunks(7, 2, 3);
SELECT * FROM tidrange_fdw_chunks(6, 2, 3);
SELECT * FROM tidrange_fdw_chunks(100, chunk_blocks => 4294967295);
SELECT * FROM tidrange_fdw_chunks(4294967295) LIMIT 8;
SELECT lower, upper, blocks FROM tidrange_fdw_chunks(4294967295, chunk_blocks => 2147483648);

-- What must hold of every division.  lower and upper are written as unsigned
-- block numbers: '(-1,0)' would be a valid tid too.
CREATE FUNCTION check_chunks(nblocks bigint, participants int, chunk_blocks bigint,
    OUT chunks bigint, OUT fault text)
LANGUAGE sql AS $$
    WITH chunk AS (
        SELECT *, substring(lower FROM '^\((\d+),0\)$')::bigint AS lo,
               CASE WHEN upper IS NULL THEN NULL
                    ELSE substring(upper FROM '^\((\d+),0\)$')::bigint END AS hi
        FROM tidrange_fdw_chunks($1, $2, $3) WITH ORDINALITY),
    numbered AS (
        SELECT *, lag(hi) OVER w AS previous_hi, count(*) OVER () AS n
        FROM chunk WINDOW w AS (ORDER BY ordinality))
    SELECT count(*),
           concat_ws(', ',
               CASE WHEN bool_or(lo IS NULL OR (upper IS NOT NULL AND hi IS NULL)) THEN 'malformed' END,
               CASE WHEN bool_or(blocks < 1) THEN 'empty' END,
               CASE WHEN bool_or(hi <> lo + blocks) THEN 'wrong size' END,
               CASE WHEN bool_or(lo <> coalesce(previous_hi, 0)) THEN 'gap or overlap' END,
               CASE WHEN bool_or((upper IS NULL) <> (ordinality = n)) THEN 'wrong open end' END,
               CASE WHEN sum(blocks) <> greatest($1, 1) THEN 'not all' END,
               CASE WHEN bool_or(lo > 4294967295 OR hi > 4294967295) THEN 'no block number' END,
               CASE WHEN bool_or(participant NOT BETWEEN 0 AND $2 - 1) THEN 'no participant' END,
               CASE WHEN bool_or($3 > 0 AND blocks > $3) THEN 'too large' END)
    FROM numbered
$$;

-- adaptive, and fixed so that there are not too many rows
SELECT nblocks, min(chunks) > 0 AS any, string_agg(DISTINCT nullif(fault, ''), '; ') AS faults
FROM unnest(ARRAY[0, 1, 2, 63, 64, 65, 1000, 100000]) nblocks,
     unnest(ARRAY[1, 2, 3, 9, 64]) participants, check_chunks(nblocks, participants, 0)
GROUP BY 1 ORDER BY 1;
SELECT nblocks, sum(blocks) = nblocks AS complete, bool_and(lower = '(' || position || ',0)') AS contiguous,
       count(*) - count(upper) AS open_ends, min(blocks) > 0 AS none_empty, max(blocks), max(participant)
FROM unnest(ARRAY[2147483648, 4294967295]) nblocks,
     LATERAL (SELECT *, sum(blocks) OVER (ROWS UNBOUNDED PRECEDING) - blocks AS position
              FROM tidrange_fdw_chunks(nblocks, 64)) x
GROUP BY 1 ORDER BY 1;
SELECT nblocks, chunk_blocks, chunks, nullif(fault, '') AS fault
FROM unnest(ARRAY[2147483647, 2147483648, 4294967294, 4294967295]) nblocks,
     unnest(ARRAY[16777216, 1000000007, 2147483647, 2147483648, 4294967294, 4294967295]) chunk_blocks,
     check_chunks(nblocks, 3, chunk_blocks);
SELECT nblocks, chunk_blocks, chunks, nullif(fault, '') AS fault
FROM unnest(ARRAY[0, 1, 2, 1000]) nblocks, unnest(ARRAY[1, 2, 999, 1000, 1001]) chunk_blocks,
     check_chunks(nblocks, 8, chunk_blocks);

-- every participant gets its part, and the last chunks are small: they take ten
-- round trips at 20000 blocks a second
SELECT count(*), max(blocks) < 2 * min(blocks) AS even
FROM (SELECT participant, sum(blocks) AS blocks FROM tidrange_fdw_chunks(1000000, 8) GROUP BY 1) x;
SELECT max(blocks) FROM (SELECT blocks FROM tidrange_fdw_chunks(1000000, 8) WITH ORDINALITY
                         ORDER BY ordinality DESC LIMIT 16) x;

-- refused
SELECT * FROM tidrange_fdw_chunks(-1);
SELECT * FROM tidrange_fdw_chunks(4294967296);
SELECT * FROM tidrange_fdw_chunks(1, 0);
SELECT * FROM tidrange_fdw_chunks(1, 1, -1);
SELECT * FROM tidrange_fdw_chunks(1, 1, 4294967296);
SELECT * FROM tidrange_fdw_chunks(NULL);

-- leaves, laid end to end: each is divided on its own, and no number of a block is
-- that of the space, which is larger than 2^32 here
SELECT * FROM tidrange_fdw_leaf_chunks('{3,0,1,5}', 2, 2);
SELECT leaf, lower, upper, blocks
FROM tidrange_fdw_leaf_chunks('{2147483648,2147483648,2147483648}', 2, 1073741824);
SELECT leaf, lower, upper, blocks
FROM tidrange_fdw_leaf_chunks('{4294967295,4294967295}', 1, 4294967295);
SELECT leaf, count(*) > 100 AS many, sum(blocks) = 2147483648 AS complete,
       bool_and(lower = '(' || position || ',0)' AND
                coalesce(upper, '(2147483648,0)') = '(' || position + blocks || ',0)') AS contiguous,
       count(*) - count(upper) AS open_ends, min(blocks) > 0 AS none_empty, max(participant)
FROM (SELECT *, sum(blocks) OVER (PARTITION BY leaf ORDER BY ordinality) - blocks AS position
      FROM tidrange_fdw_leaf_chunks('{2147483648,2147483648,2147483648}', 64) WITH ORDINALITY) x
GROUP BY 1 ORDER BY 1;
-- limits of ctid cut each leaf: the last has no open end then
SELECT * FROM tidrange_fdw_leaf_chunks('{10,2,4}', 1, 4, 3, 8);
SELECT leaf, lower, upper, blocks
FROM tidrange_fdw_leaf_chunks('{2147483648,4294967295,100}', 1, 4294967295, 2147483647, 2147483649);
SELECT * FROM tidrange_fdw_leaf_chunks('{10,2,4}', 1, 4, 10, 20);
SELECT * FROM tidrange_fdw_leaf_chunks('{}');

-- a block of rows that are stored elsewhere, 40 MB: in parts, each line pointer once
SELECT count(*) > 20 AS many, max(participant), sum(blocks), count(*) - count(upper) AS open_ends,
       bool_and(lower = coalesce(previous, '(0,0)')) AS contiguous
FROM (SELECT *, lag(upper) OVER (ORDER BY ordinality) AS previous
      FROM tidrange_fdw_leaf_chunks('{1}', 4, toast_blocks => 5000) WITH ORDINALITY) x;
-- a terabyte on few blocks: the first chunks of each are small
SELECT ordinality, participant, leaf, lower, upper FROM
    tidrange_fdw_leaf_chunks('{1000,1000}', 2, toast_blocks => 134217728) WITH ORDINALITY
    ORDER BY ordinality LIMIT 5;
SELECT count(*) > 1000 AS many, sum(blocks), count(*) - count(upper) AS open_ends,
       bool_and(lower = coalesce(previous, '(0,0)')) AS contiguous
FROM (SELECT *, lag(upper) OVER (PARTITION BY leaf ORDER BY ordinality) AS previous
      FROM tidrange_fdw_leaf_chunks('{10,3}', 2, toast_blocks => 13421772) WITH ORDINALITY) x;
-- a little of it: whole blocks
SELECT participant, lower, upper, blocks FROM tidrange_fdw_leaf_chunks('{1000}', 2, toast_blocks => 50000) LIMIT 3;
