/* Plans of an executable's moves: one for all moves between the same forms, and for each length
 * that it had lately. */
#include "ops/programs/plans.h"

#include "ops/programs/executable.h"
#include "ops/programs/forms.h"

#include <tessera/explain.h>
#include <tessera/sys/memory.h>

#include <string.h>

tsr_status tsr_executable_open_mesh(const tsr_executable *x, tsr_comm *comm, const tsr_mesh *given, tsr_mesh **out)
{
    int64_t shape[TSR_MAX_DIMS], coordinate[TSR_MAX_DIMS] = {0};
    const char *names[TSR_MAX_DIMS];
    void *memory;
    const int ndim = tsr_mesh_ndim(given);
    const int64_t count = tsr_mesh_count(given);
    if (!comm || tsr_mesh_comm(given) == comm) {
        *out = tsr_mesh_retain((tsr_mesh *)given);
        return TSR_OK;
    }
    for (int k = 0; k < ndim; k++) {
        shape[k] = tsr_mesh_size(given, k);
        names[k] = tsr_mesh_name(given, k);
    }
    TSR_TRY(tsr_program_array(x->context, (size_t)count, sizeof(int64_t), &memory));
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

/* A form's layout of now over the communicator; as it is where `comm` is NULL. */
static tsr_status open_layout(const tsr_executable *x, tsr_comm *comm, int form, tsr_layout **out)
{
    tsr_mesh *mesh;
    const tsr_layout *const own = x->forms[form].layout;
    TSR_TRY(tsr_executable_open_mesh(x, comm, tsr_layout_mesh(own), &mesh));
    const tsr_status status = tsr_layout_create(mesh, tsr_layout_placements(own), tsr_layout_ndim(own),
                                                tsr_layout_shape(own), tsr_layout_dtype(own), out);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status make_plan(const tsr_executable *x, tsr_comm *comm, const tsr_planned *p, tsr_layout **from,
                            tsr_layout **to, tsr_plan **out)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = x->rank;
    for (int i = 0; i < p->count; i++) {
        TSR_TRY(open_layout(x, comm, p->from[i], &from[i]));
        TSR_TRY(open_layout(x, comm, p->alike ? p->from[i] : p->to[i], &to[i]));
    }
    return tsr_plan_create_batch((size_t)p->count, (const tsr_layout *const *)from, (const tsr_layout *const *)to,
                                 &options, out);
}

/* Plans moves for the lengths of now. */
static tsr_status plan(const tsr_executable *x, tsr_comm *comm, const tsr_planned *p, tsr_plan **out)
{
    tsr_layout *from[TSR_BATCH] = {NULL}, *to[TSR_BATCH] = {NULL};
    const tsr_status status = make_plan(x, comm, p, from, to, out);
    for (int i = 0; i < p->count; i++) {
        tsr_layout_destroy(from[i]);
        tsr_layout_destroy(to[i]);
    }
    return status;
}

/* Keeps a plan for the lengths of now; the one that was not wanted for longest goes. */
static void add_variant(const tsr_executable *x, tsr_planned *p, tsr_plan *made)
{
    int at = 0;
    if (p->variant_count < TSR_VARIANTS)
        at = p->variant_count++;
    else {
        for (int i = 1; i < TSR_VARIANTS; i++)
            at = p->variants[i].used < p->variants[at].used ? i : at;
        tsr_plan_destroy(p->variants[at].plan);
    }
    p->variants[at].plan = p->now = made;
    p->variants[at].used = x->clock;
    memcpy(p->variants[at].lengths, x->length, sizeof x->length);
}

/* The most intervals of a dim that are compared. */
#define INTERVALS 64

/* True if this rank has the same elements of a dim under both layouts. */
static bool has_same(const tsr_form *from, const tsr_form *to, int dim)
{
    tsr_interval a[INTERVALS], b[INTERVALS];
    size_t a_count, b_count;
    return tsr_layout_intervals(from->layout, from->coordinate, dim, a, INTERVALS, &a_count) == TSR_OK &&
           tsr_layout_intervals(to->layout, to->coordinate, dim, b, INTERVALS, &b_count) == TSR_OK &&
           a_count == b_count && a_count <= INTERVALS && memcmp(a, b, a_count * sizeof *a) == 0;
}

/* Finds whether anything crosses ranks, which steps tell alike on every rank, and whether this rank
 * keeps what it has in a single move. */
static tsr_status look(const tsr_executable *x, tsr_planned *p)
{
    const tsr_form *const from = &x->forms[p->from[0]], *const to = &x->forms[p->to[0]];
    bool copies = p->count == 1;
    p->local = true;
    for (size_t i = 0; i < tsr_plan_step_count(p->now); i++) {
        tsr_plan_step step;
        TSR_TRY(tsr_plan_step_at(p->now, i, &step));
        p->local &= step.op == TSR_STEP_COPY || step.op == TSR_STEP_FILL;
        copies &= step.op == TSR_STEP_COPY;
    }
    p->same = p->local && copies && from->inside && to->inside;
    for (int dim = 0; dim < tsr_layout_ndim(to->layout) && p->same; dim++)
        p->same = has_same(from, to, dim);
    return TSR_OK;
}

static bool is_between(const tsr_planned *p, int count, const int *from, const int *to)
{
    return p->count == count && memcmp(p->from, from, (size_t)count * sizeof *from) == 0 &&
           memcmp(p->to, to, (size_t)count * sizeof *to) == 0;
}

tsr_status tsr_executable_add_plan(tsr_executable *x, int count, const int *from, const int *to, int *out)
{
    void *items = x->plans;
    for (size_t i = 0; i < x->plan_count; i++) {
        if (is_between(&x->plans[i], count, from, to)) {
            *out = (int)i;
            return TSR_OK;
        }
    }
    TSR_TRY(tsr_program_grow(x->context, sizeof *x->plans, x->plan_count, &x->plan_room, &items));
    x->plans = items;
    tsr_planned *const p = &x->plans[x->plan_count];
    *p = (tsr_planned){.count = count};
    for (int i = 0; i < count; i++) {
        p->from[i] = from[i];
        p->to[i] = to[i];
        p->lengths |= x->forms[from[i]].lengths | x->forms[to[i]].lengths;
    }
    *out = (int)x->plan_count++;
    if (count == 1 && !p->lengths)
        TSR_TRY(tsr_program_compare(x->forms[*from].layout, x->forms[*to].layout, &p->alike));
    tsr_plan *made;
    TSR_TRY(plan(x, NULL, p, &made));
    add_variant(x, p, made);
    p->bytes = tsr_plan_workspace_bytes(p->now);
    return look(x, p);
}

/* True if `lengths` are those of now, as far as a plan's forms depend on them. */
static bool fits(const tsr_executable *x, const tsr_planned *p, const int64_t lengths[TSR_LENGTHS])
{
    for (size_t i = 0; i < x->length_count; i++)
        if ((p->lengths & 1U << i) && lengths[i] != x->length[i])
            return false;
    return true;
}

tsr_status tsr_executable_raise_plans(tsr_executable *x, tsr_comm *comm, const int64_t (*tried)[TSR_LENGTHS],
                                      size_t count)
{
    for (size_t i = 0; i < x->plan_count; i++) {
        tsr_planned *const p = &x->plans[i];
        tsr_plan *made;
        size_t before = 0;
        while (before < count && !fits(x, p, tried[before]))
            before++;
        if (!p->lengths || !p->is_used || before < count)
            continue;
        TSR_TRY(plan(x, comm, p, &made));
        const size_t bytes = tsr_plan_workspace_bytes(made);
        p->bytes = bytes > p->bytes ? bytes : p->bytes;
        tsr_plan_destroy(made);
    }
    return TSR_OK;
}

static void forget(tsr_planned *p)
{
    for (int i = 0; i < p->variant_count; i++) {
        tsr_plan_destroy(p->variants[i].plan);
        p->variants[i].plan = NULL;
    }
    p->variant_count = 0;
    p->now = NULL;
}

/* True if all meshes of a plan are over the communicator. */
static bool is_over(const tsr_executable *x, const tsr_planned *p, const tsr_comm *comm)
{
    bool over = true;
    for (int i = 0; i < p->count; i++)
        over &= tsr_mesh_comm(tsr_layout_mesh(x->forms[p->from[i]].layout)) == comm &&
                tsr_mesh_comm(tsr_layout_mesh(x->forms[p->to[i]].layout)) == comm;
    return over;
}

tsr_status tsr_executable_open_plans(tsr_executable *x, tsr_comm *comm)
{
    for (size_t i = 0; i < x->plan_count; i++) {
        tsr_planned *const p = &x->plans[i];
        if (!p->is_used || is_over(x, p, comm))
            continue;
        tsr_plan *made;
        TSR_TRY(plan(x, comm, p, &made));
        forget(p);
        add_variant(x, p, made);
        const size_t bytes = tsr_plan_workspace_bytes(p->now);
        p->bytes = bytes > p->bytes ? bytes : p->bytes;
    }
    return TSR_OK;
}

/* Finds the variant for the lengths of now. */
static bool find_variant(const tsr_executable *x, tsr_planned *p)
{
    for (int i = 0; i < p->variant_count; i++) {
        if (!fits(x, p, p->variants[i].lengths))
            continue;
        p->variants[i].used = x->clock;
        p->now = p->variants[i].plan;
        return true;
    }
    return false;
}

bool tsr_executable_find_plans(tsr_executable *x)
{
    bool lacks = false;
    for (size_t i = 0; i < x->plan_count; i++)
        if (x->plans[i].lengths && x->plans[i].is_used && !find_variant(x, &x->plans[i]))
            lacks = true;
    return lacks;
}

tsr_status tsr_executable_make_plans(tsr_executable *x, tsr_comm *comm, bool *grown)
{
    for (size_t i = 0; i < x->plan_count; i++) {
        tsr_planned *const p = &x->plans[i];
        if (!p->lengths || !p->is_used || find_variant(x, p))
            continue;
        TSR_TRY(plan(x, comm, p, &p->next));
        const size_t bytes = tsr_plan_workspace_bytes(p->next);
        *grown |= bytes > p->bytes;
        p->bytes = bytes > p->bytes ? bytes : p->bytes;
    }
    return TSR_OK;
}

tsr_status tsr_executable_prepare_plans(tsr_executable *x, tsr_comm *comm)
{
    tsr_status status = TSR_OK;
    tsr_kept_sentence kept;
    for (size_t i = 0; i < x->plan_count; i++) {
        if (!x->plans[i].next)
            continue;
        /* A rank that failed meets the others for the plans that follow, too. */
        const tsr_status prepared = tsr_plan_prepare(status == TSR_OK ? x->plans[i].next : NULL, comm);
        if (status != TSR_OK || prepared == TSR_OK)
            continue;
        status = prepared;
        tsr_status_keep(&kept);
    }
    return status == TSR_OK ? TSR_OK : tsr_status_restore(&kept, status);
}

void tsr_executable_settle_plans(tsr_executable *x, bool keep)
{
    for (size_t i = 0; i < x->plan_count; i++) {
        tsr_planned *const p = &x->plans[i];
        if (keep && p->next)
            add_variant(x, p, p->next);
        else
            tsr_plan_destroy(p->next);
        p->next = NULL;
    }
}
