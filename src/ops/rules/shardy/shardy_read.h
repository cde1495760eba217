/** Rules from Shardy's text. Pure. */
#ifndef TSR_OPS_RULES_SHARDY_SHARDY_READ_H
#define TSR_OPS_RULES_SHARDY_SHARDY_READ_H

#include "ops/rules/shardy/shardy.h"

/** Reads `#sdy.op_sharding_rule<..>`, and writes a rule (parse.h). TSR_ERROR_ARGUMENT: the sentence
 * points at the character that is wrong; or the text says what no rule says. */
tsr_status tsr_shardy_read(const char *text, tsr_shardy_text *out);

#endif
