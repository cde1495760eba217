/** The smaller meshes of a sweep: those that halving a mesh's longest even dim, the last of equals, leaves again and again. */
#ifndef TESSERA_TOOLS_BENCH_RUN_HALVINGS_H
#define TESSERA_TOOLS_BENCH_RUN_HALVINGS_H

#include "cli/report.h"

/** How often the mesh can be halved while 16 ranks are left. */
int halvings_count(const tsr_mesh *mesh);

/** The options with the mesh that was halved so often, "8x4", whose text they borrow: its dims have no names, its ranks count from 0. Zero
 * times leaves them as they are. `mesh` is that of `given`. */
void halvings_choose(const tool_arguments *given, const tsr_mesh *mesh, int times, char text[SHAPE_TEXT_BYTES], tool_arguments *out);

#endif
