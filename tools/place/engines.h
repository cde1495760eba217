/** The engines and devices that this build knows, and what they want of a machine. */
#ifndef TESSERA_TOOLS_PLACE_ENGINES_H
#define TESSERA_TOOLS_PLACE_ENGINES_H

#include "place/gpus.h"

#include <stdbool.h>

/** How ranks come to be. */
typedef struct engine {
    const char *name;
    const char *ranks; /**< what they are, for people */
    bool of_gpus;      /**< judged by what there is of CUDA: others are given NULL for it */
    bool sends;        /**< peers' memory is never read: moves go as messages, whatever is asked for */

    /** Why it cannot be used here, or NULL; and its version, NULL where it has none of its own. */
    const char *(*missing)(const cuda_facts *cuda);
    const char *(*version)(const cuda_facts *cuda);

    /** Before anything runs, and as often as that: which rank of how many this is, where a launcher started them. NULL: ranks are threads,
     * as many as are asked for. */
    tsr_status (*join)(int *rank, int *ranks);

    /** Runs `main` on `ranks` ranks, or on this process' own; its communicator is freed when it has returned. The first failure. */
    tsr_status (*run)(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda);

    /** What the first `join` is undone by, if there was one; or NULL. */
    void (*leave)(void);
} engine;

/** Row `index`, or NULL past the last; the row with that name, or NULL. Static. */
const engine *engine_get(int index);
const engine *engine_find(const char *name);

/** When nothing will run any more: MPI is initialized and finalized once in the life of a process, however many benchmarks a sweep has. */
void engines_leave(void);

extern const engine threads_engine, mpi_engine, nccl_engine;

/** Where tensors lie. */
typedef struct device_kind {
    const char *name;
    bool of_gpus;
} device_kind;

const device_kind *device_find(const char *name);

/** Where neither is found: the option, and what it was given. */
#define UNKNOWN_PLACE "%s '%s' is not known; 'tessera info' lists what there is"

#endif
