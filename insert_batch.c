/*-------------------------------------------------------------------------
 *
 * insert_batch.c
 *	  INSERT ... SELECT that writes its rows in batches, as COPY does.
 *
 * Core inserts the rows of an INSERT one by one: for each it finds, pins and locks
 * a page and, for a logged table, writes a WAL record.  COPY FROM hands a thousand
 * rows to the table at once, and pays once for each page.  For narrow rows that is
 * half of the time of a copy, so an INSERT that reads one of our tables is given
 * COPY's way wherever nobody can see a difference.
 *
 * What could be seen: code that runs between two rows and looks at the target.
 * That is BEFORE triggers, volatile functions, RETURNING and ON CONFLICT.  Such
 * statements keep core's way, with the reason in EXPLAIN (VERBOSE).  Everything
 * else has its usual place: generated columns, constraints and partition bounds
 * before a row joins the batch, index entries and AFTER triggers behind it.
 *
 * The plan is core's, and so is all that surrounds it.  When the executor has set up
 * the ModifyTable node, a hook puts a function of ours in the place of the node's
 * own.  It is called once, and returns when all rows are in.
 *
 * The limits of a batch are those of
 * COPY FROM (copyfrom.c, "multi-insert buffers").
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "compat.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "insert_batch.h"
#include "insert_select.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "plan.h"
#include "scan.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"

/* Rows and bytes that wait at most, all targets together; the last row may be larger. */
#define BATCH_ROWS		1000
#define BATCH_BYTES		65535

/* Room for them in the beginning, doubled as needed. */
#define FIRST_SLOTS		16

/* Slots for rows that are kept at most, all targets together. */
#define MAX_SLOTS		4000

/* More partitions than these are not locked just to look at them. */
#define MAX_PARTITIONS	1000

bool		insert_batch_enabled = true;

/* One table, and the rows that wait for it. */
typedef struct BatchTarget
{
	ResultRelInfo *relinfo;		/* hash key */
	TupleConversionMap *map;	/* from the columns of the named table; or NULL */
	int			used;			/* of the slots: rows that wait */
	int			nslots;			/* made so far */
	int			size;			/* of the array */
	TupleTableSlot **slots;
} BatchTarget;

/* One INSERT; it lives on the stack. */
typedef struct Batch
{
	ModifyTableState *node;
	EState	   *estate;
	ResultRelInfo *named;		/* the table that the statement names */
	HTAB	   *targets;		/* BatchTargets of partitions; NULL: none */
	BatchTarget *last;			/* the one of the last row */
	List	   *pending;		/* those with rows, by their first ones */
	bool		ordered;		/* triggers show the order of the rows */
	bool		begun;			/* the first row is written */
	int			nslots;			/* of all targets */
	int			rows;			/* that wait */
	Size		bytes;			/* and their size */
} Batch;

static ExecutorStart_hook_type previous_executor_start;

/* ----------
 * Writing
 * ----------
 */

/* Index entries and AFTER triggers of a row that is in the table now. */
static void
finish_row(Batch *batch, ResultRelInfo *relinfo, TupleTableSlot *slot)
{
	List	   *recheck = NIL;

	if (relinfo->ri_NumIndices > 0)
		recheck = compat_insert_index_tuples(relinfo, slot, batch->estate);
	ExecARInsertTriggers(batch->estate, relinfo, slot, recheck, NULL);
	list_free(recheck);
	ExecClearTuple(slot);
	ResetPerTupleExprContext(batch->estate);
}

/* Write what waits for this table. */
static void
flush_target(Batch *batch, BatchTarget *target)
{
	EState	   *estate = batch->estate;
	MemoryContext oldcontext;
	int			i;

	if (target->used == 0)
		return;
	/* it leaves behind what it had to compress or to store elsewhere */
	oldcontext = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	table_multi_insert(target->relinfo->ri_RelationDesc, target->slots,
					   target->used, estate->es_output_cid, 0, NULL);
	MemoryContextSwitchTo(oldcontext);
	ResetPerTupleExprContext(estate);

	for (i = 0; i < target->used; i++)
	{
		CHECK_FOR_INTERRUPTS();
		finish_row(batch, target->relinfo, target->slots[i]);
	}
	if (batch->node->canSetTag)
		estate->es_processed += target->used;
	target->used = 0;
}

/* The slots of all targets. */
static void
drop_slots(Batch *batch)
{
	HASH_SEQ_STATUS status;
	BatchTarget *target;
	int			i;

	hash_seq_init(&status, batch->targets);
	while ((target = hash_seq_search(&status)) != NULL)
	{
		for (i = 0; i < target->nslots; i++)
			ExecDropSingleTupleTableSlot(target->slots[i]);
		target->nslots = 0;
	}
	batch->nslots = 0;
}

/*
 * Write all that waits, in the order of the first rows.  Slots are kept, unless
 * there are too many: each partition may have had its turn.
 */
static void
flush(Batch *batch)
{
	ListCell   *lc;

	foreach(lc, batch->pending)
		flush_target(batch, lfirst(lc));
	if (batch->nslots > MAX_SLOTS)
		drop_slots(batch);
	list_free(batch->pending);
	batch->pending = NIL;
	batch->begun = true;
	batch->rows = 0;
	batch->bytes = 0;
}

/* ----------
 * Targets
 * ----------
 */

static const char *relation_reason(Relation relation);

/*
 * Does a trigger fire for each row, in an order that can be seen?  That of foreign
 * keys cannot.
 */
static bool
shows_order(TriggerDesc *triggers)
{
	int			i;

	if (triggers == NULL || !triggers->trig_insert_after_row)
		return false;
	for (i = 0; i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_ROW(trigger->tgtype) &&
			TRIGGER_FOR_INSERT(trigger->tgtype) && !trigger->tgisinternal)
			return true;
	}
	return false;
}

/* The first row for this table. */
static void
init_target(Batch *batch, BatchTarget *target, ResultRelInfo *relinfo)
{
	Relation	relation = relinfo->ri_RelationDesc;

	/* One that came after the others had been looked at. */
	if (relinfo != batch->named && relation_reason(relation) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("partition \"%s\" was attached while rows were inserted",
						RelationGetRelationName(relation)),
				 errdetail("Its rows cannot be inserted in batches: %s.",
						   relation_reason(relation)),
				 errhint("Run the statement again.")));
	if (shows_order(relinfo->ri_TrigDesc))
		batch->ordered = true;
	memset(target, 0, sizeof(BatchTarget));
	target->relinfo = relinfo;
	target->size = FIRST_SLOTS;
	target->slots = palloc(target->size * sizeof(TupleTableSlot *));
	if (relinfo != batch->named)
		target->map = compat_partition_map(relinfo, batch->estate);
	if (relation->rd_rel->relhasindex && relinfo->ri_IndexRelationDescs == NULL)
		ExecOpenIndices(relinfo, false);
}

/* The target for this table. */
static BatchTarget *
look_up_target(Batch *batch, ResultRelInfo *relinfo)
{
	BatchTarget *target;
	bool		found;

	if (batch->targets == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(ResultRelInfo *);
		ctl.entrysize = sizeof(BatchTarget);
		ctl.hcxt = CurrentMemoryContext;
		batch->targets = hash_create("tidrange_fdw batches", 16, &ctl,
									 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	target = hash_search(batch->targets, &relinfo, HASH_ENTER, &found);
	if (!found)
		init_target(batch, target, relinfo);
	return target;
}

/* Where this row belongs. */
static BatchTarget *
find_target(Batch *batch, TupleTableSlot *row)
{
	ResultRelInfo *relinfo = batch->named;
	PartitionTupleRouting *routing = batch->node->mt_partition_tuple_routing;

	if (routing != NULL)
		relinfo = ExecFindPartition(batch->node, batch->named, routing, row,
									batch->estate);
	if (batch->last == NULL || batch->last->relinfo != relinfo)
	{
		/* triggers are queued as rows are written: not table by table, then */
		if (batch->ordered)
			flush(batch);
		batch->last = look_up_target(batch, relinfo);
	}
	return batch->last;
}

/* All is written. */
static void
drop_targets(Batch *batch)
{
	if (batch->targets == NULL)
		return;
	drop_slots(batch);
	hash_destroy(batch->targets);
}

/* ----------
 * Rows
 * ----------
 */

static TupleTableSlot *
free_slot(Batch *batch, BatchTarget *target)
{
	if (target->used == target->size)
	{
		target->size *= 2;
		target->slots = repalloc(target->slots,
								 target->size * sizeof(TupleTableSlot *));
	}
	if (target->used == target->nslots)
	{
		target->slots[target->nslots] =
			table_slot_create(target->relinfo->ri_RelationDesc, NULL);
		target->nslots++;
		batch->nslots++;
	}
	return target->slots[target->used];
}

/* The columns of the row as they are stored in this table; no copy yet. */
static void
store_row(BatchTarget *target, TupleTableSlot *row, TupleTableSlot *slot)
{
	int			natts = slot->tts_tupleDescriptor->natts;

	if (target->map != NULL)
	{
		(void) execute_attr_map_slot(target->map->attrMap, row, slot);
		return;
	}
	slot_getallattrs(row);
	memcpy(slot->tts_values, row->tts_values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, row->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
}

/* All that has to be true before the row is in the table; as ExecInsert. */
static void
check_row(Batch *batch, ResultRelInfo *relinfo, TupleTableSlot *slot)
{
	Relation	relation = relinfo->ri_RelationDesc;
	TupleConstr *constr = RelationGetDescr(relation)->constr;

	slot->tts_tableOid = RelationGetRelid(relation);
	if (constr != NULL && constr->has_generated_stored)
		compat_compute_generated(relinfo, batch->estate, slot);
	if (constr != NULL)
		ExecConstraints(relinfo, slot, batch->estate);
	/* one that was routed here fits */
	if (relation->rd_rel->relispartition && relinfo == batch->named)
		ExecPartitionCheck(relinfo, slot, batch->estate, true);
}

static void
add_row(Batch *batch, TupleTableSlot *row)
{
	BatchTarget *target = find_target(batch, row);
	TupleTableSlot *slot = free_slot(batch, target);

	store_row(target, row, slot);
	check_row(batch, target->relinfo, slot);
	ExecMaterializeSlot(slot);
	if (target->used++ == 0)
		batch->pending = lappend(batch->pending, target);
	batch->rows++;
	batch->bytes += ((HeapTupleTableSlot *) slot)->tuple->t_len;
	/* the first row gets the transaction its ID, which others may look at */
	if (!batch->begun || batch->rows >= BATCH_ROWS || batch->bytes > BATCH_BYTES)
		flush(batch);
}

/*
 * What the executor calls in ExecModifyTable's stead.
 */
static TupleTableSlot *
insert_batches(PlanState *planstate)
{
	ModifyTableState *node = castNode(ModifyTableState, planstate);
	Batch		batch = {0};

	if (node->mt_done)
		return NULL;
	batch.node = node;
	batch.estate = planstate->state;
	batch.named = node->resultRelInfo;
	ExecBSInsertTriggers(batch.estate, batch.named);
	for (;;)
	{
		TupleTableSlot *row;

		ResetPerTupleExprContext(batch.estate);
		row = ExecProcNode(compat_modify_table_source(node));
		if (TupIsNull(row))
			break;
		add_row(&batch, row);
	}
	flush(&batch);
	drop_targets(&batch);
	ExecASInsertTriggers(batch.estate, batch.named, NULL);
	node->mt_done = true;
	return NULL;
}

/* ----------
 * Where it may be done
 * ----------
 */

static const char *
trigger_reason(Relation relation)
{
	TriggerDesc *triggers = relation->trigdesc;
	int			i;

	if (triggers == NULL)
		return NULL;
	if (triggers->trig_insert_before_row || triggers->trig_insert_instead_row)
		return psprintf("\"%s\" has a trigger that fires before each row",
						RelationGetRelationName(relation));
	/* it could make triggers on partitions */
	if (triggers->trig_insert_before_statement &&
		relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return psprintf("\"%s\" is partitioned and has a trigger that fires before the statement",
						RelationGetRelationName(relation));
	/* a condition is evaluated when its row is written */
	for (i = 0; i < triggers->numtriggers; i++)
	{
		if (insert_select_is_volatile_text(triggers->triggers[i].tgqual))
			return psprintf("condition of trigger \"%s\" of \"%s\" is volatile",
							triggers->triggers[i].tgname,
							RelationGetRelationName(relation));
	}
	return NULL;
}

/* Why rows of this one table have to be inserted one by one. */
static const char *
relation_reason(Relation relation)
{
	const char *reason;

	if (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		(relation->rd_rel->relkind != RELKIND_RELATION ||
		 relation->rd_rel->relam != HEAP_TABLE_AM_OID ||
		 IsCatalogRelation(relation)))
		return psprintf("\"%s\" is not a heap table",
						RelationGetRelationName(relation));
	reason = trigger_reason(relation);
	return reason != NULL ? reason : insert_select_volatile_reason(relation);
}

/*
 * The partitions of a target.  They are locked as the insert locks those that get
 * rows: what was seen stays true.  But nothing is waited for that it would not
 * wait for, and EXPLAIN only looks.
 */
static const char *
partitions_reason(Oid relid, bool explain_only)
{
	LOCKMODE	lock = explain_only ? AccessShareLock : RowExclusiveLock;
	const char *reason = NULL;
	List	   *relids = find_all_inheritors(relid, NoLock, NULL);
	ListCell   *lc;

	if (list_length(relids) > MAX_PARTITIONS)
		return psprintf("\"%s\" has more than %d partitions",
						get_rel_name(relid), MAX_PARTITIONS);
	foreach(lc, relids)
	{
		Relation	relation;

		if (!ConditionalLockRelationOid(lfirst_oid(lc), lock))
		{
			if (explain_only)
				continue;
			return psprintf("partition \"%s\" is locked by somebody",
							get_rel_name(lfirst_oid(lc)));
		}
		relation = try_relation_open(lfirst_oid(lc), NoLock);
		if (relation == NULL)
			continue;
		reason = relation_reason(relation);
		relation_close(relation, NoLock);
		if (reason != NULL)
			break;
	}
	return reason;
}

/*
 * Are the columns of the source those of the target, as core checks it?  Others,
 * by which it was sorted, may stand behind them.
 */
static bool
columns_fit(List *tlist, TupleDesc desc)
{
	ListCell   *lc;
	int			attno = 0;

	foreach(lc, tlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Form_pg_attribute attribute;

		if (tle->resjunk)
			break;
		if (attno == desc->natts)
			return false;
		attribute = TupleDescAttr(desc, attno++);
		if (attribute->attisdropped ?
			!IsA(tle->expr, Const) || !((Const *) tle->expr)->constisnull :
			exprType((Node *) tle->expr) != attribute->atttypid)
			return false;
	}
	return attno == desc->natts;
}

/* Why the rows of this statement have to be inserted one by one. */
static const char *
statement_reason(ModifyTableState *node, bool explain_only)
{
	ModifyTable *plan = (ModifyTable *) node->ps.plan;
	ResultRelInfo *target = node->resultRelInfo;
	Relation	relation = target->ri_RelationDesc;
	const char *reason;

	if (!insert_batch_enabled)
		return "tidrange_fdw.batch_insert is off";
	if (plan->onConflictAction != ONCONFLICT_NONE)
		return "ON CONFLICT";
	if (plan->returningLists != NIL)
		return "RETURNING";
	if (plan->withCheckOptionLists != NIL)
		return "the target has a check option or row-level security";
	if (target->ri_TrigDesc != NULL && target->ri_TrigDesc->trig_insert_new_table)
		return "a trigger of the target has a transition table";
	reason = relation_reason(relation);
	if (reason == NULL &&
		!columns_fit(compat_modify_table_source(node)->plan->targetlist,
					 RelationGetDescr(relation)))
		reason = "the columns are not those of the target";
	if (reason == NULL &&
		relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		reason = partitions_reason(RelationGetRelid(relation), explain_only);
	return reason;
}

/* Collect the scans of our tables. */
static bool
collect_scans(PlanState *planstate, void *list)
{
	if (planstate == NULL)
		return false;
	if (IsA(planstate, ForeignScanState) &&
		plan_is_our_routine(((ForeignScanState *) planstate)->fdwroutine))
		*(List **) list = lappend(*(List **) list,
								  ((ForeignScanState *) planstate)->fdw_state);
	return planstate_tree_walker(planstate, collect_scans, list);
}

/*
 * ExecutorStart hook.
 */
static void
start_executor(QueryDesc *desc, int eflags)
{
	List	   *scans = NIL;
	const char *reason = NULL;
	ListCell   *lc;

	if (previous_executor_start)
		previous_executor_start(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);

	if (desc->operation != CMD_INSERT ||
		!IsA(desc->planstate, ModifyTableState))
		return;
	(void) collect_scans(desc->planstate, &scans);
	if (scans == NIL)
		return;
	foreach(lc, scans)
	{
		TidrangeScan *scan = lfirst(lc);

		if (scan->plan.row_reason[0] != '\0')
			reason = scan->plan.row_reason;
	}
	if (desc->plannedstmt->hasModifyingCTE)
		reason = "the statement has a data-modifying CTE";
	if (reason == NULL)
		reason = statement_reason((ModifyTableState *) desc->planstate,
								  (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0);
	foreach(lc, scans)
		((TidrangeScan *) lfirst(lc))->batch_reason = reason ? reason : "";
	if (reason == NULL)
		ExecSetExecProcNode(desc->planstate, insert_batches);
}

/*
 * Module load.
 */
void
insert_batch_init(void)
{
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
}
