-- A remote side for tests of values: every kind of relation, and a table with a
-- column of every common type at its edges.
--
-- The first part is the types.  The destination needs them as well.

CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE ct AS (a int, b text, c date);
ALTER TYPE ct DROP ATTRIBUTE b;
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN arrd AS int[];

-- tables

-- blocks in the middle without a row
CREATE TABLE gap AS SELECT i id, repeat('x', 100) v FROM generate_series(1, 20000) i;
DELETE FROM gap WHERE id BETWEEN 2000 AND 18000;

CREATE TABLE nul AS SELECT NULL::int k FROM generate_series(1, 5000);
CREATE TABLE zero (id int, v text);
CREATE TABLE nocol ();
INSERT INTO nocol SELECT FROM generate_series(1, 300);

CREATE TABLE pt (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (1000);
CREATE TABLE pt2 PARTITION OF pt FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (v);
CREATE TABLE pt2a PARTITION OF pt2 DEFAULT;
CREATE TABLE ptd PARTITION OF pt DEFAULT;
INSERT INTO pt SELECT i, repeat('z', 200) FROM generate_series(0, 2999) i;

CREATE TABLE par (id int, v text);
CREATE TABLE kid (extra int) INHERITS (par);
INSERT INTO kid SELECT i, repeat('k', 500), i FROM generate_series(1, 1000) i;

-- a column that looks like the physical one
CREATE VIEW vw AS SELECT id, v, id AS ctid FROM gap;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM gap;

-- 4 MB behind a single block
CREATE TABLE toast (id int, b bytea);
ALTER TABLE toast ALTER b SET STORAGE EXTERNAL;
INSERT INTO toast SELECT i, convert_to(repeat(chr(65 + i % 26), 100000), 'UTF8') FROM generate_series(1, 40) i;

-- columns that are gone, that came later, that are computed
CREATE TABLE drp (a int, b text, c int);
ALTER TABLE drp DROP COLUMN b;
ALTER TABLE drp ADD d text DEFAULT 'd';
INSERT INTO drp (a, c) SELECT i, -i FROM generate_series(1, 1000) i;
CREATE TABLE gen (a int, g int GENERATED ALWAYS AS (a * 2) STORED, i int GENERATED ALWAYS AS IDENTITY);
INSERT INTO gen (a) SELECT generate_series(1, 100);

CREATE SCHEMA "Sche.ma";
CREATE TABLE "Sche.ma"."Ta""ble é 表" ("Col.1" int, "select" text, "%d %s" int);
CREATE TABLE "Sche.ma"."T" (id int);
CREATE TABLE "Sche.ma".t (id int);
INSERT INTO "Sche.ma"."Ta""ble é 表" SELECT i, 'q', i FROM generate_series(1, 500) i;
INSERT INTO "Sche.ma"."T" VALUES (1);
INSERT INTO "Sche.ma".t VALUES (2), (3);

CREATE TABLE ty (k int, n numeric, n2 numeric(5,2), f4 real, f8 float8, d date, ts timestamp, tz timestamptz, tm time,
    ttz timetz, iv interval, c char(5), v varchar(5), m money, b bit(5), vb varbit, bo bool, o oid, x xid, u uuid, ip inet,
    ci cidr, mac macaddr8, j json, jb jsonb, ba bytea, e mood, ae mood[], co ct, aco ct[], po posint, ad arrd, ia int[],
    ta text[], r int4range, mr int4multirange, tsv tsvector, acl aclitem, pth path, bx box, l pg_lsn, rg regclass, nm name,
    "ch" "char");
INSERT INTO ty VALUES
    (1, 'NaN', 'NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity', '24:00', '24:00+14', '-1 mon +2 days -03:04:05',
     'a', 'a ', 12.34, B'00101', B'', true, 4294967295, '4294967295', '00000000-0000-0000-0000-000000000000', '::1/64',
     '10.0.0.0/8', '08:00:2b:01:02:03:04:05', '{"a":"\u0000"}', '{"a":"\u00e9","b":1e-30}', '\x00ff', 'ok', '{sad,NULL,ok}',
     '(1,2020-01-01)', ARRAY['(1,)'::ct, NULL], 1, '{1,2}', '[0:1]={7,8}', '{{NULL,"NULL"},{"","a,b\"c\\d"}}', 'empty',
     '{[1,3),[5,)}', '''a b'':1A', 'postgres=r/postgres', '[(0,0),(1,1)]', '(1,1),(0,0)', 'FFFFFFFF/FFFFFFFF', 'pg_class',
     'nm', 'x'),
    (2, '-Infinity', -0.01, '-0', 5e-324, '4713-01-01 BC', '4713-01-01 BC', '4714-11-24 BC', '00:00',
     '23:59:59.999999-15:59', '-178000000 years', '', '', -0.01, B'11111', B'1', false, 0, '3',
     'ffffffff-ffff-ffff-ffff-ffffffffffff', '1.2.3.4', '::/0', 'ff:ff:ff:ff:ff:ff:ff:ff', 'null', 'null', '\x', 'sad', '{}',
     '(,)', '{}', 2147483647, '{}', '{}', '{}', '[,)', '{}', '', '=/postgres', '((0,0))', '(0,0),(0,0)', '0/0', 'pg_type', '',
     ''),
    (3, '1e1000', 999.99, 3.4e38, 1.7976931348623157e308, '5874897-12-31', '294276-12-31 23:59:59.999999',
     '294276-12-31 23:59:59.999999+00', '12:00', '12:00+00', '178000000 years', 'é', 'éé', 92233720368547758.07, B'10000',
     B'101', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', '[]', NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     '{{NULL},{NULL}}', '{NULL}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO ty (k, f4, f8, d, ts, tz, iv) VALUES
    (4, 0.1, 0.30000000000000004, '2020-02-03', '2020-02-03 04:05:06.000001', '2020-07-03 04:05:06+00',
     '1 mon -1 day 00:00:00.000001');
INSERT INTO ty (k) SELECT generate_series(5, 2000);

-- what text formats escape
CREATE TABLE esc (v text);
INSERT INTO esc VALUES (E'\\N'), (E'a\\tb'), (E'\t'), (E'\n\r'), (E'\\'), (''), (NULL), (E'\\.'), (E'\b'), ('😀');
