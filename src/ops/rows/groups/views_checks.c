#include "ops/rows/groups/views_checks.h"

#include "ops/kernels/reduce.h"
#include "ops/kernels/views.h"
#include "ops/rows/rule_text.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* The marks of an op that moves elements: it is linear, and rises. */
#define MOVES "| linear {0} | monotone {0}"
/* Bytes for a list of numbers. */
#define TEXT 192

/* Appends the factor of a dim, a letter. */
static void append_dim(tsr_rule_text *rule, int dim)
{
    const char letter[] = {(char)('a' + dim), ' ', '\0'};
    tsr_rule_append(rule, letter);
}

static void append_dims(tsr_rule_text *rule, int ndim)
{
    for (int dim = 0; dim < ndim; dim++)
        append_dim(rule, dim);
}

static int dims_of(const tsr_op_case *c)
{
    return tsr_layout_ndim(c->operands[0]);
}

static const int64_t *shape_of(const tsr_op_case *c, int operand)
{
    return tsr_layout_shape(c->operands[operand]);
}

static const char *print_numbers(int count, const int64_t *numbers, char text[TEXT])
{
    size_t length = (size_t)snprintf(text, TEXT, "%s", count ? "" : "none");
    for (int i = 0; i < count && length < TEXT; i++)
        length += (size_t)snprintf(text + length, TEXT - length, "%s%lld", i ? "," : "", (long long)numbers[i]);
    return text;
}

tsr_status tsr_check_view_dim(const tsr_op_case *c, int ndim)
{
    if (tsr_view_dim(&c->attributes[0], ndim) >= 0)
        return TSR_OK;
    if (ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim is %lld, but %s is a scalar, which has no dims", c->caller,
                              (long long)c->attributes[0].integer, c->op->operands[0]);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim is %lld, but must be 0 to %d, a dim of %s, or -1 for the last",
                          c->caller, (long long)c->attributes[0].integer, ndim - 1, c->op->operands[0]);
}

/* Checks the attribute dim as a list of dims of an operand. */
static tsr_status check_dims_of(const tsr_op_case *c, int operand, bool marked[TSR_MAX_DIMS])
{
    char text[TEXT];
    const int ndim = tsr_layout_ndim(c->operands[operand]);
    const tsr_attribute *const dims = &c->attributes[0];
    if (tsr_reduce_mark(dims->count, dims->list, ndim, marked))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dims are %s, but they must differ and be below %d, the dims of %s",
                          c->caller, print_numbers(dims->count, dims->list, text), ndim, c->op->operands[operand]);
}

static tsr_status check_dims(const tsr_op_case *c, bool marked[TSR_MAX_DIMS])
{
    return check_dims_of(c, 0, marked);
}

tsr_status tsr_check_order(const tsr_op_case *c, tsr_dtype *results)
{
    int order[TSR_MAX_DIMS];
    char text[TEXT];
    const int ndim = dims_of(c);
    const tsr_attribute *const a = c->attributes;
    results[0] = tsr_layout_dtype(c->operands[0]);
    if (tsr_view_order_of(c->op->code, a, ndim, order))
        return TSR_OK;
    if (c->op->code == TSR_VIEW_TRANSPOSE)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: dim0 and dim1 are %lld and %lld, but must be below %d, the dims of %s, or -1 for "
                              "the last",
                              c->caller, (long long)a[0].integer, (long long)a[1].integer, ndim, c->op->operands[0]);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dims are %s, but must be each of the %d dims of %s once", c->caller,
                          print_numbers(a->count, a->list, text), ndim, c->op->operands[0]);
}

tsr_status tsr_rule_of_order(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    int order[TSR_MAX_DIMS];
    tsr_rule_text rule = {text, 0};
    const int ndim = dims_of(c);
    tsr_view_order_of(c->op->code, c->attributes, ndim, order);
    append_dims(&rule, ndim);
    tsr_rule_append(&rule, "-> ");
    for (int dim = 0; dim < ndim; dim++)
        append_dim(&rule, order[dim]);
    tsr_rule_append(&rule, MOVES);
    return TSR_OK;
}

tsr_status tsr_check_expand(const tsr_op_case *c, tsr_dtype *results)
{
    char text[TEXT], own[TEXT];
    const tsr_attribute *const shape = &c->attributes[0];
    const int ndim = dims_of(c), missing = shape->count - ndim;
    bool fits = missing >= 0;
    results[0] = tsr_layout_dtype(c->operands[0]);
    for (int dim = 0; dim < shape->count && fits; dim++) {
        const int64_t size = dim < missing ? 1 : shape_of(c, 0)[dim - missing];
        fits = shape->list[dim] >= 0 && (size == 1 || size == shape->list[dim]);
    }
    return fits ? TSR_OK
                : tsr_status_set(TSR_ERROR_ARGUMENT,
                                 "%s: shape is %s, but %s of shape %s can be repeated along dims of size 1 and along "
                                 "new leading dims alone",
                                 c->caller, print_numbers(shape->count, shape->list, text), c->op->operands[0],
                                 print_numbers(ndim, shape_of(c, 0), own));
}

/* True if a dim of the operand is repeated. */
static bool is_repeated(const tsr_op_case *c, int dim)
{
    const tsr_attribute *const shape = &c->attributes[0];
    return shape_of(c, 0)[dim] != shape->list[dim + shape->count - dims_of(c)];
}

tsr_status tsr_rule_of_expand(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    const int ndim = dims_of(c), missing = c->attributes[0].count - ndim;
    for (int term = 0; term < 2; term++) {
        for (int dim = 0; dim < missing && term; dim++)
            tsr_rule_append(&rule, "1 ");
        for (int dim = 0; dim < ndim; dim++) {
            if (is_repeated(c, dim))
                tsr_rule_append(&rule, "1 ");
            else
                append_dim(&rule, dim);
        }
        tsr_rule_append(&rule, term ? MOVES : "-> ");
    }
    return TSR_OK;
}

tsr_status tsr_shape_of_expand(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    (void)result;
    memcpy(shape, c->attributes[0].list, (size_t)c->attributes[0].count * sizeof *shape);
    return TSR_OK;
}

/* The dims that squeeze takes away from an operand: those of the list, or all of size 1. Their
 * number. */
static int mark_squeezed(const tsr_op_case *c, int operand, bool marked[TSR_MAX_DIMS])
{
    int count = 0;
    const int ndim = tsr_layout_ndim(c->operands[operand]);
    tsr_reduce_mark(c->attributes[0].count, c->attributes[0].list, ndim, marked);
    for (int dim = 0; dim < ndim; dim++) {
        marked[dim] = marked[dim] && shape_of(c, operand)[dim] == 1;
        count += marked[dim];
    }
    return count;
}

/* Checks that the list has dims of size 1 of an operand alone. */
static tsr_status check_squeezed(const tsr_op_case *c, int operand)
{
    bool marked[TSR_MAX_DIMS];
    TSR_TRY(check_dims_of(c, operand, marked));
    for (int i = 0; i < c->attributes[0].count; i++) {
        const int64_t dim = c->attributes[0].list[i], size = shape_of(c, operand)[dim];
        if (size != 1)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: dim %lld of %s has size %lld, but dims of size 1 go away alone", c->caller,
                                  (long long)dim, c->op->operands[operand], (long long)size);
    }
    return TSR_OK;
}

tsr_status tsr_check_squeeze(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return check_squeezed(c, 0);
}

tsr_status tsr_check_squeeze_back(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    const int ndim = tsr_layout_ndim(c->operands[1]);
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(check_squeezed(c, 1));
    const int left = ndim - mark_squeezed(c, 1, marked);
    if (dims_of(c) == left)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but %s leaves %d of its %d", c->caller,
                          c->op->operands[0], dims_of(c), c->op->operands[1], left, ndim);
}

/* The dims that squeeze leaves have common factors, those that it took away are 1. */
tsr_status tsr_rule_of_squeeze_back(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS];
    tsr_rule_text rule = {text, 0};
    const int ndim = tsr_layout_ndim(c->operands[1]);
    mark_squeezed(c, 1, marked);
    for (int term = 0; term < 3; term++) {
        tsr_rule_append(&rule, term == 0 ? "" : term == 1 ? ", " : "-> ");
        for (int dim = 0; dim < ndim; dim++) {
            if (!marked[dim])
                append_dim(&rule, dim);
            else if (term > 0)
                tsr_rule_append(&rule, "1 ");
        }
    }
    tsr_rule_append(&rule, MOVES);
    return TSR_OK;
}

/* Appends the marks of a rule that needs marked dims whole, and moves elements alone. */
static void append_whole(tsr_rule_text *rule, const tsr_op_case *c, const bool *marked)
{
    for (int dim = 0; dim < dims_of(c); dim++) {
        if (marked[dim]) {
            tsr_rule_append(rule, "| ");
            append_dim(rule, dim);
            tsr_rule_append(rule, "whole ");
        }
    }
    tsr_rule_append(rule, MOVES);
}

/* Writes the rule of an op that takes marked dims away. */
static void write_without(const tsr_op_case *c, const bool *marked, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    append_dims(&rule, dims_of(c));
    tsr_rule_append(&rule, "-> ");
    for (int dim = 0; dim < dims_of(c); dim++) {
        if (!marked[dim])
            append_dim(&rule, dim);
    }
    append_whole(&rule, c, marked);
}

tsr_status tsr_rule_of_squeeze(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS];
    mark_squeezed(c, 0, marked);
    write_without(c, marked, text);
    return TSR_OK;
}

tsr_status tsr_check_unsqueeze_back(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(tsr_check_view_dim(c, dims_of(c)));
    const int dim = tsr_view_dim(&c->attributes[0], dims_of(c));
    const int64_t size = shape_of(c, 0)[dim];
    if (size == 1)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim %d of %s has size %lld, but dims of size 1 go away alone",
                          c->caller, dim, c->op->operands[0], (long long)size);
}

tsr_status tsr_rule_of_unsqueeze_back(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS] = {false};
    marked[tsr_view_dim(&c->attributes[0], dims_of(c))] = true;
    write_without(c, marked, text);
    return TSR_OK;
}

tsr_status tsr_check_unsqueeze(const tsr_op_case *c, tsr_dtype *results)
{
    const int ndim = dims_of(c);
    results[0] = tsr_layout_dtype(c->operands[0]);
    if (ndim == TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, the most that a tensor has", c->caller,
                              c->op->operands[0], ndim);
    if (tsr_view_dim(&c->attributes[0], ndim + 1) >= 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim is %lld, but must be 0 to %d, a place among the dims of %s, or -1 for the last",
                          c->caller, (long long)c->attributes[0].integer, ndim, c->op->operands[0]);
}

tsr_status tsr_rule_of_unsqueeze(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    const int ndim = dims_of(c), at = tsr_view_dim(&c->attributes[0], ndim + 1);
    append_dims(&rule, ndim);
    tsr_rule_append(&rule, "-> ");
    for (int dim = 0; dim <= ndim; dim++) {
        if (dim == at)
            tsr_rule_append(&rule, "1 ");
        if (dim < ndim)
            append_dim(&rule, dim);
    }
    tsr_rule_append(&rule, MOVES);
    return TSR_OK;
}

/* Appends the marks of an op that moves elements of its first `count` operands. */
static void append_moves(tsr_rule_text *rule, int count)
{
    tsr_rule_append(rule, "| linear {");
    for (int i = 0; i < count; i++) {
        const char digit[] = {(char)('0' + i), ' ', '\0'};
        tsr_rule_append(rule, digit);
    }
    tsr_rule_append(rule, "} | monotone ");
    for (int i = 0; i < count; i++) {
        const char group[] = {'{', (char)('0' + i), '}', '\0'};
        tsr_rule_append(rule, group);
    }
}

tsr_status tsr_rule_of_permuted(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    const int ndim = dims_of(c);
    int count = 0;
    for (; c->op->operands[count]; count++) {
        tsr_rule_append(&rule, count ? ", " : "");
        append_dims(&rule, ndim);
    }
    tsr_rule_append(&rule, "-> ");
    append_dims(&rule, ndim);
    tsr_rule_append(&rule, "| ");
    append_dim(&rule, tsr_view_dim(&c->attributes[0], ndim));
    tsr_rule_append(&rule, "permute ");
    append_moves(&rule, c->op->code == TSR_VIEW_CONCAT ? count : 1);
    return TSR_OK;
}

tsr_status tsr_check_concat(const tsr_op_case *c, tsr_dtype *results)
{
    const int ndim = dims_of(c);
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(tsr_check_view_dim(c, ndim));
    for (int i = 1; c->op->operands[i]; i++) {
        if (!c->operands[i])
            continue;
        const tsr_dtype dtype = tsr_layout_dtype(c->operands[i]);
        if (dtype != results[0])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s but %s is %s; both must have one dtype, cast one",
                                  c->caller, c->op->operands[0], tsr_dtype_name(results[0]), c->op->operands[i],
                                  tsr_dtype_name(dtype));
        if (tsr_layout_ndim(c->operands[i]) != ndim)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims but %s has %d; unsqueeze one", c->caller,
                                  c->op->operands[0], ndim, c->op->operands[i], tsr_layout_ndim(c->operands[i]));
    }
    return TSR_OK;
}

void tsr_place_of_concat(const tsr_op_case *c, tsr_op_placing *out)
{
    const int dim = tsr_view_dim(&c->attributes[0], dims_of(c));
    *out = (tsr_op_placing){.target = -1, .like = -1};
    for (int i = 0; c->op->operands[i]; i++) {
        if (!c->operands[i])
            continue;
        const int64_t size = shape_of(c, i)[dim];
        out->parts[out->count++] =
            (tsr_op_part){.operand = i, .size = size, .end = size, .step = 1, .offset = out->size};
        out->size += size;
    }
}

tsr_status tsr_shape_of_concat(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    tsr_op_placing placing;
    (void)result;
    tsr_place_of_concat(c, &placing);
    shape[tsr_view_dim(&c->attributes[0], dims_of(c))] = placing.size;
    return TSR_OK;
}

/* True if a dtype has the value; floats round it. */
static bool has_value(tsr_dtype dtype, double value)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    const double bits = (double)info->bytes * 8;
    double end = 1;
    for (int i = 0; i < (info->kind == TSR_CLASS_SIGNED ? bits - 1 : bits); i++)
        end *= 2;
    const double least = info->kind == TSR_CLASS_SIGNED ? -end : 0;
    switch (info->kind) {
    case TSR_CLASS_BOOL:
        return value == 0 || value == 1;
    case TSR_CLASS_SIGNED:
    case TSR_CLASS_UNSIGNED:
        return value >= least && value < end && (value < 0 ? (double)(int64_t)value : (double)(uint64_t)value) == value;
    default:
        return true;
    }
}

tsr_status tsr_check_pad(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_attribute *const a = c->attributes;
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(tsr_check_view_dim(c, dims_of(c)));
    for (int i = 1; i <= 2; i++) {
        if (a[i].integer < 0 || a[i].integer > INT64_MAX / 4)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %lld, but must be 0 or more, and no more than %lld",
                                  c->caller, a[i].name, (long long)a[i].integer, (long long)INT64_MAX / 4);
    }
    if (has_value(results[0], a[3].number))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: value is %.17g, which %s does not hold", c->caller, a[3].number,
                          tsr_dtype_name(results[0]));
}

void tsr_place_of_pad(const tsr_op_case *c, tsr_op_placing *out)
{
    const tsr_attribute *const a = c->attributes;
    const int64_t size = shape_of(c, 0)[tsr_view_dim(&a[0], dims_of(c))];
    *out = (tsr_op_placing){.count = 1, .size = a[1].integer + size + a[2].integer, .target = -1, .like = -1};
    out->parts[0] = (tsr_op_part){.size = size, .end = size, .step = 1, .offset = a[1].integer};
}

tsr_status tsr_shape_of_pad(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    tsr_op_placing placing;
    (void)result;
    tsr_place_of_pad(c, &placing);
    shape[tsr_view_dim(&c->attributes[0], dims_of(c))] = placing.size;
    return TSR_OK;
}

tsr_status tsr_rule_of_pad(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    const int ndim = dims_of(c);
    append_dims(&rule, ndim);
    tsr_rule_append(&rule, "-> ");
    append_dims(&rule, ndim);
    tsr_rule_append(&rule, "| ");
    append_dim(&rule, tsr_view_dim(&c->attributes[0], ndim));
    tsr_rule_append(&rule, c->attributes[3].number == 0 ? "permute " MOVES : "permute | monotone {0}");
    return TSR_OK;
}

/* Writes the rule of an op that keeps the shape, and needs marked dims whole. */
static void write_whole(const tsr_op_case *c, const bool *marked, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    append_dims(&rule, dims_of(c));
    tsr_rule_append(&rule, "-> ");
    append_dims(&rule, dims_of(c));
    append_whole(&rule, c, marked);
}

tsr_status tsr_check_flip(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    results[0] = tsr_layout_dtype(c->operands[0]);
    return check_dims(c, marked);
}

tsr_status tsr_rule_of_flip(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS];
    tsr_reduce_mark(c->attributes[0].count, c->attributes[0].list, dims_of(c), marked);
    write_whole(c, marked, text);
    return TSR_OK;
}

tsr_status tsr_check_roll(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return tsr_check_view_dim(c, dims_of(c));
}

tsr_status tsr_rule_of_roll(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS] = {false};
    marked[tsr_view_dim(&c->attributes[0], dims_of(c))] = true;
    write_whole(c, marked, text);
    return TSR_OK;
}

tsr_status tsr_check_mask(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    if (dims_of(c) >= 2)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but must have rows and columns", c->caller,
                          c->op->operands[0], dims_of(c));
}
