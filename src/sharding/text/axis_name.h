/** Axes of a text, which are named as the mesh's dims. */
#ifndef TSR_SHARDING_TEXT_AXIS_NAME_H
#define TSR_SHARDING_TEXT_AXIS_NAME_H

#include "sharding/text/token.h"

#include <tessera/mesh.h>

/** Finds the mesh dim of that name, `length` characters from `start` of the text.
 * TSR_ERROR_ARGUMENT: there is none; the sentence lists the names. TSR_ERROR_UNSUPPORTED: dims of
 * this mesh have no names. */
tsr_status tsr_axis_find(tsr_scan *scan, const tsr_mesh *mesh, size_t start, size_t length, int *mesh_dim);

/** TSR_ERROR_UNSUPPORTED unless the mesh's dims have names; `format` names the format. */
tsr_status tsr_axis_need_names(const tsr_mesh *mesh, const char *format);

/** Keeps which axes were used. */
typedef struct tsr_axes_used {
    bool at[TSR_MAX_DIMS];
} tsr_axes_used;

/** TSR_ERROR_ARGUMENT, which points at `start`, if the axis was used before. */
tsr_status tsr_axis_use(tsr_scan *scan, tsr_axes_used *used, int mesh_dim, size_t start);

#endif
