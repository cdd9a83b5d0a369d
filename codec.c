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
#include "codec_value.h"
#include "compat.h"
#include "deparse.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/uuid.h"
#include "utils/xml.h"

bool		codec_force_text = false;

/* Length on the wire that a kind must have; 0: any. */
static const int codec_wire_length[] = {
	[CODEC_BOOL] = 1,
	[CODEC_CHAR] = 1,
	[CODEC_INT16] = 2,
	[CODEC_INT32] = 4,
	[CODEC_UINT32] = 4,
	[CODEC_INT64] = 8,
	[CODEC_UUID] = UUID_LEN,
	[CODEC_TID] = 6,
	[CODEC_INPUT] = 0
};

/* ----------
 * Choosing
 * ----------
 */

/* Element type of an array that the generic decoders below can take. */
static CodecKind
array_kind(Oid type)
{
	switch (type)
	{
		case TEXTARRAYOID:
		case VARCHARARRAYOID:
		case BPCHARARRAYOID:
			return CODEC_TEXT_ARRAY;
		case BOOLARRAYOID:
		case INT2ARRAYOID:
		case INT4ARRAYOID:
		case INT8ARRAYOID:
		case FLOAT4ARRAYOID:
		case FLOAT8ARRAYOID:
		case OIDARRAYOID:
		case DATEARRAYOID:
		case TIMEARRAYOID:
		case TIMESTAMPARRAYOID:
		case TIMESTAMPTZARRAYOID:
		case UUIDARRAYOID:
			return CODEC_FIXED_ARRAY;
		case BYTEAARRAYOID:
		case NUMERICARRAYOID:
		case INETARRAYOID:
			return CODEC_RECEIVE;
		default:
			return CODEC_INPUT;
	}
}

/*
 * Types whose receive function neither converts text nor reads OIDs that may
 * mean something else here.
 */
static CodecKind
receive_kind(Oid type)
{
	switch (type)
	{
		case TIMETZOID:
		case INTERVALOID:
		case BITOID:
		case VARBITOID:
		case INETOID:
		case CIDROID:
		case MACADDROID:
		case MACADDR8OID:
		case TIDOID:
		case POINTOID:
		case LSEGOID:
		case LINEOID:
		case BOXOID:
		case PATHOID:
		case POLYGONOID:
		case CIRCLEOID:
		case INT4RANGEOID:
		case INT8RANGEOID:
		case NUMRANGEOID:
		case DATERANGEOID:
		case TSRANGEOID:
		case TSTZRANGEOID:
#ifdef INT4MULTIRANGEOID
		case INT4MULTIRANGEOID:
		case INT8MULTIRANGEOID:
		case NUMMULTIRANGEOID:
		case DATEMULTIRANGEOID:
		case TSMULTIRANGEOID:
		case TSTZMULTIRANGEOID:
#endif
			return CODEC_RECEIVE;
		default:
			return array_kind(type);
	}
}

/* The decoder of a built-in type's binary form; CODEC_INPUT: none. */
static CodecKind
binary_kind(Oid type)
{
	switch (type)
	{
		case BOOLOID:
			return CODEC_BOOL;
		case CHAROID:
			return CODEC_CHAR;
		case INT2OID:
			return CODEC_INT16;
		case INT4OID:
		case FLOAT4OID:
		case DATEOID:
			return CODEC_INT32;
		case OIDOID:
		case XIDOID:
		case CIDOID:
			return CODEC_UINT32;
		case INT8OID:
		case FLOAT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case PG_LSNOID:
		case XID8OID:
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
			return CODEC_NUMERIC;
		case JSONOID:
			return CODEC_JSON;
		case JSONBOID:
			return CODEC_JSONB;
		default:
			return receive_kind(type);
	}
}

/*
 * Does a value of the type cost much more than its bytes to decode, as far as
 * can be told without the remote?
 */
bool
codec_is_costly_type(Oid type)
{
	CodecKind	kind = binary_kind(type);

	return kind == CODEC_INPUT || kind == CODEC_RECEIVE ||
		kind == CODEC_JSON || kind == CODEC_JSONB;
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
codec_text_reason(Form_pg_attribute local, const RemoteColumn *remote,
				  int server_version)
{
	if (codec_force_text)
		return "tidrange_fdw.force_text is on";
	if (binary_kind(local->atttypid) == CODEC_INPUT)
		return "no binary decoder for the local type";
	if (!remote->builtin || remote->type != local->atttypid)
		return "remote type differs";
	/* An infinite interval would be read as a nonsense finite one. */
	if (local->atttypid == INTERVALOID &&
		server_version >= COMPAT_FIRST_INFINITE_INTERVAL &&
		COMPAT_LOCAL_VERSION < COMPAT_FIRST_INFINITE_INTERVAL)
		return "remote intervals may be infinite";
	/* The input function enforces a length or precision; a decoder does not. */
	if (local->atttypmod != -1 && local->atttypmod != remote->typmod)
		return "remote type modifier differs";

	/* n of char(n) counts characters, but bytes where there is no encoding. */
	if (local->atttypmod != -1 &&
		remote->counts_bytes != (GetDatabaseEncoding() == PG_SQL_ASCII) &&
		(binary_kind(local->atttypid) == CODEC_STRING ||
		 binary_kind(local->atttypid) == CODEC_TEXT_ARRAY))
		return "only one side has an encoding";
	return NULL;
}

/* Digits, points and commas of a text: what decides its value. */
static char *
amount_of(const char *text)
{
	char	   *amount = palloc(strlen(text) + 1);
	int			n = 0;

	for (; *text; text++)
	{
		if (strchr("0123456789.,", *text) != NULL)
			amount[n++] = *text;
	}
	amount[n] = '\0';
	return amount;
}

/*
 * Money travels as text, whose meaning hangs on lc_monetary: what one server
 * writes as 1.234 is a thousand times as much to another.  Refuse what would be
 * misread.  (A locale that differs in nothing but the currency's symbol is no
 * danger: the input function refuses a foreign symbol.)
 */
void
codec_check_money(Oid local_type, const RemoteColumn *remote)
{
	Oid			base = getBaseType(local_type);
	Datum		amount;
	char	   *sample;

	if (remote->money_sample == NULL ||
		(base != CASHOID && get_base_element_type(base) != CASHOID))
		return;
	amount = DirectFunctionCall3(numeric_in, CStringGetDatum(REMOTE_MONEY_SAMPLE),
								 ObjectIdGetDatum(InvalidOid),
								 Int32GetDatum(-1));
	amount = DirectFunctionCall1(numeric_cash, amount);
	sample = DatumGetCString(DirectFunctionCall1(cash_out, amount));
	if (strcmp(amount_of(sample), amount_of(remote->money_sample)) == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("money of the remote server cannot be read under this lc_monetary"),
			 errdetail("The remote server writes " REMOTE_MONEY_SAMPLE " as \"%s\", this one as \"%s\".",
					   remote->money_sample, sample),
			 errhint("Set lc_monetary here as it is on the remote server, or read a view there that casts the column to numeric."),
			 errcontext("column \"%s\" of the remote table", remote->name)));
}

/* Output functions whose text is what the binary form has anyway. */
static bool
is_plain_text_output(const char *output_function)
{
	return strcmp(output_function, "pg_catalog.textout") == 0 ||
		strcmp(output_function, "pg_catalog.varcharout") == 0 ||
		strcmp(output_function, "pg_catalog.bpcharout") == 0 ||
		strcmp(output_function, "pg_catalog.json_out") == 0;
}

/*
 * A select-list entry for the remote column.  A domain is shown to the output
 * function as its base type: enum_out would not take it.
 */
void
codec_append_column(StringInfo buf, const RemoteColumn *remote, bool binary)
{
	bool		call = !binary && !is_plain_text_output(remote->output_function);

	if (call)
		appendStringInfo(buf, "textin(%s(", remote->output_function);
	deparse_identifier(buf, remote->name);
	if (call && remote->base_type != NULL)
		appendStringInfo(buf, "::%s", remote->base_type);
	if (call)
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
	remote->counts_bytes = GetDatabaseEncoding() == PG_SQL_ASCII;
	if (getBaseType(local->atttypid) != local->atttypid)
		remote->base_type = format_type_extended(getBaseType(local->atttypid),
												 -1, FORMAT_TYPE_TYPEMOD_GIVEN |
												 FORMAT_TYPE_FORCE_QUALIFY);
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
	switch (column->kind)
	{
		case CODEC_FIXED_ARRAY:
			column->element_length =
				get_typlen(get_element_type(attribute->atttypid));
			COMPAT_FALLTHROUGH;
		case CODEC_RECEIVE:
		case CODEC_NUMERIC:
			getTypeBinaryInputInfo(attribute->atttypid, &function,
								   &column->ioparam);
			break;
		case CODEC_INPUT:
		case CODEC_JSON:
		case CODEC_JSONB:
			getTypeInputInfo(attribute->atttypid, &function,
							 &column->ioparam);
			break;
		case CODEC_TEXT_ARRAY:
			column->ioparam = get_element_type(attribute->atttypid);
			return;
		default:
			return;
	}
	fmgr_info(function, &column->function);
	column->input_null = column->kind == CODEC_INPUT &&
		!column->function.fn_strict;
}

/* Types whose input function looks names up along the search path. */
static bool
is_name_lookup_type(Oid type)
{
	switch (getBaseType(type))
	{
		case REGCLASSOID:
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGTYPEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case REGCOLLATIONOID:
			return true;
		default:
			return false;
	}
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
	codec->current = -1;
	for (i = 0; i < ncolumns; i++)
	{
		CodecColumn *column = &codec->columns[i];

		init_column(column, desc, attnums[i], binary[i]);
		if (column->kind != CODEC_INPUT)
			continue;
		codec->settings_matter = true;
		if (is_name_lookup_type(TupleDescAttr(desc, attnums[i] - 1)->atttypid))
			codec->looks_up_names = true;
	}
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
		if (!codec_is_plain_ascii(data, length))
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

/*
 * A json text, behind `skip` bytes of version.
 */
static Datum
json_value(Codec *codec, CodecColumn *column, char *data, int length, int skip)
{
	if (length < skip || (skip > 0 && data[0] != 1))
		codec_raise_malformed("unknown version of jsonb");
	return input_value(codec, column, data + skip, length - skip);
}

static void
decode_tid(const char *data, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) codec_read_int32(data), codec_read_uint16(data + 4));
}

static inline Datum
decode_value(Codec *codec, CodecColumn *column, char *data, int length)
{
	switch (column->kind)
	{
		case CODEC_BOOL:
			return BoolGetDatum(data[0] != 0);
		case CODEC_CHAR:
			return CharGetDatum(data[0]);
		case CODEC_INT16:
			return Int16GetDatum((int16) codec_read_uint16(data));
		case CODEC_INT32:
			return Int32GetDatum(codec_read_int32(data));
		case CODEC_UINT32:
			return UInt32GetDatum((uint32) codec_read_int32(data));
		case CODEC_INT64:
			{
				uint64		value;

				memcpy(&value, data, 8);
				return Int64GetDatum((int64) pg_ntoh64(value));
			}
		case CODEC_UUID:
			return PointerGetDatum(data);
		case CODEC_STRING:
			if (!codec_is_plain_ascii(data, length))
				pg_verifymbstr(data, length, false);
			return codec_make_varlena(codec, data, length);
		case CODEC_BYTES:
			return codec_make_varlena(codec, data, length);
		case CODEC_NUMERIC:
			return codec_numeric_value(codec, column, data, length);
		case CODEC_FIXED_ARRAY:
			return codec_fixed_array_value(codec, column, data, length);
		case CODEC_TEXT_ARRAY:
			return codec_text_array_value(codec, column, data, length);
		case CODEC_JSON:
			return json_value(codec, column, data, length, 0);
		case CODEC_JSONB:
			return json_value(codec, column, data, length, 1);
		case CODEC_RECEIVE:
			return codec_receive_value(codec, column, data, length);
		case CODEC_INPUT:
			return input_value(codec, column, data, length);
		case CODEC_TID:
			break;
	}
	return (Datum) 0;
}

static void
decode_row(Codec *codec, char *row, int length,
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
		codec_raise_malformed("no field count");
	memcpy(&nfields, data, 2);
	data += 2;
	if (pg_ntoh16(nfields) != codec->ncolumns)
		codec_raise_malformed("wrong number of fields");

	for (i = 0; i < codec->ncolumns; i++)
	{
		CodecColumn *column = &codec->columns[i];
		int32		size;

		codec->current = i;
		if (end - data < 4)
			codec_raise_malformed("field without length");
		size = codec_read_int32(data);
		data += 4;

		if (size < 0)
		{
			if (size != -1 || column->kind == CODEC_TID)
				codec_raise_malformed("wrong field length");
			nulls[column->attnum - 1] = true;
			if (unlikely(column->input_null))
				values[column->attnum - 1] = input_value(codec, column, NULL, 0);
			continue;
		}
		if (size > end - data ||
			(column->wire_length != 0 && size != column->wire_length))
			codec_raise_malformed("wrong field length");

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
		codec_raise_malformed("bytes left over");
}

/*
 * Decode a row as a restore would read it, whatever this session has set.  These
 * settings change what input functions make of a text.
 */
static void
decode_row_neutrally(Codec *codec, char *row, int length,
					 Datum *values, bool *nulls, ItemPointer tid)
{
	int			saved_interval_style = IntervalStyle;
	int			saved_xmloption = xmloption;
	bool		saved_array_nulls = Array_nulls;

	PG_TRY();
	{
		IntervalStyle = INTSTYLE_POSTGRES;
		xmloption = XMLOPTION_CONTENT;
		Array_nulls = true;
		decode_row(codec, row, length, values, nulls, tid);
	}
	PG_FINALLY();
	{
		IntervalStyle = saved_interval_style;
		xmloption = saved_xmloption;
		Array_nulls = saved_array_nulls;
	}
	PG_END_TRY();
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
	bool		neutral = !codec->settings_matter ||
	(IntervalStyle == INTSTYLE_POSTGRES &&
	 xmloption == XMLOPTION_CONTENT && Array_nulls);

	if (unlikely(codec->looks_up_names))
	{
		int			nestlevel = NewGUCNestLevel();

		/* The remote wrote names as they are under this path. */
		(void) set_config_option("search_path", "pg_catalog", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
								 false);
		decode_row_neutrally(codec, row, length, values, nulls, tid);
		AtEOXact_GUC(true, nestlevel);
	}
	else if (unlikely(!neutral))
		decode_row_neutrally(codec, row, length, values, nulls, tid);
	else
		decode_row(codec, row, length, values, nulls, tid);
}
