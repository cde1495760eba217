/**
 * Layouts whose meshes are over different communicators, in the ranks of one.
 *
 * A trainer's mesh and a server's may be over two communicators that were split off one. A plan between them is over the
 * nearest communicator from which all descend, and numbers ranks as that one does. Abstract meshes are taken to do so already.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_COMMON_COMM_H
#define TSR_REDISTRIBUTE_MATCH_COMMON_COMM_H

#include <stdbool.h>

#include "placement/layout.h"

/** Sources and destinations of a plan, as it takes them. */
typedef struct tsr_common_layouts {
    tsr_comm *comm; /**< borrowed from the meshes; NULL: all are abstract */
    const tsr_layout *const *src, *const *dst;
    tsr_context *context;
    tsr_layout **made; /**< `2 * count`, sources first; NULL where nothing had to be made */
    size_t count;
} tsr_common_layouts;

/** Layouts over one communicator are taken as they are, and nothing is allocated. `*out` is freed with tsr_common_layouts_free(), also
 * after an error. TSR_ERROR_ARGUMENT: communicators that do not descend from one. */
tsr_status tsr_common_layouts_find(const char *call, size_t count, const tsr_layout *const *src, const tsr_layout *const *dst,
                                   tsr_common_layouts *out);
void tsr_common_layouts_free(tsr_common_layouts *layouts);

#endif
