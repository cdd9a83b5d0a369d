/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  tidrange_fdw_parallel_insert(): several sessions execute one
 *	  INSERT ... SELECT, each inserting some of the rows.
 *
 * The caller inserts nothing.  It checks the statement (insert_check.c), ends the
 * transaction in which it did so, and begins another, in which it holds a local
 * snapshot for the workers and no lock on any table: an ALTER TABLE that waits for
 * a lock of the caller's would make the workers wait, and nobody could see that
 * the caller waits for them.  Then it starts the workers (insert_worker.c), and
 * watches:
 *
 *	 run		until every worker has executed the statement
 *	 finish		until every one has prepared its transaction
 *	 decide		the caller commits them, part 0 first (insert_recover.c)
 *
 * Not atomic, or with one worker, "finish" commits and there is nothing to decide.
 *
 * A worker holds its locks until the decision.  One that waits for another's can
 * therefore wait for ever, and since that other does not wait for a lock, the
 * deadlock detector does not see it.  So the caller looks who waits for whom, and
 * ends the call.
 *
 * Whatever ends the caller, an error, a cancel, a FATAL one, the workers end: the
 * segment's detach callback tells them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "compat.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "insert.h"
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "option.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/shm_toc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

TIDRANGE_FUNCTION(tidrange_fdw_parallel_insert);

/* How often the caller looks at its workers without being woken, ... */
#define POLL_MS				100

/* ... and who waits for whom. */
#define BLOCKED_POLL_MS		500

/* How long workers may take to end. */
#define END_PATIENCE_MS		10000

/* A wait for a worker by way of another session must be seen that often. */
#define CHAIN_POLLS			4

/* One worker as the caller sees it. */
typedef struct Writer
{
	BackgroundWorkerHandle *handle;
	shm_mq_handle *queue;		/* NULL: it has ended its messages */
	int			chain_polls;	/* since when it waits for a chain */
} Writer;

/* One call. */
typedef struct InsertCall
{
	const char *sql;
	int			nworkers;
	bool		two_phase;
	dsm_segment *segment;
	InsertShared *shared;
	Writer	   *writers;
	TimestampTz blocked_check;	/* the last one */
} InsertCall;

/* ----------
 * Before the workers
 * ----------
 */

/* Where and by whom may it be called? */
static void
check_circumstances(FunctionCallInfo fcinfo)
{
	CallContext *context = (CallContext *) fcinfo->context;
	Oid			user;
	int			security;

	if (context == NULL || !IsA(context, CallContext) || context->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("tidrange_fdw_parallel_insert cannot run inside a transaction block"),
				 errdetail("Its workers have transactions of their own, which the block could neither see nor undo.")));
	PreventCommandIfReadOnly("tidrange_fdw_parallel_insert()");
	PreventCommandDuringRecovery("tidrange_fdw_parallel_insert()");
	if (IsolationIsSerializable())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("tidrange_fdw_parallel_insert cannot run in a serializable transaction"),
				 errhint("Set default_transaction_isolation to another level.")));
	GetUserIdAndSecContext(&user, &security);
	if (security != 0 || user != GetOuterUserId())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("tidrange_fdw_parallel_insert cannot run with the rights of a function's owner")));
}

/* How many workers core would give to a scan of that many blocks, at least 1. */
static int
planned_writers(Oid relid, double pages)
{
	TableOptions options;
	double		threshold = Max(min_parallel_table_scan_size, 1);
	int			n = 1;

	option_resolve_table(relid, &options);
	if (options.parallel_workers >= 0)
		n = options.parallel_workers;
	else if (pages >= threshold)
	{
		while (pages >= threshold * 3)
		{
			n++;
			threshold *= 3;
		}
	}
	n = Min(n, max_parallel_workers_per_gather);
	return Max(Min(n, max_worker_processes), 1);
}

/* The number of workers, and whether they have to prepare. */
static void
choose_workers(InsertCall *call, bool given, int wanted, bool atomic,
			   Oid driver, double pages)
{
	if (given && (wanted < 1 || wanted > INSERT_MAX_WORKERS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of workers must be between 1 and %d",
						INSERT_MAX_WORKERS)));
	call->nworkers = given ? Min(wanted, max_worker_processes) :
		planned_writers(driver, pages);

	/* One transaction is atomic as it is. */
	call->two_phase = atomic && call->nworkers > 1;
	if (!call->two_phase)
		return;
	if (!given && max_prepared_xacts > 0)
		call->nworkers = Min(call->nworkers, max_prepared_xacts);
	if (call->nworkers > max_prepared_xacts)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%d workers cannot commit together because max_prepared_transactions is %d",
						call->nworkers, max_prepared_xacts),
				 errhint("Set max_prepared_transactions to at least the number of workers, or let them commit one after the other (atomic => false), or use one worker.")));
}

/*
 * Look at the statement, in a transaction that ends with that: its locks must be
 * gone before the workers want theirs.
 */
static void
analyse(InsertCall *call, bool given, int wanted, bool atomic)
{
	Oid			driver;
	double		pages;

	PushActiveSnapshot(GetTransactionSnapshot());
	(void) insert_plan(call->sql, &driver, &pages);
	choose_workers(call, given, wanted, atomic, driver, pages);
	PopActiveSnapshot();
	SPI_commit();
	SPI_start_transaction();
}

/* ----------
 * The segment
 * ----------
 */

/*
 * The caller goes away.  What is prepared and undecided is rolled back by the
 * workers; the others are told to end.  Must not raise an error.
 */
static void
abandon(InsertCall *call)
{
	InsertShared *shared = call->shared;
	uint32		undecided = INSERT_UNDECIDED;
	int			i;

	(void) pg_atomic_compare_exchange_u32(&shared->decision, &undecided,
										  INSERT_ABORT);
	for (i = 0; i < call->nworkers; i++)
	{
		if (call->writers[i].handle != NULL)
			TerminateBackgroundWorker(call->writers[i].handle);
	}
}

static void
detach_callback(dsm_segment *segment, Datum arg)
{
	abandon((InsertCall *) DatumGetPointer(arg));
}

static Size
shared_size(int nworkers)
{
	return offsetof(InsertShared, slots) + nworkers * sizeof(InsertSlot);
}

static void
fill_shared(InsertCall *call, InsertShared *shared, Oid marker_table)
{
	int			i;

	memset(shared, 0, shared_size(call->nworkers));
	shared->database = MyDatabaseId;
	shared->authenticated_user = GetAuthenticatedUserId();
	shared->session_user = GetSessionUserId();
	shared->current_user = GetUserId();
	shared->marker_table = marker_table;
	shared->caller = MyProc;
	shared->transaction_start = GetCurrentTransactionStartTimestamp();
	shared->statement_start = GetCurrentStatementStartTimestamp();
	shared->isolation = XactIsoLevel;
	shared->two_phase = call->two_phase;
	if (!pg_strong_random(&shared->call_id, sizeof(shared->call_id)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random number")));
	pg_atomic_init_u32(&shared->nworkers, 0);
	pg_atomic_init_u32(&shared->phase, INSERT_WAIT);
	pg_atomic_init_u32(&shared->decision, INSERT_UNDECIDED);
	scan_team_init(&shared->team);
	for (i = 0; i < call->nworkers; i++)
		pg_atomic_init_u32(&shared->slots[i].state, INSERT_STARTING);
}

/* Everything that the workers need; the caller's snapshot is the active one. */
static void
create_segment(InsertCall *call, Oid marker_table)
{
	Snapshot	snapshot = GetActiveSnapshot();
	Size		sql_size = strlen(call->sql) + 1;
	Size		library_size = EstimateLibraryStateSpace();
	Size		settings_size = EstimateGUCStateSpace();
	Size		queues_size = mul_size(INSERT_QUEUE_SIZE, call->nworkers);
	shm_toc_estimator estimator;
	shm_toc    *toc;
	Size		size;
	char	   *part;
	int			i;

	shm_toc_initialize_estimator(&estimator);
	shm_toc_estimate_chunk(&estimator, shared_size(call->nworkers));
	shm_toc_estimate_chunk(&estimator, sql_size);
	shm_toc_estimate_chunk(&estimator, library_size);
	shm_toc_estimate_chunk(&estimator, settings_size);
	shm_toc_estimate_chunk(&estimator, EstimateSnapshotSpace(snapshot));
	shm_toc_estimate_chunk(&estimator, queues_size);
	shm_toc_estimate_keys(&estimator, 6);
	size = shm_toc_estimate(&estimator);

	call->segment = dsm_create(size, 0);
	toc = shm_toc_create(PARALLEL_MAGIC_INSERT,
						 dsm_segment_address(call->segment), size);

	call->shared = shm_toc_allocate(toc, shared_size(call->nworkers));
	fill_shared(call, call->shared, marker_table);
	shm_toc_insert(toc, INSERT_KEY_SHARED, call->shared);
	part = shm_toc_allocate(toc, sql_size);
	memcpy(part, call->sql, sql_size);
	shm_toc_insert(toc, INSERT_KEY_STATEMENT, part);
	part = shm_toc_allocate(toc, library_size);
	SerializeLibraryState(library_size, part);
	shm_toc_insert(toc, INSERT_KEY_LIBRARIES, part);
	part = shm_toc_allocate(toc, settings_size);
	SerializeGUCState(settings_size, part);
	shm_toc_insert(toc, INSERT_KEY_SETTINGS, part);
	part = shm_toc_allocate(toc, EstimateSnapshotSpace(snapshot));
	SerializeSnapshot(snapshot, part);
	shm_toc_insert(toc, INSERT_KEY_SNAPSHOT, part);
	part = shm_toc_allocate(toc, queues_size);
	for (i = 0; i < call->nworkers; i++)
	{
		shm_mq	   *queue = shm_mq_create(part + (Size) i * INSERT_QUEUE_SIZE,
										  INSERT_QUEUE_SIZE);

		shm_mq_set_receiver(queue, MyProc);
		call->writers[i].queue = shm_mq_attach(queue, call->segment, NULL);
	}
	shm_toc_insert(toc, INSERT_KEY_QUEUES, part);
	on_dsm_detach(call->segment, detach_callback, PointerGetDatum(call));
}

/* Start as many workers as there is room for. */
static void
start_workers(InsertCall *call)
{
	BackgroundWorker worker = {0};
	int			wanted = call->nworkers;
	int			i;

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_name, BGW_MAXLEN, "tidrange_fdw insert worker for PID %d",
			 MyProcPid);
	strlcpy(worker.bgw_type, INSERT_WORKER_TYPE, BGW_MAXLEN);
	strcpy(worker.bgw_library_name, "tidrange_fdw");
	strcpy(worker.bgw_function_name, "tidrange_fdw_insert_worker");
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(call->segment));
	worker.bgw_notify_pid = MyProcPid;
	for (i = 0; i < wanted; i++)
	{
		memcpy(worker.bgw_extra, &i, sizeof(i));
		if (!RegisterDynamicBackgroundWorker(&worker, &call->writers[i].handle))
			break;
		shm_mq_set_handle(call->writers[i].queue, call->writers[i].handle);
	}
	call->nworkers = i;
	if (i == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("no background worker could be started"),
				 errhint("Raise max_worker_processes, or wait until other workers have ended.")));
	if (i < wanted)
		ereport(NOTICE,
				(errmsg("only %d of %d workers could be started", i, wanted),
				 errhint("Consider raising max_worker_processes.")));
	pg_atomic_write_u32(&call->shared->nworkers, i);
}

/* ----------
 * Messages and deaths
 * ----------
 */

/* A worker's error is the caller's; what is less is passed on. */
static void
take_message(int number, void *data, Size size)
{
	StringInfoData message;
	ErrorData	edata;
	char		type;

	initStringInfo(&message);
	appendBinaryStringInfo(&message, data, size);
	type = pq_getmsgbyte(&message);
	if (type != 'E' && type != 'N')
		return;
	pq_parse_errornotice(&message, &edata);
	edata.elevel = Min(edata.elevel, ERROR);
	edata.context = edata.context ?
		psprintf("%s\ninsert worker %d", edata.context, number) :
		psprintf("insert worker %d", number);
	ThrowErrorData(&edata);
	pfree(message.data);
}

static void
take_messages(InsertCall *call)
{
	int			i;

	for (i = 0; i < call->nworkers; i++)
	{
		Writer	   *writer = &call->writers[i];

		while (writer->queue != NULL)
		{
			Size		size;
			void	   *data;
			shm_mq_result result = shm_mq_receive(writer->queue, &size, &data,
												  true);

			if (result == SHM_MQ_WOULD_BLOCK)
				break;
			if (result == SHM_MQ_SUCCESS)
			{
				take_message(i, data, size);
				continue;
			}
			shm_mq_detach(writer->queue);
			writer->queue = NULL;
		}
	}
}

static InsertState
state_of(const InsertCall *call, int number)
{
	return (InsertState)
		pg_atomic_read_u32(&call->shared->slots[number].state);
}

/* A worker that is gone without a word, and without having done its work. */
static void
check_deaths(InsertCall *call)
{
	int			i;

	for (i = 0; i < call->nworkers; i++)
	{
		pid_t		pid;
		InsertState state;

		if (GetBackgroundWorkerPid(call->writers[i].handle, &pid) != BGWH_STOPPED)
			continue;
		pg_read_barrier();
		state = state_of(call, i);
		if (state == INSERT_COMMITTED || state == INSERT_LEFT)
			continue;

		/* it may have said why since we looked */
		take_messages(call);
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("insert worker %d ended unexpectedly", i),
				 errhint("The server log may say more.")));
	}
}

/* ----------
 * Who waits for whom
 * ----------
 */

/* Locks that are given back long before a transaction ends. */
static bool
is_short_lock(const LOCKTAG *tag)
{
	return tag->locktag_type == LOCKTAG_RELATION_EXTEND ||
		tag->locktag_type == LOCKTAG_PAGE ||
		tag->locktag_type == LOCKTAG_SPECULATIVE_TOKEN ||
		tag->locktag_type == LOCKTAG_VIRTUALTRANSACTION;
}

/* What the process waits for; NULL: nothing. */
static const LockInstanceData *
awaited_lock(const LockData *locks, int pid)
{
	int			i;

	for (i = 0; i < locks->nelements; i++)
	{
		if (locks->locks[i].pid == pid &&
			locks->locks[i].waitLockMode != NoLock)
			return &locks->locks[i];
	}
	return NULL;
}

/* Does it hold a lock on a row, as who wants to change one does? */
static bool
holds_row_lock(const LockData *locks, int pid)
{
	int			i;

	for (i = 0; i < locks->nelements; i++)
	{
		if (locks->locks[i].pid == pid && locks->locks[i].holdMask != 0 &&
			locks->locks[i].locktag.locktag_type == LOCKTAG_TUPLE)
			return true;
	}
	return false;
}

static int
worker_of_pid(const InsertCall *call, int pid)
{
	int			i;

	for (i = 0; i < call->nworkers; i++)
	{
		if (call->shared->slots[i].pid == pid)
			return i;
	}
	return -1;
}

/* The processes that keep this one from its lock. */
static int
blocking_pids(int pid, Datum **pids)
{
	ArrayType  *array =
	DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids,
										   Int32GetDatum(pid)));
	int			n;

	deconstruct_array(array, INT4OID, sizeof(int32), true, TYPALIGN_INT,
					  pids, NULL, &n);
	return n;
}

/* The two workers want the same, and only one of them could have it. */
static void
report_conflict(int waiting, int holding, bool same_key)
{
	if (same_key)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("two workers of the parallel insert insert the same key"),
				 errdetail("Worker %d waits for worker %d, which has inserted a row with the same values for a unique or exclusion constraint.",
						   waiting, holding),
				 errhint("Select distinct rows, or run the statement as it is.")));
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("workers of the parallel insert wait for each other"),
			 errdetail("Worker %d waits for a lock that worker %d keeps until all have finished.",
					   waiting, holding),
			 errhint("Run the statement as it is, or with one worker.")));
}

/* Does some worker, by way of other sessions, keep this process waiting? */
static int
worker_behind(const InsertCall *call, int pid, int depth)
{
	Datum	   *pids;
	int			n = blocking_pids(pid, &pids);
	int			i;

	for (i = 0; i < n; i++)
	{
		int			blocker = DatumGetInt32(pids[i]);
		int			worker = worker_of_pid(call, blocker);

		if (worker < 0 && blocker != 0 && depth < 10)
			worker = worker_behind(call, blocker, depth + 1);
		if (worker >= 0)
			return worker;
	}
	return -1;
}

/* Raise an error if this worker waits for another one, which will not give way. */
static void
check_worker_blocked(InsertCall *call, int number, const LockData *locks)
{
	int			pid = call->shared->slots[number].pid;
	const LockInstanceData *awaited = awaited_lock(locks, pid);
	Datum	   *pids;
	int			chain;
	int			n;
	int			i;

	if (awaited == NULL || is_short_lock(&awaited->locktag))
	{
		call->writers[number].chain_polls = 0;
		return;
	}
	n = blocking_pids(pid, &pids);
	for (i = 0; i < n; i++)
	{
		int			other = worker_of_pid(call, DatumGetInt32(pids[i]));
		bool		is_xid = awaited->locktag.locktag_type == LOCKTAG_TRANSACTION;

		if (other < 0 || other == number)
			continue;

		/*
		 * A lock on a transaction is one for good if it is the worker's own and
		 * not that of a subtransaction, which may roll back.
		 */
		if (state_of(call, other) >= INSERT_EXECUTED ||
			(is_xid && awaited->locktag.locktag_field1 ==
			 call->shared->slots[other].xid))
			report_conflict(number, other,
							is_xid && !holds_row_lock(locks, pid));
	}

	/* a queued ALTER TABLE between two workers, and the like */
	chain = worker_behind(call, pid, 0);
	if (chain < 0 || chain == number)
		call->writers[number].chain_polls = 0;
	else if (++call->writers[number].chain_polls >= CHAIN_POLLS &&
			 state_of(call, number) >= INSERT_LOCKED)
		report_conflict(number, chain, false);
}

static void
check_blocked(InsertCall *call)
{
	TimestampTz now = GetCurrentTimestamp();
	LockData   *locks;
	int			i;

	if (!TimestampDifferenceExceeds(call->blocked_check, now, BLOCKED_POLL_MS))
		return;
	call->blocked_check = now;
	locks = GetLockStatusData();
	for (i = 0; i < call->nworkers; i++)
	{
		InsertState state = state_of(call, i);

		if (call->shared->slots[i].pid != 0 && state < INSERT_PREPARED)
			check_worker_blocked(call, i, locks);
	}
}

/* ----------
 * The phases
 * ----------
 */

static void
wake_workers(InsertCall *call)
{
	int			i;

	for (i = 0; i < call->nworkers; i++)
	{
		PGPROC	   *proc = call->shared->slots[i].proc;

		/* of whoever has its place by now, if it has ended: no harm */
		if (proc != NULL)
			SetLatch(&proc->procLatch);
	}
}

static bool
all_reached(const InsertCall *call, InsertState state)
{
	int			i;

	for (i = 0; i < call->nworkers; i++)
	{
		if (state_of(call, i) < state)
			return false;
	}
	return true;
}

/* Let the workers go on, and watch them until all have come that far. */
static void
run_phase(InsertCall *call, InsertPhase phase, InsertState state)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "parallel insert poll",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcontext = MemoryContextSwitchTo(context);

	pg_atomic_write_u32(&call->shared->phase, phase);
	wake_workers(call);
	for (;;)
	{
		bool		done = all_reached(call, state);

		MemoryContextReset(context);
		take_messages(call);
		if (done)
			break;
		check_deaths(call);
		check_blocked(call);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(oldcontext);
	MemoryContextDelete(context);
}

/*
 * All parts are prepared: commit them, unless somebody has decided against it.
 * From the first one on there is no way back.
 */
static void
commit_parts(InsertCall *call)
{
	uint32		undecided = INSERT_UNDECIDED;
	char		gid[INSERT_GID_SIZE];
	int			i;

	insert_reach("all prepared", -1);
	HOLD_INTERRUPTS();
	if (!pg_atomic_compare_exchange_u32(&call->shared->decision, &undecided,
										INSERT_COMMIT))
	{
		RESUME_INTERRUPTS();
		take_messages(call);
		ereport(ERROR,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("a worker of the parallel insert was terminated")));
	}
	for (i = 0; i < call->nworkers; i++)
	{
		if (state_of(call, i) != INSERT_PREPARED)
			continue;
		insert_format_gid(call->shared->call_id, i, gid);
		FinishPreparedTransaction(gid, true);
		insert_reach("finished", i);
	}
	wake_workers(call);
	RESUME_INTERRUPTS();
}

/* False: the worker has not ended until then. */
static bool
await_worker(BackgroundWorkerHandle *handle, TimestampTz deadline)
{
	pid_t		pid;

	for (;;)
	{
		BgwHandleStatus status = GetBackgroundWorkerPid(handle, &pid);

		if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED)
			return true;
		if (GetCurrentTimestamp() >= deadline)
			return false;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

/*
 * The workers end; their messages are of no interest any more.  One that does not,
 * because it hangs in a name server's silence, must not keep the caller, who
 * cannot be interrupted here.
 */
static void
await_end(InsertCall *call)
{
	TimestampTz deadline =
	TimestampTzPlusMilliseconds(GetCurrentTimestamp(), END_PATIENCE_MS);
	int			i;

	HOLD_INTERRUPTS();
	for (i = 0; i < call->nworkers; i++)
	{
		if (call->writers[i].queue != NULL)
			shm_mq_detach(call->writers[i].queue);
		call->writers[i].queue = NULL;
		if (call->writers[i].handle != NULL &&
			!await_worker(call->writers[i].handle, deadline))
			ereport(WARNING,
					(errmsg("worker %d of the parallel insert has not ended yet", i),
					 errdetail("It has been told to end.")));
	}
	RESUME_INTERRUPTS();
}

/* An error after the first commit: its rows stay. */
static void
warn_of_parts(const InsertCall *call)
{
	int			i;

	if (pg_atomic_read_u32(&call->shared->decision) == INSERT_COMMIT)
		ereport(WARNING,
				(errmsg("some workers of the parallel insert may be committed and others not"),
				 errhint("Call tidrange_fdw_recover_inserts().")));
	for (i = 0; i < call->nworkers; i++)
	{
		if (state_of(call, i) == INSERT_COMMITTED)
			ereport(WARNING,
					(errmsg("worker %d of the parallel insert has committed %llu rows",
							i, (unsigned long long) call->shared->slots[i].rows)));
	}
}

static void
run_workers(InsertCall *call)
{
	PG_TRY();
	{
		start_workers(call);
		run_phase(call, INSERT_RUN, INSERT_EXECUTED);
		insert_reach("all executed", -1);
		if (call->two_phase)
		{
			run_phase(call, INSERT_FINISH, INSERT_PREPARED);
			commit_parts(call);
		}
		else
			run_phase(call, INSERT_FINISH, INSERT_COMMITTED);
	}
	PG_CATCH();
	{
		abandon(call);
		await_end(call);
		cancel_on_dsm_detach(call->segment, detach_callback,
							 PointerGetDatum(call));
		warn_of_parts(call);
		PG_RE_THROW();
	}
	PG_END_TRY();
	await_end(call);
}

/* What came of it. */
static void
report_result(const InsertCall *call)
{
	uint64		rows = 0;
	int			writers = 0;
	int			i;

	for (i = 0; i < call->nworkers; i++)
	{
		if (state_of(call, i) == INSERT_LEFT)
			continue;
		rows += call->shared->slots[i].rows;
		writers++;
	}
	ereport(NOTICE,
			(errmsg_plural("%llu rows inserted by %d worker",
						   "%llu rows inserted by %d workers",
						   writers, (unsigned long long) rows, writers)));
}

/*
 * The second transaction: with a snapshot, and without locks on tables.  A third
 * one removes the marker.
 */
static void
execute_call(InsertCall *call, Oid marker_table)
{
	LOCKTAG		tag;
	uint64		call_id;
	MemoryContext oldcontext;

	/* an abort deletes what is below it before it detaches from the segment */
	oldcontext = MemoryContextSwitchTo(PortalContext);
	PushActiveSnapshot(GetTransactionSnapshot());
	create_segment(call, marker_table);
	insert_call_lock(call->shared->call_id, &tag);
	(void) LockAcquire(&tag, ShareLock, false, false);
	run_workers(call);
	insert_reach("all finished", -1);
	report_result(call);
	call_id = call->shared->call_id;
	cancel_on_dsm_detach(call->segment, detach_callback, PointerGetDatum(call));
	dsm_detach(call->segment);
	PopActiveSnapshot();
	MemoryContextSwitchTo(oldcontext);
	if (!call->two_phase)
		return;

	/* the snapshot of this transaction may be too old to see the marker */
	SPI_commit();
	SPI_start_transaction();
	PushActiveSnapshot(GetTransactionSnapshot());
	insert_marker_remove(marker_table, call_id);
	PopActiveSnapshot();
}

/*
 * CALL tidrange_fdw_parallel_insert(statement, workers, atomic)
 */
Datum
tidrange_fdw_parallel_insert(PG_FUNCTION_ARGS)
{
	InsertCall *call;
	Oid			marker_table;
	bool		given = !PG_ARGISNULL(1);

	check_circumstances(fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("statement and atomic must not be null")));

	/* Memory of the portal outlives the first transaction. */
	call = MemoryContextAllocZero(PortalContext, sizeof(InsertCall));
	call->sql = MemoryContextStrdup(PortalContext,
									text_to_cstring(PG_GETARG_TEXT_PP(0)));
	marker_table = insert_marker_table(fcinfo->flinfo->fn_oid);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	analyse(call, given, given ? PG_GETARG_INT32(1) : 0, PG_GETARG_BOOL(2));
	call->writers = MemoryContextAllocZero(PortalContext,
										   call->nworkers * sizeof(Writer));
	execute_call(call, marker_table);
	SPI_finish();
	PG_RETURN_VOID();
}
