/**
 * Layouts over different communicators, with their ranks renumbered as in one communicator.
 *
 * A trainer's mesh and a server's may be over two communicators that were split off one. A plan
 * between them is over their nearest common ancestor, and numbers ranks as the ancestor does.
 * Abstract meshes are taken to number them so already.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_COMMON_COMM_H
#define TSR_REDISTRIBUTE_MATCH_COMMON_COMM_H

#include "placement/layout.h"

/** A plan's source and destination layouts, all over one communicator. */
typedef struct tsr_common_layouts {
    tsr_comm *comm; /**< borrowed from the meshes; NULL: all meshes are abstract */
    const tsr_layout *const *src, *const *dst;
    tsr_context *context;
    tsr_layout **made; /**< `2 * count` layouts that are owned here, sources first; NULL: the given layouts are taken as
                          they are */
    size_t count;
} tsr_common_layouts;

/** Layouts over one communicator are taken as they are, and nothing is allocated. Free `*out` with
 * tsr_common_layouts_free(), also after an error. TSR_ERROR_ARGUMENT: the communicators have no
 * common ancestor. */
tsr_status tsr_common_layouts_find(const char *call, size_t count, const tsr_layout *const *src,
                                   const tsr_layout *const *dst, tsr_common_layouts *out);
void tsr_common_layouts_free(tsr_common_layouts *layouts);

#endif
