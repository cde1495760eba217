#include "ops/rows/groups/indexing_checks.h"

#include "ops/kernels/indexing/indexing.h"
#include "ops/rows/checks.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* The operands of an op, by code. */
static const struct {
    int table, ids; /* table: also that like which a gradient is */
    int other;      /* a gradient or source, of the index's shape; -1: there is none */
    bool any_dtype;
} operands[] = {[TSR_EMBEDDING] = {0, 1, -1, false},   [TSR_EMBEDDING_GRADIENT] = {1, 2, 0, false},
                [TSR_INDEX_SELECT] = {0, 1, -1, true}, [TSR_INDEX_SELECT_GRADIENT] = {1, 2, 0, false},
                [TSR_GATHER] = {0, 1, -1, true},       [TSR_GATHER_GRADIENT] = {1, 2, 0, false},
                [TSR_SCATTER_ADD] = {0, 1, 2, false}};

static tsr_status check_ids(const tsr_op_case *c, int operand)
{
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[operand]);
    return dtype == TSR_I64 || dtype == TSR_I32 ? TSR_OK : tsr_refuse_dtype(c, operand, "i64 and i32");
}

/* Checks that a result, which has a dim more than the ids, is a tensor. */
static tsr_status check_room(const tsr_op_case *c, int operand)
{
    if (tsr_layout_ndim(c->operands[operand]) < TSR_MAX_DIMS)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but %s makes one more, and %d is the most",
                          c->caller, c->op->operands[operand], TSR_MAX_DIMS, c->op->name, TSR_MAX_DIMS);
}

static bool is_number(tsr_dtype dtype)
{
    return dtype == TSR_F64 || dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16 || dtype == TSR_I64 ||
           dtype == TSR_I32;
}

static bool is_elementwise(const tsr_op_case *c)
{
    return c->op->code == TSR_GATHER || c->op->code == TSR_GATHER_GRADIENT || c->op->code == TSR_SCATTER_ADD;
}

/* Checks that the index of gather or scatter_add has as many dims as the table and, but for the dim
 * that is indexed, none that is longer. */
static tsr_status check_index(const tsr_op_case *c, int dim)
{
    const int table = operands[c->op->code].table, ids = operands[c->op->code].ids;
    const tsr_layout *const x = c->operands[table], *const index = c->operands[ids];
    const char *const x_name = c->op->operands[table], *const index_name = c->op->operands[ids];
    if (tsr_layout_ndim(x) != tsr_layout_ndim(index))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims but %s has %d; both must have as many", c->caller,
                              index_name, tsr_layout_ndim(index), x_name, tsr_layout_ndim(x));
    for (int k = 0; k < tsr_layout_ndim(x); k++) {
        if (k != dim && tsr_layout_shape(index)[k] > tsr_layout_shape(x)[k])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: dim %d of %s has size %lld, but must not be longer than that of %s, %lld",
                                  c->caller, k, index_name, (long long)tsr_layout_shape(index)[k], x_name,
                                  (long long)tsr_layout_shape(x)[k]);
    }
    return TSR_OK;
}

tsr_status tsr_check_indexing(const tsr_op_case *c, tsr_dtype *results)
{
    const int table = operands[c->op->code].table, ids = operands[c->op->code].ids, other = operands[c->op->code].other;
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[table]);
    const int ndim = tsr_layout_ndim(c->operands[table]), dim = tsr_indexing_dim(c->op->code, c->attributes, ndim);
    results[0] = dtype;
    if (!operands[c->op->code].any_dtype && !is_number(dtype))
        return tsr_refuse_dtype(c, table, "f64, f32, f16, bf16, i64 and i32");
    TSR_TRY(check_ids(c, ids));
    if (c->op->code == TSR_EMBEDDING || c->op->code == TSR_EMBEDDING_GRADIENT)
        TSR_TRY(check_room(c, ids));
    if (other >= 0 && tsr_layout_dtype(c->operands[other]) != dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s but %s is %s; both must have one dtype, cast one",
                              c->caller, c->op->operands[table], tsr_dtype_name(dtype), c->op->operands[other],
                              tsr_dtype_name(tsr_layout_dtype(c->operands[other])));
    if (dim < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: dim is %lld, but must be below %d, the dims of %s, or -1 for the last", c->caller,
                              (long long)c->attributes[0].integer, ndim, c->op->operands[table]);
    return is_elementwise(c) ? check_index(c, dim) : TSR_OK;
}

/* The dims of a tensor of `ndim` dims as letters a, b, .., with another factor in place of dim
 * `dim`. */
static void write_dims(char *text, size_t capacity, int ndim, int dim, const char *factor)
{
    size_t length = 0;
    text[0] = '\0';
    for (int k = 0; k < ndim && length < capacity; k++) {
        const char letter[] = {(char)('a' + k), '\0'};
        length += (size_t)snprintf(text + length, capacity - length, "%s%s", k ? " " : "", k == dim ? factor : letter);
    }
}

/* True if what is read from a dim that is cut can be Partial(sum). */
static bool has_sums(const tsr_op_case *c)
{
    return tsr_dtype_get(tsr_layout_dtype(c->operands[0]))->reduce_ops >> TSR_SUM & 1;
}

tsr_status tsr_rule_of_slices(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    char table[64], slices[64];
    const int ndim = tsr_layout_ndim(c->operands[operands[c->op->code].table]);
    const int dim = tsr_indexing_dim(c->op->code, c->attributes, ndim);
    write_dims(table, sizeof table, ndim, dim, "v");
    write_dims(slices, sizeof slices, ndim, dim, "n");
    if (c->op->code == TSR_INDEX_SELECT_GRADIENT)
        snprintf(text, TSR_OP_RULE_TEXT, "%s, %s, n -> %s | n sum | v positional | linear {0}", slices, table, table);
    else
        snprintf(text, TSR_OP_RULE_TEXT, "%s, n -> %s | v %s positional%s", table, slices,
                 has_sums(c) ? "sum" : "whole", has_sums(c) ? " | linear {0}" : "");
    return TSR_OK;
}

/* The dims of an index: as the table's, but twice the letter where it is shorter. */
static void write_index(const tsr_op_case *c, int dim, char *text, size_t capacity, char *shorter, size_t room)
{
    size_t length = 0, used = 0;
    const tsr_layout *const x = c->operands[operands[c->op->code].table], *const index =
                                                                              c->operands[operands[c->op->code].ids];
    text[0] = shorter[0] = '\0';
    for (int k = 0; k < tsr_layout_ndim(x) && length < capacity; k++) {
        const char letters[] = {(char)('a' + k), (char)('a' + k), '\0'};
        const bool differs = k != dim && tsr_layout_shape(x)[k] != tsr_layout_shape(index)[k];
        length += (size_t)snprintf(text + length, capacity - length, "%s%s", k ? " " : "",
                                   k == dim ? "n" : letters + !differs);
        if (differs && used < room)
            used += (size_t)snprintf(shorter + used, room - used, " | %s whole | %s %s", letters + 1, letters,
                                     c->op->code == TSR_GATHER            ? "positional"
                                     : c->op->code == TSR_GATHER_GRADIENT ? "sum positional"
                                                                          : "whole");
    }
}

tsr_status tsr_rule_of_elements(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    char table[64], index[64], shorter[TSR_OP_RULE_TEXT];
    const int ndim = tsr_layout_ndim(c->operands[operands[c->op->code].table]);
    const int dim = tsr_indexing_dim(c->op->code, c->attributes, ndim);
    int length;
    write_dims(table, sizeof table, ndim, dim, "v");
    write_index(c, dim, index, sizeof index, shorter, sizeof shorter);
    if (c->op->code == TSR_GATHER)
        length = snprintf(text, TSR_OP_RULE_TEXT, "%s, %s -> %s%s | v %s positional%s", table, index, index, shorter,
                          has_sums(c) ? "sum" : "whole", has_sums(c) ? " | linear {0}" : "");
    else if (c->op->code == TSR_GATHER_GRADIENT)
        length = snprintf(text, TSR_OP_RULE_TEXT, "%s, %s, %s -> %s%s | n sum | v positional | linear {0}", index,
                          table, index, table, shorter);
    else
        length = snprintf(text, TSR_OP_RULE_TEXT, "%s, %s, %s -> %s%s | n whole | v positional | linear {0 2}", table,
                          index, index, table, shorter);
    if (length < TSR_OP_RULE_TEXT)
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED,
        "%s: %s is shorter than %s in too many of %d dims; make those of the table as short by a slice", c->caller,
        c->op->operands[operands[c->op->code].ids], c->op->operands[operands[c->op->code].table], ndim);
}

tsr_status tsr_check_counting(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = TSR_I64;
    TSR_TRY(check_ids(c, 0));
    TSR_TRY(check_room(c, 0));
    if (c->attributes[0].integer >= 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %lld, but must not be negative", c->caller,
                          c->attributes[0].name, (long long)c->attributes[0].integer);
}

tsr_status tsr_shape_of_counting(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    const bool counts = strcmp(c->op->name, "bincount") == 0;
    (void)result;
    shape[counts ? 0 : tsr_layout_ndim(c->operands[0])] = c->attributes[0].integer;
    return TSR_OK;
}
