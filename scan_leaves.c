/*-------------------------------------------------------------------------
 *
 * scan_leaves.c
 *	  The relations that a scan reads one after the other: which they are, where
 *	  their blocks stand in the block space, the SQL for each.
 *
 * A scan has one leaf, the remote relation itself, unless that is a parent whose
 * leaves may be read by their names.  A parent whose leaves must not be (row-level
 * security, grants: see remote_leaves.c) is one leaf too: a range of its blocks
 * is that range of each of its leaves.
 *
 * The leader lists the leaves, once for the scan; the workers take over its list.
 * Which leaf a chunk lies in is said by the claim, since conditions on ctid may
 * leave another selection of them at every rescan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ctid.h"
#include "nodes/nodeFuncs.h"
#include "scan.h"
#include "scan_team.h"
#include "utils/memutils.h"

/* ----------
 * Which relations
 * ----------
 */

/* {1,2,3}: the leaves whose rows count, whatever is attached later. */
static char *
list_oids(const RemoteTable *table)
{
	StringInfoData buf;
	int			i;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	for (i = 0; i < table->nleaves; i++)
		appendStringInfo(&buf, "%s%u", i > 0 ? "," : "", table->leaves[i].oid);
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

/*
 * The relation as its only leaf.  As many blocks as its largest leaf, with what
 * the same block of all leaves holds.
 */
static RemoteLeaf *
single_leaf(const ScanRemote *remote, const RemoteTable *table)
{
	RemoteLeaf *leaf = palloc0(sizeof(RemoteLeaf));
	bool		through_parent = remote_leaves_through_parent(table);
	int64		nblocks = 0;
	int64		toast_blocks = 0;
	int			i;

	leaf->name = table->name;
	leaf->oid = table->oid;
	leaf->filenode = table->filenode;
	leaf->whole = !remote->chunked;
	leaf->only = remote->chunked ? !through_parent : table->only;
	leaf->lock_only = leaf->only || table->shallow;
	leaf->lockable = !table->lock_refused;
	leaf->nblocks = remote_leaves_is_parent(table) ? 0 : table->nblocks;
	for (i = 0; i < table->nleaves; i++)
	{
		leaf->nblocks = Max(leaf->nblocks, table->leaves[i].nblocks);
		leaf->density = Max(leaf->density, table->leaves[i].density);
		nblocks += table->leaves[i].nblocks;
		toast_blocks += table->leaves[i].toast_blocks;
	}

	/* Many leaves make a block heavy, but are no reason to divide it. */
	nblocks = Min(nblocks, leaf->nblocks * CLAIM_SPLIT_BLOCKS);
	leaf->toast_blocks = Max(nblocks - leaf->nblocks, toast_blocks);
	return leaf;
}

/*
 * Under which key connections note that they have locked what the scan reads.
 * For leaves it is one of this scan alone: another scan of the same table may
 * need others.  A collision with a remote OID would only skip the precaution
 * against queued DDL.
 */
Oid
scan_choose_lock_key(TidrangeScan *scan)
{
	static Oid	last_key = (Oid) PG_UINT32_MAX;

	scan->lock_key = scan->remote.by_leaf ? --last_key : scan->remote.oid;
	return scan->lock_key;
}

/*
 * Choose what is read, after it was decided whether that is done in chunks.
 */
void
scan_choose_leaves(TidrangeScan *scan, const RemoteTable *table)
{
	ScanRemote *remote = &scan->remote;
	MemoryContext oldcontext = MemoryContextSwitchTo(scan->context);

	remote->tableoids = "";
	remote->nexcluded = 0;
	remote->shallow = table->shallow && remote_leaves_is_parent(table);
	remote->nblocks = remote->shallow ? -1 : table->nblocks;
	scan->lock_key = table->oid;
	if (remote->chunked && remote_leaves_direct(table))
	{
		Size		size = table->nleaves * sizeof(RemoteLeaf);

		remote->by_leaf = true;
		remote->nleaves = table->nleaves;
		remote->leaves = palloc(size);
		memcpy(remote->leaves, table->leaves, size);
	}
	else
	{
		remote->by_leaf = false;
		remote->nleaves = 1;
		remote->leaves = single_leaf(remote, table);
		if (remote->chunked)
			remote->nblocks = remote->leaves[0].nblocks;
		if (remote->chunked && remote_leaves_through_parent(table))
			remote->tableoids = list_oids(table);
	}
	MemoryContextSwitchTo(oldcontext);
}

/* Is there a parameter in it that a rescan may change? */
static bool
has_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, has_exec_param, context);
}

/* Will it be read in chunks, by several processes or over several connections? */
static bool
is_divided(const TidrangeScan *scan)
{
	return scan->state->ss.ps.plan->parallel_aware ||
		scan->plan.connections > 1 || scan_team_divides(scan);
}

/*
 * Is it enough to lock a partitioned table without its partitions?  It is read by
 * one statement then, which reads, and locks, perhaps one of thousands.  Not where
 * that is run for each outer row: it is checked every time.
 */
static bool
locks_shallow(const TidrangeScan *scan)
{
	return scan->plan.is_flat && !scan->options.only &&
		!is_divided(scan) &&
		!has_exec_param((Node *) scan->plan.params, NULL);
}

/* What the scan wants to be locked and measured. */
void
scan_make_wish(const TidrangeScan *scan, SnapshotWish *wish)
{
	wish->relid = scan->relid;
	wish->shallow = locks_shallow(scan);
	wish->list_leaves = is_divided(scan);
}

/*
 * Leave out the leaves that the remote does not read for these quals: partition
 * pruning.  Only if the quals will be the same at every rescan.
 */
void
scan_drop_leaves(TidrangeScan *scan, const bool *excluded)
{
	ScanRemote *remote = &scan->remote;
	int			n = 0;
	int			i;

	if (!remote->by_leaf || has_exec_param((Node *) scan->plan.params, NULL))
		return;
	for (i = 0; i < remote->nleaves; i++)
	{
		if (excluded[i])
			remote->nblocks -= remote->leaves[i].nblocks;
		else
			remote->leaves[n++] = remote->leaves[i];
	}
	remote->nexcluded = remote->nleaves - n;
	remote->nleaves = n;
}

/* ----------
 * Their SQL
 * ----------
 */

/* The bounds of a chunk, constant text for all of them. */
#define CHUNK_BOUNDS \
	"ctid >= current_setting('tidrange.lo')::tid AND " \
	"ctid < current_setting('tidrange.hi')::tid"

/* The SELECT of a leaf, with these values of the parameters. */
static char *
leaf_select(TidrangeScan *scan, int index, const char *const *values)
{
	const ScanRemote *remote = &scan->remote;
	const RemoteLeaf *leaf = &remote->leaves[index];
	const char *bounds = NULL;
	StringInfoData buf;

	if (!leaf->whole)
		bounds = CHUNK_BOUNDS;
	if (!leaf->whole && remote->tableoids[0] != '\0')
		bounds = psprintf("tableoid = ANY ('%s'::oid[]) AND " CHUNK_BOUNDS,
						  remote->tableoids);
	initStringInfo(&buf);
	scan_append_select(&buf, remote->select_list, leaf->name, leaf->only,
					   bounds, &scan->plan, values);
	return buf.data;
}

/* The COPY of a leaf; built once a (re)scan. */
static const char *
leaf_copy(TidrangeScan *scan, int index)
{
	MemoryContext oldcontext;

	/* A nested loop may rescan a million times. */
	if (scan->copy_sql == NULL)
	{
		MemoryContextReset(scan->sql_context);
		scan->leaf_sql =
			MemoryContextAllocZero(scan->sql_context,
								   scan->remote.nleaves * sizeof(char *));
	}
	if (scan->leaf_sql[index] == NULL)
	{
		oldcontext = MemoryContextSwitchTo(scan->sql_context);
		scan->leaf_sql[index] =
			psprintf("COPY (%s) TO STDOUT (FORMAT binary)",
					 leaf_select(scan, index, scan_param_values(scan)));
		MemoryContextSwitchTo(oldcontext);
	}
	scan->copy_sql = scan->leaf_sql[index];
	return scan->copy_sql;
}

/*
 * What a stream must ask for to get the rows of a chunk, except for its bounds.
 */
void
scan_fill_request(TidrangeScan *scan, const ClaimChunk *chunk,
				  StreamRequest *request)
{
	const RemoteLeaf *leaf = &scan->remote.leaves[chunk->leaf];

	request->copy_sql = leaf_copy(scan, chunk->leaf);
	request->relation = leaf->name;
	request->oid = leaf->oid;
	request->chunked = !leaf->whole;
	request->check_files = scan->remote.shallow;
}

/* What a connection must lock before it reads for this scan. */
void
scan_fill_lock(TidrangeScan *scan, SnapshotLock *lock)
{
	const ScanRemote *remote = &scan->remote;
	const char **values = scan_param_values(scan);
	int			i;

	lock->name = remote->name;
	lock->key = scan->lock_key;
	lock->nleaves = remote->nleaves;
	lock->leaves = remote->leaves;
	lock->chunked = remote->chunked;
	lock->others_locked = remote->lock_refused || remote->by_leaf ||
		remote->tableoids[0] != '\0';
	lock->selects = palloc(Max(remote->nleaves, 1) * sizeof(char *));
	for (i = 0; i < remote->nleaves; i++)
		lock->selects[i] = leaf_select(scan, i, values);
}

/* ----------
 * Their blocks
 * ----------
 */

/*
 * The block space of the coming (re)scan, cut by the quals on ctid, which hold for
 * the blocks of each leaf; ready to be claimed.  Only while no other participant
 * runs.  The claim has room for scan_claim_size().
 */
void
scan_lay_out_claim(TidrangeScan *scan, Claim *claim, int nparticipants)
{
	const ScanRemote *remote = &scan->remote;
	uint64		chunk_blocks = scan->options.chunk_blocks;
	ClaimPiece *pieces = palloc0(Max(remote->nleaves, 1) * sizeof(ClaimPiece));
	CtidRange	range;
	uint32		n = 0;
	int			i;

	range = ctid_range(scan->plan.ctid_operators, scan->ctid_states,
					   scan->state->ss.ps.ps_ExprContext);
	for (i = 0; i < remote->nleaves; i++)
	{
		const RemoteLeaf *leaf = &remote->leaves[i];

		/* What is read without bounds is not cut. */
		if (leaf->whole ?
			claim_whole_piece(&pieces[n], leaf->nblocks) :
			claim_piece(&pieces[n], leaf->nblocks, range.first, range.beyond))
		{
			pieces[n].leaf = i;
			if (chunk_blocks == 0)
				claim_split_piece(&pieces[n], leaf->nblocks,
								  leaf->toast_blocks, leaf->density);
			n++;
		}
	}
	claim_init(claim, pieces, n, nparticipants, chunk_blocks);
	pfree(pieces);
}

Size
scan_claim_size(const TidrangeScan *scan)
{
	return claim_size(Max(scan->remote.nleaves, 1));
}

/* A counter for this process alone. */
void
scan_make_private_claim(TidrangeScan *scan)
{
	Size		size = scan_claim_size(scan);

	if (scan->private_claim == NULL || scan->private_claim_size < size)
	{
		scan->private_claim = MemoryContextAlloc(scan->context, size);
		scan->private_claim_size = size;
	}
	/* it grows with each connection that is opened */
	scan_lay_out_claim(scan, scan->private_claim, 1);
	scan->claim = scan->private_claim;
}

/* ----------
 * Between leader and workers
 * ----------
 */

/* A leaf without pointers; the names stand behind all of them, in their order. */
typedef struct SharedLeaf
{
	Oid			oid;
	Oid			filenode;
	bool		whole;
	bool		only;
	bool		lockable;
} SharedLeaf;

/* Bytes of what scan_write_leaves writes. */
Size
scan_leaves_size(const ScanRemote *remote)
{
	Size		size = remote->nleaves * sizeof(SharedLeaf);
	int			i;

	for (i = 0; i < remote->nleaves; i++)
		size += strlen(remote->leaves[i].name) + 1;
	return size + strlen(remote->tableoids) + 1;
}

void
scan_write_leaves(const ScanRemote *remote, char *to)
{
	SharedLeaf *shared = (SharedLeaf *) to;
	char	   *text = to + remote->nleaves * sizeof(SharedLeaf);
	int			i;

	for (i = 0; i < remote->nleaves; i++)
	{
		const RemoteLeaf *leaf = &remote->leaves[i];

		shared[i].oid = leaf->oid;
		shared[i].filenode = leaf->filenode;
		shared[i].whole = leaf->whole;
		shared[i].only = leaf->only;
		shared[i].lockable = leaf->lockable;
		strcpy(text, leaf->name);
		text += strlen(text) + 1;
	}
	strcpy(text, remote->tableoids);
}

/*
 * The list that the leader wrote, of remote->nleaves leaves.  The names stay where
 * they are.
 */
void
scan_read_leaves(TidrangeScan *scan, ScanRemote *remote, char *from)
{
	int			nleaves = remote->nleaves;
	const SharedLeaf *shared = (const SharedLeaf *) from;
	char	   *text = from + nleaves * sizeof(SharedLeaf);
	int			i;

	remote->leaves = MemoryContextAllocZero(scan->context,
											Max(nleaves, 1) * sizeof(RemoteLeaf));
	for (i = 0; i < nleaves; i++)
	{
		RemoteLeaf *leaf = &remote->leaves[i];

		leaf->oid = shared[i].oid;
		leaf->filenode = shared[i].filenode;
		leaf->whole = shared[i].whole;
		leaf->only = shared[i].only;
		leaf->lockable = shared[i].lockable;
		leaf->lock_only = leaf->only;
		leaf->name = text;
		text += strlen(text) + 1;
	}
	remote->tableoids = text;
}
