#include "actor.h"

#include "counted_memory.h"

#include <tessera/dtensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const oracle_layout *sweep_source(const sweep_case *c, int i)
{
    return i == 0 ? &c->src : &c->others[i - 1].src;
}

const oracle_layout *sweep_destination(const sweep_case *c, int i)
{
    return i == 0 ? &c->dst : &c->others[i - 1].dst;
}

static void complain(actor *a, const char *what, const char *detail)
{
    if (a->verdict->failed)
        return;
    a->verdict->failed = true;
    snprintf(a->verdict->text, sizeof a->verdict->text, "rank %d: %s: %s", a->rank, what, detail);
}

static bool check(actor *a, tsr_status status, const char *what)
{
    if (status != TSR_OK)
        complain(a, what, tsr_status_message());
    return status == TSR_OK;
}

static bool same_mesh(const oracle_mesh *a, const oracle_mesh *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0 &&
           memcmp(a->ranks, b->ranks, (size_t)oracle_mesh_count(a) * sizeof a->ranks[0]) == 0;
}

static bool make_mesh(actor *a, const oracle_mesh *model, tsr_mesh **mesh)
{
    return check(a, tsr_mesh_create(a->comm, model->ndim, model->shape, NULL, model->ranks, mesh), "tsr_mesh_create");
}

static bool keep_mesh(actor *a, const oracle_mesh *wanted, oracle_mesh *model, tsr_mesh **mesh)
{
    if (*mesh && same_mesh(wanted, model))
        return true;
    tsr_mesh_destroy(*mesh);
    *mesh = NULL;
    *model = *wanted;
    return make_mesh(a, wanted, mesh);
}

/* The first tensor's mesh where it equals `wanted`, else a new one; the caller destroys `*out`. */
static bool find_mesh(actor *a, const oracle_mesh *wanted, tsr_mesh **out)
{
    tsr_mesh *kept = same_mesh(wanted, &a->src_model)                  ? a->src_mesh
                     : a->dst_mesh && same_mesh(wanted, &a->dst_model) ? a->dst_mesh
                                                                       : NULL;
    *out = tsr_mesh_retain(kept);
    return kept || make_mesh(a, wanted, out);
}

static bool make_layout(actor *a, const oracle_layout *model, tsr_layout **out)
{
    tsr_mesh *mesh = NULL;
    if (!find_mesh(a, &model->mesh, &mesh))
        return false;
    const bool made = check(a, tsr_layout_create(mesh, model->placements, model->ndim, model->shape, model->dtype, out),
                            "tsr_layout_create");
    tsr_mesh_destroy(mesh);
    return made;
}

static bool make_layouts(actor *a)
{
    const sweep_case *c = &a->stage->current;
    if (!keep_mesh(a, &c->src.mesh, &a->src_model, &a->src_mesh))
        return false;
    if (!same_mesh(&c->src.mesh, &c->dst.mesh) && !keep_mesh(a, &c->dst.mesh, &a->dst_model, &a->dst_mesh))
        return false;
    for (int i = 0; i < a->count; i++) {
        moved *m = &a->at[i];
        *m = (moved){
            .from = sweep_source(c, i), .to = sweep_destination(c, i), .move = &a->stage->moves[i], .rank = a->rank};
        if (!make_layout(a, m->from, &m->src_layout) || !make_layout(a, m->to, &m->dst_layout))
            return false;
    }
    return true;
}

static void set_values(actor *a, uint64_t seed)
{
    for (int i = 0; i < a->count; i++)
        moved_set(&a->at[i], seed + (uint64_t)i * 7919);
}

/* Calls `step` with the mirrors of each tensor: the destination's first, because the source may be
 * the same memory and has to be written last. */
static tsr_status each_mirror(actor *a, tsr_status (*step)(const mirror *m))
{
    for (int i = 0; i < a->count; i++) {
        TSR_TRY(step(&a->dst[i]));
        TSR_TRY(step(&a->src[i]));
    }
    return TSR_OK;
}

static tsr_status make_mirrors(actor *a)
{
    const sweep_device *device = a->stage->sweep->device;
    for (int i = 0; i < a->count; i++) {
        TSR_TRY(mirror_create(device, a->rank, a->at[i].src.base, a->at[i].src.bytes, &a->src[i]));
        TSR_TRY(mirror_create(device, a->rank, a->at[i].dst.base, a->at[i].dst.bytes, &a->dst[i]));
    }
    return TSR_OK;
}

static void free_mirrors(actor *a)
{
    for (int i = 0; i < a->count; i++) {
        mirror_destroy(&a->src[i]);
        mirror_destroy(&a->dst[i]);
    }
}

/* How often this thread has allocated memory or waited for the device. */
static int64_t held_up(const actor *a)
{
    const sweep_device *device = a->stage->sweep->device;
    return (int64_t)counted_asked_here() + (device && device->held_up ? device->held_up() : 0);
}

static const local_buffer *target_of(const moved *m, bool in_place)
{
    return in_place ? &m->src : &m->dst;
}

static void compare(actor *a, bool in_place, const char *what)
{
    char text[256], where[300];
    for (int i = 0; i < a->count; i++) {
        const char *wrong = moved_wrong(&a->at[i], target_of(&a->at[i], in_place), text, sizeof text);
        snprintf(where, sizeof where, "%s, tensor %d", what, i);
        if (wrong)
            complain(a, where, wrong);
    }
}

static void compare_sources(actor *a)
{
    char text[256];
    for (int i = 0; i < a->count; i++)
        if (moved_source_wrong(&a->at[i], text, sizeof text))
            complain(a, "the source changed", text);
}

enum { WORKSPACE_GUARD = 64, WORKSPACE_PATTERN = 0x3C };

static unsigned char *make_workspace(size_t bytes)
{
    unsigned char *workspace = NULL;
    if (bytes == 0 || posix_memalign((void **)&workspace, 64, bytes + WORKSPACE_GUARD) != 0)
        return NULL;
    memset(workspace, WORKSPACE_PATTERN, bytes + WORKSPACE_GUARD);
    return workspace;
}

static tsr_status move(actor *a, const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst, void *workspace)
{
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    const tsr_stream stream = mirror_stream(a->stage->sweep->device, a->rank);
    if (!a->stage->current.halves)
        return tsr_plan_execute(plan, a->comm, src, dst, workspace, bytes, stream);
    const tsr_status status = tsr_plan_start(plan, a->comm, src, dst, workspace, bytes, stream);
    return status == TSR_OK ? tsr_plan_finish(plan, a->comm) : status;
}

/* Executes the plan and compares. `steady`: an execution like this was made before, so this one
 * must not allocate or wait. */
static void execute(actor *a, const tsr_plan *plan, bool in_place, bool steady, const char *what)
{
    tsr_tensor src[SWEEP_TENSORS], dst[SWEEP_TENSORS];
    bool in_src = false, in_dst = false;
    for (int i = 0; i < a->count; i++) {
        src[i] = mirror_view(&a->src[i], a->at[i].src.view);
        dst[i] = in_place ? src[i] : mirror_view(&a->dst[i], a->at[i].dst.view);
        in_src = in_src || a->at[i].in_src;
        in_dst = in_dst || a->at[i].in_dst;
    }
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    unsigned char *workspace = make_workspace(bytes);
    mirror mirrored;
    check(a, mirror_create(a->stage->sweep->device, a->rank, workspace, bytes + WORKSPACE_GUARD, &mirrored),
          "mirror_create");
    check(a, mirror_send(&mirrored), "mirror_send");
    check(a, each_mirror(a, mirror_send), "mirror_send");
    const int64_t before = held_up(a);
    check(a, move(a, plan, in_src ? src : NULL, in_dst ? dst : NULL, mirrored.memory), what);
    if (steady && held_up(a) != before)
        complain(a, what, "it allocated, or waited for the device");
    check(a, each_mirror(a, mirror_fetch), "mirror_fetch");
    check(a, mirror_fetch(&mirrored), "mirror_fetch");
    mirror_destroy(&mirrored);
    for (size_t i = 0; workspace && i < WORKSPACE_GUARD; i++)
        if (workspace[bytes + i] != WORKSPACE_PATTERN)
            complain(a, what, "bytes behind the workspace were written");
    free(workspace);
    compare(a, in_place, what);
}

static tsr_status make_plan(const actor *a, size_t max_workspace, tsr_plan **out)
{
    const sweep_case *c = &a->stage->current;
    const tsr_layout *src[SWEEP_TENSORS], *dst[SWEEP_TENSORS];
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = c->mode;
    options.max_workspace = max_workspace;
    options.no_split = c->no_split;
    options.nodes = c->nodes;
    options.objective = c->objective;
    options.profile = c->profile;
    for (int i = 0; i < a->count; i++) {
        src[i] = a->at[i].src_layout;
        dst[i] = a->at[i].dst_layout;
    }
    return a->count == 1 ? tsr_plan_create(src[0], dst[0], &options, out)
                         : tsr_plan_create_batch((size_t)a->count, src, dst, &options, out);
}

/* The least workspace that this rank needs, read from the message of a plan that is given too
 * little. */
static int64_t find_least(actor *a)
{
    tsr_plan *plan = NULL;
    const tsr_status status = make_plan(a, 1, &plan);
    tsr_plan_destroy(plan);
    if (status == TSR_OK)
        return 0;
    const char *number = strstr(tsr_status_message(), "needs at least ");
    if (status != TSR_ERROR_ARGUMENT || !number)
        complain(a, "too little max_workspace", tsr_status_message());
    return number ? strtoll(number + strlen("needs at least "), NULL, 10) : 0;
}

/* Sets a workspace cap that is enough for all ranks, and checks that the rank that needs the most
 * refuses one byte less. */
static void agree_on_cap(actor *a, bool made)
{
    stage *s = a->stage;
    int64_t most = 0;
    a->verdict->least = made ? find_least(a) : 0;
    pthread_barrier_wait(&s->barrier);
    for (int r = 0; r < s->sweep->world; r++)
        most = s->verdicts[r].least > most ? s->verdicts[r].least : most;
    a->cap = most == 0 ? 1 : s->current.cap == CAP_LEAST ? most : most + most * (int64_t)(s->current.seed % 5) / 4;
    tsr_plan *plan = NULL;
    if (most > 1 && a->verdict->least == most && make_plan(a, (size_t)most - 1, &plan) == TSR_OK)
        complain(a, "tsr_plan_create", "a cap below the least was accepted");
    tsr_plan_destroy(plan);
}

static bool all_in_place(const actor *a)
{
    bool all = true;
    for (int i = 0; i < a->count; i++)
        all = all && oracle_in_place(a->at[i].move);
    return all;
}

static void run_plan(actor *a)
{
    const sweep_case *c = &a->stage->current;
    tsr_plan *plan = NULL;
    if (!check(a, make_plan(a, (size_t)a->cap, &plan), "tsr_plan_create") ||
        !check(a, tsr_plan_prepare(plan, a->comm), "tsr_plan_prepare"))
        goto destroy;
    a->verdict->received = tsr_plan_bytes_received(plan);
    a->verdict->sent = tsr_plan_bytes_sent(plan);
    a->verdict->in_place = tsr_plan_in_place(plan);
    if (a->cap > 0 && tsr_plan_workspace_bytes(plan) > (size_t)a->cap)
        complain(a, "tsr_plan_workspace_bytes", "it is more than options.max_workspace");
    set_values(a, c->seed);
    execute(a, plan, false, !a->stage->sweep->device, "tsr_plan_execute");
    compare_sources(a);
    set_values(a, c->seed + 1);
    execute(a, plan, false, true, "the second tsr_plan_execute");
    if (all_in_place(a) && a->verdict->in_place)
        execute(a, plan, true, true, "tsr_plan_execute in place");
destroy:
    tsr_plan_destroy(plan);
}

static tsr_status redistribute(const actor *a, tsr_dtensor *const *x, tsr_dtensor *const *y)
{
    const tsr_stream stream = mirror_stream(a->stage->sweep->device, a->rank);
    return a->count == 1 ? tsr_redistribute_into(x[0], y[0], stream)
                         : tsr_redistribute_batch((size_t)a->count, (const tsr_dtensor *const *)x, y, stream);
}

static bool wrap(actor *a, tsr_dtensor **x, tsr_dtensor **y)
{
    for (int i = 0; i < a->count; i++) {
        const moved *m = &a->at[i];
        const tsr_tensor nothing = {
            .dtype = m->from->dtype, .device = mirror_device(a->stage->sweep->device, a->rank), .ndim = 1};
        const tsr_tensor src = mirror_view(&a->src[i], m->src.view), dst = mirror_view(&a->dst[i], m->dst.view);
        if (!check(a, tsr_dtensor_from_local(m->in_src ? &src : &nothing, m->src_layout, NULL, &x[i]),
                   "tsr_dtensor_from_local") ||
            !check(a, tsr_dtensor_from_local(m->in_dst ? &dst : &nothing, m->dst_layout, NULL, &y[i]),
                   "tsr_dtensor_from_local"))
            return false;
    }
    return true;
}

static void run_dtensors(actor *a)
{
    const sweep_case *c = &a->stage->current;
    tsr_dtensor *x[SWEEP_TENSORS] = {NULL}, *y[SWEEP_TENSORS] = {NULL};
    if (!wrap(a, x, y))
        goto destroy;
    set_values(a, c->seed);
    check(a, each_mirror(a, mirror_send), "mirror_send");
    const bool moved_once = check(a, redistribute(a, x, y), "tsr_redistribute_into");
    check(a, each_mirror(a, mirror_fetch), "mirror_fetch");
    if (moved_once)
        compare(a, false, "tsr_redistribute_into");
    compare_sources(a);
    set_values(a, c->seed + 1);
    check(a, each_mirror(a, mirror_send), "mirror_send");
    const int64_t before = held_up(a);
    const bool moved_again = check(a, redistribute(a, x, y), "the second tsr_redistribute_into");
    if (held_up(a) != before)
        complain(a, "the second tsr_redistribute_into", "it allocated, or waited for the device");
    check(a, each_mirror(a, mirror_fetch), "mirror_fetch");
    if (moved_again)
        compare(a, false, "the second tsr_redistribute_into");
destroy:
    for (int i = 0; i < a->count; i++) {
        tsr_dtensor_destroy(x[i]);
        tsr_dtensor_destroy(y[i]);
    }
}

void actor_play(actor *a)
{
    const sweep_case *c = &a->stage->current;
    *a->verdict = (verdict){.failed = false};
    memset(a->at, 0, sizeof a->at);
    a->count = 1 + c->more;
    a->cap = 0;
    const bool made = make_layouts(a);
    if (c->cap != CAP_NONE)
        agree_on_cap(a, made);
    for (int i = 0; made && i < a->count; i++)
        moved_start(&a->at[i], c->seed + (uint64_t)i, c->strided);
    memset(a->src, 0, sizeof a->src);
    memset(a->dst, 0, sizeof a->dst);
    if (made)
        check(a, make_mirrors(a), "mirror_create");
    if (made && c->way == WAY_DTENSORS)
        run_dtensors(a);
    else if (made)
        run_plan(a);
    free_mirrors(a);
    for (int i = 0; i < a->count; i++) {
        if (made)
            moved_finish(&a->at[i]);
        tsr_layout_destroy(a->at[i].src_layout);
        tsr_layout_destroy(a->at[i].dst_layout);
    }
}

void actor_finish(actor *a)
{
    tsr_mesh_destroy(a->src_mesh);
    tsr_mesh_destroy(a->dst_mesh);
}
