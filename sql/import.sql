-- IMPORT FOREIGN SCHEMA brings the columns as they are, and no more than asked.
SET client_min_messages = warning;
CREATE SCHEMA "Imp.ort";
CREATE TYPE "Imp.ort"."Mood" AS ENUM ('sad', 'ok');
CREATE TABLE "Imp.ort".plain (id int PRIMARY KEY, gone int, n numeric(10, 2) NOT NULL DEFAULT 1.5,
    t text DEFAULT 'a''b\c', ct text COLLATE "C", vc varchar(9) COLLATE "POSIX" NOT NULL,
    ts timestamptz(3) DEFAULT now(), a int[], m "Imp.ort"."Mood", twice int GENERATED ALWAYS AS (id * 2) STORED,
    ident int GENERATED ALWAYS AS IDENTITY);
ALTER TABLE "Imp.ort".plain DROP gone;
CREATE TABLE "Imp.ort"."Ta""ble é" ("Col.1" int, "select" text, "system_user" int, """" int);
CREATE TABLE "Imp.ort".no_columns ();
CREATE TABLE "Imp.ort".parent (id int) PARTITION BY RANGE (id);
CREATE TABLE "Imp.ort".part1 PARTITION OF "Imp.ort".parent FOR VALUES FROM (0) TO (10);
CREATE VIEW "Imp.ort".v AS SELECT id FROM "Imp.ort".plain;
CREATE MATERIALIZED VIEW "Imp.ort".mv AS SELECT 1 AS one;
CREATE SEQUENCE "Imp.ort".seq;
CREATE FOREIGN TABLE "Imp.ort".ft (id int) SERVER loopback OPTIONS (schema_name 'Imp.ort', table_name 'plain');
INSERT INTO "Imp.ort".plain (id, vc, a, m) VALUES (1, 'one', '{1}', 'ok');
INSERT INTO "Imp.ort"."Ta""ble é" VALUES (1, 'x', 2, 3);

-- What came: columns and options, in attnum order.
CREATE VIEW imported AS
    SELECT c.relname AS "table", a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
           a.attnotnull AS nn, nullif(co.collname, 'default') AS "collation", a.attgenerated AS gen,
           pg_get_expr(d.adbin, d.adrelid) AS "default", a.attfdwoptions AS options
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'import'
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    LEFT JOIN pg_collation co ON co.oid = a.attcollation
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    ORDER BY c.relname COLLATE "C", a.attnum;
CREATE VIEW imported_tables AS
    SELECT c.relname, ftoptions FROM pg_foreign_table t JOIN pg_class c ON c.oid = t.ftrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'import'
    ORDER BY c.relname COLLATE "C";

CREATE SCHEMA import;
IMPORT FOREIGN SCHEMA "Imp.ort" FROM SERVER loopback INTO import;
SELECT * FROM imported_tables;
SELECT * FROM imported;
SELECT * FROM check_scan('"Imp.ort".plain', 'import.plain', '{2}');
SELECT * FROM check_scan('"Imp.ort"."Ta""ble é"', 'import."Ta""ble é"', '{2}');
SELECT "Col.1", "select", "system_user", """" FROM import."Ta""ble é" WHERE "system_user" = 2 AND "select" = 'x';
SELECT * FROM import.v;
SELECT * FROM import.mv;
SELECT count(*) FROM import.no_columns;
SELECT count(*) FROM import.parent;
SELECT id, twice FROM import.ft JOIN import.plain USING (id);

DROP SCHEMA import CASCADE;
CREATE SCHEMA import;
IMPORT FOREIGN SCHEMA "Imp.ort" LIMIT TO (plain, part1, "Plain", nonsense) FROM SERVER loopback INTO import
    OPTIONS (import_collate 'false', import_not_null 'false', import_default 'true', import_generated 'false');
SELECT "table" FROM imported GROUP BY 1 ORDER BY 1;
SELECT name, nn, "collation", gen, "default" FROM imported WHERE "table" = 'plain';
DROP SCHEMA import CASCADE;
CREATE SCHEMA import;
IMPORT FOREIGN SCHEMA "Imp.ort" EXCEPT (plain, v, mv, ft) FROM SERVER loopback INTO import;
SELECT relname FROM imported_tables;

-- in a transaction that has read already
BEGIN;
SELECT count(*) FROM import.parent;
IMPORT FOREIGN SCHEMA "Imp.ort" LIMIT TO (plain) FROM SERVER loopback INTO import;
SELECT count(*) FROM import.plain;
DECLARE c CURSOR FOR SELECT id FROM import.plain;
FETCH FROM c;
IMPORT FOREIGN SCHEMA "Imp.ort" LIMIT TO (v) FROM SERVER loopback INTO import;
ROLLBACK;
SELECT relname FROM imported_tables;

-- refused
IMPORT FOREIGN SCHEMA "Imp.ort" FROM SERVER loopback INTO import;
IMPORT FOREIGN SCHEMA nonsense FROM SERVER loopback INTO import;
IMPORT FOREIGN SCHEMA "imp.ort" FROM SERVER loopback INTO import;
IMPORT FOREIGN SCHEMA "Imp.ort" FROM SERVER loopback INTO import OPTIONS (import_colate 'true');
IMPORT FOREIGN SCHEMA "Imp.ort" FROM SERVER loopback INTO import OPTIONS (import_collate 'maybe');
DROP SCHEMA import, "Imp.ort" CASCADE;
