/** Rules as Shardy's text, `#sdy.op_sharding_rule<..>`. Pure. */
#ifndef TSR_OPS_RULES_SHARDY_SHARDY_H
#define TSR_OPS_RULES_SHARDY_SHARDY_H

#include "ops/rules/form.h"

#include <stddef.h>

/** A text that grows as snprintf() writes: `length` is that of the whole. */
typedef struct tsr_shardy_text {
    char *text;
    size_t capacity, length;
} tsr_shardy_text;

/**
 * Writes the rule of a form, and in `lost` what Shardy cannot say, in sentences apart by "; ".
 * `operands` have the layouts that the form was bound to, `shapes` are the results'. A factor that
 * Shardy may not cut, though the rule may, needs replication there.
 */
void tsr_shardy_write(const tsr_op_form *form, const tsr_op_names *names, const tsr_layout *const *operands,
                      const int64_t (*shapes)[TSR_MAX_DIMS], tsr_shardy_text *out, tsr_shardy_text *lost);

/** Appends, like printf(). */
void tsr_shardy_append(tsr_shardy_text *text, const char *format, ...) TSR_PRINTF(2, 3);

#endif
