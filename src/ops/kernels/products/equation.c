#include "ops/kernels/products/equation.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <string.h>

typedef struct scan {
    const char *caller, *text, *at;
    const tsr_layout *const *operands;
    int count;
    tsr_equation *out;
} scan;

static tsr_status refuse(const scan *s, const char *expected)
{
    if (!*s->at)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: equation \"%.128s\": expected %s at the end", s->caller, s->text,
                              expected);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: equation \"%.128s\", character %d: expected %s, found \"%c\"",
                          s->caller, s->text, (int)(s->at - s->text), expected, *s->at);
}

static bool take(scan *s, const char *token)
{
    while (*s->at == ' ')
        s->at++;
    const size_t length = strlen(token);
    if (strncmp(s->at, token, length) != 0)
        return false;
    s->at += length;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int find_letter(const tsr_equation *e, char letter)
{
    int i = 0;
    while (i < e->letter_count && e->letters[i] != letter)
        i++;
    return i;
}

static bool has_factor(const tsr_equation_term *term, int factor)
{
    for (int dim = 0; dim < term->ndim; dim++) {
        if (term->factor[dim] == factor)
            return true;
    }
    return false;
}

/* Appends the `leading` dims of "..." to a term. */
static void append_ellipsis(tsr_equation_term *term, int leading)
{
    for (int dim = 0; dim < leading; dim++)
        term->factor[term->ndim++] = TSR_MAX_DIMS - leading + dim;
}

static tsr_status read_letter(scan *s, bool result, tsr_equation_term *term)
{
    tsr_equation *const e = s->out;
    const int i = find_letter(e, *s->at);
    if (!is_letter(*s->at))
        return refuse(s, "a letter, \"...\", \",\" or \"->\"");
    if (i == e->letter_count && result)
        return refuse(s, "a letter of an operand");
    if (i == TSR_EQUATION_LETTERS)
        return refuse(s, "at most 12 different letters");
    if (has_factor(term, TSR_MAX_DIMS + i))
        return refuse(s, "each letter once in a term");
    if (term->ndim == TSR_MAX_DIMS)
        return refuse(s, "at most 8 dims");
    e->letters[i] = *s->at++;
    e->letter_count += i == e->letter_count;
    term->factor[term->ndim++] = TSR_MAX_DIMS + i;
    return TSR_OK;
}

/* The letters of a term that begins here; "..." is not counted. */
static int count_letters(const scan *s)
{
    int letters = 0;
    for (const char *at = s->at; *at && *at != ',' && *at != '-'; at++)
        letters += is_letter(*at);
    return letters;
}

/* Reads a term whose "..." stands for `leading` dims; `*ellipsis` is true if it has one. */
static tsr_status read_term(scan *s, bool result, int leading, tsr_equation_term *term, bool *ellipsis)
{
    *ellipsis = false;
    term->ndim = 0;
    for (;;) {
        if (take(s, "...")) {
            if (*ellipsis)
                return refuse(s, "\"...\" once in a term");
            if (term->ndim + leading > TSR_MAX_DIMS)
                return refuse(s, "at most 8 dims");
            *ellipsis = true;
            append_ellipsis(term, leading);
        } else if (!*s->at || *s->at == ',' || *s->at == '-')
            return TSR_OK;
        else
            TSR_TRY(read_letter(s, result, term));
    }
}

static tsr_status read_operand(scan *s, int operand)
{
    if (operand == s->count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: equation \"%.128s\" has more operands than the %d given",
                              s->caller, s->text, s->count);
    const int ndim = tsr_layout_ndim(s->operands[operand]), letters = count_letters(s);
    const int leading = ndim > letters ? ndim - letters : 0;
    tsr_equation_term *const term = &s->out->operands[operand];
    TSR_TRY(read_term(s, false, leading, term, &s->out->ellipses[operand]));
    if (term->ndim == ndim)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: operand %d has %d dim%s, but equation \"%.128s\" wants %s%d",
                          s->caller, operand, ndim, ndim == 1 ? "" : "s", s->text,
                          s->out->ellipses[operand] ? "at least " : "", letters);
}

/* Appends the letters that appear once, in alphabetical order, upper-case ones first. */
static tsr_status append_single(const tsr_equation *e, tsr_equation_term *term, const scan *s)
{
    for (int letter = 'A'; letter <= 'z'; letter++) {
        const int i = find_letter(e, (char)letter);
        int count = 0;
        for (int operand = 0; operand < e->operand_count && i < e->letter_count; operand++)
            count += has_factor(&e->operands[operand], TSR_MAX_DIMS + i);
        if (count != 1)
            continue;
        if (term->ndim == TSR_MAX_DIMS)
            return refuse(s, "\"->\" and at most 8 dims");
        term->factor[term->ndim++] = TSR_MAX_DIMS + i;
    }
    return TSR_OK;
}

static int64_t size_of(const scan *s, int operand, int dim)
{
    return tsr_layout_shape(s->operands[operand])[dim];
}

/* Reads dims of "..." of size 1 as 1 where another operand's is longer. */
static void read_ones(const scan *s)
{
    tsr_equation *const e = s->out;
    int64_t longest[TSR_MAX_DIMS];
    for (int factor = 0; factor < TSR_MAX_DIMS; factor++)
        longest[factor] = 1;
    for (int i = 0; i < e->operand_count; i++) {
        for (int dim = 0; dim < e->operands[i].ndim; dim++) {
            const int factor = e->operands[i].factor[dim];
            if (factor < TSR_MAX_DIMS && size_of(s, i, dim) != 1)
                longest[factor] = size_of(s, i, dim);
        }
    }
    for (int i = 0; i < e->operand_count; i++) {
        for (int dim = 0; dim < e->operands[i].ndim; dim++) {
            int *const factor = &e->operands[i].factor[dim];
            if (*factor < TSR_MAX_DIMS && size_of(s, i, dim) == 1 && longest[*factor] != 1)
                *factor = TSR_EQUATION_ONE;
        }
    }
}

/* The dims of the longest "...". */
static int longest_ellipsis(const tsr_equation *e)
{
    int longest = 0;
    for (int i = 0; i < e->operand_count; i++) {
        int own = 0;
        for (int dim = 0; dim < e->operands[i].ndim; dim++)
            own += e->operands[i].factor[dim] < TSR_MAX_DIMS;
        longest = own > longest ? own : longest;
    }
    return longest;
}

static tsr_status read_result(scan *s)
{
    tsr_equation *const e = s->out;
    const int leading = longest_ellipsis(e);
    bool *const ellipsis = &e->ellipses[TSR_EQUATION_OPERANDS];
    if (take(s, "->")) {
        TSR_TRY(read_term(s, true, leading, &e->result, ellipsis));
        return *s->at ? refuse(s, "the end") : TSR_OK;
    }
    if (*s->at)
        return refuse(s, "\",\" or \"->\"");
    for (int i = 0; i < e->operand_count; i++)
        *ellipsis |= e->ellipses[i];
    append_ellipsis(&e->result, leading);
    return append_single(e, &e->result, s);
}

tsr_status tsr_equation_parse(const char *caller, const char *text, int count, const tsr_layout *const *operands,
                              tsr_equation *out)
{
    memset(out, 0, sizeof *out);
    scan s = {.caller = caller, .text = text, .at = text, .operands = operands, .count = count, .out = out};
    do
        TSR_TRY(read_operand(&s, out->operand_count++));
    while (take(&s, ","));
    if (out->operand_count < count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: equation \"%.128s\" has %d operand%s, but %d are given", caller,
                              text, out->operand_count, out->operand_count == 1 ? "" : "s", count);
    TSR_TRY(read_result(&s));
    read_ones(&s);
    return TSR_OK;
}

tsr_status tsr_equation_of_matmul(const char *caller, const tsr_layout *const *operands, tsr_equation *out)
{
    static const char *const names[] = {"a", "b"};
    const int a = tsr_layout_ndim(operands[0]), b = tsr_layout_ndim(operands[1]);
    if (a == 0 || b == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is a scalar, but matmul wants at least 1 dim; scale by mul",
                              caller, names[a != 0]);
    const char *const text =
        a == 1 ? (b == 1 ? "k,k->" : "k,...kn->...n") : (b == 1 ? "...mk,k->...m" : "...mk,...kn->...mn");
    return tsr_equation_parse(caller, text, 2, operands, out);
}

unsigned tsr_equation_bits(const tsr_equation_term *term)
{
    unsigned bits = 0;
    for (int dim = 0; dim < term->ndim; dim++)
        bits |= term->factor[dim] == TSR_EQUATION_ONE ? 0 : 1u << term->factor[dim];
    return bits;
}

const char *tsr_equation_name(const tsr_equation *equation, int factor, char name[TSR_EQUATION_NAME])
{
    const char letter = factor < TSR_MAX_DIMS ? 'd' : equation->letters[factor - TSR_MAX_DIMS];
    const char lower = (char)tolower((unsigned char)letter);
    name[0] = lower;
    name[1] = '\0';
    if (factor < TSR_MAX_DIMS)
        name[1] = (char)('0' + factor);
    else if (lower != letter)
        name[1] = lower;
    name[2] = '\0';
    return name;
}
