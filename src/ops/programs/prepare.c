/* Makes an executable ready for a communicator. */
#include "ops/agreement.h"
#include "ops/eager/exchange.h"
#include "ops/programs/compile.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/comm.h>

#include <string.h>

/* What a rank does by itself: meshes over the communicator, and plans where a mesh was abstract. */
static tsr_status open_all(tsr_executable *x, tsr_comm *comm)
{
    if (tsr_comm_rank(comm) != x->rank)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_executable_prepare: the executable is the part of rank %lld, but this is rank %d",
                              (long long)x->rank, tsr_comm_rank(comm));
    for (size_t i = 0; i < x->mesh_count; i++) {
        tsr_mesh_destroy(x->meshes[i].open);
        x->meshes[i].open = NULL;
        TSR_TRY(tsr_executable_open_mesh(x, comm, x->meshes[i].given, &x->meshes[i].open));
    }
    TSR_TRY(tsr_executable_open_plans(x, comm));
    TSR_TRY(tsr_compile_probe(x, comm));
    return tsr_compile_scratch(x);
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
    for (size_t i = 0; i < x->plan_count; i++)
        TSR_TRY(tsr_plan_prepare(x->plans[i].now, comm));
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->kind == TSR_DOES_KERNEL && step->exchanged) {
            step->number = x->fingerprint + i;
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
    x->comm = NULL;
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

/* Gives a length, and what depends on it: sizes, and plans of moves. */
static tsr_status set_length(tsr_executable *x, size_t at, int64_t length)
{
    if (length < 1 || length > x->lengths[at].maximum)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_executable_set_length: \"%.64s\" is %lld, but must be from 1 to %lld",
                              x->lengths[at].name, (long long)length, (long long)x->lengths[at].maximum);
    if (x->length[at] == length)
        return TSR_OK;
    x->length[at] = length;
    x->clock++;
    bool grown = false;
    TSR_TRY(tsr_executable_update_forms(x, (int)at));
    TSR_TRY(tsr_executable_update_plans(x, x->comm, &grown));
    if (!grown)
        return TSR_OK;
    x->is_linked = false;
    return tsr_compile_scratch(x);
}

tsr_status tsr_executable_set_length(tsr_executable *executable, const char *name, int64_t length)
{
    if (!executable || !name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_set_length: %s is NULL",
                              executable ? "name" : "executable");
    for (size_t i = 0; i < executable->length_count; i++)
        if (strcmp(executable->lengths[i].name, name) == 0)
            return set_length(executable, i, length);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_set_length: the program has no length \"%.64s\"", name);
}
