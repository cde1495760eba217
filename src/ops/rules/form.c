#include "ops/rules/form.h"

#include <tessera/sys/status.h>

#include <string.h>

int tsr_op_dims_find(const tsr_op_dims *dims, int factor)
{
    for (int dim = 0; dims->present && dim < dims->ndim; dim++) {
        if (dims->factor[dim] == factor)
            return dim;
    }
    return -1;
}

void tsr_op_form_shape(const tsr_op_form *form, int result, int64_t shape[TSR_MAX_DIMS])
{
    const tsr_op_dims *const dims = &form->results[result];
    for (int dim = 0; dim < dims->ndim; dim++)
        shape[dim] = dims->factor[dim] == TSR_OP_ONE ? 1 : form->size[dims->factor[dim]];
}

/* Spells a term out for a tensor whose "..." has `leading` dims. */
static void spell_out(const tsr_op_term *term, int leading, tsr_op_dims *out)
{
    out->present = true;
    out->added = term->added;
    out->ndim = 0;
    for (int i = 0; i < term->count; i++) {
        if (term->item[i] != TSR_OP_ELLIPSIS) {
            out->factor[out->ndim++] = term->item[i] == TSR_OP_ONE ? TSR_OP_ONE : TSR_MAX_DIMS + term->item[i];
            continue;
        }
        for (int dim = 0; dim < leading; dim++)
            out->factor[out->ndim++] = TSR_MAX_DIMS - leading + dim;
    }
}

static tsr_status spell_operand(const tsr_op_names *names, const tsr_op_term *term, int operand, int ndim, int *leading,
                                tsr_op_dims *out)
{
    const bool open = tsr_op_term_find(term, TSR_OP_ELLIPSIS) >= 0;
    const int own = ndim - (term->count - open);
    if (own < 0 || (own > 0 && !open))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dim%s, but \"%s\" wants %s%d", names->caller,
                              names->operands[operand], ndim, ndim == 1 ? "" : "s", names->rule,
                              open ? "at least " : "", term->count - open);
    *leading = own > *leading ? own : *leading;
    spell_out(term, own, out);
    return TSR_OK;
}

/* Where a factor got its size. */
typedef struct origin {
    int operand, dim;
} origin;

static tsr_status refuse_size(const tsr_op_names *names, const tsr_layout *const *operands, origin own, origin other)
{
    return tsr_status_set(
        TSR_ERROR_ARGUMENT, "%s: dim %d of %s has size %lld, but dim %d of %s has %lld; \"%s\" wants them equal",
        names->caller, own.dim, names->operands[own.operand],
        (long long)tsr_layout_shape(operands[own.operand])[own.dim], other.dim, names->operands[other.operand],
        (long long)tsr_layout_shape(operands[other.operand])[other.dim], names->rule);
}

/* True if a factor may have another size in each tensor. */
static bool varies(const tsr_op_form *form, int factor)
{
    return form->sizes_vary && (form->marks[factor].whole || form->marks[factor].permute);
}

/* Sets the size of the factor of one operand's dim, on which all operands must agree; a size of 1
 * gives way to others in dims of "...". */
static tsr_status set_size(tsr_op_form *form, const tsr_op_names *names, const tsr_layout *const *operands,
                           origin origins[TSR_OP_FACTORS], origin own)
{
    const int64_t size = tsr_layout_shape(operands[own.operand])[own.dim];
    const int factor = form->operands[own.operand].factor[own.dim];
    if (factor == TSR_OP_ONE)
        return size == 1
                   ? TSR_OK
                   : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim %d of %s has size %lld, but \"%s\" wants 1",
                                    names->caller, own.dim, names->operands[own.operand], (long long)size, names->rule);
    origin *const other = &origins[factor];
    const bool open = factor < TSR_MAX_DIMS, seen = other->operand >= 0;
    if (seen && varies(form, factor))
        return TSR_OK;
    if (seen && form->size[factor] != size && !(open && (size == 1 || form->size[factor] == 1)))
        return refuse_size(names, operands, own, *other);
    if (seen && size == 1)
        return TSR_OK;
    *other = own;
    form->size[factor] = size;
    return TSR_OK;
}

/* Reads dims of size 1 whose factor is not of size 1 as 1. */
static void read_ones(tsr_op_form *form, const tsr_layout *const *operands)
{
    for (int i = 0; i < form->rule->operand_count; i++) {
        tsr_op_dims *const dims = &form->operands[i];
        for (int dim = 0; dims->present && dim < dims->ndim; dim++) {
            if (dims->factor[dim] >= 0 && !varies(form, dims->factor[dim]) &&
                tsr_layout_shape(operands[i])[dim] != form->size[dims->factor[dim]])
                dims->factor[dim] = TSR_OP_ONE;
        }
    }
}

tsr_status tsr_op_form_bind(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_layout *const *operands,
                            bool sizes_vary, tsr_op_form *out)
{
    memset(out, 0, sizeof *out);
    out->rule = rule;
    out->sizes_vary = sizes_vary;
    int leading = 0;
    origin origins[TSR_OP_FACTORS];
    for (int factor = 0; factor < TSR_OP_FACTORS; factor++)
        origins[factor].operand = -1;
    for (int factor = 0; factor < TSR_OP_FACTORS; factor++)
        out->marks[factor] = factor < TSR_MAX_DIMS ? rule->ellipsis : rule->marks[factor - TSR_MAX_DIMS];
    for (int i = 0; i < rule->operand_count; i++) {
        if (!operands[i])
            continue;
        TSR_TRY(spell_operand(names, &rule->operands[i], i, tsr_layout_ndim(operands[i]), &leading, &out->operands[i]));
        for (int dim = 0; dim < out->operands[i].ndim; dim++)
            TSR_TRY(set_size(out, names, operands, origins, (origin){i, dim}));
    }
    read_ones(out, operands);
    for (int i = 0; i < rule->result_count; i++)
        spell_out(&rule->results[i], leading, &out->results[i]);
    return TSR_OK;
}
