# tidrange_fdw: build, install and test with PGXS.
#
#   make && make install && make installcheck
#
# PG_CONFIG chooses the server to build for.

MODULE_big = tidrange_fdw
# In the order in which a query flows through them.
OBJS = \
	tidrange_fdw.o \
	option.o \
	shippable.o \
	deparse.o \
	ctid.o \
	remote_table.o \
	remote_leaves.o \
	size.o \
	unique.o \
	width.o \
	plan.o \
	plan_pack.o \
	insert_select.o \
	connection_pool.o \
	connection.o \
	cancel.o \
	snapshot.o \
	snapshot_lock.o \
	claim.o \
	chunks.o \
	stream.o \
	columns.o \
	codec.o \
	codec_value.o \
	scan.o \
	scan_prepare.o \
	scan_leaves.o \
	scan_streams.o \
	scan_join.o \
	scan_team.o \
	parallel.o \
	insert_batch.o \
	insert.o \
	insert_check.o \
	insert_worker.o \
	insert_recover.o \
	explain.o \
	analyze.o \
	import.o

EXTENSION = tidrange_fdw
DATA = $(wildcard tidrange_fdw--*.sql)
PGFILEDESC = "tidrange_fdw - parallel reader for tables of other PostgreSQL clusters"

# init.sql makes the servers that every other test uses, so it goes first.
REGRESS = init $(filter-out init,$(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql))))
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ISOLATION_OPTS = --load-extension=tidrange_fdw
TAP_TESTS = 1

PG_CPPFLAGS = -I$(libpq_srcdir)
# The server loads libraries with RTLD_GLOBAL: a name shared with postgres_fdw
# would bind to whichever was loaded first.
PG_CFLAGS = -fvisibility=hidden
SHLIB_LINK_INTERNAL = $(libpq)
EXTRA_CLEAN = *.gcno *.gcda

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS tracks no headers; an object built for an old struct misreads a new one.
$(OBJS): $(wildcard *.h)
