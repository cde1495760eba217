/* Plans for models: patterns, styles, layouts and heads. */
#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof array[0])

/* A parameter of a plan, and the placements that it shall have on a mesh. */
typedef struct expectation {
    const char *name;
    int ndim;
    int64_t shape[3];
    const char *placements;
} expectation;

static void expect_layouts(const tsr_parallel_plan *plan, const char *on, size_t count, const expectation *all)
{
    tsr_mesh *const mesh = plans_mesh(on);
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
    tsr_parallel_plan *const plan = plans_make(PLANS_STYLES, plans_every_style, NULL);
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
    tsr_parallel_plan *plan = plans_make(PLANS_STYLES, plans_every_style, NULL);
    expect_layouts(plan, "dp=2,tp=3", COUNT(dp_tp), dp_tp);
    expect_layouts(plan, "tp=3,dp=2", COUNT(tp_dp), tp_dp);
    plans_expect(plans_ask(plan, "2x3", "colwise.weight", 2, 10, 7), TSR_ERROR_ARGUMENT, "mesh 2x3 has no dim \"tp\"");
    plans_expect(plans_ask(plan, "tp=3", "sizes.weight", 2, 10, 7), TSR_ERROR_ARGUMENT,
                 "there are 2 placements for 1 mesh dims");
    tsr_parallel_plan_destroy(plan);
    options.dim = "x";
    plan = plans_make(PLANS_STYLES, plans_every_style, &options);
    expect_layouts(plan, "x=3,tp=2", COUNT(tp_dp), tp_dp);
    plans_expect(plans_ask(plan, "tp=3", "colwise.weight", 2, 10, 7), TSR_ERROR_ARGUMENT, "mesh tp=3 has no dim \"x\"");
    tsr_parallel_plan_destroy(plan);
}

static void experts_are_dealt_out(void **state)
{
    static const tsr_parallel_rule rules[] = {{"e.gate_up_proj", "packed_colwise"},
                                              {"e.down_proj", "rowwise"},
                                              {"g.gate_up_proj", "grouped_gemm"},
                                              {"g", "ep_dispatch_experts"}};
    static const struct {
        const char *name;
        int64_t shape[3];
        const char *placements;
    } all[] = {
        {"e.gate_up_proj", {5, 14, 4}, "S(1;interleave=2)"},
        {"e.down_proj", {5, 4, 7}, "S(2)"},
        {"g.gate_up_proj", {5, 14, 4}, "S(0;balanced)"},
        {"g.router", {5, 4, 7}, "R"},
    };
    tsr_mesh *mesh;
    (void)state;
    tsr_parallel_plan *const plan = plans_make(COUNT(rules), rules, NULL);
    assert_int_equal(tsr_mesh_parse(NULL, plans_context, "tp=3", &mesh), TSR_OK);
    for (size_t i = 0; i < COUNT(all); i++) {
        char text[64];
        tsr_layout *layout;
        assert_int_equal(tsr_parallel_plan_layout(plan, all[i].name, mesh, 3, all[i].shape, TSR_F32, &layout), TSR_OK);
        tsr_layout_print(layout, text, sizeof text);
        assert_string_equal(text, all[i].placements);
        tsr_layout_destroy(layout);
    }
    tsr_mesh_destroy(mesh);
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
        {"moe_tp_experts", TSR_PARALLEL_INPUT_WHOLE, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"moe_identity_expert", TSR_PARALLEL_INPUT_TERM, TSR_PARALLEL_OUTPUT_AS_IS, 0},
        {"grouped_gemm", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_AS_IS, 0},
        {"ep_dispatch_experts", TSR_PARALLEL_INPUT_WHOLE, TSR_PARALLEL_OUTPUT_REDUCE, 0},
        {"placements", TSR_PARALLEL_INPUT_AS_IS, TSR_PARALLEL_OUTPUT_AS_IS, 0},
    };
    tsr_parallel_module module;
    (void)state;
    tsr_parallel_plan *const plan = plans_make(PLANS_STYLES, plans_every_style, NULL);
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
    plans_expect(tsr_parallel_plan_module(plan, NULL, &module), TSR_ERROR_ARGUMENT, "name is NULL");
    plans_expect(tsr_parallel_plan_module(NULL, "a", &module), TSR_ERROR_ARGUMENT, "plan is NULL");
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
    tsr_parallel_plan *const plan = plans_make(COUNT(rules), rules, &options);
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
    const tsr_parallel_plan_options options = plans_heads(6, 2, 4);
    tsr_parallel_plan *const plan = plans_make(COUNT(attention_rules), attention_rules, &options);
    for (int ranks = 1; ranks <= 8; ranks++) {
        char on[16];
        snprintf(on, sizeof on, "tp=%d", ranks);
        expect_layouts(plan, on, COUNT(on_one), on_one);
    }
    expect_layouts(plan, "kv=2,group=3", COUNT(on_two), on_two);
    expect_layouts(plan, "kv=3,group=2", COUNT(on_two), on_two);
    plans_expect(plans_ask(plan, "tp=2", "0.q_proj.weight", 2, 25, 5), TSR_ERROR_ARGUMENT,
                 "dim 0 has 25 features, but 6 heads of 4 have 24");
    plans_expect(plans_ask(plan, "tp=2", "0.k_proj.bias", 1, 9, 0), TSR_ERROR_ARGUMENT, "but 2 heads of 4 have 8");
    plans_expect(plans_ask(plan, "tp=2", "0.o_proj.weight", 2, 5, 23), TSR_ERROR_ARGUMENT, "dim 1 has 23 features");
    plans_expect(plans_ask(plan, "kv=1,group=2", "0.q_proj.weight", 2, 24, 5), TSR_ERROR_ARGUMENT,
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
    tsr_parallel_plan_options options = plans_heads(6, 2, 4);
    tsr_parallel_plan *plan = plans_make(COUNT(attention_rules), attention_rules, &options);
    expect_layouts(plan, "tp=1", 1, grouped);
    expect_layouts(plan, "tp=2", 1, grouped);
    plans_expect(plans_ask(plan, "tp=3", "0.qkv_proj.weight", 2, 40, 5), TSR_ERROR_ARGUMENT,
                 "3 ranks do not divide 2 key/value heads");
    tsr_parallel_plan_destroy(plan);
    options = plans_heads(5, 0, 4);
    plan = plans_make(COUNT(rules), rules, &options);
    for (int ranks = 1; ranks <= 8; ranks++) {
        char on[16];
        snprintf(on, sizeof on, "tp=%d", ranks);
        expect_layouts(plan, on, COUNT(multihead), multihead);
    }
    tsr_parallel_plan_destroy(plan);
    plan = plans_make(COUNT(written), written, NULL);
    expect_layouts(plan, "tp=3", COUNT(plain), plain);
    plans_expect(plans_ask(plan, "tp=2", "fused.weight", 2, 10, 5), TSR_ERROR_ARGUMENT,
                 "dim 0 has 10 features, which are not 3 equal parts");
    tsr_parallel_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(styles_cut_as_they_say),
        cmocka_unit_test(other_mesh_dims_are_whole),
        cmocka_unit_test(experts_are_dealt_out),
        cmocka_unit_test(modules_do_as_their_style_says),
        cmocka_unit_test(the_nearest_rule_counts),
        cmocka_unit_test(cuts_fall_between_heads),
        cmocka_unit_test(fused_projections_are_cut_in_each_part),
    };
    return cmocka_run_group_tests(tests, plans_open, plans_close);
}
