#include "ops/eager/exchange.h"

#include "ops/eager/mix.h"
#include "ops/rows/exchange_bytes.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* What stands behind each record of an exchange. */
typedef struct trailer {
    uint64_t call; /* a number of the call, equal on ranks in the same one */
    int32_t status, rank;
    char unused[TSR_RECORD_ALIGNMENT - sizeof(uint64_t) - 2 * sizeof(int32_t)];
} trailer;

/* The parts of the scratch memory, in bytes. */
typedef struct parts {
    size_t workspace, sent, received;
} parts;

/* Where a stage's ranks meet. */
typedef struct meeting {
    unsigned met;     /* mesh dims, by bits */
    int count, place; /* the ranks along them, and this one's place */
    int64_t stride;   /* of records, trailers included */
} meeting;

static meeting find_meeting(const tsr_op_case *c, const tsr_mesh *mesh, const int64_t *coordinate, unsigned exchanged,
                            int stage)
{
    meeting m = {.met = tsr_op_met(c, stage, exchanged), .count = 1};
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        if (!(m.met >> dim & 1))
            continue;
        const int size = (int)tsr_mesh_size(mesh, dim);
        m.place = m.place * size + (int)coordinate[dim];
        m.count *= size;
    }
    return m;
}

static size_t round_up(size_t bytes)
{
    return (bytes + TSR_RECORD_ALIGNMENT - 1) / TSR_RECORD_ALIGNMENT * TSR_RECORD_ALIGNMENT;
}

/* Measures the scratch memory, and leaves the call as it was. */
static parts measure(const tsr_op_case *c, unsigned exchanged, tsr_kernel_call *call)
{
    parts p = {0};
    const tsr_mesh *const mesh = tsr_layout_mesh(call->result_layouts[0]);
    if (c->op->workspace_bytes)
        p.workspace = round_up((size_t)c->op->workspace_bytes(call));
    for (call->stage = 0; exchanged && call->stage < c->op->exchanges; call->stage++) {
        const meeting m = find_meeting(c, mesh, call->coordinate, exchanged, call->stage);
        const size_t stride = (size_t)tsr_op_record_stride(c->op, call);
        p.sent = stride > p.sent ? stride : p.sent;
        p.received = stride * (size_t)m.count > p.received ? stride * (size_t)m.count : p.received;
    }
    call->stage = TSR_STAGE_WHOLE;
    return p;
}

size_t tsr_exchange_scratch(const tsr_op_case *c, unsigned exchanged, tsr_kernel_call *call)
{
    const parts p = measure(c, exchanged, call);
    return p.workspace + p.sent + 2 * p.received;
}

int64_t tsr_exchange_received(const tsr_op_case *c, unsigned exchanged, tsr_kernel_call *call)
{
    int64_t bytes = 0;
    const tsr_mesh *const mesh = tsr_layout_mesh(call->result_layouts[0]);
    for (call->stage = 0; exchanged && call->stage < c->op->exchanges; call->stage++)
        bytes += tsr_op_record_stride(c->op, call) *
                 (find_meeting(c, mesh, call->coordinate, exchanged, call->stage).count - 1);
    call->stage = TSR_STAGE_WHOLE;
    return bytes;
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

uint64_t tsr_exchange_number(const tsr_op_case *c)
{
    uint64_t hash = tsr_mix_attributes(tsr_mix_text(0, c->op->name), c->attributes);
    for (int i = 0; c->op->operands[i]; i++)
        hash = c->operands[i] ? mix_layout(hash, c->operands[i]) : tsr_mix(hash, 1);
    return hash;
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

static tsr_status fail_exchange(const tsr_exchange *x, const trailer *other)
{
    if (other->status != TSR_OK)
        return tsr_status_set(TSR_ERROR_PEER, "%s: rank %d failed (%s)", x->c->caller, other->rank,
                              tsr_status_name((tsr_status)other->status));
    return tsr_status_set(TSR_ERROR_PEER,
                          "%s: rank %d is in another call, or has other attributes or layouts; all ranks must make "
                          "the same call",
                          x->c->caller, other->rank);
}

/* Checks what came with the records. */
static tsr_status check_trailers(const tsr_exchange *x, const meeting *m, const char *received, uint64_t number)
{
    for (int i = 0; i < m->count; i++) {
        trailer t;
        memcpy(&t, received + (i + 1) * m->stride - TSR_RECORD_ALIGNMENT, sizeof t);
        if (t.status != TSR_OK || t.call != number)
            return fail_exchange(x, &t);
    }
    return TSR_OK;
}

/* The failed rank at `first` along the dims broadcasts its sentence. TSR_OK: ranks do not meet any
 * more. */
static tsr_status tell_sentence(const tsr_mesh *mesh, const char *dims, int first, int place, const char *sentence)
{
    tsr_kept_sentence told = {.text = ""};
    if (place == first)
        snprintf(told.text, sizeof told.text, "rank %d failed: %.900s", tsr_comm_rank(tsr_mesh_comm(mesh)), sentence);
    if (tsr_mesh_broadcast(mesh, dims, told.text, sizeof told.text, TSR_U8, first, tsr_device_host(), NULL) != TSR_OK)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_PEER, "%s", told.text);
}

/* After an exchange that failed on all ranks that meet: they hear the sentence of the first of them
 * that failed by itself. `place` is this rank's position along the dims; `local` its own failure,
 * which it gets back. TSR_OK: no rank failed by itself, or ranks do not meet any more. */
static tsr_status agree_along(const tsr_mesh *mesh, const char *dims, int place, tsr_status local)
{
    tsr_kept_sentence own;
    tsr_status heard = TSR_OK;
    int64_t first = local == TSR_OK ? INT64_MAX : place;
    tsr_status_keep_returned(&own, local);
    if (tsr_mesh_all_reduce_i64(mesh, dims, &first, TSR_MIN) == TSR_OK && first != INT64_MAX)
        heard = tell_sentence(mesh, dims, (int)first, place, own.text);
    return local == TSR_OK ? heard : tsr_status_restore(&own, local);
}

static tsr_status hear(const tsr_mesh *mesh, const char *dims, int place, tsr_status failed)
{
    tsr_kept_sentence kept;
    tsr_status_keep_returned(&kept, failed);
    const tsr_status heard = agree_along(mesh, dims, place, failed == TSR_ERROR_PEER ? TSR_OK : failed);
    return heard != TSR_OK ? heard : tsr_status_restore(&kept, failed);
}

/* Gathers the records of a stage from all ranks that meet. A rank without memory gives none, of
 * which its peers hear. */
static tsr_status gather(const tsr_exchange *x, int stage, const meeting *m, char *sent, char *received,
                         tsr_status local)
{
    char dims[TSR_MAX_DIMS * 40];
    tsr_kept_sentence kept;
    if (!m->met && local == TSR_OK)
        memcpy(received, sent, (size_t)m->stride);
    if (!m->met)
        return local;
    tsr_status_keep_returned(&kept, local);
    const uint64_t number = tsr_mix(x->number, (uint64_t)stage);
    const trailer own = {.call = number, .status = (int32_t)local, .rank = tsr_comm_rank(tsr_mesh_comm(x->mesh))};
    list_dims(x->mesh, m->met, dims, sizeof dims);
    if (sent)
        memcpy(sent + m->stride - TSR_RECORD_ALIGNMENT, &own, sizeof own);
    const tsr_status gathered = tsr_mesh_all_gather(x->mesh, dims, sent, received, sent ? m->stride : -1, NULL, TSR_U8,
                                                    tsr_device_host(), NULL);
    if (local != TSR_OK)
        return hear(x->mesh, dims, m->place, tsr_status_restore(&kept, local));
    const tsr_status status = gathered == TSR_OK ? check_trailers(x, m, received, number)
                              : gathered == TSR_ERROR_PEER
                                  ? gathered
                                  : tsr_status_set(gathered, "%s: %s", x->c->caller, tsr_status_message());
    return status == TSR_OK ? TSR_OK : hear(x->mesh, dims, m->place, status);
}

tsr_status tsr_exchange_meet(const tsr_op_case *c, const tsr_mesh *mesh, unsigned exchanged, int stage)
{
    char dims[TSR_MAX_DIMS * 40];
    const unsigned met = tsr_op_met(c, stage, exchanged);
    list_dims(mesh, met, dims, sizeof dims);
    return met ? tsr_mesh_all_gather(mesh, dims, NULL, NULL, 0, NULL, TSR_U8, tsr_device_host(), NULL) : TSR_OK;
}

tsr_status tsr_exchange_attend(const tsr_op_case *c, const tsr_mesh *mesh, unsigned exchanged, tsr_status local)
{
    char dims[TSR_MAX_DIMS * 40];
    tsr_kept_sentence kept;
    tsr_status_keep_returned(&kept, local);
    for (int stage = 0; stage < c->op->exchanges; stage++) {
        const unsigned met = tsr_op_met(c, stage, exchanged);
        list_dims(mesh, met, dims, sizeof dims);
        tsr_status status = TSR_OK;
        if (met)
            status = tsr_mesh_all_gather(mesh, dims, NULL, NULL, 0, NULL, TSR_U8, tsr_device_host(), NULL);
        if (status == TSR_OK)
            continue;
        status = hear(mesh, dims, 0, status);
        if (!c->op->meets)
            return local == TSR_OK ? status : tsr_status_restore(&kept, local);
    }
    return local == TSR_OK ? TSR_OK : tsr_status_restore(&kept, local);
}

/* Runs one stage that fills a record, and exchanges it. */
static tsr_status run_stage(const tsr_exchange *x, int stage, char *sent, char *received, tsr_status local)
{
    tsr_kernel_call *const call = x->call;
    meeting m = find_meeting(x->c, x->mesh, x->coordinate, x->exchanged, stage);
    call->stage = stage;
    if (sent) {
        m.stride = tsr_op_record_stride(x->c->op, call);
        memset(sent, 0, (size_t)m.stride);
        call->record = sent;
    }
    if (local == TSR_OK)
        local = x->c->op->host(call);
    call->records = received;
    call->record_stride = m.stride;
    call->record_count = m.count;
    call->own_record = m.place;
    return gather(x, stage, &m, sent, received, local);
}

tsr_status tsr_exchange_run(const tsr_exchange *x, void *scratch, tsr_status local)
{
    tsr_kernel_call *const call = x->call;
    const parts p = scratch ? measure(x->c, x->exchanged, call) : (parts){0};
    char *const sent = scratch ? (char *)scratch + p.workspace : NULL;
    call->workspace = p.workspace ? scratch : NULL;
    /* A rank that has failed goes to the next meeting, where its peers hear of it; where stages
     * meet along dims of their own, to all meetings. */
    for (int stage = 0; stage < x->c->op->exchanges; stage++) {
        char *const received = scratch ? sent + p.sent + (stage & 1 ? p.received : 0) : NULL;
        local = run_stage(x, stage, sent, received, local);
        if (local != TSR_OK && !x->c->op->meets)
            return local;
    }
    if (local != TSR_OK)
        return local;
    call->stage = x->c->op->exchanges;
    call->record = NULL;
    return x->c->op->host(call);
}
