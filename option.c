/*-------------------------------------------------------------------------
 *
 * option.c
 *	  Options of servers, user mappings, foreign tables and columns.
 *
 * One table lists every option: where it may be set, which values it takes,
 * its default and, if it steers a scan, the field of TableOptions it ends in.
 * The validator, the resolver, the connection parameters and
 * tidrange_fdw_options() all read that table, so that a new option is one line
 * here and the documentation can be tested against what the code accepts.
 *
 * What must hold:
 *
 * - libpq parameters are an allow-list.  A parameter that is not listed could
 *	 turn the session into another kind (replication), change what its bytes
 *	 mean (client_encoding) or write secrets to a file of the server's
 *	 (sslkeylogfile).
 * - A listed libpq parameter is accepted only if the libpq that is loaded
 *	 knows it: else the DDL would pass and every later connection fail.
 * - What lets an ordinary user borrow an identity of the server's operating
 *	 system user is for superusers only, in the validator, because a user may
 *	 alter his own mapping.
 * - No message shows the value of a text option: it may be a password.  Only
 *	 values that failed the check of another kind are shown.
 *
 * libpq is asked for the names of its parameters and for nothing else; it is
 * connection.c that talks to it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <float.h>
#include <limits.h>
#include <math.h>

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "funcapi.h"
#include "libpq-fe.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/varlena.h"

#include "compat.h"
#include "option.h"

/* Where an option may be set: a bit mask. */
#define IN_SERVER	(1 << 0)
#define IN_MAPPING	(1 << 1)
#define IN_TABLE	(1 << 2)
#define IN_COLUMN	(1 << 3)

/* Flags of an option. */
#define FOR_LIBPQ	(1 << 0)	/* goes to libpq as it is */
#define GUARDED		(1 << 1)	/* superusers only, when in a user mapping */

typedef enum OptionKind
{
	OPTION_TEXT,				/* anything; its value is never shown */
	OPTION_IDENTIFIER,			/* anything but the empty string */
	OPTION_BOOLEAN,
	OPTION_TRISTATE,			/* a boolean kept as int: -1 when it is not set */
	OPTION_INTEGER,				/* kept as int */
	OPTION_BIGINT,				/* kept as int64 */
	OPTION_REAL,				/* kept as double */
	OPTION_PORTS,				/* comma-separated, one for each host */
	OPTION_EXTENSIONS			/* comma-separated names */
} OptionKind;

typedef struct OptionDef
{
	const char *name;
	int			contexts;		/* IN_... */
	int			flags;
	OptionKind	kind;
	double		min,			/* of the numeric kinds; exact for int64 up to */
				max;			/* 2^53, which is all that is needed */
	const char *default_text;	/* NULL: none, or computed; see help */
	int			field;			/* offset in TableOptions, or NO_FIELD */
	const char *help;
} OptionDef;

#define NO_FIELD	(-1)
#define FIELD(name)	((int) offsetof(TableOptions, name))

/* The shapes in which libpq's own parameters come. */
#define LIBPQ(name, contexts, help) \
	{name, contexts, FOR_LIBPQ, OPTION_TEXT, 0, 0, NULL, NO_FIELD, help}
#define LIBPQ_GUARDED(name, contexts, help) \
	{name, contexts, FOR_LIBPQ | GUARDED, OPTION_TEXT, 0, 0, NULL, NO_FIELD, help}
#define LIBPQ_INTEGER(name, min, max, help) \
	{name, IN_SERVER, FOR_LIBPQ, OPTION_INTEGER, min, max, NULL, NO_FIELD, help}

static const OptionDef option_table[] = {
	/* what a foreign table stands for */
	{"schema_name", IN_TABLE, 0, OPTION_IDENTIFIER, 0, 0,
		NULL, FIELD(schema_name),
	"remote schema; default: the schema of the foreign table"},
	{"table_name", IN_TABLE, 0, OPTION_IDENTIFIER, 0, 0,
		NULL, FIELD(table_name),
	"remote table; default: the name of the foreign table"},
	{"only", IN_TABLE, 0, OPTION_BOOLEAN, 0, 0,
		"false", FIELD(only),
	"without the rows of partitions and inheriting tables"},
	{"column_name", IN_COLUMN, 0, OPTION_IDENTIFIER, 0, 0,
		NULL, NO_FIELD,
	"remote column; default: the name of the foreign table's column"},

	/* how it is read; a table's value beats its server's */
	{"parallel_workers", IN_SERVER | IN_TABLE, 0, OPTION_INTEGER, 0, 1024,
		NULL, FIELD(parallel_workers),
	"workers planned for a scan, 0 for none; default: by the size of the remote table"},
	{"connections", IN_SERVER | IN_TABLE, 0, OPTION_INTEGER, 1, MAX_CONNECTIONS,
		NULL, FIELD(connections),
	"connections that one process reads a large table from at once, at most; default: "
	CppAsString2(DEFAULT_CONNECTIONS) " in a scan that is not parallel, 1 if the source is on this machine, 1 in each participant of a parallel one"},
	{"chunk_blocks", IN_SERVER | IN_TABLE, 0, OPTION_BIGINT, 1, 4294967295.0,
		NULL, FIELD(chunk_blocks),
	"blocks that a participant claims at a time; default: adapted while the scan runs"},
	{"refuse_row_security", IN_SERVER | IN_TABLE, 0, OPTION_BOOLEAN, 0, 0,
		"false", FIELD(refuse_row_security),
	"fail where remote row-level security hides rows from the remote user"},
	{"fdw_startup_cost", IN_SERVER, 0, OPTION_REAL, 0, DBL_MAX,
		CppAsString2(DEFAULT_FDW_STARTUP_COST), FIELD(fdw_startup_cost),
	"planner cost of starting a scan on one connection"},
	{"fdw_tuple_cost", IN_SERVER, 0, OPTION_REAL, 0, DBL_MAX,
		CppAsString2(DEFAULT_FDW_TUPLE_COST), FIELD(fdw_tuple_cost),
	"planner cost of the transfer of one row"},
	{"use_remote_estimate", IN_SERVER | IN_TABLE, 0, OPTION_TRISTATE, 0, 0,
		NULL, FIELD(use_remote_estimate),
	"whether filters are planned with the help of the remote EXPLAIN; default: only for tables large enough for a parallel scan"},
	{"extensions", IN_SERVER, 0, OPTION_EXTENSIONS, 0, 0,
		NULL, FIELD(extensions),
	"extensions whose immutable functions, operators and types act alike on both servers"},

	/* sessions */
	{"keep_connections", IN_SERVER, 0, OPTION_BOOLEAN, 0, 0,
		"true", FIELD(keep_connections),
	"keep connections open between transactions"},
	{"password_required", IN_MAPPING, GUARDED, OPTION_BOOLEAN, 0, 0,
		"true", NO_FIELD,
	"whether users who are no superusers must authenticate by password; false is for superusers to set"},

	/* libpq's own: where the server is */
	LIBPQ("host", IN_SERVER, "host names or socket directories"),
	LIBPQ("hostaddr", IN_SERVER, "numeric addresses of the hosts"),
	{"port", IN_SERVER, FOR_LIBPQ, OPTION_PORTS, 1, 65535, NULL, NO_FIELD,
	"one port, or one for each host"},
	LIBPQ("dbname", IN_SERVER, "database"),
	LIBPQ("service", IN_SERVER, "section of the connection service file"),
	LIBPQ("target_session_attrs", IN_SERVER, "which kind of server is acceptable"),
	LIBPQ("load_balance_hosts", IN_SERVER, "order in which hosts are tried"),

	/* libpq's own: the session and its wire */
	LIBPQ("application_name", IN_SERVER, "name shown in the remote pg_stat_activity"),
	LIBPQ("options", IN_SERVER, "command-line options of the remote session"),
	LIBPQ_INTEGER("connect_timeout", INT_MIN, INT_MAX,
				  "seconds to wait for a connection, 30 if not set; zero or less waits forever"),
	LIBPQ_INTEGER("keepalives", 0, INT_MAX, "0 turns TCP keepalives off"),
	LIBPQ_INTEGER("keepalives_idle", 0, INT_MAX,
				  "seconds of silence before a TCP keepalive"),
	LIBPQ_INTEGER("keepalives_interval", 0, INT_MAX,
				  "seconds between TCP keepalives"),
	LIBPQ_INTEGER("keepalives_count", 0, INT_MAX,
				  "TCP keepalives lost before the connection counts as dead"),
	LIBPQ_INTEGER("tcp_user_timeout", 0, INT_MAX,
				  "milliseconds that sent data may stay unacknowledged"),

	/* libpq's own: who we are, and who they are */
	LIBPQ("user", IN_MAPPING, "remote role"),
	LIBPQ("password", IN_MAPPING, "its password"),
	LIBPQ("passfile", IN_SERVER, "file of passwords"),
	LIBPQ("require_auth", IN_SERVER, "authentication methods that are acceptable"),
	LIBPQ("channel_binding", IN_SERVER, "use of channel binding"),
	LIBPQ("requirepeer", IN_SERVER, "operating system user behind a socket"),
	LIBPQ("krbsrvname", IN_SERVER, "Kerberos service name"),
	LIBPQ("gsslib", IN_SERVER, "GSS library"),
	LIBPQ("gssencmode", IN_SERVER, "use of GSS encryption"),

	/* libpq's own: TLS */
	LIBPQ("sslmode", IN_SERVER, "use of TLS and verification of the server"),
	LIBPQ("sslnegotiation", IN_SERVER, "how TLS is negotiated"),
	LIBPQ("sslcompression", IN_SERVER, "TLS compression"),
	LIBPQ_GUARDED("sslcert", IN_SERVER | IN_MAPPING,
				  "client certificate; in a user mapping for superusers to set"),
	LIBPQ_GUARDED("sslkey", IN_SERVER | IN_MAPPING,
				  "client key; in a user mapping for superusers to set"),
	LIBPQ("sslpassword", IN_MAPPING, "password of the client key"),
	LIBPQ("sslcertmode", IN_SERVER, "whether a client certificate is sent"),
	LIBPQ("sslrootcert", IN_SERVER, "trusted root certificates"),
	LIBPQ("sslcrl", IN_SERVER, "certificate revocation list"),
	LIBPQ("sslcrldir", IN_SERVER, "directory of certificate revocation lists"),
	LIBPQ("sslsni", IN_SERVER, "whether the host name is sent with TLS"),
	LIBPQ("ssl_min_protocol_version", IN_SERVER, "lowest TLS version"),
	LIBPQ("ssl_max_protocol_version", IN_SERVER, "highest TLS version")
};

TIDRANGE_FUNCTION(tidrange_fdw_validator);
TIDRANGE_FUNCTION(tidrange_fdw_options);

/* ---- the table ---- */

static const OptionDef *
find_option(const char *name)
{
	int			i;

	for (i = 0; i < lengthof(option_table); i++)
	{
		if (strcmp(option_table[i].name, name) == 0)
			return &option_table[i];
	}
	return NULL;
}

/*
 * True unless the option is a libpq parameter that the loaded libpq lacks.
 * The answer cannot change while the process lives, so libpq is asked once.
 */
static bool
is_available(const OptionDef *def)
{
	static bool asked = false;
	static bool known[lengthof(option_table)];

	if (!(def->flags & FOR_LIBPQ))
		return true;

	if (!asked)
	{
		/*
		 * Parsing an empty string yields every parameter name without looking
		 * at the environment and service files, as PQconndefaults would.
		 */
		PQconninfoOption *all = PQconninfoParse("", NULL);
		int			i;
		PQconninfoOption *opt;

		if (all == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("Could not get the connection parameters that libpq knows.")));

		for (i = 0; i < lengthof(option_table); i++)
		{
			known[i] = false;
			for (opt = all; opt->keyword != NULL; opt++)
				known[i] |= (strcmp(opt->keyword, option_table[i].name) == 0);
		}
		PQconninfoFree(all);
		asked = true;
	}

	return known[def - option_table];
}

/* The bit of the catalog whose row is being validated; 0 has no options. */
static int
context_of_catalog(Oid catalog)
{
	switch (catalog)
	{
		case ForeignServerRelationId:
			return IN_SERVER;
		case UserMappingRelationId:
			return IN_MAPPING;
		case ForeignTableRelationId:
			return IN_TABLE;
		case AttributeRelationId:
			return IN_COLUMN;
		default:
			return 0;
	}
}

/* "server, foreign table": the contexts in words. */
static char *
context_names(int contexts)
{
	static const char *const names[] = {
		"server", "user mapping", "foreign table", "column"
	};
	StringInfoData buf;
	int			i;

	initStringInfo(&buf);
	for (i = 0; i < lengthof(names); i++)
	{
		if (contexts & (1 << i))
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "", names[i]);
	}
	return buf.data;
}

static const char *
kind_name(OptionKind kind)
{
	switch (kind)
	{
		case OPTION_TEXT:
			return "text";
		case OPTION_IDENTIFIER:
			return "identifier";
		case OPTION_BOOLEAN:
		case OPTION_TRISTATE:
			return "boolean";
		case OPTION_INTEGER:
		case OPTION_BIGINT:
			return "integer";
		case OPTION_REAL:
			return "real";
		case OPTION_PORTS:
			return "port list";
		case OPTION_EXTENSIONS:
			return "extension list";
	}
	elog(ERROR, "unrecognized option kind: %d", (int) kind);
	return NULL;				/* keep compiler quiet */
}

/* ---- values ---- */

/*
 * What a value of this kind looks like, for an error detail.  The bounds are
 * whole numbers, except the upper one of a real, which there is no need to
 * tell.
 */
static char *
describe_values(const OptionDef *def)
{
	switch (def->kind)
	{
		case OPTION_IDENTIFIER:
			return pstrdup("The value must not be empty.");
		case OPTION_BOOLEAN:
		case OPTION_TRISTATE:
			return pstrdup("The value must be true or false.");
		case OPTION_INTEGER:
		case OPTION_BIGINT:
			return psprintf("The value must be an integer between %.0f and %.0f.",
							def->min, def->max);
		case OPTION_REAL:
			return psprintf("The value must be a finite number not less than %.0f.",
							def->min);
		case OPTION_PORTS:
			return psprintf("The value must be an integer between %.0f and %.0f, or a comma-separated list of them.",
							def->min, def->max);
		case OPTION_EXTENSIONS:
			return pstrdup("The value must be a comma-separated list of extension names.");
		case OPTION_TEXT:
			break;
	}
	elog(ERROR, "unrecognized option kind: %d", (int) def->kind);
	return NULL;				/* keep compiler quiet */
}

static void
report_bad_value(const OptionDef *def, const char *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"",
					def->name, value),
			 errdetail("%s", describe_values(def))));
}

/*
 * A decimal integer with white space around it, as libpq reads its own.
 * parse_int() would take 1e3 and round 2.5, which libpq then refuses when it
 * connects.
 */
static bool
parse_whole(const char *value, double *result)
{
	char	   *end;
	long long	number;

	errno = 0;
	number = strtoll(value, &end, 10);
	if (end == value || errno != 0)
		return false;
	while (isspace((unsigned char) *end))
		end++;
	*result = (double) number;
	return *end == '\0';
}

/* Every port of the list; an empty place stands for the default port. */
static bool
parse_ports(const OptionDef *def, const char *value)
{
	char	   *copy = pstrdup(value);
	char	   *port = copy;
	double		number;

	while (port != NULL)
	{
		char	   *comma = strchr(port, ',');

		if (comma != NULL)
			*comma = '\0';
		if (*port != '\0' &&
			(!parse_whole(port, &number) ||
			 number < def->min || number > def->max))
			return false;
		port = (comma != NULL) ? comma + 1 : NULL;
	}
	pfree(copy);
	return true;
}

/*
 * The OIDs of the extensions named in a list.  An extension may be created
 * after the server, or dropped later: at DDL time that earns a warning, at
 * any other time the name is passed over in silence.
 */
static List *
parse_extensions(const OptionDef *def, const char *value, bool warn)
{
	List	   *names;
	List	   *result = NIL;
	ListCell   *lc;

	if (!SplitIdentifierString(pstrdup(value), ',', &names))
		report_bad_value(def, value);

	foreach(lc, names)
	{
		const char *name = (const char *) lfirst(lc);
		Oid			extension = get_extension_oid(name, true);

		if (OidIsValid(extension))
			result = lappend_oid(result, extension);
		else if (warn)
			ereport(WARNING,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("extension \"%s\" is not installed", name)));
	}
	list_free(names);
	return result;
}

/*
 * Checks a value against the kind and range of its option, and throws if it
 * does not fit.  Returns it as a number where the kind has one, else 0.
 */
static double
check_value(const OptionDef *def, const char *value)
{
	bool		ok = true;
	bool		truth;
	double		number = 0;

	switch (def->kind)
	{
		case OPTION_TEXT:
			break;
		case OPTION_IDENTIFIER:
			ok = (*value != '\0');
			break;
		case OPTION_BOOLEAN:
		case OPTION_TRISTATE:
			ok = parse_bool(value, &truth);
			number = (ok && truth) ? 1 : 0;
			break;
		case OPTION_INTEGER:
		case OPTION_BIGINT:
			ok = parse_whole(value, &number) &&
				number >= def->min && number <= def->max;
			break;
		case OPTION_REAL:
			ok = parse_real(value, &number, 0, NULL) &&
				!isnan(number) && number >= def->min && number <= def->max;
			break;
		case OPTION_PORTS:
			ok = parse_ports(def, value);
			break;
		case OPTION_EXTENSIONS:
			/* looked up, and checked, where the names are needed */
			break;
	}
	if (!ok)
		report_bad_value(def, value);
	return number;
}

/* The text of an option in a list of DefElem; NULL if it is not set. */
static const char *
option_text(List *list, const char *name)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);

		if (strcmp(elem->defname, name) == 0)
			return defGetString(elem);
	}
	return NULL;
}

static bool
option_truth(List *list, const char *name)
{
	const OptionDef *def = find_option(name);
	const char *value = option_text(list, name);

	return check_value(def, value != NULL ? value : def->default_text) != 0;
}

/* ---- the validator ---- */

/*
 * The valid option nearest to a misspelled name, or NULL if none is near.
 * More than four edits, or more than half of the name, is another word.
 */
static const char *
nearest_option(const char *name, int context)
{
	const char *best = NULL;
	int			best_distance = Min(4, (int) strlen(name) / 2);
	int			i;

	/* no option is that long, and the distance costs the product of lengths */
	if (strlen(name) >= NAMEDATALEN)
		return NULL;

	for (i = 0; i < lengthof(option_table); i++)
	{
		const OptionDef *def = &option_table[i];
		int			distance;

		if (!(def->contexts & context) || !is_available(def))
			continue;
		distance = varstr_levenshtein_less_equal(name, strlen(name),
												 def->name, strlen(def->name),
												 1, 1, 1, best_distance, true);
		if (distance < best_distance ||
			(distance == best_distance && best == NULL))
		{
			best = def->name;
			best_distance = distance;
		}
	}
	return best;
}

static char *
list_options(int context)
{
	StringInfoData buf;
	int			i;

	initStringInfo(&buf);
	for (i = 0; i < lengthof(option_table); i++)
	{
		const OptionDef *def = &option_table[i];

		if ((def->contexts & context) && is_available(def))
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "", def->name);
	}
	return buf.data;
}

/* Refuses an option, with the advice that is likely to help most. */
static void
report_invalid_option(const char *name, int context)
{
	const OptionDef *def = find_option(name);
	const char *nearest;
	char	   *hint;

	if (def != NULL && (def->contexts & context))
		hint = pstrdup("The libpq library in use does not know this connection parameter.");
	else if (def != NULL)
		hint = psprintf("The option \"%s\" is valid for: %s.",
						name, context_names(def->contexts));
	else if ((nearest = nearest_option(name, context)) != NULL)
		hint = psprintf("Perhaps you meant the option \"%s\".", nearest);
	else if (context != 0)
		hint = psprintf("Valid options in this context are: %s.",
						list_options(context));
	else
		hint = pstrdup("There are no valid options in this context.");

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 errhint("%s", hint)));
}

/*
 * Refuses to ordinary users what would let them connect as somebody else: a
 * certificate that only the server's operating system user can read, or a
 * login without a password of their own.  The validator sees all options of
 * the mapping, so a mapping that a superuser prepared cannot be bent either;
 * but dropping the option is allowed, since the old mapping is not seen here.
 */
static void
check_guard(const OptionDef *def, int context, double number)
{
	if (context != IN_MAPPING || !(def->flags & GUARDED) || superuser())
		return;
	if (def->kind == OPTION_BOOLEAN && number != 0)
		return;					/* asks for the stricter way */

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 def->kind == OPTION_BOOLEAN ?
			 errmsg("only a superuser may set option \"%s\" to false",
					def->name) :
			 errmsg("only a superuser may set option \"%s\" in a user mapping",
					def->name),
			 errhint("A user mapping with this setting may only be created or changed by a superuser.")));
}

/* tidrange_fdw_validator(options text[], catalog oid), strict */
Datum
tidrange_fdw_validator(PG_FUNCTION_ARGS)
{
	List	   *list = untransformRelOptions(PG_GETARG_DATUM(0));
	int			context = context_of_catalog(PG_GETARG_OID(1));
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);
		const OptionDef *def = find_option(elem->defname);
		const char *value;

		if (def == NULL || !(def->contexts & context) || !is_available(def))
			report_invalid_option(elem->defname, context);

		value = defGetString(elem);
		check_guard(def, context, check_value(def, value));
		if (def->kind == OPTION_EXTENSIONS)
			(void) parse_extensions(def, value, true);
	}

	PG_RETURN_VOID();
}

/*
 * tidrange_fdw_options() returns setof (name text, context text, type text,
 * default_value text, description text): the table, for users and for the
 * test of the documentation.  It shows all libpq parameters, known to the
 * loaded libpq or not, so that its output does not vary by machine.
 */
Datum
tidrange_fdw_options(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	const OptionDef *def;
	Datum		values[5];
	bool		nulls[5] = {false};

	if (SRF_IS_FIRSTCALL())
	{
		TupleDesc	tupdesc;
		MemoryContext oldcontext;

		funcctx = SRF_FIRSTCALL_INIT();
		oldcontext = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		funcctx->tuple_desc = BlessTupleDesc(tupdesc);
		MemoryContextSwitchTo(oldcontext);
	}

	funcctx = SRF_PERCALL_SETUP();
	if (funcctx->call_cntr >= lengthof(option_table))
		SRF_RETURN_DONE(funcctx);

	def = &option_table[funcctx->call_cntr];
	values[0] = CStringGetTextDatum(def->name);
	values[1] = CStringGetTextDatum(context_names(def->contexts));
	values[2] = CStringGetTextDatum(kind_name(def->kind));
	nulls[3] = (def->default_text == NULL);
	values[3] = nulls[3] ? (Datum) 0 : CStringGetTextDatum(def->default_text);
	values[4] = CStringGetTextDatum(def->help);

	SRF_RETURN_NEXT(funcctx,
					HeapTupleGetDatum(heap_form_tuple(funcctx->tuple_desc,
													  values, nulls)));
}

/* ---- the resolver ---- */

/* Stores one value, checked again: no validator saw what pg_upgrade kept. */
static void
store_value(TableOptions *options, const OptionDef *def, const char *value)
{
	char	   *field = (char *) options + def->field;
	double		number = check_value(def, value);

	switch (def->kind)
	{
		case OPTION_TEXT:
		case OPTION_IDENTIFIER:
			*(char **) field = pstrdup(value);
			break;
		case OPTION_BOOLEAN:
			*(bool *) field = (number != 0);
			break;
		case OPTION_TRISTATE:
		case OPTION_INTEGER:
			*(int *) field = (int) number;
			break;
		case OPTION_BIGINT:
			*(int64 *) field = (int64) number;
			break;
		case OPTION_REAL:
			*(double *) field = number;
			break;
		case OPTION_EXTENSIONS:
			*(List **) field = parse_extensions(def, value, false);
			break;
		case OPTION_PORTS:
			elog(ERROR, "option \"%s\" has no field", def->name);
	}
}

static void
store_list(TableOptions *options, List *list)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);
		const OptionDef *def = find_option(elem->defname);

		if (def != NULL && def->field != NO_FIELD)
			store_value(options, def, defGetString(elem));
	}
}

/* Fills *options for a foreign table, in the current memory context. */
void
option_resolve_table(Oid relid, TableOptions *options)
{
	ForeignTable *table = GetForeignTable(relid);
	ForeignServer *server = GetForeignServer(table->serverid);
	int			i;

	memset(options, 0, sizeof(*options));
	options->parallel_workers = -1;
	options->use_remote_estimate = -1;
	options->connections = -1;
	for (i = 0; i < lengthof(option_table); i++)
	{
		const OptionDef *def = &option_table[i];

		if (def->field != NO_FIELD && def->default_text != NULL)
			store_value(options, def, def->default_text);
	}

	/* the table's come last: the nearer setting wins */
	store_list(options, server->options);
	store_list(options, table->options);

	if (options->schema_name == NULL)
		options->schema_name = get_namespace_name(get_rel_namespace(relid));
	if (options->table_name == NULL)
		options->table_name = get_rel_name(relid);
}

/* The name of a foreign table's column on the remote server. */
char *
option_remote_column(Oid relid, AttrNumber attnum)
{
	const char *name = option_text(GetForeignColumnOptions(relid, attnum),
								   "column_name");

	return (name != NULL) ? pstrdup(name) : get_attname(relid, attnum, false);
}

bool
option_keep_connections(ForeignServer *server)
{
	return option_truth(server->options, "keep_connections");
}

bool
option_password_required(UserMapping *user)
{
	return option_truth(user->options, "password_required");
}

/* Appends the libpq parameters of a list at position n; returns the new n. */
static int
append_libpq(List *list, int n, const char **keywords, const char **values)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		DefElem    *elem = lfirst_node(DefElem, lc);
		const OptionDef *def = find_option(elem->defname);

		if (def != NULL && (def->flags & FOR_LIBPQ) && is_available(def))
		{
			keywords[n] = elem->defname;
			values[n] = defGetString(elem);
			n++;
		}
	}
	return n;
}

int
option_connection_params(ForeignServer *server, UserMapping *user, int extra,
						 const char ***keywords, const char ***values)
{
	int			room = list_length(server->options) +
		list_length(user->options) + extra + 1;
	int			n;

	*keywords = (const char **) palloc0(room * sizeof(char *));
	*values = (const char **) palloc0(room * sizeof(char *));

	/* libpq takes the last of two alike: the mapping's sslcert wins */
	n = append_libpq(server->options, 0, *keywords, *values);
	return append_libpq(user->options, n, *keywords, *values);
}
