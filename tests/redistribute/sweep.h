/**
 * Executes many redistributions on one set of rank threads and compares every byte with the oracle.
 *
 * A case is a pair of layouts, or several pairs that are moved together, and a way to move them.
 * All ranks build their plans, execute, and compare their own memory; rank 0 then compares the
 * figures of all ranks with the oracle's bounds. A failing case is printed as a command.
 */
#ifndef TESTS_REDISTRIBUTE_SWEEP_H
#define TESTS_REDISTRIBUTE_SWEEP_H

#include "oracle_random.h"

#include <tessera/plan.h>
#include <tessera/sys/device.h>

typedef enum sweep_way {
    WAY_PLAN,     /**< tsr_plan_create, _prepare, _execute */
    WAY_DTENSORS, /**< tsr_redistribute_into; on one mesh also _batch */
} sweep_way;

/** Choices of max_workspace: none; the least that every rank can keep, with the most rounds;
 * slightly more. */
typedef enum sweep_cap { CAP_NONE, CAP_LEAST, CAP_SOME } sweep_cap;

/** Upper bound of the tensors of a case. */
enum { SWEEP_TENSORS = 6 };

typedef struct sweep_pair {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
} sweep_pair;

typedef struct sweep_case {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
    int more;               /**< number of other pairs that are moved together with this one */
    sweep_pair *others;     /**< valid until the next case */
    uint64_t seed;          /**< seed of the values and strides */
    tsr_mode mode;
    sweep_way way;
    bool strided;
    bool halves; /**< tsr_plan_start() and _finish() instead of _execute(); this and the fields below are for WAY_PLAN
                    only */
    sweep_cap cap;
    bool no_split;
    tsr_nodes nodes; /**< as in tsr_plan_options; the list is valid as long as the case */
    tsr_objective objective;
    const tsr_cost_profile *profile;
} sweep_case;

/** Writes case `number` to `out`, which is zeroed; false if there is no case of this number, so
 * that the sweep goes on with the next. */
typedef bool sweep_make(void *arg, int64_t number, sweep_case *out);

/** The engine of a sweep: rank threads; a message engine, so that every plan is in message mode; a
 * lent message engine, which must not be split, so that plans do not split; or the message engine
 * of `run`. */
typedef enum sweep_engine { ENGINE_THREADS, ENGINE_MESSAGES, ENGINE_LENT, ENGINE_GIVEN } sweep_engine;

/** Where tensors and workspaces lie: rank r uses device r % `devices` of the driver, and
 * streams[r]. */
typedef struct sweep_device {
    const tsr_device_driver *driver; /**< NULL: the host, with memory that `take` gives */
    void *(*take)(size_t bytes);
    void (*give_back)(void *memory, size_t bytes);
    int devices;
    tsr_stream streams[ORACLE_MAX_RANKS];
    int64_t (*held_up)(void); /**< counts the calling thread's allocations and waits on the device, of which executing a
                                 plan must make none; NULL: not checked */
} sweep_device;

typedef struct move_sweep {
    int world; /**< number of ranks of the communicator */
    sweep_make *make;
    void *arg;
    int64_t first, count; /**< runs cases first to count - 1 */
    sweep_engine engine;
    const sweep_device *device; /**< NULL: the host */
    /** NULL: tsr_threads_run */
    tsr_status (*run)(int nranks, tsr_rank_main *main, void *arg, const tsr_threads_options *options);
    double deadline; /**< time of test_now() after which no case begins; 0: none */
    int64_t ran;     /**< result: number of cases that were run */
} move_sweep;

/** Runs the sweep and returns the number of cases that failed; stops after a few failures. */
int sweep_run(move_sweep *sweep);

#endif
