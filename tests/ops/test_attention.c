/* Attention against plain loops in f64, on one rank and cut in all ways. */
#include "attention_plain.h"
#include "layers.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Blocks of 64 queries and chunks of 128 keys, less, more and none of each; dims that are padded;
 * groups; queries that attend nothing; few queries of wide values. */
static const attention_shape shapes[] = {
    {2, 2, 5, 7, 4, 4, 0, 0, 0},
    {2, 2, 70, 150, 16, 16, 1, 0, 0},
    {2, 1, 150, 150, 17, 5, 1, 0, 0},
    {8, 2, 1, 300, 32, 32, 1, 0, 0},
    {6, 3, 9, 40, 8, 24, 1, 6, 0},
    {3, 3, 200, 70, 6, 3, 1, 0, 0.25},
    {4, 2, 33, 33, 8, 8, 0, 5, 0},
    {1, 1, 130, 257, 64, 64, 1, 0, 0},
    {4, 4, 3, 0, 4, 4, 1, 0, 0},
    {4, 4, 0, 9, 4, 4, 1, 0, 0},
    {12, 4, 20, 600, 3, 1, 1, 100, -2},
    {7, 1, 1, 129, 5, 7, 1, 0, 0},
    {4, 2, 70, 140, 8, 8, 0, 0, 0, BOOL_MASK},
    {2, 2, 70, 140, 8, 8, 1, 0, 0.3, ADDED_MASK},
    {4, 1, 1, 140, 8, 8, 0, 0, 0, ADDED_MASK},
    {2, 1, 2, 300, 4, 4, 1, 0, 0, BOOL_MASK},
    {3, 1, 1, 157, 44, 300, 1, 60, 0},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* Operands, results and gradients of a case. */
typedef struct run {
    tsr_dtensor *t[PLAIN_TENSORS], *mask;
} run;

static void destroy_run(run *r)
{
    for (int t = 0; t < PLAIN_TENSORS; t++)
        tsr_dtensor_destroy(r->t[t]);
    tsr_dtensor_destroy(r->mask);
}

/* Runs forward and backward; `placements` are those of q, k, v and the mask, R if they are NULL. */
static tsr_status attend(const plain *p, tsr_dtype dtype, const tsr_mesh *mesh, const char *const placements[4], run *r)
{
    const tsr_attention_options options = plain_options(p);
    char text[64];
    for (int t = Q; t <= V; t++)
        TSR_TRY(plain_distribute(p, t, dtype, mesh, placements[t], &r->t[t]));
    TSR_TRY(plain_mask(p, dtype, mesh, placements[3] ? placements[3] : "R", &r->mask));
    TSR_TRY(tsr_attention(r->t[Q], r->t[K], r->t[V], r->mask, &options, &r->t[OUT]));
    tsr_layout_print(tsr_dtensor_layout(r->t[OUT]), text, sizeof text);
    TSR_TRY(plain_distribute(p, DOUT, dtype, mesh, text, &r->t[DOUT]));
    return tsr_attention_backward(r->t[Q], r->t[K], r->t[V], r->mask, &options, r->t[DOUT], &r->t[DQ], &r->t[DK],
                                  &r->t[DV]);
}

static tsr_status check(const plain *p, tsr_dtype dtype, int ranks, const run *r)
{
    const double u = dtype == TSR_F64 ? 0x1p-53 : 0x1p-24;
    for (int t = OUT; t < PLAIN_TENSORS; t++)
        TSR_TRY(plain_compare(p, t, r->t[t], plain_bound(p, t, u, ranks)));
    return TSR_OK;
}

static tsr_status check_shapes(tsr_comm *comm, void *arg)
{
    static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16};
    static const char *const whole[] = {"R", "R", "R", NULL};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < 4 * SHAPES && status == TSR_OK; i++) {
        plain p;
        run r = {{NULL}};
        plain_create(&shapes[i / 4], dtypes[i % 4], &p);
        status = attend(&p, dtypes[i % 4], mesh, whole, &r);
        if (status == TSR_OK)
            status = check(&p, dtypes[i % 4], 1, &r);
        if (status != TSR_OK)
            fprintf(stderr, "shape %d, %s\n", (int)(i / 4), tsr_dtype_name(dtypes[i % 4]));
        destroy_run(&r);
        plain_destroy(&p);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static void values_and_gradients_are_those_of_plain_loops(void **state)
{
    char none[1];
    (void)state;
    layers_run_sets(check_shapes, none, 0);
}

/* A layout of q, k and v, and the shape that it cuts. */
typedef struct cut {
    const char *mesh, *q, *k, *v;
    int shape;
    const char *mask; /* NULL: R */
} cut;

/* Shapes of cuts: 1 has 2 heads of 70 queries and 150 keys, 4 has groups, 10 has a window. */
static const cut cuts[] = {
    {"2", "S(1)", "R", "R", 1},
    {"3", "S(1;balanced)", "R", "R", 2},
    {"4", "S(1;interleave=2)", "R", "R", 5},
    {"8", "S(1;sizes=0,1,2,3,0,60,4,0)", "R", "R", 1},
    {"5", "R", "S(1)", "S(1)", 1},
    {"4", "R", "S(1;interleave=3)", "S(1;interleave=3)", 10},
    {"8", "R", "S(1)", "S(1)", 4},
    {"4", "R", "S(1;sizes=0,7,0,0)", "S(1;sizes=0,7,0,0)", 0},
    {"8", "R", "S(1)", "S(1)", 3},
    {"2", "R", "R", "S(2)", 4},
    {"3", "R", "R", "S(2)", 9},
    {"3", "S(0)", "S(0)", "S(0)", 5},
    {"2x2", "S(0),S(1)", "S(0),R", "S(0),R", 1},
    {"2x2", "S(0),R", "S(0),S(1)", "S(0),S(1)", 1},
    {"2x3", "S(1),R", "R,S(1)", "R,S(1)", 6},
    {"2x2x2", "S(1),R,R", "R,S(1),S(1)", "R,S(1),S(1)", 10},
    {"2x2x2", "S(0),S(1),R", "S(0),R,S(1)", "S(0),R,S(1)", 7},
    {"7", "S(1)", "R", "R", 8},
    {"6", "R", "S(1)", "S(1)", 8},
    {"2", "S(1)", "R", "R", 9},
    {"2x2", "S(1),R", "R,S(1)", "R,S(1)", 12, "S(0),S(1)"},
    {"3", "S(0)", "S(0)", "S(0)", 13, "R"},
    {"3", "R", "S(1)", "S(1)", 14, "S(1)"},
    /* Heads of groups: 8 on 2, 6 on 3, 7 on 1, by k's head, within groups, and anywhere. */
    {"2", "S(0)", "S(0)", "S(0)", 3},
    {"3", "S(0)", "S(0)", "S(0)", 4},
    {"2", "S(0;interleave=3)", "R", "R", 4},
    {"4", "S(0)", "R", "R", 4},
    {"5", "S(0;sizes=1,0,3,1,1)", "R", "R", 4},
    {"7", "S(0)", "R", "R", 11},
    {"3", "S(0;balanced)", "R", "R", 11},
    {"2x2", "S(0),S(1)", "S(0),R", "S(0),R", 3},
    {"2x4", "S(0),S(0)", "S(0),R", "S(0),R", 3},
    {"3x2", "S(0),S(1)", "S(0),R", "S(0),R", 4},
    {"4x2", "S(0),R", "R,S(1)", "R,S(1)", 4},
};

typedef struct assignment {
    const cut *c;
    const plain *p;
    tsr_dtype dtype;
    void *results[8]; /* of each rank, where the result is Replicate */
} assignment;

static tsr_status check_cut(tsr_comm *comm, void *arg)
{
    assignment *const a = arg;
    const char *const placements[] = {a->c->q, a->c->k, a->c->v, a->c->mask};
    tsr_mesh *mesh;
    run r = {{NULL}};
    TSR_TRY(tsr_mesh_parse(comm, NULL, a->c->mesh, &mesh));
    const size_t bytes = (size_t)a->p->counts[OUT] * tsr_dtype_bytes(a->dtype);
    tsr_status status = attend(a->p, a->dtype, mesh, placements, &r);
    if (status == TSR_OK)
        status = check(a->p, a->dtype, tsr_comm_size(comm), &r);
    void **const kept = &a->results[tsr_comm_rank(comm)];
    *kept = NULL;
    const bool replicated = strspn(a->c->q, "R,") == strlen(a->c->q) && strcmp(a->c->v, "S(2)") != 0;
    if (status == TSR_OK && replicated) {
        *kept = malloc(bytes + 1);
        memcpy(*kept, tsr_dtensor_to_local(r.t[OUT]).data, bytes);
    }
    destroy_run(&r);
    tsr_mesh_destroy(mesh);
    return status;
}

static void check_cut_in(const cut *c, tsr_dtype dtype)
{
    plain p;
    int ranks = 1;
    for (const char *at = c->mesh; *at; at++)
        ranks *= *at == 'x' ? 1 : *at - '0';
    plain_create(&shapes[c->shape], dtype, &p);
    assignment a = {c, &p, dtype, {NULL}};
    if (tsr_threads_run(ranks, check_cut, &a, NULL) != TSR_OK)
        fail_msg("%s, %s q=%s k=%s v=%s: %s", tsr_dtype_name(dtype), c->mesh, c->q, c->k, c->v, tsr_status_message());
    for (int rank = 1; rank < ranks && a.results[0]; rank++)
        assert_memory_equal(a.results[0], a.results[rank], (size_t)p.counts[OUT] * tsr_dtype_bytes(dtype));
    for (int rank = 0; rank < ranks; rank++)
        free(a.results[rank]);
    plain_destroy(&p);
}

/* Blocks of few queries have another loop in f32 than in f64. */
static void every_cut_gives_the_whole_result_and_replicas_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        check_cut_in(&cuts[i], TSR_F64);
        check_cut_in(&cuts[i], TSR_F32);
    }
}

/* The change of the sum of dout times out, by central differences. */
static double difference(plain *p, int tensor, int64_t i)
{
    const double step = 1e-5, value = p->values[tensor][i];
    double sums[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        p->values[tensor][i] = side ? value + step : value - step;
        plain_attend(p);
        for (int64_t j = 0; j < p->counts[OUT]; j++)
            sums[side] += p->values[DOUT][j] * p->values[OUT][j];
    }
    p->values[tensor][i] = value;
    return (sums[1] - sums[0]) / (2 * step);
}

/* The plain gradients, with which all others are compared, are slopes of the plain results. The
 * error of differences is step^2 times a third derivative, and 1e-16 / step. */
static void plain_gradients_are_slopes(void **state)
{
    static const attention_shape small[] = {{4, 2, 3, 5, 3, 2, 1, 0, 0}, {3, 1, 4, 3, 2, 2, 0, 2, 1.5}};
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        plain p;
        plain_create(&small[n], TSR_F64, &p);
        for (int t = Q; t <= V; t++)
            for (int64_t i = 0; i < p.counts[t]; i++)
                assert_true(fabs(difference(&p, t, i) - p.values[t - Q + DQ][i]) < 1e-8);
        plain_destroy(&p);
    }
}

/* More keys than the gradient keeps weights of. */
static tsr_status check_many_keys(tsr_comm *comm, void *arg)
{
    static const attention_shape many = {2, 1, 3, 8500, 2, 3, 1, 8400, 0};
    static const char *const whole[] = {"R", "R", "R", NULL};
    tsr_mesh *mesh;
    plain p;
    run r = {{NULL}};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    plain_create(&many, TSR_F64, &p);
    tsr_status status = attend(&p, TSR_F64, mesh, whole, &r);
    if (status == TSR_OK)
        status = check(&p, TSR_F64, 1, &r);
    destroy_run(&r);
    plain_destroy(&p);
    tsr_mesh_destroy(mesh);
    return status;
}

static void weights_of_many_keys_are_computed_again(void **state)
{
    (void)state;
    layers_run(1, check_many_keys, NULL);
}

/* An operand whose heads and tokens lie transposed in memory, as projections leave them. */
static tsr_status transpose(const tsr_dtensor *x, double *data, tsr_dtensor **out)
{
    tsr_tensor local = tsr_dtensor_to_local(x);
    const int64_t heads = local.shape[0], tokens = local.shape[1], dim = local.shape[2];
    for (int64_t i = 0; i < heads * tokens * dim; i++)
        data[(i / dim % tokens * heads + i / dim / tokens) * dim + i % dim] = ((const double *)local.data)[i];
    local.data = data;
    local.strides[0] = dim;
    local.strides[1] = heads * dim;
    return tsr_dtensor_from_local(&local, tsr_dtensor_layout(x), NULL, out);
}

/* The result may have the memory of an operand, and operands any strides. */
static tsr_status check_memory(tsr_comm *comm, void *arg)
{
    static const int cases[] = {1, 6, 9};
    static double data[3][64 * 1024];
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (int n = 0; n < 6; n++) {
        attention_shape s = shapes[cases[n / 2]];
        s.kv_heads = s.heads;
        s.keys = s.queries = n / 2 == 2 ? 5 : s.queries;
        s.value_dim = s.dim;
        plain p;
        run r = {{NULL}};
        tsr_dtensor *in[3];
        plain_create(&s, TSR_F64, &p);
        const tsr_attention_options options = plain_options(&p);
        for (int t = Q; t <= V; t++) {
            TSR_TRY(plain_distribute(&p, t, TSR_F64, mesh, "R", &r.t[t]));
            TSR_TRY(transpose(r.t[t], data[t], &in[t]));
        }
        tsr_dtensor *const operands[] = {n % 2 ? in[Q] : r.t[Q], n % 2 ? in[K] : r.t[K], n % 2 ? in[V] : r.t[V]};
        tsr_dtensor *const out = operands[n / 2];
        TSR_TRY(tsr_attention_into(operands[Q], operands[K], operands[V], NULL, &options, out));
        TSR_TRY(plain_compare(&p, OUT, out, plain_bound(&p, OUT, 0x1p-53, 1)));
        for (int t = Q; t <= V; t++)
            tsr_dtensor_destroy(in[t]);
        destroy_run(&r);
        plain_destroy(&p);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void results_may_lie_in_operands_of_any_strides(void **state)
{
    (void)state;
    layers_run(1, check_memory, NULL);
}

static tsr_status check_refusals(tsr_comm *comm, void *arg)
{
    static const attention_shape s = {4, 2, 6, 6, 4, 4, 0, 0, 0};
    tsr_attention_options o = TSR_ATTENTION_OPTIONS_INIT;
    tsr_mesh *mesh;
    plain p;
    tsr_dtensor *q, *k, *cut_q, *cut_k, *narrow, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    plain_create(&s, TSR_F64, &p);
    TSR_TRY(plain_distribute(&p, Q, TSR_F64, mesh, "R", &q));
    TSR_TRY(plain_distribute(&p, K, TSR_F64, mesh, "R", &k));
    TSR_TRY(plain_distribute(&p, Q, TSR_F64, mesh, "S(2)", &cut_q));
    TSR_TRY(plain_distribute(&p, K, TSR_F64, mesh, "S(1)", &cut_k));
    TSR_TRY(plain_distribute(&p, K, TSR_F32, mesh, "R", &narrow));
    TSR_TRY(layer_expect_refusal_with(tsr_attention(k, q, q, NULL, NULL, &out),
                                      "q has 2 heads and k has 4; q must have a multiple"));
    TSR_TRY(layer_expect_refusal_with(tsr_attention(q, k, narrow, NULL, NULL, &out),
                                      "q is f64 but v is f32; both must have one dtype"));
    TSR_TRY(layer_expect_refusal_with(tsr_attention(cut_q, k, k, NULL, NULL, &out),
                                      "redistribute q from \"S(2)\" to \"R\""));
    TSR_TRY(layer_expect_refusal_with(tsr_attention(q, cut_k, k, NULL, NULL, &out), "; redistribute "));
    o.window = -1;
    TSR_TRY(layer_expect_refusal_with(tsr_attention(q, k, k, NULL, &o, &out),
                                      "window is -1, but must be a number of keys, or 0"));
    o.window = 0;
    o.causal = 2;
    TSR_TRY(layer_expect_refusal_with(tsr_attention(q, k, k, NULL, &o, &out), "causal is 2, but must be 0 or 1"));
    o.size = 0;
    TSR_TRY(layer_expect_refusal_with(tsr_attention(q, k, k, NULL, &o, &out), "tsr_attention"));
    o = (tsr_attention_options)TSR_ATTENTION_OPTIONS_INIT;
    TSR_TRY(layer_expect_refusal_with(tsr_attention(q, k, k, narrow, &o, &out),
                                      "mask is f32, but must be bool, or f64 as q is"));
    tsr_dtensor *const all[] = {q, k, cut_q, cut_k, narrow};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    plain_destroy(&p);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void refusals_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_refusals, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients_are_those_of_plain_loops),
        cmocka_unit_test(every_cut_gives_the_whole_result_and_replicas_the_same_bits),
        cmocka_unit_test(plain_gradients_are_slopes),
        cmocka_unit_test(weights_of_many_keys_are_computed_again),
        cmocka_unit_test(results_may_lie_in_operands_of_any_strides),
        cmocka_unit_test(refusals_say_what_would_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
