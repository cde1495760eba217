#include "workload.h"

#include <tessera/tessera.h>

#include <stdlib.h>
#include <string.h>

enum { MANY = 24, ROWS = 20, COLUMNS = 30, VALUES = ROWS * COLUMNS, OUT = 9 };

/* The objects of one thread, and its first failure. */
typedef struct bag {
    drill *d;
    tsr_status status;
    tsr_mesh *meshes[MANY];
    tsr_layout *layouts[MANY];
    tsr_plan *plans[MANY];
    tsr_dtensor *dtensors[MANY];
} bag;

static void empty(bag *b)
{
    for (int i = 0; i < MANY; i++) {
        tsr_dtensor_destroy(b->dtensors[i]);
        tsr_plan_destroy(b->plans[i]);
        tsr_layout_destroy(b->layouts[i]);
        tsr_mesh_destroy(b->meshes[i]);
    }
}

static tsr_status expected(drill *d, const char *call, tsr_status status)
{
    if (status != TSR_OK && !*tsr_status_message())
        drill_fail(d, "%s: %s without a sentence", call, tsr_status_name(status));
    if (status != TSR_OK && status != TSR_ERROR_MEMORY && status != TSR_ERROR_PEER && status != TSR_ERROR_UNAVAILABLE)
        drill_fail(d, "%s: %s: %s", call, tsr_status_name(status), tsr_status_message());
    return status;
}

/* Makes the call unless an earlier one failed. */
#define DO(call)                                                                                                       \
    do {                                                                                                               \
        if (b->status == TSR_OK)                                                                                       \
            b->status = expected(b->d, #call, call);                                                                   \
    } while (0)

/* Planning. */

static void make_meshes(bag *b, tsr_context *context)
{
    const int64_t shape[] = {2, 3}, ranks[] = {5, 4, 3, 2, 1, 0}, node[] = {0, 1, 0, 1, 2, 2};
    const char *const names[] = {"dp", "tp"}, *const others[] = {"a", "b"};
    const tsr_nodes nodes = {0, 6, node};
    tsr_mesh **m = b->meshes;
    DO(tsr_mesh_create_abstract(context, 2, shape, names, ranks, &m[0]));
    DO(tsr_mesh_parse(NULL, context, "dp=2,tp=3", &m[1]));
    DO(tsr_mesh_slice(m[1], "tp", &m[2]));
    DO(tsr_mesh_flatten(m[1], "", &m[3]));
    DO(tsr_mesh_unflatten(m[3], "dp_tp", 2, shape, others, &m[4]));
    DO(tsr_mesh_with_nodes(m[1], &nodes, &m[5]));
}

static void make_layouts(bag *b)
{
    const int64_t shape[] = {12, 10}, x[] = {6, 8}, w[] = {10, 8};
    const tsr_placement rows[] = {tsr_shard(0), tsr_replicate()};
    tsr_layout **l = b->layouts;
    DO(tsr_layout_parse(b->meshes[5], "S(0;interleave=2),S(1;sizes=4,0,6)", 2, shape, TSR_F32, &l[0]));
    DO(tsr_layout_parse(b->meshes[5], "P,S(0;blocks=5,7;unit=2)", 2, shape, TSR_F32, &l[1]));
    DO(tsr_layout_parse(b->meshes[0], "S(1)[1],S(1)[0]", 2, shape, TSR_F32, &l[2]));
    DO(tsr_layout_create(b->meshes[4], rows, 2, shape, TSR_F32, &l[3]));
    DO(tsr_layout_with(l[0], tsr_layout_placements(l[1]), &l[4]));
    DO(tsr_layout_gradient(l[1], &l[5]));
    DO(tsr_layout_parse(b->meshes[1], "S(0),R", 2, x, TSR_F32, &l[6]));
    DO(tsr_layout_parse(b->meshes[1], "R,S(0)", 2, w, TSR_F32, &l[7]));
    DO(tsr_linear_propagate(l[6], l[7], NULL, &l[8]));
    DO(tsr_layout_relabel(l[0], l[2], &l[9], NULL));
}

static tsr_status count_transfer(const tsr_plan_transfer *transfer, void *user)
{
    *(int64_t *)user += transfer->bytes;
    return TSR_OK;
}

static void make_plans(bag *b, tsr_context *context)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = 1;
    options.mode = TSR_MODE_MESSAGE;
    options.max_workspace = 8192;
    options.objective = TSR_OBJECTIVE_TIME;
    const tsr_layout *const src[] = {b->layouts[0], b->layouts[1]}, *const dst[] = {b->layouts[2], b->layouts[0]};
    const int64_t some[] = {0, 3};
    int64_t bytes = 0;
    size_t length = 0, size = 0;
    char text[2048];
    unsigned char saved[4096];
    tsr_plan_figures figures;
    tsr_plan_survey survey;
    tsr_plan **p = b->plans;
    DO(tsr_plan_create(b->layouts[1], b->layouts[0], &options, &p[0]));
    DO(tsr_plan_create(b->layouts[0], b->layouts[2], &options, &p[1]));
    DO(tsr_plan_create_batch(2, src, dst, &options, &p[2]));
    DO(tsr_plan_visit_receives(p[2], count_transfer, &bytes));
    DO(tsr_plan_visit_sends(p[2], count_transfer, &bytes));
    DO(tsr_plan_figures_of(p[2], &figures));
    DO(tsr_plan_survey_of(p[2], &survey));
    DO(tsr_plan_survey_some(p[1], some, 2, &survey));
    DO(tsr_plan_describe(p[2], text, sizeof text, &length));
    DO(tsr_plan_save(p[2], saved, sizeof saved, &size));
    DO(tsr_plan_load(context, saved, size, 2, &p[3]));
}

static tsr_status run_planning(drill *d, tsr_context *context)
{
    bag own = {.d = d}, *b = &own;
    make_meshes(b, context);
    make_layouts(b);
    make_plans(b, context);
    empty(b);
    return b->status;
}

/* Ranks. */

typedef struct shared {
    drill *d;
    const char *file;
} shared;

static float zeros[VALUES];
static float sources[WORKLOAD_RANKS][VALUES], results[WORKLOAD_RANKS][VALUES];

static void move_dtensors(bag *b, const char *file)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    const tsr_tensor global = tsr_tensor_contiguous(zeros, TSR_F32, 2, shape);
    const tsr_placement copy = tsr_replicate(), rows = tsr_shard(0), columns = tsr_shard(1),
                        terms = tsr_partial(TSR_SUM);
    tsr_distribute_options from_one = TSR_DISTRIBUTE_OPTIONS_INIT;
    from_one.source_rank = 1;
    tsr_dtensor **t = b->dtensors;
    DO(tsr_distribute_tensor(&global, b->meshes[0], &rows, NULL, &t[0]));
    DO(tsr_redistribute(t[0], &columns, &t[1]));
    DO(tsr_redistribute_into(t[0], t[1], NULL));
    DO(tsr_redistribute_into(t[0], t[1], NULL));
    DO(tsr_full_tensor(t[1], &t[2]));
    DO(tsr_distribute_tensor(&global, b->meshes[0], &terms, &from_one, &t[3]));
    DO(tsr_redistribute_in_place(t[3], &copy, NULL));
    DO(tsr_redistribute(t[0], &copy, &t[4]));
    const tsr_dtensor *const x[] = {t[0], t[0]};
    tsr_dtensor *const y[] = {t[1], t[4]};
    DO(tsr_redistribute_batch(2, x, y, NULL));
    DO(tsr_redistribute_backward(t[1], tsr_dtensor_layout(t[0]), &t[5]));
    DO(tsr_distribute_file(file, 0, TSR_BF16, tsr_dtensor_layout(t[0]), NULL, &t[6]));
    DO(tsr_dtensor_create(tsr_dtensor_layout(t[0]), tsr_device_host(), &t[7]));
    const tsr_from_local_options checked = {sizeof checked, 1};
    const tsr_tensor local = b->status == TSR_OK ? tsr_dtensor_to_local(t[7]) : global;
    DO(tsr_dtensor_from_local(&local, tsr_dtensor_layout(t[0]), &checked, &t[8]));
}

static void multiply(bag *b)
{
    const int64_t weight_shape[] = {OUT, COLUMNS}, bias_shape[] = {OUT};
    const tsr_tensor weight = tsr_tensor_contiguous(zeros, TSR_F32, 2, weight_shape);
    const tsr_tensor bias = tsr_tensor_contiguous(zeros, TSR_F32, 1, bias_shape);
    const tsr_placement copy = tsr_replicate(), columns = tsr_shard(1);
    tsr_dtensor **t = b->dtensors + 9;
    DO(tsr_distribute_tensor(&weight, b->meshes[0], &columns, NULL, &t[0]));
    DO(tsr_distribute_tensor(&bias, b->meshes[0], &copy, NULL, &t[1]));
    DO(tsr_linear(b->dtensors[1], t[0], t[1], &copy, &t[2]));
    DO(tsr_linear_backward(b->dtensors[1], t[0], t[1], t[2], NULL, NULL, NULL, &t[3], &t[4], &t[5]));
}

static void plan_layers(bag *b)
{
    tsr_linear_plan *forward = NULL;
    tsr_linear_backward_plan *backward = NULL;
    const tsr_layout *l[5] = {NULL};
    for (int i = 0; b->status == TSR_OK && i < 5; i++)
        l[i] = tsr_dtensor_layout(b->dtensors[(const int[]){1, 9, 11, 12, 13}[i]]);
    DO(tsr_linear_plan_create(l[0], l[1], NULL, l[2], &forward));
    DO(tsr_linear_backward_plan_create(l[0], l[1], NULL, l[2], l[3], l[4], NULL, tsr_device_host(), &backward));
    tsr_linear_plan_destroy(forward);
    tsr_linear_backward_plan_destroy(backward);
}

static void communicate(bag *b, tsr_comm *comm)
{
    const int rank = tsr_comm_rank(comm);
    const tsr_device host = tsr_device_host();
    float send[30] = {0}, receive[30] = {0};
    const tsr_message out = {(rank + 1) % WORKLOAD_RANKS, send, 16}, in = {(rank + 2) % WORKLOAD_RANKS, receive, 16};
    DO(tsr_comm_all_reduce(comm, send, receive, 10, TSR_F32, TSR_SUM, host, NULL));
    DO(tsr_comm_all_gather(comm, send, receive, 5, NULL, TSR_F32, host, NULL));
    DO(tsr_comm_reduce_scatter(comm, send, receive, 3, NULL, TSR_F32, TSR_MAX, host, NULL));
    DO(tsr_comm_all_to_all(comm, send, receive, 3, NULL, NULL, TSR_F32, host, NULL));
    DO(tsr_comm_broadcast(comm, send, 8, TSR_F32, 2, host, NULL));
    DO(tsr_comm_scatter(comm, send, receive, 4, NULL, TSR_F32, 0, host, NULL));
    DO(tsr_comm_gather(comm, send, receive, 4, NULL, TSR_F32, 1, host, NULL));
    DO(tsr_comm_exchange(comm, &out, 1, &in, 1, host, NULL));
    DO(tsr_comm_exchange_start(comm, &out, 1, &in, 1, host, NULL));
    DO(tsr_comm_exchange_finish(comm));
    DO(tsr_comm_wait(comm, NULL, 0));
}

static void split(bag *b, tsr_comm *comm)
{
    tsr_comm *group = NULL;
    void *memory = NULL;
    DO(tsr_comm_split(comm, tsr_comm_rank(comm) % 2, 0, &group));
    DO(tsr_comm_barrier(group));
    tsr_comm_destroy(group);
    DO(tsr_comm_alloc(comm, 100, &memory));
    tsr_comm_free(comm, memory, 100);
}

static void execute(bag *b, tsr_comm *comm)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    const int rank = tsr_comm_rank(comm);
    const tsr_tensor from = tsr_tensor_contiguous(sources[rank], TSR_F32, 2, shape);
    const tsr_tensor to = tsr_tensor_contiguous(results[rank], TSR_F32, 2, shape);
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    void *workspace = NULL;
    DO(tsr_layout_parse(b->meshes[0], "P", 2, shape, TSR_F32, &b->layouts[0]));
    DO(tsr_layout_parse(b->meshes[0], "R", 2, shape, TSR_F32, &b->layouts[1]));
    DO(tsr_plan_create(b->layouts[0], b->layouts[1], &options, &b->plans[0]));
    DO(tsr_plan_prepare(b->plans[0], comm));
    const size_t bytes = b->status == TSR_OK ? tsr_plan_workspace_bytes(b->plans[0]) : 0;
    DO(tsr_comm_alloc(comm, bytes, &workspace));
    DO(tsr_plan_start(b->plans[0], comm, &from, &to, workspace, bytes, NULL));
    DO(tsr_plan_finish(b->plans[0], comm));
    DO(tsr_plan_execute(b->plans[0], comm, &from, &to, workspace, bytes, NULL));
    tsr_comm_free(comm, workspace, bytes);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const shared *s = arg;
    const int64_t ranks = WORKLOAD_RANKS;
    bag own = {.d = s->d}, *b = &own;
    DO(tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &b->meshes[0]));
    move_dtensors(b, s->file);
    multiply(b);
    plan_layers(b);
    communicate(b, comm);
    split(b, comm);
    execute(b, comm);
    empty(b);
    return b->status;
}

static tsr_status run_ranks(drill *d, tsr_context *context, const char *file)
{
    shared s = {d, file};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    tsr_comm *handles[2] = {NULL, NULL};
    options.context = context;
    tsr_status status = expected(d, "tsr_threads_run", tsr_threads_run(WORKLOAD_RANKS, run_rank, &s, &options));
    if (status == TSR_ERROR_PEER)
        drill_fail(d, "tsr_threads_run tells of a peer, not of what failed: %s", tsr_status_message());
    const tsr_status made = expected(d, "tsr_comm_create_threads", tsr_comm_create_threads(2, &options, handles));
    tsr_comm_destroy(handles[0]);
    tsr_comm_destroy(handles[1]);
    return status != TSR_OK ? status : made;
}

tsr_status workload_run(drill *d, tsr_context *context, const char *file)
{
    tsr_context *own = NULL;
    tsr_status status = TSR_OK;
    if (context)
        own = tsr_context_retain(context);
    else
        status = expected(d, "tsr_context_create", tsr_context_create(NULL, &own));
    if (status != TSR_OK)
        return status;
    status = run_planning(d, own);
    const tsr_status ranks = run_ranks(d, own, file);
    tsr_context_destroy(own);
    return status != TSR_OK ? status : ranks;
}
