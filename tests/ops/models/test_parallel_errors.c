/* Plans for models that are wrong, do not fit a model, or lack memory; and errors in programs. */
#include "counted_memory.h"
#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof array[0])

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tsr_parallel_plan *const plan = plans_make(PLANS_STYLES, plans_every_style, NULL);
    plans_expect(plans_ask(plan, "tp=2", "packed_colwise.weight", 2, 7, 5), TSR_ERROR_ARGUMENT,
                 "dim 0 has 7 features, which are not 2 equal parts");
    plans_expect(plans_ask(plan, "tp=2", "packed_rowwise.weight", 2, 7, 5), TSR_ERROR_ARGUMENT, "dim 1 has 5 features");
    plans_expect(plans_ask(plan, "tp=2", "embedding_colwise.weight", 1, 7, 0), TSR_ERROR_ARGUMENT,
                 "cuts a dim that a tensor of 1 dims does not have");
    plans_expect(plans_ask(plan, "tp=2", "colwise.scale", 0, 0, 0), TSR_ERROR_ARGUMENT, "a tensor of 0 dims");
    plans_expect(plans_ask(plan, "tp=2", "placements.bias", 1, 7, 0), TSR_ERROR_ARGUMENT,
                 "\"placements.bias\" (7), rule \"placements\": \"S(1;balanced)\": ");
    plans_expect(plans_ask(plan, "tp=2", "colwise.weight", 9, 7, 0), TSR_ERROR_ARGUMENT, "has 9 dims");
    plans_expect(plans_ask(plan, "tp=2", "colwise.weight", 2, -1, 5), TSR_ERROR_ARGUMENT, "\"colwise.weight\" (-1x5)");
    plans_expect(plans_ask(plan, "tp=2", NULL, 2, 7, 5), TSR_ERROR_ARGUMENT, "name is NULL");
    tsr_parallel_plan_destroy(plan);
}

static void refuse(const char *pattern, const char *style, const tsr_parallel_plan_options *options, const char *part)
{
    tsr_parallel_plan *plan = NULL;
    const tsr_parallel_rule rule = {pattern, style};
    plans_expect(tsr_parallel_plan_create(plans_context, 1, &rule, options, &plan), TSR_ERROR_ARGUMENT, part);
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
    tsr_parallel_plan_options options = plans_heads(6, 4, 8);
    refuse("a", "R", &options, "6 heads are not a multiple of 4 kv_heads");
    options = plans_heads(6, 2, 0);
    refuse("a", "R", &options, "head_dim is 0");
    options = plans_heads(0, 2, 4);
    refuse("a", "R", &options, "heads is 0");
    options = plans_heads(-1, 2, 4);
    refuse("a", "R", &options, "must be 0 or more");
    options = plans_heads(INT64_MAX / 2, 1, 4);
    refuse("a", "R", &options, "overflows");
    options = plans_heads(6, 2, 4);
    options.size = 0;
    refuse("a", "R", &options, "size");
    options = plans_heads(6, 2, 4);
    options.prefix = text;
    refuse("a", "R", &options, "prefix included");
    plans_expect(tsr_parallel_plan_create(plans_context, 3, twice, NULL, &plan), TSR_ERROR_ARGUMENT,
                 "pattern \"a.*\" comes twice");
    plans_expect(tsr_parallel_plan_create(plans_context, 1, NULL, NULL, &plan), TSR_ERROR_ARGUMENT, "rules is NULL");
    plans_expect(tsr_parallel_plan_create(NULL, 0, NULL, NULL, &plan), TSR_ERROR_ARGUMENT, "context is NULL");
    plans_expect(tsr_parallel_plan_create(plans_context, 0, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    plans_expect(tsr_parallel_plan_create(plans_context, TSR_PARALLEL_MOST_RULES + 1, twice, NULL, &plan),
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
    tsr_parallel_plan *plan = plans_make(COUNT(good), good, NULL);
    tsr_mesh *const mesh = plans_mesh("tp=3");
    assert_int_equal(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, without), TSR_OK);
    assert_memory_equal(without, ((const char[]){1, 0, 0, 1, 0}), sizeof without);
    assert_int_equal(tsr_parallel_plan_check(plan, NULL, COUNT(model), model, NULL), TSR_OK);
    plans_expect(tsr_parallel_plan_check(plan, mesh, 2, model, without), TSR_ERROR_ARGUMENT,
                 "pattern \"model.layers.*.attn.o_proj.weight\" matches none of 2 parameters and their modules; "
                 "similar are \"model.layers.*.attn.q_proj.weight\"");
    plans_expect(tsr_parallel_plan_check(plan, NULL, 0, NULL, NULL), TSR_ERROR_ARGUMENT, "none of 0 parameters");
    plans_expect(tsr_parallel_plan_check(plan, NULL, 1, NULL, NULL), TSR_ERROR_ARGUMENT, "parameters is NULL");
    plans_expect(tsr_parallel_plan_check(NULL, NULL, 1, model, NULL), TSR_ERROR_ARGUMENT, "plan is NULL");
    plans_expect(tsr_parallel_plan_check(plan, NULL, 1, &(tsr_parallel_parameter){NULL, TSR_F32, 0, {0}}, NULL),
                 TSR_ERROR_ARGUMENT, "the name of parameter 0 is NULL");
    tsr_parallel_plan_destroy(plan);
    plan = plans_make(1, short_of, NULL);
    plans_expect(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, NULL), TSR_ERROR_ARGUMENT,
                 "similar are \"model.layers.*.attn.q_proj\"");
    tsr_parallel_plan_destroy(plan);
    plan = plans_make(1, far, NULL);
    assert_int_equal(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, NULL), TSR_ERROR_ARGUMENT);
    assert_null(strstr(tsr_status_message(), "similar"));
    tsr_parallel_plan_destroy(plan);
    const tsr_parallel_plan_options options = plans_heads(2, 2, 4);
    plan = plans_make(COUNT(good), good, &options);
    plans_expect(tsr_parallel_plan_check(plan, mesh, COUNT(model), model, NULL), TSR_ERROR_ARGUMENT,
                 "\"model.layers.1.attn.q_proj.weight\" (7x4)");
    tsr_parallel_plan_destroy(plan);
    tsr_mesh_destroy(mesh);
}

/* The n-th allocation fails, for every n. */
static void a_lack_of_memory_is_told(void **state)
{
    (void)state;
    tsr_parallel_plan_options options = plans_heads(6, 2, 4);
    options.dim = "tp";
    size_t failed = 0;
    for (size_t nth = 1;; nth++) {
        counted_memory memory = {0};
        tsr_parallel_plan *plan = NULL;
        tsr_context *const counted = counted_context(&memory);
        memory.fail_at = memory.allocations + nth;
        const tsr_status status = tsr_parallel_plan_create(counted, PLANS_STYLES, plans_every_style, &options, &plan);
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
    recorded r = {.mesh = plans_mesh(on)};
    assert_int_equal(tsr_program_create(plans_context, &r.program), TSR_OK);
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
    tsr_parallel_plan *const plan = plans_make(PLANS_STYLES, plans_every_style, NULL);
    recorded r = record("tp=2", 2);
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
    tsr_parallel_plan *const plan = plans_make(PLANS_STYLES, plans_every_style, NULL);
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
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(bad_plans_are_refused),
        cmocka_unit_test(a_check_finds_unused_patterns_and_free_parameters),
        cmocka_unit_test(a_lack_of_memory_is_told),
        cmocka_unit_test(errors_stick_to_programs),
        cmocka_unit_test(modules_without_a_rule_pass_values_on),
    };
    return cmocka_run_group_tests(tests, plans_open, plans_close);
}
