#include "ops/rows/reshape.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes for a list of numbers. */
#define TEXT 192

/* The shape of the result; false: the attribute does not have the elements of the operand. */
static bool find_shape(const tsr_op_case *c, int *ndim, int64_t *shape)
{
    const tsr_layout *const x = c->operands[0], *const like = c->op->operands[1] ? c->operands[1] : NULL;
    int64_t count = 1, product = 1;
    int open = -1;
    *ndim = like ? tsr_layout_ndim(like) : c->attributes[0].count;
    for (int dim = 0; dim < tsr_layout_ndim(x); dim++)
        count *= tsr_layout_shape(x)[dim];
    for (int dim = 0; dim < *ndim; dim++) {
        shape[dim] = like ? tsr_layout_shape(like)[dim] : c->attributes[0].list[dim];
        if (shape[dim] < -1 || (shape[dim] == -1 && open >= 0))
            return false;
        if (shape[dim] == -1)
            open = dim;
        else if (__builtin_mul_overflow(product, shape[dim], &product))
            return false;
    }
    if (open < 0)
        return product == count;
    if (product == 0 || count % product != 0)
        return false;
    shape[open] = count / product;
    return true;
}

static const char *print_shape(int ndim, const int64_t *shape, char text[TEXT])
{
    size_t length = (size_t)snprintf(text, TEXT, "%s", ndim ? "" : "()");
    for (int dim = 0; dim < ndim && length < TEXT; dim++)
        length += (size_t)snprintf(text + length, TEXT - length, "%s%lld", dim ? "x" : "", (long long)shape[dim]);
    return text;
}

tsr_status tsr_check_reshape(const tsr_op_case *c, tsr_dtype *results)
{
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    char own[TEXT], wanted[TEXT];
    const tsr_layout *const x = c->operands[0], *const like = c->op->operands[1] ? c->operands[1] : NULL;
    results[0] = tsr_layout_dtype(x);
    if (find_shape(c, &ndim, shape))
        return TSR_OK;
    print_shape(tsr_layout_ndim(x), tsr_layout_shape(x), own);
    print_shape(ndim, like ? tsr_layout_shape(like) : c->attributes[0].list, wanted);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: shape is %s, but %s of shape %s needs one with as many elements, in which -1, once, may "
                          "stand for what is left",
                          c->caller, wanted, c->op->operands[0], own);
}

tsr_status tsr_shape_of_reshape(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    int ndim;
    (void)result;
    find_shape(c, &ndim, shape);
    return TSR_OK;
}

/* The factors of a dim, letters, major to minor; "1" for a result's dim of size 1. */
typedef char dim_factors[TSR_OP_LETTERS + 1];

/* Two shapes, and the factors of their dims so far. */
typedef struct factoring {
    int from_ndim, to_ndim;
    const int64_t *from, *to;
    dim_factors ours[TSR_MAX_DIMS], theirs[TSR_MAX_DIMS];
    dim_factors whole; /* factors that must be whole */
    int count;
} factoring;

static void add_factor(char *factors, char letter)
{
    const size_t length = strlen(factors);
    factors[length] = letter;
    factors[length + 1] = '\0';
}

static char next_factor(factoring *f)
{
    return (char)('a' + f->count++);
}

/* Gives dims factors that they have alone, and that are whole. */
static void keep_whole(factoring *f, dim_factors *dims, int begin, int end)
{
    for (int dim = begin; dim < end; dim++) {
        const char letter = next_factor(f);
        add_factor(dims[dim], letter);
        add_factor(f->whole, letter);
    }
}

static void keep_apart(factoring *f, int from, int from_end, int to, int to_end)
{
    keep_whole(f, f->ours, from, from_end);
    for (; to < to_end; to++) {
        if (f->to[to] == 1)
            add_factor(f->theirs[to], '1');
        else
            keep_whole(f, f->theirs, to, to + 1);
    }
}

/* Takes dims of size 1 that begin a stretch. */
static void skip_ones(factoring *f, int *from, int from_end, int *to, int to_end)
{
    for (; *from < from_end && f->from[*from] == 1; (*from)++)
        keep_whole(f, f->ours, *from, *from + 1);
    for (; *to < to_end && f->to[*to] == 1; (*to)++)
        add_factor(f->theirs[*to], '1');
}

/* Splits dims of equally many elements into common factors; false, with nothing split for good: the
 * places where dims end do not divide each other. */
static bool split_stretch(factoring *f, int from, int from_end, int to, int to_end)
{
    int64_t ours = 1, theirs = 1;
    for (;;) {
        skip_ones(f, &from, from_end, &to, to_end);
        if (from == from_end && to == to_end)
            return true;
        ours = ours == 1 ? f->from[from] : ours;
        theirs = theirs == 1 ? f->to[to] : theirs;
        const int64_t least = ours < theirs ? ours : theirs;
        if (ours % least != 0 || theirs % least != 0)
            return false;
        const char letter = next_factor(f);
        add_factor(f->ours[from], letter);
        add_factor(f->theirs[to], letter);
        ours /= least;
        theirs /= least;
        from += ours == 1;
        to += theirs == 1;
    }
}

/* Finds the shortest stretches with equally many elements, none of which is 0. */
static void find_stretch(const factoring *f, int from, int *from_end, int to, int *to_end)
{
    int64_t ours = f->from[from], theirs = f->to[to];
    *from_end = from + 1;
    *to_end = to + 1;
    while (ours != theirs) {
        if (ours < theirs)
            ours *= f->from[(*from_end)++];
        else
            theirs *= f->to[(*to_end)++];
    }
}

static bool has_zero(const int64_t *shape, int ndim)
{
    for (int dim = 0; dim < ndim; dim++) {
        if (shape[dim] == 0)
            return true;
    }
    return false;
}

static void factor_shapes(factoring *f)
{
    int from = 0, to = 0, from_end, to_end;
    const bool empty = has_zero(f->from, f->from_ndim);
    while (from < f->from_ndim || to < f->to_ndim) {
        const bool both = from < f->from_ndim && to < f->to_ndim;
        if (both && f->from[from] == f->to[to]) {
            const char letter = next_factor(f);
            add_factor(f->ours[from++], letter);
            add_factor(f->theirs[to++], letter);
            continue;
        }
        if ((from < f->from_ndim && f->from[from] == 1) || (to < f->to_ndim && f->to[to] == 1)) {
            skip_ones(f, &from, f->from_ndim, &to, f->to_ndim);
            continue;
        }
        if (empty) {
            keep_apart(f, from, f->from_ndim, to, f->to_ndim);
            return;
        }
        find_stretch(f, from, &from_end, to, &to_end);
        const factoring before = *f;
        if (!split_stretch(f, from, from_end, to, to_end)) {
            *f = before;
            keep_apart(f, from, from_end, to, to_end);
        }
        from = from_end;
        to = to_end;
    }
}

/* Writes the dims of a tensor, like snprintf(). */
static size_t write_dims(int ndim, dim_factors *dims, char *text, size_t capacity)
{
    size_t length = 0;
    for (int dim = 0; dim < ndim; dim++) {
        const bool compound = dims[dim][1] != '\0';
        for (const char *at = dims[dim]; *at; at++)
            length += (size_t)snprintf(text + length, capacity - length, "%s%c%s",
                                       compound && at == dims[dim] ? "(" : "", *at, compound && !at[1] ? ") " : " ");
    }
    return length;
}

tsr_status tsr_rule_of_reshape(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    factoring f = {.from_ndim = tsr_layout_ndim(c->operands[0]), .from = tsr_layout_shape(c->operands[0])};
    int64_t shape[TSR_MAX_DIMS];
    find_shape(c, &f.to_ndim, shape);
    f.to = shape;
    factor_shapes(&f);
    const bool like = c->op->operands[1] != NULL;
    size_t length = write_dims(f.from_ndim, f.ours, text, TSR_OP_RULE_TEXT);
    for (int term = !like; term < 2; term++) {
        length += (size_t)snprintf(text + length, TSR_OP_RULE_TEXT - length, term ? "-> " : ", ");
        length += write_dims(f.to_ndim, f.theirs, text + length, TSR_OP_RULE_TEXT - length);
    }
    for (const char *at = f.whole; *at; at++)
        length += (size_t)snprintf(text + length, TSR_OP_RULE_TEXT - length, "%s%c%s", at == f.whole ? "| " : "", *at,
                                   at[1] ? " " : " whole ");
    snprintf(text + length, TSR_OP_RULE_TEXT - length, "| linear {0} | monotone {0}");
    return TSR_OK;
}
