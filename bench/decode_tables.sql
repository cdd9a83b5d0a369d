-- The tables of bench/decode; see there.
CREATE TABLE nothing (
    id int, note text);

CREATE TABLE a (
    id int, note text);

CREATE TABLE b (
    orderkey bigint, partkey int, suppkey int, linenumber int,
    quantity numeric(12,2), price numeric(12,2), discount numeric(12,2), tax numeric(12,2),
    returnflag char(1), linestatus char(1), shipdate date, commitdate date, receiptdate date,
    instruction char(25), mode char(10), comment varchar(44));

CREATE TABLE c (
    id bigint, key uuid, created timestamptz, doc jsonb, payload bytea, tags text[],
    numbers int[], scores float8[], ratio float8, active bool, note text);
