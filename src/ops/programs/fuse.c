/* Pointwise steps that pass the caches together. A run of steps that compute tensors of one local
 * shape falls into parts that have no such tensor in common; the steps of a part become a group,
 * and their order stays. */
#include "ops/programs/fuse.h"

#include "ops/kernels/pointwise.h"
#include "ops/kernels/updates/updates.h"
#include "ops/programs/merge.h"
#include "ops/programs/tiles.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The most steps that wait for others, so that compiling stays linear in a program's length. */
#define MOST_WAITING 1024

/* Steps in a new order. */
typedef struct fusing {
    tsr_executable *x;
    tsr_step *steps; /* in the new order */
    size_t count;
    const tsr_step **run; /* steps that wait for others of their shape */
    int *part;            /* of each of the run: an earlier one of its part; the first's is itself */
    int run_count;
    int *user;   /* by value: a step of the run that has its memory; -1: none */
    bool *made;  /* by value: the run writes its memory */
    bool stores; /* the run writes into states */
    bool views;  /* the run reads states, or parameters, with other strides */
} fusing;

/* The value that names a value's memory: states that follow one another have one. */
static int find_memory(const tsr_executable *x, int value)
{
    const int base = x->values[value].base;
    return x->values[base].place == TSR_PLACE_BOUND ? x->bound[x->values[base].index] : base;
}

static bool is_view_of_bound(const tsr_executable *x, int value)
{
    return x->values[value].place == TSR_PLACE_VIEW && x->values[x->values[value].base].place == TSR_PLACE_BOUND;
}

static bool are_cut_alike(const tsr_form *a, const tsr_form *b)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(a->largest);
    if (!tsr_op_are_on_one_mesh(mesh, tsr_layout_mesh(b->largest)))
        return false;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        const tsr_placement *const x = &tsr_layout_placements(a->largest)[k], *const y =
                                                                                  &tsr_layout_placements(b->largest)[k];
        if ((x->kind == TSR_SHARD || y->kind == TSR_SHARD) && !tsr_placement_same(x, y))
            return false;
    }
    return true;
}

/* True if tensors of two forms have one local shape, whatever the lengths are. */
static bool are_alike(const tsr_form *a, const tsr_form *b)
{
    if (a == b)
        return true;
    if (a->local.ndim != b->local.ndim || a->lengths != b->lengths)
        return false;
    for (int dim = 0; dim < a->local.ndim; dim++) {
        if (a->local.shape[dim] != b->local.shape[dim])
            return false;
        if (a->lengths &&
            (a->base[dim] != b->base[dim] || memcmp(a->factor[dim], b->factor[dim], sizeof a->factor[dim]) != 0))
            return false;
    }
    return !a->lengths || are_cut_alike(a, b);
}

/* True if a value has the local shape of the run. */
static bool has_shape(const fusing *f, int value)
{
    return are_alike(tsr_form_of(f->x, value), tsr_form_of(f->x, f->run[0]->results[0]));
}

/* Tiles run by kernels of the host alone. */
static bool is_pointwise(const tsr_executable *x, const tsr_step *step)
{
    return !x->device.driver && step->kind == TSR_DOES_KERNEL && step->inside && !step->exchanged &&
           (step->c.op->host == tsr_pointwise_run || step->c.op->host == tsr_pointwise_cast ||
            step->c.op->host == tsr_update_run);
}

/* True if a step reads what the run writes; with `views` only with other strides. */
static bool reads_made(const fusing *f, const tsr_step *step, bool views)
{
    for (int i = 0; i < step->operand_count; i++) {
        const int value = step->operands[i];
        if (value >= 0 && f->made[find_memory(f->x, value)] && (!views || is_view_of_bound(f->x, value)))
            return true;
    }
    return false;
}

static bool views_bound(const fusing *f, const tsr_step *step)
{
    bool views = false;
    for (int i = 0; i < step->operand_count; i++)
        views |= step->operands[i] >= 0 && is_view_of_bound(f->x, step->operands[i]);
    return views;
}

/* True if the step computes what the run's steps do: on a tile alone it gives the same bits. */
static bool can_join(const fusing *f, const tsr_step *step)
{
    switch (step->kind) {
    case TSR_DOES_KERNEL:
        return is_pointwise(f->x, step) && has_shape(f, step->results[0]) && !(f->stores && views_bound(f, step));
    case TSR_DOES_STORE:
        return step->inside && step->dim < 0 && step->operands[2] < 0 && has_shape(f, step->operands[0]) &&
               has_shape(f, step->operands[1]) && !f->views && !is_view_of_bound(f->x, step->operands[1]);
    case TSR_DOES_SAME:
        return reads_made(f, step, false) && has_shape(f, step->results[0]);
    default:
        return false;
    }
}

/* True if the step computes a tensor of several tiles, which gains from a group of its own. */
static bool is_large(const fusing *f, const tsr_step *step)
{
    int64_t count = 1;
    const tsr_tensor *const local = &tsr_form_of(f->x, step->results[0])->local;
    for (int dim = 0; dim < local->ndim; dim++)
        count *= local->shape[dim];
    return step->kind == TSR_DOES_KERNEL && count > TSR_TILE;
}

/* True if the step may go before the run. A large one does not go before a run of small tensors,
 * nor before a run that stores: that is an update, behind which that of another tensor begins. */
static bool can_pass(const fusing *f, const tsr_step *step)
{
    if (is_large(f, step) && (f->stores || !is_large(f, f->run[0])))
        return false;
    return (is_pointwise(f->x, step) || step->kind == TSR_DOES_VIEW || step->kind == TSR_DOES_SAME) &&
           !reads_made(f, step, false);
}

/* The first of a part. */
static int find_first(const fusing *f, int at)
{
    while (f->part[at] != at)
        at = f->part[at];
    return at;
}

/* Joins the parts of two steps; a part's first is its earliest. */
static void unite(fusing *f, int a, int b)
{
    const int x = find_first(f, a), y = find_first(f, b);
    f->part[x > y ? x : y] = x < y ? x : y;
}

/* Notes that a step of the run has a value, by which steps of one part know each other. */
static void note_use(fusing *f, int at, int value)
{
    if (value < 0 || !has_shape(f, value))
        return;
    int *const user = &f->user[find_memory(f->x, value)];
    if (*user >= 0)
        unite(f, *user, at);
    *user = at;
}

static void join(fusing *f, const tsr_step *step)
{
    const int at = f->run_count++;
    f->run[at] = step;
    f->part[at] = at;
    f->views |= views_bound(f, step);
    f->stores |= step->kind == TSR_DOES_STORE;
    for (int i = 0; i < step->operand_count; i++)
        note_use(f, at, step->operands[i]);
    for (int i = 0; i < step->result_count; i++) {
        note_use(f, at, step->results[i]);
        f->made[find_memory(f->x, step->results[i])] = true;
    }
}

static bool computes(const tsr_step *step)
{
    return step->kind == TSR_DOES_KERNEL || step->kind == TSR_DOES_STORE;
}

/* Adds the steps of a part to the new order, as a group if there are several. */
static tsr_status emit_part(fusing *f, int first)
{
    tsr_executable *const x = f->x;
    int count = 0;
    void *items = x->groups;
    for (int i = first; i < f->run_count; i++)
        count += find_first(f, i) == first && computes(f->run[i]);
    if (count > 1) {
        TSR_TRY(tsr_program_grow(x->context, sizeof *x->groups, x->group_count, &x->group_room, &items));
        x->groups = items;
        x->groups[x->group_count] = (tsr_group){.first = (int)f->count};
    }
    for (int i = first; i < f->run_count; i++) {
        if (find_first(f, i) != first)
            continue;
        f->x->told[f->run[i] - f->x->steps] = (int)f->count;
        f->steps[f->count] = *f->run[i];
        if (count > 1 && computes(f->run[i])) {
            f->steps[f->count].group = (int)x->group_count;
            x->groups[x->group_count].last = (int)f->count;
        }
        f->count++;
    }
    x->group_count += count > 1;
    return TSR_OK;
}

/* Forgets what a step of the run reads and writes. */
static void forget(fusing *f, const tsr_step *step)
{
    for (int i = 0; i < step->operand_count; i++)
        if (step->operands[i] >= 0)
            f->user[find_memory(f->x, step->operands[i])] = -1;
    for (int i = 0; i < step->result_count; i++) {
        f->user[find_memory(f->x, step->results[i])] = -1;
        f->made[find_memory(f->x, step->results[i])] = false;
    }
}

static tsr_status end_run(fusing *f)
{
    for (int i = 0; i < f->run_count; i++)
        if (f->part[i] == i)
            TSR_TRY(emit_part(f, i));
    for (int i = 0; i < f->run_count; i++)
        forget(f, f->run[i]);
    f->run_count = 0;
    f->stores = f->views = false;
    return TSR_OK;
}

static tsr_status take(fusing *f, const tsr_step *step)
{
    if (f->run_count && f->run_count < MOST_WAITING && can_join(f, step)) {
        join(f, step);
        return TSR_OK;
    }
    if (!f->run_count || !can_pass(f, step)) {
        TSR_TRY(end_run(f));
        if (is_pointwise(f->x, step)) {
            join(f, step);
            return TSR_OK;
        }
    }
    f->x->told[step - f->x->steps] = (int)f->count;
    f->steps[f->count++] = *step;
    return TSR_OK;
}

static tsr_status order(fusing *f)
{
    for (size_t i = 0; i < f->x->step_count; i++)
        TSR_TRY(take(f, &f->x->steps[i]));
    return end_run(f);
}

static void add_cursor(tsr_group *g, tsr_tensor *tensor, int value, int step)
{
    if (g->cursors && value >= 0)
        g->cursors[g->cursor_count] = (tsr_cursor){.tensor = tensor, .value = value, .step = step};
    g->cursor_count += value >= 0;
}

/* Marks the operands of a kernel from cursor `from` on that the group has not touched before. */
static void mark_first(const tsr_executable *x, tsr_group *g, int from)
{
    for (int i = from; g->cursors && i < g->cursor_count; i++) {
        bool is_new = true;
        for (int j = 0; j < i; j++)
            is_new = is_new && find_memory(x, g->cursors[j].value) != find_memory(x, g->cursors[i].value);
        g->cursors[i].is_first = is_new;
    }
}

/* Lists the tensors of a group, or counts them while there is no room. */
static void list_cursors(tsr_executable *x, tsr_group *g)
{
    g->cursor_count = 0;
    for (int at = g->first; at <= g->last; at++) {
        tsr_step *const step = &x->steps[at];
        if (step->kind == TSR_DOES_STORE) {
            add_cursor(g, &step->inputs[0], step->operands[1], -1);
            add_cursor(g, &step->outputs[0], step->operands[0], -1);
        } else if (step->kind == TSR_DOES_KERNEL) {
            const int from = g->cursor_count;
            for (int i = 0; i < step->operand_count; i++)
                add_cursor(g, &step->inputs[i], step->operands[i], -1);
            if (step->c.op->host != tsr_update_run)
                mark_first(x, g, from);
            for (int i = 0; i < step->result_count; i++)
                add_cursor(g, &step->outputs[i], step->results[i], step->c.op->host == tsr_update_run ? -1 : at);
        }
    }
}

static tsr_status make_cursors(tsr_executable *x, tsr_group *g)
{
    void *memory;
    list_cursors(x, g);
    TSR_TRY(tsr_program_array(x->context, (size_t)g->cursor_count, sizeof *g->cursors, &memory));
    g->cursors = memory;
    list_cursors(x, g);
    return TSR_OK;
}

/* Tells steps with which others they run: with those of a batch, of which the first runs all, or of
 * a group, of which the last does. What a step between those of a group passes on is there when the
 * group has run. */
static void tell_steps(tsr_executable *x)
{
    for (int i = 0; i < (int)x->step_count; i++) {
        x->steps[i].first = i - x->steps[i].place;
        x->steps[i].last = i + 1;
    }
    for (size_t i = 0; i < x->group_count; i++) {
        const tsr_group *const g = &x->groups[i];
        for (int at = g->first; at <= g->last; at++) {
            x->steps[at].first = g->first;
            x->steps[at].last = g->last + 1;
        }
    }
}

/* Orders steps anew in room for all of them and for each value. */
static tsr_status fuse_in(tsr_executable *x, void *const *memory)
{
    fusing f = {.x = x, .steps = memory[0], .run = memory[1], .part = memory[2], .user = memory[3], .made = memory[4]};
    for (size_t i = 0; i < x->value_count; i++)
        f.user[i] = -1;
    TSR_TRY(order(&f));
    memcpy(x->steps, f.steps, x->step_count * sizeof *x->steps);
    for (size_t i = 0; i < x->step_count; i++)
        tsr_step_point(&x->steps[i]);
    for (size_t i = 0; i < x->group_count; i++)
        TSR_TRY(make_cursors(x, &x->groups[i]));
    tell_steps(x);
    return TSR_OK;
}

tsr_status tsr_compile_groups(tsr_executable *x)
{
    const size_t counts[] = {x->step_count, x->step_count, x->step_count, x->value_count, x->value_count};
    const size_t bytes[] = {sizeof(tsr_step), sizeof(tsr_step *), sizeof(int), sizeof(int), sizeof(bool)};
    void *memory[5] = {NULL}, *told = NULL;
    tsr_status status = tsr_program_array(x->context, x->step_count, sizeof *x->told, &told);
    x->told = told;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && status == TSR_OK; i++)
        status = tsr_program_array(x->context, counts[i], bytes[i], &memory[i]);
    if (status == TSR_OK)
        status = fuse_in(x, memory);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        tsr_release(x->context, memory[i]);
    return status;
}
