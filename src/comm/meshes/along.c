#include "comm/meshes/along.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "comm/meshes/sets.h"
#include "mesh/mesh.h"

#include <tessera/context.h>
#include <tessera/sys/status.h>

typedef struct known_group {
    bool prepared;
    const tsr_group *group; /* NULL on a rank outside the mesh */
} known_group;

/* In the mesh's slot; the groups belong to the communicator. */
typedef struct known_groups {
    tsr_context *context;
    known_group along[]; /* one for each set of dims, whose bits are the index */
} known_groups;

static void known_groups_destroy(void *data)
{
    known_groups *known = data;
    tsr_context *context = known->context;
    tsr_release(context, known);
    tsr_context_destroy(context);
}

static tsr_status known_groups_create(const tsr_mesh *mesh, known_groups **out)
{
    const size_t sets = (size_t)1 << tsr_mesh_ndim(mesh);
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(tsr_mesh_context(mesh), sizeof(known_groups) + sets * sizeof(known_group), &memory));
    *out = memory;
    (*out)->context = tsr_context_retain(tsr_mesh_context(mesh));
    return TSR_OK;
}

static size_t index_of(const tsr_mesh_dims *dims)
{
    size_t bits = 0;
    for (int i = 0; i < dims->count; i++)
        bits |= (size_t)1 << dims->dims[i];
    return bits;
}

/* Collective over the mesh's communicator. `dims` is not read if `local` is a failure, with which
 * this rank then takes part. */
static tsr_status prepare(const tsr_mesh *mesh, const tsr_mesh_call *call, const tsr_mesh_dims *dims, tsr_status local,
                          const tsr_group **out)
{
    tsr_mesh_set along = {.ranks = NULL};
    if (local == TSR_OK)
        local = tsr_mesh_set_find(mesh, dims, &along);
    const tsr_group_request request = {
        .set = along.set,
        .fingerprint = tsr_hash_text(TSR_HASH_SEED, "along"),
        .local = local,
        .describe = tsr_mesh_call_describe,
        .arg = call,
    };
    tsr_group_answer answer;
    const tsr_status status = tsr_group_prepare(tsr_mesh_comm(mesh), &request, &answer);
    tsr_mesh_set_free(mesh, &along);
    TSR_TRY(status);
    *out = answer.group;
    return TSR_OK;
}

/* The first call for these dims. `known` is NULL if it is the first for any. */
static tsr_status learn(const tsr_mesh *mesh, const tsr_mesh_call *call, const tsr_mesh_dims *dims, tsr_status local,
                        known_groups *known, const tsr_group **out)
{
    known_groups *made = NULL;
    if (local == TSR_OK && !known)
        local = known_groups_create(mesh, &made);
    const tsr_status status = prepare(mesh, call, dims, local, out);
    if (status != TSR_OK) {
        if (made)
            known_groups_destroy(made);
        return status;
    }
    if (made)
        tsr_mesh_slot_set(mesh, TSR_MESH_SLOT_GROUPS, made, known_groups_destroy);
    (made ? made : known)->along[index_of(dims)] = (known_group){true, *out};
    return TSR_OK;
}

tsr_status tsr_mesh_find_group(const tsr_mesh *mesh, const char *call, const char *dims, const tsr_group **out)
{
    const tsr_mesh_call described = {call, mesh, dims};
    known_groups *const known = tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_GROUPS);
    tsr_mesh_dims chosen = {.count = 0};
    const tsr_status local = tsr_mesh_choose_dims(mesh, call, dims, &chosen);
    if (known && local != TSR_OK)
        return local;
    const known_group *found = known ? &known->along[index_of(&chosen)] : NULL;
    if (!found || !found->prepared)
        return learn(mesh, &described, &chosen, local, known, out);
    *out = found->group;
    return TSR_OK;
}
