/* Plans of transformers put parameters where it does itself (tests/golden/parallel_plans). */
#include <tessera/parallel_rules.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, HEADS = 6, KV_HEADS = 2, HEAD_DIM = 4 };

/* A model: its plan, and where transformers puts its parameters. */
typedef struct model {
    tsr_context *context;
    tsr_parallel_rules *rules;
    size_t count;
    tsr_parallel_parameter parameters[MOST];
    char names[MOST][128], placements[MOST][64];
} model;

static void read_parameter(const char *line, model *out)
{
    char shape[64];
    tsr_parallel_parameter *const p = &out->parameters[out->count];
    assert_true(out->count < MOST);
    assert_int_equal(sscanf(line, "%127s %63s %63s", out->names[out->count], shape, out->placements[out->count]), 3);
    *p = (tsr_parallel_parameter){.name = out->names[out->count], .dtype = TSR_F32};
    for (char *at = strtok(shape, "x"); at; at = strtok(NULL, "x"))
        p->shape[p->ndim++] = strtol(at, NULL, 10);
    out->count++;
}

static void open_model(const char *name, model *out)
{
    char path[512], line[256];
    *out = (model){.count = 0};
    assert_int_equal(tsr_context_create(NULL, &out->context), TSR_OK);
    snprintf(path, sizeof path, "%s/parallel_plans/%s.json", GOLDEN_DIR, name);
    assert_int_equal(tsr_parallel_rules_open(path, &out->rules), TSR_OK);
    snprintf(path, sizeof path, "%s/parallel_plans/%s.txt", GOLDEN_DIR, name);
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        read_parameter(line, out);
    fclose(file);
    assert_true(out->count > 10);
}

static void close_model(model *m)
{
    tsr_parallel_rules_destroy(m->rules);
    tsr_context_destroy(m->context);
}

static tsr_parallel_plan *plan_of(const model *m, bool has_heads)
{
    size_t count;
    tsr_parallel_plan *plan = NULL;
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    const tsr_parallel_rule *const rules = tsr_parallel_rules_all(m->rules, &count);
    if (has_heads) {
        options.heads = HEADS;
        options.kv_heads = KV_HEADS;
        options.head_dim = HEAD_DIM;
    }
    assert_int_equal(tsr_parallel_plan_create(m->context, count, rules, &options, &plan), TSR_OK);
    return plan;
}

/* Without heads, layouts are those of transformers. */
static void expect_layouts(const model *m, const tsr_mesh *mesh)
{
    tsr_parallel_plan *const plan = plan_of(m, false);
    for (size_t i = 0; i < m->count; i++) {
        const tsr_parallel_parameter *const p = &m->parameters[i];
        tsr_layout *layout;
        char text[64];
        assert_int_equal(tsr_parallel_plan_layout(plan, p->name, mesh, p->ndim, p->shape, p->dtype, &layout), TSR_OK);
        tsr_layout_print(layout, text, sizeof text);
        if (strcmp(text, m->placements[i]) != 0)
            fail_msg("%s is \"%s\" instead of \"%s\"", p->name, text, m->placements[i]);
        tsr_layout_destroy(layout);
    }
    tsr_parallel_plan_destroy(plan);
}

static bool is_named(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* With heads, ranks have whole ones, and the queries of the keys that they have. */
static void expect_whole_heads(const model *m, const tsr_mesh *mesh)
{
    tsr_parallel_plan *const plan = plan_of(m, true);
    assert_int_equal(tsr_parallel_plan_check(plan, mesh, m->count, m->parameters, NULL), TSR_OK);
    for (int64_t rank = 0; rank < tsr_mesh_count(mesh); rank++) {
        int64_t queries = 0, keys = 0;
        for (size_t i = 0; i < m->count; i++) {
            const tsr_parallel_parameter *const p = &m->parameters[i];
            int64_t shape[TSR_MAX_DIMS];
            tsr_layout *layout;
            assert_int_equal(tsr_parallel_plan_layout(plan, p->name, mesh, p->ndim, p->shape, p->dtype, &layout),
                             TSR_OK);
            assert_int_equal(tsr_layout_local(layout, &rank, shape, NULL), TSR_OK);
            tsr_layout_destroy(layout);
            if (is_named(p->name, "q_proj"))
                queries = shape[0];
            if (is_named(p->name, "k_proj"))
                keys = shape[0];
            if (is_named(p->name, "v_proj"))
                assert_int_equal(shape[0], keys);
            if (is_named(p->name, "o_proj.weight"))
                assert_int_equal(shape[1], queries);
        }
        assert_int_equal(keys % HEAD_DIM, 0);
        assert_int_equal(queries, keys * (HEADS / KV_HEADS));
    }
    tsr_parallel_plan_destroy(plan);
}

static void parameters_lie_where_transformers_puts_them(void **state)
{
    static const char *const names[] = {"llama", "mistral", "mixtral", "phi3", "qwen3"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        model m;
        open_model(names[i], &m);
        for (int64_t ranks = 1; ranks <= 8; ranks++) {
            tsr_mesh *mesh;
            assert_int_equal(tsr_mesh_create_abstract(m.context, 1, &ranks, NULL, NULL, &mesh), TSR_OK);
            expect_layouts(&m, mesh);
            /* Phi 3 gathers its fused projection, and cuts what comes of it anywhere. */
            if (strcmp(names[i], "phi3") != 0)
                expect_whole_heads(&m, mesh);
            tsr_mesh_destroy(mesh);
        }
        close_model(&m);
    }
}

/* This model has none of the dense layers that its class may have. */
static void rules_for_layers_that_are_not_there_are_told(void **state)
{
    model m;
    (void)state;
    open_model("qwen3_moe", &m);
    tsr_parallel_plan *const plan = plan_of(&m, true);
    assert_int_equal(tsr_parallel_plan_check(plan, NULL, m.count, m.parameters, NULL), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "pattern \"model.layers.*.mlp.gate_proj\" matches none"));
    assert_non_null(strstr(tsr_status_message(), "\"model.layers.*.mlp.gate\""));
    tsr_parallel_plan_destroy(plan);
    close_model(&m);
}

static void parameters_without_a_rule_are_listed(void **state)
{
    model m;
    char without[MOST];
    (void)state;
    open_model("mixtral", &m);
    tsr_parallel_plan *const plan = plan_of(&m, true);
    assert_int_equal(tsr_parallel_plan_check(plan, NULL, m.count, m.parameters, without), TSR_OK);
    for (size_t i = 0; i < m.count; i++)
        assert_int_equal(without[i], is_named(m.names[i], "norm") || is_named(m.names[i], ".gate."));
    tsr_parallel_plan_destroy(plan);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_lie_where_transformers_puts_them),
        cmocka_unit_test(rules_for_layers_that_are_not_there_are_told),
        cmocka_unit_test(parameters_without_a_rule_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
