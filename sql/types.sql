-- Values of all types arrive as they are, whether they travel in binary or as
-- text; the settings are such that careless text would be read otherwise.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
SET timezone = 'Asia/Kolkata';
SET extra_float_digits = 0;
SET bytea_output = 'escape';
SET client_min_messages = warning;

CREATE TYPE r.mood AS ENUM ('sad', 'ok', 'so "so"');
CREATE TYPE r.pair AS (a int, b text);
CREATE TYPE r.cut AS (a int, gone int, b text);
ALTER TYPE r.cut DROP ATTRIBUTE gone;
CREATE DOMAIN r.positive AS int CHECK (value > 0);
CREATE DOMAIN r.short AS char(4);
CREATE DOMAIN r.yes AS bool;

-- The most common types, which travel in binary.
CREATE TABLE r.common (
    id int, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, b bool, n numeric,
    n2 numeric(10, 2), t text, vc varchar, vc9 varchar(9), c char(5), c1 char,
    bin bytea, d date, ts timestamp, tz timestamptz, ts0 timestamp(0), u uuid)
    WITH (fillfactor = 10);
INSERT INTO r.common (id) SELECT generate_series(1, 40);
INSERT INTO r.common
SELECT 100 + i, i, -i, i * 10000000000, i / 3.0, i / 7.0, i % 2 = 0, i / 3.0, i / 3.0,
       'téxt ' || i, E'a\\b\t' || i, left('nine' || i, 9), i, '', decode(to_hex(i + 16), 'hex'),
       date '2000-01-01' + i, timestamp '2000-01-01' + i * interval '1.5 s',
       timestamptz '2000-01-01 UTC' + i * interval '1.5 s', timestamp '2000-01-01',
       md5(i::text)::uuid
    FROM generate_series(1, 100) i;
INSERT INTO r.common (id, i2, i4, i8) VALUES
    (301, -32768, -2147483648, -9223372036854775808),
    (302, 32767, 2147483647, 9223372036854775807);
INSERT INTO r.common (id, f4, f8, n, n2) VALUES
    (303, 'NaN', 'NaN', 'NaN', 'NaN'), (304, 'Infinity', 'Infinity', 'Infinity', 0),
    (305, '-Infinity', '-Infinity', '-Infinity', -0.01), (306, '-0', '-0', '0.000', 99999999.99),
    (307, 1.17549435e-38, 5e-324, '1e-1000', NULL), (308, 3.4028235e38, 1.7976931348623157e308, '1e1000', NULL),
    (309, 0.1, 0.1::float8 + 0.2, ('1' || repeat('0', 131071))::numeric, NULL),
    (310, NULL, NULL, ('-0.' || repeat('0', 16382) || '1')::numeric, NULL);
INSERT INTO r.common (id, d, ts, tz) VALUES
    (311, '4713-01-01 BC'::date, '4713-01-01 00:00:00 BC', '4713-01-01 00:00:00+00 BC'),
    (312, '0044-03-15 BC', '0044-03-15 12:34:56.789 BC', '0044-03-15 12:34:56.789+00 BC'),
    (313, make_date(5874897, 12, 31), '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00'),
    (314, 'infinity', 'infinity', 'infinity'), (315, '-infinity', '-infinity', '-infinity');
INSERT INTO r.common (id, t, vc, vc9, c, c1, bin) VALUES
    (316, '', '', '', '', ' ', ''), (317, 'x  ', 'x  ', 'x  ', 'x  ', 'x', '\x00ff00'),
    (318, '\N', 'NULL', '"', E'\\.', '\', '\x5c'), (319, E'\n\r\t\b\f', E'\x01\x1f', '日本語', 'éééé', '𝄞', '\xc3'),
    (320, repeat('é', 500), repeat('''', 200), NULL, NULL, NULL, decode(repeat('00', 500), 'hex'));

-- Others, some of which travel as text.
CREATE TABLE r.others (
    id int, m money, iv interval, tm time, tmz timetz, bt bit(3), vb varbit, nm name,
    ch "char", o oid, x xid, td tid, js json, jb jsonb, jp jsonpath, xm xml,
    ip inet, cd cidr, mac macaddr, mac8 macaddr8, pt point, ln line, ls lseg, bx box,
    pa path, pg polygon, ci circle, tv tsvector, tq tsquery, lsn pg_lsn,
    r4 int4range, rn numrange, rt tstzrange, mr datemultirange, ac aclitem, reg regtype,
    ai int[], at text[], an numeric[], ad date[], abp char(5)[], md r.mood, amd r.mood[],
    pr r.pair, apr r.pair[], ct r.cut, ps r.positive, sh r.short, ye r.yes, aps r.positive[])
    WITH (fillfactor = 10);
INSERT INTO r.others (id) SELECT -generate_series(1, 240);
INSERT INTO r.others VALUES
    (101, '-1234.56', '1 mon -2 days 03:04:05.006', '24:00', '12:34:56.789+05:30', b'101', b'', 'name',
     'c', 4294967295, '4294967295', '(4294967295,65535)', ' {"a": "\u0000", "a":1}', '{"b": [1, null, "\\\""]}',
     '$.a[*] ? (@ > 1)', '<a>é</a>', '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05',
     '(1,2)', '{1,2,3}', '[(0,0),(1,1)]', '(1,1),(0,0)', '((0,0),(1,1))', '((0,0),(1,1),(1,0))', '<(0,0),1.5>',
     'a:1A b''c', 'a & !b:*', '16/B374D848', '[1,5)', '(,1.5]', '["2000-01-01 00:00+00",)', '{[2000-01-01,2000-02-01)}',
     (SELECT relacl[1] FROM pg_class WHERE oid = 'pg_class'::regclass), 'character varying',
     '[0:1]={7,8}', '{"",NULL,"NULL","a\"b\\c,{}"}', '{NaN,1.50,-Infinity}', '{infinity,01/02/2003}', '{a,"b  "}',
     'so "so"', '{ok,NULL,"so \"so\""}', '(1,"a,(b)")', ARRAY[(1, NULL), (NULL, '')]::r.pair[], '(5,x)',
     7, 'ab', true, '{1,2}'),
    (102, '92233720368547758.07', '-178000000 years', '00:00', '00:00-15:59:59', NULL, b'1', repeat('é', 31),
     '', 0, '0', '(0,0)', '[]', '"\u00e9"', NULL, NULL, '1.2.3.4', NULL, NULL, NULL,
     '(NaN,Infinity)', NULL, NULL, NULL, '[(0,0),(1,1)]', NULL, '<(0,0),0>',
     '', '', '0/0', 'empty', 'empty', '(-infinity,infinity)', '{}', NULL, '-',
     '{{NULL},{NULL}}', '{}', '{}', '{}', '{}', NULL, '{}', '(,)', '{}', '(,)', NULL, '', false, '{NULL}');

SELECT import_far('common');
SELECT import_far('others');
\pset format unaligned
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM f.common;
EXPLAIN (VERBOSE, COSTS OFF) SELECT md, pr, sh, ye, ac FROM f.others;
\pset format aligned
SELECT * FROM check_scan('r.common', 'f.common');
SELECT * FROM check_scan('r.others', 'f.others');

-- What looks the same may differ in its bytes.
CREATE FUNCTION bytes(name text) RETURNS text LANGUAGE sql AS $$
    SELECT '(SELECT float4send(f4), float8send(f8), numeric_send(n), bpcharsend(c),
                    octet_length(c), textsend(t), date_send(d), b::int, u || '''' FROM ' || name || ')'
$$;
SELECT * FROM check_scan(bytes('r.common'), bytes('f.common'), '{2}');
ALTER SERVER loopback OPTIONS (ADD fdw_startup_cost '0', ADD fdw_tuple_cost '10');
SELECT * FROM check_query(
    'SELECT array_dims(ai), array_dims(at), pg_typeof(abp[1]), octet_length(sh), ct, (pr).b IS NULL, amd[3] > ''ok''
     FROM %s WHERE id > 100', 'r.others', 'f.others', '{2}');
ALTER SERVER loopback OPTIONS (DROP fdw_startup_cost, DROP fdw_tuple_cost);

-- the same, everything as text
SET tidrange_fdw.force_text = on;
\pset format unaligned
EXPLAIN (VERBOSE, COSTS OFF) SELECT i4, b, c, n FROM f.common;
\pset format aligned
SELECT * FROM check_scan('r.common', 'f.common', '{2}');
SELECT * FROM check_scan('r.others', 'f.others', '{2}');
SELECT * FROM check_scan(bytes('r.common'), bytes('f.common'), '{2}');
