#include "redistribute/match/common_comm.h"

#include "base/memory/memory.h"
#include "comm/core/lineage.h"
#include "mesh/mesh.h"
#include "placement/print.h"

#include <tessera/sys/status.h>

/* The common ancestor of the communicators seen so far. */
typedef struct search {
    tsr_comm *common;
    const tsr_layout *first; /* the first layout that is over a communicator */
    bool differ;
} search;

static tsr_status refuse_comms(const char *call, const tsr_layout *first, const tsr_layout *other)
{
    const tsr_comm *a = tsr_mesh_comm(first->mesh), *b = tsr_mesh_comm(other->mesh);
    char ours[512], theirs[512];
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the communicators differ: %s is over one of %d ranks (\"%s\"), %s over one of %d ranks "
                          "(\"%s\"), and they do "
                          "not descend from one communicator by tsr_comm_split()",
                          call, tsr_layout_describe(first, ours, sizeof ours), tsr_comm_size(a), tsr_comm_engine(a),
                          tsr_layout_describe(other, theirs, sizeof theirs), tsr_comm_size(b), tsr_comm_engine(b));
}

static tsr_status see(const char *call, const tsr_layout *layout, search *s)
{
    tsr_comm *const comm = tsr_mesh_comm(layout->mesh);
    if (!comm || comm == s->common)
        return TSR_OK;
    if (!s->first) {
        s->first = layout;
        s->common = comm;
        return TSR_OK;
    }
    s->differ = true;
    tsr_comm *const common = tsr_comm_common(s->common, comm);
    if (!common)
        return refuse_comms(call, s->first, layout);
    s->common = common;
    return TSR_OK;
}

/* The mesh's ranks as `common` numbers them, row-major. */
static void list_ranks(const tsr_mesh *mesh, const tsr_comm *common, int64_t *ranks)
{
    const tsr_comm *const comm = tsr_mesh_comm(mesh);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    size_t at = 0;
    do
        ranks[at++] = tsr_comm_rank_in(comm, (int)tsr_mesh_rank(mesh, coordinate), common);
    while (tsr_grid_next(tsr_mesh_grid(mesh), coordinate));
}

/* Makes the mesh anew over the common communicator, and so with that communicator's nodes. */
static tsr_status raise_mesh(tsr_context *context, const tsr_mesh *mesh, tsr_comm *common, tsr_mesh **out)
{
    const int ndim = tsr_mesh_ndim(mesh);
    const char *names[TSR_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        names[d] = tsr_mesh_name(mesh, d);
    void *ranks;
    TSR_TRY(tsr_allocate_array(context, (size_t)tsr_mesh_count(mesh), sizeof(int64_t), &ranks));
    list_ranks(mesh, common, ranks);
    const tsr_status status = tsr_mesh_create(common, ndim, tsr_mesh_shape(mesh), names[0] ? names : NULL, ranks, out);
    tsr_release(context, ranks);
    return status;
}

static tsr_status raise_layout(const tsr_layout *layout, tsr_comm *common, tsr_layout **out)
{
    tsr_comm *const comm = tsr_mesh_comm(layout->mesh);
    if (!comm || comm == common) {
        *out = tsr_layout_retain((tsr_layout *)layout);
        return TSR_OK;
    }
    tsr_mesh *mesh;
    tsr_placement placements[TSR_MAX_DIMS];
    TSR_TRY(raise_mesh(layout->context, layout->mesh, common, &mesh));
    tsr_placements_on(layout, mesh, placements);
    const tsr_status status = tsr_layout_create(mesh, placements, layout->ndim, layout->shape, layout->dtype, out);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status raise_all(tsr_common_layouts *l)
{
    void *made;
    TSR_TRY(tsr_allocate_array(l->context, 2 * l->count, sizeof *l->made, &made));
    l->made = made;
    for (size_t i = 0; i < l->count; i++) {
        TSR_TRY(raise_layout(l->src[i], l->comm, &l->made[i]));
        TSR_TRY(raise_layout(l->dst[i], l->comm, &l->made[l->count + i]));
    }
    l->src = (const tsr_layout *const *)l->made;
    l->dst = (const tsr_layout *const *)l->made + l->count;
    return TSR_OK;
}

tsr_status tsr_common_layouts_find(const char *call, size_t count, const tsr_layout *const *src,
                                   const tsr_layout *const *dst, tsr_common_layouts *out)
{
    search s = {0};
    *out = (tsr_common_layouts){.src = src, .dst = dst, .context = src[0]->context, .count = count};
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(see(call, src[i], &s));
        TSR_TRY(see(call, dst[i], &s));
    }
    out->comm = s.common;
    return s.differ ? raise_all(out) : TSR_OK;
}

void tsr_common_layouts_free(tsr_common_layouts *layouts)
{
    for (size_t i = 0; layouts->made && i < 2 * layouts->count; i++)
        tsr_layout_destroy(layouts->made[i]);
    tsr_release(layouts->context, layouts->made);
}
