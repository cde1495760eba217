/* Makes an executable ready for a communicator. */
#include "ops/agreement.h"
#include "ops/eager/exchange.h"
#include "ops/programs/compile.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/memory.h>

#include <string.h>

/* The mesh over the communicator. */
static tsr_status open_mesh(const tsr_executable *x, tsr_comm *comm, const tsr_mesh *given, tsr_mesh **out)
{
    int64_t shape[TSR_MAX_DIMS], coordinate[TSR_MAX_DIMS] = {0};
    const char *names[TSR_MAX_DIMS];
    void *memory;
    const int ndim = tsr_mesh_ndim(given);
    const int64_t count = tsr_mesh_count(given);
    if (tsr_mesh_comm(given) == comm) {
        *out = tsr_mesh_retain((tsr_mesh *)given);
        return TSR_OK;
    }
    for (int k = 0; k < ndim; k++) {
        shape[k] = tsr_mesh_size(given, k);
        names[k] = tsr_mesh_name(given, k);
    }
    TSR_TRY(tsr_executable_array(x->context, (size_t)count, sizeof(int64_t), &memory));
    int64_t *const ranks = memory;
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < count && status == TSR_OK; i++) {
        status = tsr_mesh_rank_at(given, coordinate, &ranks[i]);
        for (int k = ndim - 1; k >= 0 && ++coordinate[k] == shape[k]; k--)
            coordinate[k] = 0;
    }
    if (status == TSR_OK)
        status = tsr_mesh_create(comm, ndim, shape, names[0] ? names : NULL, ranks, out);
    tsr_release(x->context, memory);
    return status;
}

/* Plans a move again on meshes over the communicator, which knows how bytes may travel. */
static tsr_status plan_again(tsr_executable *x, tsr_comm *comm, tsr_step *step)
{
    const tsr_layout *const layouts[] = {step->layouts[0], step->result_layouts[0]};
    tsr_layout *open[2] = {NULL};
    tsr_plan *plan = NULL;
    tsr_status status = TSR_OK;
    for (int i = 0; i < 2 && status == TSR_OK; i++) {
        tsr_mesh *mesh;
        const tsr_layout *const own = layouts[i];
        status = open_mesh(x, comm, tsr_layout_mesh(own), &mesh);
        if (status != TSR_OK)
            break;
        status = tsr_layout_create(mesh, tsr_layout_placements(own), tsr_layout_ndim(own), tsr_layout_shape(own),
                                   tsr_layout_dtype(own), &open[i]);
        tsr_mesh_destroy(mesh);
    }
    if (status == TSR_OK)
        status = tsr_compile_move(x, open[0], open[1], &plan);
    tsr_layout_destroy(open[0]);
    tsr_layout_destroy(open[1]);
    TSR_TRY(status);
    tsr_plan_destroy(step->plan);
    step->plan = plan;
    step->plan_bytes = tsr_plan_workspace_bytes(plan);
    return TSR_OK;
}

static bool is_over(const tsr_layout *layout, const tsr_comm *comm)
{
    return tsr_mesh_comm(tsr_layout_mesh(layout)) == comm;
}

/* What a rank does by itself: meshes over the communicator, and plans where a mesh was abstract. */
static tsr_status open_all(tsr_executable *x, tsr_comm *comm)
{
    bool changed = false;
    if (tsr_comm_rank(comm) != x->rank)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_executable_prepare: the executable is the part of rank %lld, but this is rank %d",
                              (long long)x->rank, tsr_comm_rank(comm));
    for (size_t i = 0; i < x->mesh_count; i++) {
        tsr_mesh_destroy(x->meshes[i].open);
        x->meshes[i].open = NULL;
        TSR_TRY(open_mesh(x, comm, x->meshes[i].given, &x->meshes[i].open));
    }
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->kind != TSR_DOES_MOVE || (is_over(step->layouts[0], comm) && is_over(step->result_layouts[0], comm)))
            continue;
        TSR_TRY(plan_again(x, comm, step));
        changed = true;
    }
    return changed ? tsr_compile_scratch(x) : TSR_OK;
}

/* The groups of an op that meets inside are made by a meeting. */
static tsr_status meet_once(const tsr_executable *x, const tsr_step *step)
{
    const tsr_mesh *const mesh = x->meshes[step->mesh].open;
    tsr_status status = TSR_OK;
    for (int stage = 0; stage < step->c.op->exchanges && status == TSR_OK; stage++)
        status = tsr_exchange_meet(&step->c, mesh, step->exchanged, stage);
    return status;
}

/* The same steps on every rank, so that all meet in the same order. */
static tsr_status prepare_steps(tsr_executable *x, tsr_comm *comm)
{
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->kind == TSR_DOES_MOVE)
            TSR_TRY(tsr_plan_prepare(step->plan, comm));
        if (step->kind == TSR_DOES_KERNEL && step->exchanged) {
            step->number = tsr_exchange_number(&step->c);
            TSR_TRY(meet_once(x, step));
        }
    }
    return TSR_OK;
}

/* Compares the programs of all ranks. */
static tsr_status compare(const tsr_executable *x, tsr_comm *comm)
{
    const int64_t own = (int64_t)(x->fingerprint >> 2);
    int64_t both[] = {own, -own};
    TSR_TRY(tsr_comm_all_reduce(comm, both, both, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    if (both[0] == -both[1])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_PEER,
                          "tsr_executable_prepare: ranks have different programs; all ranks record the same values and "
                          "ops in the same order");
}

static tsr_status prepare(tsr_executable *x, tsr_comm *comm)
{
    TSR_TRY(tsr_agree(comm, open_all(x, comm)));
    TSR_TRY(compare(x, comm));
    TSR_TRY(prepare_steps(x, comm));
    x->comm = comm;
    x->is_linked = false;
    return TSR_OK;
}

tsr_status tsr_executable_prepare(tsr_executable *executable, tsr_comm *comm)
{
    if (!executable || !comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_prepare: %s is NULL",
                              executable ? "comm" : "executable");
    TSR_TRY(tsr_comm_hold(comm, "tsr_executable_prepare"));
    return tsr_comm_let_go(comm, prepare(executable, comm));
}
