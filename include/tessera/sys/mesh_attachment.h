/**
 * @file
 * What a library on top of this one keeps with a mesh, such as answers for layouts on it, and keys
 * for these answers.
 */
#ifndef TESSERA_SYS_MESH_ATTACHMENT_H
#define TESSERA_SYS_MESH_ATTACHMENT_H

#include <tessera/layout.h>
#include <tessera/mesh.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A kind of attachment to meshes: a static object, identified by its address. */
typedef struct tsr_mesh_attachment_kind {
    /** Makes the attachment in `*out`. It takes no reference to `mesh`, whose last reference would
     * then never go; tsr_mesh_copy() makes a mesh for layouts that are kept. */
    tsr_status (*make)(const tsr_mesh *mesh, void **out);
    /** Called when the mesh's last reference goes. */
    void (*destroy)(void *made);
} tsr_mesh_attachment_kind;

/** The kind's attachment to this mesh object, in `*out`; borrowed from the mesh. The first call
 * makes it; if `make` fails, its status is returned, and the next call tries again. Neither pointer
 * is NULL. One thread at a time, as with the mesh's communicator. */
TSR_API tsr_status tsr_mesh_attachment(const tsr_mesh *mesh, const tsr_mesh_attachment_kind *kind,
                                       void **out);

/** An abstract copy of a mesh that is not NULL, for objects that must not keep the mesh alive. The
 * caller owns `*out`. Any thread. */
TSR_API tsr_status tsr_mesh_copy(const tsr_mesh *mesh, tsr_mesh **out);

/** A number of the layout object: not 0, and never given to another layout of its context, even
 * after the layout is gone. `layout` is not NULL. Any thread. */
TSR_API uint64_t tsr_layout_number(const tsr_layout *layout);

/** A hash that equal layouts (tsr_layout_equal()) share. `layout` is not NULL. Any thread. */
TSR_API uint64_t tsr_layout_hash(const tsr_layout *layout);

#ifdef __cplusplus
}
#endif

#endif
