/* Mixtures of experts: values by the dense formula, bits that do not depend on how experts are cut,
 * capacities, ids behind the last expert, and errors. */
#include "layers.h"
#include "wholes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { T = 7, S = 2, K = 4, H = 3, E = 5, I = 6, MOST = 8192 };

/* The whole tensors of a layer, with up to MOST elements each. */
typedef struct dense {
    int64_t t, s, k, h, e, i;
    int64_t ids[MOST];
    double x[MOST], gate_up[MOST], down[MOST], dout[MOST], y[MOST], dx[MOST], dgate_up[MOST], ddown[MOST];
} dense;

/* Eighths, which bf16 holds. */
static void draw(double *values, int64_t count, int64_t first)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = rint(support_draw(first + i)) / 8;
}

static void draw_layer(dense *d)
{
    draw(d->x, d->t * d->k, 1);
    draw(d->gate_up, d->e * 2 * d->i * d->k, 1000);
    draw(d->down, d->e * d->h * d->i, 5000);
    draw(d->dout, d->t * d->s * d->h, 9000);
    for (int64_t slot = 0; slot < d->t * d->s; slot++)
        d->ids[slot] = (slot * slot + slot / 3) % d->e;
}

static double activate(tsr_expert_mlp_activation activation, double x, double *slope)
{
    const double root = sqrt(2 / acos(-1.0)), inner = root * (x + 0.044715 * x * x * x), th = tanh(inner);
    const double sigmoid = 1 / (1 + exp(-x)), normal = 0.5 * (1 + erf(x / sqrt(2)));
    switch (activation) {
    case TSR_EXPERT_MLP_SILU:
        *slope = sigmoid * (1 + x * (1 - sigmoid));
        return x * sigmoid;
    case TSR_EXPERT_MLP_GELU:
        *slope = normal + x * exp(-x * x / 2) / sqrt(2 * acos(-1.0));
        return x * normal;
    case TSR_EXPERT_MLP_GELU_TANH:
        *slope = 0.5 * (1 + th) + 0.5 * x * (1 - th * th) * root * (1 + 3 * 0.044715 * x * x);
        return 0.5 * x * (1 + th);
    default:
        *slope = x > 0;
        return x > 0 ? x : 0;
    }
}

/* One slot by the formula: y, and what it adds to gradients. */
static void compute_slot(dense *d, tsr_expert_mlp_activation activation, int64_t slot)
{
    const int64_t e = d->ids[slot];
    const double *const x = d->x + slot / d->s * d->k, *const dout = d->dout + slot * d->h;
    double *const y = d->y + slot * d->h, *const dx = d->dx + slot / d->s * d->k;
    for (int64_t i = 0; i < d->i; i++) {
        const int64_t rows[] = {(e * 2 * d->i + i) * d->k, (e * 2 * d->i + d->i + i) * d->k};
        double gate = 0, up = 0, dhidden = 0, slope;
        for (int64_t k = 0; k < d->k; k++) {
            gate += d->gate_up[rows[0] + k] * x[k];
            up += d->gate_up[rows[1] + k] * x[k];
        }
        const double active = activate(activation, gate, &slope);
        for (int64_t h = 0; h < d->h; h++) {
            y[h] += d->down[(e * d->h + h) * d->i + i] * active * up;
            dhidden += d->down[(e * d->h + h) * d->i + i] * dout[h];
            d->ddown[(e * d->h + h) * d->i + i] += dout[h] * active * up;
        }
        for (int64_t k = 0; k < d->k; k++) {
            d->dgate_up[rows[0] + k] += dhidden * up * slope * x[k];
            d->dgate_up[rows[1] + k] += dhidden * active * x[k];
            dx[k] += dhidden * (up * slope * d->gate_up[rows[0] + k] + active * d->gate_up[rows[1] + k]);
        }
    }
}

static void compute(dense *d, tsr_expert_mlp_activation activation)
{
    memset(d->y, 0, sizeof d->y);
    memset(d->dx, 0, sizeof d->dx);
    memset(d->dgate_up, 0, sizeof d->dgate_up);
    memset(d->ddown, 0, sizeof d->ddown);
    for (int64_t slot = 0; slot < d->t * d->s; slot++)
        compute_slot(d, activation, slot);
}

/* The operands of a call, and what came of it. */
typedef struct call {
    tsr_dtensor *x, *ids, *gate_up, *down, *dout, *y, *dx, *dgate_up, *ddown;
} call;

static void clear(call *c)
{
    tsr_dtensor *const all[] = {c->x, c->ids, c->gate_up, c->down, c->dout, c->y, c->dx, c->dgate_up, c->ddown};
    for (int i = 0; i < 9; i++)
        tsr_dtensor_destroy(all[i]);
    memset(c, 0, sizeof *c);
}

/* Places operands: tokens Replicate, weights as told. */
static tsr_status place(const dense *d, const tsr_mesh *mesh, tsr_dtype dtype, const char *gate_up, const char *down,
                        call *c)
{
    const int64_t x[] = {d->t, d->k}, ids[] = {d->t, d->s}, up[] = {d->e, 2 * d->i, d->k}, dn[] = {d->e, d->h, d->i};
    memset(c, 0, sizeof *c);
    TSR_TRY(support_make(mesh, "R", dtype, 2, x, d->x, &c->x));
    TSR_TRY(support_distribute(mesh, "R", TSR_I64, 2, ids, d->ids, &c->ids));
    TSR_TRY(support_make(mesh, gate_up, dtype, 3, up, d->gate_up, &c->gate_up));
    return support_make(mesh, down, dtype, 3, dn, d->down, &c->down);
}

static tsr_status expect_near(const char *what, const tsr_dtensor *x, int64_t count, const double *wanted,
                              double tolerance)
{
    static _Thread_local double got[MOST];
    TSR_TRY(support_read(x, got));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(support_expect(what, i, got[i], wanted[i], tolerance));
    return TSR_OK;
}

static tsr_status run_all(const dense *d, const tsr_mesh *mesh, tsr_dtype dtype, tsr_expert_mlp_activation activation,
                          double tolerance)
{
    call c;
    tsr_expert_mlp_options options = TSR_EXPERT_MLP_OPTIONS_INIT;
    const int64_t shape[] = {d->t, d->s, d->h};
    options.activation = activation;
    TSR_TRY(place(d, mesh, dtype, "R", "R", &c));
    TSR_TRY(support_make(mesh, "R", dtype, 3, shape, d->dout, &c.dout));
    TSR_TRY(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, &options, &c.y));
    TSR_TRY(tsr_expert_mlp_backward(c.x, c.ids, c.gate_up, c.down, &options, c.dout, &c.dx, &c.dgate_up, &c.ddown));
    TSR_TRY(expect_near("y", c.y, d->t * d->s * d->h, d->y, tolerance));
    TSR_TRY(expect_near("dx", c.dx, d->t * d->k, d->dx, tolerance));
    TSR_TRY(expect_near("dgate_up", c.dgate_up, d->e * 2 * d->i * d->k, d->dgate_up, tolerance));
    TSR_TRY(expect_near("ddown", c.ddown, d->e * d->h * d->i, d->ddown, tolerance));
    clear(&c);
    return TSR_OK;
}

static tsr_status check_formula(tsr_comm *comm, void *arg)
{
    static dense d;
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (int activation = TSR_EXPERT_MLP_SILU; activation <= TSR_EXPERT_MLP_RELU; activation++) {
        d = (dense){.t = T, .s = S, .k = K, .h = H, .e = E, .i = I};
        draw_layer(&d);
        compute(&d, (tsr_expert_mlp_activation)activation);
        TSR_TRY(run_all(&d, mesh, TSR_F64, (tsr_expert_mlp_activation)activation, 1e-12));
        TSR_TRY(run_all(&d, mesh, TSR_F32, (tsr_expert_mlp_activation)activation, 1e-5));
        TSR_TRY(run_all(&d, mesh, TSR_BF16, (tsr_expert_mlp_activation)activation, 0.004));
    }
    /* Many tokens of an expert are computed in parts. */
    d = (dense){.t = 700, .s = S, .k = K, .h = H, .e = 2, .i = I};
    draw_layer(&d);
    compute(&d, TSR_EXPERT_MLP_SILU);
    TSR_TRY(run_all(&d, mesh, TSR_F64, TSR_EXPERT_MLP_SILU, 1e-11));
    TSR_TRY(run_all(&d, mesh, TSR_BF16, TSR_EXPERT_MLP_SILU, 0.004));
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void experts_compute_the_formula(void **state)
{
    (void)state;
    layers_run(1, check_formula, NULL);
}

/* y and what combine makes of it, in f32, on a mesh whose first dim cuts experts. */
static tsr_status combine_on(const dense *d, const tsr_mesh *mesh, const char *experts, const char *slots, float *y,
                             float *out)
{
    call c;
    tsr_dtensor *whole, *weights, *sums;
    const int64_t shape[] = {d->t, d->s};
    TSR_TRY(place(d, mesh, TSR_F32, experts, experts, &c));
    TSR_TRY(support_make(mesh, strcmp(slots, "S(0)") ? "R" : slots, TSR_F32, 2, shape, d->dout, &weights));
    TSR_TRY(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, NULL, &c.y));
    TSR_TRY(tsr_redistribute_to(c.y, slots, &whole));
    TSR_TRY(tsr_combine(whole, weights, &sums));
    TSR_TRY(support_take(whole, y, (size_t)(d->t * d->s * d->h) * sizeof *y));
    TSR_TRY(support_take(sums, out, (size_t)(d->t * d->h) * sizeof *out));
    tsr_dtensor_destroy(weights);
    clear(&c);
    return TSR_OK;
}

static tsr_status check_bits(tsr_comm *comm, void *arg)
{
    static const char *const cuts[] = {"S(0)", "S(0;balanced)", "S(0;interleave=2)", "R"};
    static _Thread_local dense d;
    float y[2][T * S * H], out[2][T * H];
    tsr_mesh *mesh, *one;
    tsr_comm *self;
    (void)arg;
    d = (dense){.t = T, .s = S, .k = K, .h = H, .e = E + 1, .i = I};
    draw_layer(&d);
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm), 0, &self));
    TSR_TRY(tsr_mesh_parse(self, NULL, "1", &one));
    TSR_TRY(tsr_mesh_create(comm, 1, (const int64_t[]){tsr_comm_size(comm)}, NULL, NULL, &mesh));
    TSR_TRY(combine_on(&d, one, "R", "R", y[0], out[0]));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        TSR_TRY(combine_on(&d, mesh, cuts[i], i & 1 ? "S(0)" : "S(2)", y[1], out[1]));
        EXPECT(memcmp(y[0], y[1], sizeof y[0]) == 0, "%s: y has other bits than on one rank", cuts[i]);
        EXPECT(memcmp(out[0], out[1], sizeof out[0]) == 0, "%s: sums of slots have other bits", cuts[i]);
    }
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(one);
    tsr_comm_destroy(self);
    return TSR_OK;
}

static void bits_do_not_depend_on_how_experts_are_cut(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++)
        layers_run(ranks, check_bits, NULL);
}

/* One layer of one hidden value: expert e makes 2^e times the token's relu(x) x. */
static tsr_status make_powers(const tsr_mesh *mesh, const char *cut, const int64_t *ids, call *c)
{
    static _Thread_local dense d;
    d = (dense){.t = 3, .s = 2, .k = 1, .h = 1, .e = 3, .i = 1};
    for (int64_t i = 0; i < 3; i++) {
        d.x[i] = (double)(i + 1);
        d.gate_up[2 * i] = d.gate_up[2 * i + 1] = 1;
        d.down[i] = (double)(1 << i);
    }
    memcpy(d.ids, ids, 6 * sizeof *ids);
    return place(&d, mesh, TSR_F32, cut, cut, c);
}

static tsr_status check_slots(const tsr_mesh *mesh, const char *cut, const int64_t *ids,
                              const tsr_expert_mlp_options *options, const float *wanted)
{
    call c;
    TSR_TRY(make_powers(mesh, cut, ids, &c));
    TSR_TRY(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, options, &c.y));
    TSR_TRY(support_expect_whole(cut, c.y, cut[0] == 'R' ? "R" : "P", 6, wanted));
    clear(&c);
    return TSR_OK;
}

static tsr_status refuse_slots(const tsr_mesh *mesh, const char *cut, const int64_t *ids,
                               const tsr_expert_mlp_options *options, const char *sentence)
{
    call c;
    TSR_TRY(make_powers(mesh, cut, ids, &c));
    TSR_TRY(layer_expect_refusal_with(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, options, &c.y), sentence));
    clear(&c);
    return TSR_OK;
}

static tsr_status check_capacity(tsr_comm *comm, void *arg)
{
    static const char *const cuts[] = {"R", "S(0)"};
    const int64_t ids[] = {0, 2, 2, 1, 2, 2}, beyond[] = {0, 3, 7, 1, 3, 2}, negative[] = {0, 1, -1, 0, 0, 0};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "ep=2", &mesh));
    for (int i = 0; i < 2; i++) {
        tsr_expert_mlp_options options = TSR_EXPERT_MLP_OPTIONS_INIT;
        options.activation = TSR_EXPERT_MLP_RELU;
        TSR_TRY(check_slots(mesh, cuts[i], ids, &options, (const float[]){1, 4, 16, 8, 36, 36}));
        options.capacity = 4;
        TSR_TRY(check_slots(mesh, cuts[i], ids, &options, (const float[]){1, 4, 16, 8, 36, 36}));
        options.capacity = 2;
        TSR_TRY(refuse_slots(mesh, cuts[i], ids, &options,
                             "experts: expert 2 has 4 tokens, but capacity is 2; give a capacity of 4, or overflow "
                             "\"drop\", which leaves tokens out"));
        options.overflow = TSR_EXPERT_MLP_DROP;
        TSR_TRY(check_slots(mesh, cuts[i], ids, &options, (const float[]){1, 4, 16, 8, 0, 0}));
        TSR_TRY(refuse_slots(mesh, cuts[i], beyond, &options, "experts: ids[0,1] is 3 on rank"));
        options.beyond = TSR_EXPERT_MLP_ZERO;
        TSR_TRY(check_slots(mesh, cuts[i], beyond, &options, (const float[]){1, 0, 0, 8, 0, 36}));
        options.beyond = TSR_EXPERT_MLP_IDENTITY;
        TSR_TRY(check_slots(mesh, cuts[i], beyond, &options, (const float[]){1, 1, 2, 8, 3, 36}));
        TSR_TRY(refuse_slots(mesh, cuts[i], negative, &options, "experts: ids[1,0] is -1 on rank"));
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void capacities_and_ids_beyond_do_as_told(void **state)
{
    (void)state;
    layers_run(2, check_capacity, NULL);
}

static tsr_status expect_same(const char *what, const tsr_dtensor *got, const tsr_dtensor *wanted, int count)
{
    const tsr_tensor a = tsr_dtensor_to_local(got), b = tsr_dtensor_to_local(wanted);
    EXPECT(memcmp(a.data, b.data, (size_t)count * sizeof(float)) == 0, "%s: other bits", what);
    return TSR_OK;
}

static tsr_status check_forms(tsr_comm *comm, void *arg)
{
    const int64_t ids[] = {0, 1, 2, 0, 1, 2}, weights_shape[] = {3, 2};
    const double values[] = {0.5, 2, -1, 1, 0, 4};
    call c;
    tsr_mesh *mesh;
    tsr_dtensor *again, *weights, *out, *dy, *dweights;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make_powers(mesh, "R", ids, &c));
    tsr_expert_mlp_options options = TSR_EXPERT_MLP_OPTIONS_INIT;
    options.activation = TSR_EXPERT_MLP_RELU;
    TSR_TRY(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, &options, &c.y));
    TSR_TRY(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, NULL, &again));
    TSR_TRY(tsr_expert_mlp_into(c.x, c.ids, c.gate_up, c.down, &options, again));
    TSR_TRY(expect_same("tsr_expert_mlp_into", again, c.y, 6));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, weights_shape, values, &weights));
    /* y is 1, 2; 16, 4; 18, 36. */
    TSR_TRY(tsr_combine(c.y, weights, &out));
    TSR_TRY(support_expect_whole("out", out, "R", 3, (const float[]){4.5, -12, 144}));
    TSR_TRY(tsr_combine_backward(c.y, weights, out, &dy, &dweights));
    TSR_TRY(support_expect_whole("dy", dy, "R", 6, (const float[]){2.25, 9, 12, -12, 0, 576}));
    TSR_TRY(support_expect_whole("dweights", dweights, "R", 6, (const float[]){4.5, 9, -192, -48, 2592, 5184}));
    TSR_TRY(tsr_combine_into(again, weights, out));
    TSR_TRY(support_expect_whole("out", out, "R", 3, (const float[]){4.5, -12, 144}));
    tsr_dtensor *const all[] = {again, weights, out, dy, dweights};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    clear(&c);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void forms_of_a_function_agree(void **state)
{
    (void)state;
    layers_run(1, check_forms, NULL);
}

/* Records the layer for up to T tokens, routed by logits. */
static void record_layer(tsr_program *p, const tsr_mesh *mesh, const call *c)
{
    const int64_t tokens = tsr_length(p, "tokens", T), last[] = {1};
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){tokens, K}, NULL);
    const tsr_value logits = tsr_input(p, "logits", mesh, TSR_F32, 2, (const int64_t[]){tokens, E}, NULL);
    const tsr_value gate_up = tsr_parameter(p, "gate_up", tsr_dtensor_layout(c->gate_up)),
                    down = tsr_parameter(p, "down", tsr_dtensor_layout(c->down));
    tsr_value ids;
    const tsr_value chosen = tsr_op_topk(p, tsr_op_softmax(p, logits, 1), S, 1, &ids);
    const tsr_value weights = tsr_op_div(p, chosen, tsr_op_sum(p, chosen, 1, last, 1));
    const tsr_value y = tsr_op_redistribute(p, tsr_op_experts(p, x, ids, gate_up, down, NULL), "S(2)");
    tsr_output(p, "out", tsr_op_redistribute(p, tsr_op_combine(p, y, weights), "R"), NULL);
}

/* Runs it for some tokens, and checks that nothing behind the workspace is written. */
static tsr_status run_layer(tsr_executable *exe, tsr_comm *comm, int64_t tokens, float *x, float *logits, float *out)
{
    enum { GUARD = 4096 };
    const size_t bytes = tsr_executable_workspace_bytes(exe);
    unsigned char *const workspace = aligned_alloc(64, (bytes + 63) / 64 * 64 + GUARD);
    const tsr_tensor inputs[] = {tsr_tensor_contiguous(x, TSR_F32, 2, (const int64_t[]){tokens, K}),
                                 tsr_tensor_contiguous(logits, TSR_F32, 2, (const int64_t[]){tokens, E})},
                     made = tsr_tensor_contiguous(out, TSR_F32, 2, (const int64_t[]){tokens, H});
    memset(workspace + bytes, 0xa5, GUARD);
    tsr_status status = tsr_executable_set_length(exe, "tokens", tokens);
    if (status == TSR_OK)
        status = tsr_executable_run(exe, comm, inputs, &made, workspace, bytes, NULL);
    for (size_t i = 0; status == TSR_OK && i < GUARD; i++) {
        if (workspace[bytes + i] != 0xa5)
            status = tsr_status_set(TSR_ERROR_INTERNAL, "byte %zu behind the workspace was written", i);
    }
    free(workspace);
    return status;
}

static tsr_status check_lengths(tsr_comm *comm, void *arg)
{
    static _Thread_local dense d;
    float x[T * K], logits[T * E], out[T * H], part[T * H];
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *exe;
    call c;
    (void)arg;
    d = (dense){.t = T, .s = S, .k = K, .h = H, .e = E, .i = I};
    draw_layer(&d);
    for (int i = 0; i < T * K; i++)
        x[i] = (float)d.x[i];
    for (int i = 0; i < T * E; i++)
        logits[i] = (float)support_draw(i + 77);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "ep=2", &mesh));
    TSR_TRY(place(&d, mesh, TSR_F32, "S(0)", "S(0)", &c));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    record_layer(p, mesh, &c);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_bind(exe, "gate_up", c.gate_up));
    TSR_TRY(tsr_executable_bind(exe, "down", c.down));
    TSR_TRY(tsr_executable_prepare(exe, comm));
    TSR_TRY(run_layer(exe, comm, T, x, logits, out));
    for (int64_t tokens = 1; tokens < T; tokens++) {
        TSR_TRY(run_layer(exe, comm, tokens, x, logits, part));
        EXPECT(memcmp(part, out, (size_t)(tokens * H) * sizeof *out) == 0, "%lld tokens: other bits",
               (long long)tokens);
    }
    tsr_executable_destroy(exe);
    clear(&c);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

/* An expert has at most T tokens, which are few: a token's bits do not depend on others. */
static void one_program_serves_any_number_of_tokens(void **state)
{
    (void)state;
    layers_run(2, check_lengths, NULL);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    const int64_t ids[] = {0, 1, 2, 0, 1, 2}, odd[] = {3, 3, 1};
    const double values[9] = {0};
    call c;
    tsr_mesh *mesh;
    tsr_dtensor *wrong, *cut;
    tsr_expert_mlp_options options = TSR_EXPERT_MLP_OPTIONS_INIT;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(make_powers(mesh, "R", ids, &c));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 3, odd, values, &wrong));
    TSR_TRY(layer_expect_refusal(tsr_expert_mlp(c.x, c.ids, wrong, c.down, NULL, &c.y),
                                 "tsr_expert_mlp: gate_up has 3 rows and down 1 columns, but each of 1 column or more "
                                 "has a row of gates and, behind all gates, one of ups"));
    TSR_TRY(layer_expect_refusal(tsr_expert_mlp(c.x, c.x, c.gate_up, c.down, NULL, &c.y),
                                 "tsr_expert_mlp: ids is f32, but experts takes i64 and i32"));
    options.capacity = -1;
    TSR_TRY(layer_expect_refusal(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, &options, &c.y),
                                 "tsr_expert_mlp: capacity is -1, but must be 0, for no limit, or more"));
    options.capacity = 1;
    TSR_TRY(tsr_redistribute_to(c.x, "S(0)", &cut));
    TSR_TRY(layer_expect_refusal_with(tsr_expert_mlp(cut, c.ids, c.gate_up, c.down, &options, &c.y),
                                      "experts needs whole"));
    options.activation = (tsr_expert_mlp_activation)9;
    TSR_TRY(layer_expect_refusal(tsr_expert_mlp(c.x, c.ids, c.gate_up, c.down, &options, &c.y),
                                 "tsr_expert_mlp: activation is 9, but must be a tsr_expert_mlp_activation"));
    tsr_dtensor_destroy(wrong);
    tsr_dtensor_destroy(cut);
    clear(&c);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void operands_and_options_are_checked(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_compute_the_formula),
        cmocka_unit_test(bits_do_not_depend_on_how_experts_are_cut),
        cmocka_unit_test(capacities_and_ids_beyond_do_as_told),
        cmocka_unit_test(forms_of_a_function_agree),
        cmocka_unit_test(one_program_serves_any_number_of_tokens),
        cmocka_unit_test(operands_and_options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
