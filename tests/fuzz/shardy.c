/* Fuzzes Shardy's text: it is refused with a sentence, or gives a rule that a row may have. */
#include "fuzz.h"

#include <tessera/sys/ops.h>

static tsr_status accept(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

static tsr_status compute(const tsr_kernel_call *call)
{
    (void)call;
    return TSR_OK;
}

/* Looks a row with this rule up. */
static tsr_status use_rule(const char *rule)
{
    const tsr_op row = {.size = sizeof row,
                        .name = "fuzzed",
                        .rule = rule,
                        .operands = {"a", "b", "c", "d", "e", "f", "g", "h"},
                        .results = {"out"},
                        .check = accept,
                        .host = compute};
    const tsr_op *const rows[] = {&row}, *found;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    options.ops = rows;
    options.op_count = 1;
    FUZZ_REQUIRE(tsr_context_create(&options, &context) == TSR_OK);
    const tsr_status status = tsr_op_find(context, "fuzzed", &found);
    FUZZ_REQUIRE(status == TSR_OK || tsr_status_message()[0] != '\0');
    /* A rule that was read, and only has another number of tensors or exchanges than this row. */
    const bool counted =
        strstr(tsr_status_message(), "but the row names") || strstr(tsr_status_message(), "but exchanges is");
    tsr_context_destroy(context);
    return status == TSR_OK || counted ? TSR_OK : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size);
    size_t length = 0, again = 0;
    const tsr_status status = tsr_op_read_sharding_rule(text, NULL, 0, &length);
    FUZZ_REQUIRE(status == TSR_OK || (status == TSR_ERROR_ARGUMENT && tsr_status_message()[0] != '\0'));
    if (status == TSR_OK) {
        char *const rule = fuzz_memory(length + 1);
        FUZZ_REQUIRE(tsr_op_read_sharding_rule(text, rule, length + 1, &again) == TSR_OK);
        FUZZ_REQUIRE(again == length && strlen(rule) == length);
        FUZZ_REQUIRE(use_rule(rule) == TSR_OK);
        free(rule);
    } else {
        /* The same text as a rule of ours. */
        (void)use_rule(text);
    }
    free(text);
    return 0;
}
