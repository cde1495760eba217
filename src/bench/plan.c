#include "bench/memory.h"
#include "bench/values.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The byte of a destination before a move: rare in results, and not what fresh memory holds. */
#define SPOILT 0xa5

/* A layout, and this rank's place in it. */
typedef struct side {
    const tsr_layout *layout;
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
} side;

/* One move of the plan. */
typedef struct item {
    side from, to;
    tsr_bench_values values;
} item;

/* A plan on one rank. */
typedef struct plan_bench {
    tsr_bench_rank rank;
    const tsr_plan *plan;
    size_t count;
    item *items;           /* one for each move; on the heap */
    tsr_tensor *src, *dst; /* this rank's tensors of each move; in one block on the heap */
    bool own;              /* the tensors are in `memory`, not the caller's */
    uint8_t in_place;      /* 1 if a source and its destination are one memory on any rank, else 0 */
    size_t payload;        /* bytes of this rank's destinations */
    void *memory;          /* of own tensors, then of the workspace */
    size_t tensor_bytes, memory_bytes;
} plan_bench;

static tsr_status find_side(const tsr_bench_rank *r, const tsr_layout *layout, side *out)
{
    out->layout = layout;
    return tsr_mesh_coordinate_of(tsr_layout_mesh(layout), tsr_comm_rank(r->comm), out->coordinate, &out->inside);
}

/* This rank's shard as a tensor without memory; of 0 elements for a rank outside the mesh. */
static tsr_status describe(const tsr_bench_rank *r, const side *s, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS] = {0};
    if (s->inside)
        TSR_TRY(tsr_layout_local(s->layout, s->coordinate, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(s->layout), s->inside ? tsr_layout_ndim(s->layout) : 1, shape);
    out->device = r->options.device;
    return TSR_OK;
}

/* Takes the caller's tensor `given` in place of `own`, which has the shard's shape. */
static tsr_status take_given(const char *name, size_t index, const tsr_tensor *given, tsr_tensor *own)
{
    const bool same = given && given->dtype == own->dtype && given->ndim == own->ndim &&
                      memcmp(given->shape, own->shape, sizeof *own->shape * (size_t)own->ndim) == 0;
    if (!same)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_bench_plan: %s, tensor %zu, is not of the shape and dtype of this rank's shard",
                              name, index);
    if (!given->data && tsr_bench_tensor_bytes(own) > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_bench_plan: %s, tensor %zu, has no data", name, index);
    if (given->device.driver != own->device.driver || given->device.index != own->device.index)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_bench_plan: %s, tensor %zu, is not on options.device", name,
                              index);
    *own = *given;
    return TSR_OK;
}

/* Describes both tensors of a move; `src` and `dst` are those of the caller, or NULL. */
static tsr_status read_item(plan_bench *b, size_t index, const tsr_tensor *src, const tsr_tensor *dst)
{
    item *const it = &b->items[index];
    tsr_tensor *const x = &b->src[index], *const y = &b->dst[index];
    const tsr_layout *from, *to;
    TSR_TRY(tsr_plan_layouts(b->plan, index, &from, &to));
    TSR_TRY(find_side(&b->rank, from, &it->from));
    TSR_TRY(find_side(&b->rank, to, &it->to));
    TSR_TRY(tsr_bench_values_of(from, to, &it->values));
    TSR_TRY(describe(&b->rank, &it->from, x));
    TSR_TRY(describe(&b->rank, &it->to, y));
    b->payload += tsr_bench_tensor_bytes(y);
    b->tensor_bytes += tsr_bench_round_up(tsr_bench_tensor_bytes(x)) + tsr_bench_round_up(tsr_bench_tensor_bytes(y));
    if (b->own)
        return TSR_OK;
    if (it->from.inside)
        TSR_TRY(take_given("src", index, src ? &src[index] : NULL, x));
    if (it->to.inside)
        TSR_TRY(take_given("dst", index, dst ? &dst[index] : NULL, y));
    b->in_place |= x->data && x->data == y->data;
    return TSR_OK;
}

static tsr_status read_items(plan_bench *b, const tsr_tensor *src, const tsr_tensor *dst)
{
    tsr_context *const context = tsr_comm_context(b->rank.comm);
    void *memory;
    b->count = tsr_plan_count(b->plan);
    TSR_TRY(tsr_allocate(context, b->count * sizeof *b->items, &memory));
    b->items = memory;
    TSR_TRY(tsr_allocate(context, 2 * b->count * sizeof *b->src, &memory));
    b->src = memory;
    b->dst = b->src + b->count;
    for (size_t i = 0; i < b->count; i++)
        TSR_TRY(read_item(b, i, src, dst));
    b->tensor_bytes = b->own ? b->tensor_bytes : 0;
    b->memory_bytes = b->tensor_bytes + tsr_plan_workspace_bytes(b->plan);
    return TSR_OK;
}

/* Gives own tensors their memory. */
static void place_tensors(plan_bench *b)
{
    char *at = b->memory;
    for (size_t i = 0; b->own && i < b->count; i++) {
        b->src[i].data = at;
        at += tsr_bench_round_up(tsr_bench_tensor_bytes(&b->src[i]));
        b->dst[i].data = at;
        at += tsr_bench_round_up(tsr_bench_tensor_bytes(&b->dst[i]));
    }
}

static tsr_status fill_source(const plan_bench *b, size_t index)
{
    const item *const it = &b->items[index];
    void *staged;
    if (!it->from.inside)
        return TSR_OK;
    TSR_TRY(tsr_bench_stage(&b->rank, &b->src[index], &staged));
    tsr_status status = tsr_bench_values_fill(&it->values, it->from.coordinate, staged);
    if (status == TSR_OK)
        status = tsr_bench_push(&b->rank, &b->src[index], staged);
    tsr_bench_unstage(&b->rank, &b->src[index], staged);
    return status;
}

static tsr_status spoil_destination(const plan_bench *b, size_t index)
{
    const tsr_tensor *const y = &b->dst[index];
    void *staged;
    if (tsr_bench_tensor_bytes(y) == 0 || y->data == b->src[index].data)
        return TSR_OK;
    TSR_TRY(tsr_bench_stage(&b->rank, y, &staged));
    memset(staged, SPOILT, tsr_bench_tensor_bytes(y));
    const tsr_status status = tsr_bench_push(&b->rank, y, staged);
    tsr_bench_unstage(&b->rank, y, staged);
    return status;
}

static tsr_status fill_tensors(const plan_bench *b)
{
    for (size_t i = 0; i < b->count; i++) {
        TSR_TRY(fill_source(b, i));
        TSR_TRY(spoil_destination(b, i));
    }
    return TSR_OK;
}

static tsr_status execute(tsr_comm *comm, void *arg)
{
    const plan_bench *const b = arg;
    const size_t bytes = b->memory_bytes - b->tensor_bytes;
    void *const workspace = bytes > 0 ? (char *)b->memory + b->tensor_bytes : NULL;
    return tsr_plan_execute(b->plan, comm, b->src, b->dst, workspace, bytes, b->rank.options.stream);
}

/* Counts the wrong elements of a tensor under `layout`, which is not Partial. */
static tsr_status check_tensor(const plan_bench *b, const item *it, const tsr_layout *layout, const tsr_tensor *t,
                               int64_t *wrong)
{
    void *staged;
    if (!it->to.inside)
        return TSR_OK;
    TSR_TRY(tsr_bench_stage(&b->rank, t, &staged));
    tsr_status status = tsr_bench_pull(&b->rank, t, staged);
    if (status == TSR_OK)
        status = tsr_bench_values_check(&it->values, layout, it->to.coordinate, staged, wrong);
    tsr_bench_unstage(&b->rank, t, staged);
    return status;
}

/* The reduction of a Partial destination: its layout with the Partial dims replicated, and the plan
 * to there. */
typedef struct reduction {
    tsr_layout *layout;
    tsr_plan *plan;
    tsr_tensor tensor;
    void *memory; /* of the tensor, then of the workspace */
    size_t tensor_bytes, memory_bytes;
} reduction;

static tsr_status plan_reduction(const plan_bench *b, const item *it, reduction *out)
{
    const tsr_layout *const partial = it->to.layout;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_placement placements[TSR_MAX_DIMS];
    for (int d = 0; d < tsr_mesh_ndim(tsr_layout_mesh(partial)); d++) {
        placements[d] = tsr_layout_placements(partial)[d];
        if (placements[d].kind == TSR_PARTIAL)
            placements[d] = tsr_replicate();
    }
    side to = it->to;
    TSR_TRY(tsr_layout_with(partial, placements, &out->layout));
    to.layout = out->layout;
    TSR_TRY(describe(&b->rank, &to, &out->tensor));
    options.rank = tsr_comm_rank(b->rank.comm);
    TSR_TRY(tsr_plan_create(partial, out->layout, &options, &out->plan));
    out->tensor_bytes = tsr_bench_round_up(tsr_bench_tensor_bytes(&out->tensor));
    out->memory_bytes = out->tensor_bytes + tsr_plan_workspace_bytes(out->plan);
    return TSR_OK;
}

/* Collective: reduces destination `index`. The caller frees what `*out` has in any case. */
static tsr_status reduce(const plan_bench *b, size_t index, reduction *out)
{
    tsr_bench_outcome o = {.status = TSR_OK};
    *out = (reduction){.layout = NULL};
    tsr_bench_outcome_add(&o, plan_reduction(b, &b->items[index], out));
    TSR_TRY(tsr_bench_agree(b->rank.comm, &o));
    tsr_bench_allocate(&b->rank, out->memory_bytes, &out->memory, &o);
    TSR_TRY(tsr_bench_agree(b->rank.comm, &o));
    TSR_TRY(tsr_plan_prepare(out->plan, b->rank.comm));
    const size_t bytes = out->memory_bytes - out->tensor_bytes;
    void *const workspace = bytes > 0 ? (char *)out->memory + out->tensor_bytes : NULL;
    out->tensor.data = out->memory;
    TSR_TRY(tsr_plan_execute(out->plan, b->rank.comm, &b->dst[index], &out->tensor, workspace, bytes,
                             b->rank.options.stream));
    return tsr_bench_rank_wait(&b->rank);
}

static tsr_status check_partial(const plan_bench *b, size_t index, int64_t *wrong)
{
    reduction r;
    tsr_status status = reduce(b, index, &r);
    if (status == TSR_OK)
        status = check_tensor(b, &b->items[index], r.layout, &r.tensor, wrong);
    tsr_bench_outcome o = {.status = TSR_OK};
    tsr_bench_outcome_add(&o, status);
    status = tsr_bench_agree(b->rank.comm, &o);
    tsr_bench_release(&b->rank, r.memory, r.memory_bytes);
    tsr_plan_destroy(r.plan);
    tsr_layout_destroy(r.layout);
    return status;
}

static tsr_status count_wrong(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const plan_bench *const b = arg;
    if (b->in_place) {
        TSR_TRY(fill_tensors(b));
        TSR_TRY(execute(comm, arg));
        TSR_TRY(tsr_bench_rank_wait(&b->rank));
    }
    for (size_t i = 0; i < b->count; i++) {
        const item *const it = &b->items[i];
        if (tsr_bench_is_partial(it->to.layout))
            TSR_TRY(check_partial(b, i, wrong));
        else
            TSR_TRY(check_tensor(b, it, it->to.layout, &b->dst[i], wrong));
    }
    return TSR_OK;
}

/* Where plain copies write: the only destination, unless it has gaps or is also the source. */
static void *copied_result(const plan_bench *b)
{
    return b->count == 1 && !b->in_place && tsr_tensor_is_contiguous(&b->dst[0]) ? b->dst[0].data : NULL;
}

/* Collective: prepares the plan, and makes and fills the tensors. */
static tsr_status make_ready(const char *call, const tsr_tensor *src, const tsr_tensor *dst,
                             const tsr_bench_options *options, plan_bench *b)
{
    tsr_bench_outcome o = {.status = TSR_OK};
    tsr_bench_rank_read(call, b->rank.comm, options, &b->rank, &o);
    TSR_TRY(tsr_bench_rank_agree(&b->rank, NULL, 0, &o));
    TSR_TRY(tsr_plan_prepare(b->plan, b->rank.comm));
    tsr_bench_outcome_add(&o, read_items(b, src, dst));
    TSR_TRY(tsr_bench_agree(b->rank.comm, &o));
    tsr_bench_allocate(&b->rank, b->memory_bytes, &b->memory, &o);
    if (o.status == TSR_OK) {
        place_tensors(b);
        if (b->own || !b->rank.options.no_check)
            tsr_bench_outcome_add(&o, fill_tensors(b));
    }
    TSR_TRY(tsr_bench_agree(b->rank.comm, &o));
    return tsr_comm_all_reduce(b->rank.comm, &b->in_place, &b->in_place, 1, TSR_U8, TSR_MAX, tsr_device_host(), NULL);
}

tsr_status tsr_bench_plan(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                          const tsr_bench_options *options, tsr_bench_result *out)
{
    plan_bench b = {.rank = {.comm = comm}, .plan = plan, .own = !src && !dst};
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_bench_plan: comm is NULL");
    tsr_status status = make_ready("tsr_bench_plan", src, dst, options, &b);
    if (status == TSR_OK) {
        const tsr_bench_subject subject = {
            .call = execute, .check = count_wrong, .arg = &b, .bytes = b.payload, .result = copied_result(&b)};
        status = tsr_bench_call(comm, &subject, options, out);
    }
    tsr_bench_release(&b.rank, b.memory, b.memory_bytes);
    tsr_release(tsr_comm_context(comm), b.items);
    tsr_release(tsr_comm_context(comm), b.src);
    return status;
}
