#include "ops/numbers.h"
#include "ops/replicas/sums.h"
#include "ops/replicas/threads.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Memory of a workspace, which may have grown. */
static tsr_status grow_workspace(tsr_replica *replica)
{
    tsr_context *const context = replica->all->context;
    const size_t bytes = tsr_executable_workspace_bytes(replica->executable);
    void *memory;
    if (bytes <= replica->workspace_bytes)
        return TSR_OK;
    TSR_TRY(tsr_allocate_data(context, bytes, &memory));
    tsr_release(context, replica->workspace);
    replica->workspace = memory;
    replica->workspace_bytes = bytes;
    return TSR_OK;
}

/* Runs the executable; again where the strides of tensors made it want more workspace. */
static tsr_status execute(tsr_replica *replica)
{
    TSR_TRY(grow_workspace(replica));
    for (;;) {
        const size_t bytes = replica->workspace_bytes;
        const tsr_status status = tsr_executable_run(replica->executable, replica->comm, replica->inputs,
                                                     replica->outputs, replica->workspace, bytes, NULL);
        if (status == TSR_OK || tsr_executable_workspace_bytes(replica->executable) <= bytes)
            return status;
        TSR_TRY(grow_workspace(replica));
    }
}

/* The rows of a tensor from `first` on, or all of a tensor without rows. */
static tsr_tensor take_rows(const tsr_replica_port *port, const tsr_tensor *tensor, int64_t first, int64_t rows)
{
    tsr_tensor part = *tensor;
    if (!port->multiple)
        return part;
    if (first)
        part.data = (char *)part.data + first * port->multiple * part.strides[0] * (int64_t)tsr_dtype_bytes(part.dtype);
    part.shape[0] = rows * port->multiple;
    return part;
}

/* Points a rank's tensors at the rows of a batch, and at its own memory. */
static void point(tsr_replica *replica, const tsr_tensor *inputs, const tsr_tensor *outputs, int64_t first,
                  int64_t rows)
{
    const tsr_replicas *const r = replica->all;
    for (size_t i = 0; i < r->input_count; i++)
        replica->inputs[i] = take_rows(&r->inputs[i], &inputs[i], first, rows);
    for (size_t i = 0; i < r->output_count; i++) {
        const tsr_replica_port *const port = &r->outputs[i];
        const bool is_own = port->parameter >= 0 || (r->scatters && !port->multiple);
        replica->outputs[i] = port->own;
        replica->outputs[i].data = replica->made + port->offset;
        if (!is_own)
            replica->outputs[i] = take_rows(port, outputs, first, rows);
        outputs += port->parameter < 0;
    }
}

/* Runs `rows` rows of a batch, the part or batch `index`. */
static tsr_status run_rows(tsr_replica *replica, const tsr_tensor *inputs, const tsr_tensor *outputs, int64_t first,
                           int64_t rows, size_t index)
{
    const tsr_replicas *const r = replica->all;
    if (r->has_rows)
        TSR_TRY(tsr_executable_set_length(replica->executable, r->rows, rows));
    for (size_t i = 0; i < r->key_count; i++) {
        if (r->has_key[i]) {
            const tsr_random_key key = tsr_random_key_fold_in(r->keys[i], index);
            TSR_TRY(tsr_executable_set_key(replica->executable, r->key_names[i], &key));
        }
    }
    point(replica, inputs, outputs, first, rows);
    return execute(replica);
}

/* Notes how a rank's run of the batch `index` ended. */
static void note(tsr_replica *replica, tsr_status status, int64_t rows, size_t index)
{
    replica->status = status;
    if (status == TSR_OK) {
        replica->rows += rows;
        return;
    }
    replica->failed = index;
    tsr_status_keep_returned(&replica->sentence, status);
}

/* The rows of a rank's part of the batch, from `*first` on; 0 or less: it has none. */
static int64_t find_part(const tsr_replica *replica, int64_t *first)
{
    const tsr_replicas *const r = replica->all;
    const int64_t part = (r->batch_rows + r->ranks - 1) / r->ranks;
    *first = part * replica->rank;
    return tsr_smaller(part, r->batch_rows - *first);
}

/* A job: runs this rank's part of the batch. */
static void run_part(tsr_replica *replica)
{
    const tsr_replicas *const r = replica->all;
    int64_t first;
    const int64_t rows = find_part(replica, &first);
    if (rows > 0)
        note(replica, run_rows(replica, r->given, r->wanted, first, rows, (size_t)replica->rank), rows, 0);
}

/* The rows of a batch, by its first input that has rows; of a program without rows one. */
static int64_t count_rows(const tsr_replicas *r, const tsr_tensor *inputs)
{
    for (size_t i = 0; r->has_rows && i < r->input_count; i++)
        if (r->inputs[i].multiple)
            return inputs[i].shape[0] / r->inputs[i].multiple;
    return 1;
}

/* Fills the outputs without rows of a batch that is not run. */
static void write_zeros(const tsr_replicas *r, const tsr_tensor *outputs)
{
    for (size_t i = 0; i < r->output_count; i++) {
        const tsr_replica_port *const port = &r->outputs[i];
        if (port->parameter >= 0)
            continue;
        if (!port->multiple)
            tsr_replica_zero(outputs);
        outputs++;
    }
}

/* A job: runs this rank's batches. */
static void run_batches(tsr_replica *replica)
{
    const tsr_replicas *const r = replica->all;
    for (size_t b = (size_t)replica->rank; b < r->batch_count && replica->status == TSR_OK; b += (size_t)r->ranks) {
        const tsr_tensor *const inputs = r->given + b * r->input_count, *const outputs = r->wanted + b * r->told_count;
        const int64_t rows = count_rows(r, inputs);
        if (!rows) {
            write_zeros(r, outputs);
            continue;
        }
        const tsr_status status = run_rows(replica, inputs, outputs, 0, rows, b);
        if (status == TSR_OK && r->batch_count > (size_t)r->ranks)
            tsr_replica_keep(replica, rows, replica->rows == 0);
        note(replica, status, rows, b);
    }
}

/* Words what is wrong with a tensor of batch `batch`. */
static tsr_status refuse(const tsr_replicas *r, const char *what, const tsr_replica_port *port, size_t batch,
                         const char *why)
{
    char of[48] = "";
    if (!r->scatters)
        (void)snprintf(of, sizeof of, " of batch %zu", batch);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s \"%.200s\"%s %s", r->caller, what, port->name, of, why);
}

/* Checks an input or output of a batch of `rows` rows; ranks check the sizes of other dims. */
static tsr_status check_tensor(const tsr_replicas *r, const char *what, const tsr_replica_port *port, size_t batch,
                               const tsr_tensor *given, int64_t rows)
{
    char why[160];
    const int64_t size = rows * port->multiple;
    int64_t count;
    TSR_TRY(tsr_tensor_count(given, &count));
    if (given->ndim != port->own.ndim || given->dtype != port->own.dtype) {
        (void)snprintf(why, sizeof why, "is %s of %d dims, but must be %s of %d dims", tsr_dtype_name(given->dtype),
                       given->ndim, tsr_dtype_name(port->own.dtype), port->own.ndim);
        return refuse(r, what, port, batch, why);
    }
    if (given->device.driver)
        return refuse(r, what, port, batch, "lies on a device, but must lie on the host");
    if (!given->data && count)
        return refuse(r, what, port, batch, "has no data");
    if (port->multiple && given->shape[0] != size) {
        (void)snprintf(why, sizeof why, "has %lld elements in dim 0, but must have %lld for a batch of %lld rows",
                       (long long)given->shape[0], (long long)size, (long long)rows);
        return refuse(r, what, port, batch, why);
    }
    return TSR_OK;
}

/* Checks what ranks do not see of an output. */
static tsr_status check_output(const tsr_replicas *r, const tsr_replica_port *port, size_t batch,
                               const tsr_tensor *given)
{
    if (port->multiple && tsr_tensor_overlaps(given))
        return refuse(r, "output", port, batch, "has elements that share memory, so it can only be read");
    if (port->multiple)
        return TSR_OK;
    if (!tsr_tensor_is_contiguous(given))
        return refuse(r, "output", port, batch, "has strides, but must be contiguous, since it has no rows");
    if (given->ndim && memcmp(given->shape, port->own.shape, (size_t)given->ndim * sizeof given->shape[0]) != 0)
        return refuse(r, "output", port, batch, "has another shape than the program's output");
    return TSR_OK;
}

static tsr_status check_batch(const tsr_replicas *r, size_t batch, const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    int64_t rows = -1;
    for (size_t i = 0; i < r->input_count; i++) {
        if (r->inputs[i].multiple && rows < 0 && inputs[i].ndim > 0)
            rows = inputs[i].shape[0] / r->inputs[i].multiple;
        TSR_TRY(check_tensor(r, "input", &r->inputs[i], batch, &inputs[i], rows));
    }
    for (size_t i = 0; i < r->output_count; i++) {
        if (r->outputs[i].parameter >= 0)
            continue;
        TSR_TRY(check_tensor(r, "output", &r->outputs[i], batch, outputs, rows));
        TSR_TRY(check_output(r, &r->outputs[i], batch, outputs));
        outputs++;
    }
    return TSR_OK;
}

/* Checks that a batch, or its parts, have no more rows than ranks have memory for. */
static tsr_status check_rows(const tsr_replicas *r, size_t batch, int64_t rows)
{
    const int64_t part = r->scatters ? (rows + r->ranks - 1) / r->ranks : rows, most = r->most_rows * r->ranks;
    if (!r->has_rows || part <= r->most_rows)
        return TSR_OK;
    if (r->scatters)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: the batch has %lld rows, parts of %lld on %d ranks, but \"%.64s\" is at most %lld: "
                              "give up to %lld rows, or several batches to tsr_replicas_apply()",
                              r->caller, (long long)rows, (long long)part, r->ranks, r->rows, (long long)r->most_rows,
                              (long long)most);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: batch %zu has %lld rows, but \"%.64s\" is at most %lld", r->caller,
                          batch, (long long)rows, r->rows, (long long)r->most_rows);
}

/* Takes a call's batches, and checks them. */
static tsr_status take(tsr_replicas *r, bool scatters, size_t count, const tsr_tensor *inputs,
                       const tsr_tensor *outputs)
{
    r->scatters = scatters;
    r->batch_count = count;
    r->given = inputs;
    r->wanted = outputs;
    if (scatters && !r->has_rows)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: the program has no length \"%.64s\" of rows to cut; tsr_replicas_apply() takes whole "
            "batches",
            r->caller, r->rows);
    if (count && ((r->input_count && !inputs) || (r->told_count && !outputs)))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r->caller,
                              r->input_count && !inputs ? "inputs" : "outputs");
    for (size_t b = 0; b < count; b++) {
        TSR_TRY(check_batch(r, b, inputs + b * r->input_count, outputs + b * r->told_count));
        r->batch_rows = count_rows(r, inputs + b * r->input_count);
        TSR_TRY(check_rows(r, b, r->batch_rows));
    }
    for (int i = 0; i < r->ranks; i++) {
        r->replicas[i].status = TSR_OK;
        r->replicas[i].rows = 0;
        if (count > (size_t)r->ranks && r->sum_count && !r->replicas[i].sums)
            TSR_TRY(tsr_allocate_data(r->context, r->sum_count * sizeof(double), (void **)&r->replicas[i].sums));
    }
    return TSR_OK;
}

/* The failure of the lowest rank that has one. */
static tsr_status tell_failure(const tsr_replicas *r)
{
    for (int i = 0; i < r->ranks; i++) {
        const tsr_replica *const rank = &r->replicas[i];
        if (rank->status == TSR_OK)
            continue;
        int64_t first;
        const int64_t last = find_part(rank, &first) + first - 1;
        if (r->scatters)
            return tsr_status_set(rank->status, "%s: rank %d, rows %lld to %lld: %s", r->caller, i, (long long)first,
                                  (long long)last, rank->sentence.text);
        return tsr_status_set(rank->status, "%s: rank %d, batch %zu: %s", r->caller, i, rank->failed,
                              rank->sentence.text);
    }
    return TSR_OK;
}

static tsr_status call(tsr_replicas *r, bool scatters, size_t count, const tsr_tensor *inputs,
                       const tsr_tensor *outputs)
{
    int64_t rows = 0;
    TSR_TRY(take(r, scatters, count, inputs, outputs));
    tsr_replicas_work(r, scatters ? run_part : run_batches);
    TSR_TRY(tell_failure(r));
    for (int i = 0; i < r->ranks; i++)
        rows += r->replicas[i].rows;
    if (rows)
        tsr_replicas_work(r, tsr_replica_sum);
    else if (scatters)
        write_zeros(r, outputs);
    return TSR_OK;
}

tsr_status tsr_replicas_run(tsr_replicas *replicas, const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    TSR_TRY(tsr_replicas_enter(replicas, "tsr_replicas_run"));
    return tsr_replicas_exit(replicas, call(replicas, true, 1, inputs, outputs));
}

tsr_status tsr_replicas_apply(tsr_replicas *replicas, size_t count, const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    TSR_TRY(tsr_replicas_enter(replicas, "tsr_replicas_apply"));
    return tsr_replicas_exit(replicas, call(replicas, false, count, inputs, outputs));
}

static tsr_status bind_and_run(tsr_replicas *replicas, size_t count, const tsr_replicas_binding *bindings,
                               const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    for (size_t i = 0; i < count; i++)
        TSR_TRY(tsr_replicas_bind(replicas, bindings[i].name, bindings[i].value, bindings[i].gradient));
    return tsr_replicas_run(replicas, inputs, outputs);
}

tsr_status tsr_data_parallel(const tsr_program *program, int ranks, const tsr_replicas_options *options, size_t count,
                             const tsr_replicas_binding *bindings, const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    tsr_replicas *replicas;
    tsr_kept_sentence kept;
    if (count && !bindings)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_data_parallel: bindings is NULL");
    TSR_TRY(tsr_replicas_create(program, ranks, options, &replicas));
    const tsr_status status = bind_and_run(replicas, count, bindings, inputs, outputs);
    tsr_status_keep(&kept);
    tsr_replicas_destroy(replicas);
    return tsr_status_restore(&kept, status);
}
