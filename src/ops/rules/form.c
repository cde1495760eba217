#include "ops/rules/form.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

#define TEXT 128

int tsr_op_dims_find(const tsr_op_dims *dims, int factor)
{
    for (int dim = 0; dims->present && dim < dims->ndim; dim++) {
        if (dims->factor[dim] == factor)
            return dim;
    }
    return -1;
}

static bool is_compound(int factor)
{
    return factor >= TSR_OP_FACTORS;
}

int tsr_op_form_factors(const tsr_op_form *form, int factor, int factors[TSR_MAX_DIMS])
{
    if (!is_compound(factor)) {
        factors[0] = factor;
        return factor >= 0;
    }
    const tsr_op_compound *const compound = &form->rule->compounds[factor - TSR_OP_FACTORS];
    for (int i = 0; i < compound->count; i++)
        factors[i] = TSR_MAX_DIMS + compound->factor[i];
    return compound->count;
}

int tsr_op_form_find(const tsr_op_form *form, const tsr_op_dims *dims, int factor)
{
    int factors[TSR_MAX_DIMS];
    for (int dim = 0; dims->present && dim < dims->ndim; dim++) {
        const int count = tsr_op_form_factors(form, dims->factor[dim], factors);
        for (int i = 0; i < count; i++) {
            if (factors[i] == factor)
                return dim;
        }
    }
    return -1;
}

bool tsr_op_form_has_part(const tsr_op_form *form, const tsr_op_dims *dims, int compound)
{
    int factors[TSR_MAX_DIMS];
    const int count = tsr_op_form_factors(form, compound, factors);
    if (tsr_op_dims_find(dims, compound) >= 0)
        return false;
    for (int i = 0; i < count; i++) {
        if (tsr_op_form_find(form, dims, factors[i]) >= 0)
            return true;
    }
    return false;
}

int64_t tsr_op_form_size(const tsr_op_form *form, int factor)
{
    int factors[TSR_MAX_DIMS];
    int64_t size = 1;
    const int count = tsr_op_form_factors(form, factor, factors);
    for (int i = 0; i < count; i++) {
        if (form->size[factors[i]] < 0)
            return -1;
        size *= form->size[factors[i]];
    }
    return size;
}

void tsr_op_form_shape(const tsr_op_form *form, int result, int64_t shape[TSR_MAX_DIMS])
{
    const tsr_op_dims *const dims = &form->results[result];
    for (int dim = 0; dim < dims->ndim; dim++)
        shape[dim] = tsr_op_form_size(form, dims->factor[dim]);
}

size_t tsr_op_form_name(const tsr_op_form *form, int factor, char *text, size_t capacity)
{
    int factors[TSR_MAX_DIMS];
    size_t length = 0;
    if (factor < 0)
        return (size_t)snprintf(text, capacity, "1");
    if (factor < TSR_MAX_DIMS)
        return (size_t)snprintf(text, capacity, "...");
    const int count = tsr_op_form_factors(form, factor, factors);
    for (int i = 0; i < count; i++) {
        const char *const before = !is_compound(factor) ? "" : i ? " " : "(";
        const size_t room = length < capacity ? capacity - length : 0;
        length += (size_t)snprintf(room ? text + length : NULL, room, "%s%s%s", before,
                                   form->rule->factors[factors[i] - TSR_MAX_DIMS],
                                   is_compound(factor) && i + 1 == count ? ")" : "");
    }
    return length;
}

/* Spells a term out for a tensor whose "..." has `leading` dims. */
static void spell_out(const tsr_op_term *term, int leading, tsr_op_dims *out)
{
    out->present = true;
    out->added = term->added;
    out->ndim = 0;
    for (int i = 0; i < term->count; i++) {
        const int item = term->item[i];
        if (item != TSR_OP_ELLIPSIS) {
            out->factor[out->ndim++] = item == TSR_OP_ONE       ? TSR_OP_ONE
                                       : item >= TSR_OP_LETTERS ? TSR_OP_FACTORS + item - TSR_OP_LETTERS
                                                                : TSR_MAX_DIMS + item;
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
    if (is_compound(factor))
        return TSR_OK;
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
            if (dims->factor[dim] >= 0 && !is_compound(dims->factor[dim]) && !varies(form, dims->factor[dim]) &&
                tsr_layout_shape(operands[i])[dim] != form->size[dims->factor[dim]])
                dims->factor[dim] = TSR_OP_ONE;
        }
    }
}

/* A dim whose size tells those of its factors: an operand's, or a result's that shape_of gave. */
typedef struct sized_dim {
    const char *tensor;
    int dim, factor;
    int64_t size;
} sized_dim;

static tsr_status refuse_division(const tsr_op_form *form, const tsr_op_names *names, const sized_dim *d)
{
    char name[TEXT], sizes[TEXT] = "";
    int factors[TSR_MAX_DIMS];
    size_t length = 0;
    const int count = tsr_op_form_factors(form, d->factor, factors);
    tsr_op_form_name(form, d->factor, name, sizeof name);
    for (int i = 0; i < count && length < sizeof sizes; i++) {
        const int64_t size = form->size[factors[i]];
        length += size < 0 ? (size_t)snprintf(sizes + length, sizeof sizes - length, "%s?", i ? " x " : "")
                           : (size_t)snprintf(sizes + length, sizeof sizes - length, "%s%lld", i ? " x " : "",
                                              (long long)size);
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim %d of %s has size %lld, but \"%s\" wants %s there, which is %s by the other dims",
                          names->caller, d->dim, d->tensor, (long long)d->size, names->rule, name, sizes);
}

/* Finds the size of a factor that is the only one of a dim without; checks a dim of known ones. */
static tsr_status deduce(tsr_op_form *form, const tsr_op_names *names, const sized_dim *d)
{
    int factors[TSR_MAX_DIMS], missing = -1;
    int64_t known = 1;
    const int count = tsr_op_form_factors(form, d->factor, factors);
    for (int i = 0; i < count; i++) {
        const int64_t size = form->size[factors[i]];
        if (size < 0 && missing >= 0)
            return TSR_OK;
        missing = size < 0 ? factors[i] : missing;
        if (size >= 0 && __builtin_mul_overflow(known, size, &known))
            return refuse_division(form, names, d);
    }
    if (missing < 0)
        return known == d->size ? TSR_OK : refuse_division(form, names, d);
    if (known == 0 ? d->size != 0 : d->size % known != 0)
        return refuse_division(form, names, d);
    form->size[missing] = known == 0 ? 1 : d->size / known;
    return TSR_OK;
}

/* Deduces sizes of factors of the operands' compounds, until none is new. */
static tsr_status deduce_operands(tsr_op_form *form, const tsr_op_names *names, const tsr_layout *const *operands)
{
    for (int round = 0; round < form->rule->factor_count; round++) {
        for (int i = 0; i < form->rule->operand_count; i++) {
            const tsr_op_dims *const dims = &form->operands[i];
            for (int dim = 0; dims->present && dim < dims->ndim; dim++) {
                const sized_dim d = {names->operands[i], dim, dims->factor[dim], tsr_layout_shape(operands[i])[dim]};
                if (is_compound(d.factor))
                    TSR_TRY(deduce(form, names, &d));
            }
        }
    }
    return TSR_OK;
}

/* Takes sizes that operands do not give from the shapes of results. */
static tsr_status deduce_results(tsr_op_form *form, const tsr_op_names *names, const tsr_op_shaping *shaping)
{
    for (int i = 0; i < form->rule->result_count && shaping->shape_of; i++) {
        int64_t shape[TSR_MAX_DIMS];
        const tsr_op_dims *const dims = &form->results[i];
        tsr_op_form_shape(form, i, shape);
        TSR_TRY(shaping->shape_of(shaping->arg, i, shape));
        for (int dim = 0; dim < dims->ndim; dim++) {
            const sized_dim d = {"the result", dim, dims->factor[dim], shape[dim]};
            if (d.size >= 0 && (is_compound(d.factor) || tsr_op_form_size(form, d.factor) < 0))
                TSR_TRY(deduce(form, names, &d));
        }
    }
    return TSR_OK;
}

/* Gives the factors of an operand's compound, of which no tensor has a part, sizes that multiply to
 * the dim's: they do not matter. */
static void settle_sizes(tsr_op_form *form, const tsr_op_dims *dims, int dim, int64_t size)
{
    int factors[TSR_MAX_DIMS];
    const int compound = dims->factor[dim], count = tsr_op_form_factors(form, compound, factors);
    bool settles = is_compound(compound);
    for (int i = 0; i < form->rule->operand_count; i++)
        settles = settles && !tsr_op_form_has_part(form, &form->operands[i], compound);
    for (int i = 0; i < form->rule->result_count; i++)
        settles = settles && !tsr_op_form_has_part(form, &form->results[i], compound);
    for (int i = 0; i < count && settles; i++) {
        form->size[factors[i]] = form->size[factors[i]] < 0 ? size : form->size[factors[i]];
        size /= form->size[factors[i]] ? form->size[factors[i]] : 1;
    }
}

static void settle_operands(tsr_op_form *form, const tsr_layout *const *operands)
{
    for (int i = 0; i < form->rule->operand_count; i++) {
        for (int dim = 0; form->operands[i].present && dim < form->operands[i].ndim; dim++)
            settle_sizes(form, &form->operands[i], dim, tsr_layout_shape(operands[i])[dim]);
    }
}

/* Checks that the sizes of all factors are known. */
static tsr_status check_sizes(const tsr_op_form *form, const tsr_op_names *names)
{
    for (int factor = 0; factor < form->rule->factor_count; factor++) {
        bool used = false;
        for (int i = 0; i < form->rule->result_count; i++)
            used |= tsr_op_form_find(form, &form->results[i], TSR_MAX_DIMS + factor) >= 0;
        for (int i = 0; i < form->rule->operand_count; i++)
            used |= tsr_op_form_find(form, &form->operands[i], TSR_MAX_DIMS + factor) >= 0;
        if (used && form->size[TSR_MAX_DIMS + factor] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: the size of %s in \"%s\" does not follow from the operands' shapes",
                                  names->caller, form->rule->factors[factor], names->rule);
    }
    return TSR_OK;
}

static void begin_form(const tsr_op_rule *rule, const tsr_op_shaping *shaping, tsr_op_form *out)
{
    memset(out, 0, sizeof *out);
    out->rule = rule;
    out->sizes_vary = shaping->shape_of != NULL;
    for (int factor = 0; factor < TSR_OP_FACTORS; factor++) {
        out->size[factor] = -1;
        out->marks[factor] = factor < TSR_MAX_DIMS ? rule->ellipsis : rule->marks[factor - TSR_MAX_DIMS];
    }
}

tsr_status tsr_op_form_bind(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_layout *const *operands,
                            const tsr_op_shaping *shaping, tsr_op_form *out)
{
    int leading = 0;
    origin origins[TSR_OP_FACTORS];
    begin_form(rule, shaping, out);
    for (int factor = 0; factor < TSR_OP_FACTORS; factor++)
        origins[factor].operand = -1;
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
    TSR_TRY(deduce_operands(out, names, operands));
    TSR_TRY(deduce_results(out, names, shaping));
    settle_operands(out, operands);
    TSR_TRY(deduce_operands(out, names, operands));
    return check_sizes(out, names);
}
