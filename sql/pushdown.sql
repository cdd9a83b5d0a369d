-- Which quals go to the remote server, how they are written, and that they
-- find there what they find here.  Uses the loopback server of init.sql.

CREATE SCHEMA pushdown;
SET search_path = pushdown, public;
SET max_parallel_workers_per_gather = 0;

-- settings under which a careless literal would be misread
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
SET extra_float_digits = 0;
SET timezone = 'Asia/Kolkata';
SET lc_monetary = 'C';

CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE base (
    id int, big int8, num numeric, dbl float8, bool bool,
    txt text, ctx text COLLATE "C", vch varchar(10), chr char(5),
    dat date, ts timestamp, tz timestamptz, iv interval, bin bytea,
    arr int[], tar text[], js jsonb, mon money, moo mood, reg regclass,
    rng int4range, bts bit(3), "Col.1" int, "system_user" text);
INSERT INTO base
    SELECT i, i, i / 3.0, i * 0.1::float8, i % 3 = 0,
           chr(97 + i % 26) || repeat('A', i % 3), chr(65 + i % 50), 'v' || i,
           'c' || i % 10,
           date '2020-01-01' + i, timestamp '2020-01-01' + i * interval '1 h',
           timestamptz '2020-01-01 00:00+00' + i * interval '1 h',
           i * interval '1 day 1 min', decode(lpad(to_hex(i), 4, '0'), 'hex'),
           ARRAY[i, i + 1], ARRAY[chr(97 + i % 26), 'x\y'],
           jsonb_build_object('a', i, 'b', chr(97 + i % 26)),
           i::numeric::money, (ARRAY['sad', 'ok'])[1 + i % 2]::mood, 'pg_class',
           int4range(i, i + 5), (i % 8)::bit(3), i, 'u' || i % 2
    FROM generate_series(1, 200) i;
INSERT INTO base (id) VALUES (1000);
INSERT INTO base (id, num, dbl, txt, chr, dat, ts, tz) VALUES
    (1001, 'NaN', 'NaN', E'a\\b''c', 'a', 'infinity', '-infinity', 'infinity'),
    (1002, -5, '-Infinity', '%_', '', '0044-03-15 BC', '0044-03-15 BC',
     '0044-03-15 00:00+00 BC');

CREATE FOREIGN TABLE far (
    id int, big int8, num numeric, dbl float8, bool bool,
    txt text, ctx text COLLATE "C", vch varchar(10), chr char(5),
    dat date, ts timestamp, tz timestamptz, iv interval, bin bytea,
    arr int[], tar text[], js jsonb, mon money, moo mood, reg regclass,
    rng int4range, bts bit(3), "Col.1" int, "System" text
    OPTIONS (column_name 'system_user'))
    SERVER loopback OPTIONS (schema_name 'pushdown', table_name 'base');

-- What the plan sends of a qual and what it keeps, and whether the rows found
-- are those of the local table.
CREATE FUNCTION pushed(qual text, OUT sent text, OUT kept text, OUT same bool)
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    here text;
    there text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM far WHERE '
        || qual
    LOOP
        sent := coalesce(sent, substring(line FROM 'Remote SQL: .* WHERE (.*)'));
        kept := coalesce(kept, substring(line FROM ' Filter: (.*)'));
    END LOOP;
    EXECUTE format('SELECT md5(string_agg(id::text, '','' ORDER BY id)) FROM base WHERE %s',
                   replace(qual, '"System"', '"system_user"')) INTO here;
    EXECUTE format('SELECT md5(string_agg(id::text, '','' ORDER BY id)) FROM far WHERE %s',
                   qual) INTO there;
    same := here IS NOT DISTINCT FROM there;
END
$$;

\pset format unaligned
\pset null '-'

-- literals
SELECT qual, pushed.* FROM unnest(ARRAY[
    $$id = 5$$, $$id > -5$$, $$big = 5000000000$$, $$num = 'NaN'$$,
    $$num < -1.5$$, $$dbl = 0.1::float8 * 3$$, $$dbl = '-Infinity'$$,
    $$txt = E'a\\b''c'$$, $$chr = 'c5 '$$, $$chr = 'c5'::char(5)$$,
    $$dat = 'infinity'$$, $$dat < '0001-01-01'$$, $$dat = '03-02-2020'$$,
    $$ts = '-infinity'$$, $$tz > '2020-01-05 10:00+02'$$,
    $$tz < '0001-01-01 00:00+00'$$, $$iv > '3 1:02:03.5'$$, $$bin < '\x0005'$$,
    $$bts = b'101'$$, $$rng = int4range(3, 8)$$, $$tar = ARRAY['a', 'x\y']$$,
    $$id = ANY (NULL::int[])$$, $$"Col.1" = 5$$, $$"System" = 'u1'$$]) qual, pushed(qual);

-- kinds of expressions
SELECT qual, pushed.* FROM unnest(ARRAY[
    $$bool$$, $$NOT bool$$, $$bool IS NOT TRUE$$, $$bool IS UNKNOWN$$,
    $$id IN (1, 2, 3)$$, $$id NOT IN (1, 2, 3)$$, $$5 = ANY (arr)$$,
    $$arr[1] = 5$$, $$arr[:1] = '{5}'$$, $$ARRAY[id, id + 1] = arr$$,
    $$id % 7 = 3 OR - id = -5$$, $$id IS DISTINCT FROM 5$$,
    $$nullif(id, 5) IS NULL$$, $$coalesce(big, 0) = 0$$,
    $$CASE id WHEN 5 THEN true WHEN 6 THEN bool ELSE false END$$,
    $$CASE WHEN id > 5 THEN txt ELSE 'q' END = 'q'$$,
    $$id::numeric(5,1) = 7.0$$, $$vch::char(2) = 'v5'$$, $$dat + 1 = '2020-02-03'$$,
    $$js @> '{"a": 5}'$$, $$js->>'b' = 'c'$$, $$rng @> 5$$,
    $$extract(day FROM ts) = 3$$, $$date_trunc('month', ts) = '2020-01-01'$$,
    $$ctid < '(1,0)' AND id < 50$$, $$moo IS NULL$$]) qual, pushed(qual);

-- text: equality and patterns go, order and letter case only under "C"
SELECT qual, pushed.* FROM unnest(ARRAY[
    $$txt = 'a'$$, $$txt <> 'a'$$, $$txt IN ('a', 'b')$$, $$txt LIKE 'a%'$$,
    $$left(txt, 1) || 'x' = 'ax'$$, $$vch = 'v5'$$,
    $$txt < 'b'$$, $$chr > 'c5'$$, $$txt ILIKE 'A%'$$, $$txt ~ '^a'$$,
    $$lower(txt) = 'a'$$, $$ctx < txt COLLATE "C"$$,
    $$ctx < 'D'$$, $$txt COLLATE "C" < 'b'$$, $$txt COLLATE "POSIX" < 'b'$$,
    $$lower(ctx) = 'a'$$, $$ctx ~ '^[A-C]'$$]) qual, pushed(qual);

-- what depends on the server, the settings, the time or local objects
SELECT qual, pushed.* FROM unnest(ARRAY[
    $$moo = 'ok'$$, $$moo < 'ok'$$, $$mon = '5'::money$$, $$reg = 'pg_class'::regclass$$,
    $$js->'b' < '"c"'$$, $$js @? '$.a'$$, $$arr < '{5,6}'$$, $$chr(id) = 'A'$$,
    $$ts > tz$$, $$tz > now()$$, $$id > random() * 0$$, $$id::text = '5'$$,
    $$ts AT TIME ZONE 'UTC' > '2020-01-05 10:00+02'$$,
    $$greatest(id, 5) = 5$$, $$(id, big) < (5, 5)$$]) qual, pushed(qual);
SELECT count(*) FROM far WHERE tableoid = 'far'::regclass;

-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE p(int, text, timestamptz, text[]) AS
    SELECT id FROM far
    WHERE id >= $1 AND id + 1 > $1 AND txt = $2 AND tz > $3 AND txt = ANY ($4)
    ORDER BY id;
EXECUTE p(-1, 'a', '2020-01-01 00:00+00', '{a,b}');
EXECUTE p(27, 'a', '2020-01-01 00:00+00', '{a,b}');
EXECUTE p(1, 'a', NULL, '{a,b}');
EXECUTE p(1, E'a\\b''c', '2020-01-01 00:00+00', ARRAY[E'a\\b''c']);
SELECT g, (SELECT count(*) FROM far WHERE id > g) FROM generate_series(0, 2) g;
SELECT count(*) FROM far WHERE id < (SELECT 100);

SET client_min_messages = warning;
DROP SCHEMA pushdown CASCADE;
