/** The smaller meshes of a sweep: those that halving a mesh's longest even dim, the last of equals, leaves again and again. */
#ifndef TESSERA_TOOLS_HALVINGS_H
#define TESSERA_TOOLS_HALVINGS_H

#include "report.h"

/** How often the mesh can be halved while 16 ranks are left. */
int halvings_count(const tsr_mesh *mesh);

/** The text of the mesh that was halved so often, "8x4": its dims have no names, its ranks count from 0. */
void halvings_print(const tsr_mesh *mesh, int times, char text[SHAPE_TEXT_BYTES]);

#endif
