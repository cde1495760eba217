/* tsr_mesh_split(). */
#include "base/hash.h"
#include "comm/core/agree.h"
#include "comm/core/traits.h"
#include "comm/meshes/sets.h"
#include "mesh/mesh.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

static tsr_status check(const tsr_mesh *mesh, const tsr_mesh_call *call, tsr_mesh *const *out, tsr_mesh_set *split)
{
    const tsr_comm *const comm = tsr_mesh_comm(mesh);
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", call->call);
    if (!tsr_comm_can_split(comm))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: the mesh's communicator of \"%s\" is lent and may not be split: tsr_mesh_slice() "
                              "makes a mesh over the same communicator",
                              call->call, tsr_comm_engine(comm));
    tsr_mesh_dims dims;
    TSR_TRY(tsr_mesh_choose_dims(mesh, call->call, call->dims, &dims));
    return tsr_mesh_set_find(mesh, &dims, split);
}

/* Ranks of one set must have dims of the same sizes. */
static uint64_t fingerprint_of(const tsr_mesh *mesh, const tsr_mesh_dims *dims)
{
    uint64_t hash = tsr_hash_text(TSR_HASH_SEED, "mesh_split");
    for (int i = 0; i < dims->count; i++)
        hash = tsr_hash_word(hash, (uint64_t)tsr_mesh_size(mesh, dims->dims[i]));
    return hash;
}

/* Collective: splits the communicator, and makes the mesh over this rank's part. */
static tsr_status make_mesh(const tsr_mesh *mesh, const tsr_mesh_call *call, const tsr_mesh_set *split, tsr_mesh **out)
{
    tsr_comm *const comm = tsr_mesh_comm(mesh);
    const bool inside = split->set.count > 0;
    tsr_comm *made = NULL;
    tsr_mesh *sub = NULL;
    /* The lowest rank would do, too: no rank is in two sets. */
    TSR_TRY(tsr_comm_split(comm, inside ? split->set.ranks[0] : -1, split->own, &made));
    const tsr_status local = inside ? tsr_mesh_build_split(mesh, &split->dims, split->ranks, made, &sub) : TSR_OK;
    if (local != TSR_OK)
        tsr_comm_destroy(made);
    const tsr_status status = tsr_comm_agree(comm, TSR_HASH_SEED, local, tsr_mesh_call_describe, call);
    if (status != TSR_OK) {
        tsr_mesh_destroy(sub);
        return status;
    }
    *out = sub;
    return TSR_OK;
}

static tsr_status split_mesh(const tsr_mesh *mesh, const tsr_mesh_call *call, tsr_mesh **out)
{
    tsr_mesh_set split = {.ranks = NULL};
    const tsr_status local = check(mesh, call, out, &split);
    const tsr_group_request request = {
        .set = split.set,
        .fingerprint = fingerprint_of(mesh, &split.dims),
        .local = local,
        .describe = tsr_mesh_call_describe,
        .arg = call,
    };
    tsr_status status = tsr_group_compare(tsr_mesh_comm(mesh), &request);
    if (status == TSR_OK)
        status = make_mesh(mesh, call, &split, out);
    tsr_mesh_set_free(mesh, &split);
    return status;
}

tsr_status tsr_mesh_split(const tsr_mesh *mesh, const char *dims, tsr_mesh **out)
{
    static const char name[] = "tsr_mesh_split";
    const tsr_mesh_call call = {name, mesh, dims};
    TSR_TRY(tsr_mesh_check_comm(mesh, name));
    TSR_TRY(tsr_comm_hold(tsr_mesh_comm(mesh), name));
    return tsr_comm_let_go(tsr_mesh_comm(mesh), split_mesh(mesh, &call, out));
}
