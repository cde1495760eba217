#include "ops/eager/gradient.h"

#include "ops/eager/run.h"
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
    tsr_dtensor *results[TSR_OP_MOST_RESULTS];
} shared_results;

typedef struct formula {
    const char *caller, *text, *at;
    tsr_context *context;
    const tsr_op_case *c;
    const tsr_dtensor *const *operands;
    const tsr_dtensor *gradient;
    shared_results shared;
} formula;

/* A row of a formula whose arguments are being read. */
typedef struct application {
    const tsr_op *op;
    int argument_count, attribute_count;
    tsr_dtensor *arguments[TSR_OP_MOST_OPERANDS];
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

/* The operand over the same memory, Replicate where it is Partial: its values are not read. */
static tsr_status make_like(const tsr_dtensor *x, tsr_dtensor **out)
{
    const tsr_layout *const own = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(own)); k++) {
        placements[k] = tsr_layout_placements(own)[k];
        if (placements[k].kind == TSR_PARTIAL)
            placements[k] = tsr_replicate();
    }
    TSR_TRY(tsr_layout_with(own, placements, &layout));
    const tsr_status status = tsr_dtensor_from_local(&local, layout, NULL, out);
    tsr_layout_destroy(layout);
    return status;
}

/* An attribute that an applied row has takes the value of the op's attribute of that name. */
static void inherit_attributes(const formula *f, application *a)
{
    for (int i = 0; a->op->attributes[i].name; i++) {
        for (int j = 0; f->c->attributes[j].name; j++) {
            if (strcmp(a->op->attributes[i].name, f->c->attributes[j].name) != 0)
                continue;
            tsr_attribute value = f->c->attributes[j];
            if (value.kind == TSR_ATTRIBUTE_WORD)
                for (int64_t place = value.integer; place > 0; place--)
                    value.words = strchr(value.words, '|') + 1;
            a->attributes[a->attribute_count++] = value;
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
    if (attribute->kind != TSR_ATTRIBUTE_DTYPE || operand < 0)
        return refuse_formula(f);
    attribute->integer = tsr_layout_dtype(tsr_dtensor_layout(f->operands[operand]));
    return TSR_OK;
}

static tsr_status evaluate(formula *f, int depth, tsr_dtensor **out);

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

static void drop_shared(shared_results *shared)
{
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(shared->results[i]);
    *shared = (shared_results){NULL};
}

/* Takes the result that ".0", ".1", .. names from those of the last row. */
static tsr_status take_result(formula *f, tsr_dtensor **out)
{
    const int result = take(f, '.') ? *f->at++ - '0' : -1;
    if (result < 0 || result >= TSR_OP_MOST_RESULTS || !f->shared.results[result])
        return refuse_formula(f);
    *out = tsr_dtensor_retain(f->shared.results[result]);
    return TSR_OK;
}

/* Runs a row whose arguments have been read; `begin` is where its text begins. */
static tsr_status run_row(formula *f, const application *a, const char *begin, tsr_dtensor **out)
{
    const tsr_dtensor *const *const arguments = (const tsr_dtensor *const *)a->arguments;
    if (!a->op->results[1])
        return tsr_eager_run(f->caller, a->op, (size_t)a->attribute_count, a->attributes, arguments, out);
    drop_shared(&f->shared);
    TSR_TRY(tsr_eager_run(f->caller, a->op, (size_t)a->attribute_count, a->attributes, arguments, f->shared.results));
    f->shared.text = begin;
    f->shared.length = (size_t)(f->at - begin);
    return take_result(f, out);
}

/* Reads the arguments of a row, behind "(", and runs it. */
static tsr_status apply(formula *f, int depth, application *a, const char *begin, tsr_dtensor **out)
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
static tsr_status evaluate(formula *f, int depth, tsr_dtensor **out)
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
            tsr_dtensor_destroy(a.arguments[i]);
        return status;
    }
    if (is_word(word, length, "dout")) {
        *out = tsr_dtensor_retain((tsr_dtensor *)f->gradient);
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
        return make_like(f->operands[operand], out);
    *out = f->operands[operand] ? tsr_dtensor_retain((tsr_dtensor *)f->operands[operand]) : NULL;
    return TSR_OK;
}

/* Sums a gradient over the dims along which its operand was repeated. */
static tsr_status sum_repeated(const char *caller, const tsr_dtensor *operand, tsr_dtensor **gradient)
{
    const tsr_layout *const own = tsr_dtensor_layout(operand), *const made = tsr_dtensor_layout(*gradient);
    const int ndim = tsr_layout_ndim(own);
    if (ndim == tsr_layout_ndim(made) &&
        (ndim == 0 || memcmp(tsr_layout_shape(own), tsr_layout_shape(made), (size_t)ndim * sizeof(int64_t)) == 0))
        return TSR_OK;
    const tsr_attribute shape = tsr_attribute_ints("shape", ndim, tsr_layout_shape(own));
    tsr_dtensor *whole = *gradient;
    const tsr_status status = tsr_eager_run(caller, tsr_op_lookup(NULL, "sum_to", 6), 1, &shape,
                                            (const tsr_dtensor *const[]){whole}, gradient);
    if (status == TSR_OK)
        tsr_dtensor_destroy(whole);
    return status;
}

static tsr_status make_gradient(formula *f, int operand, tsr_dtensor **out)
{
    f->text = f->at = f->c->op->gradients[operand];
    if (!f->text)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s has no gradient by %s", f->caller, f->c->op->name,
                              f->c->op->operands[operand]);
    tsr_dtensor *made = NULL;
    TSR_TRY(evaluate(f, 0, &made));
    const tsr_status status = *f->at ? refuse_formula(f) : sum_repeated(f->caller, f->operands[operand], &made);
    if (status == TSR_OK)
        *out = made;
    else
        tsr_dtensor_destroy(made);
    return status;
}

/* The layout of a result's gradient: Replicate where the op made the result Partial, of whatever
 * kind. Where an operand is Partial of max, min or prod there is none. */
static tsr_status find_gradient_layout(const tsr_op_case *c, const tsr_layout *result, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const int mesh_ndim = tsr_mesh_ndim(tsr_layout_mesh(result));
    for (int i = 0; c->op->operands[i]; i++) {
        for (int k = 0; c->operands[i] && k < mesh_ndim; k++) {
            const tsr_placement *const p = &tsr_layout_placements(c->operands[i])[k];
            if (p->kind == TSR_PARTIAL && p->op != TSR_SUM && p->op != TSR_AVG)
                return tsr_layout_gradient(result, out);
        }
    }
    for (int k = 0; k < mesh_ndim; k++) {
        placements[k] = tsr_layout_placements(result)[k];
        if (placements[k].kind == TSR_PARTIAL)
            placements[k] = tsr_replicate();
    }
    return tsr_layout_with(result, placements, out);
}

/* Checks that the gradient has the gradient layout of the result. */
static tsr_status check_gradient(const tsr_op_case *c, const tsr_dtensor *gradient)
{
    tsr_op_inferred inferred = {{NULL}, 0};
    tsr_layout *wanted = NULL;
    if (!gradient)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dout is NULL", c->caller);
    tsr_status status = tsr_op_infer(c, &inferred);
    if (status == TSR_OK)
        status = find_gradient_layout(c, inferred.results[0], &wanted);
    if (status == TSR_OK && !tsr_layout_equal(wanted, tsr_dtensor_layout(gradient))) {
        char ours[256], theirs[256];
        tsr_layout_print(tsr_dtensor_layout(gradient), ours, sizeof ours);
        tsr_layout_print(wanted, theirs, sizeof theirs);
        status = tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: dout is \"%s\", but must have the result's shape and dtype %s in its gradient layout, \"%s\"",
            c->caller, ours, tsr_dtype_name(tsr_layout_dtype(wanted)), theirs);
    }
    tsr_layout_destroy(wanted);
    tsr_op_inferred_clear(&inferred);
    return status;
}

tsr_status tsr_eager_backward(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                              tsr_dtensor **const *wanted)
{
    tsr_op_case c;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS] = {NULL};
    tsr_dtensor *made[TSR_OP_MOST_OPERANDS] = {NULL};
    for (int i = 0; op->operands[i]; i++)
        layouts[i] = operands[i] ? tsr_dtensor_layout(operands[i]) : NULL;
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, layouts, &c));
    TSR_TRY(check_gradient(&c, gradient));
    formula f = {.caller = caller,
                 .context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(gradient))),
                 .c = &c,
                 .operands = operands,
                 .gradient = gradient};
    for (int i = 0; op->operands[i]; i++) {
        if (wanted[i] && !operands[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is left out, so it has no gradient", caller,
                                  op->operands[i]);
    }
    tsr_status status = TSR_OK;
    for (int i = 0; op->operands[i] && status == TSR_OK; i++) {
        if (wanted[i])
            status = make_gradient(&f, i, &made[i]);
    }
    drop_shared(&f.shared);
    for (int i = 0; op->operands[i]; i++) {
        if (wanted[i] && status == TSR_OK)
            *wanted[i] = made[i];
        else
            tsr_dtensor_destroy(made[i]);
    }
    return status;
}

tsr_status tsr_op_backward(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                           const tsr_dtensor *const *operands, const tsr_dtensor *gradient, tsr_dtensor **const *wanted)
{
    if (!op || !operands || !wanted)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_backward: %s is NULL",
                              !op        ? "op"
                              : operands ? "wanted"
                                         : "operands");
    return tsr_eager_backward(op->name, op, count, attributes, operands, gradient, wanted);
}
