/*-------------------------------------------------------------------------
 *
 * chunks.c
 *	  tidrange_fdw_chunks(), tidrange_fdw_leaf_chunks(): how a table of a given
 *	  size, or one with leaves of given sizes, would be divided.
 *
 * Runs the claim code as a scan does, over participants that take turns, each
 * reading at the same made-up speed.  For users, to see what chunk_blocks and
 * the number of workers do to a table; for tests, to check the arithmetic of
 * claims at sizes that no test table has.
 *
 * One chunk is claimed a call, so that LIMIT ends the simulation.  Nothing here
 * connects to anything.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "access/htup_details.h"
#include "claim.h"
#include "compat.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"

/* The speed of every participant, and what a request costs it. */
#define BLOCKS_PER_SECOND	20000
#define ROUND_TRIP_SECONDS	0.001

/* The leader and as many workers as the option parallel_workers may ask for. */
#define MAX_PARTICIPANTS	1025

/* What lives from call to call. */
typedef struct Simulation
{
	Claim	   *claim;
	ClaimPace  *paces;			/* one a participant */
	int			nparticipants;
	int			turn;			/* who claims next */
} Simulation;

TIDRANGE_FUNCTION(tidrange_fdw_chunks);
TIDRANGE_FUNCTION(tidrange_fdw_leaf_chunks);

static void
check_range(const char *name, int64 value, int64 min, int64 max)
{
	if (value < min || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be between " INT64_FORMAT " and " INT64_FORMAT,
						name, min, max)));
}

/* A scan of these pieces, about to begin. */
static Simulation *
start_simulation(const ClaimPiece *pieces, int npieces, int nparticipants,
				 int64 chunk_blocks)
{
	Simulation *simulation = palloc(sizeof(Simulation));
	int			i;

	simulation->claim = palloc(claim_size(Max(npieces, 1)));
	claim_init(simulation->claim, pieces, npieces, nparticipants,
			   chunk_blocks);
	simulation->paces = palloc0(nparticipants * sizeof(ClaimPace));
	for (i = 0; i < nparticipants; i++)
		simulation->paces[i].round_trip = ROUND_TRIP_SECONDS;
	simulation->nparticipants = nparticipants;
	simulation->turn = 0;
	return simulation;
}

/* The next chunk and who has it; false when none is left. */
static bool
next_chunk(Simulation *simulation, ClaimChunk *chunk, int *participant)
{
	ClaimPace  *pace = &simulation->paces[simulation->turn];

	if (!claim_next(simulation->claim, pace, chunk))
		return false;
	claim_finish(simulation->claim, pace, chunk,
				 (double) chunk->units * chunk->weight / BLOCKS_PER_SECOND);
	*participant = simulation->turn;
	simulation->turn = (simulation->turn + 1) % simulation->nparticipants;
	return true;
}

static void
check_participants(int64 nparticipants, int64 chunk_blocks)
{
	check_range("number of participants", nparticipants, 1, MAX_PARTICIPANTS);
	check_range("size of a chunk", chunk_blocks, 0, PG_UINT32_MAX);
}

/* The first call of a function that returns rows. */
static FuncCallContext *
begin_call(FunctionCallInfo fcinfo)
{
	FuncCallContext *funcctx = SRF_FIRSTCALL_INIT();
	MemoryContext oldcontext;
	TupleDesc	tupdesc;

	oldcontext = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	funcctx->tuple_desc = BlessTupleDesc(tupdesc);
	MemoryContextSwitchTo(oldcontext);
	return funcctx;
}

/* A chunk as a row: participant, leaf if asked for, lower, upper, blocks. */
static Datum
chunk_row(FuncCallContext *funcctx, const ClaimChunk *chunk, int participant,
		  bool with_leaf)
{
	char		lower[CLAIM_TID_SIZE];
	char		upper[CLAIM_TID_SIZE];
	Datum		values[5];
	bool		nulls[5] = {false};
	int			n = 0;

	claim_format_bounds(chunk, lower, upper);
	values[n++] = Int32GetDatum(participant);
	if (with_leaf)
		values[n++] = Int32GetDatum((int32) chunk->leaf + 1);
	values[n++] = CStringGetTextDatum(lower);
	nulls[n] = chunk->open_end;
	values[n++] = chunk->open_end ? (Datum) 0 : CStringGetTextDatum(upper);
	values[n++] = Int64GetDatum((int64) chunk->nblocks);
	return HeapTupleGetDatum(heap_form_tuple(funcctx->tuple_desc, values, nulls));
}

/*
 * One row a chunk.
 */
Datum
tidrange_fdw_chunks(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	ClaimChunk	chunk;
	int			participant;

	if (SRF_IS_FIRSTCALL())
	{
		int64		nblocks = PG_GETARG_INT64(0);
		int32		nparticipants = PG_GETARG_INT32(1);
		int64		chunk_blocks = PG_GETARG_INT64(2);
		ClaimPiece	piece;
		MemoryContext oldcontext;

		check_range("number of blocks", nblocks, 0, PG_UINT32_MAX);
		check_participants(nparticipants, chunk_blocks);

		funcctx = begin_call(fcinfo);
		oldcontext = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
		claim_piece(&piece, nblocks, 0, PG_UINT64_MAX);
		funcctx->user_fctx = start_simulation(&piece, 1, nparticipants,
											  chunk_blocks);
		MemoryContextSwitchTo(oldcontext);
	}

	funcctx = SRF_PERCALL_SETUP();
	if (!next_chunk(funcctx->user_fctx, &chunk, &participant))
		SRF_RETURN_DONE(funcctx);

	SRF_RETURN_NEXT(funcctx, chunk_row(funcctx, &chunk, participant, false));
}

/*
 * The pieces of leaves of these sizes, cut to the blocks [first, beyond) of each.
 */
static int
make_pieces(ClaimPiece *pieces, const Datum *leaves, const bool *nulls,
			int nleaves, int64 first, int64 beyond, int64 toast_blocks)
{
	int			n = 0;
	int			i;

	for (i = 0; i < nleaves; i++)
	{
		int64		nblocks = nulls[i] ? 0 : DatumGetInt64(leaves[i]);

		check_range("number of blocks", nblocks, 0, PG_UINT32_MAX);
		if (nblocks == 0 ||
			!claim_piece(&pieces[n], nblocks, first, beyond))
			continue;
		pieces[n].leaf = i;
		claim_split_piece(&pieces[n], nblocks, toast_blocks, 0);
		n++;
	}
	return n;
}

/*
 * The same for a table with leaves: one row a chunk, with the leaf it lies in.
 */
Datum
tidrange_fdw_leaf_chunks(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	ClaimChunk	chunk;
	int			participant;

	if (SRF_IS_FIRSTCALL())
	{
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
		int32		nparticipants = PG_GETARG_INT32(1);
		int64		chunk_blocks = PG_GETARG_INT64(2);
		int64		first = PG_GETARG_INT64(3);
		int64		beyond = PG_GETARG_INT64(4);
		int64		toast_blocks = PG_GETARG_INT64(5);
		Datum	   *leaves;
		bool	   *leaf_nulls;
		int			nleaves;
		ClaimPiece *pieces;
		MemoryContext oldcontext;

		check_participants(nparticipants, chunk_blocks);
		check_range("first block", first, 0, PG_UINT32_MAX);
		check_range("block beyond the last one", beyond, 0, PG_UINT32_MAX);
		check_range("number of TOAST blocks", toast_blocks, 0, PG_UINT32_MAX);
		deconstruct_array(array, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
						  TYPALIGN_DOUBLE, &leaves, &leaf_nulls, &nleaves);

		funcctx = begin_call(fcinfo);
		oldcontext = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
		pieces = palloc(Max(nleaves, 1) * sizeof(ClaimPiece));
		nleaves = make_pieces(pieces, leaves, leaf_nulls, nleaves, first,
							  beyond, chunk_blocks > 0 ? 0 : toast_blocks);
		funcctx->user_fctx = start_simulation(pieces, nleaves, nparticipants,
											  chunk_blocks);
		MemoryContextSwitchTo(oldcontext);
	}

	funcctx = SRF_PERCALL_SETUP();
	if (!next_chunk(funcctx->user_fctx, &chunk, &participant))
		SRF_RETURN_DONE(funcctx);

	SRF_RETURN_NEXT(funcctx, chunk_row(funcctx, &chunk, participant, true));
}
