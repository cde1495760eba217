#include "ops/kernels/mixture/slots.h"

#include "ops/kernels/indexing/ids.h"
#include "ops/numbers.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The memory of a sort. */
typedef struct memory {
    int64_t *places, *order, *starts;
    int64_t *counts; /* of all experts, where there is a capacity to fail by */
    size_t bytes;
} memory;

static int64_t *take(char *base, size_t *used, int64_t count)
{
    int64_t *const taken = base ? (int64_t *)(base + *used) : NULL;
    *used += tsr_aligned_bytes((size_t)count * sizeof(int64_t));
    return taken;
}

static bool counts_all(const tsr_kernel_call *call)
{
    return call->attributes[TSR_MIXTURE_CAPACITY].integer > 0 &&
           call->attributes[TSR_MIXTURE_OVERFLOW].integer == TSR_MIXTURE_FAIL;
}

static memory divide(const tsr_kernel_call *call, int x, char *base)
{
    const tsr_tensor *const ids = &call->inputs[x + 1];
    const int64_t slots = ids->shape[0] * ids->shape[1];
    memory m = {.bytes = 0};
    m.places = take(base, &m.bytes, slots);
    m.order = take(base, &m.bytes, slots);
    m.starts = take(base, &m.bytes, call->inputs[x + 2].shape[0] + 1);
    m.counts = take(base, &m.bytes, counts_all(call) ? tsr_layout_shape(call->layouts[x + 2])[0] : 0);
    return m;
}

size_t tsr_slots_bytes(const tsr_kernel_call *call, int x)
{
    return divide(call, x, NULL).bytes;
}

static tsr_status read_places(const tsr_ids *ids, int64_t count, int64_t *places)
{
    for (int64_t done = 0; done < count; done += TSR_IDS_CHUNK)
        TSR_TRY(tsr_ids_read(ids, done, tsr_smaller(count - done, TSR_IDS_CHUNK), places + done));
    for (int64_t i = 0; i < count; i++) {
        if (places[i] < 0)
            places[i] = places[i] == TSR_ID_BEYOND ? TSR_SLOT_BEYOND : TSR_SLOT_ELSEWHERE;
    }
    return TSR_OK;
}

/* Refuses an expert with more tokens than the capacity; all ranks that have these tokens count the
 * slots of all experts. `room` is for one place for each slot. */
static tsr_status check_capacity(const tsr_kernel_call *call, int x, const memory *m, int64_t slots, int64_t *room)
{
    const int64_t capacity = call->attributes[TSR_MIXTURE_CAPACITY].integer,
                  experts = tsr_layout_shape(call->layouts[x + 2])[0];
    tsr_ids ids = tsr_ids_below(call, x + 1, "ids", experts);
    int64_t most = 0;
    ids.passes = call->attributes[TSR_MIXTURE_BEYOND].integer != TSR_MIXTURE_REFUSED;
    TSR_TRY(read_places(&ids, slots, room));
    memset(m->counts, 0, (size_t)experts * sizeof *m->counts);
    for (int64_t i = 0; i < slots; i++) {
        if (room[i] >= 0)
            m->counts[room[i]]++;
    }
    for (int64_t e = 1; e < experts; e++)
        most = m->counts[e] > m->counts[most] ? e : most;
    if (experts == 0 || m->counts[most] <= capacity)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: expert %lld has %lld tokens, but capacity is %lld; give a capacity of %lld, or overflow "
                          "\"drop\", which leaves tokens out",
                          call->op, (long long)most, (long long)m->counts[most], (long long)capacity,
                          (long long)m->counts[most]);
}

/* Orders slots by expert, and drops those beyond the capacity of theirs. */
static void order_slots(const tsr_kernel_call *call, const memory *m, int64_t slots, int64_t experts)
{
    const int64_t capacity = call->attributes[TSR_MIXTURE_CAPACITY].integer;
    memset(m->starts, 0, (size_t)(experts + 1) * sizeof *m->starts);
    for (int64_t i = 0; i < slots; i++) {
        if (m->places[i] < 0)
            continue;
        if (capacity > 0 && m->starts[m->places[i] + 1] == capacity)
            m->places[i] = TSR_SLOT_DROPPED;
        else
            m->starts[m->places[i] + 1]++;
    }
    for (int64_t e = 0; e < experts; e++)
        m->starts[e + 1] += m->starts[e];
    /* Each slot moves the start of its expert, so that in the end each is that of the next one. */
    for (int64_t i = 0; i < slots; i++) {
        if (m->places[i] >= 0)
            m->order[m->starts[m->places[i]]++] = i;
    }
    memmove(m->starts + 1, m->starts, (size_t)experts * sizeof *m->starts);
    m->starts[0] = 0;
}

/* True on one of the ranks among which mesh dims divide experts. */
static bool is_first(const tsr_layout *gate_up, const int64_t *coordinate)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(gate_up);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        if (tsr_layout_placements(gate_up)[k].kind == TSR_SHARD && coordinate[k] > 0)
            return false;
    }
    return true;
}

tsr_status tsr_slots_sort(const tsr_kernel_call *call, int x, void *base, tsr_slots *out)
{
    const tsr_tensor *const chosen = &call->inputs[x + 1];
    const int64_t slots = chosen->shape[0] * chosen->shape[1], experts = call->inputs[x + 2].shape[0];
    const memory m = divide(call, x, base);
    tsr_ids ids = tsr_ids_of_table(call, x + 1, "ids", call->layouts[x + 2], 0);
    ids.passes = call->attributes[TSR_MIXTURE_BEYOND].integer != TSR_MIXTURE_REFUSED;
    if (counts_all(call))
        TSR_TRY(check_capacity(call, x, &m, slots, m.order));
    TSR_TRY(read_places(&ids, slots, m.places));
    order_slots(call, &m, slots, experts);
    *out = (tsr_slots){.tokens = chosen->shape[0],
                       .each = chosen->shape[1],
                       .experts = experts,
                       .places = m.places,
                       .order = m.order,
                       .starts = m.starts,
                       .gives = is_first(call->layouts[x + 2], call->coordinate)};
    return TSR_OK;
}
