/* Attachments to meshes: a list in a slot of the mesh. */
#include "mesh/mesh.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

typedef struct attached {
    const tsr_mesh_attachment_kind *kind;
    void *made;
    tsr_context *context; /* borrowed: the mesh's */
    struct attached *next;
} attached;

static void destroy_all(void *first)
{
    for (attached *at = first, *next; at; at = next) {
        next = at->next;
        at->kind->destroy(at->made);
        tsr_release(at->context, at);
    }
}

tsr_status tsr_mesh_attachment(const tsr_mesh *mesh, const tsr_mesh_attachment_kind *kind, void **out)
{
    attached *const first = tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_ATTACHMENTS);
    for (const attached *at = first; at; at = at->next) {
        if (at->kind == kind) {
            *out = at->made;
            return TSR_OK;
        }
    }
    void *made, *room;
    tsr_context *const context = tsr_mesh_context(mesh);
    TSR_TRY(kind->make(mesh, &made));
    const tsr_status status = tsr_allocate(context, sizeof(attached), &room);
    if (status != TSR_OK) {
        kind->destroy(made);
        return status;
    }
    /* `make` may have attached something to this mesh itself. */
    *(attached *)room = (attached){kind, made, context, tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_ATTACHMENTS)};
    tsr_mesh_slot_set(mesh, TSR_MESH_SLOT_ATTACHMENTS, room, destroy_all);
    *out = made;
    return TSR_OK;
}
