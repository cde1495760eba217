#include "ops/eager/compute.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes to which records are aligned. */
#define ALIGNMENT 64

/* What stands behind each record of an exchange. */
typedef struct trailer {
    uint64_t call; /* a number of the call, equal on ranks in the same one */
    int32_t status, rank;
    char unused[ALIGNMENT - sizeof(uint64_t) - 2 * sizeof(int32_t)];
} trailer;

/* A call that is computed on this rank. */
typedef struct computation {
    const tsr_op_case *c;
    const tsr_mesh *mesh;
    tsr_context *context;
    unsigned exchanged; /* mesh dims along which ranks meet, in some stage */
    unsigned met;       /* mesh dims along which ranks meet after this stage */
    int met_count;      /* ranks along them */
    int met_place;      /* this rank's place among them */
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS];
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_kernel_call call;
    void *workspace, *sent, *received; /* allocated, or NULL */
    int64_t stride;                    /* of the records of this stage, trailers included */
    uint64_t number;
} computation;

const tsr_layout *tsr_eager_some_operand(const tsr_op_case *c)
{
    for (int i = 0; c->op->operands[i]; i++) {
        if (c->operands[i])
            return c->operands[i];
    }
    return NULL;
}

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

/* Finds the ranks that meet after a stage, and this one's place among them. */
static void find_place(computation *k, int stage)
{
    k->met = k->c->op->meets ? k->c->op->meets(k->c, stage, k->exchanged) : k->exchanged;
    k->met_count = 1;
    k->met_place = 0;
    for (int dim = 0; dim < tsr_mesh_ndim(k->mesh); dim++) {
        if (!(k->met >> dim & 1))
            continue;
        const int size = (int)tsr_mesh_size(k->mesh, dim);
        k->met_place = k->met_place * size + (int)k->coordinate[dim];
        k->met_count *= size;
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

static uint64_t mix_layout(uint64_t hash, const tsr_layout *layout)
{
    char text[256];
    hash = mix(hash, (uint64_t)tsr_layout_dtype(layout));
    for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
        hash = mix(hash, (uint64_t)tsr_layout_shape(layout)[dim]);
    tsr_layout_print(layout, text, sizeof text);
    return mix_text(hash, text);
}

/* A number that ranks in different calls, stages included, hardly share. */
static uint64_t number_call(const tsr_op_case *c)
{
    uint64_t hash = mix_text(0, c->op->name);
    for (int i = 0; c->op->attributes[i].name; i++) {
        const tsr_attribute *const a = &c->attributes[i];
        uint64_t bits;
        memcpy(&bits, &a->number, sizeof bits);
        hash = mix(mix(mix(hash, (uint64_t)a->integer), bits), (uint64_t)a->count);
        for (int j = 0; j < a->count; j++)
            hash = mix(hash, (uint64_t)a->list[j]);
    }
    for (int i = 0; c->op->operands[i]; i++)
        hash = c->operands[i] ? mix_layout(hash, c->operands[i]) : mix(hash, 1);
    return hash;
}

static tsr_status fail_exchange(const computation *k, const trailer *other)
{
    const char *const caller = k->c->caller;
    if (other->status != TSR_OK)
        return tsr_status_set(TSR_ERROR_PEER, "%s: rank %d failed (%s)", caller, other->rank,
                              tsr_status_name((tsr_status)other->status));
    return tsr_status_set(TSR_ERROR_PEER,
                          "%s: rank %d is in another call, or has other attributes or layouts; all ranks must make "
                          "the same call",
                          caller, other->rank);
}

/* Checks what came with the records. A rank that failed itself is named before one that heard of a
 * failure. */
static tsr_status check_trailers(const computation *k, uint64_t number)
{
    trailer t, bad = {.status = TSR_OK};
    bool fails = false;
    for (int i = 0; i < k->met_count; i++) {
        memcpy(&t, (const char *)k->received + (i + 1) * k->stride - ALIGNMENT, sizeof t);
        if (t.status == TSR_OK && t.call == number)
            continue;
        if (!fails || (bad.status == TSR_ERROR_PEER && t.status != TSR_ERROR_PEER))
            bad = t;
        fails = true;
    }
    return fails ? fail_exchange(k, &bad) : TSR_OK;
}

/* Gathers the records of a stage from all ranks that meet; `local` is how this rank fared. Without
 * memory for records it only tells them so. */
static tsr_status exchange(computation *k, tsr_status local)
{
    char dims[TSR_MAX_DIMS * 40];
    tsr_kept_sentence kept;
    tsr_status_keep_returned(&kept, local);
    const uint64_t number = mix(k->number, (uint64_t)k->call.stage);
    if (!k->met) {
        if (local == TSR_OK)
            memcpy(k->received, k->sent, (size_t)k->stride);
        return local;
    }
    list_dims(k->mesh, k->met, dims, sizeof dims);
    const trailer own = {.call = number, .status = (int32_t)local, .rank = tsr_comm_rank(tsr_mesh_comm(k->mesh))};
    if (k->sent && k->received)
        memcpy((char *)k->sent + k->stride - ALIGNMENT, &own, sizeof own);
    const tsr_status gathered =
        tsr_mesh_all_gather(k->mesh, dims, k->received ? k->sent : NULL, k->received, k->stride, NULL, TSR_U8,
                            tsr_device_host(), NULL);
    if (local != TSR_OK)
        return tsr_status_restore(&kept, local);
    return gathered == TSR_OK ? check_trailers(k, number) : gathered;
}

/* Makes room for the records of a stage. Those of the stage before stay, as its kernel reads them,
 * until the exchange. */
static tsr_status make_room(computation *k, void **received)
{
    const int64_t bytes = k->c->op->record_bytes(&k->call);
    k->stride = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    tsr_release(k->context, k->sent);
    k->sent = NULL;
    TSR_TRY(tsr_allocate(k->context, (size_t)k->stride, &k->sent));
    memset(k->sent, 0, (size_t)k->stride);
    k->call.record = k->sent;
    return tsr_allocate(k->context, (size_t)(k->stride * k->met_count), received);
}

/* Runs one stage that fills a record, and exchanges it. */
static tsr_status run_stage(computation *k, int stage, tsr_status local)
{
    void *received = NULL;
    k->call.stage = stage;
    find_place(k, stage);
    tsr_status status = make_room(k, &received);
    if (status == TSR_OK)
        status = local == TSR_OK ? k->c->op->host(&k->call) : local;
    tsr_release(k->context, k->received);
    k->received = received;
    k->call.records = received;
    k->call.record_stride = k->stride;
    k->call.record_count = k->met_count;
    k->call.own_record = k->met_place;
    return exchange(k, status);
}

/* Runs all stages. A rank that has failed goes to the next meeting, where its peers hear of it; where
 * stages meet along dims of their own, also to those behind it. */
static tsr_status run_stages(computation *k, tsr_status local)
{
    for (int stage = 0; stage < k->c->op->exchanges; stage++) {
        local = run_stage(k, stage, local);
        if (local != TSR_OK && !k->c->op->meets)
            return local;
    }
    if (local != TSR_OK)
        return local;
    k->call.stage = k->c->op->exchanges;
    k->call.record = NULL;
    return k->c->op->host(&k->call);
}

/* Makes the meetings of a rank outside the mesh, which only the first call of a mesh has. */
static tsr_status attend(const computation *k)
{
    char dims[TSR_MAX_DIMS * 40];
    for (int stage = 0; stage < k->c->op->exchanges; stage++) {
        const unsigned met = k->c->op->meets ? k->c->op->meets(k->c, stage, k->exchanged) : k->exchanged;
        list_dims(k->mesh, met, dims, sizeof dims);
        if (met)
            TSR_TRY(tsr_mesh_all_gather(k->mesh, dims, NULL, NULL, 0, NULL, TSR_U8, tsr_device_host(), NULL));
    }
    return TSR_OK;
}

static tsr_status allocate_workspace(computation *k)
{
    const int64_t bytes = k->c->op->workspace_bytes ? k->c->op->workspace_bytes(&k->call) : 0;
    if (bytes == 0)
        return TSR_OK;
    TSR_TRY(tsr_allocate_data(k->context, (size_t)bytes, &k->workspace));
    k->call.workspace = k->workspace;
    return TSR_OK;
}

static tsr_status run_kernel(computation *k, tsr_status local)
{
    if (local == TSR_OK)
        local = allocate_workspace(k);
    if (k->exchanged)
        return run_stages(k, local);
    k->call.stage = TSR_STAGE_WHOLE;
    return local == TSR_OK ? k->c->op->host(&k->call) : local;
}

static void prepare(computation *k, const tsr_op_inferred *inferred, const tsr_dtensor *const *operands,
                    tsr_dtensor *const *results)
{
    const tsr_op *const op = k->c->op;
    int input_count = 0, output_count = 0;
    for (; op->operands[input_count]; input_count++)
        k->inputs[input_count] = k->c->operands[input_count] ? tsr_dtensor_to_local(operands[input_count])
                                                             : (tsr_tensor){.ndim = -1};
    for (; op->results[output_count]; output_count++) {
        if (results[output_count])
            k->outputs[output_count] = tsr_dtensor_to_local(results[output_count]);
    }
    k->call = (tsr_kernel_call){.op = op->name,
                                .code = op->code,
                                .attributes = k->c->attributes,
                                .kernels = tsr_context_kernels(k->context),
                                .input_count = input_count,
                                .output_count = output_count,
                                .inputs = k->inputs,
                                .outputs = k->outputs,
                                .layouts = k->c->operands,
                                .result_layouts = (const tsr_layout *const *)inferred->results,
                                .coordinate = k->coordinate};
}

tsr_status tsr_eager_compute(const tsr_op_case *c, const tsr_op_inferred *inferred, const tsr_dtensor *const *operands,
                             tsr_dtensor *const *results, tsr_status local)
{
    int inside;
    computation k = {.c = c,
                     .mesh = tsr_layout_mesh(tsr_eager_some_operand(c)),
                     .exchanged = c->op->exchanges ? inferred->exchanged : 0};
    k.context = tsr_mesh_context(k.mesh);
    if (local != TSR_OK && !k.exchanged)
        return local;
    TSR_TRY(tsr_mesh_coordinate(k.mesh, k.coordinate, &inside));
    if (!inside)
        return k.exchanged && local == TSR_OK ? attend(&k) : local;
    prepare(&k, inferred, operands, results);
    if (k.exchanged)
        k.number = number_call(c);
    const tsr_status status = run_kernel(&k, local);
    tsr_release(k.context, k.workspace);
    tsr_release(k.context, k.sent);
    tsr_release(k.context, k.received);
    return status;
}
