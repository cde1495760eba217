/** A message engine as somebody else would write it, from public headers alone: it sends its messages through another communicator. */
#ifndef TESTS_MESSAGE_ENGINE_H
#define TESTS_MESSAGE_ENGINE_H

#include <tessera/sys/comm.h>

/** tsr_threads_run() with every communicator behind this engine, which has what it must have and nothing else. */
tsr_status message_engine_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** The same with everything that such an engine may have: its own collectives, and exchanges in two halves. */
tsr_status message_engine_run_own(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/**
 * A communicator over `carrier`, which is borrowed, with exchanges in two halves. `calls` counts its splits, exchanges, their halves and
 * barriers, and those of what is split off it, down to 0, the one that fails with TSR_ERROR_DEVICE; NULL: none does. A split and a second
 * half that fail have taken part; the others have not.
 */
tsr_status message_engine_create(tsr_comm *carrier, int *calls, tsr_comm **out);

/** How often a rank has called each of its engine's own collectives. */
typedef struct message_engine_tally {
    int all_gathers, reduce_scatters, all_reduces, broadcasts;
} message_engine_tally;

/** Of a communicator: it may be split and compares arguments, it may not be split, it does not compare (TSR_COMM_UNCHECKED). */
typedef enum message_engine_kind { MESSAGE_ENGINE_PLAIN, MESSAGE_ENGINE_LENT, MESSAGE_ENGINE_UNCHECKED } message_engine_kind;

/** message_engine_create() with the engine's own collectives, which `calls` counts too, and fails before they have taken part. `tally`
 * counts those of this rank, in what is split off too; NULL: nobody does. */
tsr_status message_engine_create_own(tsr_comm *carrier, int *calls, message_engine_tally *tally, message_engine_kind kind, tsr_comm **out);

/** A handle's `self`, which owns `carrier`, and the tables, for tests of tables. */
tsr_status message_engine_self(tsr_comm *carrier, void **self);
void message_engine_release(void *self);
extern const tsr_comm_messages message_engine_messages;
extern const tsr_comm_table message_engine_table;

#endif
