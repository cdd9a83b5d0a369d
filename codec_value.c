/*-------------------------------------------------------------------------
 *
 * codec_value.c
 *	  Decoders of single values that take more than a few lines.
 *
 * Each gets the value's bytes in the row's buffer, behind their length word,
 * and may use the four bytes of that word and the value's own for what it
 * builds; more comes from the codec's row context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "codec_value.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"

/* The remote sent what no PostgreSQL server sends. */
void
codec_raise_malformed(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_BAD_COPY_FILE_FORMAT),
			 errmsg("malformed row from the remote server: %s", what)));
}

/* By the type's receive function. */
Datum
codec_receive_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(codec->row_context);
	StringInfoData buf;
	Datum		value;

	codec->row_context_used = true;
	buf.data = data;
	buf.len = length;
	buf.maxlen = length + 1;
	buf.cursor = 0;
	value = ReceiveFunctionCall(&column->function, &buf, column->ioparam,
								column->typmod);
	if (buf.cursor != length)
		codec_raise_malformed("value with bytes left over");
	MemoryContextSwitchTo(oldcontext);
	return value;
}

/*
 * numeric.c's storage format, which is on disk and so does not change: a header
 * of sign, scale and weight, short where that fits, and the digits in base
 * 10000, which is also how they travel.
 */
#define NUMERIC_WIRE_HEADER		8
#define NUMERIC_WIRE_NEGATIVE	0x4000
#define NUMERIC_SHORT_FLAG		0x8000
#define NUMERIC_SHORT_NEGATIVE	0x2000
#define NUMERIC_SHORT_SCALE_BIT	7
#define NUMERIC_SHORT_SCALE_MAX	63
#define NUMERIC_SHORT_WEIGHT_MAX	63
#define NUMERIC_SHORT_WEIGHT_MIN	(-64)
#define NUMERIC_SHORT_WEIGHT_MASK	0x7F

/*
 * Is the digit group plain, and does it have no digits beyond the scale?
 * `excess` decimal digits of the last group lie beyond it.
 */
static inline bool
is_plain_last_group(int group, int excess)
{
	static const int power[] = {1, 10, 100, 1000};

	return group > 0 && group < 10000 &&
		excess >= 0 && excess < 4 && group % power[excess] == 0;
}

/*
 * A numeric in normal form, built where it stands: its storage is shorter than
 * what came over the wire, so that the digits only move towards the front.
 * Anything unusual (NaN, infinity, leading zeros, ...) goes to numeric_recv.
 */
Datum
codec_numeric_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	char	   *start = (char *) ((uintptr_t) data & ~(uintptr_t) 3) - 4;
	char	   *digits;
	int			ndigits;
	int			weight;
	int			sign;
	int			scale;
	uint16		header;
	int			i;

	if (length < NUMERIC_WIRE_HEADER)
		return codec_receive_value(codec, column, data, length);
	ndigits = codec_read_uint16(data);
	weight = (int16) codec_read_uint16(data + 2);
	sign = codec_read_uint16(data + 4);
	scale = codec_read_uint16(data + 6);
	digits = data + NUMERIC_WIRE_HEADER;

	if (length != NUMERIC_WIRE_HEADER + ndigits * 2 ||
		(sign != 0 && sign != NUMERIC_WIRE_NEGATIVE) ||
		scale > NUMERIC_SHORT_SCALE_MAX ||
		weight > NUMERIC_SHORT_WEIGHT_MAX ||
		weight < NUMERIC_SHORT_WEIGHT_MIN ||
		(ndigits == 0 && (sign != 0 || weight != 0)))
		return codec_receive_value(codec, column, data, length);
	if (ndigits > 0)
	{
		int			fraction = (ndigits - 1 - weight) * 4;
		int			last = codec_read_uint16(digits + (ndigits - 1) * 2);

		if (codec_read_uint16(digits) == 0 || codec_read_uint16(digits) >= 10000 ||
			!is_plain_last_group(last, fraction > 0 ? fraction - scale > 0 ?
								 fraction - scale : 0 : 0))
			return codec_receive_value(codec, column, data, length);
		for (i = 1; i < ndigits - 1; i++)
		{
			if (codec_read_uint16(digits + i * 2) >= 10000)
				return codec_receive_value(codec, column, data, length);
		}
	}

	/* The four bytes of the length word before `data` are ours as well. */
	if (start < data - 4)
		start += 4;
	header = NUMERIC_SHORT_FLAG |
		(sign != 0 ? NUMERIC_SHORT_NEGATIVE : 0) |
		(scale << NUMERIC_SHORT_SCALE_BIT) |
		(weight & NUMERIC_SHORT_WEIGHT_MASK);
	SET_VARSIZE(start, VARHDRSZ + sizeof(uint16) + ndigits * 2);
	memcpy(start + VARHDRSZ, &header, sizeof(header));
	for (i = 0; i < ndigits; i++)
	{
		uint16		digit = codec_read_uint16(digits + i * 2);

		memcpy(start + VARHDRSZ + sizeof(uint16) + i * 2, &digit, 2);
	}
	return PointerGetDatum(start);
}

/*
 * Elements of `width` bytes, each behind its length word, in the local byte
 * order.  False if one has another length.
 */
static bool
copy_elements(char *to, const char *from, int nitems, int width)
{
	int			i;

	for (i = 0; i < nitems; i++, to += width, from += 4 + width)
	{
		uint16		value16;
		uint32		value32;
		uint64		value64;

		if (codec_read_int32(from) != width)
			return false;
		switch (width)
		{
			case 1:
				*to = from[4] != 0;
				break;
			case 2:
				value16 = codec_read_uint16(from + 4);
				memcpy(to, &value16, 2);
				break;
			case 4:
				value32 = (uint32) codec_read_int32(from + 4);
				memcpy(to, &value32, 4);
				break;
			case 8:
				memcpy(&value64, from + 4, 8);
				value64 = pg_ntoh64(value64);
				memcpy(to, &value64, 8);
				break;
			default:			/* bytes in their order: uuid */
				memcpy(to, from + 4, width);
				break;
		}
	}
	return true;
}

/*
 * An array of a fixed-width type, whose elements need no padding.  Those with
 * NULLs, with no element or more than one dimension, and the malformed ones, go
 * to array_recv.
 */
Datum
codec_fixed_array_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	const int	header = 20;	/* of one dimension, on the wire */
	int			width = column->element_length;
	int			nitems;
	int			lower_bound;
	ArrayType  *array;
	Size		size;

	if (length < header || codec_read_int32(data) != 1 ||
		codec_read_int32(data + 4) != 0 ||
		(Oid) codec_read_int32(data + 8) != column->ioparam)
		return codec_receive_value(codec, column, data, length);
	nitems = codec_read_int32(data + 12);
	lower_bound = codec_read_int32(data + 16);
	if (nitems <= 0 || nitems != (length - header) / (4 + width) ||
		(length - header) % (4 + width) != 0 ||
		lower_bound > PG_INT32_MAX - nitems)
		return codec_receive_value(codec, column, data, length);

	size = ARR_OVERHEAD_NONULLS(1) + (Size) nitems * width;
	codec->row_context_used = true;
	array = MemoryContextAlloc(codec->row_context, size);
	/* the header's padding would be stored as well */
	memset(array, 0, ARR_OVERHEAD_NONULLS(1));
	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->elemtype = column->ioparam;
	ARR_DIMS(array)[0] = nitems;
	ARR_LBOUND(array)[0] = lower_bound;
	if (!copy_elements(ARR_DATA_PTR(array), data + header, nitems, width))
		return codec_receive_value(codec, column, data, length);
	return PointerGetDatum(array);
}

/* An array of text, varchar or bpchar. */
Datum
codec_text_array_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	char	   *end = data + length;
	MemoryContext oldcontext;
	int			dims[MAXDIM];
	int			lower_bounds[MAXDIM];
	int			ndim;
	int			nitems;
	Datum	   *values;
	bool	   *nulls;
	Datum		array;
	int			i;

	if (length < 12)
		codec_raise_malformed("array without header");
	ndim = codec_read_int32(data);
	if (ndim < 0 || ndim > MAXDIM || length < 12 + ndim * 8 ||
		(Oid) codec_read_int32(data + 8) != column->ioparam)
		codec_raise_malformed("array with an unexpected header");
	data += 12;
	for (i = 0; i < ndim; i++, data += 8)
	{
		dims[i] = codec_read_int32(data);
		lower_bounds[i] = codec_read_int32(data + 4);
	}
	nitems = ArrayGetNItems(ndim, dims);
	if (nitems > (end - data) / 4)
		codec_raise_malformed("array with too few elements");

	oldcontext = MemoryContextSwitchTo(codec->row_context);
	codec->row_context_used = true;
	values = palloc(Max(nitems, 1) * sizeof(Datum));
	nulls = palloc(Max(nitems, 1) * sizeof(bool));
	for (i = 0; i < nitems; i++)
	{
		int32		size;

		if (end - data < 4)
			codec_raise_malformed("array with too few elements");
		size = codec_read_int32(data);
		data += 4;
		nulls[i] = size == -1;
		values[i] = (Datum) 0;
		if (nulls[i])
			continue;
		if (size < 0 || size > end - data)
			codec_raise_malformed("array element with a wrong length");
		if (!codec_is_plain_ascii(data, size))
			pg_verifymbstr(data, size, false);
		values[i] = codec_make_varlena(codec, data, size);
		data += size;
	}
	if (data != end)
		codec_raise_malformed("array with bytes left over");
	if (nitems == 0)
		array = PointerGetDatum(construct_empty_array(column->ioparam));
	else
		array = PointerGetDatum(construct_md_array(values, nulls, ndim, dims,
												   lower_bounds,
												   column->ioparam, -1, false,
												   TYPALIGN_INT));
	MemoryContextSwitchTo(oldcontext);
	return array;
}
