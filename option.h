/*-------------------------------------------------------------------------
 *
 * option.h
 *	  Options of servers, user mappings, foreign tables and columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_OPTION_H
#define TIDRANGE_OPTION_H

#include "foreign/foreign.h"

/* The resolved options of one foreign table and its server. */
typedef struct TableOptions
{
	char	   *schema_name;	/* remote schema; default: the local one's name */
	char	   *table_name;		/* remote table; default: the local name */
	double		fdw_startup_cost;	/* server; default 100 */
	double		fdw_tuple_cost; /* server; default 0.2 */
	int			parallel_workers;	/* table, server; -1: let the size decide */
	int			connections;	/* table, server; -1: not set */
	int64		chunk_blocks;	/* table, server; 0: adaptive */
	int			use_remote_estimate;	/* table, server; -1: where it matters */
	bool		only;			/* table; default false */
	bool		refuse_row_security;	/* table, server; default false */
	bool		keep_connections;	/* server; default true */
	List	   *extensions;		/* server; OIDs of extensions whose members
								 * may be sent */
} TableOptions;

/* Default of fdw_startup_cost and fdw_tuple_cost, in planner cost units. */
#define DEFAULT_FDW_STARTUP_COST	100.0
#define DEFAULT_FDW_TUPLE_COST		0.2

/* Connections of one process for a scan that is not parallel, at most. */
#define DEFAULT_CONNECTIONS			4
#define MAX_CONNECTIONS				64

extern void option_resolve_table(Oid relid, TableOptions *options);
extern char *option_remote_column(Oid relid, AttrNumber attnum);
extern bool option_keep_connections(ForeignServer *server);
extern bool option_password_required(UserMapping *user);

/*
 * Fill keywords/values (palloc'd, NULL-terminated, room for `extra` more
 * pairs) with the libpq parameters of the server and the user mapping; returns
 * how many there are.
 */
extern int	option_connection_params(ForeignServer *server, UserMapping *user,
									 int extra,
									 const char ***keywords,
									 const char ***values);

#endif							/* TIDRANGE_OPTION_H */
