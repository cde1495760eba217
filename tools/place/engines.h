/** The engines (--engine) and devices (--device) that this build knows. */
#ifndef TESSERA_TOOLS_PLACE_ENGINES_H
#define TESSERA_TOOLS_PLACE_ENGINES_H

#include "place/gpus.h"

#include <stdbool.h>

/** An engine: how ranks are made and run. */
typedef struct engine {
    const char *name;
    const char *ranks; /**< what a rank is, in words for people */
    bool of_gpus;      /**< needs GPUs: its functions get the facts of CUDA; those of other engines get NULL */
    bool sends;        /**< moves are always messages: a rank cannot read a peer's memory */

    /** The reason why this machine cannot use the engine; NULL if it can. */
    const char *(*missing)(const cuda_facts *cuda);

    /** The version of the engine's library; NULL for an engine without one, or a library without a
     * version. */
    const char *(*version)(const cuda_facts *cuda);

    /** Joins the processes that a launcher started, on the first call; gives this process's rank
     * and the number of ranks. NULL: ranks are threads, in any number. */
    tsr_status (*join)(int *rank, int *ranks);

    /** Runs `main` on `ranks` rank threads, or (with `join`) on this process's own rank; frees the
     * communicator when `main` has returned. Returns the first failure. */
    tsr_status (*run)(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda);

    /** Undoes `join`; does nothing if there was none. NULL for an engine without `join`. */
    void (*leave)(void);
} engine;

/** The engine at `index`, NULL past the last; and the engine with a name, NULL if there is none.
 * Static. */
const engine *engine_get(int index);
const engine *engine_find(const char *name);

/** Calls each engine's leave(), at the end of the program: MPI can be initialized and finalized
 * only once in a process. */
void engines_leave(void);

extern const engine threads_engine, mpi_engine, nccl_engine;

/** A device of --device: where tensors lie. */
typedef struct device_kind {
    const char *name;
    bool of_gpus;
    bool plugged; /**< in a shared object, whose path is the value of --device */
} device_kind;

/** The device of a value of --device: of a name, or of a path (text with a '/'); NULL: there is no
 * such name. */
const device_kind *device_find(const char *name);

/** Complains of an engine, or a device, that is not known, and returns EXIT_USAGE. */
int complain_about_engine(const char *name);
int complain_about_device(const char *name);

#endif
