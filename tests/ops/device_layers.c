/* Layers on devices: the same checks as on the host, on the device that this program was built
 * for. */
#include "device_layers.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const layer lists[][8] = {
    {
        {"1", 2, {5, 13}, 7, "R", "R", "R", TSR_F32},
        {"1", 3, {2, 3, 4}, 5, "R", "R", NULL, TSR_F64},
    },
    {
        {"2", 2, {5, 13}, 7, "R", "S(0)", "S(0)", TSR_F32},
        {"2", 2, {5, 13}, 7, "S(1)", "S(1)", "R", TSR_BF16},
        {"2", 3, {2, 3, 4}, 5, "S(2)", "S(1)", "R", TSR_F16},
        {"2", 2, {6, 4}, 5, "S(0)", "R", "R", TSR_F32},
        {"2", 2, {5, 13}, 7, "P", "R", "R", TSR_F64},
        {"2", 2, {5, 0}, 7, "S(1)", "S(1)", "R", TSR_F32},
        {"2", 3, {3, 4, 5}, 6, "R", "S(0)", "S(0)", TSR_F16, 2},
    },
    {
        {"3", 2, {5, 13}, 7, "R", "S(0)", "S(0)", TSR_BF16},
        {"3", 2, {5, 13}, 7, "S(1)", "S(1)", "R", TSR_F32},
        {"3", 1, {7}, 5, "S(0)", "S(1)", "R", TSR_F64},
        {"2@1", 2, {5, 6}, 7, "S(1)", "S(1)", "R", TSR_F32},
    },
    {
        {"2x2", 2, {5, 13}, 7, "S(0),R", "R,S(0)", "R,S(0)", TSR_F32},
        {"2x2", 2, {5, 13}, 7, "S(0),S(1)", "R,S(1)", "R,R", TSR_F16},
        {"4", 2, {3, 2}, 3, "S(1)", "S(1)", "R", TSR_F32},
    },
};

tsr_status device_layers_list(tsr_comm *comm, void *arg)
{
    const device_layers *d = arg;
    for (const layer *at = lists[tsr_comm_size(comm) - 1]; at->mesh; at++) {
        layer l = *at;
        l.dtype = d->only_f32 ? TSR_F32 : at->dtype;
        l.driver = d->driver;
        l.devices = d->devices;
        l.streams = d->streams;
        TSR_TRY(layer_check(comm, &l));
    }
    return TSR_OK;
}

void device_layers_check(device_layers *d)
{
    for (d->ranks = 1; d->ranks <= (int)(sizeof lists / sizeof lists[0]); d->ranks++)
        layers_run(d->ranks, device_layers_list, d);
}

/* A multi-layer perceptron of a column-parallel and a row-parallel layer, forward and backward, by
 * plans. Shapes: x (TOKENS, HIDDEN), w1 (INNER, HIDDEN), b1 (INNER), w2 (HIDDEN, INNER), b2
 * (HIDDEN), h (TOKENS, INNER), y and dy (TOKENS, HIDDEN). All values are integers from -2 to 2, so
 * that f32 results are exact. */
enum { TOKENS = 3, HIDDEN = 4, INNER = 6, ROUNDS = 3 };
enum { X, W1, B1, W2, B2, DY, H, Y, DH, DX, DW1, DB1, DW2, DB2, TENSORS };

typedef struct shape {
    const char *name, *placements;
    int ndim;
    int64_t sizes[2];
} shape;

static const shape shapes[TENSORS] = {
    [X] = {"x", "R", 2, {TOKENS, HIDDEN}},
    [W1] = {"w1", "S(0)", 2, {INNER, HIDDEN}},
    [B1] = {"b1", "S(0)", 1, {INNER}},
    [W2] = {"w2", "S(1)", 2, {HIDDEN, INNER}},
    [B2] = {"b2", "R", 1, {HIDDEN}},
    [DY] = {"dy", "R", 2, {TOKENS, HIDDEN}},
    [H] = {"h", "S(1)", 2, {TOKENS, INNER}},
    [Y] = {"y", "R", 2, {TOKENS, HIDDEN}},
    [DH] = {"dh", "S(1)", 2, {TOKENS, INNER}},
    [DX] = {"dx", "R", 2, {TOKENS, HIDDEN}},
    [DW1] = {"dw1", "S(0)", 2, {INNER, HIDDEN}},
    [DB1] = {"db1", "S(0)", 1, {INNER}},
    [DW2] = {"dw2", "S(1)", 2, {HIDDEN, INNER}},
    [DB2] = {"db2", "R", 1, {HIDDEN}},
};

static int64_t count_of(int k)
{
    return shapes[k].sizes[0] * (shapes[k].ndim > 1 ? shapes[k].sizes[1] : 1);
}

/* All tensors of one round, whole, computed on one rank. */
typedef struct whole {
    float at[TENSORS][INNER * HIDDEN];
} whole;

/* c (m, n) += op(a) op(b), where a is (m, k), or (k, m) if transposed, and b is (k, n) or (n,
 * k). */
static void add_product(float *c, const float *a, bool trans_a, const float *b, bool trans_b, int m, int n, int k)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < k; l++)
                c[i * n + j] += a[trans_a ? l * m + i : i * k + l] * b[trans_b ? j * k + l : l * n + j];
}

static void add_rows(float *sum, const float *rows, int m, int n)
{
    for (int i = 0; i < m * n; i++)
        sum[i % n] += rows[i];
}

static void compute_whole(whole *v, int round)
{
    memset(v, 0, sizeof *v);
    for (int k = X; k <= DY; k++)
        for (int64_t i = 0; i < count_of(k); i++)
            v->at[k][i] = (float)((i * 7 + k * 3 + round * 5) % 5 - 2);
    for (int i = 0; i < TOKENS * INNER; i++)
        v->at[H][i] = v->at[B1][i % INNER];
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        v->at[Y][i] = v->at[B2][i % HIDDEN];
    add_product(v->at[H], v->at[X], false, v->at[W1], true, TOKENS, INNER, HIDDEN);
    add_product(v->at[Y], v->at[H], false, v->at[W2], true, TOKENS, HIDDEN, INNER);
    add_product(v->at[DH], v->at[DY], false, v->at[W2], false, TOKENS, INNER, HIDDEN);
    add_product(v->at[DW2], v->at[DY], true, v->at[H], false, HIDDEN, INNER, TOKENS);
    add_rows(v->at[DB2], v->at[DY], TOKENS, HIDDEN);
    add_product(v->at[DX], v->at[DH], false, v->at[W1], false, TOKENS, HIDDEN, INNER);
    add_product(v->at[DW1], v->at[DH], true, v->at[X], false, INNER, HIDDEN, TOKENS);
    add_rows(v->at[DB1], v->at[DH], TOKENS, INNER);
}

/* One rank's objects. The inputs and results of all rounds are side by side on the host, so that
 * all rounds can be enqueued before any result is read. */
typedef struct side {
    device_layers *d;
    tsr_comm *comm;
    tsr_device device;
    tsr_stream stream;
    const tsr_device_table *table;
    void *self;
    tsr_mesh *mesh;
    tsr_layout *layouts[TENSORS];
    tsr_dtensor *tensors[TENSORS];
    tsr_tensor local[TENSORS];
    tsr_linear_plan *up, *down;
    tsr_linear_backward_plan *down_back, *up_back;
    layer_memory workspace;
    size_t workspace_bytes;
    float given[ROUNDS][TENSORS][INNER * HIDDEN], results[ROUNDS][TENSORS][INNER * HIDDEN];
} side;

/* Copies this rank's part of a whole tensor to `out`. */
static tsr_status cut(const side *s, int k, const float *values, float *out)
{
    tsr_dtensor *part;
    const tsr_tensor global = tsr_tensor_contiguous((void *)values, TSR_F32, shapes[k].ndim, shapes[k].sizes);
    TSR_TRY(tsr_distribute_tensor(&global, s->mesh, tsr_layout_placements(s->layouts[k]), NULL, &part));
    const tsr_tensor local = tsr_dtensor_to_local(part);
    int64_t count;
    const tsr_status status = tsr_tensor_count(&local, &count);
    if (status == TSR_OK && count > 0)
        memcpy(out, local.data, (size_t)count * sizeof(float));
    tsr_dtensor_destroy(part);
    return status;
}

static tsr_status make_plans(side *s)
{
    tsr_layout *const *l = s->layouts;
    TSR_TRY(tsr_linear_plan_create_on(l[X], l[W1], l[B1], l[H], s->device, &s->up));
    TSR_TRY(tsr_linear_plan_create_on(l[H], l[W2], l[B2], l[Y], s->device, &s->down));
    TSR_TRY(
        tsr_linear_backward_plan_create(l[H], l[W2], l[B2], l[DY], l[DH], l[DW2], l[DB2], s->device, &s->down_back));
    TSR_TRY(tsr_linear_backward_plan_create(l[X], l[W1], l[B1], l[DH], l[DX], l[DW1], l[DB1], s->device, &s->up_back));
    const size_t bytes[] = {tsr_linear_plan_workspace_bytes(s->up), tsr_linear_plan_workspace_bytes(s->down),
                            tsr_linear_backward_plan_workspace_bytes(s->down_back),
                            tsr_linear_backward_plan_workspace_bytes(s->up_back)};
    for (int i = 0; i < 4; i++)
        s->workspace_bytes = bytes[i] > s->workspace_bytes ? bytes[i] : s->workspace_bytes;
    return layer_memory_create(s->device, s->workspace_bytes, &s->workspace);
}

static tsr_status make_side(side *s)
{
    const int64_t ranks = tsr_comm_size(s->comm);
    TSR_TRY(tsr_mesh_create(s->comm, 1, &ranks, NULL, NULL, &s->mesh));
    for (int k = 0; k < TENSORS; k++) {
        TSR_TRY(
            tsr_layout_parse(s->mesh, shapes[k].placements, shapes[k].ndim, shapes[k].sizes, TSR_F32, &s->layouts[k]));
        TSR_TRY(tsr_dtensor_create(s->layouts[k], s->device, &s->tensors[k]));
        s->local[k] = tsr_dtensor_to_local(s->tensors[k]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        whole v;
        compute_whole(&v, round);
        for (int k = X; k <= DY; k++)
            TSR_TRY(cut(s, k, v.at[k], s->given[round][k]));
    }
    return make_plans(s);
}

static void destroy_side(side *s)
{
    layer_memory_destroy(&s->workspace);
    tsr_linear_backward_plan_destroy(s->up_back);
    tsr_linear_backward_plan_destroy(s->down_back);
    tsr_linear_plan_destroy(s->down);
    tsr_linear_plan_destroy(s->up);
    for (int k = 0; k < TENSORS; k++) {
        tsr_dtensor_destroy(s->tensors[k]);
        tsr_layout_destroy(s->layouts[k]);
    }
    tsr_mesh_destroy(s->mesh);
}

static size_t bytes_of(const side *s, int k)
{
    int64_t count;
    return tsr_tensor_count(&s->local[k], &count) == TSR_OK ? (size_t)count * sizeof(float) : 0;
}

static tsr_status transfer(const side *s, int k, float *host, tsr_copy_kind kind)
{
    const bool in = kind == TSR_COPY_FROM_HOST;
    void *const there = s->local[k].data;
    return s->table->copy(s->self, s->device.index, in ? there : host, in ? host : there, bytes_of(s, k), kind,
                          s->stream);
}

static tsr_status step(const side *s)
{
    const tsr_tensor *t = s->local;
    void *workspace = s->workspace.data;
    const size_t bytes = s->workspace_bytes;
    TSR_TRY(tsr_linear_plan_execute(s->up, &t[X], &t[W1], &t[B1], &t[H], workspace, bytes, s->stream));
    TSR_TRY(tsr_linear_plan_execute(s->down, &t[H], &t[W2], &t[B2], &t[Y], workspace, bytes, s->stream));
    TSR_TRY(tsr_linear_backward_plan_execute(s->down_back, &t[H], &t[W2], &t[DY], &t[DH], &t[DW2], &t[DB2], workspace,
                                             bytes, s->stream));
    return tsr_linear_backward_plan_execute(s->up_back, &t[X], &t[W1], &t[DH], &t[DX], &t[DW1], &t[DB1], workspace,
                                            bytes, s->stream);
}

static tsr_status settle(const side *s)
{
    return s->table->stream_synchronize ? s->table->stream_synchronize(s->self, s->device.index, s->stream) : TSR_OK;
}

static tsr_status record(const side *s, void *event)
{
    return s->table->event_record(s->self, s->device.index, event, s->stream);
}

static tsr_status wait_for(const side *s, void *event)
{
    return s->table->event_wait(s->self, s->device.index, event, s->stream);
}

/* Begins a capture of rank 0's stream; the other ranks' streams join it by waiting for rank 0's
 * event. */
static tsr_status fork_streams(const side *s)
{
    const bool first = tsr_comm_rank(s->comm) == 0;
    if (first) {
        TSR_TRY(s->d->graphs->begin(s->stream));
        TSR_TRY(record(s, s->d->fork));
    }
    TSR_TRY(tsr_comm_barrier(s->comm));
    return first ? TSR_OK : wait_for(s, s->d->fork);
}

static tsr_status join_streams(const side *s)
{
    const int rank = tsr_comm_rank(s->comm);
    if (rank > 0)
        TSR_TRY(record(s, s->d->join[rank]));
    TSR_TRY(tsr_comm_barrier(s->comm));
    for (int r = 1; rank == 0 && r < tsr_comm_size(s->comm); r++)
        TSR_TRY(wait_for(s, s->d->join[r]));
    if (rank == 0)
        TSR_TRY(s->d->graphs->end(s->stream, &s->d->graph));
    return tsr_comm_barrier(s->comm);
}

/* Runs a step, and checks that it neither allocates nor waits. */
static tsr_status step_freely(const side *s, int round)
{
    int64_t (*const held_up)(void) = s->d->held_up;
    TSR_TRY(tsr_comm_barrier(s->comm));
    const int64_t before = held_up ? held_up() : 0;
    TSR_TRY(tsr_comm_barrier(s->comm));
    TSR_TRY(step(s));
    TSR_TRY(tsr_comm_barrier(s->comm));
    const int64_t after = held_up ? held_up() : 0;
    TSR_TRY(tsr_comm_barrier(s->comm));
    /* The first round may allocate what communicators keep for a device. */
    if (round > 0 && after != before)
        return tsr_status_set(TSR_ERROR_INTERNAL, "round %d allocated or waited %lld times", round,
                              (long long)(after - before));
    return TSR_OK;
}

static tsr_status capture_step(const side *s, int round)
{
    TSR_TRY(settle(s));
    TSR_TRY(tsr_comm_barrier(s->comm));
    TSR_TRY(fork_streams(s));
    TSR_TRY(step_freely(s, round));
    return join_streams(s);
}

/* Launches the graph on rank 0: one launch runs the step of all ranks, whose inputs have to be
 * complete. */
static tsr_status replay_step(const side *s)
{
    TSR_TRY(settle(s));
    TSR_TRY(tsr_comm_barrier(s->comm));
    if (tsr_comm_rank(s->comm) == 0) {
        TSR_TRY(s->d->graphs->launch(s->d->graph, s->stream));
        TSR_TRY(settle(s));
    }
    return tsr_comm_barrier(s->comm);
}

static tsr_status run_round(side *s, int round)
{
    for (int k = X; k <= DY; k++)
        TSR_TRY(transfer(s, k, s->given[round][k], TSR_COPY_FROM_HOST));
    const bool replayed = s->d->graphs && round > 0;
    if (replayed && round == 1)
        TSR_TRY(capture_step(s, round));
    TSR_TRY(replayed ? replay_step(s) : step_freely(s, round));
    for (int k = H; k < TENSORS; k++)
        TSR_TRY(transfer(s, k, s->results[round][k], TSR_COPY_TO_HOST));
    return TSR_OK;
}

/* Enqueues all rounds, then waits once. */
static tsr_status run_rounds(side *s)
{
    void **event = tsr_comm_rank(s->comm) == 0 ? &s->d->fork : &s->d->join[tsr_comm_rank(s->comm)];
    tsr_status status = s->table->event_create(s->self, s->device.index, event);
    if (status != TSR_OK)
        return status;
    for (int round = 0; round < ROUNDS && status == TSR_OK; round++)
        status = run_round(s, round);
    if (status == TSR_OK)
        status = settle(s);
    s->table->event_destroy(s->self, s->device.index, *event);
    if (tsr_comm_rank(s->comm) == 0 && s->d->graph)
        s->d->graphs->destroy(s->d->graph);
    return status;
}

static tsr_status compare(const side *s)
{
    for (int round = 0; round < ROUNDS; round++) {
        whole v;
        compute_whole(&v, round);
        for (int k = H; k < TENSORS; k++) {
            float expected[INNER * HIDDEN];
            TSR_TRY(cut(s, k, v.at[k], expected));
            if (memcmp(expected, s->results[round][k], bytes_of(s, k)) != 0)
                return tsr_status_set(TSR_ERROR_INTERNAL, "round %d: %s of rank %d of %d is not that of one rank alone",
                                      round, shapes[k].name, tsr_comm_rank(s->comm), tsr_comm_size(s->comm));
        }
    }
    return TSR_OK;
}

tsr_status device_layers_perceptron(tsr_comm *comm, void *arg)
{
    device_layers *d = arg;
    const int rank = tsr_comm_rank(comm);
    side s = {.d = d, .comm = comm, .device = {d->driver, rank % d->devices}, .stream = d->streams[rank]};
    s.table = tsr_device_driver_table(d->driver, &s.self);
    tsr_status status = make_side(&s);
    if (status == TSR_OK)
        status = run_rounds(&s);
    if (status == TSR_OK)
        status = compare(&s);
    destroy_side(&s);
    return status;
}

void device_layers_check_perceptron(device_layers *d)
{
    for (d->ranks = 1; d->ranks <= DEVICE_LAYERS_RANKS; d->ranks++) {
        d->graph = NULL;
        layers_run(d->ranks, device_layers_perceptron, d);
    }
}

void device_layers_create(const tsr_device_driver *driver, int devices, int64_t (*held_up)(void), device_layers *out)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(driver, &self);
    *out = (device_layers){.driver = driver, .devices = devices, .held_up = held_up};
    for (int rank = 0; rank < DEVICE_LAYERS_RANKS; rank++)
        assert_int_equal(table->stream_create(self, rank % devices, &out->streams[rank]), TSR_OK);
}

void device_layers_destroy(device_layers *d)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(d->driver, &self);
    for (int rank = 0; rank < DEVICE_LAYERS_RANKS; rank++)
        table->stream_destroy(self, rank % d->devices, d->streams[rank]);
}
