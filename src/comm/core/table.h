/** How a communicator copies and checks its engine's table. */
#ifndef TSR_COMM_CORE_TABLE_H
#define TSR_COMM_CORE_TABLE_H

#include <tessera/sys/comm.h>

/** Copies of an engine's table and sub-tables, so that a call reaches an entry without another
 * pointer. A sub-table that the engine does not give is all 0. */
typedef struct tsr_engine {
    tsr_comm_table table; /**< its sub-tables are the copies beside it, or NULL */
    tsr_comm_direct direct;
    tsr_comm_messages messages;
    tsr_comm_memory memory;
    tsr_comm_collectives collectives;
    tsr_comm_nodes nodes;
} tsr_engine;

/** Copies and checks `table`. `*out` points into itself: it must not be moved. TSR_ERROR_ARGUMENT:
 * a table is too small or lacks a required entry; the sentence is that of
 * tsr_comm_create_from_table() and names the entry. */
tsr_status tsr_table_read(const tsr_comm_table *table, tsr_engine *out);

#endif
