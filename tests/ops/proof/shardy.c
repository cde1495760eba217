/* Each rule that is proved, as Shardy's text and back. */
#include "proof.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a text to the file that TSR_SHARDY_TEXTS names, for other programs to read. */
static void keep(const char *op, const char *text)
{
    const char *const path = getenv("TSR_SHARDY_TEXTS");
    FILE *const file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s %s\n", op, text);
    fclose(file);
}

tsr_status prove_sharding_rule(const proof *p, const tsr_layout *const *operands)
{
    char text[2048], lost[2048], rule[1024];
    size_t length, lost_length, rule_length;
    const tsr_status status = tsr_op_sharding_rule(p->op, (size_t)p->attribute_count, p->attributes, operands,
                                                   (tsr_text_room){text, sizeof text},
                                                   (tsr_text_room){lost, sizeof lost}, &length, &lost_length);
    if (p->info.moves)
        return status == TSR_ERROR_UNSUPPORTED ? TSR_OK : TSR_ERROR_INTERNAL;
    TSR_TRY(status);
    if (length != strlen(text) || lost_length != strlen(lost))
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s: lengths differ: %s", p->info.name, text);
    if (p->rank == 0)
        keep(p->info.name, text);
    return tsr_op_read_sharding_rule(text, rule, sizeof rule, &rule_length);
}
