/*-------------------------------------------------------------------------
 *
 * import.h
 *	  IMPORT FOREIGN SCHEMA.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_IMPORT_H
#define TIDRANGE_IMPORT_H

#include "nodes/parsenodes.h"

extern List *import_schema(ImportForeignSchemaStmt *stmt, Oid serverid);

#endif							/* TIDRANGE_IMPORT_H */
