-- What every other test uses: a loopback server that leads back to this
-- database, schemas for the tables there (r) and the foreign ones here (f), and
-- functions that compare the two.  A table of r must be committed before it can
-- be read through the wrapper, which has a session of its own.
CREATE EXTENSION tidrange_fdw;
DO $$
BEGIN
    EXECUTE format('CREATE SERVER loopback FOREIGN DATA WRAPPER tidrange_fdw
                        OPTIONS (host %L, port %L, dbname %L, connections ''4'')',
                   split_part(current_setting('unix_socket_directories'), ',', 1),
                   current_setting('port'), current_database());
END
$$;
CREATE USER MAPPING FOR CURRENT_USER SERVER loopback;
CREATE SCHEMA r;
CREATE SCHEMA f;

-- Makes f.NAME for r.NAME.  Test tables are small: with one block a chunk and
-- eight workers there is something for everybody.
CREATE FUNCTION import_far(name text, chunk_blocks bigint DEFAULT 1,
                           parallel_workers int DEFAULT 8)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('IMPORT FOREIGN SCHEMA r LIMIT TO (%I) FROM SERVER loopback INTO f',
                   name);
    EXECUTE format('ALTER FOREIGN TABLE f.%I OPTIONS (chunk_blocks %L, parallel_workers %L)',
                   name, chunk_blocks, parallel_workers);
END
$$;

-- Runs the query under EXPLAIN ANALYZE: how many workers its Gather planned,
-- whether any was launched, and whether all claimed blocks were read.
CREATE FUNCTION explain_workers(query text, OUT planned int, OUT launched bool,
                                OUT finished bool)
LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) '
        || query INTO plan;
    WITH RECURSIVE node AS (
        SELECT plan->0->'Plan' AS n
        UNION ALL
        SELECT json_array_elements(n->'Plans') FROM node)
    SELECT coalesce(sum((n->>'Workers Planned')::int), 0),
           coalesce(sum((n->>'Workers Launched')::int), 0) > 0,
           coalesce(bool_and((n->>'Blocks Claimed')::bigint =
                             (n->>'Blocks Finished')::bigint), true)
        INTO planned, launched, finished FROM node;
END
$$;

-- The lines of EXPLAIN that are the same in all versions of the server.  (Which
-- side of an equality comes first is not.)
CREATE FUNCTION show_plan(query text, options text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (%s, COSTS OFF) %s', options, query)
    LOOP
        CONTINUE WHEN line ~ 'Params Evaluated|Buffers:|Planning:';
        line := regexp_replace(line, 'InitPlan \w+_(\d+)$', 'InitPlan \1');
        line := regexp_replace(line, ' \((actual rows|returns \$).*\)', '');
        line := regexp_replace(line, 'Join Filter: .*', 'Join Filter: ...');
        RETURN NEXT regexp_replace(line, '\((\$\d+::\w+) = (\w+)\)', '(\2 = \1)');
    END LOOP;
END
$$;

-- Runs a query, whose %s is the table, in every way: on the table itself, on the
-- foreign table without a parallel plan, and with up to 1, 2, 4, 8 workers.
-- Returns each distinct result with the ways that lead to it: one row if they
-- agree.  A way "8/3" had but 3 workers planned, "8/0" had no parallel plan.
-- (EXECUTE, because plpgsql runs the plan of a plain SELECT INTO without
-- workers.)
CREATE FUNCTION check_query(query text, truth text, far text,
                            workers int[] DEFAULT '{1,2,4,8}')
RETURNS TABLE (result text, ways text)
LANGUAGE plpgsql
SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0
SET min_parallel_table_scan_size = 0 SET max_parallel_workers_per_gather = 0
AS $$
DECLARE
    wrapped text := format('SELECT string_agg(q::text, chr(10) ORDER BY q::text) FROM (%s) q', query);
    all_results text[];
    all_ways text[] := ARRAY['local', 'serial'] || workers::text[];
    way record;
    plan record;
    one text;
BEGIN
    EXECUTE format(wrapped, truth) INTO one;
    all_results := ARRAY[one];
    FOR way IN SELECT i, all_ways[i] AS name
               FROM generate_subscripts(all_ways, 1) i WHERE i > 1
    LOOP
        IF way.i > 2 THEN
            PERFORM set_config('max_parallel_workers_per_gather', way.name, true);
            SELECT * INTO plan FROM explain_workers(format(wrapped, far));
            all_ways[way.i] := way.name ||
                CASE WHEN plan.planned <> way.name::int THEN '/' || plan.planned ELSE '' END ||
                CASE WHEN plan.planned > 0 AND NOT plan.launched THEN ' (none launched)' ELSE '' END ||
                CASE WHEN NOT plan.finished AND query !~ 'LIMIT' THEN ' (unfinished)' ELSE '' END;
        END IF;
        EXECUTE format(wrapped, far) INTO one;
        all_results := all_results || one;
    END LOOP;
    RETURN QUERY SELECT u.r, string_agg(u.w, ', ' ORDER BY u.n)
        FROM unnest(all_results, all_ways) WITH ORDINALITY u(r, w, n)
        GROUP BY u.r ORDER BY min(u.n);
END
$$;

-- The same for all rows: their number and a checksum that does not depend on
-- their order, of which only the number is shown.
CREATE FUNCTION check_scan(truth text, far text, workers int[] DEFAULT '{1,2,4,8}')
RETURNS TABLE (rows text, ways text)
LANGUAGE sql AS $$
    SELECT substring(result FROM '\d+'), ways FROM check_query(
        'SELECT count(*), sum(hashtextextended(x_::text, 0)::numeric) FROM %s x_',
        truth, far, workers)
$$;

-- Our sessions on the remote: role and state.  They end when they notice that
-- nobody is there any more, so this waits until there are as many as expected.
CREATE FUNCTION remote_sessions(expected int)
RETURNS TABLE (role text, state text) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..1000 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN expected = (SELECT count(*) FROM pg_stat_activity
                              WHERE application_name LIKE 'tidrange_fdw %'
                                  AND datname = current_database());
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN QUERY SELECT substring(a.application_name FROM 'tidrange_fdw \d+ (.*)'), a.state
        FROM pg_stat_activity a
        WHERE application_name LIKE 'tidrange_fdw %' AND datname = current_database()
        ORDER BY 1;
END
$$;

-- All that the error of a query says, except for the remote SQL.
CREATE FUNCTION error_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
    context text;
BEGIN
    EXECUTE query;
    RETURN NEXT 'no error';
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
    RETURN NEXT SQLSTATE || ': ' || message;
    RETURN QUERY SELECT l FROM unnest(ARRAY['detail: ' || nullif(detail, ''), 'hint: ' || nullif(hint, '')]) l
        WHERE l IS NOT NULL;
    RETURN QUERY SELECT 'context: ' || regexp_replace(l, '^(remote SQL command: \w+).*', '\1 ...')
        FROM regexp_split_to_table(context, '\n') l
        WHERE l ~ 'remote|foreign';
END
$$;
