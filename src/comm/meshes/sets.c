#include "comm/meshes/sets.h"

#include "base/memory/memory.h"
#include "base/text/text.h"
#include "mesh/mesh.h"

#include <tessera/sys/status.h>

void tsr_mesh_call_describe(const void *arg, char *text, size_t capacity)
{
    const tsr_mesh_call *c = arg;
    tsr_text words = {text, capacity, 0};
    char mesh[256];
    tsr_mesh_print(c->mesh, mesh, sizeof mesh);
    if (c->dims && *c->dims)
        tsr_text_append(&words, "%s along \"%.64s\" of mesh %s", c->call, c->dims, mesh);
    else
        tsr_text_append(&words, "%s along all dims of mesh %s", c->call, mesh);
}

tsr_status tsr_mesh_check_comm(const tsr_mesh *mesh, const char *call)
{
    if (!mesh)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: mesh is NULL", call);
    if (!tsr_mesh_comm(mesh))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: the mesh is abstract and only plans: make it with tsr_mesh_create() over a communicator", call);
    return TSR_OK;
}

tsr_status tsr_mesh_set_find(const tsr_mesh *mesh, const tsr_mesh_dims *dims, tsr_mesh_set *out)
{
    int64_t coordinate[TSR_MAX_DIMS];
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    *out = (tsr_mesh_set){.dims = *dims};
    if (!tsr_mesh_locate(mesh, rank, coordinate))
        return TSR_OK;
    const size_t count = (size_t)tsr_mesh_count_slice(mesh, dims);
    void *memory;
    TSR_TRY(tsr_allocate(tsr_mesh_context(mesh), count * (sizeof(int64_t) + sizeof(int)), &memory));
    out->ranks = memory;
    int *ranks = (int *)(out->ranks + count);
    tsr_mesh_list_slice(mesh, dims, coordinate, out->ranks);
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (int)out->ranks[i];
        if (ranks[i] == rank)
            out->own = (int)i;
    }
    out->set = (tsr_rank_set){ranks, (int)count};
    return TSR_OK;
}

void tsr_mesh_set_free(const tsr_mesh *mesh, tsr_mesh_set *set)
{
    tsr_release(tsr_mesh_context(mesh), set->ranks);
    *set = (tsr_mesh_set){.set = {NULL, 0}};
}
