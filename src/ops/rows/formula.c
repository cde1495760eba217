#include "ops/rows/formula.h"

#include "ops/rows/lookup.h"
#include "ops/rows/table.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The most rows within rows of a formula. */
#define DEPTH 8

/* The results of a row that has several, for the gradients that take one each. */
typedef struct shared_results {
    const char *text; /* of the row, with its arguments */
    size_t length;    /* 0: there are none */
    void *results[TSR_OP_MOST_RESULTS];
} shared_results;

typedef struct formula {
    const char *caller, *text, *at;
    tsr_context *context;
    const tsr_formula_values *values;
    const tsr_op_case *c;
    void *const *operands;
    void *gradient;
    shared_results shared;
} formula;

/* A row of a formula whose arguments are being read. */
typedef struct application {
    const tsr_op *op;
    int argument_count, attribute_count;
    void *arguments[TSR_OP_MOST_OPERANDS];
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
} application;

static void skip_spaces(formula *f)
{
    while (*f->at == ' ')
        f->at++;
}

static bool take(formula *f, char character)
{
    skip_spaces(f);
    const bool found = *f->at == character;
    f->at += found;
    return found;
}

/* Reads a word; its length, 0 for none. */
static size_t take_word(formula *f, const char **word)
{
    skip_spaces(f);
    *word = f->at;
    while (isalnum((unsigned char)*f->at) || *f->at == '_')
        f->at++;
    return (size_t)(f->at - *word);
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strncmp(word, name, length) == 0 && !name[length];
}

static int find_operand(const formula *f, const char *word, size_t length)
{
    for (int i = 0; f->c->op->operands[i]; i++) {
        if (is_word(word, length, f->c->op->operands[i]))
            return i;
    }
    return -1;
}

static tsr_status refuse_formula(const formula *f)
{
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: the gradient \"%s\" of op %s cannot be read at character %d",
                          f->caller, f->text, f->c->op->name, (int)(f->at - f->text));
}

/* An attribute that an applied row has takes the value of the op's attribute of that name. */
static void inherit_attributes(const formula *f, application *a)
{
    for (int i = 0; a->op->attributes[i].name; i++) {
        for (int j = 0; f->c->attributes[j].name; j++) {
            if (strcmp(a->op->attributes[i].name, f->c->attributes[j].name) != 0)
                continue;
            a->attributes[a->attribute_count++] = tsr_attribute_given(&f->c->attributes[j]);
        }
    }
}

/* Reads the value of a setting, behind its "=". */
static tsr_status read_setting(formula *f, application *a, const char *name, size_t length)
{
    const char *word;
    int i = 0;
    while (a->op->attributes[i].name && !is_word(name, length, a->op->attributes[i].name))
        i++;
    if (!a->op->attributes[i].name)
        return refuse_formula(f);
    int at = 0;
    while (at < a->attribute_count && strcmp(a->attributes[at].name, a->op->attributes[i].name) != 0)
        at++;
    a->attribute_count += at == a->attribute_count;
    tsr_attribute *const attribute = &a->attributes[at];
    *attribute = a->op->attributes[i];
    if (attribute->kind == TSR_ATTRIBUTE_FLOAT) {
        /* Formulas have halves alone, "0.5" and "-0.5", whatever the locale's point is. */
        const bool negative = take(f, '-');
        if (strncmp(f->at, "0.5", 3) != 0)
            return refuse_formula(f);
        f->at += 3;
        attribute->number = negative ? -0.5 : 0.5;
        return TSR_OK;
    }
    const size_t value = take_word(f, &word);
    const int operand = find_operand(f, word, value);
    if (attribute->kind != TSR_ATTRIBUTE_DTYPE || operand < 0 || !f->c->operands[operand])
        return refuse_formula(f);
    attribute->integer = tsr_layout_dtype(f->c->operands[operand]);
    return TSR_OK;
}

static tsr_status evaluate(formula *f, int depth, void **out);

/* Reads one argument or setting. */
static tsr_status read_argument(formula *f, int depth, application *a)
{
    const char *const begin = f->at, *word;
    const size_t length = take_word(f, &word);
    if (length && take(f, '='))
        return read_setting(f, a, word, length);
    f->at = begin;
    if (a->argument_count == TSR_OP_MOST_OPERANDS)
        return refuse_formula(f);
    TSR_TRY(evaluate(f, depth, &a->arguments[a->argument_count]));
    a->argument_count++;
    return TSR_OK;
}

static void drop_shared(formula *f)
{
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        f->values->release(f->shared.results[i]);
    f->shared = (shared_results){NULL};
}

static tsr_status apply_row(formula *f, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                            void *const *operands, void **results)
{
    return f->values->apply(f->values->user, f->caller, op, count, attributes, operands, results);
}

/* Takes the result that ".0", ".1", .. names from those of the last row. */
static tsr_status take_result(formula *f, void **out)
{
    const int result = take(f, '.') ? *f->at++ - '0' : -1;
    if (result < 0 || result >= TSR_OP_MOST_RESULTS || !f->shared.results[result])
        return refuse_formula(f);
    *out = f->values->retain(f->shared.results[result]);
    return TSR_OK;
}

/* Runs a row whose arguments have been read; `begin` is where its text begins. */
static tsr_status run_row(formula *f, const application *a, const char *begin, void **out)
{
    if (!a->op->results[1])
        return apply_row(f, a->op, (size_t)a->attribute_count, a->attributes, a->arguments, out);
    drop_shared(f);
    TSR_TRY(apply_row(f, a->op, (size_t)a->attribute_count, a->attributes, a->arguments, f->shared.results));
    f->shared.text = begin;
    f->shared.length = (size_t)(f->at - begin);
    return take_result(f, out);
}

/* Reads the arguments of a row, behind "(", and runs it. */
static tsr_status apply(formula *f, int depth, application *a, const char *begin, void **out)
{
    inherit_attributes(f, a);
    do
        TSR_TRY(read_argument(f, depth, a));
    while (take(f, ','));
    if (!take(f, ')') || a->op->operands[a->argument_count])
        return refuse_formula(f);
    return run_row(f, a, begin, out);
}

/* True, past the row, if its results are there already. */
static bool find_shared(formula *f, const char *begin)
{
    if (!f->shared.length || strncmp(begin, f->shared.text, f->shared.length) != 0)
        return false;
    f->at = begin + f->shared.length;
    return true;
}

/* The value of a formula; the caller owns it. */
static tsr_status evaluate(formula *f, int depth, void **out)
{
    const char *word;
    size_t length = take_word(f, &word);
    const char *const begin = word;
    application a = {.op = tsr_op_lookup(f->context, word, length)};
    if (a.op && find_shared(f, begin))
        return take_result(f, out);
    if (a.op && depth < DEPTH && take(f, '(')) {
        const tsr_status status = apply(f, depth + 1, &a, begin, out);
        for (int i = 0; i < a.argument_count; i++)
            f->values->release(a.arguments[i]);
        return status;
    }
    if (is_word(word, length, "dout")) {
        *out = f->values->retain(f->gradient);
        return TSR_OK;
    }
    if (is_word(word, length, "none")) {
        *out = NULL;
        return TSR_OK;
    }
    const bool like = is_word(word, length, "like");
    length = like ? take_word(f, &word) : length;
    const int operand = find_operand(f, word, length);
    if (operand < 0)
        return refuse_formula(f);
    if (like && f->operands[operand])
        return f->values->like(f->operands[operand], out);
    *out = f->operands[operand] ? f->values->retain(f->operands[operand]) : NULL;
    return TSR_OK;
}

/* Sums a gradient over the dims along which its operand was repeated. */
static tsr_status sum_repeated(formula *f, const tsr_layout *own, void **gradient)
{
    const tsr_layout *const made = f->values->layout(*gradient);
    const int ndim = tsr_layout_ndim(own);
    if (ndim == tsr_layout_ndim(made) &&
        (ndim == 0 || memcmp(tsr_layout_shape(own), tsr_layout_shape(made), (size_t)ndim * sizeof(int64_t)) == 0))
        return TSR_OK;
    const tsr_attribute shape = tsr_attribute_ints("shape", ndim, tsr_layout_shape(own));
    void *const whole = *gradient;
    const tsr_status status = apply_row(f, tsr_op_lookup(NULL, "sum_to", 6), 1, &shape, &whole, gradient);
    if (status == TSR_OK)
        f->values->release(whole);
    return status;
}

static tsr_status make_gradient(formula *f, int operand, void **out)
{
    f->text = f->at = f->c->op->gradients[operand];
    if (!f->text)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s has no gradient by %s", f->caller, f->c->op->name,
                              f->c->op->operands[operand]);
    void *made = NULL;
    TSR_TRY(evaluate(f, 0, &made));
    if (!made)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: the gradient \"%s\" of op %s is none", f->caller, f->text,
                              f->c->op->name);
    const tsr_status status = *f->at ? refuse_formula(f) : sum_repeated(f, f->c->operands[operand], &made);
    if (status == TSR_OK)
        *out = made;
    else
        f->values->release(made);
    return status;
}

tsr_status tsr_formula_gradients(const tsr_formula_values *values, const tsr_op_case *c, void *const *operands,
                                 void *gradient, const bool *wanted, void **made)
{
    formula f = {.caller = c->caller,
                 .context = tsr_mesh_context(tsr_layout_mesh(values->layout(gradient))),
                 .values = values,
                 .c = c,
                 .operands = operands,
                 .gradient = gradient};
    tsr_status status = TSR_OK;
    for (int i = 0; c->op->operands[i] && status == TSR_OK; i++) {
        if (wanted[i] && !c->operands[i])
            status = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is left out, so it has no gradient", c->caller,
                                    c->op->operands[i]);
        else if (wanted[i])
            status = make_gradient(&f, i, &made[i]);
    }
    drop_shared(&f);
    for (int i = 0; c->op->operands[i] && status != TSR_OK; i++) {
        values->release(made[i]);
        made[i] = NULL;
    }
    return status;
}
