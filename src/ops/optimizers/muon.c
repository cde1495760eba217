/* Muon: momentum whose singular values are all brought near 1. Matrices of one shape and layout are
 * stacked, and the stack is cut between matrices: one move brings them to ranks that own them
 * whole, and one takes them back. Products are then of whole matrices, each on one rank. */
#include "ops/optimizers/muon.h"

#include "ops/optimizers/values.h"

#include <tessera/program_ops.h>
#include <tessera/sys/memory.h>

#include <math.h>
#include <string.h>

/* The most values that an op puts together. */
#define MOST 8

/* A stack of matrices: the updates of one shape and layout, in their order. A matrix that is a view
 * has one dim but on its owner. */
typedef struct stack {
    size_t first, count; /* of the array of members */
    tsr_update *like;    /* the first of them */
    double cost;         /* of one matrix */
    int64_t *sizes;      /* how many of them each coordinate of the owners' mesh dim has */
    tsr_value value;
} stack;

/* All matrices, in order of their stacks. */
typedef struct matrices {
    tsr_program *program;
    size_t count, stack_count;
    tsr_update **members;
    tsr_value *made;       /* the direction of each update, in the order of parameters */
    tsr_value *directions; /* of each member */
    stack *stacks;
    double *loads;  /* by coordinate, what it has to do */
    int64_t *sizes; /* of all stacks */
    int64_t owners; /* the most coordinates of a mesh dim */
} matrices;

/* The longest mesh dim, along which owners are chosen. */
static int find_owner_dim(const tsr_layout *layout)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    int longest = 0;
    for (int k = 1; k < tsr_mesh_ndim(mesh); k++)
        if (tsr_mesh_size(mesh, k) > tsr_mesh_size(mesh, longest))
            longest = k;
    return longest;
}

/* Multiplications of an iteration. */
static double find_cost(const tsr_update *u)
{
    const double rows = (double)u->tensor.shape[0], columns = (double)u->tensor.shape[1];
    const double least = rows < columns ? rows : columns, most = rows < columns ? columns : rows;
    return least * least * (2 * most + least);
}

/* Momentum, and the direction that follows from it. */
static tsr_value find_direction(tsr_update *u)
{
    const double momentum = u->in->options->momentum;
    tsr_update_begin(u);
    const tsr_value state = tsr_update_state(u, "momentum_buffer", u->layout);
    const tsr_value next = tsr_update_lerp(u, state, u->gradient, 1 - momentum);
    const tsr_value direction = u->in->options->nesterov ? tsr_update_lerp(u, u->gradient, next, momentum) : next;
    tsr_update_store(u, state, next);
    return direction;
}

static bool are_alike(const tsr_update *a, const tsr_update *b)
{
    return tsr_layout_equal(a->layout, b->layout) && a->tensor.shape[0] == b->tensor.shape[0] &&
           a->tensor.shape[1] == b->tensor.shape[1];
}

/* Puts the updates into stacks. */
static void list_members(matrices *m, tsr_update *updates)
{
    size_t at = 0;
    for (size_t i = 0; i < m->count; i++) {
        bool listed = false;
        for (size_t j = 0; j < i; j++)
            listed |= are_alike(&updates[i], &updates[j]);
        if (listed)
            continue;
        stack *const s = &m->stacks[m->stack_count++];
        *s = (stack){.first = at, .like = &updates[i], .cost = find_cost(&updates[i]), .value = TSR_NONE};
        for (size_t j = i; j < m->count; j++)
            if (are_alike(&updates[i], &updates[j]))
                m->members[at++] = &updates[j];
        s->count = at - s->first;
    }
}

/* Puts stacks of costly matrices first. */
static void sort_stacks(matrices *m)
{
    for (size_t i = 1; i < m->stack_count; i++) {
        const stack s = m->stacks[i];
        size_t at = i;
        for (; at > 0 && m->stacks[at - 1].cost < s.cost; at--)
            m->stacks[at] = m->stacks[at - 1];
        m->stacks[at] = s;
    }
}

/* Gives each matrix, the costly ones first, to the coordinate that has the least to do. */
static void choose_owners(matrices *m)
{
    for (size_t i = 0; i < m->stack_count; i++) {
        stack *const s = &m->stacks[i];
        const tsr_mesh *const mesh = tsr_layout_mesh(s->like->layout);
        const int64_t owners = tsr_mesh_size(mesh, find_owner_dim(s->like->layout));
        s->sizes = m->sizes + (int64_t)i * m->owners;
        for (size_t j = 0; j < s->count; j++) {
            int64_t least = 0;
            for (int64_t owner = 1; owner < owners; owner++)
                if (m->loads[owner] < m->loads[least])
                    least = owner;
            m->loads[least] += s->cost;
            s->sizes[least]++;
        }
    }
}

/* Matrices as one tensor, along a new first dim. */
static tsr_value put_together(tsr_program *p, tsr_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = tsr_op_unsqueeze(p, values[i], 0);
    while (count > 1) {
        size_t left = 0;
        for (size_t at = 0; at < count; at += MOST) {
            const size_t part = count - at < MOST ? count - at : MOST;
            values[left++] = part == 1 ? values[at] : tsr_op_concat(p, (int)part, values + at, 0);
        }
        count = left;
    }
    return values[0];
}

/* A stack of views as one of matrices, or back; nothing moves. */
static tsr_value view(const matrices *m, const stack *s, bool as_matrices)
{
    const tsr_update *const u = s->like;
    const int64_t count = (int64_t)s->count, rows = u->tensor.shape[0], columns = u->tensor.shape[1];
    const int64_t shape[] = {count, as_matrices ? rows : rows * columns, columns};
    if (!tsr_program_records(m->program) || tsr_layout_ndim(u->layout) == 2)
        return s->value;
    return tsr_op_reshape(m->program, s->value, as_matrices ? 3 : 2, shape);
}

/* Cuts a stack between matrices: first along the owners' mesh dim, then along the others. */
static void bring_to_owners(matrices *m, stack *s)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const tsr_mesh *const mesh = tsr_layout_mesh(s->like->layout);
    const int dim = find_owner_dim(s->like->layout);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        placements[k] = tsr_shard(0);
        placements[k].balanced = k != dim;
        placements[k].order = k == dim ? 0 : k + 1;
    }
    placements[dim].sizes = s->sizes;
    placements[dim].size_count = (size_t)tsr_mesh_size(mesh, dim);
    s->value = tsr_value_place(m->program, s->value, placements);
    s->value = view(m, s, true);
}

static void take_back(matrices *m, stack *s)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const tsr_layout *const layout = s->like->layout;
    memcpy(placements, tsr_layout_placements(layout),
           (size_t)tsr_mesh_ndim(tsr_layout_mesh(layout)) * sizeof *placements);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++)
        if (placements[k].kind == TSR_SHARD)
            placements[k].dim++;
    s->value = view(m, s, false);
    s->value = tsr_value_place(m->program, s->value, placements);
}

/* The iteration of Newton and Schulz on wide matrices: x becomes a x + (b g + c g g) x, where g is
 * x x'. */
static void orthogonalize(tsr_program *p, const tsr_optimizer_options *o, stack *s)
{
    static const int64_t both[] = {1, 2};
    const int64_t *const shape = s->like->tensor.shape;
    const bool is_tall = shape[0] > shape[1];
    tsr_value x = is_tall ? tsr_op_transpose(p, s->value, 1, 2) : s->value;
    const tsr_value norm = tsr_op_sqrt(p, tsr_op_sum(p, tsr_op_square(p, x), 2, both, 1));
    x = tsr_op_div(p, x, tsr_op_clamp(p, norm, o->epsilon, INFINITY));
    for (int i = 0; i < o->iterations; i++) {
        const tsr_value g = tsr_op_matmul(p, x, tsr_op_transpose(p, x, 1, 2));
        const tsr_value squared = tsr_op_scale(p, tsr_op_matmul(p, g, g), o->coefficients[2]);
        const tsr_value factor = tsr_op_add(p, tsr_op_scale(p, g, o->coefficients[1]), squared);
        x = tsr_op_add(p, tsr_op_scale(p, x, o->coefficients[0]), tsr_op_matmul(p, factor, x));
    }
    s->value = is_tall ? tsr_op_transpose(p, x, 1, 2) : x;
}

/* By what the learning rate of a matrix is multiplied. */
static double find_ratio(const tsr_update *u)
{
    const tsr_optimizer_options *const o = u->in->options;
    const double rows = (double)u->tensor.shape[0], columns = (double)u->tensor.shape[1];
    if (o->rate == TSR_MUON_MATCH_RMS_ADAMW)
        return 0.2 * sqrt(rows > columns ? rows : columns);
    return rows > columns ? sqrt(rows / columns) : 1;
}

static void finish(const matrices *m, const stack *s)
{
    static const int64_t first[] = {0};
    tsr_program *const p = m->program;
    for (size_t i = 0; i < s->count; i++) {
        tsr_update *const u = m->members[s->first + i];
        const tsr_value part = s->count == 1 ? s->value : tsr_op_narrow(p, s->value, 0, (int64_t)i, 1);
        const tsr_value rate = tsr_op_scale(p, u->in->rate, find_ratio(u));
        const tsr_value change = tsr_op_mul(p, tsr_op_squeeze(p, part, 1, first), tsr_update_number(u, rate));
        tsr_update_finish(u, tsr_op_sub(p, tsr_update_decayed(u), change));
    }
}

static void record_all(matrices *m, tsr_update *updates)
{
    list_members(m, updates);
    sort_stacks(m);
    choose_owners(m);
    for (size_t i = 0; i < m->count; i++)
        m->made[i] = find_direction(&updates[i]);
    for (size_t i = 0; i < m->count; i++)
        m->directions[i] = m->made[m->members[i] - updates];
    for (size_t i = 0; i < m->stack_count; i++)
        m->stacks[i].value = put_together(m->program, m->directions + m->stacks[i].first, m->stacks[i].count);
    for (size_t i = 0; i < m->stack_count; i++)
        bring_to_owners(m, &m->stacks[i]);
    for (size_t i = 0; i < m->stack_count; i++)
        orthogonalize(m->program, updates[0].in->options, &m->stacks[i]);
    for (size_t i = 0; i < m->stack_count; i++)
        take_back(m, &m->stacks[i]);
    for (size_t i = 0; i < m->stack_count; i++)
        finish(m, &m->stacks[i]);
}

tsr_status tsr_update_muon(tsr_update *updates, size_t count)
{
    void *rooms[6] = {NULL};
    matrices m = {.program = updates[0].program, .count = count, .owners = 1};
    tsr_context *const context = m.program->context;
    for (size_t i = 0; i < count; i++) {
        const tsr_layout *const layout = updates[i].layout;
        const int64_t owners = tsr_mesh_size(tsr_layout_mesh(layout), find_owner_dim(layout));
        m.owners = owners > m.owners ? owners : m.owners;
    }
    const size_t bytes[] = {sizeof *m.members,
                            sizeof *m.made,
                            sizeof *m.directions,
                            sizeof *m.stacks,
                            sizeof *m.sizes * (size_t)m.owners,
                            sizeof *m.loads * (size_t)m.owners};
    tsr_status status = TSR_OK;
    for (int i = 0; i < 6 && status == TSR_OK; i++)
        status = tsr_program_array(context, i == 5 ? 1 : count, bytes[i], &rooms[i]);
    if (status == TSR_OK) {
        m.members = rooms[0];
        m.made = rooms[1];
        m.directions = rooms[2];
        m.stacks = rooms[3];
        m.sizes = rooms[4];
        m.loads = rooms[5];
        record_all(&m, updates);
    }
    for (int i = 0; i < 6; i++)
        tsr_release(context, rooms[i]);
    return status;
}
