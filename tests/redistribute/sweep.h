/**
 * Runs many redistributions for real on one set of rank threads and compares every byte with the oracle.
 *
 * A case is a pair of layouts, or several pairs that are moved together, and how to go about it. All ranks build their plans, execute, and
 * compare their own memory; rank 0 then compares the figures of all ranks with the oracle's bounds. A failing case is printed as a command.
 */
#ifndef TESTS_REDISTRIBUTE_SWEEP_H
#define TESTS_REDISTRIBUTE_SWEEP_H

#include "oracle_random.h"
#include <tessera/plan.h>
#include <tessera/sys/device.h>

typedef enum sweep_way {
    WAY_PLAN,     /**< tsr_plan_create, _prepare, _execute */
    WAY_DTENSORS, /**< tsr_redistribute_into, or _batch; all layouts on one mesh */
} sweep_way;

/** What max_workspace is: nothing; so much that every rank keeps it by the most rounds; a bit more. */
typedef enum sweep_cap { CAP_NONE, CAP_LEAST, CAP_SOME } sweep_cap;

/** Tensors of one case. */
enum { SWEEP_TENSORS = 6 };

typedef struct sweep_pair {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
} sweep_pair;

typedef struct sweep_case {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
    int more;               /**< how many other pairs are moved together with this one */
    sweep_pair *others;     /**< lives until the next case */
    uint64_t seed;          /**< of the values and strides */
    tsr_mode mode;
    sweep_way way;
    bool strided;
    bool halves; /**< tsr_plan_start() and _finish() in place of _execute(); WAY_PLAN only, like what follows */
    sweep_cap cap;
    bool no_split;
    tsr_nodes nodes; /**< as in tsr_plan_options; the list lasts as long as the case */
    tsr_objective objective;
    const tsr_cost_profile *profile;
} sweep_case;

/** Writes case `number` to `out`, which is all zero; false: there is no such case, go on with the next number. */
typedef bool sweep_make(void *arg, int64_t number, sweep_case *out);

/** What carries the messages: rank threads; an engine that has messages and nothing else, so that every plan is in message mode; such an
 * engine that is lent and may not be split, so that every plan is made without splitting; the message engine that `run` gives. */
typedef enum sweep_engine { ENGINE_THREADS, ENGINE_MESSAGES, ENGINE_LENT, ENGINE_GIVEN } sweep_engine;

/** Where tensors and workspaces lie: rank r has those of device r % `devices` of the driver, and works on streams[r]. */
typedef struct sweep_device {
    const tsr_device_driver *driver; /**< NULL: on the host, in memory that `take` gives */
    void *(*take)(size_t bytes);
    void (*give_back)(void *memory, size_t bytes);
    int devices;
    tsr_stream streams[ORACLE_MAX_RANKS];
    int64_t (*held_up)(
        void); /**< how often the calling thread has allocated or waited there: not while a plan is executed. NULL: not asked */
} sweep_device;

typedef struct move_sweep {
    int world; /**< ranks of the communicator */
    sweep_make *make;
    void *arg;
    int64_t first, count; /**< case numbers first .. count - 1 */
    sweep_engine engine;
    const sweep_device *device;                                                                        /**< NULL: the host */
    tsr_status (*run)(int nranks, tsr_rank_main *main, void *arg, const tsr_threads_options *options); /**< NULL: tsr_threads_run */
    double deadline; /**< test_now() after which no case is begun; 0: none */
    int64_t ran;     /**< out: cases that were run */
} move_sweep;

/** Runs the sweep and returns how many cases failed (it gives up after a few). */
int sweep_run(move_sweep *sweep);

#endif
