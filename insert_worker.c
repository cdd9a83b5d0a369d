/*-------------------------------------------------------------------------
 *
 * insert_worker.c
 *	  One writer of a parallel insert: a background worker that is a session like
 *	  any other.
 *
 * It logs in as its caller did, takes over the caller's settings, role and local
 * snapshot, and executes the statement in a transaction of its own; scan_team.c
 * gives it a part of the rows.  Its life:
 *
 *	 locked		it has the locks that the statement needs
 *	 executed	its part is inserted; it waits for the others, holding its locks
 *	 prepared	(atomic) its transaction can survive a crash; it waits for what
 *				the caller decides, to roll it back if the caller goes away
 *	 committed	(not atomic, or alone)
 *
 * Errors and notices go to the caller through a queue, as those of a parallel
 * query's workers do.
 *
 * A worker other than the first that does not get its local locks in time leaves: an
 * ALTER TABLE may be queued between the first one's lock and its own, and would
 * wait for the first one, which waits for all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "compat.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "insert.h"
#include "libpq/pqmq.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/shm_toc.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

extern PGDLLEXPORT void tidrange_fdw_insert_worker(Datum main_arg);

/* How long a worker that others can do without waits for local locks. */
#define LOCK_PATIENCE	"1s"

#define POLL_MS			100
#define FIRST_POLL_MS	5

/* This worker. */
static InsertShared *shared;
static InsertSlot *slot;
static int	number;
static ScanCounters last_counters;
static const char *phase_name = "starting";

/* ----------
 * With the others
 * ----------
 */

/* Tell pg_stat_activity, where the progress view finds it. */
static void
show_progress(void)
{
	char		text[256];

	snprintf(text, sizeof(text),
			 "parallel insert of caller %d, worker %d of %u: %s, rows inserted "
			 UINT64_FORMAT ", read " UINT64_FORMAT ", chunks " UINT64_FORMAT
			 ", blocks " UINT64_FORMAT " of " UINT64_FORMAT,
			 shared->caller->pid, number,
			 pg_atomic_read_u32(&shared->nworkers), phase_name, slot->rows,
			 last_counters.rows, last_counters.chunks, last_counters.blocks,
			 shared->team.nblocks);
	pgstat_report_activity(STATE_RUNNING, text);
}

static void
chunk_callback(const ScanCounters *counters, EState *estate)
{
	last_counters = *counters;
	slot->rows = estate->es_processed;
	show_progress();
}

static void
set_state(InsertState state, const char *name)
{
	phase_name = name;
	show_progress();
	pg_write_barrier();
	pg_atomic_write_u32(&slot->state, state);
	SetLatch(&shared->caller->procLatch);
}

static void
wait_for_phase(InsertPhase phase)
{
	while (pg_atomic_read_u32(&shared->phase) < (uint32) phase)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * The first worker goes ahead: it has its local locks and a connection before the
 * others take what there may be little of.
 */
static void
wait_for_first(void)
{
	while (number > 0 &&
		   pg_atomic_read_u32(&shared->slots[0].state) < INSERT_LOCKED)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 FIRST_POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ----------
 * Becoming the caller's double
 * ----------
 */

/* Libraries and settings, in a transaction of their own as parallel workers do. */
static void
restore_settings(shm_toc *toc)
{
	StartTransactionCommand();
	RestoreLibraryState(shm_toc_lookup(toc, INSERT_KEY_LIBRARIES, false));
	RestoreGUCState(shm_toc_lookup(toc, INSERT_KEY_SETTINGS, false));

	/* messages travel to the caller in the database's encoding */
	SetConfigOption("client_encoding", GetDatabaseEncodingName(),
					PGC_USERSET, PGC_S_SESSION);
	/* without it the foreign table could be read once for each outer row */
	SetConfigOption("enable_material", "on", PGC_USERSET, PGC_S_SESSION);

	if (GetSessionUserId() != shared->session_user)
		SetConfigOption("session_authorization",
						GetUserNameFromId(shared->session_user, false),
						PGC_USERSET, PGC_S_SESSION);
	if (GetUserId() != shared->current_user)
		SetConfigOption("role", GetUserNameFromId(shared->current_user, false),
						PGC_USERSET, PGC_S_SESSION);
	CommitTransactionCommand();

	if (GetAuthenticatedUserId() != shared->authenticated_user ||
		GetSessionUserId() != shared->session_user ||
		GetUserId() != shared->current_user)
		elog(ERROR, "worker of a parallel insert runs as another user than its caller");
}

/*
 * Begin a transaction that has the caller's now().  Core lets only the workers of
 * a parallel query do so, which we are while it looks.
 */
static void
start_transaction(void)
{
	SetCurrentStatementStartTimestamp();
	ParallelWorkerNumber = number;
	SetParallelStartTimestamps(shared->transaction_start,
							   shared->statement_start);
	StartTransactionCommand();
	ParallelWorkerNumber = -1;
	XactIsoLevel = shared->isolation;
	BeginTransactionBlock();
	CommitTransactionCommand();
	StartTransactionCommand();
}

/* ----------
 * The work
 * ----------
 */

/* Others can do without this worker: wait for locks within reason. */
static PlannedStmt *
plan_or_leave(const char *sql, Oid *driver)
{
	PlannedStmt *volatile stmt = NULL;
	double		pages;
	MemoryContext oldcontext = CurrentMemoryContext;

	if (number == 0)
		return insert_plan(sql, driver, &pages);
	PG_TRY();
	{
		int			level = NewGUCNestLevel();

		(void) set_config_option("lock_timeout", LOCK_PATIENCE, PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
		stmt = insert_plan(sql, driver, &pages);
		AtEOXact_GUC(true, level);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcontext);
		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		stmt = NULL;
	}
	PG_END_TRY();
	return stmt;
}

/* Execute; the caller's snapshot is the active one. */
static void
execute(PlannedStmt *stmt, const char *sql)
{
	QueryDesc  *desc;

	UpdateActiveSnapshotCommandId();
	desc = CreateQueryDesc(stmt, sql, GetActiveSnapshot(), InvalidSnapshot,
						   None_Receiver, NULL, NULL, 0);
	ExecutorStart(desc, 0);
	compat_executor_run(desc);
	slot->rows = desc->estate->es_processed;
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
}

/* What would fail at the end should fail before anybody commits. */
static void
check_constraints(void)
{
	SPI_connect();
	if (SPI_execute("SET CONSTRAINTS ALL IMMEDIATE", false, 0) < 0)
		elog(ERROR, "could not check deferred constraints");
	SPI_finish();
}

/* From begin to before the end.  False: it does not take part. */
static bool
run_statement(const char *sql, char *serialized_snapshot)
{
	Snapshot	snapshot;
	PlannedStmt *stmt;
	Oid			driver;

	start_transaction();
	snapshot = RestoreSnapshot(serialized_snapshot);
	RestoreTransactionSnapshot(snapshot, shared->caller);
	PushActiveSnapshot(snapshot);
	stmt = plan_or_leave(sql, &driver);
	if (stmt == NULL)
		return false;
	slot->xid = GetCurrentTransactionId();
	set_state(INSERT_LOCKED, "running");
	insert_reach("locked", number);

	scan_team_begin(&shared->team, driver, number,
					pg_atomic_read_u32(&shared->nworkers), chunk_callback);
	execute(stmt, sql);
	scan_team_executed();
	PopActiveSnapshot();
	PushActiveSnapshot(GetTransactionSnapshot());
	check_constraints();
	PopActiveSnapshot();
	return true;
}

/* ----------
 * The end
 * ----------
 */

/*
 * The transaction is prepared.  Wait until it is decided what becomes of it; if
 * the caller cannot decide any more, or we are told to go, it is rolled back, by
 * us, since nobody else is sure to be there.  Interrupts are held.
 */
static void
await_decision(const char *gid)
{
	for (;;)
	{
		uint32		decision = pg_atomic_read_u32(&shared->decision);

		if (decision == INSERT_UNDECIDED && ProcDiePending)
			(void) pg_atomic_compare_exchange_u32(&shared->decision, &decision,
												  INSERT_ABORT);
		decision = pg_atomic_read_u32(&shared->decision);
		if (decision == INSERT_COMMIT)
			return;
		if (decision == INSERT_ABORT)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	StartTransactionCommand();
	FinishPreparedTransaction(gid, false);
	CommitTransactionCommand();
}

static void
prepare(void)
{
	char		gid[INSERT_GID_SIZE];

	insert_format_gid(shared->call_id, number, gid);
	if (number == 0)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		insert_marker_add(shared->marker_table, shared->call_id);
		PopActiveSnapshot();
	}
	insert_reach("preparing", number);
	HOLD_INTERRUPTS();
	if (!PrepareTransactionBlock(gid))
		elog(ERROR, "could not prepare a part of the parallel insert");
	CommitTransactionCommand();
	insert_reach("prepared", number);
	set_state(INSERT_PREPARED, "prepared");
	await_decision(gid);
	RESUME_INTERRUPTS();
}

static void
commit(void)
{
	insert_reach("committing", number);
	EndTransactionBlock(false);
	CommitTransactionCommand();
	insert_reach("committed", number);
	set_state(INSERT_COMMITTED, "committed");
}

/* ----------
 * Beginning
 * ----------
 */

/* Find our place, and send messages to the caller from now on. */
static shm_toc *
attach(dsm_handle handle, dsm_segment **segment)
{
	shm_toc    *toc;
	shm_mq	   *queue;

	CurrentResourceOwner = ResourceOwnerCreate(NULL, INSERT_WORKER_TYPE);
	CurrentMemoryContext = AllocSetContextCreate(TopMemoryContext,
												 INSERT_WORKER_TYPE,
												 ALLOCSET_DEFAULT_SIZES);
	*segment = dsm_attach(handle);
	if (*segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not map dynamic shared memory segment")));
	/* it lasts as long as we do: messages may come at any time */
	dsm_pin_mapping(*segment);
	toc = shm_toc_attach(PARALLEL_MAGIC_INSERT, dsm_segment_address(*segment));
	if (toc == NULL)
		elog(ERROR, "invalid magic number in dynamic shared memory segment");
	shared = shm_toc_lookup(toc, INSERT_KEY_SHARED, false);
	slot = &shared->slots[number];
	slot->pid = MyProcPid;
	slot->proc = MyProc;

	queue = (shm_mq *) ((char *) shm_toc_lookup(toc, INSERT_KEY_QUEUES, false) +
						(Size) number * INSERT_QUEUE_SIZE);
	shm_mq_set_sender(queue, MyProc);
	pq_redirect_to_shm_mq(*segment, shm_mq_attach(queue, *segment, NULL));
	return toc;
}

/* The call is not over as long as we hold this. */
static void
take_call_lock(void)
{
	LOCKTAG		tag;

	insert_call_lock(shared->call_id, &tag);
	StartTransactionCommand();
	(void) LockAcquire(&tag, ShareLock, true, false);
	CommitTransactionCommand();
}

/*
 * Entry point of the background worker.
 */
void
tidrange_fdw_insert_worker(Datum main_arg)
{
	dsm_segment *segment;
	shm_toc    *toc;
	const char *sql;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	memcpy(&number, MyBgworkerEntry->bgw_extra, sizeof(number));
	toc = attach(DatumGetUInt32(main_arg), &segment);
	BackgroundWorkerInitializeConnectionByOid(shared->database,
											  shared->authenticated_user, 0);
	SetClientEncoding(GetDatabaseEncoding());
	restore_settings(toc);
	take_call_lock();
	wait_for_phase(INSERT_RUN);
	show_progress();
	wait_for_first();
	insert_reach("started", number);

	sql = shm_toc_lookup(toc, INSERT_KEY_STATEMENT, false);
	debug_query_string = sql;
	if (!run_statement(sql, shm_toc_lookup(toc, INSERT_KEY_SNAPSHOT, false)))
	{
		AbortOutOfAnyTransaction();
		set_state(INSERT_LEFT, "left");
		return;
	}
	insert_reach("executed", number);
	set_state(INSERT_EXECUTED, "executed");
	wait_for_phase(INSERT_FINISH);
	if (number == 0)
		scan_team_check();
	if (shared->two_phase)
		prepare();
	else
		commit();
}
