/** The text of a rule, as functions `rule_of` of rows write it. */
#ifndef TSR_OPS_ROWS_RULE_TEXT_H
#define TSR_OPS_ROWS_RULE_TEXT_H

#include "ops/rows/row.h"

#include <stdio.h>

/** A text of TSR_OP_RULE_TEXT bytes, which has room for all ops of TSR_MAX_DIMS dims. */
typedef struct tsr_rule_text {
    char *text;
    size_t length;
} tsr_rule_text;

static inline void tsr_rule_append(tsr_rule_text *rule, const char *word)
{
    rule->length += (size_t)snprintf(rule->text + rule->length, TSR_OP_RULE_TEXT - rule->length, "%s", word);
}

#endif
