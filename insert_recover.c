/*-------------------------------------------------------------------------
 *
 * insert_recover.c
 *	  What makes a parallel insert all or nothing across a crash: markers, and
 *	  the function that ends what a crash has left.
 *
 * Each worker prepares its transaction under the name
 *
 *	 tidrange_fdw_<call>_<part>
 *
 * and part 0 also inserts a row, the marker, into a table of the extension.  The
 * caller commits part 0 first, then the others, then removes the marker.  So after
 * a crash: if the marker is visible, part 0 is committed and the others have to
 * follow; if it is not, none is, and all are rolled back.
 *
 * Whether a call is still going on is told by a lock that its caller and workers
 * hold in share mode: who gets it exclusively is alone with what is left.
 *
 * The marker table belongs to the owner of the extension, and users have no rights
 * to it.  It is accessed in the owner's name, by statements that are fixed here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "access/twophase.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "insert.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

TIDRANGE_FUNCTION(tidrange_fdw_recover_inserts);

#define MARKER_TABLE	"tidrange_fdw_insert_marker"

/* Advisory locks of users have 1 or 2 here. */
#define CALL_LOCK_CLASS	0x7466

/* See insert_reach(). */
#define WAIT_FILE		"gate.shut"

char	   *insert_crash_point = NULL;

/*
 * A point at which a test may let a process die; number -1: there is only one.
 * With "wait " before its name, the process waits there while a file stands in the
 * data directory.
 */
void
insert_reach(const char *point, int number)
{
	const char *wanted = insert_crash_point;
	char		name[64];

	if (wanted == NULL || wanted[0] == '\0')
		return;
	if (number < 0)
		strlcpy(name, point, sizeof(name));
	else
		snprintf(name, sizeof(name), "%s %d", point, number);
	if (strcmp(name, wanted) == 0)
		kill(getpid(), SIGKILL);
	if (strncmp(wanted, "wait ", 5) != 0 || strcmp(name, wanted + 5) != 0)
		return;
	while (access(WAIT_FILE, F_OK) == 0)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(10000);
	}
}

/* ----------
 * Names and the lock
 * ----------
 */

void
insert_format_id(uint64 call_id, char *id)
{
	snprintf(id, INSERT_ID_SIZE, "%016llx", (unsigned long long) call_id);
}

void
insert_format_gid(uint64 call_id, int part, char *gid)
{
	char		id[INSERT_ID_SIZE];

	insert_format_id(call_id, id);
	snprintf(gid, INSERT_GID_SIZE, INSERT_GID_PREFIX "%s_%d", id, part);
}

void
insert_call_lock(uint64 call_id, LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) (call_id >> 32),
						 (uint32) call_id, CALL_LOCK_CLASS);
}

/* ----------
 * Markers
 * ----------
 */

/* The table in the schema of that function, which the extension also made. */
Oid
insert_marker_table(Oid function)
{
	Oid			table = get_relname_relid(MARKER_TABLE,
										  get_func_namespace(function));

	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" of the extension does not exist",
						MARKER_TABLE)));
	return table;
}

static Oid
owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

static char *
table_name(Oid table)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(table)),
									  get_rel_name(table));
}

/*
 * Run a statement about one call on the marker table, in its owner's name.  %s in
 * the statement is the table; $1 the call.  Returns the number of rows.
 */
static uint64
marker_sql(Oid table, const char *statement, const char *id, bool read_only)
{
	char	   *name = table_name(table);
	StringInfoData sql;
	Oid			types[1] = {TEXTOID};
	Datum		values[1];
	Oid			user;
	int			context;
	uint64		rows;

	initStringInfo(&sql);
	appendStringInfo(&sql, statement, name);
	values[0] = CStringGetTextDatum(id);
	SPI_connect();
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner_of(table),
						   context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
	if (SPI_execute_with_args(sql.data, 1, types, values, NULL, read_only, 0) < 0)
		elog(ERROR, "could not access table %s", name);
	SetUserIdAndSecContext(user, context);
	rows = SPI_processed;
	SPI_finish();
	return rows;
}

void
insert_marker_add(Oid table, uint64 call_id)
{
	char		id[INSERT_ID_SIZE];

	insert_format_id(call_id, id);
	(void) marker_sql(table, "INSERT INTO %s (call) VALUES ($1)", id, false);
}

void
insert_marker_remove(Oid table, uint64 call_id)
{
	char		id[INSERT_ID_SIZE];

	insert_format_id(call_id, id);
	(void) marker_sql(table, "DELETE FROM %s WHERE call OPERATOR(pg_catalog.=) $1",
					  id, false);
}

/* ----------
 * Recovery
 * ----------
 */

/*
 * Names of one column of a query's rows, in the caller's context.  The query is
 * run in the name of that user, or of our own (InvalidOid).
 */
static List *
query_names(const char *sql, Oid as_user)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *names = NIL;
	Oid			user;
	int			security;
	uint64		i;

	SPI_connect();
	GetUserIdAndSecContext(&user, &security);
	if (OidIsValid(as_user))
		SetUserIdAndSecContext(as_user,
							   security | SECURITY_LOCAL_USERID_CHANGE);
	if (SPI_execute(sql, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list what an insert has left");
	SetUserIdAndSecContext(user, security);
	for (i = 0; i < SPI_processed; i++)
	{
		char	   *name = SPI_getvalue(SPI_tuptable->vals[i],
										SPI_tuptable->tupdesc, 1);
		MemoryContext oldcontext = MemoryContextSwitchTo(context);

		names = lappend(names, pstrdup(name));
		MemoryContextSwitchTo(oldcontext);
	}
	SPI_finish();
	return names;
}

/* Prepared parts, of all calls or one, that this user may end. */
#define PARTS_QUERY \
	" FROM pg_catalog.pg_prepared_xacts " \
	"WHERE database OPERATOR(pg_catalog.=) pg_catalog.current_database() " \
	"AND gid OPERATOR(pg_catalog.~) '^" INSERT_GID_PREFIX "[0-9a-f]{16}_[0-9]+$' "

#define MINE_CONDITION \
	"AND (owner OPERATOR(pg_catalog.=) CURRENT_USER OR " \
	"(SELECT rolsuper FROM pg_catalog.pg_roles " \
	"WHERE rolname OPERATOR(pg_catalog.=) CURRENT_USER)) "

/* Nobody else works on the call from now until the end of the transaction. */
static bool
is_left(const char *id)
{
	LOCKTAG		tag;

	insert_call_lock(strtoull(id, NULL, 16), &tag);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

static void
report_part(ReturnSetInfo *rsinfo, const char *gid, const char *action)
{
	Datum		values[2];
	bool		nulls[2] = {false, false};

	values[0] = CStringGetTextDatum(gid);
	values[1] = CStringGetTextDatum(action);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* End the parts of one call, which has been left. */
static void
recover_call(Oid table, const char *id, ReturnSetInfo *rsinfo)
{
	bool		commit = marker_sql(table, "SELECT 1 FROM %s WHERE call OPERATOR(pg_catalog.=) $1",
									id, false) > 0;
	List	   *gids = query_names(psprintf("SELECT gid" PARTS_QUERY MINE_CONDITION
											"AND gid OPERATOR(pg_catalog.~) '_%s_' ORDER BY 1", id),
								   InvalidOid);
	ListCell   *lc;

	foreach(lc, gids)
	{
		FinishPreparedTransaction(lfirst(lc), commit);
		report_part(rsinfo, lfirst(lc), commit ? "committed" : "rolled back");
	}
	if (commit &&
		query_names(psprintf("SELECT gid" PARTS_QUERY
							 "AND gid OPERATOR(pg_catalog.~) '_%s_'", id),
					InvalidOid) == NIL)
		(void) marker_sql(table, "DELETE FROM %s WHERE call OPERATOR(pg_catalog.=) $1",
						  id, false);
}

static bool
list_member_text(List *list, const char *text)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (strcmp(lfirst(lc), text) == 0)
			return true;
	}
	return false;
}

/*
 * tidrange_fdw_recover_inserts(): ends the prepared transactions that parallel
 * inserts of this database have left: a row each, with what became of it.
 */
Datum
tidrange_fdw_recover_inserts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			table = insert_marker_table(fcinfo->flinfo->fn_oid);
	List	   *ids;
	List	   *markers;
	ListCell   *lc;

	PreventCommandIfReadOnly("tidrange_fdw_recover_inserts()");
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("tidrange_fdw_recover_inserts must run in a READ COMMITTED transaction"),
				 errdetail("An older snapshot does not tell what has been committed.")));
	InitMaterializedSRF(fcinfo, 0);
	ids = query_names("SELECT DISTINCT pg_catalog.substr(gid, 14, 16)"
					  PARTS_QUERY MINE_CONDITION "ORDER BY 1", InvalidOid);

	/* a marker may be all that is left */
	markers = query_names(psprintf("SELECT call FROM %s", table_name(table)),
						  owner_of(table));
	foreach(lc, markers)
	{
		if (!list_member_text(ids, lfirst(lc)))
			ids = lappend(ids, lfirst(lc));
	}
	foreach(lc, ids)
	{
		if (is_left(lfirst(lc)))
			recover_call(table, lfirst(lc), rsinfo);
	}
	return (Datum) 0;
}
