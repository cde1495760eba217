#include "ops/rows/table.h"

#include "ops/rows/key_recipe.h"
#include "ops/rows/rows.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

void tsr_op_describe(const tsr_op *op, tsr_op_info *out)
{
    *out = (tsr_op_info){.name = op->name, .rule = op->rule, .moves = op->moves_to != NULL};
    memcpy(out->operands, op->operands, sizeof out->operands);
    memcpy(out->results, op->results, sizeof out->results);
    memcpy(out->attributes, op->attributes, sizeof out->attributes);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        out->has_gradient |= op->gradients[i] != NULL;
}

/* Counts of lists that the call which is given them refuses; `integer` is the count that was
 * meant. */
#define LIST_IS_NULL  (-2)
#define LIST_IS_WRONG (-3)

tsr_attribute tsr_attribute_int(const char *name, int64_t value)
{
    return (tsr_attribute){.name = name, .kind = TSR_ATTRIBUTE_INT, .integer = value};
}

tsr_attribute tsr_attribute_float(const char *name, double value)
{
    return (tsr_attribute){.name = name, .kind = TSR_ATTRIBUTE_FLOAT, .number = value};
}

tsr_attribute tsr_attribute_dtype(const char *name, tsr_dtype value)
{
    return (tsr_attribute){.name = name, .kind = TSR_ATTRIBUTE_DTYPE, .integer = value};
}

tsr_attribute tsr_attribute_word(const char *name, const char *word)
{
    return (tsr_attribute){.name = name, .kind = TSR_ATTRIBUTE_WORD, .words = word};
}

tsr_attribute tsr_attribute_text(const char *name, const char *text)
{
    return (tsr_attribute){.name = name, .kind = TSR_ATTRIBUTE_TEXT, .words = text};
}

tsr_attribute tsr_attribute_ints(const char *name, int count, const int64_t *values)
{
    tsr_attribute attribute = {.name = name, .kind = TSR_ATTRIBUTE_INTS, .count = count};
    if (count < 0 || count > TSR_MAX_DIMS || (count > 0 && !values)) {
        attribute.integer = count;
        attribute.count = count > 0 && !values ? LIST_IS_NULL : LIST_IS_WRONG;
    } else if (count > 0)
        memcpy(attribute.list, values, (size_t)count * sizeof *values);
    return attribute;
}

/* The place of a word among words apart by `|`; -1: it is none of them. */
static int64_t find_place(const char *words, const char *word)
{
    const size_t length = word ? strlen(word) : 0;
    for (int64_t place = 0; words && length; place++) {
        if (strncmp(words, word, length) == 0 && (words[length] == '|' || !words[length]))
            return place;
        words = strchr(words, '|');
        words = words ? words + 1 : NULL;
    }
    return -1;
}

static tsr_status refuse_attribute(const char *caller, const tsr_op *op, const char *name)
{
    char names[256] = "none";
    size_t length = 0;
    for (int i = 0; op->attributes[i].name && length < sizeof names; i++)
        length +=
            (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", op->attributes[i].name);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: attribute \"%.64s\": %s has %s", caller, name ? name : "", op->name,
                          names);
}

static tsr_status check_list(const char *caller, const tsr_attribute *given)
{
    if (given->count == LIST_IS_NULL)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the list of attribute %s is NULL, but has %lld numbers", caller,
                              given->name, (long long)given->integer);
    if (given->count >= -1 && given->count <= TSR_MAX_DIMS)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: attribute %s has %lld numbers, but must have 0 to %d", caller,
                          given->name, (long long)(given->count < -1 ? given->integer : given->count), TSR_MAX_DIMS);
}

static tsr_status read_attribute(const char *caller, const tsr_op *op, const tsr_attribute *given, tsr_attribute *all)
{
    static const char *const kinds[] = {"", "a number", "a float", "a dtype", "a word", "a list of numbers", "a text"};
    int i = 0;
    while (all[i].name && (!given->name || strcmp(all[i].name, given->name) != 0))
        i++;
    if (!all[i].name)
        return refuse_attribute(caller, op, given->name);
    if (given->kind != all[i].kind)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: attribute %s must be %s", caller, given->name,
                              kinds[all[i].kind]);
    if (given->kind == TSR_ATTRIBUTE_INTS)
        TSR_TRY(check_list(caller, given));
    const char *const words = all[i].words;
    all[i] = *given;
    if (given->kind == TSR_ATTRIBUTE_TEXT)
        return given->words ? TSR_OK
                            : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: attribute %s is NULL", caller, given->name);
    all[i].words = words;
    if (given->kind == TSR_ATTRIBUTE_WORD && (all[i].integer = find_place(words, given->words)) < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: attribute %s is \"%.32s\", but must be one of %s", caller,
                              given->name, given->words ? given->words : "", words);
    return TSR_OK;
}

tsr_attribute tsr_attribute_given(const tsr_attribute *of_case)
{
    tsr_attribute given = *of_case;
    if (given.kind == TSR_ATTRIBUTE_WORD)
        for (int64_t place = given.integer; place > 0; place--)
            given.words = strchr(given.words, '|') + 1;
    return given;
}

tsr_status tsr_op_refuse_null(const char *caller, const void *op, const void *operands, const char *last)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, !op ? "op" : operands ? last : "operands");
}

tsr_status tsr_op_begin(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        const tsr_layout *const *operands, tsr_op_case *out)
{
    /* Attributes beyond the row's are not set, which costs more than the rest of the call. */
    out->caller = caller;
    out->op = op;
    out->operands = operands;
    int last = 0;
    do {
        out->attributes[last] = op->attributes[last];
        if (op->attributes[last].kind == TSR_ATTRIBUTE_TEXT && !op->attributes[last].words)
            out->attributes[last].words = "";
    } while (op->attributes[last++].name);
    if (count && !attributes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: attributes is NULL, but their number is %zu", caller, count);
    for (int i = 0; op->operands[i]; i++) {
        if (!operands[i] && !(op->optional >> i & 1))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, op->operands[i]);
    }
    for (size_t i = 0; i < count; i++)
        TSR_TRY(read_attribute(caller, op, &attributes[i], out->attributes));
    return TSR_OK;
}

static tsr_status shape_result(const void *arg, int result, int64_t shape[TSR_MAX_DIMS])
{
    const tsr_op_case *const c = arg;
    return c->op->shape_of(c, result, shape);
}

/* The layout of an op that redistributes its first operand. */
static tsr_status infer_move(const tsr_op_case *c, tsr_op_inferred *out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_dtype dtypes[TSR_OP_MOST_RESULTS];
    tsr_layout *layout;
    TSR_TRY(c->op->check(c, dtypes));
    TSR_TRY(c->op->moves_to(c, placements));
    TSR_TRY(tsr_layout_with(c->operands[0], placements, &layout));
    *out = (tsr_op_inferred){{layout}, 0};
    return TSR_OK;
}

/* Refuses a key that stands for one that runs give, in whose place recording has put one. */
static tsr_status check_key(const tsr_op_case *c)
{
    const int place = tsr_key_recipe_find_place(TSR_OP_MOST_ATTRIBUTES, c->attributes);
    if (place < 0 || c->attributes[place].count != TSR_KEY_RECIPE_NUMBERS)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: key is of tsr_run_key() and stands for one that runs of a program give; give a key that "
                          "is one",
                          c->caller);
}

tsr_status tsr_op_read_rule(const tsr_op_case *c, tsr_op_ruling *out)
{
    TSR_TRY(check_key(c));
    out->names = (tsr_op_names){.caller = c->caller, .op = c->op->name, .rule = c->op->rule};
    memcpy(out->names.operands, c->op->operands, sizeof out->names.operands);
    TSR_TRY(c->op->check(c, out->dtypes));
    if (c->op->rule_of) {
        TSR_TRY(c->op->rule_of(c, out->text));
        out->names.rule = out->text;
    }
    TSR_TRY(tsr_op_rule_parse(out->names.rule, &out->rule));
    if (c->op->place_of)
        c->op->place_of(c, &out->placing);
    out->shaping = (tsr_op_shaping){c->op->optional, out->dtypes, c->op->shape_of ? shape_result : NULL, c,
                                    c->op->place_of ? &out->placing : NULL};
    return TSR_OK;
}

tsr_status tsr_op_infer(const tsr_op_case *c, tsr_op_inferred *out)
{
    tsr_op_ruling r;
    if (c->op->moves_to)
        return infer_move(c, out);
    TSR_TRY(tsr_op_read_rule(c, &r));
    return tsr_op_propagate_rule(&r.rule, &r.names, &r.shaping, c->operands, out);
}

tsr_status tsr_op_propagate(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                            const tsr_layout *const *operands, tsr_layout **results)
{
    tsr_op_case c;
    tsr_op_inferred found;
    if (!op || !operands || !results)
        return tsr_op_refuse_null("tsr_op_propagate", op, operands, "results");
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    TSR_TRY(tsr_op_infer(&c, &found));
    memcpy(results, found.results, sizeof found.results);
    return TSR_OK;
}
