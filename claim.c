/*-------------------------------------------------------------------------
 *
 * claim.c
 *	  Hands out the blocks of a remote relation, each exactly once.
 *
 * The blocks of a scan, of one relation or of several laid end to end, form
 * the block space [start, end), numbered in 64 bits: the sum over partitions
 * can exceed 2^32, and signed or 32-bit arithmetic would not fail but move a
 * bound silently ('(-1,0)' is a valid tid).  A participant claims a chunk, a
 * range that lies within one piece, by moving a shared counter; it must read
 * all of it or fail the query.
 *
 * Sizes follow guided self-scheduling (C. Polychronopoulos and D. Kuck,
 * "Guided self-scheduling", IEEE Trans. Computers 36(12), 1987): a claim takes
 * a fixed part of what remains, so that chunks are large while there is much
 * to do and shrink near the end, where participants should finish together.
 * Bounds on both sides come from what the participant measured itself:
 *
 * - not under the blocks that arrive during two round trips, or latency would
 *	 dominate;
 * - not over what takes CLAIM_CHUNK_SECONDS, which levels out regions that are
 *	 slower than others (TOAST, bloat, filters) without any statistics;
 * - the first claims are small and grow fourfold, so that LIMIT 10 does not
 *	 start gigabytes.
 *
 * Knows nothing of libpq, the executor or memory contexts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "claim.h"

/* A claim takes the remainder divided by this and by the participants. */
#define CLAIM_DIVISOR			4

/* A participant's first chunk: cheap to throw away under LIMIT. */
#define CLAIM_FIRST_BLOCKS		64

/* Limits where nothing was measured: a chunk's fixed cost is that of reading
 * about 16 blocks, and 8192 blocks are the chunk of core's parallel scan. */
#define CLAIM_FLOOR_BLOCKS		32
#define CLAIM_CAP_BLOCKS		8192

/* A chunk should not take longer than this. */
#define CLAIM_CHUNK_SECONDS		0.5

/* How much faster than the last chunk the next one may grow. */
#define CLAIM_GROWTH			4

/* Bytes of a claim in memory. */
Size
claim_size(uint32 npieces)
{
	return offsetof(Claim, pieces) + npieces * sizeof(ClaimPiece);
}

/*
 * Lay out the pieces and open the whole space for claiming: counter and limits
 * are always set together.  space_start of the pieces is computed here.  `claim`
 * has claim_size(npieces) bytes and nobody else uses it now.
 */
void
claim_init(Claim *claim, const ClaimPiece *pieces, uint32 npieces,
		   uint32 nparticipants, uint64 chunk_blocks)
{
	uint64		position = 0;
	uint32		i;

	for (i = 0; i < npieces; i++)
	{
		Assert(pieces[i].nblocks > 0);
		claim->pieces[i] = pieces[i];
		claim->pieces[i].space_start = position;
		position += pieces[i].nblocks;
	}
	claim->npieces = npieces;
	claim->start = 0;
	claim->end = position;
	claim->chunk_blocks = chunk_blocks;
	claim->nparticipants = Max(nparticipants, 1);
	pg_atomic_init_u64(&claim->next, 0);
	pg_atomic_init_u64(&claim->finished, 0);
}

/* True when every block has been claimed: nothing is left to begin. */
bool
claim_exhausted(Claim *claim)
{
	return pg_atomic_read_u64(&claim->next) >= claim->end;
}

/* How many blocks have been claimed. */
uint64
claim_claimed(Claim *claim)
{
	return pg_atomic_read_u64(&claim->next) - claim->start;
}

/* The piece that holds `position`; binary search, partitions can be many. */
static uint32
claim_find_piece(const Claim *claim, uint64 position)
{
	uint32		low = 0;
	uint32		high = claim->npieces;

	while (high - low > 1)
	{
		uint32		middle = low + (high - low) / 2;

		if (claim->pieces[middle].space_start <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* How many blocks this participant should claim, `remaining` being left. */
static uint64
claim_wanted(const Claim *claim, const ClaimPace *pace, uint64 remaining)
{
	uint64		floor_blocks = CLAIM_FLOOR_BLOCKS;
	uint64		cap_blocks = CLAIM_CAP_BLOCKS;
	uint64		wanted;

	if (claim->chunk_blocks > 0)
		return claim->chunk_blocks;

	if (pace->last_blocks == 0)
		cap_blocks = CLAIM_FIRST_BLOCKS;
	else
	{
		double		per_second = pace->blocks_per_second;

		if (per_second * CLAIM_CHUNK_SECONDS < cap_blocks)
			cap_blocks = (uint64) (per_second * CLAIM_CHUNK_SECONDS);
		cap_blocks = Min(cap_blocks, pace->last_blocks * CLAIM_GROWTH);
		if (per_second * 2 * pace->round_trip > floor_blocks)
			floor_blocks = (uint64) (per_second * 2 * pace->round_trip);
	}

	wanted = remaining / ((uint64) CLAIM_DIVISOR * claim->nparticipants);
	wanted = Max(wanted, floor_blocks);
	wanted = Min(wanted, cap_blocks);
	return Max(wanted, 1);
}

/*
 * Claim the next chunk.  False when nothing is left.
 */
bool
claim_next(Claim *claim, ClaimPace *pace, ClaimChunk *chunk)
{
	uint64		position = pg_atomic_read_u64(&claim->next);

	for (;;)
	{
		const ClaimPiece *piece;
		uint64		offset;
		uint64		left;
		uint64		size;

		if (position >= claim->end)
			return false;

		chunk->piece = claim_find_piece(claim, position);
		piece = &claim->pieces[chunk->piece];
		offset = position - piece->space_start;
		left = piece->nblocks - offset;
		Assert(left > 0 && left <= piece->nblocks);

		size = Min(claim_wanted(claim, pace, claim->end - position), left);
		if (piece->whole)
			size = left;

		/* On failure `position` is set to what another participant left. */
		if (!pg_atomic_compare_exchange_u64(&claim->next, &position,
											position + size))
			continue;

		chunk->space_start = position;
		chunk->nblocks = size;
		chunk->lower = (uint32) (piece->first_block + offset);
		chunk->upper = (uint32) (piece->first_block + offset + size);
		chunk->open_end = piece->open_end && size == left;
		chunk->whole = piece->whole;
		pace->last_blocks = size;
		return true;
	}
}

/* Record that every row of `chunk` has been read, in `seconds`. */
void
claim_finish(Claim *claim, ClaimPace *pace, const ClaimChunk *chunk,
			 double seconds)
{
	double		rate = chunk->nblocks / Max(seconds, 1e-6);

	/* An old measure counts half: regions of a table differ. */
	if (pace->blocks_per_second > 0)
		rate = (pace->blocks_per_second + rate) / 2;
	pace->blocks_per_second = rate;
	pg_atomic_fetch_add_u64(&claim->finished, chunk->nblocks);
}

/*
 * Write the bounds of `chunk` as tids, for ctid >= lower AND ctid < upper;
 * both buffers have CLAIM_TID_SIZE bytes.  A half-open range by block is exact
 * because a line pointer's number is never 0.  No block can be numbered
 * 4294967295, so that as an upper bound it means none.
 */
void
claim_format_bounds(const ClaimChunk *chunk, char *lower, char *upper)
{
	snprintf(lower, CLAIM_TID_SIZE, "(%u,0)", chunk->whole ? 0 : chunk->lower);
	snprintf(upper, CLAIM_TID_SIZE, "(%u,0)",
			 chunk->open_end || chunk->whole ? PG_UINT32_MAX : chunk->upper);
}
