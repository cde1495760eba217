#include "tensor/sparse/sparse_state.h"

#include "base/memory/memory.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "tensor/rows/row_sums.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>

const tsr_sparse_state_row *tsr_sparse_states_of(const tsr_sparse_options *options)
{
    static const tsr_sparse_state_row none[] = {{NULL, TSR_SPARSE_ELEMENTS}},
                                      sgd[] = {{"momentum_buffer", TSR_SPARSE_ELEMENTS}, {NULL, TSR_SPARSE_ELEMENTS}},
                                      adagrad[] = {{"sum", TSR_SPARSE_ELEMENTS}, {NULL, TSR_SPARSE_ELEMENTS}},
                                      rowwise[] = {{"sum", TSR_SPARSE_ROWS}, {NULL, TSR_SPARSE_ELEMENTS}},
                                      adam[2][TSR_SPARSE_STATES] = {{{"exp_avg", TSR_SPARSE_ELEMENTS},
                                                                     {"exp_avg_sq", TSR_SPARSE_ELEMENTS},
                                                                     {"step", TSR_SPARSE_TABLE_STEPS}},
                                                                    {{"exp_avg", TSR_SPARSE_ELEMENTS},
                                                                     {"exp_avg_sq", TSR_SPARSE_ELEMENTS},
                                                                     {"step", TSR_SPARSE_ROW_STEPS}}};
    switch (options->kind) {
    case TSR_SPARSE_ADAGRAD:
        return adagrad;
    case TSR_SPARSE_ROWWISE_ADAGRAD:
        return rowwise;
    case TSR_SPARSE_ADAM:
        return adam[options->steps == TSR_SPARSE_STEPS_ROW];
    default:
        return options->momentum > 0 ? sgd : none;
    }
}

tsr_dtype tsr_sparse_dtype(tsr_dtype table)
{
    return tsr_row_arithmetic_portable[table].accumulator;
}

bool tsr_sparse_changes_all(const tsr_sparse_options *options)
{
    return options->kind == TSR_SPARSE_SGD && options->steps == TSR_SPARSE_STEPS_GLOBAL &&
           (options->momentum > 0 || options->weight_decay > 0);
}

/* A dtensor of one number for each row, cut as rows of the table are; whole where columns are. */
static tsr_status create_by_rows(const tsr_layout *like, tsr_dtype dtype, tsr_dtensor **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    for (int i = 0; i < like->mesh_ndim; i++) {
        const bool cuts_rows = tsr_layout_kind(like, i) == TSR_SHARD && like->placements[i].dim == 0;
        placements[i] = cuts_rows ? like->placements[i] : tsr_replicate();
    }
    TSR_TRY(tsr_layout_create(like->mesh, placements, 1, like->shape, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status create_scalar(const tsr_layout *like, tsr_dtype dtype, tsr_dtensor **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    for (int i = 0; i < like->mesh_ndim; i++)
        placements[i] = tsr_replicate();
    TSR_TRY(tsr_layout_create(like->mesh, placements, 0, NULL, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status create_state(tsr_sparse_form form, const tsr_dtensor *table, tsr_dtensor **out)
{
    const tsr_layout *const layout = table->layout;
    const tsr_dtype dtype = tsr_sparse_dtype(layout->dtype);
    switch (form) {
    case TSR_SPARSE_ROWS:
        return create_by_rows(layout, dtype, out);
    case TSR_SPARSE_ROW_STEPS:
        return create_by_rows(layout, TSR_I64, out);
    case TSR_SPARSE_TABLE_STEPS:
        return create_scalar(layout, TSR_I64, out);
    default:
        return tsr_dtensor_like_as(table, dtype, out);
    }
}

tsr_status tsr_sparse_table_open(const tsr_sparse_options *options, const tsr_dtensor *table, tsr_sparse_table *out)
{
    const tsr_sparse_state_row *const states = tsr_sparse_states_of(options);
    void *memory;
    for (int i = 0; i < TSR_SPARSE_STATES && states[i].name; i++) {
        const bool is_sum = options->kind == TSR_SPARSE_ADAGRAD || options->kind == TSR_SPARSE_ROWWISE_ADAGRAD;
        TSR_TRY(create_state(states[i].form, table, &out->states[i]));
        TSR_TRY(tsr_dtensor_fill(out->states[i], is_sum ? options->initial_accumulator : 0, NULL));
    }
    if (!tsr_sparse_changes_all(options))
        return TSR_OK;
    TSR_TRY(tsr_allocate_zeroed(table->layout->context, (size_t)table->local.shape[0], &memory));
    out->stepped = memory;
    return TSR_OK;
}

void tsr_sparse_table_close(tsr_context *context, tsr_sparse_table *kept)
{
    for (int i = 0; i < TSR_SPARSE_STATES; i++)
        tsr_dtensor_destroy(kept->states[i]);
    tsr_release(context, kept->stepped);
    *kept = (tsr_sparse_table){0};
}
