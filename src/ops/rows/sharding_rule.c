/* Rules of rows as Shardy's text. */
#include "ops/rows/table.h"
#include "ops/rules/shardy/shardy_read.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The most characters of a rule that is read. */
#define RULE 1024

tsr_status tsr_op_sharding_rule(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                const tsr_layout *const *operands, tsr_text_room rule, tsr_text_room lost,
                                size_t *rule_length, size_t *lost_length)
{
    tsr_op_case c;
    tsr_op_ruling r;
    tsr_op_form form;
    int64_t shapes[TSR_OP_RESULTS][TSR_MAX_DIMS];
    tsr_shardy_text text = {rule.text, rule.capacity, 0}, losses = {lost.text, lost.capacity, 0};
    if (!op || !operands)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_sharding_rule: %s is NULL", op ? "operands" : "op");
    if (op->moves_to)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: it redistributes its operand, and has no rule", op->name);
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    TSR_TRY(tsr_op_read_rule(&c, &r));
    TSR_TRY(tsr_op_form_bind(&r.rule, &r.names, operands, &r.shaping, &form));
    for (int i = 0; i < r.rule.result_count; i++) {
        tsr_op_form_shape(&form, i, shapes[i]);
        if (r.shaping.shape_of)
            TSR_TRY(r.shaping.shape_of(r.shaping.arg, i, shapes[i]));
    }
    tsr_shardy_write(&form, &r.names, operands, (const int64_t(*)[TSR_MAX_DIMS])shapes, &text, &losses);
    if (losses.length == 0 && lost.capacity)
        lost.text[0] = '\0';
    if (rule_length)
        *rule_length = text.length;
    if (lost_length)
        *lost_length = losses.length;
    return TSR_OK;
}

tsr_status tsr_op_read_sharding_rule(const char *text, char *rule, size_t capacity, size_t *length)
{
    char written[RULE];
    tsr_op_rule parsed;
    tsr_shardy_text out = {written, sizeof written, 0};
    if (!text)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_read_sharding_rule: text is NULL");
    TSR_TRY(tsr_shardy_read(text, &out));
    TSR_TRY(tsr_op_rule_parse(written, &parsed));
    if (length)
        *length = out.length;
    if (capacity) {
        const size_t kept = out.length < capacity ? out.length : capacity - 1;
        memcpy(rule, written, kept);
        rule[kept] = '\0';
    }
    return TSR_OK;
}
