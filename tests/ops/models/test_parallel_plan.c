/* Plans for models: patterns, styles, layouts, heads, and checks against a model's names. */
#include "counted_memory.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static tsr_context *context;

static int open_context(void **state)
{
    (void)state;
    return tsr_context_create(NULL, &context) != TSR_OK;
}

static int close_context(void **state)
{
    (void)state;
    tsr_context_destroy(context);
    return 0;
}

static tsr_mesh *mesh_of(const char *text)
{
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_parse(NULL, context, text, &mesh), TSR_OK);
    return mesh;
}

static tsr_parallel_plan *plan_of(size_t count, const tsr_parallel_rule *rules,
                                  const tsr_parallel_plan_options *options)
{
    tsr_parallel_plan *plan = NULL;
    const tsr_status status = tsr_parallel_plan_create(context, count, rules, options, &plan);
    if (status != TSR_OK)
        print_message("%s\n", tsr_status_message());
    assert_int_equal(status, TSR_OK);
    return plan;
}

static void expect_sentence(tsr_status status, tsr_status wanted, const char *part)
{
    assert_int_equal(status, wanted);
    if (!strstr(tsr_status_message(), part))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), part);
}

/* A parameter of a plan, and the placements that it shall have on a mesh. */
typedef struct expectation {
    const char *name;
    int ndim;
    int64_t shape[3];
    const char *placements;
} expectation;

static void expect_layouts(const tsr_parallel_plan *plan, const char *on, size_t count, const expectation *all)
{
    tsr_mesh *const mesh = mesh_of(on);
    for (size_t i = 0; i < count; i++) {
        tsr_layout *got = NULL, *wanted = NULL;
        const expectation *const e = &all[i];
        const tsr_status status = tsr_parallel_plan_layout(plan, e->name, mesh, e->ndim, e->shape, TSR_F32, &got);
        if (status != TSR_OK)
            fail_msg("%s on %s: %s", e->name, on, tsr_status_message());
        assert_int_equal(tsr_layout_parse(mesh, e->placements, e->ndim, e->shape, TSR_F32, &wanted), TSR_OK);
        char text[128];
        tsr_layout_print(got, text, sizeof text);
        if (!tsr_layout_equal(got, wanted) || strcmp(text, e->placements) != 0)
            fail_msg("%s on %s: \"%s\" instead of \"%s\"", e->name, on, text, e->placements);
        tsr_layout_destroy(got);
        tsr_layout_destroy(wanted);
    }
    tsr_mesh_destroy(mesh);
}

static tsr_status ask(const tsr_parallel_plan *plan, const char *on, const char *name, int ndim, int64_t rows,
                      int64_t columns)
{
    tsr_layout *layout = NULL;
    tsr_mesh *const mesh = mesh_of(on);
    const int64_t shape[] = {rows, columns};
    const tsr_status status = tsr_parallel_plan_layout(plan, name, mesh, ndim, shape, TSR_F32, &layout);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

/* One module for each style. */
static const tsr_parallel_rule every_style[] = {
    {"colwise", "colwise"},
    {"colwise_gather_output", "colwise_gather_output"},
    {"colwise_rep", "colwise_rep"},
    {"rowwise", "rowwise"},
    {"rowwise_split_input", "rowwise_split_input"},
    {"rowwise_rep", "rowwise_rep"},
    {"packed_colwise", "packed_colwise"},
    {"packed_rowwise", "packed_rowwise"},
    {"embedding_rowwise", "embedding_rowwise"},
    {"embedding_colwise", "embedding_colwise"},
    {"sequence_parallel", "sequence_parallel"},
    {"replicate", "replicate"},
    {"replicated_with_grad_allreduce", "replicated_with_grad_allreduce"},
    {"all_reduce", "all_reduce"},
    {"mla_kv_a_proj", "mla_kv_a_proj"},
    {"local_params", "local_params"},
    {"moe_tp_experts", "moe_tp_experts"},
    {"moe_identity_expert", "moe_identity_expert"},
    {"grouped_gemm", "grouped_gemm"},
    {"ep_dispatch_experts", "ep_dispatch_experts"},
    {"placements", "S(1;balanced)"},
    {"sizes", "R,S(0;unit=2)"},
};

static void styles_cut_as_they_say(void **state)
{
    static const expectation all[] = {
        {"colwise.weight", 2, {10, 7}, "S(0)"},
        {"colwise.bias", 1, {10}, "S(0)"},
        {"colwise.down_proj", 3, {4, 10, 7}, "S(1)"},
        {"colwise_gather_output.weight", 2, {10, 7}, "S(0)"},
        {"colwise_gather_output.bias", 1, {10}, "S(0)"},
        {"colwise_rep.weight", 2, {10, 7}, "S(0)"},
        {"rowwise.weight", 2, {10, 7}, "S(1)"},
        {"rowwise.bias", 1, {10}, "R"},
        {"rowwise.down_proj", 3, {4, 10, 7}, "S(2)"},
        {"rowwise_split_input.weight", 2, {10, 7}, "S(1)"},
        {"rowwise_rep.weight", 2, {10, 7}, "S(1)"},
        {"packed_colwise.weight", 2, {10, 7}, "S(0;interleave=2)"},
        {"packed_colwise.bias", 1, {10}, "S(0;interleave=2)"},
        {"packed_colwise.gate_up_proj", 3, {4, 10, 7}, "S(1;interleave=2)"},
        {"packed_rowwise.weight", 2, {7, 10}, "S(1;interleave=2)"},
        {"packed_rowwise.bias", 1, {7}, "R"},
        {"packed_rowwise.gate_up_proj", 3, {4, 7, 10}, "S(2;interleave=2)"},
        {"embedding_rowwise.weight", 2, {11, 6}, "S(0)"},
        {"embedding_colwise.weight", 2, {11, 6}, "S(1)"},
        {"sequence_parallel.weight", 1, {7}, "R"},
        {"replicate.weight", 2, {10, 7}, "R"},
        {"replicated_with_grad_allreduce.weight", 1, {7}, "R"},
        {"all_reduce.weight", 2, {10, 7}, "R"},
        {"mla_kv_a_proj.weight", 2, {10, 7}, "R"},
        {"local_params.sinks", 1, {7}, "R"},
        {"local_params.scale", 0, {0}, "R"},
        {"placements.weight", 2, {10, 7}, "S(1;balanced)"},
        {"no_rule.weight", 2, {10, 7}, "R"},
        {"weight", 2, {10, 7}, "R"},
    };
    (void)state;
    tsr_parallel_plan *const plan = plan_of(COUNT(every_style), every_style, NULL);
    for (int ranks = 1; ranks <= 8; ranks++) {
        char on[16];
        snprintf(on, sizeof on, ranks % 2 ? "tp=%d" : "%d", ranks);
        expect_layouts(plan, on, COUNT(all), all);
    }
    tsr_parallel_plan_destroy(plan);
}

static void other_mesh_dims_are_whole(void **state)
{
    static const expectation dp_tp[] = {
        {"colwise.weight", 2, {10, 7}, "R,S(0)"},
        {"rowwise.weight", 2, {10, 7}, "R,S(1)"},
        {"sizes.weight", 2, {10, 7}, "R,S(0;unit=2)"},
    };
    static const expectation tp_dp[] = {{"colwise.weight", 2, {10, 7}, "S(0),R"}};
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    (void)state;
    tsr_parallel_plan *plan = plan_of(COUNT(every_style), every_style, NULL);
    expect_layouts(plan, "dp=2,tp=3", COUNT(dp_tp), dp_tp);
    expect_layouts(plan, "tp=3,dp=2", COUNT(tp_dp), tp_dp);
    expect_sentence(ask(plan, "2x3", "colwise.weight", 2, 10, 7), TSR_ERROR_ARGUMENT, "mesh 2x3 has no dim \"tp\"");
    expect_sentence(ask(plan, "tp=3", "sizes.weight", 2, 10, 7), TSR_ERROR_ARGUMENT,
                    "there are 2 placements for 1 mesh dims");
    tsr_parallel_plan_destroy(plan);
    options.dim = "x";
    plan = plan_of(COUNT(every_style), every_style, &options);
    expect_layouts(plan, "x=3,tp=2", COUNT(tp_dp), tp_dp);
    expect_sentence(ask(plan, "tp=3", "colwise.weight", 2, 10, 7), TSR_ERROR_ARGUMENT, "mesh tp=3 has no dim \"x\"");
    tsr_parallel_plan_destroy(plan);
}

static void experts_are_refused_where_they_are_used(void **state)
{
    static const char *const names[] = {"moe_tp_experts", "moe_identity_expert", "grouped_gemm", "ep_dispatch_experts"};
    (void)state;
    tsr_parallel_plan *const plan = plan_of(COUNT(every_style), every_style, NULL);
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[64];
        tsr_parallel_module module;
        snprintf(name, sizeof name, "%s.weight", names[i]);
        expect_sentence(ask(plan, "tp=2", name, 2, 10, 7), TSR_ERROR_UNSUPPORTED, names[i]);
        expect_sentence(tsr_parallel_plan_module(plan, names[i], &module), TSR_ERROR_UNSUPPORTED,
                        "spreads experts over ranks");
    }
    tsr_parallel_plan_destroy(plan);
}

static void modules_do_as_their_style_says(void **state)
{
    static const struct {
        const char *name;
        tsr_parallel_input input;
        tsr_parallel_output output;
        int varies;
    } all[] = {
        {"colwise", TSR_PARALLEL_INPUT_WHOLE, TSR_PARALLEL_OUTPUT_AS_IS, 0},
        {"colwise_gather_output", TSR_PARALLEL_INPUT_WHOLE, TSR_PARALLEL_OUTPUT_GATHER, 0},
        {"colwise_rep", TSR_PARALLEL_INPUT_WHOLE, TSR_PARALLEL_OUTPUT_GATHER, 0},
        {"rowwise", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"rowwise_split_input", TSR_PARALLEL_INPUT_SPLIT, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"rowwise_rep", TSR_PARALLEL_INPUT_SPLIT, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"packed_colwise", TSR_PARALLEL_INPUT_WHOLE, TSR_PARALLEL_OUTPUT_AS_IS, 0},
        {"packed_rowwise", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"embedding_rowwise", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"embedding_colwise", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_GATHER, 0},
        {"sequence_parallel", TSR_PARALLEL_INPUT_SEQUENCE, TSR_PARALLEL_OUTPUT_AS_IS, 1},
        {"replicate", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_AS_IS, 0},
        {"replicated_with_grad_allreduce", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_AS_IS, 1},
        {"all_reduce", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"mla_kv_a_proj", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_LAST, 0},
        {"local_params", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_AS_IS, 0},
        {"placements", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_AS_IS, 0},
    };
    tsr_parallel_module module;
    (void)state;
    tsr_parallel_plan *const plan = plan_of(COUNT(every_style), every_style, NULL);
    for (size_t i = 0; i < COUNT(all); i++) {
        assert_int_equal(tsr_parallel_plan_module(plan, all[i].name, &module), TSR_OK);
        assert_string_equal(module.rule->pattern, all[i].name);
        assert_int_equal(module.input, all[i].input);
        assert_int_equal(module.output, all[i].output);
        assert_int_equal(module.varies, all[i].varies);
    }
    assert_int_equal(tsr_parallel_plan_module(plan, "colwise.inner", &module), TSR_OK);
    assert_null(module.rule);
    assert_int_equal(module.input, TSR_PARALLEL_INPUT_AS_IS);
    expect_sentence(tsr_parallel_plan_module(plan, NULL, &module), TSR_ERROR_ARGUMENT, "name is NULL");
    expect_sentence(tsr_parallel_plan_module(NULL, "a", &module), TSR_ERROR_ARGUMENT, "plan is NULL");
    tsr_parallel_plan_destroy(plan);
}

/* "": no rule. */
static void expect_rule(const tsr_parallel_plan *plan, const char *name, const char *style)
{
    const tsr_parallel_rule *const rule = tsr_parallel_plan_find(plan, name);
    if (strcmp(rule ? rule->style : "", style) != 0)
        fail_msg("%s follows \"%s\" instead of \"%s\"", name, rule ? rule->style : "", style);
}

static void the_nearest_rule_counts(void **state)
{
    static const tsr_parallel_rule rules[] = {
        {"layers.*.q", "colwise"},         {"layers.0.q", "replicate"},       {"layers.*.q.bias", "R"},
        {"layers.*.experts.*.w1", "S(0)"}, {"layers.1.experts.*.w1", "S(1)"}, {"layers.*.experts.1.w1", "R"},
        {"head", "colwise_rep"},
    };
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    (void)state;
    options.prefix = "model.";
    tsr_parallel_plan *const plan = plan_of(COUNT(rules), rules, &options);
    assert_int_equal(tsr_parallel_plan_count(plan), COUNT(rules));
    assert_string_equal(tsr_parallel_plan_get(plan, 0)->pattern, "model.layers.*.q");
    assert_null(tsr_parallel_plan_get(plan, COUNT(rules)));
    expect_rule(plan, "model.layers.3.q.weight", "colwise");
    expect_rule(plan, "model.layers.12.q.weight", "colwise");
    expect_rule(plan, "model.layers.3.q.bias", "R");
    expect_rule(plan, "model.layers.0.q.weight", "replicate");
    expect_rule(plan, "model.layers.0.q.bias", "R");
    expect_rule(plan, "model.layers.3.q", "colwise");
    expect_rule(plan, "model.layers.2.experts.2.w1", "S(0)");
    expect_rule(plan, "model.layers.1.experts.1.w1", "S(1)");
    expect_rule(plan, "model.layers.2.experts.1.w1", "R");
    expect_rule(plan, "model.layers.x.q.weight", "");
    expect_rule(plan, "model.layers.3.q.a.weight", "");
    expect_rule(plan, "model.layers.3.qq.weight", "");
    expect_rule(plan, "layers.3.q.weight", "");
    expect_rule(plan, "model.layers.*", "");
    expect_rule(plan, "model.head.weight", "colwise_rep");
    expect_rule(plan, "", "");
    expect_rule(plan, ".", "");
    assert_null(tsr_parallel_plan_find(plan, NULL));
    tsr_parallel_plan_destroy(plan);
    tsr_parallel_plan_destroy(NULL);
    assert_int_equal(tsr_parallel_plan_count(NULL), 0);
    assert_null(tsr_parallel_plan_get(NULL, 0));
}

/* Options with heads. */
static tsr_parallel_plan_options heads_of(int64_t heads, int64_t kv_heads, int64_t head_dim)
{
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    options.heads = heads;
    options.kv_heads = kv_heads;
    options.head_dim = head_dim;
    options.group = "group";
    return options;
}

static const tsr_parallel_rule attention_rules[] = {
    {"*.q_proj", "colwise"},
    {"*.k_proj", "colwise"},
    {"*.v_proj", "colwise"},
    {"*.o_proj", "rowwise"},
    {"*.up", "colwise"},
    {"*.qkv_proj", "colwise"},
    {"*.query_key_value", "colwise"},
    {"*.attention.dense", "rowwise"},
    {"fixed.q_proj", "colwise;unit=5"},
    {"whole.qkv_proj", "colwise_gather_output"},
};

static void cuts_fall_between_heads(void **state)
{
    static const expectation on_one[] = {
        {"0.q_proj.weight", 2, {24, 5}, "S(0;unit=12)"},
        {"0.q_proj.bias", 1, {24}, "S(0;unit=12)"},
        {"0.k_proj.weight", 2, {8, 5}, "S(0;unit=4)"},
        {"0.v_proj.bias", 1, {8}, "S(0;unit=4)"},
        {"0.o_proj.weight", 2, {5, 24}, "S(1;unit=12)"},
        {"0.o_proj.bias", 1, {5}, "R"},
        {"0.up.weight", 2, {9, 5}, "S(0)"},
        {"0.query_key_value.weight", 2, {40, 5}, "S(0;unit=20)"},
        {"0.attention.dense.weight", 2, {5, 24}, "S(1;unit=12)"},
        {"fixed.q_proj.weight", 2, {25, 5}, "S(0;unit=5)"},
        {"whole.qkv_proj.weight", 2, {41, 5}, "S(0)"},
    };
    static const expectation on_two[] = {
        {"0.q_proj.weight", 2, {24, 5}, "S(0;unit=12),S(0;unit=4)"},
        {"0.k_proj.weight", 2, {8, 5}, "S(0;unit=4),R"},
        {"0.v_proj.bias", 1, {8}, "S(0;unit=4),R"},
        {"0.o_proj.weight", 2, {5, 24}, "S(1;unit=12),S(1;unit=4)"},
        {"0.o_proj.bias", 1, {5}, "R,R"},
        {"0.up.weight", 2, {9, 5}, "S(0),S(0)"},
    };
    (void)state;
    const tsr_parallel_plan_options options = heads_of(6, 2, 4);
    tsr_parallel_plan *const plan = plan_of(COUNT(attention_rules), attention_rules, &options);
    for (int ranks = 1; ranks <= 8; ranks++) {
        char on[16];
        snprintf(on, sizeof on, "tp=%d", ranks);
        expect_layouts(plan, on, COUNT(on_one), on_one);
    }
    expect_layouts(plan, "kv=2,group=3", COUNT(on_two), on_two);
    expect_layouts(plan, "kv=3,group=2", COUNT(on_two), on_two);
    expect_sentence(ask(plan, "tp=2", "0.q_proj.weight", 2, 25, 5), TSR_ERROR_ARGUMENT,
                    "dim 0 has 25 features, but 6 heads of 4 have 24");
    expect_sentence(ask(plan, "tp=2", "0.k_proj.bias", 1, 9, 0), TSR_ERROR_ARGUMENT, "but 2 heads of 4 have 8");
    expect_sentence(ask(plan, "tp=2", "0.o_proj.weight", 2, 5, 23), TSR_ERROR_ARGUMENT, "dim 1 has 23 features");
    expect_sentence(ask(plan, "kv=1,group=2", "0.q_proj.weight", 2, 24, 5), TSR_ERROR_ARGUMENT,
                    "mesh dim 0 has 1 coordinates for 2 key/value heads");
    tsr_parallel_plan_destroy(plan);
}

static void fused_projections_are_cut_in_each_part(void **state)
{
    static const expectation grouped[] = {{"0.qkv_proj.weight", 2, {40, 5}, "S(0;blocks=24,8,8;unit=4)"}};
    static const tsr_parallel_rule rules[] = {
        {"attn.in_proj_weight", "colwise"}, {"attn.in_proj_bias", "colwise"}, {"attn.out_proj", "rowwise"}};
    static const tsr_parallel_rule written[] = {{"attn.in_proj_weight", "S(0;interleave=3)"},
                                                {"attn.in_proj_bias", "S(0;interleave=3)"},
                                                {"attn.out_proj", "rowwise"},
                                                {"fused", "colwise;interleave=3"}};
    static const expectation multihead[] = {{"attn.in_proj_weight", 2, {60, 20}, "S(0;interleave=3;unit=4)"},
                                            {"attn.in_proj_bias", 1, {60}, "S(0;interleave=3;unit=4)"},
                                            {"attn.out_proj.weight", 2, {20, 20}, "S(1;unit=4)"},
                                            {"attn.out_proj.bias", 1, {20}, "R"}};
    static const expectation plain[] = {{"attn.in_proj_weight", 2, {60, 20}, "S(0;interleave=3)"},
                                        {"attn.in_proj_bias", 1, {60}, "S(0;interleave=3)"},
                                        {"fused.bias", 1, {60}, "S(0;interleave=3)"},
                                        {"attn.out_proj.weight", 2, {20, 20}, "S(1)"}};
    (void)state;
    tsr_parallel_plan_options options = heads_of(6, 2, 4);
    tsr_parallel_plan *plan = plan_of(COUNT(attention_rules), attention_rules, &options);
    expect_layouts(plan, "tp=1", 1, grouped);
    expect_layouts(plan, "tp=2", 1, grouped);
    expect_sentence(ask(plan, "tp=3", "0.qkv_proj.weight", 2, 40, 5), TSR_ERROR_ARGUMENT,
                    "3 ranks do not divide 2 key/value heads");
    tsr_parallel_plan_destroy(plan);
    options = heads_of(5, 0, 4);
    plan = plan_of(COUNT(rules), rules, &options);
    for (int ranks = 1; ranks <= 8; ranks++) {
        char on[16];
        snprintf(on, sizeof on, "tp=%d", ranks);
        expect_layouts(plan, on, COUNT(multihead), multihead);
    }
    tsr_parallel_plan_destroy(plan);
    plan = plan_of(COUNT(written), written, NULL);
    expect_layouts(plan, "tp=3", COUNT(plain), plain);
    expect_sentence(ask(plan, "tp=2", "fused.weight", 2, 10, 5), TSR_ERROR_ARGUMENT,
                    "dim 0 has 10 features, which are not 3 equal parts");
    tsr_parallel_plan_destroy(plan);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tsr_parallel_plan *const plan = plan_of(COUNT(every_style), every_style, NULL);
    expect_sentence(ask(plan, "tp=2", "packed_colwise.weight", 2, 7, 5), TSR_ERROR_ARGUMENT,
                    "dim 0 has 7 features, which are not 2 equal parts");
    expect_sentence(ask(plan, "tp=2", "packed_rowwise.weight", 2, 7, 5), TSR_ERROR_ARGUMENT, "dim 1 has 5 features");
    expect_sentence(ask(plan, "tp=2", "embedding_colwise.weight", 1, 7, 0), TSR_ERROR_ARGUMENT,
                    "cuts a dim that a tensor of 1 dims does not have");
    expect_sentence(ask(plan, "tp=2", "colwise.scale", 0, 0, 0), TSR_ERROR_ARGUMENT, "a tensor of 0 dims");
    expect_sentence(ask(plan, "tp=2", "placements.bias", 1, 7, 0), TSR_ERROR_ARGUMENT,
                    "\"placements.bias\" (7), rule \"placements\": \"S(1;balanced)\": ");
    expect_sentence(ask(plan, "tp=2", "colwise.weight", 9, 7, 0), TSR_ERROR_ARGUMENT, "has 9 dims");
    expect_sentence(ask(plan, "tp=2", "colwise.weight", 2, -1, 5), TSR_ERROR_ARGUMENT, "\"colwise.weight\" (-1x5)");
    expect_sentence(ask(plan, "tp=2", NULL, 2, 7, 5), TSR_ERROR_ARGUMENT, "name is NULL");
    tsr_parallel_plan_destroy(plan);
}

static void refuse(const char *pattern, const char *style, const tsr_parallel_plan_options *options, const char *part)
{
    tsr_parallel_plan *plan = NULL;
    const tsr_parallel_rule rule = {pattern, style};
    expect_sentence(tsr_parallel_plan_create(context, 1, &rule, options, &plan), TSR_ERROR_ARGUMENT, part);
    assert_null(plan);
}

static void bad_plans_are_refused(void **state)
{
    char text[300];
    tsr_parallel_plan *plan = NULL;
    const tsr_parallel_rule twice[] = {{"a.*", "colwise"}, {"b", "rowwise"}, {"a.*", "rowwise"}};
    (void)state;
    memset(text, 'a', sizeof text);
    text[299] = '\0';
    refuse("a", "colwize", NULL, "style \"colwize\" is not known; there are colwise, colwise_gather_output");
    refuse("a", "", NULL, "is not known");
    refuse("a", "colwise_", NULL, "is not known");
    refuse("a", "colwise;unit=0", NULL, "rule \"a\": style \"colwise;unit=0\"");
    refuse("a", "colwise;", NULL, "style \"colwise;\"");
    refuse("a", "colwise;unit=2),S(1", NULL, "there is text behind the modifiers");
    refuse("a", "packed_colwise;interleave=3", NULL, "interleave");
    refuse("a", "replicate;unit=2", NULL, "takes no modifiers");
    refuse("a", "moe_tp_experts;unit=2", NULL, "takes no modifiers");
    refuse("a", "P", NULL, "not Partial");
    refuse("a", "S(0", NULL, "S(0");
    refuse("a", "Shard(0)", NULL, "S(0)");
    refuse("a", "Replicate()", NULL, "style \"Replicate()\"");
    refuse("", "R", NULL, "pattern \"\", character 1");
    refuse("a..b", "R", NULL, "character 3");
    refuse("a.b.", "R", NULL, "character 5");
    refuse("a.**.b", "R", NULL, "character 3");
    refuse("a.w*", "R", NULL, "character 3");
    refuse("a b", "R", NULL, "character 1");
    refuse(text, "R", NULL, "longer than 255 characters");
    refuse("a", text, NULL, "the style of rule 0");
    refuse(NULL, "R", NULL, "the pattern of rule 0 is NULL");
    refuse("a", NULL, NULL, "the style of rule 0 is NULL");
    tsr_parallel_plan_options options = heads_of(6, 4, 8);
    refuse("a", "R", &options, "6 heads are not a multiple of 4 kv_heads");
    options = heads_of(6, 2, 0);
    refuse("a", "R", &options, "head_dim is 0");
    options = heads_of(0, 2, 4);
    refuse("a", "R", &options, "heads is 0");
    options = heads_of(-1, 2, 4);
    refuse("a", "R", &options, "must be 0 or more");
    options = heads_of(INT64_MAX / 2, 1, 4);
    refuse("a", "R", &options, "overflows");
    options = heads_of(6, 2, 4);
    options.size = 0;
    refuse("a", "R", &options, "size");
    options = heads_of(6, 2, 4);
    options.prefix = text;
    refuse("a", "R", &options, "prefix included");
    expect_sentence(tsr_parallel_plan_create(context, 3, twice, NULL, &plan), TSR_ERROR_ARGUMENT,
                    "pattern \"a.*\" comes twice");
    expect_sentence(tsr_parallel_plan_create(context, 1, NULL, NULL, &plan), TSR_ERROR_ARGUMENT, "rules is NULL");
    expect_sentence(tsr_parallel_plan_create(NULL, 0, NULL, NULL, &plan), TSR_ERROR_ARGUMENT, "context is NULL");
    expect_sentence(tsr_parallel_plan_create(context, 0, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    expect_sentence(tsr_parallel_plan_create(context, TSR_PARALLEL_MOST_RULES + 1, twice, NULL, &plan),
                    TSR_ERROR_ARGUMENT, "are more than 4096");
}

static void a_check_finds_unused_patterns_and_free_parameters(void **state)
{
    static const tsr_parallel_parameter model[] = {
        {"model.embed.weight", TSR_F32, 2, {10, 4}},
        {"model.layers.0.attn.q_proj.weight", TSR_F32, 2, {8, 4}},
        {"model.layers.0.attn.o_proj.weight", TSR_F32, 2, {4, 8}},
        {"model.layers.0.norm.weight", TSR_F32, 1, {4}},
        {"model.layers.1.attn.q_proj.weight", TSR_F32, 2, {7, 4}},
    };
    static const tsr_parallel_rule good[] = {{"model.layers.*.attn.q_proj", "colwise"},
                                             {"model.layers.*.attn", "local_params"},
                                             {"model.layers.*.attn.o_proj.weight", "S(1)"}};
    static const tsr_parallel_rule short_of[] = {{"layers.*.attn.q_proj", "colwise"}};
    static const tsr_parallel_rule far[] = {{"vision.towers.projection", "colwise"}};
    char without[COUNT(model)];
    (void)state;
    tsr_parallel_plan *plan = plan_of(COUNT(good), good, NULL);
    tsr_mesh *const mesh = mesh_of("tp=3");
    assert_int_equal(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, without), TSR_OK);
    assert_memory_equal(without, ((const char[]){1, 0, 0, 1, 0}), sizeof without);
    assert_int_equal(tsr_parallel_plan_check(plan, NULL, COUNT(model), model, NULL), TSR_OK);
    expect_sentence(tsr_parallel_plan_check(plan, mesh, 2, model, without), TSR_ERROR_ARGUMENT,
                    "pattern \"model.layers.*.attn.o_proj.weight\" matches none of 2 parameters and their modules; "
                    "similar are \"model.layers.*.attn.q_proj.weight\"");
    expect_sentence(tsr_parallel_plan_check(plan, NULL, 0, NULL, NULL), TSR_ERROR_ARGUMENT, "none of 0 parameters");
    expect_sentence(tsr_parallel_plan_check(plan, NULL, 1, NULL, NULL), TSR_ERROR_ARGUMENT, "parameters is NULL");
    expect_sentence(tsr_parallel_plan_check(NULL, NULL, 1, model, NULL), TSR_ERROR_ARGUMENT, "plan is NULL");
    expect_sentence(tsr_parallel_plan_check(plan, NULL, 1, &(tsr_parallel_parameter){NULL, TSR_F32, 0, {0}}, NULL),
                    TSR_ERROR_ARGUMENT, "the name of parameter 0 is NULL");
    tsr_parallel_plan_destroy(plan);
    plan = plan_of(1, short_of, NULL);
    expect_sentence(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, NULL), TSR_ERROR_ARGUMENT,
                    "similar are \"model.layers.*.attn.q_proj\"");
    tsr_parallel_plan_destroy(plan);
    plan = plan_of(1, far, NULL);
    assert_int_equal(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, NULL), TSR_ERROR_ARGUMENT);
    assert_null(strstr(tsr_status_message(), "similar"));
    tsr_parallel_plan_destroy(plan);
    const tsr_parallel_plan_options options = heads_of(2, 2, 4);
    plan = plan_of(COUNT(good), good, &options);
    expect_sentence(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, NULL), TSR_ERROR_ARGUMENT,
                    "\"model.layers.1.attn.q_proj.weight\" (7x4)");
    tsr_parallel_plan_destroy(plan);
    tsr_mesh_destroy(mesh);
}

/* The n-th allocation fails, for every n. */
static void a_lack_of_memory_is_told(void **state)
{
    (void)state;
    tsr_parallel_plan_options options = heads_of(6, 2, 4);
    options.dim = "tp";
    size_t failed = 0;
    for (size_t nth = 1;; nth++) {
        counted_memory memory = {0};
        tsr_parallel_plan *plan = NULL;
        tsr_context *const counted = counted_context(&memory);
        memory.fail_at = memory.allocations + nth;
        const tsr_status status = tsr_parallel_plan_create(counted, COUNT(every_style), every_style, &options, &plan);
        assert_int_equal(status, plan ? TSR_OK : TSR_ERROR_MEMORY);
        const bool is_made = plan != NULL;
        tsr_parallel_plan_destroy(plan);
        tsr_context_destroy(counted);
        assert_nothing_leaked(&memory);
        if (is_made)
            break;
        failed++;
    }
    assert_true(failed >= 4);
}

/* A program that was given a value "x" of `ndim` dims, on a mesh. */
typedef struct recorded {
    tsr_mesh *mesh;
    tsr_program *program;
    tsr_value x;
} recorded;

static recorded record(const char *on, int ndim)
{
    const int64_t shape[] = {6, 4};
    recorded r = {.mesh = mesh_of(on)};
    assert_int_equal(tsr_program_create(context, &r.program), TSR_OK);
    r.x = tsr_input(r.program, "x", r.mesh, TSR_F32, ndim, shape, NULL);
    return r;
}

/* Expects that the program has failed, that its values are none, and forgets it. */
static void expect_failed(recorded *r, tsr_value made, tsr_status wanted, const char *part)
{
    const char *sentence;
    assert_int_equal(made, TSR_NONE);
    assert_int_equal(tsr_program_status(r->program, &sentence), wanted);
    if (!strstr(sentence, part))
        fail_msg("\"%s\" does not say \"%s\"", sentence, part);
    tsr_program_destroy(r->program);
    tsr_mesh_destroy(r->mesh);
}

static void errors_stick_to_programs(void **state)
{
    const int64_t shape[] = {7, 4};
    tsr_value parameter, last = 0;
    (void)state;
    tsr_parallel_plan *const plan = plan_of(COUNT(every_style), every_style, NULL);
    recorded r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_input(plan, r.program, "moe_tp_experts", r.x), TSR_ERROR_UNSUPPORTED,
                  "spreads experts");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_output(plan, r.program, "ep_dispatch_experts", r.x, NULL),
                  TSR_ERROR_UNSUPPORTED, "spreads experts");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_output(plan, r.program, "mla_kv_a_proj", r.x, NULL), TSR_ERROR_ARGUMENT,
                  "has two outputs");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_output(plan, r.program, "mla_kv_a_proj", r.x, &last), TSR_ERROR_ARGUMENT,
                  "rope_dim of the plan is 0");
    assert_int_equal(last, TSR_NONE);
    r = record("tp=2", 1);
    expect_failed(&r, tsr_parallel_plan_input(plan, r.program, "sequence_parallel", r.x), TSR_ERROR_ARGUMENT,
                  "the input has 1 dims, but must have 2 or more");
    r = record("2x2", 2);
    expect_failed(&r, tsr_parallel_plan_input(plan, r.program, "colwise", r.x), TSR_ERROR_ARGUMENT,
                  "has no dim \"tp\"");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_input(NULL, r.program, "colwise", r.x), TSR_ERROR_ARGUMENT, "plan is NULL");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_output(plan, r.program, NULL, r.x, NULL), TSR_ERROR_ARGUMENT, "module is NULL");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_input(plan, r.program, "colwise", 5), TSR_ERROR_ARGUMENT,
                  "value 5 is not one of the program's");
    r = record("tp=2", 2);
    expect_failed(
        &r, tsr_parallel_plan_parameter(plan, r.program, "packed_colwise.w", r.mesh, TSR_F32, 2, shape, &parameter),
        TSR_ERROR_ARGUMENT, "are not 2 equal parts");
    assert_int_equal(parameter, TSR_NONE);
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_parameter(plan, r.program, "colwise.w", r.mesh, TSR_F32, 9, shape, NULL),
                  TSR_ERROR_ARGUMENT, "ndim is 9");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_parameter(plan, r.program, "colwise.w", NULL, TSR_F32, 2, shape, NULL),
                  TSR_ERROR_ARGUMENT, "mesh is NULL");
    r = record("tp=2", 2);
    expect_failed(&r, tsr_parallel_plan_parameter(plan, r.program, "x", r.mesh, TSR_F32, 2, shape, NULL),
                  TSR_ERROR_ARGUMENT, "has a value \"x\" already");
    tsr_parallel_plan_destroy(plan);
}

static void modules_without_a_rule_pass_values_on(void **state)
{
    tsr_value last = 0;
    (void)state;
    tsr_parallel_plan *const plan = plan_of(COUNT(every_style), every_style, NULL);
    recorded r = record("tp=2", 2);
    assert_int_equal(tsr_parallel_plan_input(plan, r.program, "other", r.x), r.x);
    assert_int_equal(tsr_parallel_plan_output(plan, r.program, "other", r.x, &last), r.x);
    assert_int_equal(last, TSR_NONE);
    assert_int_equal(tsr_parallel_plan_input(plan, r.program, "replicate", r.x), r.x);
    assert_int_equal(tsr_parallel_plan_input(plan, NULL, "replicate", r.x), TSR_NONE);
    assert_int_equal(tsr_program_status(r.program, NULL), TSR_OK);
    tsr_program_destroy(r.program);
    tsr_mesh_destroy(r.mesh);
    tsr_parallel_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(styles_cut_as_they_say),
        cmocka_unit_test(other_mesh_dims_are_whole),
        cmocka_unit_test(experts_are_refused_where_they_are_used),
        cmocka_unit_test(modules_do_as_their_style_says),
        cmocka_unit_test(the_nearest_rule_counts),
        cmocka_unit_test(cuts_fall_between_heads),
        cmocka_unit_test(fused_projections_are_cut_in_each_part),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(bad_plans_are_refused),
        cmocka_unit_test(a_check_finds_unused_patterns_and_free_parameters),
        cmocka_unit_test(a_lack_of_memory_is_told),
        cmocka_unit_test(errors_stick_to_programs),
        cmocka_unit_test(modules_without_a_rule_pass_values_on),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
