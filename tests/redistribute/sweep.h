/**
 * Runs many redistributions for real on one set of rank threads and compares every byte with the oracle.
 *
 * A case is a pair of layouts and how to go about it. All ranks build their plans, execute, and compare their own memory; rank 0 then
 * compares the figures of all ranks with the oracle's bounds. A failing case is printed as a command.
 */
#ifndef TESTS_REDISTRIBUTE_SWEEP_H
#define TESTS_REDISTRIBUTE_SWEEP_H

#include "oracle_random.h"
#include <tessera/plan.h>

typedef enum sweep_way {
    WAY_PLAN,     /**< tsr_plan_create, _prepare, _execute */
    WAY_DTENSORS, /**< tsr_redistribute_into; both layouts on one mesh */
} sweep_way;

typedef struct sweep_case {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
    uint64_t seed;          /**< of the values and strides */
    tsr_mode mode;
    sweep_way way;
    bool strided;
    int64_t ranks_per_node; /**< as in tsr_plan_options, like what follows; WAY_PLAN only */
    tsr_objective objective;
    const tsr_cost_profile *profile;
} sweep_case;

/** Writes case `number` to `out`, which is all zero; false: there is no such case, go on with the next number. */
typedef bool sweep_make(void *arg, int64_t number, sweep_case *out);

typedef struct move_sweep {
    int world; /**< ranks of the communicator */
    sweep_make *make;
    void *arg;
    int64_t first, count; /**< case numbers first .. count - 1 */
    bool messages;        /**< over an engine that has messages and nothing else; every plan is then in message mode */
    double deadline;      /**< test_now() after which no case is begun; 0: none */
    int64_t ran;          /**< out: cases that were run */
} move_sweep;

/** Runs the sweep and returns how many cases failed (it gives up after a few). */
int sweep_run(move_sweep *sweep);

#endif
