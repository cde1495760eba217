/** The smaller meshes of --sweep: each halves the longest even dim (the last of equal ones) of the
 * mesh before. */
#ifndef TESSERA_TOOLS_BENCH_RUN_HALVINGS_H
#define TESSERA_TOOLS_BENCH_RUN_HALVINGS_H

#include "cli/report.h"

/** How many times the mesh can be halved with at least 16 ranks left. */
int halvings_count(const tsr_mesh *mesh);

/** Copies the options with the mesh halved `times` times, as "8x4" in `text`, which `out` borrows:
 * its dims have no names, its ranks count from 0. With 0 times the options are unchanged. `mesh` is
 * the mesh of `given`. */
void halvings_choose(const tool_arguments *given, const tsr_mesh *mesh, int times, char text[SHAPE_TEXT_BYTES],
                     tool_arguments *out);

#endif
