/* tsr_sync_run() against tsr_redistribute_into() of each tensor and a cast of each element. */
#include "comm_suite.h"
#include "counted_memory.h"

#include <tessera/mesh_comm.h>
#include <tessera/sync.h>
#include <tessera/values.h>

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 6, TENSORS = 7, BYTES = 1 << 12, GAP = 3 };

/* A tensor of a case: placements for a source mesh of one and of two dims, and for destinations. */
typedef struct weight {
    const char *name, *wanted; /* on either side */
    int ndim;
    int64_t shape[2];
    const char *line, *grid, *to;
    tsr_dtype from_dtype, to_dtype;
    bool gaps; /* rows of local tensors lie apart */
} weight;

static const weight weights[TENSORS] = {
    {"m.embed", "embed", 2, {7, 4}, "S(0;balanced)", "S(0),S(1)", "S(1)", TSR_F32, TSR_BF16, false},
    {"m.a.0.w", "0.a", 2, {6, 5}, "S(1)", "R,S(0)", "S(0)", TSR_F32, TSR_BF16, true},
    {"m.a.1.w", "1.a", 2, {5, 6}, "S(0;sizes=1,0,4)", "S(1),S(0)", "R", TSR_BF16, TSR_F32, true},
    {"m.sum", "sum", 2, {4, 4}, "P", "P,S(0)", "S(0)", TSR_F32, TSR_BF16, false},
    {"m.steps", "steps", 1, {9}, "S(0)", "S(0),R", "S(0)", TSR_I32, TSR_I32, false},
    {"m.wide", "wide", 2, {3, 5}, "R", "R,R", "S(1)", TSR_F64, TSR_F32, false},
    {"m.scale", "scale", 1, {8}, "R", "P,R", "R", TSR_F32, TSR_F64, false},
};

static const tsr_sync_rule rules[] = {{"m.a.*.w", "*.a"}, {"m.*", "*"}};

typedef struct meshes {
    const char *from, *to;
} meshes;

static const meshes cases[] = {
    {"3@0", "2@3"},       {"3@[5,0,2]", "1@1"}, {"2x2", "2@4"}, {"2x2", "3@2"}, {"2x2@1", "6"},
    {"3@1", "3@[3,2,1]"}, {"6x1", "2x1@2"},     {"1@4", "4@0"}, {"1@0", "1@0"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* All tensors of a case on one rank. */
typedef struct stage {
    tsr_mesh *from, *to;
    tsr_layout *sources[TENSORS], *destinations[TENSORS];
    tsr_dtensor *x[TENSORS], *y[TENSORS];
    unsigned char x_memory[TENSORS][BYTES], y_memory[TENSORS][BYTES];
} stage;

static void put(tsr_dtype dtype, void *at, double value)
{
    const float narrow = (float)value;
    const int32_t whole = (int32_t)(value * 1024);
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    const uint16_t brief = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if (dtype == TSR_F64)
        memcpy(at, &value, sizeof value);
    else if (dtype == TSR_F32)
        memcpy(at, &narrow, sizeof narrow);
    else if (dtype == TSR_BF16)
        memcpy(at, &brief, sizeof brief);
    else
        memcpy(at, &whole, sizeof whole);
}

static double get(tsr_dtype dtype, const void *at)
{
    double value;
    float narrow;
    int32_t whole;
    uint16_t brief;
    uint32_t bits;
    if (dtype == TSR_F64) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (dtype == TSR_I32) {
        memcpy(&whole, at, sizeof whole);
        return (double)whole / 1024;
    }
    if (dtype == TSR_BF16) {
        memcpy(&brief, at, sizeof brief);
        bits = (uint32_t)brief << 16;
    } else {
        memcpy(&bits, at, sizeof bits);
    }
    memcpy(&narrow, &bits, sizeof narrow);
    return narrow;
}

/* The byte at which an element of a local tensor lies, by its row-major number. */
static char *element(const tsr_tensor *t, int64_t number)
{
    int64_t at = 0;
    for (int dim = t->ndim - 1; dim >= 0; dim--) {
        at += number % t->shape[dim] * t->strides[dim];
        number /= t->shape[dim];
    }
    return (char *)t->data + at * (int64_t)tsr_dtype_bytes(t->dtype);
}

/* Elements depend on the rank too where the tensor is a sum. */
static tsr_status fill(const tsr_dtensor *x, const weight *w, int round, int rank)
{
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count, offset[TSR_MAX_DIMS], shape[TSR_MAX_DIMS];
    const tsr_placement *const placements = tsr_layout_placements(layout);
    bool sums = false;
    for (int i = 0; i < tsr_mesh_ndim(tsr_layout_mesh(layout)); i++)
        sums = sums || placements[i].kind == TSR_PARTIAL;
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++) {
        int64_t global = w->ndim == 2 ? (i / local.shape[1] + offset[0]) * w->shape[1] + i % local.shape[1] + offset[1]
                                      : i + offset[0];
        global = global * 2654435761 % 100003 + 977 * (sums ? rank : 0) + 31 * round;
        put(local.dtype, element(&local, i), (double)(global % 2 ? -global : global) / 1024 + 1.0 / 3);
    }
    return TSR_OK;
}

static bool is_inside(const tsr_mesh *mesh)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside = 0;
    return tsr_mesh_coordinate(mesh, coordinate, &inside) == TSR_OK && inside;
}

/* A dtensor over `memory`, whose rows may lie apart. */
static tsr_status lay(const tsr_layout *layout, bool gaps, void *memory, tsr_dtensor **out)
{
    int64_t shape[TSR_MAX_DIMS];
    if (!gaps || !is_inside(tsr_layout_mesh(layout)))
        return tsr_dtensor_create(layout, tsr_device_host(), out);
    TSR_TRY(tsr_layout_local(layout, NULL, shape, NULL));
    tsr_tensor local = tsr_tensor_contiguous(memory, tsr_layout_dtype(layout), 2, shape);
    local.strides[0] += GAP;
    memset(memory, 0xa5, BYTES);
    return tsr_dtensor_from_local(&local, layout, NULL, out);
}

static tsr_status raise_stage(tsr_comm *comm, const meshes *m, stage *s)
{
    TSR_TRY(tsr_mesh_parse(comm, NULL, m->from, &s->from));
    TSR_TRY(tsr_mesh_parse(comm, NULL, m->to, &s->to));
    for (int i = 0; i < TENSORS; i++) {
        const weight *const w = &weights[i];
        const char *from = tsr_mesh_ndim(s->from) == 2 ? w->grid : w->line;
        char to[64];
        if (tsr_mesh_ndim(s->from) == 1 && tsr_mesh_size(s->from, 0) != 3 && strchr(from, '='))
            from = "S(0)";
        snprintf(to, sizeof to, "%s%s", w->to, tsr_mesh_ndim(s->to) == 2 ? ",R" : "");
        TSR_TRY(tsr_layout_parse(s->from, from, w->ndim, w->shape, w->from_dtype, &s->sources[i]));
        TSR_TRY(tsr_layout_parse(s->to, to, w->ndim, w->shape, w->to_dtype, &s->destinations[i]));
        TSR_TRY(lay(s->sources[i], w->gaps, s->x_memory[i], &s->x[i]));
        TSR_TRY(lay(s->destinations[i], w->gaps, s->y_memory[i], &s->y[i]));
    }
    return TSR_OK;
}

static void strike(stage *s)
{
    for (int i = 0; i < TENSORS; i++) {
        tsr_dtensor_destroy(s->y[i]);
        tsr_dtensor_destroy(s->x[i]);
        tsr_layout_destroy(s->destinations[i]);
        tsr_layout_destroy(s->sources[i]);
    }
    tsr_mesh_destroy(s->to);
    tsr_mesh_destroy(s->from);
}

/* Destinations are listed backwards, and there is a source that none of them wants. */
static tsr_status make_sync(tsr_comm *comm, const stage *s, tsr_mode mode, tsr_sync **out)
{
    tsr_sync_tensor sources[TENSORS + 1], destinations[TENSORS];
    tsr_sync_options options = TSR_SYNC_OPTIONS_INIT;
    size_t source;
    options.rule_count = sizeof rules / sizeof *rules;
    options.rules = rules;
    options.mode = mode;
    for (int i = 0; i < TENSORS; i++) {
        sources[i] = (tsr_sync_tensor){weights[i].name, s->sources[i]};
        destinations[TENSORS - 1 - i] = (tsr_sync_tensor){weights[i].wanted, s->destinations[i]};
    }
    sources[TENSORS] = (tsr_sync_tensor){"state", s->sources[0]};
    TSR_TRY(tsr_sync_create(comm, TENSORS + 1, sources, TENSORS, destinations, &options, out));
    for (size_t i = 0; i < TENSORS; i++) {
        TSR_TRY(tsr_sync_source_of(*out, i, &source));
        CHECK(source == TENSORS - 1 - i);
    }
    CHECK_ERROR(tsr_sync_source_of(*out, TENSORS, &source), TSR_ERROR_ARGUMENT, "there is no destination 7 among 7");
    return TSR_OK;
}

static tsr_status check(const stage *s, int i)
{
    tsr_layout *layout = NULL;
    tsr_dtensor *moved = NULL;
    const tsr_layout *const to = s->destinations[i];
    int64_t count;
    TSR_TRY(tsr_layout_create(s->to, tsr_layout_placements(to), weights[i].ndim, weights[i].shape,
                              weights[i].from_dtype, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &moved));
    TSR_TRY(tsr_redistribute_into(s->x[i], moved, NULL));
    const tsr_tensor want = tsr_dtensor_to_local(moved), have = tsr_dtensor_to_local(s->y[i]);
    TSR_TRY(tsr_tensor_count(&want, &count));
    for (int64_t k = 0; k < count; k++) {
        unsigned char wanted[8];
        put(have.dtype, wanted, get(want.dtype, element(&want, k)));
        CHECK(memcmp(element(&have, k), wanted, tsr_dtype_bytes(have.dtype)) == 0);
    }
    /* What lies between rows is as it was. */
    const size_t row = have.ndim == 2 ? (size_t)have.shape[1] * tsr_dtype_bytes(have.dtype) : 0;
    for (int64_t r = 0; have.data == s->y_memory[i] && r < have.shape[0]; r++)
        for (size_t k = row; k < row + GAP * tsr_dtype_bytes(have.dtype); k++)
            CHECK(((unsigned char *)element(&have, r * have.shape[1]))[k] == 0xa5);
    tsr_dtensor_destroy(moved);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

/* Ranks make the call whole or in halves, as they like. */
static tsr_status play(tsr_sync *sync, stage *s, int round, int rank)
{
    const tsr_dtensor *sources[TENSORS + 1] = {NULL};
    tsr_dtensor *destinations[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        TSR_TRY(fill(s->x[i], &weights[i], round, rank));
        sources[i] = is_inside(s->from) ? s->x[i] : NULL;
        destinations[TENSORS - 1 - i] = s->y[i];
    }
    if ((rank + round) % 2)
        return tsr_sync_run(sync, sources, destinations, NULL);
    TSR_TRY(tsr_sync_start(sync, sources, destinations, NULL));
    CHECK_ERROR(tsr_sync_start(sync, sources, destinations, NULL), TSR_ERROR_STATE, "call tsr_sync_finish() first");
    return tsr_sync_finish(sync);
}

static tsr_status play_case(tsr_comm *comm, const meshes *m, tsr_mode mode, stage *s)
{
    tsr_sync *sync = NULL;
    TSR_TRY(raise_stage(comm, m, s));
    TSR_TRY(make_sync(comm, s, mode, &sync));
    for (int round = 0; round < 3; round++) {
        TSR_TRY(play(sync, s, round, tsr_comm_rank(comm)));
        for (int i = 0; i < TENSORS; i++)
            TSR_TRY(check(s, i));
    }
    CHECK_ERROR(tsr_sync_finish(sync), TSR_ERROR_STATE, "tsr_sync_finish: the sync was not started");
    tsr_sync_destroy(sync);
    strike(s);
    return TSR_OK;
}

static tsr_status play_all(tsr_comm *comm, void *arg)
{
    stage *s = NULL;
    tsr_status status = TSR_OK;
    for (int i = 0; i < 2 * CASES && status == TSR_OK; i++) {
        s = calloc(1, sizeof *s);
        CHECK(s);
        status = play_case(comm, &cases[i / 2], i % 2 ? TSR_MODE_MESSAGE : *(const tsr_mode *)arg, s);
        free(s);
    }
    return status;
}

static void a_sync_is_a_redistribution_and_a_cast_of_each_tensor(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    tsr_mode mode = TSR_MODE_DIRECT;
    options.context = counted_context(&memory);
    suite_run_with(RANKS, play_all, &mode, &options);
    tsr_context_destroy(options.context);
    assert_int_equal(memory.live_blocks, 0);
}

/* Elements travel in the narrower dtype, each once. */
static tsr_status count_bytes(tsr_comm *comm, void *arg)
{
    static const tsr_dtype dtypes[][2] = {
        {TSR_F32, TSR_BF16}, {TSR_BF16, TSR_F32}, {TSR_F64, TSR_F16}, {TSR_F16, TSR_BF16}};
    const int64_t shape[] = {12, 10};
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *from = NULL, *to = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &from));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@3", &to));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        tsr_sync *sync = NULL;
        tsr_sync_tensor source = {"w", NULL}, destination = {"w", NULL};
        tsr_layout *x = NULL, *y = NULL;
        TSR_TRY(tsr_layout_parse(from, "S(0)", 2, shape, dtypes[i][0], &x));
        TSR_TRY(tsr_layout_parse(to, "S(1)", 2, shape, dtypes[i][1], &y));
        source.layout = x;
        destination.layout = y;
        TSR_TRY(tsr_sync_create(comm, 1, &source, 1, &destination, NULL, &sync));
        CHECK(tsr_plan_bytes_sent(tsr_sync_plan(sync)) == (rank < 3 ? 4 * 10 * 2 : 0));
        CHECK(tsr_plan_bytes_received(tsr_sync_plan(sync)) == (rank >= 3 && rank < 5 ? 12 * 5 * 2 : 0));
        CHECK(tsr_sync_memory(sync) >= (rank < 3 && i != 1 ? 80U : 0U) && tsr_sync_memory(NULL) == 0);
        tsr_sync_destroy(sync);
        tsr_layout_destroy(y);
        tsr_layout_destroy(x);
    }
    CHECK(!tsr_sync_plan(NULL));
    tsr_mesh_destroy(to);
    tsr_mesh_destroy(from);
    return TSR_OK;
}

static void elements_travel_in_the_narrower_dtype(void **state)
{
    (void)state;
    suite_run(RANKS, count_bytes, NULL);
}

/* Queries and keys of a trainer with a communicator of its own become rows of one weight of a
 * server with its own, which describes the trainer's mesh over all ranks. */
static tsr_status fuse(tsr_comm *comm, void *arg)
{
    const int64_t part[] = {4, 6}, whole[] = {8, 6};
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *all[2] = {NULL, NULL}, *own[2] = {NULL, NULL};
    tsr_layout *layouts[2] = {NULL, NULL};
    tsr_dtensor *x[2] = {NULL, NULL}, *y[2] = {NULL, NULL}, *fused = NULL;
    tsr_sync_tensor sources[2], destinations[2];
    tsr_sync *sync = NULL;
    int64_t count;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &all[0]));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@[4,3]", &all[1]));
    for (int i = 0; i < 2; i++)
        TSR_TRY(tsr_mesh_split(all[i], NULL, &own[i]));
    TSR_TRY(tsr_layout_parse(own[0] ? own[0] : all[0], "S(0)", 2, part, TSR_F32, &layouts[0]));
    TSR_TRY(tsr_layout_parse(own[1] ? own[1] : all[1], "S(1)", 2, whole, TSR_BF16, &layouts[1]));
    TSR_TRY(tsr_dtensor_create(layouts[1], tsr_device_host(), &fused));
    for (int i = 0; i < 2; i++) {
        TSR_TRY(tsr_dtensor_create(layouts[0], tsr_device_host(), &x[i]));
        TSR_TRY(tsr_dtensor_fill(x[i], 1 + i, NULL));
        TSR_TRY(tsr_dtensor_rows(fused, 4 * i, 4 * i + 4, &y[i]));
        sources[i] = (tsr_sync_tensor){i ? "k" : "q", layouts[0]};
        destinations[i] = (tsr_sync_tensor){i ? "k" : "q", tsr_dtensor_layout(y[i])};
    }
    TSR_TRY(tsr_sync_create(comm, 2, sources, 2, destinations, NULL, &sync));
    TSR_TRY(tsr_sync_run(sync, (const tsr_dtensor *const *)x, y, NULL));
    const tsr_tensor local = tsr_dtensor_to_local(fused);
    TSR_TRY(tsr_tensor_count(&local, &count));
    CHECK(count == (rank == 3 || rank == 4 ? 8 * 3 : 0));
    for (int64_t i = 0; i < count; i++)
        CHECK(get(TSR_BF16, element(&local, i)) == (i < 4 * 3 ? 1 : 2));
    tsr_sync_destroy(sync);
    for (int i = 0; i < 2; i++) {
        tsr_dtensor_destroy(y[i]);
        tsr_dtensor_destroy(x[i]);
        tsr_layout_destroy(layouts[i]);
        tsr_mesh_destroy(own[i]);
        tsr_mesh_destroy(all[i]);
    }
    tsr_dtensor_destroy(fused);
    return TSR_OK;
}

static void services_with_their_own_communicators_fuse_weights(void **state)
{
    (void)state;
    suite_run(RANKS, fuse, NULL);
}

/* Rank 3 fails its n-th allocation while the sync is made, for every n. */
static tsr_status run_short(tsr_comm *comm, void *arg)
{
    const bool odd = tsr_comm_rank(comm) == 3;
    stage *const s = calloc(1, sizeof *s);
    int32_t failed = 1, all = 1;
    tsr_sync *sync = NULL;
    (void)arg;
    CHECK(s);
    TSR_TRY(raise_stage(comm, &cases[3], s));
    for (size_t nth = 1; all != 0; nth++) {
        CHECK(nth < 3000);
        if (odd)
            counted_fail_here(nth, false);
        const tsr_status status = make_sync(comm, s, TSR_MODE_MESSAGE, &sync);
        failed = odd && counted_fail_here(0, false) == 0;
        TSR_TRY(tsr_comm_all_reduce(comm, &failed, &all, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        if (all == 0)
            TSR_TRY(status);
        else
            CHECK_ERROR(status, odd ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, "no memory");
    }
    /* Runs need no memory: what they need is made. */
    if (odd)
        counted_fail_here(1, false);
    const tsr_status status = play(sync, s, 0, tsr_comm_rank(comm));
    CHECK(!odd || counted_fail_here(0, false) == 1);
    TSR_TRY(status);
    tsr_sync_destroy(sync);
    strike(s);
    free(s);
    return TSR_OK;
}

static void a_rank_without_memory_tells_the_others(void **state)
{
    (void)state;
    NEEDS_ONE_PROCESS();
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    suite_run_with(RANKS, run_short, NULL, &options);
    tsr_context_destroy(options.context);
    assert_int_equal(memory.live_blocks, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sync_is_a_redistribution_and_a_cast_of_each_tensor),
        cmocka_unit_test(elements_travel_in_the_narrower_dtype),
        cmocka_unit_test(services_with_their_own_communicators_fuse_weights),
        cmocka_unit_test(a_rank_without_memory_tells_the_others),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
