/** A message engine written against the public headers alone, as users would write one: it sends
 * its messages through another communicator. */
#ifndef TESTS_MESSAGE_ENGINE_H
#define TESTS_MESSAGE_ENGINE_H

#include <tessera/sys/comm.h>

/** tsr_threads_run() with every communicator behind this engine, which has only the required
 * entries of its tables. */
tsr_status message_engine_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** message_engine_run() with all optional entries: the engine's own collectives, and exchanges in
 * two halves. */
tsr_status message_engine_run_own(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/**
 * A communicator over `carrier`, which is borrowed, with exchanges in two halves. Each split,
 * exchange, half of an exchange and barrier, also of communicators split off, decrements `*calls`
 * if it is above 0; the call that makes it 0 fails with TSR_ERROR_DEVICE. NULL or 0: no call fails.
 * A split or a second half that fails has taken part; other calls that fail have not.
 */
tsr_status message_engine_create(tsr_comm *carrier, int *calls, tsr_comm **out);

/** The number of calls of each of the engine's own collectives on a rank, and of exchanges in
 * flight. */
typedef struct message_engine_tally {
    int all_gathers, reduce_scatters, all_reduces, broadcasts;
    int open;
} message_engine_tally;

/** Kinds of communicators: PLAIN can be split and compares arguments, LENT cannot be split,
 * UNCHECKED does not compare (TSR_COMM_UNCHECKED). */
typedef enum message_engine_kind {
    MESSAGE_ENGINE_PLAIN,
    MESSAGE_ENGINE_LENT,
    MESSAGE_ENGINE_UNCHECKED
} message_engine_kind;

/** message_engine_create() with the engine's own collectives, which decrement `*calls` too; one
 * that fails has not taken part. `tally`, unless NULL, counts the calls of this rank, also in
 * communicators split off. */
tsr_status message_engine_create_own(tsr_comm *carrier, int *calls, message_engine_tally *tally,
                                     message_engine_kind kind, tsr_comm **out);

/** For tests of tables: the `self` of a handle, which owns `carrier`, its release, and the
 * tables. */
tsr_status message_engine_self(tsr_comm *carrier, void **self);
void message_engine_release(void *self);
extern const tsr_comm_messages message_engine_messages;
extern const tsr_comm_table message_engine_table;

#endif
