#include "ops/rules/shardy/shardy_read.h"

#include "ops/rules/parse.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <string.h>

static const char *const sets[] = {"reduction", "need_replication", "permutation", "blocked_propagation"};

typedef struct reading {
    const char *text, *at;
    tsr_shardy_text *out;
    int count; /* factors, 0 to count - 1 */
    bool in_operands[TSR_OP_LETTERS], in_results[TSR_OP_LETTERS][TSR_OP_RESULTS];
    int result_count;
    int set[TSR_OP_LETTERS]; /* of the first three, + 1; 0: none */
} reading;

static tsr_status refuse(const reading *r, const char *expected)
{
    if (!*r->at)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "sharding rule \"%.400s\": expected %s at the end", r->text,
                              expected);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "sharding rule \"%.400s\", character %d: expected %s, found \"%c\"",
                          r->text, (int)(r->at - r->text), expected, isprint((unsigned char)*r->at) ? *r->at : '?');
}

static void skip_spaces(reading *r)
{
    while (*r->at == ' ')
        r->at++;
}

static bool take(reading *r, const char *token)
{
    skip_spaces(r);
    const size_t length = strlen(token);
    if (strncmp(r->at, token, length) != 0)
        return false;
    r->at += length;
    return true;
}

static tsr_status want(reading *r, const char *token, const char *expected)
{
    return take(r, token) ? TSR_OK : refuse(r, expected);
}

/* Reads digits; false: there are none, or too many. */
static bool take_number(reading *r, int64_t *out)
{
    const char *const begin = r->at;
    *out = 0;
    for (; isdigit((unsigned char)*r->at); r->at++) {
        if (*out > (INT64_MAX - 9) / 10)
            return false;
        *out = *out * 10 + (*r->at - '0');
    }
    return r->at > begin;
}

/* Reads a factor's name: i to z, z_1, .. */
static tsr_status read_factor(reading *r, int *factor)
{
    const char *const begin = r->at;
    int64_t number = 0;
    if (*r->at < 'i' || *r->at > 'z')
        return refuse(r, "a factor, i to z or z_1, ..");
    *factor = *r->at++ - 'i';
    if (*factor == 'z' - 'i' && *r->at == '_') {
        r->at++;
        if (!take_number(r, &number) || number == 0 || number > TSR_OP_LETTERS)
            return refuse(r, "the number of a factor that a rule has room for");
        *factor += (int)number;
    }
    if (*factor < TSR_OP_LETTERS)
        return TSR_OK;
    r->at = begin;
    return refuse(r, "one of the 16 factors that a rule has room for");
}

static void write_factor(reading *r, int factor)
{
    tsr_shardy_append(r->out, "%c", 'i' + factor);
}

/* Reads a dim: factors side by side. */
static tsr_status read_dim(reading *r, int result)
{
    int factors[TSR_MAX_DIMS], count = 0;
    do {
        if (count == TSR_MAX_DIMS)
            return refuse(r, "no further factor");
        TSR_TRY(read_factor(r, &factors[count]));
        bool *const seen = result < 0 ? &r->in_operands[factors[count]] : &r->in_results[factors[count]][result];
        *seen = true;
        r->count = factors[count] >= r->count ? factors[count] + 1 : r->count;
        count++;
    } while (islower((unsigned char)*r->at));
    tsr_shardy_append(r->out, count > 1 ? "(" : "");
    for (int i = 0; i < count; i++) {
        tsr_shardy_append(r->out, i ? " " : "");
        write_factor(r, factors[i]);
    }
    tsr_shardy_append(r->out, count > 1 ? ")" : "");
    return TSR_OK;
}

static tsr_status read_tensor(reading *r, int result)
{
    TSR_TRY(want(r, "[", "\"[\""));
    if (take(r, "]"))
        return TSR_OK;
    do {
        skip_spaces(r);
        TSR_TRY(read_dim(r, result));
        skip_spaces(r);
        if (*r->at == ',')
            tsr_shardy_append(r->out, " ");
    } while (take(r, ","));
    return want(r, "]", "\",\" or \"]\"");
}

/* Reads tensors in parentheses. */
static tsr_status read_tensors(reading *r, bool results)
{
    int count = 0;
    TSR_TRY(want(r, "(", "\"(\""));
    do {
        if (count == (results ? TSR_OP_RESULTS : TSR_OP_OPERANDS))
            return refuse(r, results ? "no further result" : "no further operand");
        tsr_shardy_append(r->out, count ? ", " : "");
        TSR_TRY(read_tensor(r, results ? count : -1));
        count++;
    } while (take(r, ","));
    r->result_count = results ? count : 0;
    return want(r, ")", "\",\" or \")\"");
}

/* Reads the sizes of all factors, in their order. */
static tsr_status read_sizes(reading *r)
{
    int64_t size;
    if (r->count == 0) {
        if (take(r, "{"))
            return want(r, "}", "\"}\"");
        return TSR_OK;
    }
    TSR_TRY(want(r, "{", "the factors' sizes, \"{\""));
    for (int i = 0; i < r->count; i++) {
        int factor;
        if (i)
            TSR_TRY(want(r, ",", "the size of each factor"));
        skip_spaces(r);
        const char *const begin = r->at;
        TSR_TRY(read_factor(r, &factor));
        if (factor != i) {
            r->at = begin;
            return refuse(r, "sizes in the order of factors");
        }
        TSR_TRY(want(r, "=", "\"=\""));
        if (!take_number(r, &size))
            return refuse(r, "a size");
    }
    return want(r, "}", "\"}\"");
}

/* Reads one set, behind its name. */
static tsr_status read_set(reading *r, int set)
{
    TSR_TRY(want(r, "={", "\"={\""));
    do {
        int factor;
        skip_spaces(r);
        const char *const begin = r->at;
        TSR_TRY(read_factor(r, &factor));
        if (factor >= r->count || (set < 3 && r->set[factor])) {
            r->at = begin;
            return refuse(r, factor >= r->count ? "a factor of a tensor" : "a factor that no other set has");
        }
        if (set < 3)
            r->set[factor] = set + 1;
    } while (take(r, ","));
    return want(r, "}", "\",\" or \"}\"");
}

static tsr_status read_sets(reading *r)
{
    for (int set = 0; set < 4; set++) {
        if (take(r, sets[set]))
            TSR_TRY(read_set(r, set));
    }
    if (take(r, ",") && !take(r, "custom"))
        return refuse(r, "\"custom\"");
    TSR_TRY(want(r, ">",
                 "\", custom\" or \">\", or the next of reduction, need_replication, permutation and "
                 "blocked_propagation"));
    skip_spaces(r);
    return *r->at ? refuse(r, "nothing behind \">\"") : TSR_OK;
}

/* Writes marks. Factors that results alone have must be whole; those that a result lacks must be in
 * a set. */
static tsr_status write_marks(reading *r)
{
    static const char *const marks[] = {"sum", "whole", "permute"};
    for (int factor = 0; factor < r->count; factor++) {
        bool everywhere = true, anywhere = r->in_operands[factor];
        for (int i = 0; i < r->result_count; i++) {
            everywhere = everywhere && r->in_results[factor][i];
            anywhere = anywhere || r->in_results[factor][i];
        }
        if (!anywhere)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "sharding rule \"%.400s\": no tensor has the factor %c", r->text,
                                  'i' + factor);
        if (!everywhere && r->set[factor] != 1 && r->set[factor] != 2 && r->in_operands[factor])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "sharding rule \"%.400s\": a result lacks %c, so it must be in reduction or "
                                  "need_replication",
                                  r->text, 'i' + factor);
        if (!r->in_operands[factor])
            r->set[factor] = 2;
    }
    for (int set = 1; set <= 3; set++) {
        bool any = false;
        for (int factor = 0; factor < r->count; factor++) {
            if (r->set[factor] != set)
                continue;
            tsr_shardy_append(r->out, any ? " " : " | ");
            write_factor(r, factor);
            any = true;
        }
        tsr_shardy_append(r->out, "%s%s", any ? " " : "", any ? marks[set - 1] : "");
    }
    return TSR_OK;
}

tsr_status tsr_shardy_read(const char *text, tsr_shardy_text *out)
{
    reading r = {.text = text, .at = text, .out = out};
    TSR_TRY(want(&r, "#sdy.op_sharding_rule<", "\"#sdy.op_sharding_rule<\""));
    TSR_TRY(read_tensors(&r, false));
    TSR_TRY(want(&r, "->", "\"->\""));
    tsr_shardy_append(out, " -> ");
    TSR_TRY(read_tensors(&r, true));
    TSR_TRY(read_sizes(&r));
    TSR_TRY(read_sets(&r));
    return write_marks(&r);
}
