/** What tests of plans for models have in common. */
#ifndef TESTS_OPS_MODELS_PLANS_H
#define TESTS_OPS_MODELS_PLANS_H

#include <tessera/tessera.h>

/** The context of a test program. */
extern tsr_context *plans_context;

/** Opens and closes it, for cmocka_run_group_tests(). */
int plans_open(void **state);
int plans_close(void **state);

/** An abstract mesh; the caller owns it. */
tsr_mesh *plans_mesh(const char *text);

/** A plan, which the caller owns; fails the test if there is none. */
tsr_parallel_plan *plans_make(size_t count, const tsr_parallel_rule *rules, const tsr_parallel_plan_options *options);

/** Options with heads, and a mesh dim "group". */
tsr_parallel_plan_options plans_heads(int64_t heads, int64_t kv_heads, int64_t head_dim);

/** Expects a status, and a sentence that says `part`. */
void plans_expect(tsr_status status, tsr_status wanted, const char *part);

/** The status of a parameter's layout on a mesh. */
tsr_status plans_ask(const tsr_parallel_plan *plan, const char *on, const char *name, int ndim, int64_t rows,
                     int64_t columns);

#define PLANS_STYLES 22

/** A module for each style, called as the style is; and "placements" and "sizes". */
extern const tsr_parallel_rule plans_every_style[PLANS_STYLES];

#endif
