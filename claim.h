/*-------------------------------------------------------------------------
 *
 * claim.h
 *	  Hands out the blocks of a remote relation, each exactly once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_CLAIM_H
#define TIDRANGE_CLAIM_H

#include "port/atomics.h"

/*
 * A run of consecutive blocks of one remote relation.  The pieces of a scan are
 * laid end to end and make its block space, numbered from 0 in 64 bits.
 *
 * What is numbered are units.  A unit is a block, or, where the rows of one block
 * are huge (TOAST), a part of it: a range of its line pointers.
 */
typedef struct ClaimPiece
{
	uint64		space_start;	/* where it begins in the space; computed */
	uint64		blocks_before;	/* in the pieces before it; computed */
	uint64		nblocks;		/* how many blocks; at least 1 */
	uint32		first_block;	/* block of the relation it begins at */
	uint32		leaf;			/* which relation; the caller's number */
	uint32		parts;			/* units of a block; 0 means 1 */
	uint32		part_pointers;	/* line pointers of each part but the last */
	uint32		weight;			/* of a unit: bytes, in blocks; 0 means 1 */
	bool		open_end;		/* its last chunk has no upper bound */
	bool		whole;			/* indivisible, read without bounds */
} ClaimPiece;

/*
 * The counter and its limits.  They live together, in DSM or in private memory,
 * so that no participant can claim outside [start, end): a limit kept elsewhere
 * goes stale on a rescan.  [L] written by the leader while no other participant
 * runs, [A] atomic.
 */
typedef struct Claim
{
	pg_atomic_uint64 next;		/* [A] first unit that nobody has claimed */
	pg_atomic_uint64 finished;	/* [A] units of the finished chunks */
	pg_atomic_uint64 finished_blocks;	/* [A] blocks that began in them */
	uint64		start;			/* [L] the first claimable unit */
	uint64		end;			/* [L] the first unit beyond the space */
	uint64		chunk_blocks;	/* [L] fixed size of a chunk; 0: adaptive */
	uint32		nparticipants;	/* [L] how many may claim, for the sizing */
	uint32		npieces;		/* [L] */
	ClaimPiece	pieces[FLEXIBLE_ARRAY_MEMBER];	/* [L] */
} Claim;

/* What one participant has claimed. */
typedef struct ClaimChunk
{
	uint64		space_start;	/* position in the block space */
	uint64		units;			/* size in units */
	uint64		nblocks;		/* blocks that begin in it */
	uint32		piece;			/* index of the piece it lies in */
	uint32		leaf;			/* which relation that is */
	uint32		weight;			/* of its units */
	uint32		lower;			/* first block, */
	uint32		lower_pointer;	/* and its first line pointer */
	uint32		upper;			/* first block beyond; unused if open_end */
	uint32		upper_pointer;	/* first line pointer beyond in that block */
	bool		open_end;		/* no upper bound */
	bool		whole;			/* no bounds at all */
} ClaimChunk;

/*
 * How fast this participant has been; private to it.  Blocks are counted by their
 * bytes here: one whose rows have ten times its size elsewhere counts as eleven.
 */
typedef struct ClaimPace
{
	uint64		last_blocks;	/* size of its last chunk; 0: none yet */
	double		blocks_per_second;	/* smoothed; 0: not measured yet */
	double		round_trip;		/* seconds from a request to its first byte */
} ClaimPace;

/*
 * A block is divided if its rows have more bytes than this, in blocks, and into
 * parts of about half of it.
 */
#define CLAIM_SPLIT_BLOCKS		256

/* Room for the text of a tid, with its end. */
#define CLAIM_TID_SIZE	24

extern bool claim_piece(ClaimPiece *piece, uint64 nblocks,
						uint64 first, uint64 beyond);
extern bool claim_whole_piece(ClaimPiece *piece, uint64 nblocks);
extern void claim_split_piece(ClaimPiece *piece, uint64 nblocks,
							  uint64 toast_blocks, double density);
extern Size claim_size(uint32 npieces);
extern void claim_init(Claim *claim, const ClaimPiece *pieces, uint32 npieces,
					   uint32 nparticipants, uint64 chunk_blocks);
extern bool claim_exhausted(Claim *claim);
extern uint64 claim_claimed(Claim *claim);
extern uint64 claim_finished(Claim *claim);
extern bool claim_next(Claim *claim, ClaimPace *pace, ClaimChunk *chunk);
extern void claim_finish(Claim *claim, ClaimPace *pace,
						 const ClaimChunk *chunk, double seconds);
extern void claim_format_bounds(const ClaimChunk *chunk,
								char *lower, char *upper);

#endif							/* TIDRANGE_CLAIM_H */
