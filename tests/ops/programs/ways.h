/** Ranks that are threads, with different engines between them. */
#ifndef TESTS_OPS_PROGRAMS_WAYS_H
#define TESTS_OPS_PROGRAMS_WAYS_H

#include <tessera/tessera.h>

/** Engines: one that reads peers' memory; one of messages that travel between their two halves; and
 * that one with collectives of its own. */
typedef enum way { WAY_DIRECT, WAY_HALVES, WAY_COLLECTIVES, WAYS } way;

/** Their names, for sentences. */
extern const char *const way_names[WAYS];

/** tsr_threads_run() over an engine. */
tsr_status way_run(way how, int ranks, tsr_rank_main *main, void *arg, const tsr_threads_options *options);

#endif
