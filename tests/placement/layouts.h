/** Makes objects of the library from the oracle's descriptions or text; a failure fails the test
 * with its sentence. */
#ifndef TESTS_PLACEMENT_LAYOUTS_H
#define TESTS_PLACEMENT_LAYOUTS_H

#include "counted_memory.h"
#include "oracle.h"

#include <tessera/layout.h>

/** Fails the running test with the library's sentence and the case's text unless `status` is
 * TSR_OK. */
void expect_ok(tsr_status status);

/** Fails the test unless `status` is `wanted` and the sentence contains `part` (NULL: is not
 * empty). */
void expect_error(tsr_status status, tsr_status wanted, const char *part);

/** Calls `call` with its first, second, .. allocation failing, until it succeeds. Checks that each
 * failing call returns an error with a sentence, and leaves no memory; `call` checks its outputs
 * itself. Returns the number of failing calls. */
size_t fail_each_allocation(counted_memory *memory, tsr_status (*call)(void *arg), void *arg);

tsr_mesh *abstract_mesh(const oracle_mesh *mesh);
tsr_layout *abstract_layout(const oracle_layout *layout);

/** An f32 layout on an abstract mesh, from text: `mesh` as "2x4", `shape` as "31x3". */
tsr_layout *layout_of(const char *mesh, const char *shape, const char *placements);

/** layout_of() in a context. */
tsr_layout *layout_in(tsr_context *context, const char *mesh, const char *shape, const char *placements);

/** The status of tsr_layout_parse() for these texts. */
tsr_status layout_status(const char *mesh, const char *shape, const char *placements, tsr_dtype dtype);

int shape_of(const char *text, int64_t *shape);

#endif
