/*-------------------------------------------------------------------------
 *
 * codec.c
 *	  Turns the bytes of a remote row into Datums; chosen per column, once per
 *	  scan.
 *
 * A column travels in one of two formats:
 *
 * - binary, where both sides' type is the same built-in one and its binary
 *	 form involves no conversion of text: decoded here, in place where possible;
 * - as the output text of the remote type, for everything else: read by the
 *	 local type's input function with the local typmod.  The local type may
 *	 differ from the remote one.
 *
 * Traps that this file stays clear of:
 *
 * - The receive functions of text-like types convert from the *session's*
 *	 client_encoding, but the bytes here are already in the database encoding:
 *	 a LATIN1 client on a UTF8 database would corrupt text silently.  So they are
 *	 never called; text is verified and taken as it is.
 * - "column::text" is not the output text of char(n), boolean or domains.  The
 *	 remote is asked to call the type's output function.
 * - A domain is checked by its input function, for NULL too.
 *
 * Decoding is the hot loop of the whole extension: no memory is allocated for a
 * fixed-width column, short text gets its one-byte header in the row's own
 * buffer (in the last byte of the length word before it), and nothing is looked
 * up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "codec.h"
#include "deparse.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

bool		codec_force_text = false;

typedef enum CodecKind
{
	CODEC_BOOL,
	CODEC_INT16,
	CODEC_INT32,				/* also date, float4: the same 32 bits */
	CODEC_INT64,				/* also timestamps, float8 */
	CODEC_UUID,
	CODEC_STRING,				/* varlena of verified text */
	CODEC_BYTES,				/* varlena of anything */
	CODEC_RECEIVE,				/* the type's receive function, text-free */
	CODEC_TID,					/* the remote ctid */
	CODEC_INPUT					/* output text, the type's input function */
} CodecKind;

/* Length on the wire that a kind must have; 0: any. */
static const int codec_wire_length[] = {
	[CODEC_BOOL] = 1,
	[CODEC_INT16] = 2,
	[CODEC_INT32] = 4,
	[CODEC_INT64] = 8,
	[CODEC_UUID] = UUID_LEN,
	[CODEC_TID] = 6,
	[CODEC_INPUT] = 0
};

typedef struct CodecColumn
{
	CodecKind	kind;
	int			wire_length;	/* 0: any */
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
	int			current;		/* column being decoded, for error messages */
	int			ncolumns;
	CodecColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* ----------
 * Choosing
 * ----------
 */

/* The decoder of a built-in type's binary form; CODEC_INPUT: none. */
static CodecKind
binary_kind(Oid type)
{
	switch (type)
	{
		case BOOLOID:
			return CODEC_BOOL;
		case INT2OID:
			return CODEC_INT16;
		case INT4OID:
		case FLOAT4OID:
		case DATEOID:
			return CODEC_INT32;
		case INT8OID:
		case FLOAT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return CODEC_INT64;
		case UUIDOID:
			return CODEC_UUID;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return CODEC_STRING;
		case BYTEAOID:
			return CODEC_BYTES;
		case NUMERICOID:
			return CODEC_RECEIVE;
		default:
			return CODEC_INPUT;
	}
}

/*
 * Do both sides mean the same type, and does the local column take every remote
 * value as it is?
 */
bool
codec_same_type(Form_pg_attribute local, const RemoteColumn *remote)
{
	if (local->atttypmod != -1 && local->atttypmod != remote->typmod)
		return false;
	if (remote->builtin)
		return remote->type == local->atttypid;
	/* The OIDs of other types differ; the remote's names are qualified. */
	return strcmp(format_type_extended(local->atttypid, remote->typmod,
									   FORMAT_TYPE_TYPEMOD_GIVEN |
									   FORMAT_TYPE_FORCE_QUALIFY),
				  remote->type_name) == 0;
}

/*
 * Why the column must travel as text; NULL if it can be binary.
 */
const char *
codec_text_reason(Form_pg_attribute local, const RemoteColumn *remote)
{
	if (codec_force_text)
		return "tidrange_fdw.force_text is on";
	if (binary_kind(local->atttypid) == CODEC_INPUT)
		return "no binary decoder for the local type";
	if (!remote->builtin || remote->type != local->atttypid)
		return "remote type differs";
	/* The input function enforces a length or precision; a decoder does not. */
	if (local->atttypmod != -1 && local->atttypmod != remote->typmod)
		return "remote type modifier differs";
	return NULL;
}

/*
 * A select-list entry for the remote column `name`.
 * output_function: of the remote type, qualified and quoted.
 */
void
codec_append_column(StringInfo buf, const char *name,
					const char *output_function, bool binary)
{
	if (!binary)
		appendStringInfo(buf, "textin(%s(", output_function);
	deparse_identifier(buf, name);
	if (!binary)
		appendStringInfoString(buf, "))");
}

/*
 * What the remote column would be if it had the local type: for EXPLAIN, when
 * the remote was not asked.
 */
RemoteColumn *
codec_assume_remote(Form_pg_attribute local, const char *name)
{
	RemoteColumn *remote = palloc0(sizeof(RemoteColumn));
	Oid			output;
	bool		is_varlena;

	getTypeOutputInfo(local->atttypid, &output, &is_varlena);
	remote->name = pstrdup(name);
	remote->type = local->atttypid;
	remote->typmod = local->atttypmod;
	remote->builtin = binary_kind(local->atttypid) != CODEC_INPUT;
	remote->type_name = format_type_with_typemod(local->atttypid,
												 local->atttypmod);
	remote->output_function =
		psprintf("%s.%s",
				 quote_identifier(get_namespace_name(get_func_namespace(output))),
				 quote_identifier(get_func_name(output)));
	return remote;
}

static void
init_column(CodecColumn *column, TupleDesc desc, AttrNumber attnum,
			bool binary)
{
	Form_pg_attribute attribute;
	Oid			function;

	column->attnum = attnum;
	column->typmod = -1;
	if (attnum == SelfItemPointerAttributeNumber)
	{
		column->kind = CODEC_TID;
		column->wire_length = codec_wire_length[CODEC_TID];
		return;
	}

	attribute = TupleDescAttr(desc, attnum - 1);
	column->typmod = attribute->atttypmod;
	column->kind = binary ? binary_kind(attribute->atttypid) : CODEC_INPUT;
	column->wire_length = codec_wire_length[column->kind];
	if (column->kind == CODEC_RECEIVE)
		getTypeBinaryInputInfo(attribute->atttypid, &function,
							   &column->ioparam);
	else if (column->kind == CODEC_INPUT)
		getTypeInputInfo(attribute->atttypid, &function, &column->ioparam);
	else
		return;
	fmgr_info(function, &column->function);
	column->input_null = column->kind == CODEC_INPUT &&
		!column->function.fn_strict;
}

/*
 * A decoder for rows whose columns are `attnums` (of desc, or ctid), in this
 * order.  Lives in the current memory context.
 */
Codec *
codec_create(TupleDesc desc, const AttrNumber *attnums, const bool *binary,
			 int ncolumns)
{
	Codec	   *codec = palloc0(offsetof(Codec, columns) +
								ncolumns * sizeof(CodecColumn));
	int			i;

	codec->row_context = AllocSetContextCreate(CurrentMemoryContext,
											   "tidrange_fdw row",
											   ALLOCSET_DEFAULT_SIZES);
	codec->ncolumns = ncolumns;
	for (i = 0; i < ncolumns; i++)
		init_column(&codec->columns[i], desc, attnums[i], binary[i]);
	return codec;
}

/* The column being decoded, for error messages. */
AttrNumber
codec_current_column(const Codec *codec)
{
	if (codec->current < 0 || codec->current >= codec->ncolumns)
		return InvalidAttrNumber;
	return codec->columns[codec->current].attnum;
}

/* ----------
 * Decoding
 * ----------
 */

static void
raise_malformed(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_BAD_COPY_FILE_FORMAT),
			 errmsg("malformed row from the remote server: %s", what)));
}

static inline int32
read_int32(const char *data)
{
	uint32		value;

	memcpy(&value, data, 4);
	return (int32) pg_ntoh32(value);
}

/*
 * Only ASCII and no zero byte?  Then it is valid in every server encoding, and
 * most text is: a test of eight bytes at a time saves the call that knows the
 * encoding.
 */
static inline bool
is_plain_ascii(const char *data, int length)
{
	const uint64 high = UINT64CONST(0x8080808080808080);
	const uint64 low = UINT64CONST(0x0101010101010101);
	const char *end = data + length;
	uint64		bad = 0;

	for (; end - data >= 8; data += 8)
	{
		uint64		word;

		memcpy(&word, data, 8);
		/* the borrow of a zero byte, or of one above 0x80, sets its high bit */
		bad |= (word - low) | word;
	}
	for (; data < end; data++)
		bad |= (unsigned char) (*data - 1) | (unsigned char) *data;
	return (bad & high) == 0;
}

/*
 * A varlena of `length` bytes that stand in the row's buffer, behind their
 * length word.  Short ones get a one-byte header, which needs no alignment, in
 * that word's last byte.  Longer ones get a four-byte header there if that is
 * aligned, and are copied if not.
 */
static inline Datum
make_varlena(Codec *codec, char *data, int length)
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

/* By the type's receive function. */
static Datum
receive_value(Codec *codec, CodecColumn *column, char *data, int length)
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
		raise_malformed("value with bytes left over");
	MemoryContextSwitchTo(oldcontext);
	return value;
}

/*
 * By the type's input function.  `data` is NULL for SQL NULL.  The byte behind
 * the value, the next length word's first, is a terminator for the time of the
 * call.
 */
static Datum
input_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(codec->row_context);
	char		saved = 0;
	Datum		value;

	codec->row_context_used = true;
	if (data != NULL)
	{
		if (!is_plain_ascii(data, length))
			pg_verifymbstr(data, length, false);
		saved = data[length];
		data[length] = '\0';
	}
	value = InputFunctionCall(&column->function, data, column->ioparam,
							  column->typmod);
	if (data != NULL)
		data[length] = saved;
	MemoryContextSwitchTo(oldcontext);
	return value;
}

static void
decode_tid(const char *data, ItemPointer tid)
{
	uint16		offset;

	memcpy(&offset, data + 4, 2);
	ItemPointerSet(tid, (BlockNumber) read_int32(data), pg_ntoh16(offset));
}

static inline Datum
decode_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	switch (column->kind)
	{
		case CODEC_BOOL:
			return BoolGetDatum(data[0] != 0);
		case CODEC_INT16:
			{
				uint16		value;

				memcpy(&value, data, 2);
				return Int16GetDatum((int16) pg_ntoh16(value));
			}
		case CODEC_INT32:
			return Int32GetDatum(read_int32(data));
		case CODEC_INT64:
			{
				uint64		value;

				memcpy(&value, data, 8);
				return Int64GetDatum((int64) pg_ntoh64(value));
			}
		case CODEC_UUID:
			return PointerGetDatum(data);
		case CODEC_STRING:
			if (!is_plain_ascii(data, length))
				pg_verifymbstr(data, length, false);
			return make_varlena(codec, data, length);
		case CODEC_BYTES:
			return make_varlena(codec, data, length);
		case CODEC_RECEIVE:
			return receive_value(codec, column, data, length);
		case CODEC_INPUT:
			return input_value(codec, column, data, length);
		case CODEC_TID:
			break;
	}
	return (Datum) 0;
}

/*
 * Decode one row.  values and nulls are indexed by attribute number - 1; only
 * the codec's columns are set.  The values point into `row`, which is changed,
 * or into memory that the next call reuses.
 */
void
codec_decode(Codec *codec, char *row, int length,
			 Datum *values, bool *nulls, ItemPointer tid)
{
	char	   *data = row;
	char	   *end = row + length;
	uint16		nfields;
	int			i;

	if (codec->row_context_used)
	{
		MemoryContextReset(codec->row_context);
		codec->row_context_used = false;
	}

	codec->current = -1;
	if (length < 2)
		raise_malformed("no field count");
	memcpy(&nfields, data, 2);
	data += 2;
	if (pg_ntoh16(nfields) != codec->ncolumns)
		raise_malformed("wrong number of fields");

	for (i = 0; i < codec->ncolumns; i++)
	{
		CodecColumn *column = &codec->columns[i];
		int32		size;

		codec->current = i;
		if (end - data < 4)
			raise_malformed("field without length");
		size = read_int32(data);
		data += 4;

		if (size < 0)
		{
			if (size != -1 || column->kind == CODEC_TID)
				raise_malformed("wrong field length");
			nulls[column->attnum - 1] = true;
			if (unlikely(column->input_null))
				values[column->attnum - 1] = input_value(codec, column, NULL, 0);
			continue;
		}
		if (size > end - data ||
			(column->wire_length != 0 && size != column->wire_length))
			raise_malformed("wrong field length");

		if (column->kind == CODEC_TID)
			decode_tid(data, tid);
		else
		{
			values[column->attnum - 1] = decode_value(codec, column, data, size);
			nulls[column->attnum - 1] = false;
		}
		data += size;
	}
	codec->current = -1;
	if (data != end)
		raise_malformed("bytes left over");
}
