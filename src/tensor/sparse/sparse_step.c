#include "tensor/sparse/sparse_step.h"

#include "base/hash.h"
#include "placement/layout.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *tsr_sparse_kind_name(tsr_sparse_kind kind)
{
    static const char *const names[TSR_SPARSE_KIND_END] = {[TSR_SPARSE_SGD] = "sgd",
                                                           [TSR_SPARSE_ADAGRAD] = "adagrad",
                                                           [TSR_SPARSE_ROWWISE_ADAGRAD] = "rowwise_adagrad",
                                                           [TSR_SPARSE_ADAM] = "adam"};
    return (unsigned)kind < TSR_SPARSE_KIND_END ? names[kind] : "none";
}

int64_t tsr_sparse_width(const tsr_dtensor *table)
{
    int64_t width = 1;
    for (int dim = 1; dim < table->local.ndim; dim++)
        width *= table->local.shape[dim];
    return width;
}

static bool counts_by_row(const tsr_sparse_options *options)
{
    return options->kind == TSR_SPARSE_ADAM && options->steps == TSR_SPARSE_STEPS_ROW;
}

static tsr_sparse_change *formula_of(const tsr_sparse_math *math, const tsr_sparse_options *options)
{
    switch (options->kind) {
    case TSR_SPARSE_ADAGRAD:
        return math->adagrad;
    case TSR_SPARSE_ROWWISE_ADAGRAD:
        return math->rowwise;
    case TSR_SPARSE_ADAM:
        return counts_by_row(options) ? math->adam_by_row : math->adam;
    default:
        return options->momentum > 0 ? math->momentum : math->sgd;
    }
}

static tsr_sparse_numbers numbers_of(const tsr_sparse_options *options)
{
    return (tsr_sparse_numbers){.rate = options->learning_rate,
                                .momentum = options->momentum,
                                .beta1 = options->beta1,
                                .beta2 = options->beta2,
                                .in_root = options->epsilon_in_root ? options->epsilon : 0,
                                .beside_root = options->epsilon_in_root ? 0 : options->epsilon};
}

/* The corrections of Adam's step number `number`, from 1 on. */
static void correct(const tsr_sparse_options *options, int64_t number, tsr_sparse_numbers *numbers)
{
    numbers->correction1 = 1 - pow(options->beta1, (double)number);
    numbers->correction2 = 1 - pow(options->beta2, (double)number);
}

/* The number of a table's steps, or (`local`) of a row's. */
static int64_t *number_of(const tsr_sparse_step *step, size_t table, int64_t local)
{
    return (int64_t *)step->tables[table].states[2]->local.data + local;
}

static tsr_status begin(const tsr_row_step *row_step, const tsr_row_shard *shard)
{
    tsr_sparse_step *const step = (tsr_sparse_step *)row_step;
    const tsr_sparse_options *const options = &step->options;
    const tsr_dtensor *const table = step->dtensors[shard->table];
    step->math = tsr_sparse_math_of(step->kernels, tsr_sparse_dtype(table->layout->dtype) == TSR_F64);
    step->formula = formula_of(step->math, options);
    step->width = tsr_sparse_width(table);
    step->numbers = numbers_of(options);
    if (options->kind == TSR_SPARSE_ADAM && !counts_by_row(options)) {
        correct(options, ++*number_of(step, shard->table, 0), &step->numbers);
        step->numbers.rate = options->learning_rate * sqrt(step->numbers.correction2) / step->numbers.correction1;
    }
    return TSR_OK;
}

/* Row `local` of state `i`; NULL: no such state has numbers, or its rows have no columns. */
static void *state_row(const tsr_sparse_step *step, size_t table, int i, int64_t local)
{
    const tsr_dtensor *const state = step->tables[table].states[i];
    if (!state || state->layout->dtype == TSR_I64 || !state->local.data)
        return NULL;
    return (char *)state->local.data + (size_t)(local * tsr_sparse_width(state)) * state->layout->element_bytes;
}

static tsr_status convert(const tsr_sparse_step *step, void *to, tsr_dtype to_dtype, const void *from,
                          tsr_dtype from_dtype)
{
    if (step->width == 0)
        return TSR_OK;
    return step->ops.table->convert(step->ops.self, step->ops.index, to, to_dtype, from, from_dtype, step->width, NULL);
}

/* Changes a row of numbers `w`, in the accumulator's dtype. */
static void change_numbers(tsr_sparse_step *step, size_t table, const tsr_row_gradient *row, void *w)
{
    const void *gradient = row->part;
    void *const state = state_row(step, table, 0, row->local);
    if (step->options.weight_decay > 0) {
        step->math->decay(step->decayed, gradient, w, step->options.weight_decay, step->width);
        gradient = step->decayed;
    }
    if (row->whole) { /* without weight decay unless the rank has the whole row */
        const bool decays = gradient == step->decayed;
        const tsr_layout *const layout = step->dtensors[table]->layout;
        int64_t width = 1;
        for (int dim = 1; dim < layout->ndim; dim++)
            width *= layout->shape[dim];
        step->math->add_mean_square(state, decays ? gradient : row->whole, width);
    }
    if (counts_by_row(&step->options))
        correct(&step->options, ++*number_of(step, table, row->local), &step->numbers);
    step->formula(w, gradient, state, state_row(step, table, 1, row->local), step->width, &step->numbers);
}

static tsr_status change_row(tsr_sparse_step *step, const tsr_row_shard *shard, const tsr_row_gradient *row)
{
    const tsr_dtype dtype = step->dtensors[shard->table]->layout->dtype, wide = tsr_sparse_dtype(dtype);
    /* Rows of no columns have no memory. */
    char *const to = shard->rows ? shard->rows + (size_t)row->local * shard->stride : NULL;
    if (dtype == wide) {
        change_numbers(step, shard->table, row, to);
        return TSR_OK;
    }
    TSR_TRY(convert(step, step->widened, wide, to, dtype));
    change_numbers(step, shard->table, row, step->widened);
    return convert(step, to, dtype, step->widened, wide);
}

static tsr_status change(const tsr_row_step *row_step, const tsr_row_shard *shard, const tsr_row_gradient *row)
{
    tsr_sparse_step *const step = (tsr_sparse_step *)row_step;
    uint8_t *const stepped = step->tables[shard->table].stepped;
    if (stepped)
        stepped[row->local] = 1;
    return change_row(step, shard, row);
}

/* Changes the rows that no rank has named, where they change too. */
static tsr_status finish(const tsr_row_step *row_step, const tsr_row_shard *shard)
{
    tsr_sparse_step *const step = (tsr_sparse_step *)row_step;
    uint8_t *const stepped = step->tables[shard->table].stepped;
    const int64_t rows = stepped ? step->dtensors[shard->table]->local.shape[0] : 0;
    for (int64_t local = 0; local < rows; local++) {
        const tsr_row_gradient none = {.local = local, .part = step->zeros};
        if (!stepped[local])
            TSR_TRY(change_row(step, shard, &none));
        stepped[local] = 0;
    }
    return TSR_OK;
}

static uint64_t hash_number(uint64_t hash, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return tsr_hash_word(hash, bits);
}

static uint64_t hash_options(const tsr_sparse_options *o)
{
    const double numbers[] = {
        o->learning_rate,          o->momentum, o->beta1, o->beta2, o->epsilon, o->weight_decay, o->initial_accumulator,
        (double)o->epsilon_in_root};
    uint64_t hash = tsr_hash_word(TSR_HASH_SEED, (uint64_t)o->kind);
    hash = tsr_hash_word(hash, (uint64_t)o->duplicates);
    hash = tsr_hash_word(hash, (uint64_t)o->steps);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_number(hash, numbers[i]);
    return hash;
}

void tsr_sparse_step_set_rate(tsr_sparse_step *step, double rate)
{
    const tsr_sparse_options *const o = &step->options;
    step->options.learning_rate = rate;
    step->row_step.fingerprint = hash_options(o);
    snprintf(step->words, sizeof step->words, "%s at learning rate %.17g", tsr_sparse_kind_name(o->kind), rate);
}

void tsr_sparse_step_open(tsr_sparse_step *step)
{
    step->row_step = (tsr_row_step){.begin = begin,
                                    .change = change,
                                    .finish = finish,
                                    .needs_whole = step->options.kind == TSR_SPARSE_ROWWISE_ADAGRAD,
                                    .words = step->words};
    tsr_sparse_step_set_rate(step, step->options.learning_rate);
}
