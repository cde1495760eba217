/** From the oracle's descriptions to the library's objects; every failure fails the test with its sentence. */
#ifndef TESTS_PLACEMENT_LAYOUTS_H
#define TESTS_PLACEMENT_LAYOUTS_H

#include "counted_memory.h"
#include "oracle.h"
#include <tessera/layout.h>

/** Fails the running test with the library's sentence and the case's text unless `status` is TSR_OK. */
void expect_ok(tsr_status status);

/** Fails unless `status` is `wanted` and the sentence holds `part` (NULL: any, but not none). */
void expect_error(tsr_status status, tsr_status wanted, const char *part);

/** Calls `call` with its first, second, .. allocation failing, until there is no further one and it succeeds. Those that fail say so, and
 * leave as much memory as before; what they have written is for `call` to look at. Returns how many they were. */
size_t fail_each_allocation(counted_memory *memory, tsr_status (*call)(void *arg), void *arg);

tsr_mesh *abstract_mesh(const oracle_mesh *mesh);
tsr_layout *abstract_layout(const oracle_layout *layout);

/** A layout over an abstract mesh given as text ("2x4"), of f32; `shape` as "31x3". */
tsr_layout *layout_of(const char *mesh, const char *shape, const char *placements);

/** The same of a context of its own. */
tsr_layout *layout_in(tsr_context *context, const char *mesh, const char *shape, const char *placements);

/** What tsr_layout_parse() returns for it. */
tsr_status layout_status(const char *mesh, const char *shape, const char *placements, tsr_dtype dtype);

int shape_of(const char *text, int64_t *shape);

#endif
