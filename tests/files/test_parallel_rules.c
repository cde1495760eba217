/* Plans for models as JSON: what is read, and what is refused. */
#include <tessera/parallel_rules.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Parses a copy of exactly the text's length, so that the sanitizer sees a read past its end. */
static tsr_status parse(const char *text, tsr_parallel_rules **out)
{
    const size_t bytes = strlen(text);
    char *const copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const tsr_status status = tsr_parallel_rules_parse("plan.json", copy, bytes, out);
    free(copy);
    return status;
}

/* Expects rules, "pattern=style" each, apart by '|'. */
static void expect_rules(const tsr_parallel_rules *rules, const char *wanted)
{
    char text[1024] = "";
    size_t count, length = 0;
    const tsr_parallel_rule *const all = tsr_parallel_rules_all(rules, &count);
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s=%s", i ? "|" : "", all[i].pattern,
                                   all[i].style);
    assert_string_equal(text, wanted);
}

static void expect_read(const char *text, const char *wanted)
{
    tsr_parallel_rules *rules = NULL;
    const tsr_status status = parse(text, &rules);
    if (status != TSR_OK)
        fail_msg("%s: %s", text, tsr_status_message());
    expect_rules(rules, wanted);
    tsr_parallel_rules_destroy(rules);
}

static void plans_are_read(void **state)
{
    (void)state;
    expect_read("{}", "");
    expect_read("{\"layers.*.q\": \"colwise\", \"lm_head\": \"colwise_rep\"}",
                "layers.*.q=colwise|lm_head=colwise_rep");
    expect_read("{\"z\": \"S(0;unit=64)\", \"a\": {\"weight\": \"S(1)\", \"bias\": \"R\"}, \"b\": {}}",
                "z=S(0;unit=64)|a.weight=S(1)|a.bias=R");
    expect_read("{\"\\u00e9\": \"\\\"\"}", "\xc3\xa9=\"");
}

static void a_configuration_has_the_plan_of_its_base_model(void **state)
{
    (void)state;
    expect_read("{\"model_type\": \"llama\", \"hidden_size\": 8, \"base_model_tp_plan\": {\"layers.*.q\": \"colwise\", "
                "\"norm\": {\"weight\": \"R\"}}, \"rope_scaling\": null}",
                "model.layers.*.q=colwise|model.norm.weight=R");
}

static void expect_refused(const char *text, const char *said)
{
    tsr_parallel_rules *rules = NULL;
    assert_int_equal(parse(text, &rules), TSR_ERROR_ARGUMENT);
    assert_null(rules);
    if (!strstr(tsr_status_message(), said))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, tsr_status_message(), said);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    expect_refused("", "plan.json, line 1: ");
    expect_refused("{\"a\": \"colwise\"", "plan.json, line 1: ");
    expect_refused("{\n\"a\": colwise}", "plan.json, line 2: ");
    expect_refused("{\"a\": \"R\"} x", "plan.json, line 1: ");
    expect_refused("{\"a\": \"R\", \"a\": \"colwise\"}", "duplicate");
    expect_refused("{\"a\\u0000b\": \"R\"}", "plan.json, line 1: ");
    expect_refused("{\"\xff\": \"R\"}", "plan.json, line 1: ");
    expect_refused("[]", "must be a JSON object");
    expect_refused("\"colwise\"", "plan.json");
    expect_refused("null", "plan.json");
    expect_refused("{\"a\": 1}", "the value of \"a\" must be a style such as \"colwise\"");
    expect_refused("{\"a\": null}", "the value of \"a\"");
    expect_refused("{\"a\": [\"colwise\"]}", "the value of \"a\"");
    expect_refused("{\"a\": {\"weight\": {\"b\": \"R\"}}}", "the value of \"weight\" must be a style or a placement");
    expect_refused("{\"a\": {\"weight\": true}}", "the value of \"weight\"");
    expect_refused("{\"model_type\": \"llama\", \"hidden_size\": 8}", "has no object \"base_model_tp_plan\"");
    expect_refused("{\"architectures\": [\"LlamaForCausalLM\"]}", "has no object \"base_model_tp_plan\"");
    expect_refused("{\"base_model_tp_plan\": null}", "has no object \"base_model_tp_plan\"");
    expect_refused("{\"base_model_tp_plan\": {\"a\": 1}}", "the value of \"a\"");
}

/* Texts of many brackets, and every beginning of a good text, end in an answer. */
static void hostile_texts_are_refused(void **state)
{
    enum { DEEP = 100000 };
    static const char good[] = "{\"layers.*.q\": \"colwise\", \"a\": {\"weight\": \"S(0;blocks=1,2)\"}}";
    (void)state;
    char *const deep = malloc(DEEP + 1);
    assert_non_null(deep);
    for (size_t i = 0; i < DEEP; i++)
        deep[i] = "{\"a\":"[i % 5];
    deep[DEEP] = '\0';
    expect_refused(deep, "plan.json");
    memset(deep, '[', DEEP);
    expect_refused(deep, "plan.json");
    for (size_t i = 0; i + 1 < sizeof good - 1; i++) {
        memcpy(deep, good, i);
        deep[i] = '\0';
        expect_refused(deep, "plan.json, line 1: ");
    }
    free(deep);
    tsr_parallel_rules *rules = NULL;
    assert_int_equal(tsr_parallel_rules_parse("plan.json", "{}\0x", 4, &rules), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_parallel_rules_parse("plan.json", NULL, 1, &rules), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_parallel_rules_parse("plan.json", NULL, 0, &rules), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_parallel_rules_parse(NULL, "{}", 2, &rules), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_parallel_rules_parse("plan.json", "{}", 2, NULL), TSR_ERROR_ARGUMENT);
    assert_null(rules);
}

static void files_are_read(void **state)
{
    char path[] = "/tmp/parallel-rules-XXXXXX";
    tsr_parallel_rules *rules = NULL;
    (void)state;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "{\"a\": \"rowwise\"}\n", 17), 17);
    assert_int_equal(tsr_parallel_rules_open(path, &rules), TSR_OK);
    expect_rules(rules, "a=rowwise");
    tsr_parallel_rules_destroy(rules);
    rules = NULL;
    assert_int_equal(ftruncate(file, (16 << 20) + 1), 0);
    assert_int_equal(tsr_parallel_rules_open(path, &rules), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "more than a plan's 16777216"));
    close(file);
    unlink(path);
    assert_int_equal(tsr_parallel_rules_open(path, &rules), TSR_ERROR_IO);
    assert_non_null(strstr(tsr_status_message(), path));
    assert_int_equal(tsr_parallel_rules_open("/tmp", &rules), TSR_ERROR_IO);
    assert_int_equal(tsr_parallel_rules_open(NULL, &rules), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_parallel_rules_open(path, NULL), TSR_ERROR_ARGUMENT);
    assert_null(rules);
    tsr_parallel_rules_destroy(NULL);
    size_t count = 1;
    assert_null(tsr_parallel_rules_all(NULL, &count));
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_read),          cmocka_unit_test(a_configuration_has_the_plan_of_its_base_model),
        cmocka_unit_test(other_texts_are_refused), cmocka_unit_test(hostile_texts_are_refused),
        cmocka_unit_test(files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
