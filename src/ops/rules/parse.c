#include "ops/rules/parse.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <string.h>

#define WORD sizeof((tsr_op_rule){0}.factors[0])

typedef struct scan {
    const char *text, *at;
    tsr_op_rule *out;
    const char *first[TSR_OP_LETTERS]; /* where a factor that no operand has is first named; else NULL */
} scan;

static const char *const kinds[] = {"sum", "mean", "max", "min", "prod", "exchange", "whole", "permute", "positional"};
static const char *const groups[] = {"linear", "monotone", "antitone"};

static int find_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0)
            return (int)i;
    }
    return -1;
}

#define FIND(words, word) find_word(words, sizeof(words) / sizeof((words)[0]), word)

static tsr_status refuse(const scan *s, const char *expected)
{
    if (!*s->at)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "rule \"%s\": expected %s at the end", s->text, expected);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "rule \"%s\", character %d: expected %s, found \"%c\"", s->text,
                          (int)(s->at - s->text), expected, *s->at);
}

static void skip_spaces(scan *s)
{
    while (*s->at == ' ')
        s->at++;
}

static bool take(scan *s, const char *token)
{
    skip_spaces(s);
    const size_t length = strlen(token);
    if (strncmp(s->at, token, length) != 0)
        return false;
    s->at += length;
    return true;
}

/* Reads a lower-case word; false: there is none here, or it is too long. */
static bool take_word(scan *s, char word[WORD])
{
    skip_spaces(s);
    size_t length = 0;
    while (islower((unsigned char)s->at[length]) || (length && (isdigit((unsigned char)s->at[length]))))
        length++;
    if (length == 0 || length >= WORD)
        return false;
    memcpy(word, s->at, length);
    word[length] = '\0';
    s->at += length;
    return true;
}

static int find_factor(const tsr_op_rule *rule, const char *word)
{
    for (int i = 0; i < rule->factor_count; i++) {
        if (strcmp(rule->factors[i], word) == 0)
            return i;
    }
    return -1;
}

int tsr_op_term_find(const tsr_op_term *term, int item)
{
    for (int i = 0; i < term->count; i++) {
        if (term->item[i] == item)
            return i;
    }
    return -1;
}

bool tsr_op_term_has(const tsr_op_rule *rule, const tsr_op_term *term, int factor)
{
    for (int i = 0; i < term->count; i++) {
        if (term->item[i] == factor)
            return true;
        if (term->item[i] < TSR_OP_LETTERS)
            continue;
        const tsr_op_compound *const compound = &rule->compounds[term->item[i] - TSR_OP_LETTERS];
        for (int j = 0; j < compound->count; j++) {
            if (compound->factor[j] == factor)
                return true;
        }
    }
    return false;
}

/* Reads a factor, which may be new; a new one of a result must be marked "whole" in the end. */
static tsr_status parse_factor(scan *s, bool result, int *item)
{
    char word[WORD];
    const char *const begin = s->at;
    if (!take_word(s, word) || FIND(kinds, word) >= 0 || FIND(groups, word) >= 0) {
        s->at = begin;
        return refuse(s, "a factor, \"1\", \"...\" or the next term");
    }
    *item = find_factor(s->out, word);
    if (*item >= 0)
        return TSR_OK;
    if (s->out->factor_count == TSR_OP_LETTERS) {
        s->at = begin;
        return refuse(s, "no further factor");
    }
    *item = s->out->factor_count++;
    s->first[*item] = result ? s->at - strlen(word) : NULL;
    strcpy(s->out->factors[*item], word);
    return TSR_OK;
}

static int find_compound(const tsr_op_rule *rule, const tsr_op_compound *compound)
{
    for (int i = 0; i < rule->compound_count; i++) {
        const tsr_op_compound *const other = &rule->compounds[i];
        if (other->count == compound->count &&
            memcmp(other->factor, compound->factor, (size_t)compound->count * sizeof(int)) == 0)
            return i;
    }
    return -1;
}

/* Reads factors up to ")". */
static tsr_status parse_factors(scan *s, bool result, tsr_op_compound *out)
{
    memset(out, 0, sizeof *out);
    while (!take(s, ")")) {
        int factor;
        if (out->count == TSR_MAX_DIMS || !islower((unsigned char)*s->at))
            return refuse(s, out->count < 2 ? "a factor" : "a factor or \")\"");
        TSR_TRY(parse_factor(s, result, &factor));
        out->factor[out->count++] = factor;
    }
    if (out->count >= 2)
        return TSR_OK;
    s->at--;
    return refuse(s, "a second factor of the compound");
}

/* Reads a compound of a term, behind "(". */
static tsr_status parse_compound(scan *s, bool result, int *item)
{
    tsr_op_compound compound;
    const char *const begin = s->at - 1;
    TSR_TRY(parse_factors(s, result, &compound));
    for (int i = 0; i < compound.count; i++) {
        for (int j = 0; j < i; j++) {
            if (compound.factor[i] != compound.factor[j])
                continue;
            s->at = begin;
            return refuse(s, "each factor and \"...\" once");
        }
    }
    *item = find_compound(s->out, &compound);
    if (*item < 0 && s->out->compound_count == TSR_OP_COMPOUNDS) {
        s->at = begin;
        return refuse(s, "no further compound");
    }
    if (*item < 0)
        s->out->compounds[ *item = s->out->compound_count++] = compound;
    *item += TSR_OP_LETTERS;
    return TSR_OK;
}

/* True if a term has an item, or any factor of it. */
static bool has_any(const tsr_op_rule *rule, const tsr_op_term *term, int item)
{
    if (item < TSR_OP_LETTERS)
        return item >= 0 ? tsr_op_term_has(rule, term, item) : tsr_op_term_find(term, item) >= 0;
    const tsr_op_compound *const compound = &rule->compounds[item - TSR_OP_LETTERS];
    for (int i = 0; i < compound->count; i++) {
        if (tsr_op_term_has(rule, term, compound->factor[i]))
            return true;
    }
    return false;
}

/* True before what ends a term. */
static bool is_end_of_term(scan *s)
{
    skip_spaces(s);
    return !*s->at || strchr(",+|", *s->at) || strncmp(s->at, "->", 2) == 0;
}

static tsr_status parse_term(scan *s, bool result, tsr_op_term *term)
{
    while (!is_end_of_term(s)) {
        const char *const begin = s->at;
        int item = TSR_OP_ELLIPSIS;
        if (term->count == TSR_MAX_DIMS)
            return refuse(s, "the next term");
        if (take(s, "("))
            TSR_TRY(parse_compound(s, result, &item));
        else if (!take(s, "...") && (item = TSR_OP_ONE, !take(s, "1")))
            TSR_TRY(parse_factor(s, result, &item));
        if (item != TSR_OP_ONE && has_any(s->out, term, item)) {
            s->at = begin;
            return refuse(s, "each factor and \"...\" once");
        }
        term->item[term->count++] = item;
    }
    return TSR_OK;
}

static tsr_status parse_terms(scan *s)
{
    tsr_op_rule *const rule = s->out;
    bool added = false;
    do {
        if (rule->operand_count == TSR_OP_OPERANDS)
            return refuse(s, "\"->\"");
        rule->operands[rule->operand_count].added = added;
        TSR_TRY(parse_term(s, false, &rule->operands[rule->operand_count++]));
    } while (take(s, ",") || (added = take(s, "+")));
    if (!take(s, "->"))
        return refuse(s, "\"->\"");
    do {
        if (rule->result_count == TSR_OP_RESULTS)
            return refuse(s, "\"|\"");
        TSR_TRY(parse_term(s, true, &rule->results[rule->result_count++]));
    } while (take(s, ","));
    return TSR_OK;
}

static void set_mark(tsr_op_marks *marks, int kind)
{
    static const tsr_reduce_op ops[] = {TSR_SUM, TSR_SUM, TSR_MAX, TSR_MIN, TSR_PROD};
    if (kind < 5) {
        marks->reduces = true;
        marks->reduction = ops[kind];
    }
    marks->exchange |= kind == 5;
    marks->whole |= kind == 6;
    marks->permute |= kind == 7;
    marks->positional |= kind == 8;
}

/* Reads the operands of one group as bits. */
static tsr_status parse_group(scan *s, unsigned *bits)
{
    *bits = 0;
    while (!take(s, "}")) {
        const int operand = *s->at - '0';
        if (!isdigit((unsigned char)*s->at) || operand >= s->out->operand_count)
            return refuse(s, "an operand's number or \"}\"");
        *bits |= 1u << operand;
        s->at++;
    }
    return TSR_OK;
}

static tsr_status parse_groups(scan *s, int kind)
{
    tsr_op_rule *const rule = s->out;
    unsigned bits;
    if (!take(s, "{"))
        return refuse(s, "\"{\"");
    do {
        TSR_TRY(parse_group(s, &bits));
        if (kind == 0 && rule->linear_count == TSR_OP_OPERANDS)
            return refuse(s, "no further group");
        if (kind == 0)
            rule->linear[rule->linear_count++] = bits;
        else
            *(kind == 1 ? &rule->monotone : &rule->antitone) |= bits;
    } while (take(s, "{"));
    return TSR_OK;
}

/* Reads the compound that a mark names, behind "(". */
static tsr_status parse_subject(scan *s, tsr_op_marks **subject)
{
    tsr_op_compound compound;
    const char *const begin = s->at - 1;
    const int known = s->out->factor_count;
    TSR_TRY(parse_factors(s, false, &compound));
    const int found = find_compound(s->out, &compound);
    if (found < 0 || s->out->factor_count > known) {
        s->at = begin;
        return refuse(s, "a compound of a term");
    }
    *subject = &s->out->compounds[found].marks;
    return TSR_OK;
}

/* Reads one mark, whose subjects come before its kinds. */
static tsr_status parse_mark(scan *s)
{
    tsr_op_marks *subjects[TSR_OP_LETTERS + 1];
    int count = 0, applied = 0;
    while (!is_end_of_term(s)) {
        char word[WORD];
        const char *const begin = s->at;
        tsr_op_marks *subject = &s->out->ellipsis;
        if (take(s, "(")) {
            TSR_TRY(parse_subject(s, &subject));
        } else if (!take(s, "...")) {
            if (!take_word(s, word))
                return refuse(s, "a factor or a mark");
            const int kind = FIND(kinds, word), group = FIND(groups, word), factor = find_factor(s->out, word);
            if (group >= 0 && count == 0)
                return parse_groups(s, group);
            for (int i = 0; kind >= 0 && i < count; i++)
                set_mark(subjects[i], kind);
            applied += kind >= 0;
            if (kind >= 0 && count)
                continue;
            subject = factor < 0 ? NULL : &s->out->marks[factor];
        }
        if (!subject || applied || count > TSR_OP_LETTERS) {
            s->at = begin;
            return refuse(s, count ? "a mark such as sum, exchange or whole" : "a factor");
        }
        subjects[count++] = subject;
    }
    return applied ? TSR_OK : refuse(s, "a mark such as sum, exchange or whole");
}

/* Gives the marks of compounds to their factors, but for "positional". */
static void spread_marks(tsr_op_rule *rule)
{
    for (int i = 0; i < rule->compound_count; i++) {
        const tsr_op_marks *const own = &rule->compounds[i].marks;
        for (int j = 0; j < rule->compounds[i].count; j++) {
            tsr_op_marks *const marks = &rule->marks[rule->compounds[i].factor[j]];
            if (own->reduces)
                marks->reduction = own->reduction;
            marks->reduces |= own->reduces;
            marks->exchange |= own->exchange;
            marks->whole |= own->whole;
            marks->permute |= own->permute;
        }
    }
}

/* Checks that factors of results alone are whole. */
static tsr_status check_new(scan *s)
{
    for (int factor = 0; factor < s->out->factor_count; factor++) {
        if (!s->first[factor] || s->out->marks[factor].whole)
            continue;
        s->at = s->first[factor];
        return refuse(s, "a factor of an operand");
    }
    return TSR_OK;
}

static tsr_status refuse_contracted(const scan *s, const char *factor)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "rule \"%s\": a result lacks the factor %s, so a mark must say what becomes of it, "
                          "as in \"| %s sum\"",
                          s->text, factor, factor);
}

/* True if marks say what becomes of a factor that a result lacks. */
static bool says_fate(const tsr_op_marks *marks)
{
    return marks->reduces || marks->exchange || marks->whole;
}

/* Checks that marks say what becomes of each factor that a result lacks. */
static tsr_status check_contracted(const scan *s)
{
    const tsr_op_rule *const rule = s->out;
    bool open = false;
    for (int i = 0; i < rule->operand_count; i++)
        open |= tsr_op_term_find(&rule->operands[i], TSR_OP_ELLIPSIS) >= 0;
    for (int i = 0; i < rule->result_count; i++) {
        for (int factor = 0; factor < rule->factor_count; factor++) {
            if (!tsr_op_term_has(rule, &rule->results[i], factor) && !says_fate(&rule->marks[factor]))
                return refuse_contracted(s, rule->factors[factor]);
        }
        if (open && tsr_op_term_find(&rule->results[i], TSR_OP_ELLIPSIS) < 0 && !says_fate(&rule->ellipsis))
            return refuse_contracted(s, "...");
    }
    return TSR_OK;
}

tsr_status tsr_op_rule_parse(const char *text, tsr_op_rule *out)
{
    memset(out, 0, sizeof *out);
    scan s = {.text = text, .at = text, .out = out};
    TSR_TRY(parse_terms(&s));
    while (take(&s, "|"))
        TSR_TRY(parse_mark(&s));
    skip_spaces(&s);
    if (*s.at)
        return refuse(&s, "\"|\"");
    spread_marks(out);
    TSR_TRY(check_new(&s));
    return check_contracted(&s);
}
