#include "base/checked.h"
#include "base/context.h"
#include "base/links.h"
#include "base/memory/memory.h"
#include "base/profile.h"
#include "mesh/mesh.h"
#include "redistribute/saved/save.h"

#include <tessera/saved.h>
#include <tessera/sys/status.h>

#include <limits.h>

/* The fewest bytes of an item: a scalar, replicated on both sides, on meshes of one dim that are
 * written elsewhere. */
#define LEAST_ITEM_BYTES 32

typedef struct loader {
    tsr_context *context;
    tsr_reader reader; /* of the bytes between the length and the checksum */
    tsr_plan_options options;
    void *nodes;     /* the list of options.nodes; owned */
    bool has_tables; /* the version says so */
    tsr_cost_profile profile;
    tsr_profile *measured; /* NULL: without tables */
    uint64_t hash;
    size_t count;        /* how many items there are */
    tsr_layout **layout; /* count sources, then count destinations; NULL: not read yet */
} loader;

static tsr_layout **side_at(const loader *l, size_t number)
{
    return &l->layout[number % 2 * l->count + number / 2];
}

static tsr_status check_end(const loader *l, const char *what)
{
    return l->reader.ended ? tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: the bytes end inside %s", what)
                           : TSR_OK;
}

static tsr_status check_below(const char *what, uint64_t value, uint64_t limit)
{
    if (value < limit)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: %s is %llu, but must be 0 to %llu", what,
                          (unsigned long long)value, (unsigned long long)limit - 1);
}

/* Refuses a list of `count` entries of `bytes` bytes for which too few bytes are left. */
static tsr_status check_room(const loader *l, const char *what, uint64_t count, size_t bytes)
{
    if (count <= l->reader.left / bytes)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: %llu %s do not fit into the %zu bytes that follow",
                          (unsigned long long)count, what, l->reader.left);
}

static tsr_status check_dims(const char *what, uint32_t ndim)
{
    if (ndim <= TSR_MAX_DIMS)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: a %s of %lu dims, but it has at most %d", what,
                          (unsigned long)ndim, TSR_MAX_DIMS);
}

/* Opens the frame: after this, the bytes are as they were written. */
static tsr_status open_bytes(loader *l, const void *bytes, size_t size)
{
    uint32_t version;
    TSR_TRY(tsr_read_frame("tsr_plan_load", &tsr_saved_frame, bytes, size, &version, &l->reader));
    l->has_tables = version == TSR_SAVED_WITH_TABLES;
    return TSR_OK;
}

/* Reads the nodes of a mesh or of the options; `*memory` is their list, which the caller releases,
 * also after an error. */
static tsr_status read_nodes(loader *l, tsr_nodes *out, void **memory)
{
    *memory = NULL;
    const int64_t number = (int64_t)tsr_read_u64(&l->reader);
    const uint64_t count = number < 0 ? -(uint64_t)number : 0;
    TSR_TRY(check_end(l, "the nodes"));
    TSR_TRY(check_room(l, "nodes of ranks", count, sizeof(uint32_t)));
    if (count > 0)
        TSR_TRY(tsr_allocate_array(l->context, (size_t)count, sizeof(int64_t), memory));
    int64_t *node = *memory;
    for (uint64_t i = 0; i < count; i++)
        node[i] = tsr_read_u32(&l->reader);
    *out = (tsr_nodes){number < 0 ? 0 : number, (int64_t)count, node};
    return TSR_OK;
}

static tsr_link read_link(loader *l)
{
    const double latency = tsr_read_f64(&l->reader), bandwidth = tsr_read_f64(&l->reader);
    return (tsr_link){latency, bandwidth};
}

static tsr_status read_tables(loader *l)
{
    const char *text = tsr_read_text(&l->reader);
    TSR_TRY(check_end(l, "the tables of the cost profile"));
    const tsr_status status = tsr_profile_parse(text, &l->measured);
    return status == TSR_OK ? status : tsr_status_set(status, "tsr_plan_load: %s", tsr_status_message());
}

static tsr_status read_options(loader *l)
{
    const uint32_t mode = tsr_read_u32(&l->reader), objective = tsr_read_u32(&l->reader);
    const uint32_t no_split = tsr_read_u32(&l->reader), reduction = tsr_read_u32(&l->reader);
    TSR_TRY(check_below("the mode", mode, TSR_MODE_MESSAGE + 1));
    TSR_TRY(check_below("the objective", objective, TSR_OBJECTIVE_TIME + 1));
    TSR_TRY(check_below("no_split", no_split, 2));
    TSR_TRY(check_below("the order of reductions", reduction, TSR_REDUCTION_ANY_ORDER + 1));
    const uint64_t max_workspace = tsr_read_u64(&l->reader);
    TSR_TRY(read_nodes(l, &l->options.nodes, &l->nodes));
    if ((size_t)max_workspace != max_workspace)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "tsr_plan_load: max_workspace is %llu bytes, more than this machine can address",
                              (unsigned long long)max_workspace);
    l->profile.inside = read_link(l);
    l->profile.between = read_link(l);
    TSR_TRY(check_end(l, "the options"));
    TSR_TRY(tsr_profile_check("tsr_plan_load: the cost profile", &l->profile));
    if (l->has_tables)
        TSR_TRY(read_tables(l));
    l->options.mode = (tsr_mode)mode;
    l->options.objective = (tsr_objective)objective;
    l->options.no_split = (int)no_split;
    l->options.reduction = (tsr_reduction_order)reduction;
    l->options.max_workspace = (size_t)max_workspace;
    return TSR_OK;
}

static tsr_status read_listed(loader *l, int ndim, const int64_t *shape, const char *const *names, tsr_mesh **out)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        if (!tsr_multiply(count, shape[d], &count))
            count = INT64_MAX;
    TSR_TRY(check_room(l, "listed ranks", (uint64_t)count, sizeof(uint32_t)));
    void *memory;
    TSR_TRY(tsr_allocate(l->context, (size_t)count * sizeof(int64_t), &memory));
    int64_t *ranks = memory;
    for (int64_t i = 0; i < count; i++)
        ranks[i] = tsr_read_u32(&l->reader);
    const tsr_status status = tsr_mesh_create_abstract(l->context, ndim, shape, names, ranks, out);
    tsr_release(l->context, memory);
    return status;
}

static tsr_status read_strided(loader *l, int ndim, const int64_t *shape, const char *const *names, tsr_mesh **out)
{
    int64_t strides[TSR_MAX_DIMS];
    const int64_t first = (int64_t)tsr_read_u64(&l->reader);
    tsr_read_numbers(&l->reader, strides, (size_t)ndim);
    TSR_TRY(check_end(l, "a mesh"));
    return tsr_mesh_create_strided("tsr_plan_load", l->context, ndim, shape, names, first, strides, out);
}

/* Reads nodes, and makes `*out`, the mesh `mesh` with these nodes. Destroys `mesh`. */
static tsr_status read_knowing(loader *l, tsr_mesh *mesh, tsr_mesh **out)
{
    tsr_nodes nodes;
    void *memory;
    tsr_status status = read_nodes(l, &nodes, &memory);
    if (status == TSR_OK)
        status = tsr_mesh_with_nodes(mesh, &nodes, out);
    tsr_release(l->context, memory);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status read_mesh(loader *l, tsr_mesh **out)
{
    const uint32_t dims = tsr_read_u32(&l->reader), named = tsr_read_u32(&l->reader), listed = tsr_read_u32(&l->reader);
    TSR_TRY(check_dims("mesh", dims));
    const int ndim = (int)dims;
    int64_t shape[TSR_MAX_DIMS];
    const char *names[TSR_MAX_DIMS];
    tsr_read_numbers(&l->reader, shape, dims);
    for (int d = 0; named && d < ndim; d++)
        names[d] = tsr_read_text(&l->reader);
    TSR_TRY(check_end(l, "a mesh"));
    tsr_mesh *mesh;
    if (listed)
        TSR_TRY(read_listed(l, ndim, shape, named ? names : NULL, &mesh));
    else
        TSR_TRY(read_strided(l, ndim, shape, named ? names : NULL, &mesh));
    return read_knowing(l, mesh, out);
}

/* The mesh of side `number`: that of an earlier side, or one that follows. */
static tsr_status take_mesh(loader *l, size_t number, tsr_mesh **out)
{
    const uint64_t first = tsr_read_u64(&l->reader);
    TSR_TRY(check_end(l, "an item"));
    TSR_TRY(check_below("the number of the side whose mesh is taken", first, (uint64_t)number + 1));
    if (first == number)
        return read_mesh(l, out);
    *out = tsr_mesh_retain((*side_at(l, (size_t)first))->mesh);
    return TSR_OK;
}

/* `*memory` holds the numbers of sizes or blocks, until the layout has copied them. */
static tsr_status read_shard(loader *l, tsr_placement *out, void **memory)
{
    *out = tsr_shard((int)tsr_read_u32(&l->reader));
    out->order = (int)tsr_read_u32(&l->reader);
    out->balanced = tsr_read_u32(&l->reader) != 0;
    const uint32_t list = tsr_read_u32(&l->reader);
    out->interleave = (int64_t)tsr_read_u64(&l->reader);
    out->unit = (int64_t)tsr_read_u64(&l->reader);
    const uint64_t count = tsr_read_u64(&l->reader);
    TSR_TRY(check_end(l, "a placement"));
    TSR_TRY(check_room(l, "sizes or blocks", count, sizeof(int64_t)));
    if (list > TSR_SAVED_BLOCKS || (list == TSR_SAVED_NO_LIST) != (count == 0))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_plan_load: a placement has %llu numbers that are list %lu: 0 means no list, 1 sizes, 2 blocks",
            (unsigned long long)count, (unsigned long)list);
    if (count == 0)
        return TSR_OK;
    TSR_TRY(tsr_allocate(l->context, (size_t)count * sizeof(int64_t), memory));
    tsr_read_numbers(&l->reader, *memory, (size_t)count);
    if (list == TSR_SAVED_SIZES) {
        out->sizes = *memory;
        out->size_count = (size_t)count;
    } else {
        out->blocks = *memory;
        out->block_count = (size_t)count;
    }
    return TSR_OK;
}

static tsr_status read_placement(loader *l, tsr_placement *out, void **memory)
{
    const uint32_t kind = tsr_read_u32(&l->reader);
    if (kind == TSR_SHARD)
        return read_shard(l, out, memory);
    *out = kind == TSR_PARTIAL ? tsr_partial((tsr_reduce_op)tsr_read_u32(&l->reader)) : tsr_replicate();
    TSR_TRY(check_end(l, "a placement"));
    return check_below("the kind of a placement", kind, TSR_PARTIAL + 1);
}

static tsr_status read_placements(loader *l, int count, tsr_placement *out, void **memory)
{
    for (int i = 0; i < count; i++)
        TSR_TRY(read_placement(l, &out[i], &memory[i]));
    return TSR_OK;
}

static tsr_status read_side(loader *l, size_t number, const tsr_tensor *tensor)
{
    tsr_placement placements[TSR_MAX_DIMS];
    void *memory[TSR_MAX_DIMS] = {NULL};
    tsr_mesh *mesh;
    TSR_TRY(take_mesh(l, number, &mesh));
    tsr_status status = read_placements(l, tsr_mesh_ndim(mesh), placements, memory);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, placements, tensor->ndim, tensor->shape, tensor->dtype, side_at(l, number));
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        tsr_release(l->context, memory[i]);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status read_item(loader *l, size_t number)
{
    tsr_tensor tensor = {.dtype = (tsr_dtype)tsr_read_u32(&l->reader)};
    const uint32_t ndim = tsr_read_u32(&l->reader);
    TSR_TRY(check_dims("tensor", ndim));
    tensor.ndim = (int)ndim;
    tsr_read_numbers(&l->reader, tensor.shape, ndim);
    TSR_TRY(check_end(l, "an item"));
    TSR_TRY(read_side(l, 2 * number, &tensor));
    return read_side(l, 2 * number + 1, &tensor);
}

static tsr_status read_items(loader *l)
{
    l->hash = tsr_read_u64(&l->reader);
    const uint64_t count = tsr_read_u64(&l->reader);
    TSR_TRY(check_end(l, "the options"));
    TSR_TRY(check_room(l, "items", count, LEAST_ITEM_BYTES));
    void *memory;
    TSR_TRY(tsr_allocate_array(l->context, (size_t)count, 2 * sizeof *l->layout, &memory));
    l->layout = memory;
    l->count = (size_t)count;
    for (size_t i = 0; i < l->count; i++)
        TSR_TRY(read_item(l, i));
    if (l->reader.left > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: %zu bytes follow the last item", l->reader.left);
    if (count == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: a plan of 0 items; it has at least one");
    return TSR_OK;
}

static tsr_status plan_items(const loader *l, int64_t rank, tsr_plan **out)
{
    const tsr_layout *const *sides = (const tsr_layout *const *)l->layout;
    tsr_plan_options options = l->options;
    options.rank = rank;
    options.profile = &l->profile;
    options.measured = l->measured;
    return tsr_plan_create_for("tsr_plan_load", l->count, sides, sides + l->count, &options, out);
}

/* Refuses a plan that would not be saved as these bytes: a plan has one form, so then the bytes say
 * something else. */
static tsr_status check_plan(const loader *l, const tsr_plan *plan, const void *bytes, size_t size)
{
    if (plan->hash != l->hash)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "tsr_plan_load: the plan was saved by a library that plans these layouts otherwise: make it again");
    tsr_writer writer = {.expected = bytes, .capacity = size};
    tsr_saved_write(&writer, plan, size);
    if (writer.differs || writer.length != size)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_plan_load: the bytes are not those that tsr_plan_save() writes of this plan");
    return TSR_OK;
}

/* The plan of TSR_RANK_NONE, which costs next to nothing, is checked first, so that no rank's plan
 * is made of what is refused. */
static tsr_status plan_and_check(const loader *l, const void *bytes, size_t size, int64_t rank, tsr_plan **out)
{
    tsr_plan *plan = NULL;
    TSR_TRY(plan_items(l, TSR_RANK_NONE, &plan));
    const tsr_status status = check_plan(l, plan, bytes, size);
    if (status == TSR_OK && rank == TSR_RANK_NONE) {
        *out = plan;
        return TSR_OK;
    }
    tsr_plan_destroy(plan);
    TSR_TRY(status);
    return plan_items(l, rank, out);
}

static void free_layouts(const loader *l)
{
    for (size_t i = 0; l->layout && i < 2 * l->count; i++)
        tsr_layout_destroy(l->layout[i]);
    tsr_release(l->context, l->layout);
}

static tsr_status load_plan(loader *l, const void *bytes, size_t size, int64_t rank, tsr_plan **out)
{
    tsr_status status = read_options(l);
    if (status == TSR_OK)
        status = read_items(l);
    if (status == TSR_OK)
        status = plan_and_check(l, bytes, size, rank, out);
    free_layouts(l);
    tsr_profile_destroy(l->measured);
    tsr_release(l->context, l->nodes);
    return status;
}

tsr_status tsr_plan_load(tsr_context *context, const void *bytes, size_t size, int64_t rank, tsr_plan **out)
{
    if (!bytes || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: %s is NULL", bytes ? "out" : "bytes");
    if (rank < TSR_RANK_NONE || rank > INT_MAX)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_load: rank is %lld: a rank or TSR_RANK_NONE is needed",
                              (long long)rank);
    loader l = {.options = TSR_PLAN_OPTIONS_INIT};
    TSR_TRY(open_bytes(&l, bytes, size));
    TSR_TRY(tsr_context_resolve(context, &l.context));
    const tsr_status status = load_plan(&l, bytes, size, rank, out);
    tsr_context_destroy(l.context);
    return status;
}
