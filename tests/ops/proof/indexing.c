#include "proof.h"

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_I32, TSR_I64, TSR_F32, TSR_BOOL};

/* A table of 1 to 3 dims, of which one has ids. */
static int64_t draw_table(draw *d, proof *p, int dtype_count, whole *table)
{
    do
        draw_full(d, table);
    while (table->ndim == 0);
    const int dim = draw_below(d, table->ndim);
    if (table->shape[dim] == 0)
        table->shape[dim] = 3;
    proof_attribute(p, "dim")->integer = dim == table->ndim - 1 && draw_below(d, 2) ? -1 : dim;
    table->dtype = dtypes[draw_below(d, dtype_count)];
    draw_values(d, table);
    return dim;
}

static void draw_index(draw *d, whole *index, int64_t bound)
{
    index->dtype = draw_below(d, 2) ? TSR_I64 : TSR_I32;
    draw_ids(d, index, bound);
}

static void embedding(draw *d, proof *p)
{
    const bool backward = p->operand_count == 3;
    whole *const weight = &p->operands[backward], *const ids = &p->operands[backward + 1];
    const int64_t shape[] = {1 + draw_below(d, 9), draw_below(d, 5)};
    set_shape(weight, 2, shape);
    weight->dtype = dtypes[draw_below(d, 4)];
    draw_values(d, weight);
    do
        draw_full(d, ids);
    while (ids->ndim > 2);
    draw_index(d, ids, shape[0]);
    if (!backward)
        return;
    set_shape(&p->operands[0], ids->ndim, ids->shape);
    p->operands[0].shape[p->operands[0].ndim++] = shape[1];
    p->operands[0].dtype = weight->dtype;
    draw_values(d, &p->operands[0]);
}

static void select(draw *d, proof *p)
{
    const bool backward = p->operand_count == 3;
    whole *const x = &p->operands[backward], *const index = &p->operands[backward + 1];
    const int64_t dim = draw_table(d, p, backward ? 4 : 6, x), length = draw_below(d, 8);
    set_shape(index, 1, &length);
    draw_index(d, index, x->shape[dim]);
    if (!backward)
        return;
    set_shape(&p->operands[0], x->ndim, x->shape);
    p->operands[0].shape[dim] = length;
    p->operands[0].dtype = x->dtype;
    draw_values(d, &p->operands[0]);
}

/* An index of the table's shape, with another length of the dim that is indexed and now and then of
 * others. */
static void draw_elements(draw *d, const whole *table, int64_t dim, whole *index)
{
    set_shape(index, table->ndim, table->shape);
    index->shape[dim] = draw_below(d, 8);
    for (int k = 0; k < index->ndim; k++) {
        if (k != dim && index->shape[k] > 1 && draw_below(d, 4) == 0)
            index->shape[k]--;
    }
    draw_index(d, index, table->shape[dim]);
}

static void gather(draw *d, proof *p)
{
    const bool backward = p->operand_count == 3;
    whole *const x = &p->operands[backward], *const index = &p->operands[backward + 1];
    const int64_t dim = draw_table(d, p, backward ? 4 : 6, x);
    draw_elements(d, x, dim, index);
    if (!backward)
        return;
    set_shape(&p->operands[0], index->ndim, index->shape);
    p->operands[0].dtype = x->dtype;
    draw_values(d, &p->operands[0]);
}

static void scatter_add(draw *d, proof *p)
{
    whole *const x = &p->operands[0], *const source = &p->operands[2];
    const int64_t dim = draw_table(d, p, 4, x);
    draw_elements(d, x, dim, &p->operands[1]);
    set_shape(source, p->operands[1].ndim, p->operands[1].shape);
    source->dtype = x->dtype;
    draw_values(d, source);
}

static void counts(draw *d, proof *p)
{
    const int64_t size = 1 + draw_below(d, 8);
    proof_attribute(p, p->attributes[0].name)->integer = size;
    draw_full(d, &p->operands[0]);
    draw_index(d, &p->operands[0], size);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_indexing[] = {
    {"embedding", embedding, EXACT, .strict = STRICT_MONOTONE},
    {"embedding_gradient", embedding, EXACT, .strict = STRICT_LIKE},
    {"index_select", select, EXACT, .strict = STRICT_MONOTONE},
    {"index_select_gradient", select, EXACT, .strict = STRICT_LIKE},
    {"gather", gather, EXACT, .strict = STRICT_MONOTONE},
    {"gather_gradient", gather, EXACT, .strict = STRICT_LIKE},
    {"scatter_add", scatter_add, EXACT, .strict = STRICT_MONOTONE},
    {"one_hot", counts, EXACT, .strict = STRICT_VALUES},
    {"bincount", counts, EXACT, .strict = STRICT_VALUES},
    {NULL},
};
