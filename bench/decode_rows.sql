-- The rows of bench/decode, times :scale; see there.
SELECT greatest((:scale * 4000000)::bigint, 1) AS a_rows,
    greatest((:scale * 600000)::bigint, 1) AS b_rows,
    greatest((:scale * 60000)::bigint, 1) AS c_rows
\gset

INSERT INTO a
SELECT i, 'text number ' || i
    FROM generate_series(1::bigint, :a_rows) i;

INSERT INTO b
SELECT i / 4 + 1, i * 7919 % 200000, i * 6007 % 10000, i % 4 + 1,
       i % 50 + 1, (i * 104729 % 10000000) / 100.0, i % 11 / 100.0, i % 9 / 100.0,
       substr('ANR', (i % 3)::int + 1, 1), substr('OF', (i % 2)::int + 1, 1),
       date '1992-01-01' + (i % 2500)::int, date '1992-02-01' + (i % 2400)::int, date '1992-03-01' + (i % 2450)::int,
       (ARRAY['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[i % 4 + 1],
       (ARRAY['TRUCK', 'MAIL', 'SHIP', 'RAIL', 'AIR', 'FOB', 'REG AIR'])[i % 7 + 1],
       left('carefully final deposits ' || md5(i::text), (i % 34)::int + 10)
    FROM generate_series(1::bigint, :b_rows) i;

-- Below the size at which a row would be compressed or moved out of line.
INSERT INTO c
SELECT i, md5(i::text)::uuid, timestamptz '2020-01-01 UTC' + i * interval '17 seconds',
       jsonb_build_object('order', i, 'status', (ARRAY['new', 'paid', 'sent'])[i % 3 + 1], 'gift', i % 10 = 0,
                          'customer', jsonb_build_object('name', 'customer ' || i % 1000, 'mail', 'c' || i % 1000 || '@example.com'),
                          'lines', (SELECT jsonb_agg(jsonb_build_object('part', i * j % 1000, 'price', i % 977 / 10.0, 'count', j))
                                        FROM generate_series(1, 5) j)),
       decode((SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 25) j), 'hex'),
       ARRAY['tag ' || i % 7, 'longer tag ' || i % 1001, 'third'],
       ARRAY(SELECT (i * j % 100003)::int FROM generate_series(1, 20) j),
       ARRAY(SELECT i / (j * 7.0) FROM generate_series(1, 8) j)::float8[],
       i / 7.0, i % 2 = 0, repeat('note on ' || i || '; ', (i % 10 + 5)::int)
    FROM generate_series(1::bigint, :c_rows) i;

VACUUM nothing, a, b, c;
