#include "call.h"

#include "cuda.h"
#include "layers.h"
#include "moves.h"
#include "scratch.h"
#include "teams.h"

#include <tessera/saved.h>
#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

struct tsr_xla_call {
    tsr_xla_kind kind;
    tsr_context *context;
    tsr_xla_attributes attributes;
    int64_t ranks;
    bool has_teams;
    tsr_xla_teams teams;
    tsr_xla_seat *lent; /* with lent communicators: each rank's */
    bool on_gpus, has_gpu_seats;
    tsr_xla_gpu_seats gpu_seats;
};

/* ---- The stage INSTANTIATE ---- */

/* More devices than a process has; a text may say any number. */
enum { MOST_RANKS = 4096 };

static tsr_status count_ranks(const tsr_mesh *mesh, int64_t *ranks)
{
    if (tsr_mesh_count(mesh) > MOST_RANKS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the mesh has %lld ranks; calls take at most %d",
                              (long long)tsr_mesh_count(mesh), MOST_RANKS);
    for (int64_t position = 0; position < tsr_mesh_count(mesh); position++) {
        int64_t coordinate[TSR_MAX_DIMS], rest = position, rank;
        for (int d = tsr_mesh_ndim(mesh) - 1; d >= 0; d--) {
            coordinate[d] = rest % tsr_mesh_size(mesh, d);
            rest /= tsr_mesh_size(mesh, d);
        }
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &rank));
        *ranks = rank >= *ranks ? rank + 1 : *ranks;
    }
    if (*ranks > MOST_RANKS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the mesh has rank %lld; calls take ranks below %d",
                              (long long)*ranks - 1, MOST_RANKS);
    return TSR_OK;
}

static tsr_status check_plan(tsr_xla_call *call)
{
    const tsr_xla_attributes *const a = &call->attributes;
    if (a->mesh || a->from || a->to || a->shape.values)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "`plan` stands in place of `mesh`, `from`, `to` and `shape`: give it or these");
    tsr_plan *plan = NULL;
    TSR_TRY(tsr_plan_load(call->context, a->plan.data, a->plan.count, TSR_RANK_NONE, &plan));
    tsr_status status = TSR_OK;
    for (size_t i = 0; status == TSR_OK && i < tsr_plan_count(plan); i++) {
        const tsr_layout *src, *dst;
        status = tsr_plan_layouts(plan, i, &src, &dst);
        if (status == TSR_OK)
            status = count_ranks(tsr_layout_mesh(src), &call->ranks);
        if (status == TSR_OK)
            status = count_ranks(tsr_layout_mesh(dst), &call->ranks);
    }
    tsr_plan_destroy(plan);
    return status;
}

/* Parses the texts, so that a mistake shows when the program is compiled. */
static tsr_status check_texts(tsr_xla_call *call, const tsr_mesh *mesh)
{
    const tsr_xla_attributes *const a = &call->attributes;
    const char *const texts[] = {a->from, a->to, a->x, a->y, a->dx, a->dw, a->db};
    static const char *const names[] = {"from", "to", "x", "y", "dx", "dw", "db"};
    bool along[TSR_MAX_DIMS];
    tsr_reduce_op op;
    TSR_TRY(tsr_xla_dims(mesh, a->dims, along));
    TSR_TRY(tsr_xla_op(a->op, &op));
    if (call->kind == TSR_XLA_REDISTRIBUTE && (!a->from || !a->to))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "there is no attribute `%s`: the placements of the %s",
                              a->from ? "to" : "from", a->from ? "result" : "operand");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tsr_placement placements[TSR_MAX_DIMS];
        void *numbers = NULL;
        if (!texts[i])
            continue;
        TSR_TRY(tsr_xla_placements(call->context, mesh, names[i], texts[i], placements, &numbers));
        tsr_release(call->context, numbers);
    }
    return count_ranks(mesh, &call->ranks);
}

static tsr_status check_devices(const tsr_xla_call *call)
{
    const tsr_xla_numbers *const devices = &call->attributes.devices;
    if (call->on_gpus && (devices->count == 0 || devices->count % call->ranks != 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "`devices` has %lld entries, but each mesh has ranks 0 to %lld: give as many for each",
                              (long long)devices->count, (long long)call->ranks - 1);
    if (!call->on_gpus && devices->values && devices->count != call->ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "`devices` has %lld entries, but the mesh has ranks 0 to %lld",
                              (long long)devices->count, (long long)call->ranks - 1);
    for (int64_t r = 0; r < devices->count; r++)
        for (int64_t s = 0; s < r; s++)
            if (devices->values[r] == devices->values[s])
                return tsr_status_set(TSR_ERROR_ARGUMENT, "`devices` has device %lld for ranks %lld and %lld",
                                      (long long)devices->values[r], (long long)(s % call->ranks),
                                      (long long)(r % call->ranks));
    return TSR_OK;
}

static tsr_status check_mesh(tsr_xla_call *call)
{
    tsr_mesh *mesh = NULL;
    if (!call->attributes.mesh)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "there is no attribute `mesh`, such as \"tp=4\"");
    TSR_TRY(tsr_mesh_parse(NULL, call->context, call->attributes.mesh, &mesh));
    const tsr_status status = check_texts(call, mesh);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Without `devices` GPUs are those of the ranks' numbers. */
static tsr_status number_devices(tsr_xla_call *call)
{
    void *memory;
    tsr_xla_numbers *const devices = &call->attributes.devices;
    if (devices->values)
        return TSR_OK;
    TSR_TRY(tsr_allocate(call->context, (size_t)call->ranks * sizeof *devices->values, &memory));
    *devices = (tsr_xla_numbers){.count = call->ranks, .values = memory};
    for (int64_t r = 0; r < call->ranks; r++)
        devices->values[r] = r;
    return TSR_OK;
}

static void end_work(void *work)
{
    tsr_xla_work_end(work);
}

static tsr_status fill_call(tsr_xla_call *call, const XLA_FFI_Attrs *attrs)
{
    TSR_TRY(tsr_context_create(NULL, &call->context));
    TSR_TRY(tsr_xla_attributes_read(attrs, call->kind, call->context, &call->attributes));
    TSR_TRY(call->attributes.plan.data ? check_plan(call) : check_mesh(call));
    if (call->on_gpus)
        TSR_TRY(number_devices(call));
    TSR_TRY(check_devices(call));
    void *seats;
    const size_t bytes = (size_t)call->ranks * sizeof(tsr_xla_seat);
    TSR_TRY(tsr_allocate(call->context, bytes, &seats));
    call->lent = memset(seats, 0, bytes);
    TSR_TRY(tsr_xla_teams_begin(call->context, (int)call->ranks, call->attributes.timeout_ms, end_work, &call->teams));
    call->has_teams = true;
    TSR_TRY(tsr_xla_gpu_seats_begin(call->context, end_work, &call->gpu_seats));
    call->has_gpu_seats = true;
    return TSR_OK;
}

tsr_status tsr_xla_call_create(tsr_xla_kind kind, const XLA_FFI_Attrs *attrs, bool on_gpus, tsr_xla_call **out)
{
    tsr_xla_call *const call = calloc(1, sizeof *call);
    if (!call)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a call");
    call->kind = kind;
    call->on_gpus = on_gpus;
    const tsr_status status = fill_call(call, attrs);
    if (status == TSR_OK)
        *out = call;
    else
        tsr_xla_call_destroy(call);
    return status;
}

void tsr_xla_call_destroy(void *state)
{
    tsr_xla_call *const call = state;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    if (call->has_teams)
        tsr_xla_teams_end(&call->teams);
    if (call->has_gpu_seats)
        tsr_xla_gpu_seats_end(&call->gpu_seats);
    for (int64_t r = 0; call->lent && r < call->ranks; r++)
        if (call->lent[r].work)
            tsr_xla_work_end(call->lent[r].work);
    if (call->context) {
        tsr_release(call->context, call->lent);
        tsr_xla_attributes_free(&call->attributes);
        tsr_context_destroy(call->context);
    }
    free(call);
    tsr_status_restore(&kept, kept.status);
}

/* ---- The stage EXECUTE ---- */

int64_t tsr_xla_call_channel(const tsr_xla_call *call)
{
    return call->attributes.channel;
}

int64_t tsr_xla_call_ranks(const tsr_xla_call *call)
{
    return call->ranks;
}

tsr_status tsr_xla_call_find_rank(const tsr_xla_call *call, tsr_xla_place *place)
{
    const tsr_xla_numbers *const devices = &call->attributes.devices;
    if (!devices->values && place->device < call->ranks) {
        place->rank = place->device;
        return TSR_OK;
    }
    for (int64_t r = 0; r < devices->count; r++)
        if (devices->values[r] == place->device) {
            place->rank = r;
            return TSR_OK;
        }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the device is not one of the %lld of the mesh%s", (long long)call->ranks,
                          devices->values ? ", which `devices` lists" : ": list them in `devices`");
}

static bool is_layer(tsr_xla_kind kind)
{
    return kind >= TSR_XLA_COLUMN;
}

/* Makes what the seat keeps. */
static tsr_status prepare_seat(const tsr_xla_call *call, tsr_xla_seat *seat, const tsr_xla_lane *lane,
                               const XLA_FFI_CallFrame *frame)
{
    tsr_xla_work *work = NULL;
    const tsr_xla_attributes *const a = &call->attributes;
    TSR_TRY(tsr_xla_work_begin(call->context, seat->comm, a->mesh, lane, frame, &work));
    const tsr_status status = is_layer(call->kind) ? tsr_xla_layer_prepare(work, call->kind, a, frame)
                                                   : tsr_xla_move_prepare(work, call->kind, a, frame);
    if (status == TSR_OK)
        seat->work = work;
    else
        tsr_xla_work_end(work);
    return status;
}

/* Collective over the ranks of the mesh: what both platforms do once operands and results are
 * there. */
static tsr_status run_work(const tsr_xla_call *call, tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    TSR_TRY(is_layer(call->kind) ? tsr_xla_layer_execute(work) : tsr_xla_move_execute(work));
    return tsr_xla_work_pad(work, frame);
}

/* Runs the call of a seat. `*alone`: it failed by itself, and perhaps before it met its peers. */
static tsr_status run_seat(const tsr_xla_call *call, tsr_xla_seat *seat, const XLA_FFI_CallFrame *frame, bool *alone)
{
    static const tsr_xla_lane host = {{NULL, 0}, NULL};
    tsr_status status = seat->work ? TSR_OK : prepare_seat(call, seat, &host, frame);
    if (status == TSR_OK)
        status = tsr_xla_work_point(seat->work, &host, frame);
    *alone = status != TSR_OK && status != TSR_ERROR_PEER;
    TSR_TRY(status);
    return run_work(call, seat->work, frame);
}

static tsr_status run_lent(tsr_xla_call *call, int64_t rank, tsr_comm *comm, const XLA_FFI_CallFrame *frame)
{
    tsr_xla_seat *const seat = &call->lent[rank];
    bool alone;
    if (seat->work && seat->comm != comm) {
        tsr_xla_work_end(seat->work);
        seat->work = NULL;
    }
    seat->comm = comm;
    const tsr_status status = run_seat(call, seat, frame, &alone);
    if (alone) {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        tsr_comm_abort(comm);
        tsr_status_restore(&kept, status);
    }
    return status;
}

tsr_status tsr_xla_call_run(tsr_xla_call *call, const tsr_xla_place *place, tsr_comm *lent,
                            const XLA_FFI_CallFrame *frame)
{
    if (lent)
        return run_lent(call, place->rank, lent, frame);
    tsr_xla_team *team;
    bool alone;
    const int rank = (int)place->rank;
    TSR_TRY(tsr_xla_teams_join(&call->teams, place->run, rank, &team));
    const tsr_status status = run_seat(call, tsr_xla_team_seat(team, rank), frame, &alone);
    if (alone)
        tsr_xla_team_abort(&call->teams, team, rank);
    return tsr_xla_teams_leave(&call->teams, team, rank, status);
}

/* ---- Calls on GPUs ---- */

static tsr_xla_group group_of(const tsr_xla_call *call)
{
    const tsr_xla_attributes *const a = &call->attributes;
    return (tsr_xla_group){a->devices.values, a->devices.count, call->ranks, a->channel < 0 ? 0 : a->channel};
}

tsr_status tsr_xla_call_request(tsr_xla_call *call, const XLA_FFI_CallFrame *frame)
{
    const tsr_xla_group group = group_of(call);
    TSR_TRY(tsr_xla_collectives_request(frame, &group, call->context));
    return tsr_xla_gpu_seats_open(&call->gpu_seats);
}

tsr_status tsr_xla_call_sit_down(tsr_xla_call *call, tsr_xla_place *place, const XLA_FFI_CallFrame *frame,
                                 tsr_xla_gpu_seat **seat)
{
    const tsr_xla_group group = group_of(call);
    struct ncclComm *lent = NULL;
    TSR_TRY(tsr_xla_collectives_get(frame, &group, call->context, &lent));
    TSR_TRY(tsr_xla_gpu_seats_open(&call->gpu_seats));
    TSR_TRY(tsr_xla_gpu_seats_find(&call->gpu_seats, place->device, lent, call->attributes.timeout_ms, seat));
    tsr_comm *const comm = (*seat)->seat.comm;
    place->rank = tsr_comm_rank(comm);
    if (tsr_comm_size(comm) != call->ranks)
        return tsr_status_set(TSR_ERROR_STATE, "XLA lends a communicator with %d ranks, but the mesh has %lld",
                              tsr_comm_size(comm), (long long)call->ranks);
    return TSR_OK;
}

/* Plans are compared by messages of the library's own stream, so XLA's kernels end before. */
static tsr_status prepare_gpu_seat(const tsr_xla_call *call, tsr_xla_seat *seat, const tsr_xla_lane *lane,
                                   const XLA_FFI_CallFrame *frame)
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(lane->device.driver, &self);
    if (table->stream_synchronize)
        TSR_TRY(table->stream_synchronize(self, lane->device.index, lane->stream));
    return prepare_seat(call, seat, lane, frame);
}

/* Plans, at the first call and after a seat was renewed: all ranks do so together. */
static tsr_status plan_on_gpu(tsr_xla_call *call, tsr_xla_gpu_seat *seat, const tsr_xla_lane *lane,
                              const XLA_FFI_CallFrame *frame)
{
    const uint64_t renewed = tsr_xla_gpu_seats_renewed(&call->gpu_seats);
    if (seat->seat.work && seat->planned == renewed)
        return TSR_OK;
    if (seat->seat.work)
        tsr_xla_work_end(seat->seat.work);
    seat->seat.work = NULL;
    seat->planned = renewed;
    return prepare_gpu_seat(call, &seat->seat, lane, frame);
}

static tsr_status execute_on_gpu(tsr_xla_call *call, tsr_xla_gpu_seat *seat, const tsr_xla_lane *lane,
                                 const XLA_FFI_CallFrame *frame)
{
    TSR_TRY(plan_on_gpu(call, seat, lane, frame));
    tsr_xla_work *const work = seat->seat.work;
    TSR_TRY(tsr_xla_work_point(work, lane, frame));
    tsr_status status = tsr_xla_scratch_take(work, frame);
    if (status == TSR_OK)
        status = run_work(call, work, frame);
    return tsr_xla_scratch_return(work, frame, status);
}

tsr_status tsr_xla_call_run_on_gpu(tsr_xla_call *call, tsr_xla_gpu_seat *seat, const tsr_xla_place *place,
                                   const XLA_FFI_CallFrame *frame)
{
    tsr_xla_lane lane = {{tsr_xla_cuda_driver(), (int)place->device}, NULL};
    TSR_TRY(tsr_xla_collectives_stream(frame, &lane.stream));
    const tsr_status status = execute_on_gpu(call, seat, &lane, frame);
    seat->failed = status != TSR_OK;
    return status;
}
