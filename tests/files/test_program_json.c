/* Programs as JSON: what is recorded, and what is refused, by whose fault. */
#include <tessera/executable.h>
#include <tessera/program_json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define X "{\"name\": \"x\", \"kind\": \"input\", \"shape\": [4, 8], \"dtype\": \"f32\", \"placements\": [\"S(0)\"]}"
#define W "{\"name\": \"w\", \"kind\": \"parameter\", \"shape\": [6, 8], \"dtype\": \"f32\", \"gradient\": \"P\"}"
#define C "{\"name\": \"c\", \"kind\": \"constant\", \"shape\": [], \"dtype\": \"f32\", \"value\": 2}"

static tsr_mesh *mesh_of(const char *text)
{
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, text, &mesh), TSR_OK);
    return mesh;
}

/* Records a text on two ranks. */
static tsr_program *record(const char *text)
{
    tsr_program *program = NULL;
    tsr_mesh *const mesh = mesh_of("2");
    const tsr_status status = tsr_program_parse("text", text, strlen(text), mesh, &program);
    tsr_mesh_destroy(mesh);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return program;
}

static tsr_value find(const tsr_program *program, const char *label)
{
    for (tsr_value v = 0; tsr_value_layout(program, v); v++)
        if (tsr_value_label(program, v) && strcmp(tsr_value_label(program, v), label) == 0)
            return v;
    return TSR_NONE;
}

static void assert_layout(const tsr_program *program, const char *label, const char *placements)
{
    char text[64];
    tsr_layout_print(tsr_value_layout(program, find(program, label)), text, sizeof text);
    assert_string_equal(text, placements);
}

static void values_ops_and_gradients_are_recorded(void **state)
{
    static const char text[] =
        "{\"values\": [" X ", " W ", " C "], \"ops\": ["
        "{\"op\": \"linear\", \"inputs\": [\"x\", \"w\", null], \"outputs\": [\"y\"], \"attributes\": {}},"
        "{\"op\": \"mul\", \"inputs\": [\"y\", \"c\"], \"outputs\": [\"z\"]},"
        "{\"op\": \"sum\", \"inputs\": [\"z\"], \"outputs\": [\"t\"], \"attributes\": {\"dim\": [0, 1], \"keep\": "
        "false}},"
        "{\"op\": \"all_reduce\", \"inputs\": [\"t\"], \"outputs\": [\"loss\"], \"attributes\": {\"gradient\": "
        "\"replicate\"}}],"
        "\"outputs\": [{\"name\": \"y\", \"placements\": null}], \"gradients\": {\"of\": \"loss\", \"to\": [\"w\"]}}";
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_executable_figures figures;
    tsr_executable_step step;
    tsr_executable *x;
    tsr_program *const program = record(text);
    (void)state;
    assert_layout(program, "y", "S(0)");
    assert_layout(program, "t", "P");
    assert_layout(program, "loss", "R");
    assert_layout(program, "d.w", "P");
    assert_int_equal(tsr_value_varying(program, find(program, "loss")), 0);
    options.rank = 1;
    assert_int_equal(tsr_compile(program, &options, &x), TSR_OK);
    assert_int_equal(tsr_executable_output_count(x), 2);
    assert_string_equal(tsr_executable_output_name(x, 0), "y");
    assert_string_equal(tsr_executable_output_name(x, 1), "d.w");
    assert_string_equal(tsr_executable_input_name(x, 0), "x");
    assert_int_equal(tsr_executable_output_value(x, 0), find(program, "y"));
    assert_int_equal(tsr_executable_output_value(x, 2), TSR_NONE);
    assert_int_equal(tsr_executable_figures_of(x, &figures), TSR_OK);
    assert_int_equal(figures.bytes_received, 0); /* the loss is no output */
    assert_true(tsr_executable_step_count(x) > 1);
    assert_int_equal(tsr_executable_step_at(x, tsr_executable_step_count(x), &step), TSR_ERROR_ARGUMENT);
    tsr_executable_destroy(x);
    tsr_program_destroy(program);
}

static void labels_stay(void **state)
{
    tsr_program *const program = record("{\"values\": [" X "], \"outputs\": [{\"name\": \"x\"}]}");
    const tsr_value x = find(program, "x");
    (void)state;
    tsr_value_set_label(program, x, "other");
    assert_string_equal(tsr_value_label(program, x), "x");
    assert_string_equal(tsr_value_name(program, x), "x");
    assert_null(tsr_value_label(program, 77));
    tsr_value_set_label(program, 77, "none");
    assert_int_equal(tsr_program_status(program, NULL), TSR_ERROR_ARGUMENT);
    tsr_program_destroy(program);
}

static void refuse(tsr_status wanted, const char *text, const char *part)
{
    tsr_mesh *const mesh = mesh_of("2");
    tsr_program *program = NULL;
    assert_int_equal(tsr_program_parse("text", text, strlen(text), mesh, &program), wanted);
    assert_null(program);
    if (!strstr(tsr_status_message(), part) || strncmp(tsr_status_message(), "text: ", 6) != 0)
        fail_msg("\"%s\" is not in: %s", part, tsr_status_message());
    tsr_mesh_destroy(mesh);
}

static void texts_that_are_no_programs_are_io(void **state)
{
    (void)state;
    refuse(TSR_ERROR_IO, "", "line 1");
    refuse(TSR_ERROR_IO, "{\"values\": {}}", "values must be a list");
    refuse(TSR_ERROR_IO, "{\"values\": [" X ", 3]}", "values[1]");
    refuse(TSR_ERROR_IO,
           "{\"values\": [" X "], \"ops\": [{\"op\": \"relu\", \"inputs\": [\"x\"], \"outputs\": [\"a b\"]}]}",
           "ops[0], relu");
    refuse(TSR_ERROR_IO, "{\"values\": [" X "], \"ops\": [{\"op\": \"relu\", \"inputs\": [3], \"outputs\": [\"y\"]}]}",
           "inputs[0]");
    refuse(TSR_ERROR_IO, "{\"values\": [" X "], \"ops\": [{\"op\": \"relu\", \"inputs\": [\"x\"], \"outputs\": []}]}",
           "0 outputs");
}

static void what_layouts_and_rules_refuse_is_theirs(void **state)
{
    (void)state;
    refuse(
        TSR_ERROR_ARGUMENT,
        "{\"values\": [" X
        "], \"ops\": [{\"op\": \"cumsum\", \"inputs\": [\"x\"], \"outputs\": [\"y\"], \"attributes\": {\"dim\": 2}}]}",
        "ops[0], cumsum");
    refuse(TSR_ERROR_ARGUMENT, "{\"values\": [" W "], \"outputs\": [{\"name\": \"w\", \"placements\": [\"S(0)\"]}]}",
           "outputs[0], \"w\"");
    refuse(TSR_ERROR_ARGUMENT,
           "{\"values\": [{\"name\": \"s\", \"kind\": \"constant\", \"value\": 1, \"shape\": [4], \"dtype\": \"f32\", "
           "\"placements\": "
           "[\"P\"]}]}",
           "values[0], \"s\"");
    refuse(TSR_ERROR_ARGUMENT,
           "{\"values\": [" X ", {\"name\": \"s\", \"kind\": \"state\", \"shape\": [4], \"dtype\": \"f32\"}], "
           "\"ops\": [{\"op\": \"store\", \"inputs\": [\"s\", \"x\"], \"outputs\": []}]}",
           "ops[0], store");
}

static void a_store_has_no_attributes(void **state)
{
    (void)state;
    static const char *const given[] = {"5", "[5]", "\"x\"", "{\"dim\": 0}", "true"};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"values\": [{\"name\": \"s\", \"kind\": \"state\", \"shape\": [4], \"dtype\": \"f32\"}], "
                 "\"ops\": [{\"op\": \"store\", \"inputs\": [\"s\", \"s\"], \"attributes\": %s}]}",
                 given[i]);
        refuse(TSR_ERROR_IO, text, "ops[0], store: its inputs are a state");
    }
}

static void null_arguments_are_named(void **state)
{
    tsr_program *program;
    tsr_mesh *const mesh = mesh_of("2");
    (void)state;
    assert_int_equal(tsr_program_parse(NULL, "{}", 2, mesh, &program), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_program_parse("text", NULL, 2, mesh, &program), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_program_parse("text", "{}", 2, NULL, &program), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "tsr_program_parse: mesh is NULL");
    assert_int_equal(tsr_program_parse("text", "{}", 2, mesh, NULL), TSR_ERROR_ARGUMENT);
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_ops_and_gradients_are_recorded),
        cmocka_unit_test(labels_stay),
        cmocka_unit_test(texts_that_are_no_programs_are_io),
        cmocka_unit_test(what_layouts_and_rules_refuse_is_theirs),
        cmocka_unit_test(a_store_has_no_attributes),
        cmocka_unit_test(null_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
