-- What options the validator accepts, and what it says of those it does not.
-- Nothing here connects.

CREATE ROLE regress_tidrange_option;
GRANT USAGE ON FOREIGN DATA WRAPPER tidrange_fdw TO regress_tidrange_option;

-- our own options, at their bounds
CREATE SERVER option_server FOREIGN DATA WRAPPER tidrange_fdw
    OPTIONS (parallel_workers '0', chunk_blocks '4294967295',
             fdw_startup_cost '0', fdw_tuple_cost '1e-3',
             keep_connections 'off', extensions 'plpgsql');
CREATE FOREIGN TABLE option_table (a int OPTIONS (column_name 'A'), b text)
    SERVER option_server
    OPTIONS (schema_name 'S', table_name 'T', parallel_workers '1024',
             chunk_blocks '1');
SELECT srvoptions FROM pg_foreign_server WHERE srvname = 'option_server';
SELECT ftoptions FROM pg_foreign_table
    WHERE ftrelid = 'option_table'::regclass;

-- libpq's options go where they belong
ALTER SERVER option_server OPTIONS (
    ADD host 'h1,h2', ADD hostaddr '127.0.0.1,::1', ADD port '5432,',
    ADD dbname 'x y=z', ADD options '-c work_mem=1MB',
    ADD application_name 'app', ADD connect_timeout ' 10 ',
    ADD keepalives '1', ADD keepalives_idle '60', ADD keepalives_interval '5',
    ADD keepalives_count '3', ADD tcp_user_timeout '0', ADD sslmode 'prefer',
    ADD sslcert 'c', ADD sslkey 'k', ADD sslrootcert 'r', ADD service 's',
    ADD passfile 'p', ADD target_session_attrs 'any');
CREATE USER MAPPING FOR regress_tidrange_option SERVER option_server
    OPTIONS (user 'u', password 'secret', sslpassword 'secret');

-- values outside the range, or of another kind
ALTER SERVER option_server OPTIONS (SET parallel_workers '-1');
ALTER SERVER option_server OPTIONS (SET parallel_workers '1025');
ALTER SERVER option_server OPTIONS (SET parallel_workers '2.5');
ALTER SERVER option_server OPTIONS (SET parallel_workers '');
ALTER SERVER option_server OPTIONS (SET chunk_blocks '0');
ALTER SERVER option_server OPTIONS (SET chunk_blocks '4294967296');
ALTER SERVER option_server OPTIONS (SET chunk_blocks '99999999999999999999');
ALTER SERVER option_server OPTIONS (SET chunk_blocks '8kB');
ALTER SERVER option_server OPTIONS (SET fdw_startup_cost '-0.1');
ALTER SERVER option_server OPTIONS (SET fdw_tuple_cost 'NaN');
ALTER SERVER option_server OPTIONS (SET fdw_tuple_cost 'infinity');
ALTER SERVER option_server OPTIONS (SET keep_connections 'maybe');
ALTER SERVER option_server OPTIONS (ADD use_remote_estimate 'maybe');
ALTER SERVER option_server OPTIONS (SET port '65536');
ALTER SERVER option_server OPTIONS (SET port '5432,0');
ALTER SERVER option_server OPTIONS (SET connect_timeout '10s');
ALTER SERVER option_server OPTIONS (SET keepalives 'on');
ALTER SERVER option_server OPTIONS (SET extensions '"');
ALTER FOREIGN TABLE option_table OPTIONS (SET schema_name '');
ALTER FOREIGN TABLE option_table OPTIONS (SET parallel_workers 'many');
ALTER FOREIGN TABLE option_table ALTER a OPTIONS (SET column_name '');

-- an extension may come later
ALTER SERVER option_server OPTIONS (SET extensions 'plpgsql, no_such_extension');
ALTER SERVER option_server OPTIONS (SET extensions 'plpgsql');

-- misspelled, misplaced and unknown options
ALTER SERVER option_server OPTIONS (ADD parallel_worker '1');
ALTER SERVER option_server OPTIONS (ADD hots 'x');
ALTER SERVER option_server OPTIONS (ADD password 'secret');
ALTER SERVER option_server OPTIONS (ADD user 'u');
ALTER SERVER option_server OPTIONS (ADD table_name 't');
ALTER FOREIGN TABLE option_table OPTIONS (ADD host 'h');
ALTER FOREIGN TABLE option_table OPTIONS (ADD tablename 't');
ALTER FOREIGN TABLE option_table OPTIONS (ADD fetch_size '100');
ALTER FOREIGN TABLE option_table ALTER b OPTIONS (ADD table_name 't');
ALTER FOREIGN TABLE option_table ALTER b OPTIONS (ADD nonsense 't');
ALTER USER MAPPING FOR regress_tidrange_option SERVER option_server
    OPTIONS (ADD port '5432');
ALTER USER MAPPING FOR regress_tidrange_option SERVER option_server
    OPTIONS (ADD passwort 'secret');
ALTER FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (host 'h');
ALTER FOREIGN DATA WRAPPER tidrange_fdw OPTIONS (nonsense '1');

-- never settable: they would make the session another one than we expect
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['replication', 'client_encoding',
                                'fallback_application_name', 'gssdelegation',
                                'sslkeylogfile', 'scram_client_key']
    LOOP
        BEGIN
            EXECUTE format('ALTER SERVER option_server OPTIONS (ADD %I ''1'')',
                           name);
            RAISE WARNING 'option % was accepted', name;
        EXCEPTION WHEN fdw_invalid_option_name THEN
            NULL;
        END;
    END LOOP;
END
$$;

-- what only superusers may set in a user mapping
GRANT USAGE ON FOREIGN SERVER option_server TO regress_tidrange_option;
SET ROLE regress_tidrange_option;
ALTER USER MAPPING FOR CURRENT_USER SERVER option_server
    OPTIONS (ADD password_required 'false');
ALTER USER MAPPING FOR CURRENT_USER SERVER option_server
    OPTIONS (ADD sslcert 'c');
ALTER USER MAPPING FOR CURRENT_USER SERVER option_server
    OPTIONS (ADD sslkey 'k');
ALTER USER MAPPING FOR CURRENT_USER SERVER option_server
    OPTIONS (ADD password_required 'true');
RESET ROLE;
ALTER USER MAPPING FOR regress_tidrange_option SERVER option_server
    OPTIONS (SET password_required 'maybe');
ALTER USER MAPPING FOR regress_tidrange_option SERVER option_server
    OPTIONS (SET password_required 'false', ADD sslcert 'c', ADD sslkey 'k');

-- a mapping that a superuser prepared cannot be bent by its user, who may
-- only make it stricter
SET ROLE regress_tidrange_option;
ALTER USER MAPPING FOR CURRENT_USER SERVER option_server
    OPTIONS (SET user 'postgres');
ALTER USER MAPPING FOR CURRENT_USER SERVER option_server
    OPTIONS (SET password_required 'true', DROP sslcert, DROP sslkey);
RESET ROLE;

-- the table of options: defaults, and one context for each use
SELECT name, context, type, default_value FROM tidrange_fdw_options()
    WHERE default_value IS NOT NULL OR context !~ '^server$'
    ORDER BY name COLLATE "C";
SELECT count(*) = count(DISTINCT name) AS unique_names,
       bool_and(description <> '') AS described
    FROM tidrange_fdw_options();

DROP SERVER option_server CASCADE;
REVOKE USAGE ON FOREIGN DATA WRAPPER tidrange_fdw FROM regress_tidrange_option;
DROP ROLE regress_tidrange_option;
