/*-------------------------------------------------------------------------
 *
 * chunks.c
 *	  tidrange_fdw_chunks(): how a table of a given size would be divided.
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

#include "claim.h"
#include "compat.h"
#include "funcapi.h"
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

static void
check_range(const char *name, int64 value, int64 min, int64 max)
{
	if (value < min || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be between " INT64_FORMAT " and " INT64_FORMAT,
						name, min, max)));
}

/* A scan of one table, about to begin. */
static Simulation *
start_simulation(int64 nblocks, int nparticipants, int64 chunk_blocks)
{
	Simulation *simulation = palloc(sizeof(Simulation));
	ClaimPiece	piece = {0};
	int			i;

	/* As in a scan, an empty table has one chunk, which finds nothing. */
	piece.nblocks = Max(nblocks, 1);
	piece.open_end = true;
	simulation->claim = palloc(claim_size(1));
	claim_init(simulation->claim, &piece, 1, nparticipants, chunk_blocks);
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
				 (double) chunk->nblocks / BLOCKS_PER_SECOND);
	*participant = simulation->turn;
	simulation->turn = (simulation->turn + 1) % simulation->nparticipants;
	return true;
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
	char		lower[CLAIM_TID_SIZE];
	char		upper[CLAIM_TID_SIZE];
	Datum		values[4];
	bool		nulls[4] = {false};

	if (SRF_IS_FIRSTCALL())
	{
		int64		nblocks = PG_GETARG_INT64(0);
		int32		nparticipants = PG_GETARG_INT32(1);
		int64		chunk_blocks = PG_GETARG_INT64(2);
		TupleDesc	tupdesc;
		MemoryContext oldcontext;

		check_range("number of blocks", nblocks, 0, PG_UINT32_MAX);
		check_range("number of participants", nparticipants,
					1, MAX_PARTICIPANTS);
		check_range("size of a chunk", chunk_blocks, 0, PG_UINT32_MAX);

		funcctx = SRF_FIRSTCALL_INIT();
		oldcontext = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		funcctx->tuple_desc = BlessTupleDesc(tupdesc);
		funcctx->user_fctx = start_simulation(nblocks, nparticipants,
											  chunk_blocks);
		MemoryContextSwitchTo(oldcontext);
	}

	funcctx = SRF_PERCALL_SETUP();
	if (!next_chunk(funcctx->user_fctx, &chunk, &participant))
		SRF_RETURN_DONE(funcctx);

	claim_format_bounds(&chunk, lower, upper);
	values[0] = Int32GetDatum(participant);
	values[1] = CStringGetTextDatum(lower);
	nulls[2] = chunk.open_end;
	values[2] = nulls[2] ? (Datum) 0 : CStringGetTextDatum(upper);
	values[3] = Int64GetDatum((int64) chunk.nblocks);

	SRF_RETURN_NEXT(funcctx,
					HeapTupleGetDatum(heap_form_tuple(funcctx->tuple_desc,
													  values, nulls)));
}
