/*-------------------------------------------------------------------------
 *
 * codec_value.h
 *	  What the decoders of single values share; private to codec*.c.
 *
 * The small functions are inline because they run for every value.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_CODEC_VALUE_H
#define TIDRANGE_CODEC_VALUE_H

#include "codec.h"
#include "compat.h"
#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

typedef enum CodecKind
{
	CODEC_BOOL,
	CODEC_CHAR,
	CODEC_INT16,
	CODEC_INT32,				/* also date, float4: the same 32 bits */
	CODEC_UINT32,				/* oid and its like: zero-extended */
	CODEC_INT64,				/* also timestamps, float8 */
	CODEC_UUID,
	CODEC_STRING,				/* varlena of verified text */
	CODEC_BYTES,				/* varlena of anything */
	CODEC_NUMERIC,
	CODEC_RECEIVE,				/* the type's receive function, text-free */
	CODEC_FIXED_ARRAY,			/* array of a fixed-width type */
	CODEC_TEXT_ARRAY,			/* array of verified text */
	CODEC_JSON,					/* text on the wire, the input function */
	CODEC_JSONB,				/* a version byte before it */
	CODEC_TID,					/* the remote ctid */
	CODEC_INPUT					/* output text, the type's input function */
} CodecKind;

typedef struct CodecColumn
{
	CodecKind	kind;
	int			wire_length;	/* 0: any */
	int			element_length; /* CODEC_FIXED_ARRAY */
	AttrNumber	attnum;
	bool		input_null;		/* NULL must be shown to the input function */
	int32		typmod;
	Oid			ioparam;
	FmgrInfo	function;
} CodecColumn;

struct Codec
{
	MemoryContext row_context;	/* what a row needs beyond its buffer */
	bool		row_context_used;
	bool		settings_matter;	/* some column has an input function */
	bool		looks_up_names; /* and one of them needs the search path */
	int			current;		/* column being decoded, for error messages */
	int			ncolumns;
	CodecColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

extern void codec_raise_malformed(const char *what) COMPAT_NORETURN;
extern Datum codec_receive_value(Codec *codec, CodecColumn *column,
								 char *data, int length);
extern Datum codec_numeric_value(Codec *codec, CodecColumn *column,
								 char *data, int length);
extern Datum codec_fixed_array_value(Codec *codec, CodecColumn *column,
									 char *data, int length);
extern Datum codec_text_array_value(Codec *codec, CodecColumn *column,
									char *data, int length);

static inline int32
codec_read_int32(const char *data)
{
	uint32		value;

	memcpy(&value, data, 4);
	return (int32) pg_ntoh32(value);
}

static inline uint16
codec_read_uint16(const char *data)
{
	uint16		value;

	memcpy(&value, data, 2);
	return pg_ntoh16(value);
}

/*
 * Only ASCII and no zero byte?  Then it is valid in every server encoding, and
 * most text is: a test of eight bytes at a time saves the call that knows the
 * encoding.
 */
static inline bool
codec_is_plain_ascii(const char *data, int length)
{
	const uint64 high = UINT64CONST(0x8080808080808080);
	const uint64 low = UINT64CONST(0x0101010101010101);
	uint64		bad = 0;
	uint64		word;
	int			i;

	if (length < (int) sizeof(word))
	{
		for (i = 0; i < length; i++)
			bad |= (unsigned char) (data[i] - 1) | (unsigned char) data[i];
		return (bad & high) == 0;
	}

	/* the borrow of a zero byte, or of one above 0x80, sets its high bit */
	for (i = 0; i < length - (int) sizeof(word); i += sizeof(word))
	{
		memcpy(&word, data + i, sizeof(word));
		bad |= (word - low) | word;
	}
	/* the last eight overlap what was seen before */
	memcpy(&word, data + length - sizeof(word), sizeof(word));
	bad |= (word - low) | word;
	return (bad & high) == 0;
}

/*
 * A varlena of `length` bytes that stand in the row's buffer, behind their
 * length word.  Short ones get a one-byte header, which needs no alignment, in
 * that word's last byte.  Longer ones get a four-byte header there if that is
 * aligned, and are copied if not.
 */
static inline Datum
codec_make_varlena(Codec *codec, char *data, int length)
{
	char	   *copy;

	if (length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(data - VARHDRSZ_SHORT, length + VARHDRSZ_SHORT);
		return PointerGetDatum(data - VARHDRSZ_SHORT);
	}
	if (INTALIGN((uintptr_t) data) == (uintptr_t) data)
	{
		SET_VARSIZE(data - VARHDRSZ, length + VARHDRSZ);
		return PointerGetDatum(data - VARHDRSZ);
	}
	if ((Size) length + VARHDRSZ > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("value of %d bytes is too large", length)));
	codec->row_context_used = true;
	copy = MemoryContextAlloc(codec->row_context, (Size) length + VARHDRSZ);
	SET_VARSIZE(copy, (Size) length + VARHDRSZ);
	memcpy(copy + VARHDRSZ, data, length);
	return PointerGetDatum(copy);
}

#endif							/* TIDRANGE_CODEC_VALUE_H */
