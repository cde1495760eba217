#include "async_ops.h"

#include "async_machine.h"

#include <tessera/sys/ops.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call, with all that is read when it is enqueued. */
typedef struct launched {
    tsr_kernel_call call;
    const tsr_op *op;
    async_stream *stream;
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS];
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1];
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS], *result_layouts[TSR_OP_MOST_RESULTS];
    int64_t coordinate[TSR_MAX_DIMS];
} launched;

void async_lack(async_machine *machine, const char *name)
{
    pthread_mutex_lock(&machine->lock);
    machine->lacks = name;
    pthread_mutex_unlock(&machine->lock);
}

/* Runs the host's kernel. Its failure is told by the next launch on the stream, or wait for it. */
static void run_launched(async_machine *machine, const async_op *op)
{
    launched *const l = async_arguments(op);
    const tsr_status status = l->op->host(&l->call);
    pthread_mutex_lock(&machine->lock);
    if (status != TSR_OK && !l->stream->trouble[0])
        snprintf(l->stream->trouble, sizeof l->stream->trouble, "%s; the device found this in an earlier call",
                 tsr_status_message());
    pthread_mutex_unlock(&machine->lock);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy((tsr_layout *)l->layouts[i]);
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_layout_destroy((tsr_layout *)l->result_layouts[i]);
}

/* Copies what is read during the call. */
static void keep(const tsr_kernel_call *call, const tsr_op *op, launched *l)
{
    l->call = *call;
    l->op = op;
    memcpy(l->inputs, call->inputs, (size_t)call->input_count * sizeof *l->inputs);
    memcpy(l->outputs, call->outputs, (size_t)call->output_count * sizeof *l->outputs);
    for (int i = 0; i < TSR_OP_MOST_ATTRIBUTES && call->attributes[i].name; i++)
        l->attributes[i] = call->attributes[i];
    for (int i = 0; i < call->input_count; i++)
        l->layouts[i] = call->layouts[i] ? tsr_layout_retain((tsr_layout *)call->layouts[i]) : NULL;
    for (int i = 0; i < call->output_count; i++)
        l->result_layouts[i] = tsr_layout_retain((tsr_layout *)call->result_layouts[i]);
    memcpy(l->coordinate, call->coordinate,
           (size_t)tsr_mesh_ndim(tsr_layout_mesh(call->result_layouts[0])) * sizeof *l->coordinate);
    l->call.inputs = l->inputs;
    l->call.outputs = l->outputs;
    l->call.attributes = l->attributes;
    l->call.layouts = l->layouts;
    l->call.result_layouts = l->result_layouts;
    l->call.coordinate = l->coordinate;
}

static bool reach_tensor(async_machine *machine, async_stream *stream, tsr_tensor *t, bool write)
{
    if (t->ndim < 0)
        return true;
    const async_box box = {t->data, t->ndim, t->shape, t->strides, tsr_dtype_bytes(t->dtype), write, "launch"};
    t->data = async_touch(machine, stream, &box);
    return t->data;
}

static bool reach_call(async_machine *machine, launched *l, size_t bytes)
{
    bool reached = true;
    for (int i = 0; i < l->call.input_count; i++)
        reached = reach_tensor(machine, l->stream, &l->inputs[i], false) && reached;
    for (int i = 0; i < l->call.output_count; i++)
        reached = reach_tensor(machine, l->stream, &l->outputs[i], true) && reached;
    if (bytes > 0)
        l->call.workspace = async_touch_bytes(machine, l->stream, l->call.workspace, bytes, true, "launch");
    return reached && (bytes == 0 || l->call.workspace);
}

/* Enqueues a call; the lock is held. */
static tsr_status enqueue(async_machine *machine, const tsr_op *op, const tsr_kernel_call *call, size_t bytes,
                          async_stream *stream)
{
    async_op *const made = async_op_create(sizeof(launched), run_launched);
    if (!made)
        return tsr_status_set(TSR_ERROR_MEMORY, "async: no memory");
    launched *const l = async_arguments(made);
    async_tick(machine, stream);
    keep(call, op, l);
    l->stream = stream;
    if (reach_call(machine, l, bytes))
        async_enqueue(machine, stream, made);
    return TSR_OK;
}

static tsr_status launch(void *self, int index, const struct tsr_kernel_call *call, tsr_stream handle)
{
    async_machine *const machine = self;
    const tsr_op *op;
    TSR_TRY(tsr_op_find(NULL, call->op, &op));
    const size_t bytes = op->workspace_bytes ? (size_t)op->workspace_bytes(call) : 0;
    if (call->query) {
        if (machine->lacks && strcmp(machine->lacks, call->op) == 0)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED, "async: no kernel of %s", call->op);
        *call->query = (int64_t)bytes;
        return TSR_OK;
    }
    tsr_status status = async_enter(machine, ASYNC_LAUNCH);
    async_stream *const stream = async_find(machine, index, handle);
    if (status == TSR_OK)
        status = async_take_trouble(stream);
    if (status == TSR_OK)
        status = enqueue(machine, op, call, bytes, stream);
    pthread_mutex_unlock(&machine->lock);
    return status;
}

const tsr_device_table *async_ops_table(bool with_gemm)
{
    static _Thread_local tsr_device_table tables[2];
    tsr_device_table *const table = &tables[with_gemm];
    *table = *async_table();
    table->launch = launch;
    if (!with_gemm) {
        table->gemm = NULL;
        table->gemm_workspace = NULL;
    }
    return table;
}
