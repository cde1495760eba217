#include "ops/kernels/products/contract.h"

#include "ops/numbers.h"

#include <stdlib.h>
#include <string.h>

/* A loop over one or several factors, with the strides of a, b and c. */
typedef struct loop {
    int64_t size, stride[3];
} loop;

enum { A, B, C };

/* Loops, from the outermost to the innermost. */
typedef struct loops {
    int count;
    loop at[TSR_EQUATION_FACTORS];
} loops;

static bool has(const tsr_factored *t, int factor)
{
    return t->factors >> factor & 1;
}

/* NULL stays NULL: a product that is only measured has no data. */
static void *offset_by(const tsr_factored *t, int64_t elements)
{
    return t->data ? (char *)t->data + elements * (int64_t)tsr_dtype_bytes(t->dtype) : NULL;
}

void *tsr_arena_take(tsr_arena *arena, size_t bytes)
{
    char *const taken = arena->base ? arena->base + arena->used : NULL;
    arena->used += tsr_aligned_bytes(bytes);
    return taken;
}

/* Those of a tensor's `factors`, by bits, in the order of its memory, the outermost first; factors
 * that it lacks come last. */
static int order_factors(const tsr_factored *t, unsigned factors, int order[TSR_EQUATION_FACTORS])
{
    int count = 0;
    for (int factor = 0; factor < TSR_EQUATION_FACTORS; factor++) {
        if (!(factors >> factor & 1))
            continue;
        int at = count++;
        for (; at > 0 && llabs(t->stride[order[at - 1]]) < llabs(t->stride[factor]); at--)
            order[at] = order[at - 1];
        order[at] = factor;
    }
    return count;
}

/* Makes a tensor whose factors lie one in another as `order` says. */
static tsr_factored create_ordered(tsr_arena *arena, const int64_t *size, const int *order, int count, tsr_dtype dtype)
{
    tsr_factored made = {.dtype = dtype};
    int64_t stride = 1;
    for (int factor = 0; factor < TSR_EQUATION_FACTORS; factor++)
        made.size[factor] = 1;
    for (int i = count - 1; i >= 0; i--) {
        made.factors |= 1u << order[i];
        made.size[order[i]] = size[order[i]];
        made.stride[order[i]] = stride;
        stride *= size[order[i]];
    }
    made.data = tsr_arena_take(arena, (size_t)stride * tsr_dtype_bytes(dtype));
    return made;
}

tsr_factored tsr_factored_create(tsr_arena *arena, const tsr_factored *like, unsigned factors, tsr_dtype dtype)
{
    int order[TSR_EQUATION_FACTORS];
    const int count = order_factors(like, factors, order);
    return create_ordered(arena, like->size, order, count, dtype);
}

tsr_factored tsr_factored_of(const tsr_tensor *tensor, const tsr_equation_term *term)
{
    tsr_factored t = {.data = tensor->data, .dtype = tensor->dtype};
    for (int factor = 0; factor < TSR_EQUATION_FACTORS; factor++)
        t.size[factor] = 1;
    for (int dim = 0; dim < term->ndim; dim++) {
        const int factor = term->factor[dim];
        if (factor == TSR_EQUATION_ONE)
            continue;
        t.factors |= 1u << factor;
        t.size[factor] = tensor->shape[dim];
        t.stride[factor] = tensor->strides[dim];
    }
    return t;
}

/* Appends a loop; it becomes one with the last if in all three tensors a step of that is as many
 * steps of this as it has. */
static void append_loop(loops *l, loop next)
{
    if (next.size == 1)
        return;
    loop *const last = l->count ? &l->at[l->count - 1] : NULL;
    if (next.size == 0 || (last && last->size == 0)) {
        *l = (loops){.count = 1};
        return;
    }
    bool joins = last;
    for (int t = A; t <= C && joins; t++)
        joins = last->stride[t] == next.size * next.stride[t];
    if (!joins) {
        l->at[l->count++] = next;
        return;
    }
    last->size *= next.size;
    memcpy(last->stride, next.stride, sizeof last->stride);
}

static loops loops_over(const int *order, int count, const int64_t *size, const tsr_factored *const t[3])
{
    loops l = {0};
    for (int i = 0; i < count; i++) {
        const int f = order[i];
        append_loop(&l, (loop){size[f], {t[A]->stride[f], t[B]->stride[f], t[C]->stride[f]}});
    }
    return l;
}

static int64_t count_steps(const loops *l)
{
    int64_t steps = 1;
    for (int i = 0; i < l->count; i++)
        steps *= l->at[i].size;
    return steps;
}

/* The offsets of step `index` in elements. */
static void offsets_of(const loops *l, int64_t index, int64_t offset[3])
{
    memset(offset, 0, 3 * sizeof *offset);
    for (int i = l->count - 1; i >= 0; i--) {
        for (int t = A; t <= C; t++)
            offset[t] += index % l->at[i].size * l->at[i].stride[t];
        index /= l->at[i].size;
    }
}

/* Takes the longest loop out of a list, or one of a single step. */
static loop take_longest(loops *l)
{
    int longest = 0;
    for (int i = 1; i < l->count; i++)
        longest = l->at[i].size > l->at[longest].size ? i : longest;
    if (l->count == 0)
        return (loop){1, {0, 0, 0}};
    const loop taken = l->at[longest];
    l->count--;
    memmove(l->at + longest, l->at + longest + 1, (size_t)(l->count - longest) * sizeof *l->at);
    return taken;
}

/* Copies `from`, as a of the loops, to `to`, as c of them. */
static tsr_status copy_loops(const tsr_matmul_site *site, loops l, const tsr_factored *from, const tsr_factored *to)
{
    const loop none = {1, {0, 0, 0}}, columns = l.count ? l.at[--l.count] : none,
               rows = l.count ? l.at[--l.count] : none;
    const int64_t steps = site->needs || rows.size == 0 || columns.size == 0 ? 0 : count_steps(&l);
    for (int64_t i = 0; i < steps; i++) {
        int64_t offset[3];
        offsets_of(&l, i, offset);
        const tsr_matrix source = {offset_by(from, offset[A]), rows.size,  columns.size, rows.stride[A],
                                   columns.stride[A],          from->dtype};
        const tsr_matrix target = {offset_by(to, offset[C]), rows.size,         columns.size,
                                   rows.stride[C],           columns.stride[C], to->dtype};
        TSR_TRY(tsr_matrix_copy(site, source, target));
    }
    return TSR_OK;
}

tsr_status tsr_factored_copy(const tsr_matmul_site *site, const tsr_factored *from, const tsr_factored *to)
{
    int order[TSR_EQUATION_FACTORS];
    const int count = order_factors(to, to->factors, order);
    const tsr_factored *const t[] = {from, from, to};
    return copy_loops(site, loops_over(order, count, to->size, t), from, to);
}

/* Copies a tensor to memory in which the summed factors are one dim, the innermost; it is repeated
 * along those that it lacks. */
static tsr_status pack(const tsr_matmul_site *site, tsr_arena *arena, const int *summed, int summed_count,
                       const int64_t *size, tsr_factored *t)
{
    int order[TSR_EQUATION_FACTORS];
    unsigned bits = 0;
    for (int i = 0; i < summed_count; i++)
        bits |= 1u << summed[i];
    int count = order_factors(t, t->factors & ~bits, order);
    memcpy(order + count, summed, (size_t)summed_count * sizeof *order);
    count += summed_count;
    const tsr_factored packed = create_ordered(arena, size, order, count, t->dtype);
    const tsr_factored *const both[] = {t, t, &packed};
    TSR_TRY(copy_loops(site, loops_over(order, count, size, both), t, &packed));
    *t = packed;
    return TSR_OK;
}

static bool is_one_loop(const int *order, int count, const int64_t *size, const tsr_factored *t)
{
    return loops_over(order, count, size, (const tsr_factored *const[]){t, t, t}).count <= 1;
}

/* A gemm for each step of the outer loops. */
static tsr_status multiply(const tsr_matmul_site *site, loops *outer, loops rows, loops columns, loop summed,
                           const tsr_factored *const t[3])
{
    const loop m = take_longest(&rows), n = take_longest(&columns);
    for (int i = 0; i < rows.count; i++)
        outer->at[outer->count++] = rows.at[i];
    for (int i = 0; i < columns.count; i++)
        outer->at[outer->count++] = columns.at[i];
    const int64_t all = count_steps(outer), steps = site->needs ? tsr_smaller(all, 1) : all;
    for (int64_t i = 0; i < steps; i++) {
        int64_t offset[3];
        offsets_of(outer, i, offset);
        const tsr_matrix a = {offset_by(t[A], offset[A]), m.size,     summed.size, m.stride[A],
                              summed.stride[A],           t[A]->dtype},
                         b = {offset_by(t[B], offset[B]), summed.size, n.size,
                              summed.stride[B],           n.stride[B], t[B]->dtype},
                         c = {offset_by(t[C], offset[C]), m.size, n.size, m.stride[C], n.stride[C], t[C]->dtype};
        TSR_TRY(tsr_matrix_multiply(site, a, b, c, false));
    }
    return TSR_OK;
}

tsr_status tsr_contract(const tsr_matmul_site *site, tsr_arena *arena, const tsr_factored *a, const tsr_factored *b,
                        const tsr_factored *c)
{
    tsr_factored left = *a, right = *b;
    const tsr_factored *const t[] = {&left, &right, c};
    const unsigned batch = a->factors & b->factors & c->factors, only_b = b->factors & c->factors & ~batch,
                   only_a = c->factors & ~batch & ~only_b;
    int summed[TSR_EQUATION_FACTORS], order[TSR_EQUATION_FACTORS];
    int64_t size[TSR_EQUATION_FACTORS];
    for (int f = 0; f < TSR_EQUATION_FACTORS; f++)
        size[f] = has(a, f) ? a->size[f] : has(b, f) ? b->size[f] : c->size[f];
    const int count = order_factors(a, (a->factors | b->factors) & ~c->factors, summed);
    if (!is_one_loop(summed, count, size, &left))
        TSR_TRY(pack(site, arena, summed, count, size, &left));
    if (!is_one_loop(summed, count, size, &right))
        TSR_TRY(pack(site, arena, summed, count, size, &right));
    loops inner = loops_over(summed, count, size, t);
    loops outer = loops_over(order, order_factors(c, batch, order), size, t);
    const loops rows = loops_over(order, order_factors(c, only_a, order), size, t);
    const loops columns = loops_over(order, order_factors(c, only_b, order), size, t);
    return multiply(site, &outer, rows, columns, take_longest(&inner), t);
}
