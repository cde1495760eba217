/* Modules by plans: whatever the style, forward and gradients are those of one rank. */
#include "layers.h"
#include "running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof array[0])

enum { ROWS = 5, IN = 6, OUT = 10, HEADS = 6, KEYS = 2, HEAD = 4 };

/* A module that is being recorded by a plan. */
typedef struct recorded {
    tsr_program *p;
    const tsr_mesh *mesh;
    const tsr_parallel_plan *plan;
    size_t count;
    tsr_value by[16]; /* gradients are taken by these */
} recorded;

/* A module, and the rule of "w.m". */
typedef struct module {
    const char *style;
    void (*record)(recorded *r);
    const char *x; /* placements of the input where there are several ranks */
    const char *mesh;
    double tolerance;
} module;

static const module *current(const recorded *r);

static tsr_value apply(const recorded *r, const char *op, tsr_value a, tsr_value b, tsr_value c)
{
    return tsr_program_apply(r->p, op, 0, NULL, (const tsr_value[]){a, b, c, TSR_NONE}, NULL);
}

static tsr_value input(recorded *r, tsr_dtype dtype, int64_t columns, const char *placements)
{
    const int64_t shape[] = {ROWS, columns};
    const tsr_value x =
        tsr_input(r->p, "x", r->mesh, dtype, columns ? 2 : 1, shape, tsr_mesh_count(r->mesh) > 1 ? placements : NULL);
    if (dtype == TSR_F64)
        r->by[r->count++] = x;
    return x;
}

/* Where tokens are cut over another mesh dim, each parameter has terms along that. */
static tsr_value parameter(recorded *r, const char *name, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    const tsr_value w =
        tsr_parallel_plan_parameter(r->plan, r->p, name, r->mesh, TSR_F64, columns ? 2 : 1, shape, &r->by[r->count++]);
    return strncmp(current(r)->mesh, "dp", 2) == 0 ? apply(r, "vary", w, TSR_NONE, TSR_NONE) : w;
}

/* A linear module with a bias, where `bias` is not NULL. */
static tsr_value linear(recorded *r, const char *name, tsr_value x, int64_t out, int64_t in)
{
    char text[64];
    const tsr_value v = tsr_parallel_plan_input(r->plan, r->p, name, x);
    snprintf(text, sizeof text, "%s.weight", name);
    const tsr_value w = parameter(r, text, out, in);
    snprintf(text, sizeof text, "%s.bias", name);
    const tsr_value y = apply(r, "linear", v, w, parameter(r, text, out, 0));
    return tsr_parallel_plan_output(r->plan, r->p, name, y, NULL);
}

/* Outputs y, the sum of its squares, and gradients of that. */
static void finish(recorded *r, tsr_value y)
{
    tsr_value gradients[16];
    const tsr_value sum = apply(r, "sum", apply(r, "square", y, TSR_NONE, TSR_NONE), TSR_NONE, TSR_NONE);
    const tsr_value loss = apply(r, "all_reduce", sum, TSR_NONE, TSR_NONE);
    tsr_gradients(r->p, loss, r->count, r->by, gradients);
    tsr_output(r->p, "y", y, NULL);
    tsr_output(r->p, "loss", loss, NULL);
    for (size_t i = 0; i < r->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "d.%zu", i);
        tsr_output(r->p, name, gradients[i], NULL);
    }
}

static void record_linear(recorded *r)
{
    finish(r, linear(r, "w.m", input(r, TSR_F64, IN, current(r)->x), OUT, IN));
}

static void record_embedding(recorded *r)
{
    const tsr_value ids = input(r, TSR_I64, 0, NULL), x = tsr_parallel_plan_input(r->plan, r->p, "w.m", ids);
    const tsr_value y = apply(r, "embedding", parameter(r, "w.m.weight", 11, IN), x, TSR_NONE);
    finish(r, tsr_parallel_plan_output(r->plan, r->p, "w.m", y, NULL));
}

/* A scale of features, as of a norm. */
static void record_scale(recorded *r)
{
    const tsr_value x = tsr_parallel_plan_input(r->plan, r->p, "w.m", input(r, TSR_F64, IN, current(r)->x));
    const tsr_value y = apply(r, "mul", x, parameter(r, "w.m.weight", IN, 0), TSR_NONE);
    finish(r, tsr_parallel_plan_output(r->plan, r->p, "w.m", y, NULL));
}

/* "w.m" has modules "up" and "down", which leaves terms. */
static void record_terms(recorded *r)
{
    const tsr_value up = linear(r, "w.up", input(r, TSR_F64, IN, current(r)->x), OUT, IN);
    const tsr_value y = apply(r, "linear", up, parameter(r, "w.down.weight", IN, OUT), TSR_NONE);
    finish(r, tsr_parallel_plan_output(r->plan, r->p, "w.m", y, NULL));
}

/* All features of a latent but the last go into "up"; the last scales what is cut, too. */
static void record_latent(recorded *r)
{
    tsr_value last;
    const tsr_value x = input(r, TSR_F64, IN, current(r)->x);
    const tsr_value y = apply(r, "linear", tsr_parallel_plan_input(r->plan, r->p, "w.m", x),
                              parameter(r, "w.m.weight", 4, IN), TSR_NONE);
    const tsr_value first = tsr_parallel_plan_output(r->plan, r->p, "w.m", y, &last);
    finish(r, apply(r, "mul", linear(r, "w.up", first, OUT, 3), last, TSR_NONE));
}

static tsr_value reshape(const recorded *r, tsr_value x, int64_t heads, int64_t width)
{
    const int64_t shape[] = {ROWS, heads, width};
    const tsr_attribute attribute =
        tsr_attribute_ints("shape", heads ? 3 : 2, heads ? shape : (int64_t[]){ROWS, width});
    return tsr_program_apply(r->p, "reshape", 1, &attribute, (const tsr_value[]){x, TSR_NONE}, NULL);
}

static tsr_value swap(const recorded *r, tsr_value x)
{
    const tsr_attribute dims[] = {tsr_attribute_int("dim0", 0), tsr_attribute_int("dim1", 1)};
    return tsr_program_apply(r->p, "transpose", 2, dims, (const tsr_value[]){x, TSR_NONE}, NULL);
}

static tsr_value attend(const recorded *r, tsr_value q, tsr_value k, tsr_value v, int64_t keys)
{
    const tsr_attribute attributes[] = {tsr_attribute_int("causal", 1), tsr_attribute_float("scale", 1.0 / 64)};
    const tsr_value operands[] = {swap(r, reshape(r, q, HEADS, HEAD)), swap(r, reshape(r, k, keys, HEAD)),
                                  swap(r, reshape(r, v, keys, HEAD)), TSR_NONE};
    const tsr_value y = tsr_program_apply(r->p, "attention", 2, attributes, operands, NULL);
    return reshape(r, swap(r, y), 0, (int64_t)HEADS * HEAD);
}

/* Attention with fewer key/value heads than heads. */
static void record_attention(recorded *r)
{
    const tsr_value x = input(r, TSR_F64, IN, NULL);
    const tsr_value q = linear(r, "w.q_proj", x, HEADS * HEAD, IN), k = linear(r, "w.k_proj", x, KEYS * HEAD, IN);
    const tsr_value y = attend(r, q, k, linear(r, "w.v_proj", x, KEYS * HEAD, IN), KEYS);
    finish(r, linear(r, "w.o_proj", y, IN, HEADS * HEAD));
}

static tsr_value part(const recorded *r, tsr_value x, int64_t index)
{
    const tsr_attribute range[] = {tsr_attribute_int("dim", 1), tsr_attribute_int("start", index * HEADS * HEAD),
                                   tsr_attribute_int("length", (int64_t)HEADS * HEAD)};
    return tsr_program_apply(r->p, "narrow", 3, range, (const tsr_value[]){x, TSR_NONE}, NULL);
}

/* PyTorch's MultiheadAttention. */
static void record_multihead(recorded *r)
{
    const tsr_value x = tsr_parallel_plan_input(r->plan, r->p, "w.in_proj_weight", input(r, TSR_F64, IN, NULL));
    const tsr_value w = parameter(r, "w.in_proj_weight", (int64_t)3 * HEADS * HEAD, IN);
    const tsr_value qkv = apply(r, "linear", x, w, parameter(r, "w.in_proj_bias", (int64_t)3 * HEADS * HEAD, 0));
    const tsr_value y = attend(r, part(r, qkv, 0), part(r, qkv, 1), part(r, qkv, 2), HEADS);
    finish(r, linear(r, "w.out_proj", y, IN, HEADS * HEAD));
}

enum { EXPERTS = 5, INNER = 7, SLOTS = 2 };

static tsr_value stacked(recorded *r, const char *name, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {EXPERTS, rows, columns};
    return tsr_parallel_plan_parameter(r->plan, r->p, name, r->mesh, TSR_F64, 3, shape, &r->by[r->count++]);
}

/* Experts chosen by a router; those behind the last return their tokens, by a module of their
 * own. */
static void record_experts(recorded *r)
{
    tsr_expert_mlp_options options = TSR_EXPERT_MLP_OPTIONS_INIT;
    tsr_value ids;
    const bool has_identity = strcmp(current(r)->style, "moe_identity_expert") == 0;
    const char *const m = has_identity ? "w.experts" : "w.m";
    const tsr_value x = input(r, TSR_F64, IN, NULL);
    const tsr_value logits = apply(r, "linear", x, parameter(r, "w.router.weight", EXPERTS, IN), TSR_NONE);
    const tsr_value chosen = tsr_op_topk(r->p, tsr_op_softmax(r->p, logits, 1), SLOTS, 1, &ids);
    const tsr_value weights = tsr_parallel_plan_input(r->plan, r->p, m, chosen);
    const tsr_value tokens = tsr_parallel_plan_input(r->plan, r->p, m, x);
    const char *const up = has_identity ? "w.experts.gate_up_proj" : "w.m.gate_up_proj", *const down =
                                                                                             has_identity
                                                                                                 ? "w.experts.down_proj"
                                                                                                 : "w.m.down_proj";
    options.activation = TSR_EXPERT_MLP_GELU_TANH;
    tsr_value y = tsr_op_combine(
        r->p, tsr_op_experts(r->p, tokens, ids, stacked(r, up, 2 * INNER, IN), stacked(r, down, IN, INNER), &options),
        weights);
    if (has_identity)
        y = apply(r, "add", y, tsr_parallel_plan_input(r->plan, r->p, "w.m", tokens), TSR_NONE);
    finish(r, tsr_parallel_plan_output(r->plan, r->p, m, y, NULL));
}

/* The module that this rank records. */
static _Thread_local const module *recording;

static const module *current(const recorded *r)
{
    (void)r;
    return recording;
}

static void record(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    recording = arg;
    tsr_parallel_plan *plan;
    const tsr_parallel_rule rules[] = {
        {"w.m", recording->style},
        {"w.up", "colwise"},
        {"w.down", "S(1)"},
        {"w.q_proj", "colwise"},
        {"w.k_proj", "colwise"},
        {"w.v_proj", "colwise"},
        {"w.o_proj", "rowwise"},
        {"w.out_proj", "rowwise"},
        {"w.in_proj_weight", "colwise"},
        {"w.in_proj_bias", "colwise"},
        {"w.m.gate_up_proj", strcmp(recording->style, "moe_tp_experts") ? "grouped_gemm" : "packed_colwise"},
        {"w.m.down_proj", strcmp(recording->style, "moe_tp_experts") ? "grouped_gemm" : "rowwise"},
        {"w.experts", "moe_tp_experts"},
        {"w.experts.gate_up_proj", "packed_colwise"},
        {"w.experts.down_proj", "rowwise"},
    };
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    options.group = "group";
    options.heads = HEADS;
    options.kv_heads = recording->record == record_multihead ? HEADS : KEYS;
    options.head_dim = HEAD;
    options.rope_dim = 1;
    recorded r = {.p = p, .mesh = mesh};
    if (tsr_parallel_plan_create(tsr_mesh_context(mesh), COUNT(rules), rules, &options, &plan) != TSR_OK)
        return;
    r.plan = plan;
    recording->record(&r);
    tsr_parallel_plan_destroy(plan);
}

static tsr_status run_module(tsr_comm *comm, void *arg)
{
    static _Thread_local ran got, wanted;
    const module *const m = arg;
    tsr_mesh *mesh, *one;
    tsr_comm *self;
    TSR_TRY(tsr_mesh_parse(comm, NULL, m->mesh, &mesh));
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm), 0, &self));
    TSR_TRY(tsr_mesh_parse(self, NULL, "1", &one));
    TSR_TRY(ran_run(self, one, record, m, 11, &wanted));
    TSR_TRY(ran_run(comm, mesh, record, m, 11, &got));
    EXPECT(got.count == wanted.count && got.count > 30, "%zu values instead of %zu", got.count, wanted.count);
    for (size_t i = 0; i < got.count; i++)
        TSR_TRY(support_expect(m->style, (int64_t)i, got.values[i], wanted.values[i], m->tolerance));
    tsr_mesh_destroy(one);
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(self);
    return TSR_OK;
}

/* Runs a module on 1 to 8 ranks. */
static void run_everywhere(module m)
{
    for (int ranks = 1; ranks <= 8; ranks++) {
        char mesh[16];
        snprintf(mesh, sizeof mesh, "tp=%d", ranks);
        m.mesh = mesh;
        layers_run(ranks, run_module, &m);
    }
}

static void every_style_computes_what_one_rank_does(void **state)
{
    static const module all[] = {
        {.style = "colwise", record_linear},
        {.style = "colwise_gather_output", record_linear},
        {.style = "colwise_rep", record_linear},
        {.style = "colwise;unit=3", record_linear},
        {.style = "rowwise", record_linear, "S(1)"},
        {.style = "rowwise_split_input", record_linear},
        {.style = "rowwise_rep", record_linear},
        {.style = "rowwise_split_input;unit=4", record_linear},
        {.style = "packed_colwise", record_linear},
        {.style = "packed_rowwise", record_linear, "S(1;interleave=2)"},
        {.style = "embedding_rowwise", record_embedding},
        {.style = "embedding_colwise", record_embedding},
        {.style = "sequence_parallel", record_scale},
        {.style = "replicate", record_scale},
        {.style = "replicated_with_grad_allreduce", record_scale, "S(0)"},
        {.style = "all_reduce", record_terms},
        {.style = "mla_kv_a_proj", record_latent},
        {.style = "local_params", record_linear},
        {.style = "moe_tp_experts", record_experts, .tolerance = 1e-10},
        {.style = "ep_dispatch_experts", record_experts, .tolerance = 1e-10},
        {.style = "moe_identity_expert", record_experts, .tolerance = 1e-10},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++)
        run_everywhere(all[i]);
}

static void tokens_may_be_cut_as_well(void **state)
{
    static const module all[] = {
        {.style = "colwise", record_linear, "S(0),R"},
        {.style = "colwise_gather_output", record_linear, "S(0),R"},
        {.style = "rowwise", record_linear, "S(0),S(1)"},
        {.style = "rowwise_split_input", record_linear, "S(0),R"},
        {.style = "packed_colwise", record_linear, "S(0),R"},
        {.style = "replicated_with_grad_allreduce", record_scale, "S(0),S(0)"},
        {.style = "all_reduce", record_terms, "S(0),R"},
        {.style = "mla_kv_a_proj", record_latent, "S(0),R"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        module m = all[i];
        m.mesh = "dp=2,tp=2";
        layers_run(4, run_module, &m);
        m.mesh = "dp=3,tp=2";
        layers_run(6, run_module, &m);
    }
}

static void attention_is_cut_at_heads(void **state)
{
    module m = {.style = "replicate", record_attention, .tolerance = 1e-10};
    (void)state;
    run_everywhere(m);
    m.mesh = "kv=2,group=2";
    layers_run(4, run_module, &m);
    m.mesh = "kv=2,group=3";
    layers_run(6, run_module, &m);
}

static void fused_attention_is_cut_in_each_part(void **state)
{
    const module m = {.style = "replicate", record_multihead, .tolerance = 1e-10};
    (void)state;
    run_everywhere(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_style_computes_what_one_rank_does),
        cmocka_unit_test(tokens_may_be_cut_as_well),
        cmocka_unit_test(attention_is_cut_at_heads),
        cmocka_unit_test(fused_attention_is_cut_in_each_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
