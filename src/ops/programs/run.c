/* Runs of executables. */
#include "ops/agreement.h"
#include "ops/eager/exchange.h"
#include "ops/eager/mix.h"
#include "ops/programs/compile_memory.h"
#include "ops/programs/link.h"
#include "ops/programs/tiles.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/device.h>
#include <tessera/sys/plan.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* One run. */
typedef struct running {
    tsr_executable *x;
    tsr_comm *comm;
    char *workspace;
    tsr_stream stream;
    uint64_t number;         /* of the lengths and keys */
    size_t failed_at;        /* the step that failed first */
    const tsr_step *started; /* the move that was started last, which its own step passes over */
    bool is_open;            /* it is to be finished */
    tsr_status status;       /* of this rank */
    tsr_kept_sentence sentence;
} running;

static tsr_status refuse_tensor(const char *what, const char *name, const tsr_tensor *given, const tsr_tensor *wanted)
{
    char shapes[2][160] = {"", ""};
    const tsr_tensor *const tensors[] = {given, wanted};
    for (int i = 0; i < 2; i++) {
        size_t length = 0;
        for (int dim = 0; dim < tensors[i]->ndim && dim < TSR_MAX_DIMS; dim++)
            length += (size_t)snprintf(shapes[i] + length, sizeof shapes[i] - length, "%s%lld", dim ? "x" : "",
                                       (long long)tensors[i]->shape[dim]);
    }
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "tsr_executable_run: %s \"%.64s\" is %s %s of %d dims, but its local shape on this rank is %s "
        "%s of %d dims",
        what, name, tsr_dtype_name(given->dtype), shapes[0], given->ndim, tsr_dtype_name(wanted->dtype), shapes[1],
        wanted->ndim);
}

static tsr_status check_device(const char *what, const char *name, const tsr_tensor *given, tsr_device wanted)
{
    char text[2][80];
    if (tsr_device_same(given->device, wanted))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_executable_run: %s \"%.64s\" lies on %s, but must lie on %s; "
                          "tsr_executable_input_device() tells it of inputs",
                          what, name, tsr_launch_print(given->device, text[0], sizeof text[0]),
                          tsr_launch_print(wanted, text[1], sizeof text[1]));
}

/* Checks a tensor against the layout's local shape. */
static tsr_status check_tensor(const tsr_form *form, const char *what, const char *name, const tsr_tensor *given,
                               tsr_device device)
{
    const tsr_tensor *const wanted = &form->local;
    int64_t count = 0;
    if (!form->inside)
        return TSR_OK;
    if (given->ndim != wanted->ndim || given->dtype != wanted->dtype ||
        (wanted->ndim && memcmp(given->shape, wanted->shape, (size_t)wanted->ndim * sizeof given->shape[0]) != 0))
        return refuse_tensor(what, name, given, wanted);
    TSR_TRY(tsr_tensor_count(given, &count));
    if (!given->data && count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_run: %s \"%.64s\" has no data", what, name);
    return check_device(what, name, given, device);
}

/* True if the memory is that of the last run. */
static bool is_linked(const tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs,
                      const void *workspace)
{
    return x->is_linked && x->linked_clock == x->clock && x->linked_workspace == workspace &&
           (!x->input_count || memcmp(x->linked, inputs, x->input_count * sizeof *inputs) == 0) &&
           (!x->output_count || memcmp(x->linked + x->input_count, outputs, x->output_count * sizeof *outputs) == 0);
}

/* Checks that all is given that does not come with the run itself. */
static tsr_status check_given(const tsr_executable *x)
{
    for (size_t i = 0; i < x->bound_count; i++)
        if (x->values[x->bound[i]].place == TSR_PLACE_BOUND && !x->tensors[i])
            return tsr_status_set(TSR_ERROR_STATE,
                                  "tsr_executable_run: \"%.200s\" is not bound; give it by tsr_executable_bind()",
                                  x->bound_names[i]);
    for (size_t i = 0; i < x->key_count; i++)
        if (x->keys[i].is_used && !x->keys[i].is_given)
            return tsr_status_set(TSR_ERROR_STATE,
                                  "tsr_executable_run: key \"%.200s\" is not set; give it by tsr_executable_set_key()",
                                  x->keys[i].name);
    return TSR_OK;
}

/* Checks a run's memory, and links the steps to it. */
static tsr_status link_all(tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs, void *workspace)
{
    TSR_TRY(check_given(x));
    for (size_t i = 0; i < x->input_count; i++)
        TSR_TRY(check_tensor(tsr_form_of(x, x->inputs[i]), "input", x->input_names[i], &inputs[i],
                             tsr_executable_input_device(x, i)));
    for (size_t i = 0; i < x->output_count; i++) {
        TSR_TRY(check_tensor(tsr_form_of(x, x->outputs[i]), "output", x->output_names[i], &outputs[i], x->device));
        if (tsr_form_of(x, x->outputs[i])->inside && tsr_tensor_overlaps(&outputs[i]))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_executable_run: elements of output \"%.64s\" share memory, so it can only be "
                                  "read",
                                  x->output_names[i]);
    }
    x->stands_in = false;
    const tsr_status status = tsr_executable_link(x, inputs, outputs, workspace);
    x->stands_in = true;
    return status;
}

/* tsr_plan_execute() or tsr_plan_start(). */
typedef tsr_status move_call(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                             void *workspace, size_t bytes, tsr_stream stream);

static tsr_status run_move(const running *r, const tsr_step *step, move_call *move)
{
    const tsr_planned *const p = &r->x->plans[step->plan];
    const tsr_tensor *inputs = step->inputs, *outputs = step->outputs;
    if (step->batch >= 0) {
        inputs = r->x->batches[step->batch].inputs;
        outputs = r->x->batches[step->batch].outputs;
    }
    return move(p->now, r->comm, r->x->forms[p->from[0]].inside ? inputs : NULL,
                r->x->forms[p->to[0]].inside ? outputs : NULL, step->call.workspace, p->bytes, r->stream);
}

static tsr_status exchange(const running *r, tsr_step *step, tsr_status local)
{
    const tsr_exchange e = {.c = &step->c,
                            .mesh = r->x->meshes[step->mesh].open,
                            .exchanged = step->exchanged,
                            .coordinate = step->call.coordinate,
                            .number = r->number + step->number,
                            .call = &step->call};
    return tsr_exchange_run(&e, local == TSR_OK ? r->workspace + r->x->rooms[step->scratch].offset : NULL, local);
}

/* Computes a kernel's call, which need not exchange, or copies: on a device it is enqueued. */
static tsr_status compute(const running *r, const tsr_step *step, const tsr_kernel_call *call)
{
    const tsr_device device = r->x->device;
    if (!device.driver)
        return step->c.op->host(call);
    if (step->kind != TSR_DOES_KERNEL)
        return tsr_launch_copy(&call->inputs[0], &call->outputs[0], device, r->stream);
    const tsr_kernel_call launched = tsr_step_as_launched(step, call);
    return tsr_launch_enqueue(step->c.op, step->way, device, &launched, r->stream);
}

/* Writes a value into a state. */
static tsr_status store(const running *r, const tsr_step *step)
{
    tsr_tensor part = step->outputs[0];
    tsr_kernel_call call = step->call;
    const tsr_tensor *const at = &step->inputs[1];
    if (step->dim >= 0) {
        const int64_t position = at->dtype == TSR_I64 ? *(const int64_t *)at->data : *(const int32_t *)at->data;
        const int64_t most = step->state_size - part.shape[step->dim];
        if (position < 0 || position > most)
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "%s: position is %lld, but a value of %lld in a state of %lld must begin at 0 to %lld", step->caller,
                (long long)position, (long long)part.shape[step->dim], (long long)step->state_size, (long long)most);
        part.data = (char *)part.data + position * part.strides[step->dim] * (int64_t)tsr_dtype_bytes(part.dtype);
    }
    call.outputs = &part;
    return compute(r, step, &call);
}

/* Runs a step after another one failed: this rank goes on meeting its peers. */
static void meet_failed(running *r, tsr_step *step)
{
    (void)tsr_status_restore(&r->sentence, r->status);
    if (step->kind == TSR_DOES_MOVE && !r->x->plans[step->plan].local && step->place == 0 && step != r->started)
        (void)tsr_plan_execute_failed_on(r->x->plans[step->plan].now, r->comm, r->x->device, r->stream, r->status);
    else if (step->kind == TSR_DOES_KERNEL && step->exchanged && step->inside)
        (void)exchange(r, step, r->status);
}

/* The last step of a group runs all of them. */
static tsr_status run_tiled(const running *r, const tsr_step *step)
{
    const tsr_group *const group = &r->x->groups[step->group];
    return step == &r->x->steps[group->last] ? tsr_group_run(r->x, group) : TSR_OK;
}

static tsr_status run_step(running *r, tsr_step *step)
{
    switch (step->kind) {
    case TSR_DOES_KERNEL:
        if (!step->inside)
            return TSR_OK;
        if (step->is_apart)
            return step->is_tiled ? run_tiled(r, step) : exchange(r, step, TSR_OK);
        return compute(r, step, &step->call);
    case TSR_DOES_MOVE:
        return step->place > 0 || step == r->started ? TSR_OK : run_move(r, step, tsr_plan_execute);
    case TSR_DOES_STORE:
        if (step->is_tiled)
            return run_tiled(r, step);
        return step->inside && !step->is_there ? store(r, step) : TSR_OK;
    case TSR_DOES_COPY:
        return compute(r, step, &step->call);
    default:
        return TSR_OK;
    }
}

static void note(running *r, tsr_status status, size_t at)
{
    if (status == TSR_OK || r->status != TSR_OK)
        return;
    r->status = status;
    tsr_status_keep_returned(&r->sentence, status);
    r->failed_at = at;
}

static void run_steps(running *r, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        tsr_step *const step = &r->x->steps[i];
        if (r->status == TSR_OK)
            note(r, run_step(r, step), i);
        else
            meet_failed(r, step);
    }
}

/* Starts a move before its step, where that hides it. */
static void start_early(running *r, const tsr_early *e)
{
    const tsr_step *const step = &r->x->steps[e->step];
    if (r->status != TSR_OK || !tsr_plan_overlaps(r->x->plans[step->plan].now, r->comm))
        return;
    note(r, run_move(r, step, tsr_plan_start), (size_t)e->first - 1);
    r->started = step;
    r->is_open = r->status == TSR_OK;
}

/* Also on a rank that failed since the start, so that no peer waits. */
static void finish_early(running *r, const tsr_early *e)
{
    if (r->is_open)
        note(r, tsr_plan_finish(r->x->plans[r->started->plan].now, r->comm), (size_t)e->last - 1);
    r->is_open = false;
}

static void run_all(running *r)
{
    size_t at = 0;
    for (size_t i = 0; i < r->x->early_count; i++) {
        const tsr_early *const e = &r->x->early[i];
        run_steps(r, at, (size_t)e->first);
        start_early(r, e);
        run_steps(r, (size_t)e->first, (size_t)e->last);
        finish_early(r, e);
        at = (size_t)e->last;
    }
    run_steps(r, at, r->x->step_count);
}

/* Adds to the sentence of a failure which states the run had stored into, or was about to. */
static tsr_status tell_states(const running *r)
{
    const char *first = NULL;
    int more = -1;
    for (size_t i = 0; i < r->x->step_count && i <= r->failed_at; i++) {
        const tsr_step *const step = &r->x->steps[i];
        if (step->kind != TSR_DOES_STORE || !step->inside || r->failed_at == SIZE_MAX)
            continue;
        first = first ? first : r->x->bound_names[r->x->values[step->operands[0]].index];
        more++;
    }
    if (!first)
        return tsr_status_restore(&r->sentence, r->status);
    return tsr_status_set(r->status, "%.800s; states may have changed: \"%.64s\" and %d more", r->sentence.text, first,
                          more);
}

/* A number by which ranks that meet inside ops find out that they were given others. */
static uint64_t number_lengths_and_keys(const tsr_executable *x)
{
    uint64_t number = 0;
    for (size_t i = 0; i < x->length_count; i++)
        number = tsr_mix(number, (uint64_t)x->length[i]);
    for (size_t i = 0; i < x->key_count; i++)
        if (x->keys[i].is_used)
            number = tsr_mix(tsr_mix(number, x->keys[i].key.words[0]), x->keys[i].key.words[1]);
    return number;
}

static bool is_missing(const tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    return (x->input_count && !inputs) || (x->output_count && !outputs);
}

static tsr_status check_workspace(const tsr_executable *x, const void *workspace, size_t bytes, tsr_stream stream)
{
    if (stream && !x->device.driver)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_run: stream is %p, but the host has one stream, NULL",
                              stream);
    if (bytes < x->workspace_bytes || (!workspace && x->workspace_bytes))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_executable_run: workspace %p of %zu bytes; the executable wants %zu bytes",
                              workspace, bytes, x->workspace_bytes);
    if ((uintptr_t)workspace % TSR_ROOM_ALIGNMENT)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_run: workspace %p is not aligned to %d bytes",
                              workspace, TSR_ROOM_ALIGNMENT);
    return TSR_OK;
}

/* Checks and links a run's memory. Where strides make kernels want more scratch than there was,
 * rooms are placed again. */
static tsr_status begin(tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs, void *workspace,
                        size_t bytes, tsr_stream stream)
{
    if (is_missing(x, inputs, outputs))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_run: %s is NULL",
                              x->input_count && !inputs ? "inputs" : "outputs");
    TSR_TRY(check_workspace(x, workspace, bytes, stream));
    TSR_TRY(link_all(x, inputs, outputs, workspace));
    if (!x->has_grown)
        return TSR_OK;
    x->is_linked = false;
    TSR_TRY(tsr_compile_scratch(x));
    TSR_TRY(check_workspace(x, workspace, bytes, stream));
    return link_all(x, inputs, outputs, workspace);
}

tsr_status tsr_executable_run(tsr_executable *executable, tsr_comm *comm, const tsr_tensor *inputs,
                              const tsr_tensor *outputs, void *workspace, size_t bytes, tsr_stream stream)
{
    running r;
    if (!executable || !comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_run: %s is NULL", executable ? "comm" : "executable");
    if (executable->comm != comm)
        return tsr_status_set(TSR_ERROR_STATE, "tsr_executable_run: the executable was not prepared on this "
                                               "communicator; call tsr_executable_prepare()");
    r.x = executable;
    r.comm = comm;
    r.workspace = workspace;
    r.stream = stream;
    r.status = TSR_OK;
    r.failed_at = SIZE_MAX;
    r.started = NULL;
    r.is_open = false;
    r.number = number_lengths_and_keys(executable);
    TSR_TRY(tsr_comm_hold(comm, "tsr_executable_run"));
    if (is_missing(executable, inputs, outputs) || !is_linked(executable, inputs, outputs, workspace) ||
        bytes < executable->workspace_bytes || (stream && !executable->device.driver)) {
        r.status = begin(executable, inputs, outputs, workspace, bytes, stream);
        if (r.status != TSR_OK)
            tsr_status_keep_returned(&r.sentence, r.status);
    }
    run_all(&r);
    /* Where no step meets, or steps run after the last meeting has begun, one meeting at the end
     * tells ranks of failures. */
    if ((!executable->meets || (executable->overlaps && executable->ends_open)) && tsr_comm_size(comm) > 1) {
        if (r.status != TSR_OK)
            (void)tell_states(&r);
        r.status = tsr_agree(comm, r.status);
        return tsr_comm_let_go(comm, r.status);
    }
    return tsr_comm_let_go(comm, r.status == TSR_OK ? TSR_OK : tell_states(&r));
}
