#include "redistribute/saved/save.h"

#include "base/profile.h"
#include "mesh/mesh.h"
#include "placement/placement.h"

#include <tessera/saved.h>
#include <tessera/sys/status.h>

#include <string.h>

/* A side by its number: sources are even, destinations odd. */
static const tsr_layout *side_of(const tsr_plan *plan, size_t number)
{
    const tsr_item *item = &plan->items[number / 2];
    return number % 2 == 0 ? item->given_src : item->given_dst;
}

static bool same_names(const tsr_mesh *a, const tsr_mesh *b)
{
    for (int d = 0; d < tsr_mesh_ndim(a); d++) {
        const char *x = tsr_mesh_name(a, d), *y = tsr_mesh_name(b, d);
        if (!x != !y || (x && strcmp(x, y) != 0))
            return false;
    }
    return true;
}

/* True if the meshes are equal in all that is saved: also in dims of size 1, names and nodes. */
static bool same_mesh(const tsr_mesh *a, const tsr_mesh *b)
{
    if (a == b)
        return true;
    const int ndim = tsr_mesh_ndim(a);
    return ndim == tsr_mesh_ndim(b) &&
           memcmp(tsr_mesh_shape(a), tsr_mesh_shape(b), (size_t)ndim * sizeof(int64_t)) == 0 && tsr_mesh_equal(a, b) &&
           same_names(a, b) && tsr_node_map_equal(tsr_mesh_node_map(a), tsr_mesh_node_map(b));
}

/* Looks from side 0 on, for most sides are on the first side's mesh or the second's. */
static size_t first_side_on_mesh_of(const tsr_plan *plan, size_t number)
{
    const tsr_mesh *mesh = side_of(plan, number)->mesh;
    size_t first = 0;
    while (first < number && !same_mesh(side_of(plan, first)->mesh, mesh))
        first++;
    return first;
}

static void write_nodes(tsr_writer *w, const tsr_nodes *nodes)
{
    tsr_write_u64(w, (uint64_t)(nodes->count > 0 ? -nodes->count : nodes->ranks_per_node));
    for (int64_t i = 0; i < nodes->count; i++)
        tsr_write_u32(w, (uint32_t)nodes->node[i]);
}

static void write_mesh(tsr_writer *w, const tsr_mesh *mesh)
{
    const tsr_grid *grid = tsr_mesh_grid(mesh);
    const bool named = tsr_mesh_name(mesh, 0) != NULL;
    tsr_write_u32(w, (uint32_t)grid->ndim);
    tsr_write_u32(w, named);
    tsr_write_u32(w, grid->list != NULL);
    tsr_write_numbers(w, grid->shape, (size_t)grid->ndim);
    for (int d = 0; named && d < grid->ndim; d++)
        tsr_write_text(w, tsr_mesh_name(mesh, d));
    for (int64_t i = 0; grid->list && i < grid->count; i++)
        tsr_write_u32(w, (uint32_t)grid->list[i]);
    if (!grid->list) {
        tsr_write_i64(w, grid->first);
        tsr_write_numbers(w, grid->strides, (size_t)grid->ndim);
    }
    const tsr_nodes nodes = tsr_mesh_nodes(mesh);
    write_nodes(w, &nodes);
}

static void write_shard(tsr_writer *w, const tsr_layout *layout, int mesh_dim)
{
    const tsr_placement *p = &layout->placements[mesh_dim];
    const size_t count = p->size_count > 0 ? p->size_count : p->block_count;
    tsr_write_u32(w, (uint32_t)p->dim);
    tsr_write_u32(w, (uint32_t)tsr_placement_said_order(layout->placements, layout->mesh_ndim, mesh_dim));
    tsr_write_u32(w, p->balanced != 0);
    tsr_write_u32(w, p->size_count > 0 ? TSR_SAVED_SIZES : count > 0 ? TSR_SAVED_BLOCKS : TSR_SAVED_NO_LIST);
    tsr_write_u64(w, p->interleave > 1 ? (uint64_t)p->interleave : 0);
    tsr_write_u64(w, p->unit > 1 ? (uint64_t)p->unit : 0);
    tsr_write_u64(w, count);
    tsr_write_numbers(w, p->size_count > 0 ? p->sizes : p->blocks, count);
}

static void write_side(tsr_writer *w, const tsr_plan *plan, size_t number)
{
    const tsr_layout *layout = side_of(plan, number);
    const size_t first = first_side_on_mesh_of(plan, number);
    tsr_write_u64(w, first);
    if (first == number)
        write_mesh(w, layout->mesh);
    for (int i = 0; i < layout->mesh_ndim; i++) {
        tsr_write_u32(w, layout->placements[i].kind);
        if (layout->placements[i].kind == TSR_SHARD)
            write_shard(w, layout, i);
        else if (layout->placements[i].kind == TSR_PARTIAL)
            tsr_write_u32(w, layout->placements[i].op);
    }
}

static void write_options(tsr_writer *w, const tsr_plan *plan)
{
    const tsr_plan_options *options = &plan->options;
    const tsr_link links[] = {plan->profile.inside, plan->profile.between};
    tsr_write_u32(w, plan->options.mode);
    tsr_write_u32(w, options->objective);
    tsr_write_u32(w, options->no_split != 0);
    tsr_write_u32(w, options->reduction);
    tsr_write_u64(w, options->max_workspace);
    write_nodes(w, &options->nodes);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        tsr_write_f64(w, links[i].latency);
        tsr_write_f64(w, links[i].bandwidth);
    }
    if (plan->measured)
        tsr_write_text(w, tsr_profile_text(plan->measured));
}

void tsr_saved_write(tsr_writer *w, const tsr_plan *plan, size_t bytes)
{
    tsr_write_frame(w, &tsr_saved_frame, plan->measured ? TSR_SAVED_WITH_TABLES : TSR_SAVED_VERSION, bytes);
    write_options(w, plan);
    tsr_write_u64(w, plan->hash);
    tsr_write_u64(w, plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_layout *src = plan->items[i].given_src;
        tsr_write_u32(w, src->dtype);
        tsr_write_u32(w, (uint32_t)src->ndim);
        tsr_write_numbers(w, src->shape, (size_t)src->ndim);
        write_side(w, plan, 2 * i);
        write_side(w, plan, 2 * i + 1);
    }
    tsr_write_frame_end(w);
}

tsr_status tsr_plan_save(const tsr_plan *plan, void *buffer, size_t capacity, size_t *bytes)
{
    if (!plan || !bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_save: %s is NULL", plan ? "bytes" : "plan");
    if (!buffer && capacity > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_save: buffer is NULL, but its capacity is %zu", capacity);
    tsr_writer count = {.buffer = NULL};
    tsr_saved_write(&count, plan, 0);
    tsr_writer writer = {.buffer = buffer, .capacity = capacity};
    if (capacity > 0)
        tsr_saved_write(&writer, plan, count.length);
    *bytes = count.length;
    return TSR_OK;
}
