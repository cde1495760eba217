/* Makes an executable ready for a communicator. */
#include "ops/agreement.h"
#include "ops/eager/exchange.h"
#include "ops/programs/compile_memory.h"
#include "ops/programs/early.h"
#include "ops/programs/forms.h"
#include "ops/programs/plans.h"
#include "ops/programs/prepared/place.h"
#include "ops/programs/probe.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/plan.h>

#include <string.h>

/* Assigns memory for a communicator that overlaps, or for one that does not. */
static tsr_status overlap(tsr_executable *x, bool overlaps)
{
    if (x->overlaps == overlaps && x->has_rooms)
        return TSR_OK;
    TSR_TRY(tsr_compile_stand_in(x));
    TSR_TRY(tsr_compile_early(x, overlaps));
    return tsr_compile_memory(x);
}

/* What a rank does by itself: meshes over the communicator, and plans where a mesh was abstract. */
static tsr_status open_all(tsr_executable *x, tsr_comm *comm)
{
    if (tsr_comm_rank(comm) != x->rank)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_executable_prepare: the executable is the part of rank %lld, but this is rank %d",
                              (long long)x->rank, tsr_comm_rank(comm));
    TSR_TRY(tsr_executable_check_place(x));
    for (size_t i = 0; i < x->mesh_count; i++) {
        tsr_mesh_destroy(x->meshes[i].open);
        x->meshes[i].open = NULL;
        TSR_TRY(tsr_executable_open_mesh(x, comm, x->meshes[i].given, &x->meshes[i].open));
    }
    TSR_TRY(overlap(x, tsr_plan_overlaps(NULL, comm)));
    TSR_TRY(tsr_executable_open_plans(x, comm));
    TSR_TRY(tsr_compile_probe(x, comm));
    TSR_TRY(tsr_executable_fill_constants(x));
    return tsr_compile_scratch(x);
}

/* The first failure of meetings, all of which a rank makes. */
typedef struct outcome {
    tsr_status status;
    tsr_kept_sentence sentence;
} outcome;

static void note(outcome *o, tsr_status status)
{
    if (o->status != TSR_OK || status == TSR_OK)
        return;
    o->status = status;
    tsr_status_keep(&o->sentence);
}

/* The groups of an op that meets inside are made by a meeting. */
static void meet_once(const tsr_executable *x, const tsr_step *step, outcome *o)
{
    for (int stage = 0; stage < step->c.op->exchanges; stage++)
        note(o, tsr_exchange_meet(&step->c, x->meshes[step->mesh].open, step->exchanged, stage));
}

/* The same steps on every rank, so that all meet in the same order. A failure that some ranks alone
 * hear of is told to all at the end. */
static tsr_status prepare_steps(tsr_executable *x, tsr_comm *comm)
{
    outcome o = {.status = TSR_OK};
    for (size_t i = 0; i < x->plan_count; i++)
        if (x->plans[i].is_used)
            note(&o, tsr_plan_prepare(o.status == TSR_OK ? x->plans[i].now : NULL, comm));
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->kind == TSR_DOES_KERNEL && step->exchanged) {
            step->number = x->fingerprint + i;
            meet_once(x, step, &o);
        }
    }
    if (o.status != TSR_OK)
        (void)tsr_status_restore(&o.sentence, o.status);
    return tsr_agree(comm, o.status);
}

/* Compares the programs of all ranks, and the kinds of their devices. */
static tsr_status compare(const tsr_executable *x, tsr_comm *comm)
{
    const int64_t own = (int64_t)(x->fingerprint >> 2), kind = (int64_t)(tsr_executable_device_kind(x) >> 2);
    int64_t both[] = {own, -own, kind, -kind};
    TSR_TRY(tsr_comm_all_reduce(comm, both, both, 4, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    if (both[0] == -both[1] && both[2] != -both[3])
        return tsr_status_set(TSR_ERROR_PEER, "tsr_executable_prepare: ranks compiled for different kinds of device; "
                                              "give tsr_compile() devices of one kind on all ranks");
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
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_prepare: comm is NULL");
    TSR_TRY(tsr_comm_hold(comm, "tsr_executable_prepare"));
    if (!executable)
        return tsr_comm_let_go(
            comm, tsr_agree(comm, tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_prepare: executable is NULL")));
    return tsr_comm_let_go(comm, prepare(executable, comm));
}

/* Makes and prepares the plans that moves lack for the lengths of now. `status` is this rank's, of
 * which its peers hear. */
static tsr_status plan_moves(tsr_executable *x, tsr_status status)
{
    bool grown = false;
    if (status == TSR_OK)
        status = tsr_executable_make_plans(x, x->comm, &grown);
    if (grown) {
        x->has_grown = true;
        x->is_linked = false;
    }
    if (status == TSR_OK && grown)
        status = tsr_compile_scratch(x);
    TSR_TRY(tsr_agree(x->comm, status));
    status = tsr_executable_prepare_plans(x, x->comm);
    return tsr_agree(x->comm, status);
}

static tsr_status meet_for_plans(tsr_executable *x, tsr_status status)
{
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    TSR_TRY(tsr_comm_hold(x->comm, "tsr_executable_set_length"));
    if (status != TSR_OK)
        (void)tsr_status_restore(&kept, status);
    return tsr_comm_let_go(x->comm, plan_moves(x, status));
}

static tsr_status check_length(const tsr_executable *x, size_t at, int64_t length)
{
    if (!x->comm)
        return tsr_status_set(TSR_ERROR_STATE, "tsr_executable_set_length: the executable is not prepared; call "
                                               "tsr_executable_prepare()");
    if (length < 1 || length > x->lengths[at].maximum)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_executable_set_length: \"%.64s\" is %lld, but must be from 1 to %lld",
                              x->lengths[at].name, (long long)length, (long long)x->lengths[at].maximum);
    return TSR_OK;
}

/* Gives a length, and what depends on it: sizes, and plans of moves. After a failure all is as it
 * was. */
static tsr_status set_length(tsr_executable *x, size_t at, int64_t length)
{
    const int64_t before = x->length[at];
    TSR_TRY(check_length(x, at, length));
    if (before == length)
        return TSR_OK;
    x->length[at] = length;
    x->changed[at] = ++x->clock;
    tsr_status status = tsr_executable_update_forms(x, (int)at);
    if (tsr_executable_find_plans(x))
        status = meet_for_plans(x, status);
    if (status != TSR_OK)
        x->length[at] = before;
    tsr_executable_settle_forms(x, status != TSR_OK);
    tsr_executable_settle_plans(x, status == TSR_OK);
    if (status != TSR_OK)
        (void)tsr_executable_find_plans(x);
    return status;
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
