#include "moves.h"

#include <tessera/saved.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Texts ---- */

static tsr_status find_dim(const tsr_mesh *mesh, const char *word, int *dim)
{
    if (!isdigit((unsigned char)word[0]))
        return tsr_mesh_find(mesh, word, dim);
    char *end;
    const long index = strtol(word, &end, 10);
    if (*end || index >= tsr_mesh_ndim(mesh))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "`dims` has \"%s\", but the mesh has dims 0 to %d", word,
                              tsr_mesh_ndim(mesh) - 1);
    *dim = (int)index;
    return TSR_OK;
}

tsr_status tsr_xla_dims(const tsr_mesh *mesh, const char *text, bool *in)
{
    const int ndim = tsr_mesh_ndim(mesh);
    int last = -1;
    for (int d = 0; d < ndim; d++)
        in[d] = !text || !*text;
    for (const char *at = text; at && *at;) {
        char word[256];
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof word)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "`dims` is \"%s\"; it has names of mesh dims, of at most %zu characters, with commas",
                                  text, sizeof word - 1);
        memcpy(word, at, length);
        word[length] = 0;
        int dim = 0;
        TSR_TRY(find_dim(mesh, word, &dim));
        if (dim <= last)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "`dims` is \"%s\"; dims come in the order of the mesh", text);
        in[dim] = true;
        last = dim;
        at += length + (at[length] == ',');
    }
    return TSR_OK;
}

tsr_status tsr_xla_op(const char *name, tsr_reduce_op *op)
{
    *op = TSR_SUM;
    for (int o = 0; name && o < TSR_REDUCE_OP_END; o++)
        if (strcmp(name, tsr_reduce_op_name((tsr_reduce_op)o)) == 0) {
            *op = (tsr_reduce_op)o;
            return TSR_OK;
        }
    if (!name)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "`op` is \"%s\"; there are sum, avg, min, max and prod", name);
}

tsr_status tsr_xla_placements(tsr_context *context, const tsr_mesh *mesh, const char *name, const char *text,
                              tsr_placement *out, void **numbers)
{
    int count;
    const size_t room = strlen(text);
    TSR_TRY(tsr_allocate(context, (room + 1) * sizeof(int64_t), numbers));
    tsr_status status = tsr_placements_parse(text, out, TSR_MAX_DIMS, &count, *numbers, room, NULL);
    if (status == TSR_OK && count != tsr_mesh_ndim(mesh))
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "`%s` is \"%s\", but the mesh has %d dims: one placement for each",
                                name, text, tsr_mesh_ndim(mesh));
    if (status != TSR_OK) {
        tsr_release(context, *numbers);
        *numbers = NULL;
    }
    return status;
}

tsr_status tsr_xla_layout(const tsr_mesh *mesh, const XLA_FFI_Buffer *buffer, const tsr_placement *placements,
                          const tsr_xla_numbers *shape, const char *name, tsr_layout **out)
{
    int64_t global[TSR_MAX_DIMS];
    const tsr_dtype dtype = tsr_xla_dtype(buffer->dtype);
    if (buffer->rank > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s has %lld dims; at most %d work", name, (long long)buffer->rank,
                              TSR_MAX_DIMS);
    if (shape->values && shape->count != buffer->rank)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the global shape of %s has %lld dims, but %s has %lld", name,
                              (long long)shape->count, name, (long long)buffer->rank);
    for (int64_t d = 0; d < buffer->rank; d++)
        global[d] = shape->values ? shape->values[d] : buffer->dims[d];
    for (int m = 0; m < tsr_mesh_ndim(mesh) && !shape->values; m++)
        if (placements[m].kind == TSR_SHARD && placements[m].dim < buffer->rank)
            global[placements[m].dim] *= tsr_mesh_size(mesh, m);
    return tsr_layout_create(mesh, placements, (int)buffer->rank, global, dtype, out);
}

/* ---- Redistributions ---- */

/* A plan in the making: layouts of source and destination. */
typedef struct ends {
    tsr_layout *src, *dst;
} ends;

static tsr_status plan_ends(tsr_xla_work *work, const ends *e)
{
    return tsr_plan_create(e->src, e->dst, NULL, &work->plan);
}

static tsr_status read_ends(tsr_xla_work *work, const tsr_xla_attributes *attributes, const XLA_FFI_CallFrame *frame,
                            ends *e)
{
    tsr_placement from[TSR_MAX_DIMS], to[TSR_MAX_DIMS];
    void *numbers[2] = {NULL, NULL};
    tsr_status status = tsr_xla_placements(work->context, work->mesh, "from", attributes->from, from, &numbers[0]);
    if (status == TSR_OK)
        status = tsr_xla_placements(work->context, work->mesh, "to", attributes->to, to, &numbers[1]);
    if (status == TSR_OK)
        status = tsr_xla_layout(work->mesh, tsr_xla_work_buffer(work, frame, 0), from, &attributes->shape,
                                "the operand", &e->src);
    if (status == TSR_OK)
        status = tsr_layout_with(e->src, to, &e->dst);
    tsr_release(work->context, numbers[0]);
    tsr_release(work->context, numbers[1]);
    return status;
}

static tsr_status box_moves(tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    const int64_t count = (int64_t)tsr_plan_count(work->plan);
    if (work->operands != count || work->results != count)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "the plan has %lld moves, but the call has %lld operands and %lld results",
                              (long long)count, (long long)work->operands, (long long)work->results);
    for (int64_t i = 0; i < count; i++) {
        const tsr_layout *src, *dst;
        TSR_TRY(tsr_plan_layouts(work->plan, (size_t)i, &src, &dst));
        char operand[32], result[32];
        snprintf(operand, sizeof operand, "operand %lld", (long long)i);
        snprintf(result, sizeof result, "result %lld", (long long)i);
        TSR_TRY(tsr_xla_work_box(work, frame, i, src, operand));
        TSR_TRY(tsr_xla_work_box(work, frame, count + i, dst, result));
    }
    return TSR_OK;
}

static tsr_status plan_redistribution(tsr_xla_work *work, const tsr_xla_attributes *attributes,
                                      const XLA_FFI_CallFrame *frame)
{
    ends e = {NULL, NULL};
    tsr_status status;
    if (attributes->plan.data) {
        status = tsr_plan_load(work->context, attributes->plan.data, attributes->plan.count, tsr_comm_rank(work->comm),
                               &work->plan);
    } else {
        status = read_ends(work, attributes, frame, &e);
        if (status == TSR_OK)
            status = plan_ends(work, &e);
    }
    tsr_layout_destroy(e.src);
    tsr_layout_destroy(e.dst);
    TSR_TRY(status);
    return box_moves(work, frame);
}

/* ---- Collectives ---- */

/* A collective as a move: the tensor has a dim for the ranks that are not along `dims`, if there
 * are any, which cut it; then `shape`, of which `from` and `to` are cut along `dims`, or -1. */
typedef struct collective {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int from, to;
    bool reduces;
    tsr_reduce_op op;
} collective;

static int64_t product_of(const int64_t *dims, int64_t begin, int64_t end)
{
    int64_t product = 1;
    for (int64_t d = begin; d < end; d++)
        product *= dims[d];
    return product;
}

static tsr_status check_axis(const XLA_FFI_Buffer *buffer, const char *name, int64_t axis)
{
    if (axis < buffer->rank)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "`%s` is %lld, but the operand has %lld dims", name, (long long)axis,
                          (long long)buffer->rank);
}

static tsr_status check_divides(const XLA_FFI_Buffer *buffer, int64_t axis, int64_t parts)
{
    if (buffer->dims[axis] % parts == 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "dim %lld of the operand has length %lld, which does not divide into a part for each of %lld "
                          "ranks",
                          (long long)axis, (long long)buffer->dims[axis], (long long)parts);
}

static void add_dim(collective *c, int64_t length)
{
    c->shape[c->ndim++] = length;
}

/* The parts change places in the dim that is cut: a dim for the source, and one for the
 * destination. */
static void make_exchange(const XLA_FFI_Buffer *in, int64_t axis, int64_t parts, collective *c)
{
    add_dim(c, product_of(in->dims, 0, axis));
    c->from = c->ndim;
    add_dim(c, parts);
    c->to = c->ndim;
    add_dim(c, parts);
    add_dim(c, product_of(in->dims, axis, in->rank) / parts);
}

static void make_all_to_all(const XLA_FFI_Buffer *in, int64_t split, int64_t concat, int64_t parts, collective *c)
{
    const int64_t first = split < concat ? split : concat, second = split < concat ? concat : split;
    const int base = c->ndim;
    add_dim(c, product_of(in->dims, 0, first));
    add_dim(c, in->dims[first]);
    add_dim(c, product_of(in->dims, first + 1, second));
    add_dim(c, in->dims[second]);
    add_dim(c, product_of(in->dims, second + 1, in->rank));
    c->from = base + (concat == first ? 1 : 3);
    c->to = base + (split == first ? 1 : 3);
    c->shape[c->from] *= parts;
}

static tsr_status make_collective(tsr_xla_kind kind, const tsr_xla_attributes *attributes, const XLA_FFI_Buffer *in,
                                  int64_t parts, collective *c)
{
    c->from = c->to = -1;
    c->reduces = kind == TSR_XLA_ALL_REDUCE || kind == TSR_XLA_REDUCE_SCATTER;
    if (kind == TSR_XLA_ALL_REDUCE) {
        add_dim(c, product_of(in->dims, 0, in->rank));
        return TSR_OK;
    }
    if (kind == TSR_XLA_ALL_TO_ALL) {
        const int64_t split = attributes->split_axis, concat = attributes->concat_axis;
        TSR_TRY(check_axis(in, "split_axis", split));
        TSR_TRY(check_axis(in, "concat_axis", concat));
        TSR_TRY(check_divides(in, split, parts));
        if (split == concat)
            make_exchange(in, split, parts, c);
        else
            make_all_to_all(in, split, concat, parts, c);
        return TSR_OK;
    }
    const int64_t axis = attributes->axis;
    TSR_TRY(check_axis(in, "axis", axis));
    if (kind == TSR_XLA_REDUCE_SCATTER)
        TSR_TRY(check_divides(in, axis, parts));
    add_dim(c, product_of(in->dims, 0, axis));
    *(kind == TSR_XLA_REDUCE_SCATTER ? &c->to : &c->from) = c->ndim;
    add_dim(c, product_of(in->dims, axis, in->rank) * (kind == TSR_XLA_ALL_GATHER ? parts : 1));
    return TSR_OK;
}

static tsr_status lay_out(const tsr_mesh *mesh, const bool *in, const collective *c, tsr_dtype dtype, ends *e)
{
    tsr_placement from[TSR_MAX_DIMS], to[TSR_MAX_DIMS];
    for (int m = 0; m < tsr_mesh_ndim(mesh); m++) {
        from[m] = to[m] = tsr_shard(0);
        if (!in[m])
            continue;
        from[m] = c->reduces ? tsr_partial(c->op) : c->from < 0 ? tsr_replicate() : tsr_shard(c->from);
        to[m] = c->to < 0 ? tsr_replicate() : tsr_shard(c->to);
    }
    TSR_TRY(tsr_layout_create(mesh, from, c->ndim, c->shape, dtype, &e->src));
    return tsr_layout_create(mesh, to, c->ndim, c->shape, dtype, &e->dst);
}

/* The result has the operand's shape, but for the dims that grow and shrink. */
static tsr_status check_result(tsr_xla_kind kind, const tsr_xla_attributes *attributes, const XLA_FFI_Buffer *in,
                               const XLA_FFI_Buffer *out, int64_t parts)
{
    const int64_t grows = kind == TSR_XLA_ALL_GATHER   ? attributes->axis
                          : kind == TSR_XLA_ALL_TO_ALL ? attributes->concat_axis
                                                       : -1;
    const int64_t shrinks = kind == TSR_XLA_REDUCE_SCATTER ? attributes->axis
                            : kind == TSR_XLA_ALL_TO_ALL   ? attributes->split_axis
                                                           : -1;
    bool same = in->rank == out->rank;
    for (int64_t d = 0; same && d < in->rank; d++)
        same = out->dims[d] * (d == shrinks ? parts : 1) == in->dims[d] * (d == grows ? parts : 1);
    if (same)
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "the result's shape does not follow from the operand's: among %lld ranks an all-gather makes "
        "`axis` %lld times as long, a reduce-scatter as short, an all-to-all does so to `concat_axis` "
        "and `split_axis`, and all other lengths stay",
        (long long)parts, (long long)parts);
}

static tsr_status plan_collective(tsr_xla_work *work, tsr_xla_kind kind, const tsr_xla_attributes *attributes,
                                  const XLA_FFI_CallFrame *frame)
{
    const XLA_FFI_Buffer *const in = tsr_xla_work_buffer(work, frame, 0), *const out =
                                                                              tsr_xla_work_buffer(work, frame, 1);
    bool along[TSR_MAX_DIMS];
    int64_t parts = 1, others = 1;
    bool all = true;
    TSR_TRY(tsr_xla_dims(work->mesh, attributes->dims, along));
    for (int m = 0; m < tsr_mesh_ndim(work->mesh); m++) {
        *(along[m] ? &parts : &others) *= tsr_mesh_size(work->mesh, m);
        all = all && along[m];
    }
    collective c = {0};
    if (!all)
        add_dim(&c, others);
    TSR_TRY(tsr_xla_op(attributes->op, &c.op));
    TSR_TRY(make_collective(kind, attributes, in, parts, &c));
    TSR_TRY(check_result(kind, attributes, in, out, parts));
    ends e = {NULL, NULL};
    tsr_status status = lay_out(work->mesh, along, &c, tsr_xla_dtype(in->dtype), &e);
    if (status == TSR_OK)
        status = plan_ends(work, &e);
    if (status == TSR_OK)
        status = tsr_xla_work_view(work, frame, 0, e.src);
    if (status == TSR_OK)
        status = tsr_xla_work_view(work, frame, 1, e.dst);
    tsr_layout_destroy(e.src);
    tsr_layout_destroy(e.dst);
    return status;
}

/* ---- Both ---- */

tsr_status tsr_xla_move_prepare(tsr_xla_work *work, tsr_xla_kind kind, const tsr_xla_attributes *attributes,
                                const XLA_FFI_CallFrame *frame)
{
    if (!attributes->plan.data && (work->operands != 1 || work->results != 1))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the call has %lld operands and %lld results; it takes one of each",
                              (long long)work->operands, (long long)work->results);
    if (kind == TSR_XLA_REDISTRIBUTE)
        TSR_TRY(plan_redistribution(work, attributes, frame));
    else
        TSR_TRY(plan_collective(work, kind, attributes, frame));
    TSR_TRY(tsr_xla_work_allocate(work, tsr_plan_workspace_bytes(work->plan)));
    return tsr_plan_prepare(work->plan, work->comm);
}

tsr_status tsr_xla_move_execute(const tsr_xla_work *work)
{
    return tsr_plan_execute(work->plan, work->comm, work->tensors, work->tensors + work->operands, work->workspace,
                            work->bytes, work->lane.stream);
}
