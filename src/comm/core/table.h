/** An engine's table and its sub-tables, as a communicator keeps them. */
#ifndef TSR_COMM_CORE_TABLE_H
#define TSR_COMM_CORE_TABLE_H

#include <tessera/sys/comm.h>

/** Copies by value, so that a call reaches an entry without another pointer. Of a sub-table that the engine does not give all is 0. */
typedef struct tsr_engine {
    tsr_comm_table table; /**< its sub-tables are the copies beside it, or NULL */
    tsr_comm_direct direct;
    tsr_comm_messages messages;
    tsr_comm_memory memory;
    tsr_comm_collectives collectives;
    tsr_comm_nodes nodes;
} tsr_engine;

/** Copies and checks `table`. `*out` refers to itself: it must not be moved. TSR_ERROR_ARGUMENT: a table is too small or lacks a required
 * entry, which the sentence of tsr_comm_create_from_table() names. */
tsr_status tsr_table_read(const tsr_comm_table *table, tsr_engine *out);

#endif
