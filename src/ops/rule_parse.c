#include "ops/rule_parse.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <string.h>

/* The letters of one term, without its spaces. */
typedef struct letters {
    int count;
    char at[TSR_MAX_DIMS];
} letters;

/* Reads the letters of one term, and returns the text behind its separator; `*separator` is ',',
 * '+', '-' (of "->") or NUL. */
static const char *read_letters(const char *text, letters *out, char *separator)
{
    out->count = 0;
    for (; *text == ' ' || islower((unsigned char)*text); text++) {
        if (*text != ' ')
            out->at[out->count++] = *text;
    }
    *separator = *text;
    return *text == '-' ? text + 2 : *text ? text + 1 : text;
}

static bool has_batch(const letters *term)
{
    return memchr(term->at, 'b', (size_t)term->count) != NULL;
}

static int factor_of(tsr_rule_terms *terms, int *used, char letter)
{
    for (int factor = TSR_MAX_DIMS; factor < *used; factor++) {
        if (terms->letter[factor] == letter)
            return factor;
    }
    terms->letter[*used] = letter;
    return (*used)++;
}

static void spell_out(tsr_rule_terms *terms, int *used, const letters *from, int batch, tsr_rule_term *out)
{
    out->ndim = 0;
    for (int i = 0; i < from->count; i++) {
        if (from->at[i] != 'b') {
            out->factor[out->ndim++] = factor_of(terms, used, from->at[i]);
            continue;
        }
        for (int dim = 0; dim < batch; dim++)
            out->factor[out->ndim++] = dim;
    }
}

static tsr_status refuse_ndim(const char *caller, const tsr_rule *rule, int operand, int ndim, const letters *term)
{
    const int least = term->count - has_batch(term);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dim%s, but \"%s\" wants %s%d", caller,
                          rule->names[operand], ndim, ndim == 1 ? "" : "s", rule->factors,
                          has_batch(term) ? "at least " : "", least);
}

tsr_status tsr_rule_parse(const char *caller, const tsr_rule *rule, const tsr_layout *const *operands,
                          tsr_rule_terms *out)
{
    memset(out, 0, sizeof *out);
    memset(out->letter, 'b', TSR_MAX_DIMS);
    const char *text = strchr(rule->factors, ':') + 1;
    int used = TSR_MAX_DIMS, batch = -1;
    char separator = ',';
    letters term;
    while (separator != '-') {
        tsr_rule_term *const operand = &out->operands[out->count];
        operand->added = separator == '+';
        text = read_letters(text, &term, &separator);
        const int ndim = tsr_layout_ndim(operands[out->count]), own = ndim - (term.count - has_batch(&term));
        if (own < 0 || (own > 0 && !has_batch(&term)))
            return refuse_ndim(caller, rule, out->count, ndim, &term);
        if (has_batch(&term) && batch >= 0 && own != batch)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d batch dims, but the operands before it have %d",
                                  caller, rule->names[out->count], own, batch);
        batch = has_batch(&term) ? own : batch;
        spell_out(out, &used, &term, own, operand);
        out->count++;
    }
    read_letters(text, &term, &separator);
    spell_out(out, &used, &term, batch, &out->result);
    return TSR_OK;
}

int tsr_rule_dim(const tsr_rule_term *term, int factor)
{
    for (int dim = 0; dim < term->ndim; dim++) {
        if (term->factor[dim] == factor)
            return dim;
    }
    return -1;
}
