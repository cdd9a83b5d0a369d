/*-------------------------------------------------------------------------
 *
 * codec.h
 *	  Turns the bytes of a remote row into Datums.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_CODEC_H
#define TIDRANGE_CODEC_H

#include "access/tupdesc.h"
#include "lib/stringinfo.h"
#include "remote_table.h"
#include "storage/itemptr.h"

/* GUC tidrange_fdw.force_text: a test's way to send every column as text. */
extern bool codec_force_text;

typedef struct Codec Codec;

extern const char *codec_text_reason(Form_pg_attribute local,
									 const RemoteColumn *remote,
									 int server_version);
extern bool codec_is_costly_type(Oid type);
extern void codec_check_money(Oid local_type, const RemoteColumn *remote);
extern bool codec_same_type(Form_pg_attribute local,
							const RemoteColumn *remote);
extern void codec_append_column(StringInfo buf, const RemoteColumn *remote,
								bool binary);
extern RemoteColumn *codec_assume_remote(Form_pg_attribute local,
										 const char *name);
extern Codec *codec_create(TupleDesc desc, const AttrNumber *attnums,
						   const bool *binary, int ncolumns);
extern void codec_decode(Codec *codec, char *row, int length,
						 Datum *values, bool *nulls, ItemPointer tid);
extern AttrNumber codec_current_column(const Codec *codec);

#endif							/* TIDRANGE_CODEC_H */
