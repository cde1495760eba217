/* Calls of ops in which one rank runs out of memory at every place in turn, or its kernel fails: no
 * rank is left in a meeting, peers hear the sentence of the rank that failed, and the next call
 * works. */
#include "counted_memory.h"
#include "layers.h"
#include "ranks.h"

#include <tessera/sys/ops.h>
#include <tessera/sys/status.h>
#include <tessera/views.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FAILING = 1, MOST = 6000, OPERANDS = 3 };

/* An operand: i32 ids below the last dim of operand 0, or small f32. */
typedef struct operand {
    int ndim;
    int64_t shape[2];
    const char *placements; /* NULL: none */
    bool ids;
} operand;

typedef struct scene scene;

typedef struct drill drill;

struct drill {
    const char *mesh, *op;
    tsr_attribute attribute;                                                   /* without a name: none */
    tsr_status (*call)(const drill *d, const scene *s, tsr_dtensor **results); /* NULL: of the op `op` */
    operand operands[OPERANDS];
    bool into, backward;
    bool alone; /* no rank meets another one in the call */
};

static tsr_status make(const tsr_mesh *mesh, const operand *o, tsr_dtensor **out)
{
    float values[64];
    int32_t ids[64];
    for (int i = 0; i < 64; i++) {
        values[i] = (float)(i % 7 - 3);
        ids[i] = i % 5;
    }
    const tsr_tensor global = o->ids ? tsr_tensor_contiguous(ids, TSR_I32, o->ndim, o->shape)
                                     : tsr_tensor_contiguous(values, TSR_F32, o->ndim, o->shape);
    return tsr_distribute(&global, mesh, o->placements, out);
}

/* A mesh, whose first call it is, and the tensors of the call. */
struct scene {
    tsr_mesh *mesh;
    const tsr_op *op;
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS], *out, *dout;
};

static tsr_status run_op(const drill *d, const scene *s, tsr_dtensor **results)
{
    const size_t count = d->attribute.name != NULL;
    const tsr_dtensor *const *const operands = (const tsr_dtensor *const *)s->operands;
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL};
    if (d->call)
        return d->call(d, s, results);
    if (d->into)
        return tsr_op_call_into(s->op, count, &d->attribute, operands, &s->out);
    if (!d->backward)
        return tsr_op_call(s->op, count, &d->attribute, operands, results);
    for (int i = 0; i < OPERANDS; i++)
        wanted[i] = s->operands[i] && !d->operands[i].ids ? &results[i] : NULL;
    return tsr_op_backward(s->op, count, &d->attribute, operands, s->dout, wanted);
}

/* The layout of the gradient: that of the result. */
static tsr_status make_gradient(const drill *d, scene *s)
{
    tsr_layout *layout;
    tsr_dtensor *made[TSR_OP_MOST_OPERANDS] = {NULL};
    const drill forward = {.attribute = d->attribute, .call = d->call};
    TSR_TRY(run_op(&forward, s, made));
    tsr_status status = tsr_layout_gradient(tsr_dtensor_layout(made[0]), &layout);
    if (status == TSR_OK && d->backward)
        status = tsr_dtensor_create(layout, tsr_device_host(), &s->dout);
    if (status == TSR_OK && d->backward)
        status = tsr_dtensor_fill(s->dout, 1, NULL);
    if (d->into)
        s->out = made[0];
    for (int i = d->into; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_dtensor_destroy(made[i]);
    tsr_layout_destroy(layout);
    return status;
}

static void clear(scene *s)
{
    for (int i = 0; i < OPERANDS; i++)
        tsr_dtensor_destroy(s->operands[i]);
    tsr_dtensor_destroy(s->out);
    tsr_dtensor_destroy(s->dout);
    tsr_mesh_destroy(s->mesh);
}

static tsr_status fill_scene(const drill *d, scene *s)
{
    if (!d->call)
        TSR_TRY(tsr_op_find(tsr_mesh_context(s->mesh), d->op, &s->op));
    for (int i = 0; i < OPERANDS; i++) {
        if (d->operands[i].placements)
            TSR_TRY(make(s->mesh, &d->operands[i], &s->operands[i]));
    }
    return d->into || d->backward ? make_gradient(d, s) : TSR_OK;
}

/* Tensors on a mesh of their own: the mesh of the call keeps nothing yet. With `dup` they are views
 * of the local tensors on another mesh object. */
static tsr_status renew(const drill *d, tsr_comm *comm, const scene *old, scene *s)
{
    *s = (scene){.op = old->op};
    TSR_TRY(tsr_mesh_parse(comm, NULL, d->mesh, &s->mesh));
    tsr_dtensor *const *const from[] = {old->operands, &old->out, &old->dout};
    tsr_dtensor **const to[] = {s->operands, &s->out, &s->dout};
    for (int list = 0; list < 3; list++) {
        for (int i = 0; i < (list ? 1 : OPERANDS); i++) {
            tsr_layout *layout;
            if (!from[list][i])
                continue;
            const tsr_layout *const own = tsr_dtensor_layout(from[list][i]);
            const tsr_tensor local = tsr_dtensor_to_local(from[list][i]);
            TSR_TRY(tsr_layout_create(s->mesh, tsr_layout_placements(own), tsr_layout_ndim(own), tsr_layout_shape(own),
                                      tsr_layout_dtype(own), &layout));
            const tsr_status status = tsr_dtensor_from_local(&local, layout, NULL, &to[list][i]);
            tsr_layout_destroy(layout);
            TSR_TRY(status);
        }
    }
    return TSR_OK;
}

/* The call's status; its sentence stays the thread's. */
static tsr_status call(const drill *d, const scene *s)
{
    tsr_dtensor *results[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_status status = run_op(d, s, results);
    bool written = false;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        written = written || results[i];
        tsr_dtensor_destroy(results[i]);
    }
    if (status != TSR_OK && written)
        return tsr_status_set(TSR_ERROR_INTERNAL, "results were written by a call that failed");
    return status;
}

/* True if all allocations from the n-th on fail. Then the meeting may have another sentence. */
static bool is_dry(int n)
{
    return n % 2 == 0;
}

/* Compares what ranks say with what rank FAILING says. `*noticed`: the number of other ranks that
 * failed. */
static tsr_status judge(const drill *d, tsr_comm *comm, tsr_status status, tsr_status expected, int n, int *noticed)
{
    tsr_kept_sentence own = {.text = ""}, cause;
    char wanted[160];
    if (status != TSR_OK)
        tsr_status_keep(&own);
    cause = own;
    TSR_TRY(tsr_comm_broadcast(comm, cause.text, sizeof cause.text, TSR_U8, FAILING, tsr_device_host(), NULL));
    int32_t mine = status != TSR_OK, all;
    TSR_TRY(tsr_comm_all_reduce(comm, &mine, &all, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    const bool failing = tsr_comm_rank(comm) == FAILING;
    /* Where a meeting itself has no memory, peers hear of that without the name of the op. */
    const size_t name = strlen(d->op);
    const bool named = strncmp(cause.text, d->op, name) == 0 && cause.text[name] == ':';
    snprintf(wanted, sizeof wanted, "%.100s", cause.text + (named ? name + 2 : 0));
    if (strstr(cause.text, "there is no memory") && is_dry(n))
        snprintf(wanted, sizeof wanted, "there is no memory for ");
    *noticed = all;
    /* Rank FAILING may do without what it asked for: a proposal in a sentence that is not told. */
    if (failing ? status == expected || status == TSR_OK
                : status == TSR_OK ||
                      (status == TSR_ERROR_PEER && strstr(own.text, "rank 1 failed: ") && strstr(own.text, wanted)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s%s on %s, failure %d: %s: %.300s; not \"%s\"", d->op,
                          d->backward ? " backward" : "", d->mesh, n, tsr_status_name(status), own.text,
                          failing ? tsr_status_name(expected) : wanted);
}

/* Rank FAILING's n-th allocation fails in the first call of a mesh, or all from then on; the second
 * call works. */
static tsr_status fail_nth(const drill *d, tsr_comm *comm, const scene *old, int n, bool *through, int *noticed)
{
    scene s;
    const bool failing = tsr_comm_rank(comm) == FAILING;
    TSR_TRY(renew(d, comm, old, &s));
    counted_fail_here(failing ? (size_t)n : 0, is_dry(n));
    const tsr_status status = call(d, &s);
    int32_t hit = counted_fail_here(0, false) == 0 && failing, any;
    const tsr_status judged = judge(d, comm, status, hit ? TSR_ERROR_MEMORY : TSR_OK, n, noticed);
    tsr_status again = judged == TSR_OK ? call(d, &s) : judged;
    if (again == TSR_OK)
        again = tsr_comm_all_reduce(comm, &hit, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL);
    *through = again == TSR_OK && !any;
    clear(&s);
    return again;
}

/* The first allocations fail each in turn, then one in 1 + n / 8, or in 1 + n / 2 if TSR_TEST_THIN
 * is set. */
static int next(int n)
{
    return n + 1 + n / (getenv("TSR_TEST_THIN") ? 2 : 8);
}

static tsr_status drill_over(tsr_comm *comm, void *arg)
{
    const drill *const d = arg;
    scene old = {NULL};
    int most = 0, n = 1;
    bool through = false;
    TSR_TRY(tsr_mesh_parse(comm, NULL, d->mesh, &old.mesh));
    tsr_status status = fill_scene(d, &old);
    for (; n < MOST && status == TSR_OK && !through; n = next(n)) {
        int noticed = 0;
        status = fail_nth(d, comm, &old, n, &through, &noticed);
        most = noticed > most ? noticed : most;
    }
    clear(&old);
    TSR_TRY(status);
    if (!through)
        return tsr_status_set(TSR_ERROR_INTERNAL, "after %d failures the call does not get through", MOST);
    const bool met = most == tsr_comm_size(comm);
    return n > 4 && met == !d->alone
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_INTERNAL, "%s: %d failures, of which at most %d ranks heard", d->op, n, most);
}

/* The drill over slots, and over an engine that has messages alone. */
static tsr_status run_drill(tsr_comm *comm, void *arg)
{
    tsr_comm *lent = NULL;
    const drill *const d = arg;
    TSR_TRY(drill_over(comm, arg));
    if (strchr(d->mesh, 'x')) /* groups, into which no lent communicator is split */
        return TSR_OK;
    TSR_TRY(lend(comm, &lent));
    const tsr_status status = drill_over(lent, arg);
    tsr_comm_destroy(lent);
    return status;
}

static void run_with(tsr_rank_main *main, void *arg, int ranks, tsr_policy policy, const struct tsr_op *const *rows)
{
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    tsr_context_options options = counted_options(&memory);
    options.policy = policy;
    options.ops = rows;
    options.op_count = rows ? 1 : 0;
    threads.timeout_ms = 5000;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    const tsr_status status = tsr_threads_run(ranks, main, arg, &threads);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
}

static void drill_on(drill d, const char *mesh, int ranks, tsr_policy policy)
{
    d.mesh = mesh;
    run_with(run_drill, &d, ranks, policy, NULL);
}

/* On two ranks, and on four. */
static void drill_of(drill d, tsr_policy policy)
{
    drill_on(d, "2", 2, policy);
    drill_on(d, "4", 4, policy);
}

#define BY(rows, columns, text)                                                                                        \
    {                                                                                                                  \
        .ndim = 2, .shape = {rows, columns}, .placements = text                                                        \
    }
#define IDS(count, text)                                                                                               \
    {                                                                                                                  \
        .ndim = 1, .shape = {count}, .placements = text, .ids = true                                                   \
    }
#define DIM(value)                                                                                                     \
    {                                                                                                                  \
        .name = "dim", .kind = TSR_ATTRIBUTE_INT, .integer = value                                                     \
    }

static void a_call_without_meetings_fails_alone(void **state)
{
    (void)state;
    drill_of((drill){.op = "mul", .operands = {BY(5, 7, "S(0)"), BY(5, 7, "S(0)")}, .alone = true}, TSR_POLICY_FORBID);
}

static void operands_that_move(void **state)
{
    (void)state;
    const operand x = BY(5, 7, "S(0)"), y = BY(5, 7, "S(1)"), terms = BY(5, 7, "P");
    drill_of((drill){.op = "mul", .operands = {x, y}}, TSR_POLICY_ALLOW);
    drill_of((drill){.op = "mul", .operands = {x, y}, .into = true}, TSR_POLICY_ALLOW);
    drill_of((drill){.op = "mul", .operands = {terms, terms}}, TSR_POLICY_ALLOW);
    drill_of((drill){.op = "relu", .operands = {terms}}, TSR_POLICY_PARTIALS);
}

static void gradients_that_move_back(void **state)
{
    (void)state;
    const operand x = BY(5, 7, "S(0)"), y = BY(5, 7, "S(1)"), terms = BY(5, 7, "P");
    drill_of((drill){.op = "mul", .operands = {x, y}, .backward = true}, TSR_POLICY_ALLOW);
    drill_of((drill){.op = "div", .operands = {x, y}, .backward = true}, TSR_POLICY_ALLOW);
    drill_of((drill){.op = "relu", .operands = {terms}, .backward = true}, TSR_POLICY_ALLOW);
}

static void exchanges_inside(void **state)
{
    (void)state;
    const operand x = BY(4, 6, "S(1)");
    const drill softmax = {.op = "softmax", .attribute = DIM(1), .operands = {x}};
    const drill loss = {.op = "cross_entropy", .operands = {x, IDS(4, "R")}};
    for (int way = 0; way < 3; way++) {
        drill d[] = {softmax, loss};
        for (int i = 0; i < 2; i++) {
            d[i].into = way == 1;
            d[i].backward = way == 2;
            drill_of(d[i], TSR_POLICY_FORBID);
        }
    }
}

/* Where the other operand moves first, and the op itself meets. */
static void moves_and_exchanges(void **state)
{
    (void)state;
    const drill loss = {.op = "cross_entropy", .operands = {BY(4, 6, "S(1)"), IDS(4, "S(0)")}};
    drill back = loss;
    back.backward = true;
    drill_of(loss, TSR_POLICY_ALLOW);
    drill_of(back, TSR_POLICY_ALLOW);
}

/* Two mesh dims: ranks meet along one of them, and then along the other. */
static void meetings_along_two_dims(void **state)
{
    (void)state;
    const drill norm = {.op = "rms_norm", .operands = {BY(4, 6, "S(0),S(1)"), {1, {6}, "R,S(0)", false}}};
    const drill product = {.op = "mul", .operands = {BY(4, 6, "S(0),S(1)"), BY(4, 6, "S(1),S(0)")}};
    for (int way = 0; way < 2; way++) {
        drill d[] = {norm, product};
        for (int i = 0; i < 2; i++) {
            d[i].backward = way == 1;
            drill_on(d[i], "2x2", 4, i ? TSR_POLICY_ALLOW : TSR_POLICY_FORBID);
        }
    }
}

static void rows_that_redistribute(void **state)
{
    (void)state;
    const operand x = BY(5, 7, "S(0)"), terms = BY(5, 7, "P");
    const tsr_attribute to = {.name = "placements", .kind = TSR_ATTRIBUTE_TEXT, .words = "S(1)"};
    for (int way = 0; way < 3; way++) {
        drill_of(
            (drill){.op = "redistribute", .attribute = to, .operands = {x}, .into = way == 1, .backward = way == 2},
            TSR_POLICY_FORBID);
        drill_of((drill){.op = "all_reduce", .operands = {terms}, .into = way == 1, .backward = way == 2},
                 TSR_POLICY_FORBID);
    }
}

static tsr_status stack(const drill *d, const scene *s, tsr_dtensor **results)
{
    const tsr_dtensor *const *const x = (const tsr_dtensor *const *)s->operands;
    if (d->into)
        return tsr_stack_into(2, x, 1, s->out);
    return d->backward ? tsr_stack_backward(2, x, 1, s->dout, results) : tsr_stack(2, x, 1, results);
}

static tsr_status split(const drill *d, const scene *s, tsr_dtensor **results)
{
    static const int64_t sizes[] = {3, 4, 5};
    const tsr_dtensor *const dout[] = {s->dout, NULL, NULL};
    if (d->backward)
        return tsr_split_backward(s->operands[0], 0, 3, sizes, dout, results);
    return tsr_split(s->operands[0], 0, 3, sizes, results);
}

/* Calls of several ops, of which a later one meets, or each. */
static void calls_of_several_ops(void **state)
{
    (void)state;
    const operand x = BY(5, 7, "S(0)"), y = BY(5, 7, "S(1)"), whole = BY(5, 7, "R"), terms = BY(5, 7, "P");
    const char *const names[] = {"tsr_stack", "tsr_stack_into", "tsr_stack_backward"};
    for (int way = 0; way < 3; way++) {
        drill d = {.op = names[way], .call = stack, .operands = {x, y}, .into = way == 1, .backward = way == 2};
        drill_on(d, way ? "2" : "4", way ? 2 : 4, TSR_POLICY_ALLOW);
        d.operands[1] = x;
        d.alone = true;
        drill_on(d, "2", 2, TSR_POLICY_ALLOW);
    }
    drill_on((drill){.op = "tsr_stack", .call = stack, .operands = {terms, whole}}, "2", 2, TSR_POLICY_PARTIALS);
    drill_on((drill){.op = "tsr_stack", .call = stack, .operands = {BY(5, 7, "S(0),S(1)"), BY(5, 7, "S(1),S(0)")}},
             "2x2", 4, TSR_POLICY_ALLOW);
    drill_of((drill){.op = "tsr_split", .call = split, .operands = {BY(12, 2, "S(0;interleave=2)")}}, TSR_POLICY_ALLOW);
    drill_on((drill){.op = "tsr_split_backward",
                     .call = split,
                     .operands = {BY(12, 2, "S(0)")},
                     .backward = true,
                     .alone = true},
             "2", 2, TSR_POLICY_ALLOW);
}

/* A row of a program's own, whose kernel fails at a stage on rank FAILING alone. */
static tsr_status check_any(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

static int64_t eight_bytes(const tsr_kernel_call *k)
{
    (void)k;
    return 8;
}

static tsr_status fail_at_stage(const tsr_kernel_call *k)
{
    if (k->stage == k->attributes[0].integer && k->coordinate[0] == FAILING)
        return tsr_status_set(TSR_ERROR_IO, "%s: the disk of stage %d is gone", k->op, k->stage);
    return TSR_OK;
}

static const tsr_op failing_row = {.size = sizeof(tsr_op),
                                   .name = "failing",
                                   .rule = "n ... -> n ... | n exchange",
                                   .operands = {"x"},
                                   .results = {"out"},
                                   .attributes = {{.name = "stage", .kind = TSR_ATTRIBUTE_INT, .integer = -1}},
                                   .check = check_any,
                                   .host = fail_at_stage,
                                   .exchanges = 2,
                                   .record_bytes = eight_bytes,
                                   .gradients = {"failing(failing(dout))"}};

/* A row of a program's own, two of whose gradients move. */
static tsr_status fill_with_ones(const tsr_kernel_call *k)
{
    for (int64_t i = 0; i < k->outputs[0].shape[0] * k->outputs[0].shape[1]; i++)
        ((float *)k->outputs[0].data)[i] = 1;
    return TSR_OK;
}

static const tsr_op turning_row = {.size = sizeof(tsr_op),
                                   .name = "turning",
                                   .rule = "v w, w v, w v -> v w",
                                   .operands = {"x", "y", "z"},
                                   .results = {"out"},
                                   .check = check_any,
                                   .host = fill_with_ones,
                                   .gradients = {"dout", "place_like(dout, like y)", "place_like(dout, like z)"}};

/* Ranks that failed before the first move meet those that heard of it there. */
static void gradients_that_move_one_after_the_other(void **state)
{
    (void)state;
    static const tsr_op *const rows[] = {&turning_row};
    const operand x = BY(5, 5, "S(0)"), y = BY(5, 5, "S(1)");
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        drill d = {.mesh = ranks == 2 ? "2" : "4", .op = "turning", .operands = {x, y, y}, .backward = true};
        run_with(run_drill, &d, ranks, TSR_POLICY_FORBID, rows);
    }
}

static tsr_status fail_stages(tsr_comm *comm, void *arg)
{
    const drill *const d = arg;
    scene s = {NULL};
    int noticed;
    TSR_TRY(tsr_mesh_parse(comm, NULL, d->mesh, &s.mesh));
    TSR_TRY(fill_scene(&(drill){.op = d->op, .operands = {d->operands[0]}}, &s));
    TSR_TRY(make(s.mesh, &d->operands[0], &s.dout));
    for (int stage = 0; stage <= 3; stage++) {
        drill here = *d;
        here.attribute = (tsr_attribute){.name = "stage", .kind = TSR_ATTRIBUTE_INT, .integer = stage};
        TSR_TRY(judge(&here, comm, call(&here, &s), stage < 3 ? TSR_ERROR_IO : TSR_OK, stage, &noticed));
        /* After the last stage of the last row nobody is met. */
        const int heard = stage == 3 ? 0 : stage == 2 && !d->backward ? 1 : tsr_comm_size(comm);
        if (noticed != heard)
            return tsr_status_set(TSR_ERROR_INTERNAL, "at stage %d %d ranks failed, not %d", stage, noticed, heard);
    }
    clear(&s);
    return TSR_OK;
}

static void a_kernel_fails_on_one_rank(void **state)
{
    (void)state;
    static const tsr_op *const rows[] = {&failing_row};
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        drill d = {.mesh = ranks == 2 ? "2" : "4", .op = "failing", .operands = {BY(4, 6, "S(0)")}};
        run_with(fail_stages, &d, ranks, TSR_POLICY_FORBID, rows);
        d.backward = true;
        run_with(fail_stages, &d, ranks, TSR_POLICY_FORBID, rows);
    }
}

/* An id that the table does not have is found by the kernel of the rank that has the id. */
static tsr_status look_up(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *table, *ids, *out = NULL;
    int noticed;
    const int64_t few = 4;
    const drill d = {.op = "embedding", .mesh = "2"};
    int32_t values[] = {0, 1, 9, 2};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_I32, 1, &few);
    TSR_TRY(make(mesh, &(operand)BY(5, 6, "R"), &table));
    TSR_TRY(tsr_distribute(&global, mesh, "S(0)", &ids));
    TSR_TRY(judge(&d, comm, tsr_embedding(table, ids, &out), TSR_ERROR_ARGUMENT, 0, &noticed));
    tsr_dtensor_destroy(out);
    tsr_dtensor_destroy(ids);
    tsr_dtensor_destroy(table);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_bad_id_fails_on_the_rank_that_has_it(void **state)
{
    (void)state;
    run_with(look_up, NULL, 2, TSR_POLICY_FORBID, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_call_without_meetings_fails_alone),
                                       cmocka_unit_test(operands_that_move),
                                       cmocka_unit_test(gradients_that_move_back),
                                       cmocka_unit_test(exchanges_inside),
                                       cmocka_unit_test(moves_and_exchanges),
                                       cmocka_unit_test(meetings_along_two_dims),
                                       cmocka_unit_test(rows_that_redistribute),
                                       cmocka_unit_test(calls_of_several_ops),
                                       cmocka_unit_test(gradients_that_move_one_after_the_other),
                                       cmocka_unit_test(a_kernel_fails_on_one_rank),
                                       cmocka_unit_test(a_bad_id_fails_on_the_rank_that_has_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
