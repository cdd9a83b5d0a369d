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
 * - not under the blocks that arrive during ten round trips, so that a stream
 *	 that waits for its next chunk loses less than a tenth of its time;
 * - not over what takes CLAIM_CHUNK_SECONDS, which levels out regions that are
 *	 slower than others (TOAST, bloat, filters) without any statistics;
 * - the first claims are small and grow fourfold, or to that, so that LIMIT 10
 *	 does not start gigabytes.
 *
 * A block of rows that are stored elsewhere (TOAST) may stand for gigabytes.  It
 * counts by its bytes in all this, and is divided by its line pointers, so that
 * several participants can read the rows of one block.
 *
 * Knows nothing of libpq, the executor or memory contexts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

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

/* How much larger than the last chunk the next one may be. */
#define CLAIM_GROWTH			4

/* What a chunk should last, in round trips. */
#define CLAIM_ROUND_TRIPS		10

/* Rows of a block that nobody has counted, and line pointers at most. */
#define CLAIM_DENSITY			64
#define CLAIM_LINE_POINTERS		291

/*
 * The piece of a relation of `nblocks` blocks that lies in [first, beyond).  False
 * if there is none.
 */
bool
claim_piece(ClaimPiece *piece, uint64 nblocks, uint64 first, uint64 beyond)
{
	/*
	 * An empty relation has one block all the same: its chunk is open-ended,
	 * and reading it costs nothing.
	 */
	uint64		end = Max(nblocks, 1);

	memset(piece, 0, sizeof(ClaimPiece));
	piece->open_end = beyond >= end;
	end = Min(end, beyond);
	if (first >= end)
		return false;
	piece->first_block = (uint32) first;
	piece->nblocks = end - first;
	return true;
}

/* The piece of a relation that is read without bounds.  True. */
bool
claim_whole_piece(ClaimPiece *piece, uint64 nblocks)
{
	memset(piece, 0, sizeof(ClaimPiece));
	piece->whole = true;
	piece->nblocks = Max(nblocks, 1);
	return true;
}

/*
 * Weigh the blocks of a piece by the bytes that their rows have in a TOAST table,
 * and divide them if these are many.  `density` is the number of rows in a block,
 * 0 if it is not known: a wrong one makes the parts uneven.
 */
void
claim_split_piece(ClaimPiece *piece, uint64 nblocks, uint64 toast_blocks,
				  double density)
{
	double		block = 1 + (double) toast_blocks / Max(nblocks, 1);
	double		pointers = CLAIM_LINE_POINTERS;

	if (piece->whole)
		return;
	if (density > 0)
		pointers = Min(ceil(density * 1.5), pointers);
	else
		density = CLAIM_DENSITY;
	if (block > CLAIM_SPLIT_BLOCKS)
	{
		double		in_part = density * (CLAIM_SPLIT_BLOCKS / 2) / block;

		piece->part_pointers = (uint32) Max(in_part, 1);
		piece->parts = (uint32) ceil(pointers / piece->part_pointers);
		block = block * piece->part_pointers / density;
	}
	piece->weight = (uint32) Min(Max(block, 1), (double) PG_INT32_MAX);
}

/* Bytes of a claim in memory. */
Size
claim_size(uint32 npieces)
{
	return offsetof(Claim, pieces) + npieces * sizeof(ClaimPiece);
}

/*
 * Lay out the pieces and open the whole space for claiming: counter and limits
 * are always set together.  Where the pieces begin is computed here.  `claim` has
 * claim_size(npieces) bytes and nobody else uses it now.
 */
void
claim_init(Claim *claim, const ClaimPiece *pieces, uint32 npieces,
		   uint32 nparticipants, uint64 chunk_blocks)
{
	uint64		position = 0;
	uint64		blocks = 0;
	uint32		i;

	for (i = 0; i < npieces; i++)
	{
		ClaimPiece *piece;

		Assert(pieces[i].nblocks > 0);
		piece = &claim->pieces[i];
		*piece = pieces[i];
		piece->parts = Max(piece->parts, 1);
		piece->weight = Max(piece->weight, 1);
		piece->space_start = position;
		piece->blocks_before = blocks;
		position += piece->nblocks * piece->parts;
		blocks += piece->nblocks;
	}
	claim->npieces = npieces;
	claim->start = 0;
	claim->end = position;
	claim->chunk_blocks = chunk_blocks;
	claim->nparticipants = Max(nparticipants, 1);
	pg_atomic_init_u64(&claim->next, 0);
	pg_atomic_init_u64(&claim->finished, 0);
	pg_atomic_init_u64(&claim->finished_blocks, 0);
}

/* True when every block has been claimed: nothing is left to begin. */
bool
claim_exhausted(Claim *claim)
{
	return pg_atomic_read_u64(&claim->next) >= claim->end;
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

/* How many blocks begin in the first `offset` units of the piece. */
static uint64
blocks_begun(const ClaimPiece *piece, uint64 offset)
{
	return offset / piece->parts + (offset % piece->parts > 0 ? 1 : 0);
}

/* How many blocks have been claimed. */
uint64
claim_claimed(Claim *claim)
{
	uint64		position = pg_atomic_read_u64(&claim->next);
	const ClaimPiece *piece;

	if (claim->npieces == 0)
		return 0;
	piece = &claim->pieces[claim_find_piece(claim, position)];
	return piece->blocks_before +
		blocks_begun(piece, position - piece->space_start);
}

/* How many blocks have been read to the end. */
uint64
claim_finished(Claim *claim)
{
	return pg_atomic_read_u64(&claim->finished_blocks);
}

/*
 * How many units of the piece this participant should claim, `remaining` being
 * left in the whole space.
 */
static uint64
claim_wanted(const Claim *claim, const ClaimPiece *piece,
			 const ClaimPace *pace, uint64 remaining)
{
	uint64		floor_blocks = CLAIM_FLOOR_BLOCKS;
	uint64		cap_blocks = (uint64) CLAIM_CAP_BLOCKS * piece->parts *
	piece->weight;
	uint64		wanted;

	if (claim->chunk_blocks > 0)
		return claim->chunk_blocks * piece->parts;

	/* Blocks by their bytes, until the end of the block. */
	if (pace->last_blocks == 0)
		cap_blocks = CLAIM_FIRST_BLOCKS;
	else
	{
		double		per_second = pace->blocks_per_second;

		if (per_second * CLAIM_CHUNK_SECONDS < cap_blocks)
			cap_blocks = (uint64) (per_second * CLAIM_CHUNK_SECONDS);
		cap_blocks = Min(cap_blocks, pace->last_blocks * CLAIM_GROWTH);
		if (per_second * CLAIM_ROUND_TRIPS * pace->round_trip > floor_blocks)
			floor_blocks = (uint64) (per_second * CLAIM_ROUND_TRIPS *
									 pace->round_trip);
		cap_blocks = Max(cap_blocks, floor_blocks);
	}

	wanted = remaining / ((uint64) CLAIM_DIVISOR * claim->nparticipants);
	wanted = Max(wanted, floor_blocks / piece->weight);
	wanted = Min(wanted, cap_blocks / piece->weight);
	return Max(wanted, 1);
}

/* The first line pointer at or after that unit of the piece. */
static void
set_bound(const ClaimPiece *piece, uint64 offset, uint32 *block,
		  uint32 *pointer)
{
	uint32		part = (uint32) (offset % piece->parts);

	*block = (uint32) (piece->first_block + offset / piece->parts);
	/* They are numbered from 1; 0 is before the first. */
	*pointer = part > 0 ? part * piece->part_pointers + 1 : 0;
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
		left = piece->nblocks * piece->parts - offset;
		Assert(left > 0 && left <= piece->nblocks * piece->parts);

		size = Min(claim_wanted(claim, piece, pace, claim->end - position),
				   left);
		if (piece->whole)
			size = left;

		/* On failure `position` is set to what another participant left. */
		if (!pg_atomic_compare_exchange_u64(&claim->next, &position,
											position + size))
			continue;

		chunk->space_start = position;
		chunk->units = size;
		chunk->nblocks = blocks_begun(piece, offset + size) -
			blocks_begun(piece, offset);
		chunk->leaf = piece->leaf;
		chunk->weight = piece->weight;
		set_bound(piece, offset, &chunk->lower, &chunk->lower_pointer);
		set_bound(piece, offset + size, &chunk->upper, &chunk->upper_pointer);
		chunk->open_end = piece->open_end && size == left;
		chunk->whole = piece->whole;
		if (!piece->whole)
			pace->last_blocks = size * piece->weight;
		return true;
	}
}

/* Record that every row of `chunk` has been read, in `seconds`. */
void
claim_finish(Claim *claim, ClaimPace *pace, const ClaimChunk *chunk,
			 double seconds)
{
	double		rate = (double) chunk->units * chunk->weight / Max(seconds, 1e-6);

	/*
	 * An old measure counts half: regions of a table differ.  A piece that is
	 * read whole says nothing, its blocks are not known.
	 */
	if (pace->blocks_per_second > 0)
		rate = (pace->blocks_per_second + rate) / 2;
	if (!chunk->whole)
		pace->blocks_per_second = rate;
	pg_atomic_fetch_add_u64(&claim->finished_blocks, chunk->nblocks);
	pg_atomic_fetch_add_u64(&claim->finished, chunk->units);
}

/*
 * Write the bounds of `chunk` as tids, for ctid >= lower AND ctid < upper;
 * both buffers have CLAIM_TID_SIZE bytes.  A half-open range by block is exact
 * because a line pointer's number is never 0, and a range within a block because
 * the last part of each ends at the next block, however many line pointers there
 * are.  No block can be numbered 4294967295, so that as an upper bound it means
 * none.
 */
void
claim_format_bounds(const ClaimChunk *chunk, char *lower, char *upper)
{
	bool		open_end = chunk->open_end || chunk->whole;

	snprintf(lower, CLAIM_TID_SIZE, "(%u,%u)",
			 chunk->whole ? 0 : chunk->lower,
			 chunk->whole ? 0 : chunk->lower_pointer);
	snprintf(upper, CLAIM_TID_SIZE, "(%u,%u)",
			 open_end ? PG_UINT32_MAX : chunk->upper,
			 open_end ? 0 : chunk->upper_pointer);
}
