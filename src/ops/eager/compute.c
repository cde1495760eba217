#include "ops/eager/compute.h"

#include "ops/eager/exchange.h"
#include "ops/eager/launch.h"
#include "ops/eager/mix.h"
#include "ops/rows/exchange_bytes.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/device.h>
#include <tessera/sys/dtensor.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* What stands behind each record of an exchange. */
typedef struct trailer {
    uint64_t call; /* a number of the call, equal on ranks in the same one */
    int32_t status, rank;
    char unused[TSR_RECORD_ALIGNMENT - sizeof(uint64_t) - 2 * sizeof(int32_t)];
} trailer;

/* A call that is computed on this rank. */
typedef struct computing {
    const tsr_computation *given;
    tsr_context *context;
    void *workspace, *sent, *received; /* allocated, or NULL */
    int64_t stride;                    /* of the records of this stage, trailers included */
    uint64_t number;                   /* of the call, equal on ranks in the same one */
    unsigned met;                      /* mesh dims along which ranks meet after this stage */
    int met_count, met_place;          /* the ranks along them, and this one's place */
    tsr_kernel_call call;
} computing;

/* The text of mesh dims, as tsr_mesh_slice() reads it. */
static void list_dims(const tsr_mesh *mesh, unsigned dims, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (int k = 0; k < tsr_mesh_ndim(mesh) && length < capacity; k++) {
        if (!(dims >> k & 1))
            continue;
        const char *const name = tsr_mesh_name(mesh, k);
        length += name ? (size_t)snprintf(text + length, capacity - length, "%s%s", length ? "," : "", name)
                       : (size_t)snprintf(text + length, capacity - length, "%s%d", length ? "," : "", k);
    }
}

/* Counts the ranks that meet after a stage, and finds this one's place among them. */
static void find_place(computing *k, int stage)
{
    k->met = tsr_op_met(k->given->c, stage, k->given->exchanged);
    k->met_count = 1;
    k->met_place = 0;
    for (int dim = 0; dim < tsr_mesh_ndim(k->given->mesh); dim++) {
        if (!(k->met >> dim & 1))
            continue;
        const int size = (int)tsr_mesh_size(k->given->mesh, dim);
        k->met_place = k->met_place * size + (int)k->given->coordinate[dim];
        k->met_count *= size;
    }
}

static uint64_t mix_layout(uint64_t hash, const tsr_layout *layout)
{
    char text[256];
    hash = tsr_mix(hash, (uint64_t)tsr_layout_dtype(layout));
    for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
        hash = tsr_mix(hash, (uint64_t)tsr_layout_shape(layout)[dim]);
    tsr_layout_print(layout, text, sizeof text);
    return tsr_mix_text(hash, text);
}

/* A number that ranks in different calls, stages included, hardly share. */
static uint64_t number_call(const tsr_op_case *c)
{
    uint64_t hash = tsr_mix_attributes(tsr_mix_text(0, c->op->name), c->attributes);
    for (int i = 0; c->op->operands[i]; i++)
        hash = c->operands[i] ? mix_layout(hash, c->operands[i]) : tsr_mix(hash, 1);
    return hash;
}

static tsr_status fail_exchange(const computing *k, const trailer *other)
{
    const char *const caller = k->given->c->caller;
    if (other->status != TSR_OK)
        return tsr_status_set(TSR_ERROR_PEER, "%s: rank %d failed (%s)", caller, other->rank,
                              tsr_status_name((tsr_status)other->status));
    return tsr_status_set(TSR_ERROR_PEER,
                          "%s: rank %d is in another call, or has other attributes or layouts; all ranks must make "
                          "the same call",
                          caller, other->rank);
}

/* Checks what came with the records. */
static tsr_status check_trailers(const computing *k, uint64_t number)
{
    for (int i = 0; i < k->met_count; i++) {
        trailer t;
        memcpy(&t, (const char *)k->received + (i + 1) * k->stride - TSR_RECORD_ALIGNMENT, sizeof t);
        if (t.status != TSR_OK || t.call != number)
            return fail_exchange(k, &t);
    }
    return TSR_OK;
}

/* Gathers the records of a stage from all ranks that meet. A rank without room for records gives
 * none, of which its peers hear. */
static tsr_status exchange(computing *k, tsr_status local)
{
    char dims[TSR_MAX_DIMS * 40];
    tsr_kept_sentence kept;
    if (!k->met && local == TSR_OK)
        memcpy(k->received, k->sent, (size_t)k->stride);
    if (!k->met)
        return local;
    tsr_status_keep_returned(&kept, local);
    const uint64_t number = tsr_mix(k->number, (uint64_t)k->call.stage);
    const tsr_mesh *const mesh = k->given->mesh;
    const trailer own = {.call = number, .status = (int32_t)local, .rank = tsr_comm_rank(tsr_mesh_comm(mesh))};
    list_dims(mesh, k->met, dims, sizeof dims);
    if (k->received)
        memcpy((char *)k->sent + k->stride - TSR_RECORD_ALIGNMENT, &own, sizeof own);
    const tsr_status gathered =
        tsr_mesh_all_gather(mesh, dims, k->received ? k->sent : NULL, k->received, k->received ? k->stride : -1, NULL,
                            TSR_U8, tsr_device_host(), NULL);
    if (local != TSR_OK)
        return tsr_exchange_hear(mesh, dims, k->met_place, tsr_status_restore(&kept, local));
    const tsr_status status = gathered == TSR_OK ? check_trailers(k, number)
                              : gathered == TSR_ERROR_PEER
                                  ? gathered
                                  : tsr_status_set(gathered, "%s: %s", k->given->c->caller, tsr_status_message());
    return status == TSR_OK ? TSR_OK : tsr_exchange_hear(mesh, dims, k->met_place, status);
}

/* Makes room for the records of a stage; those of the stage before are read until it has run. */
static tsr_status make_room(computing *k, void **received)
{
    k->stride = tsr_op_record_stride(k->given->c->op, &k->call);
    tsr_release(k->context, k->sent);
    k->sent = NULL;
    TSR_TRY(tsr_allocate(k->context, (size_t)k->stride, &k->sent));
    memset(k->sent, 0, (size_t)k->stride);
    k->call.record = k->sent;
    return tsr_allocate(k->context, (size_t)(k->stride * k->met_count), received);
}

/* Runs one stage that fills a record, and exchanges it. */
static tsr_status run_stage(computing *k, int stage, tsr_status local)
{
    void *received = NULL;
    k->call.stage = stage;
    find_place(k, stage);
    tsr_status status = k->call.inputs ? make_room(k, &received) : local;
    if (local != TSR_OK)
        status = local;
    if (status == TSR_OK)
        status = k->given->c->op->host(&k->call);
    tsr_release(k->context, k->received);
    k->received = received;
    k->call.records = received;
    k->call.record_stride = k->stride;
    k->call.record_count = k->met_count;
    k->call.own_record = k->met_place;
    return exchange(k, status);
}

/* Runs all stages. A rank that has failed goes to the next meeting, where its peers hear of it;
 * where stages meet along dims of their own, to all meetings. */
static tsr_status run_stages(computing *k, tsr_status local)
{
    for (int stage = 0; stage < k->given->c->op->exchanges; stage++) {
        local = run_stage(k, stage, local);
        if (local != TSR_OK && !k->given->c->op->meets)
            return local;
    }
    if (local != TSR_OK)
        return local;
    k->call.stage = k->given->c->op->exchanges;
    k->call.record = NULL;
    return k->given->c->op->host(&k->call);
}

/* Makes the meetings of a rank outside the mesh, which only the first call of a mesh has. */
static tsr_status attend(const computing *k, tsr_status local)
{
    char dims[TSR_MAX_DIMS * 40];
    const tsr_mesh *const mesh = k->given->mesh;
    tsr_kept_sentence kept;
    tsr_status_keep_returned(&kept, local);
    for (int stage = 0; stage < k->given->c->op->exchanges; stage++) {
        const unsigned met = tsr_op_met(k->given->c, stage, k->given->exchanged);
        list_dims(mesh, met, dims, sizeof dims);
        tsr_status status = TSR_OK;
        if (met)
            status = tsr_mesh_all_gather(mesh, dims, NULL, NULL, 0, NULL, TSR_U8, tsr_device_host(), NULL);
        if (status == TSR_OK)
            continue;
        status = tsr_exchange_hear(mesh, dims, 0, status);
        if (!k->given->c->op->meets)
            return local == TSR_OK ? status : tsr_status_restore(&kept, local);
    }
    return local == TSR_OK ? TSR_OK : tsr_status_restore(&kept, local);
}

static tsr_status allocate_workspace(computing *k)
{
    const int64_t bytes = k->given->c->op->workspace_bytes ? k->given->c->op->workspace_bytes(&k->call) : 0;
    if (bytes == 0)
        return TSR_OK;
    TSR_TRY(tsr_allocate_data(k->context, (size_t)bytes, &k->workspace));
    k->call.workspace = k->workspace;
    return TSR_OK;
}

static tsr_status run_kernel(computing *k, tsr_status local)
{
    const bool on_host = !k->given->device.driver;
    if (local == TSR_OK && on_host)
        local = allocate_workspace(k);
    if (k->given->exchanged)
        return run_stages(k, local);
    k->call.stage = TSR_STAGE_WHOLE;
    if (!on_host)
        return local == TSR_OK ? tsr_eager_launch(k->given->c, k->given->device, &k->call) : local;
    return local == TSR_OK ? k->given->c->op->host(&k->call) : local;
}

/* Lists the local tensors, and what the kernel is told of them. */
static void list_tensors(const tsr_computation *given, tsr_tensor *inputs, tsr_tensor *outputs,
                         const tsr_layout **layouts, tsr_kernel_call *call)
{
    const tsr_op *const op = given->c->op;
    for (int i = 0; op->operands[i]; i++, call->input_count++) {
        if (given->operands[i])
            inputs[i] = tsr_dtensor_to_local(given->operands[i]);
        else
            inputs[i] = (tsr_tensor){.ndim = -1};
    }
    for (int i = 0; op->results[i]; i++, call->output_count++) {
        layouts[i] = tsr_dtensor_layout(given->results[i]);
        outputs[i] = tsr_dtensor_to_local(given->results[i]);
    }
    call->inputs = inputs;
    call->outputs = outputs;
    call->result_layouts = layouts;
}

/* Records lie on the host, where no kernel of a device finds them. */
static tsr_status refuse_exchange(const tsr_computation *given)
{
    void *self;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: a factor of the rule \"%s\" is cut, so ranks must exchange inside the op, which runs on "
                          "the host alone; on device \"%s\" redistribute the operand so that this factor is whole",
                          given->c->caller, given->c->op->rule,
                          tsr_device_driver_table(given->device.driver, &self)->name);
}

/* Redistributes the first operand. A rank that has failed tells its peers. */
static tsr_status move(const tsr_computation *given, tsr_status local)
{
    tsr_kept_sentence kept;
    tsr_placement placements[TSR_MAX_DIMS];
    if (local == TSR_OK)
        return tsr_redistribute_into(given->operands[0], given->results[0], NULL);
    tsr_status_keep_returned(&kept, local);
    const bool known = given->c->op->moves_to(given->c, placements) == TSR_OK;
    tsr_status_restore(&kept, local);
    return tsr_redistribute_failed(given->operands[0], known ? placements : NULL, local);
}

tsr_status tsr_eager_compute(const tsr_computation *given, tsr_status local)
{
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS];
    const tsr_layout *layouts[TSR_OP_MOST_RESULTS];
    if (given->c->op->moves_to)
        return move(given, local);
    if (local != TSR_OK && !given->exchanged)
        return local;
    computing k = {.given = given, .context = tsr_mesh_context(given->mesh)};
    if (!given->inside)
        return given->exchanged ? attend(&k, local) : local;
    k.call.op = given->c->op->name;
    k.call.code = given->c->op->code;
    k.call.attributes = given->c->attributes;
    k.call.kernels = tsr_context_kernels(k.context);
    k.call.choices = tsr_comm_kernel_choices(tsr_mesh_comm(given->mesh));
    k.call.layouts = given->c->operands;
    k.call.coordinate = given->coordinate;
    if (local == TSR_OK && given->device.driver && given->exchanged)
        local = refuse_exchange(given);
    if (local == TSR_OK)
        list_tensors(given, inputs, outputs, layouts, &k.call);
    if (given->exchanged)
        k.number = number_call(given->c);
    const tsr_status status = run_kernel(&k, local);
    tsr_release(k.context, k.workspace);
    tsr_release(k.context, k.sent);
    tsr_release(k.context, k.received);
    return status;
}
