#include "rule_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int parse_shape(const char *text, int64_t shape[TSR_MAX_DIMS])
{
    int ndim = 0;
    for (const char *at = text; *at && *at != 's'; at += *at == 'x') {
        int length = 0;
        long long size;
        assert_int_equal(sscanf(at, "%lld%n", &size, &length), 1);
        shape[ndim++] = size;
        at += length;
    }
    return ndim;
}

tsr_layout *rule_layout(const tsr_mesh *mesh, const char *text)
{
    char shape_text[32], placements[96];
    int64_t shape[TSR_MAX_DIMS];
    tsr_layout *layout;
    assert_int_equal(sscanf(text, "%31s %95s", shape_text, placements), 2);
    const int ndim = parse_shape(shape_text, shape);
    if (tsr_layout_parse(mesh, placements, ndim, shape, TSR_F32, &layout) != TSR_OK)
        fail_msg("%s: %s", text, tsr_status_message());
    return layout;
}

static tsr_status shape_of(const void *arg, int result, int64_t shape[TSR_MAX_DIMS])
{
    const rule_case *const c = arg;
    if (c->results[result])
        parse_shape(c->results[result], shape);
    return TSR_OK;
}

tsr_status rule_propagate(const rule_case *c, char *text, size_t capacity)
{
    const tsr_op_names names = {.caller = "op", .op = "op", .rule = c->rule, .operands = {"x", "y", "z", "w"}};
    const tsr_dtype dtypes[TSR_OP_RESULTS] = {TSR_F32, TSR_F32, TSR_F32, TSR_F32};
    const tsr_op_shaping shaping = {
        .optional = 4, .dtypes = dtypes, .shape_of = c->results[0] ? shape_of : NULL, .arg = c};
    tsr_layout *operands[4] = {NULL};
    tsr_op_inferred inferred = {{NULL}, 0};
    tsr_op_rule rule;
    tsr_mesh *mesh;
    size_t length = 0;
    if (tsr_op_rule_parse(c->rule, &rule) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    assert_int_equal(tsr_mesh_parse(NULL, NULL, c->mesh, &mesh), TSR_OK);
    for (int i = 0; i < rule.operand_count; i++)
        operands[i] = c->operands[i] ? rule_layout(mesh, c->operands[i]) : NULL;
    const tsr_status status =
        tsr_op_propagate_rule(&rule, &names, &shaping, (const tsr_layout *const *)operands, &inferred);
    for (int i = 0; i < rule.result_count && status == TSR_OK; i++) {
        length += (size_t)snprintf(text + length, capacity - length, "%s", i ? " " : "");
        length += tsr_layout_print(inferred.results[i], text + length, capacity - length);
    }
    tsr_op_inferred_clear(&inferred);
    for (int i = 0; i < 4; i++)
        tsr_layout_destroy(operands[i]);
    tsr_mesh_destroy(mesh);
    return status;
}

void rule_accepted(const rule_case *cases)
{
    for (size_t i = 0; cases[i].rule; i++) {
        char text[256];
        if (rule_propagate(&cases[i], text, sizeof text) != TSR_OK)
            fail_msg("%s, case %zu: %s", cases[i].rule, i, tsr_status_message());
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("%s, case %zu: %s instead of %s", cases[i].rule, i, text, cases[i].expected);
    }
}

void rule_refused(const rule_case *cases)
{
    for (size_t i = 0; cases[i].rule; i++) {
        char text[256];
        const char *const expected = cases[i].expected;
        if (rule_propagate(&cases[i], text, sizeof text) == TSR_OK)
            fail_msg("%s, case %zu: %s", cases[i].rule, i, text);
        const char *const sentence = tsr_status_message();
        const size_t length = strlen(sentence), wanted = strlen(expected);
        if (length < wanted || strcmp(sentence + length - wanted, expected) != 0)
            fail_msg("case %zu: %s", i, sentence);
    }
}
