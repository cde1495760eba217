/* Sparse optimizers: plans of calls by id whose owners take steps, and states of tables. */
#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/options.h"
#include "comm/core/agree.h"
#include "comm/core/entry.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/rows/rows_calls.h"
#include "tensor/rows/rows_plan.h"
#include "tensor/sparse/sparse_step.h"

#include <tessera/context.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <string.h>

struct tsr_sparse_optimizer {
    tsr_sparse_step step; /* its words are in it, so that it stays where it is */
    tsr_context *context; /* one reference */
    tsr_rows_plan *plan;  /* has the references to the tables */
    size_t count;
};

static const char create_name[] = "tsr_sparse_optimizer_create";

/* A number of the options and what it may be: from 0 on, below `end`. */
typedef struct option_range {
    const char *name;
    double value, end;
} option_range;

static tsr_status check_number(const char *call, const option_range *range)
{
    if (range->value >= 0 && range->value < range->end)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %g: it is 0 or more%s", call, range->name, range->value,
                          range->end == 1 ? ", and below 1" : ", and finite");
}

static tsr_status check_enum(const char *name, int value, int end, const char *fine)
{
    if (value >= 0 && value < end)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %d: %s", create_name, name, value, fine);
}

static tsr_status read_options(const tsr_sparse_options *given, tsr_sparse_options *out)
{
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(create_name, given, &options, sizeof options));
    if (options.epsilon == -1)
        options.epsilon = options.kind == TSR_SPARSE_ADAM ? 1e-8 : 1e-10;
    const option_range ranges[] = {{"learning_rate", options.learning_rate, INFINITY},
                                   {"momentum", options.momentum, INFINITY},
                                   {"beta1", options.beta1, 1},
                                   {"beta2", options.beta2, 1},
                                   {"epsilon", options.epsilon, INFINITY},
                                   {"weight_decay", options.weight_decay, INFINITY},
                                   {"initial_accumulator", options.initial_accumulator, INFINITY}};
    TSR_TRY(check_enum("kind", (int)options.kind, TSR_SPARSE_KIND_END,
                       "sgd, adagrad, rowwise_adagrad and adam are TSR_SPARSE_SGD to _ADAM"));
    TSR_TRY(check_enum("duplicates", (int)options.duplicates, TSR_SPARSE_DUPLICATES_END,
                       "sum and mean are TSR_SPARSE_DUPLICATES_SUM and _MEAN"));
    TSR_TRY(check_enum("steps", (int)options.steps, TSR_SPARSE_STEPS_END,
                       "global and row are TSR_SPARSE_STEPS_GLOBAL and _ROW"));
    TSR_TRY(check_enum("epsilon_in_root", options.epsilon_in_root, 2, "it is 0 or 1"));
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        TSR_TRY(check_number(create_name, &ranges[i]));
    *out = options;
    return TSR_OK;
}

static bool cuts_columns(const tsr_layout *layout)
{
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_layout_kind(layout, i) == TSR_SHARD && layout->placements[i].dim > 0 &&
            tsr_mesh_shape(layout->mesh)[i] > 1)
            return true;
    return false;
}

static tsr_status check_tables(size_t count, tsr_dtensor *const *tables, const tsr_sparse_options *options)
{
    char text[512];
    for (size_t i = 0; i < count; i++) {
        const tsr_layout *const layout = tables[i]->layout;
        for (size_t j = 0; j < i; j++)
            if (tables[j] == tables[i])
                return tsr_status_set(TSR_ERROR_ARGUMENT,
                                      "%s: tables[%zu] is tables[%zu]: a table has one entry, which gets all its ids",
                                      create_name, i, j);
        if (tables[i]->local.device.driver)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: tables[%zu] is on %s: optimizers take tables on the host",
                                  create_name, i, tsr_device_print(tables[i]->local.device, text));
        if (tsr_dtype_get(layout->dtype)->kind != TSR_CLASS_FLOAT)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: tables[%zu] is of %s: optimizers are for floats",
                                  create_name, i, tsr_dtype_name(layout->dtype));
        if (options->kind == TSR_SPARSE_ROWWISE_ADAGRAD && options->weight_decay > 0 && cuts_columns(layout))
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: tables[%zu] is %s: weight_decay of row-wise Adagrad needs whole rows, so that "
                                  "columns are not cut",
                                  create_name, i, tsr_layout_describe(layout, text, sizeof text));
    }
    return TSR_OK;
}

/* Takes the memory of one row, for the widest table. */
static tsr_status take_rows(tsr_sparse_optimizer *optimizer)
{
    tsr_sparse_step *const step = &optimizer->step;
    int64_t width = 1;
    for (size_t i = 0; i < optimizer->count; i++)
        width = tsr_max_i64(width, tsr_sparse_width(step->dtensors[i]));
    TSR_TRY(tsr_allocate_array(optimizer->context, (size_t)width, sizeof(double), &step->widened));
    TSR_TRY(tsr_allocate_array(optimizer->context, (size_t)width, sizeof(double), &step->decayed));
    return tsr_allocate_array(optimizer->context, (size_t)width, sizeof(double), &step->zeros);
}

static tsr_status fill_optimizer(tsr_sparse_optimizer *optimizer, tsr_dtensor *const *tables, int64_t capacity,
                                 const tsr_group *group)
{
    tsr_sparse_step *const step = &optimizer->step;
    void *memory;
    TSR_TRY(tsr_allocate_array(optimizer->context, optimizer->count, sizeof *step->tables, &memory));
    step->tables = memory;
    TSR_TRY(tsr_rows_plan_make(optimizer->count, tables, capacity, group, &optimizer->plan));
    step->dtensors = tsr_rows_plan_tables(optimizer->plan);
    for (size_t i = 0; i < optimizer->count; i++)
        TSR_TRY(tsr_sparse_table_open(&step->options, tables[i], &step->tables[i]));
    return take_rows(optimizer);
}

/* Makes an optimizer of tables and options that are checked. Does not communicate. */
static tsr_status make_optimizer(size_t count, tsr_dtensor *const *tables, int64_t capacity,
                                 const tsr_sparse_options *options, const tsr_group *group, tsr_sparse_optimizer **out)
{
    tsr_context *const context = tables[0]->layout->context;
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof(tsr_sparse_optimizer), &memory));
    tsr_sparse_optimizer *const optimizer = memory;
    optimizer->context = tsr_context_retain(context);
    optimizer->count = count;
    optimizer->step.options = *options;
    optimizer->step.kernels = tsr_context_kernels(context);
    optimizer->step.ops = tsr_device_resolve(context, tsr_device_host());
    tsr_sparse_step_open(&optimizer->step);
    const tsr_status status = fill_optimizer(optimizer, tables, capacity, group);
    if (status == TSR_OK)
        *out = optimizer;
    else
        tsr_sparse_optimizer_destroy(optimizer);
    return status;
}

/* Makes this rank's optimizer; fails if an argument is bad. */
static tsr_status make(size_t count, tsr_dtensor *const *tables, int64_t capacity, const tsr_sparse_options *given,
                       const tsr_group *group, tsr_sparse_optimizer **out)
{
    tsr_sparse_options options;
    TSR_TRY(read_options(given, &options));
    TSR_TRY(tsr_rows_plan_check(create_name, count, tables, capacity, out));
    TSR_TRY(check_tables(count, tables, &options));
    return make_optimizer(count, tables, capacity, &options, group, out);
}

static tsr_status agree_on_optimizer(size_t count, tsr_dtensor *const *tables, int64_t capacity,
                                     const tsr_sparse_options *options, tsr_sparse_optimizer **out)
{
    tsr_row_call call = {.name = create_name, .count = count, .first = tables[0]->layout, .gathers = true};
    tsr_sparse_optimizer *optimizer = NULL;
    TSR_TRY(tsr_rows_find_group(call.name, tables[0], &call.group));
    tsr_status status = make(count, tables, capacity, options, call.group, out ? &optimizer : NULL);
    const tsr_row_arguments arguments = {status == TSR_OK ? count : 1, tables, capacity, NULL, NULL};
    call.step = optimizer ? &optimizer->step.row_step : NULL;
    if (call.group)
        status = tsr_comm_agree(call.group->comm, tsr_rows_fingerprint(&call, &arguments), status,
                                tsr_row_call_describe, &call);
    if (status == TSR_OK)
        *out = optimizer;
    else
        tsr_sparse_optimizer_destroy(optimizer);
    return status;
}

tsr_status tsr_sparse_optimizer_create(size_t count, tsr_dtensor *const *tables, int64_t capacity,
                                       const tsr_sparse_options *options, tsr_sparse_optimizer **out)
{
    if (count == 0 || !tables || !tables[0])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s", create_name,
                              count == 0 ? "count is 0: an optimizer has a table" : "tables or tables[0] is NULL");
    TSR_TRY(tsr_check_communicates(tables[0]->layout->mesh, create_name));
    TSR_TRY(tsr_comm_enter(tables[0]->comm, create_name));
    return tsr_comm_leave(tables[0]->comm, agree_on_optimizer(count, tables, capacity, options, out));
}

void tsr_sparse_optimizer_destroy(tsr_sparse_optimizer *optimizer)
{
    if (!optimizer)
        return;
    tsr_context *const context = optimizer->context;
    tsr_sparse_step *const step = &optimizer->step;
    for (size_t i = 0; step->tables && i < optimizer->count; i++)
        tsr_sparse_table_close(context, &step->tables[i]);
    tsr_rows_plan_destroy(optimizer->plan);
    tsr_release(context, step->tables);
    tsr_release(context, step->widened);
    tsr_release(context, step->decayed);
    tsr_release(context, step->zeros);
    tsr_release(context, optimizer);
    tsr_context_destroy(context);
}

tsr_status tsr_sparse_optimizer_step(tsr_sparse_optimizer *optimizer, const tsr_tensor *ids, const tsr_tensor *rows)
{
    static const char call[] = "tsr_sparse_optimizer_step";
    if (!optimizer)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: optimizer is NULL", call);
    const bool means = optimizer->step.options.duplicates == TSR_SPARSE_DUPLICATES_MEAN;
    return tsr_rows_plan_step(optimizer->plan, call, &optimizer->step.row_step, means ? TSR_ROWS_MEAN : TSR_ROWS_ADD,
                              ids, rows);
}

tsr_status tsr_sparse_optimizer_set_learning_rate(tsr_sparse_optimizer *optimizer, double learning_rate)
{
    static const char call[] = "tsr_sparse_optimizer_set_learning_rate";
    const option_range range = {"learning_rate", learning_rate, INFINITY};
    if (!optimizer)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: optimizer is NULL", call);
    TSR_TRY(check_number(call, &range));
    tsr_sparse_step_set_rate(&optimizer->step, learning_rate);
    return TSR_OK;
}

double tsr_sparse_optimizer_learning_rate(const tsr_sparse_optimizer *optimizer)
{
    return optimizer ? optimizer->step.options.learning_rate : 0;
}

const char *tsr_sparse_optimizer_state_name(const tsr_sparse_optimizer *optimizer, size_t i)
{
    if (!optimizer || i >= TSR_SPARSE_STATES)
        return NULL;
    const tsr_sparse_state_row *const states = tsr_sparse_states_of(&optimizer->step.options);
    for (size_t k = 0; k < i; k++)
        if (!states[k].name)
            return NULL;
    return states[i].name;
}

tsr_dtensor *tsr_sparse_optimizer_state(const tsr_sparse_optimizer *optimizer, size_t table, const char *name)
{
    const char *known;
    for (size_t i = 0; name && optimizer && table < optimizer->count; i++) {
        known = tsr_sparse_optimizer_state_name(optimizer, i);
        if (!known)
            break;
        if (strcmp(known, name) == 0)
            return optimizer->step.tables[table].states[i];
    }
    return NULL;
}
