#include "told_elements.h"

#include "layouts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Tables over all elements of each rank: entry rank * elements + element. */
typedef struct tables {
    const story *s;
    bool *has, *wants;  /* whether the element is in the rank's source; in its destination, and not a fill */
    int *first, *later; /* how often the rank receives the element in step 0, and in later steps */
} tables;

static bool *held_by_all(const oracle_layout *layout, const story *s)
{
    bool *held = calloc((size_t)(s->c->world * s->elements) + 1, sizeof *held);
    for (int64_t r = 0; r < s->c->world; r++) {
        oracle_shard shard;
        oracle_shard_create(layout, r, &shard);
        for (int64_t i = 0; i < shard.count; i++)
            held[r * s->elements + oracle_shard_global(&shard, i)] = true;
        oracle_shard_destroy(&shard);
    }
    return held;
}

static void tables_begin(tables *t, const story *s)
{
    const size_t size = (size_t)(s->c->world * s->elements) + 1;
    *t = (tables){.s = s, .has = held_by_all(&s->c->src, s), .wants = held_by_all(&s->c->dst, s)};
    t->first = calloc(size, sizeof *t->first);
    t->later = calloc(size, sizeof *t->later);
    for (int64_t r = 0; r < s->c->world; r++) {
        int64_t coordinate[TSR_MAX_DIMS];
        const int64_t position = oracle_mesh_position(&s->move.dst.mesh, r);
        if (position < 0)
            continue;
        oracle_mesh_coordinate(&s->move.dst.mesh, position, coordinate);
        if (oracle_filled_by(&s->move, coordinate))
            memset(t->wants + r * s->elements, 0, (size_t)s->elements * sizeof *t->wants);
    }
}

static void tables_end(tables *t)
{
    free(t->has);
    free(t->wants);
    free(t->first);
    free(t->later);
}

/* Whether both ranks have the same coordinate in all mesh dims whose Partial terms are kept. */
static bool keep_together(const story *s, int64_t a, int64_t b)
{
    int64_t x[TSR_MAX_DIMS], y[TSR_MAX_DIMS];
    if (!s->move.same_mesh)
        return true;
    oracle_mesh_coordinate(&s->move.src.mesh, oracle_mesh_position(&s->move.src.mesh, a), x);
    oracle_mesh_coordinate(&s->move.src.mesh, oracle_mesh_position(&s->move.src.mesh, b), y);
    for (int m = 0; m < s->move.src.mesh.ndim; m++)
        if (s->move.kept[m] && x[m] != y[m])
            return false;
    return true;
}

/* Moves `at`, which starts at the box's begin, to the next element; returns false after the
 * last. */
static bool next_element(const tsr_plan_transfer *box, int64_t *at)
{
    for (int d = box->ndim - 1; d >= 0; d--) {
        if (++at[d] < box->end[d])
            return true;
        at[d] = box->begin[d];
    }
    return false;
}

static int64_t number_of(const oracle_layout *layout, const int64_t *at)
{
    int64_t number = 0;
    for (int d = 0; d < layout->ndim; d++)
        number = number * layout->shape[d] + at[d];
    return number;
}

static void check_form(const story *s, const tsr_plan_transfer *box, int64_t rank)
{
    int64_t bytes = (int64_t)oracle_bytes(s->c->src.dtype);
    if (box->ndim != s->c->src.ndim || box->item != 0 || box->peer == rank || box->peer < 0 || box->peer >= s->c->world)
        told_wrong("a transfer of rank %lld has peer %lld, item %zu, %d dims", (long long)rank, (long long)box->peer,
                   box->item, box->ndim);
    for (int d = 0; d < box->ndim; d++) {
        if (box->begin[d] < 0 || box->begin[d] >= box->end[d] || box->end[d] > s->c->src.shape[d])
            told_wrong("dim %d of a box is [%lld, %lld)", d, (long long)box->begin[d], (long long)box->end[d]);
        bytes *= box->end[d] - box->begin[d];
    }
    if (bytes != box->bytes)
        told_wrong("a box of %lld bytes says %lld", (long long)bytes, (long long)box->bytes);
}

/* Checks one element that `rank` receives, and counts it. In step 0 the sender must have it in its
 * source; in a reduction or a later step it may be another owner of the result. */
static void receive(tables *t, const tsr_plan_transfer *box, int64_t rank, int64_t element)
{
    const story *s = t->s;
    const int64_t own = rank * s->elements + element, theirs = box->peer * s->elements + element;
    const bool has = t->has[theirs] && keep_together(s, rank, box->peer),
               owner = t->wants[theirs] && keep_together(s, rank, box->peer);
    const bool handed_on = s->survey.steps[box->step].op == TSR_STEP_ALL_REDUCE || box->step > 0;
    if (!t->wants[own])
        told_wrong("rank %lld receives element %lld, which it does not want", (long long)rank, (long long)element);
    if (!(box->step == 0 && has) && !(handed_on && owner))
        told_wrong("rank %lld receives element %lld from rank %lld in step %zu, which does not have it",
                   (long long)rank, (long long)element, (long long)box->peer, box->step);
    (box->step == 0 ? t->first : t->later)[own]++;
}

static void receive_all(tables *t, int64_t rank)
{
    const story *s = t->s;
    for (size_t i = 0; i < s->receives[rank].count; i++) {
        const tsr_plan_transfer *box = &s->receives[rank].at[i];
        int64_t at[TSR_MAX_DIMS];
        check_form(s, box, rank);
        memcpy(at, box->begin, sizeof at);
        do {
            receive(t, box, rank, number_of(&s->c->src, at));
        } while (next_element(box, at));
    }
}

/* Checks, for moves without reductions, that each element that a rank wants and does not have is
 * received exactly once. */
static void check_needs(const tables *t)
{
    const story *s = t->s;
    int64_t kept = 0, told = 0;
    for (int64_t r = 0; r < s->c->world; r++)
        for (int64_t e = 0; e < s->elements; e++) {
            const int64_t at = r * s->elements + e;
            const int needed = !s->move.shortcut && t->wants[at] && !t->has[at];
            kept += s->move.shortcut ? t->has[at] : t->wants[at] && t->has[at];
            if (t->first[at] + t->later[at] != needed)
                told_wrong("rank %lld receives element %lld %d times", (long long)r, (long long)e,
                           t->first[at] + t->later[at]);
        }
    for (int64_t r = 0; r < s->c->world; r++)
        told += s->figures[r].bytes_kept;
    if (told != kept * (int64_t)oracle_bytes(s->c->src.dtype))
        told_wrong("%lld bytes are kept, not %lld elements", (long long)told, (long long)kept);
}

/* Checks, for moves without reductions, that senders in a second step received the elements in the
 * first. */
static void check_handed_on(const tables *t, int64_t rank)
{
    const story *s = t->s;
    for (size_t i = 0; i < s->receives[rank].count; i++) {
        const tsr_plan_transfer *box = &s->receives[rank].at[i];
        int64_t at[TSR_MAX_DIMS];
        memcpy(at, box->begin, sizeof at);
        do {
            if (box->step > 0 && !t->first[box->peer * s->elements + number_of(&s->c->src, at)])
                told_wrong("rank %lld receives what rank %lld never got", (long long)rank, (long long)box->peer);
        } while (next_element(box, at));
    }
}

static bool same_transfer(const tsr_plan_transfer *a, int64_t a_peer, const tsr_plan_transfer *b)
{
    bool same = a->step == b->step && a->bytes == b->bytes && a_peer == b->peer;
    for (int d = 0; d < a->ndim; d++)
        same = same && a->begin[d] == b->begin[d] && a->end[d] == b->end[d];
    return same;
}

/* Checks that every receive of one rank is a send of its peer, and the other way round. */
static void check_both_sides(const story *s)
{
    size_t received = 0, sent = 0;
    for (int64_t r = 0; r < s->c->world; r++) {
        received += s->receives[r].count;
        sent += s->sends[r].count;
        for (size_t i = 0; i < s->receives[r].count; i++) {
            const tsr_plan_transfer *box = &s->receives[r].at[i];
            const boxes *theirs = &s->sends[box->peer];
            size_t found = 0;
            while (found < theirs->count && !same_transfer(box, r, &theirs->at[found]))
                found++;
            if (found == theirs->count)
                told_wrong("rank %lld receives from rank %lld what that does not send", (long long)r,
                           (long long)box->peer);
        }
    }
    if (received != sent)
        told_wrong("%zu boxes are received and %zu sent", received, sent);
}

/* The maximal intervals along a dim of what the receiver's destination and the sender's source
 * have in common. */
static int64_t common_intervals(const story *s, int64_t receiver, int64_t sender, int dim, tsr_interval *out)
{
    oracle_shard a, b;
    int64_t count = 0;
    oracle_shard_create(&s->c->dst, receiver, &a);
    oracle_shard_create(&s->c->src, sender, &b);
    for (int64_t i = 0, j = 0; i < a.shape[dim] && j < b.shape[dim];) {
        const int64_t x = a.index[dim][i], y = b.index[dim][j];
        i += x <= y;
        j += y <= x;
        if (x != y)
            continue;
        if (count > 0 && out[count - 1].end == x)
            out[count - 1].end++;
        else
            out[count++] = (tsr_interval){x, x + 1};
    }
    oracle_shard_destroy(&a);
    oracle_shard_destroy(&b);
    return count;
}

enum { INTERVALS = 1024 };

/* Checks that the boxes from one peer are the products of the common maximal intervals of all
 * dims, in order. */
static void check_maximal(const story *s, int64_t rank, const tsr_plan_transfer *first, size_t count)
{
    static tsr_interval intervals[TSR_MAX_DIMS][INTERVALS];
    int64_t counts[TSR_MAX_DIMS], product = 1;
    for (int d = 0; d < s->c->src.ndim; d++) {
        counts[d] = common_intervals(s, rank, first->peer, d, intervals[d]);
        product *= counts[d];
    }
    if (product != (int64_t)count)
        told_wrong("rank %lld receives %zu boxes from rank %lld, not %lld", (long long)rank, count,
                   (long long)first->peer, (long long)product);
    for (size_t i = 0; i < count; i++) {
        int64_t rest = (int64_t)i;
        for (int d = s->c->src.ndim - 1; d >= 0; d--) {
            const tsr_interval *wanted = &intervals[d][rest % counts[d]];
            rest /= counts[d];
            if (first[i].begin[d] != wanted->begin || first[i].end[d] != wanted->end)
                told_wrong("box %zu of rank %lld from rank %lld is not the product of maximal intervals", i,
                           (long long)rank, (long long)first->peer);
        }
    }
}

static void check_all_maximal(const story *s, int64_t rank)
{
    const boxes *list = &s->receives[rank];
    for (size_t i = 0; i < list->count;) {
        size_t end = i;
        while (end < list->count && list->at[end].peer == list->at[i].peer)
            end++;
        check_maximal(s, rank, &list->at[i], end - i);
        i = end;
    }
}

/* Whether two boxes could be one box. */
static bool meet(const tsr_plan_transfer *a, const tsr_plan_transfer *b)
{
    int same = 0, abutting = 0;
    for (int d = 0; d < a->ndim; d++) {
        same += a->begin[d] == b->begin[d] && a->end[d] == b->end[d];
        abutting += a->end[d] == b->begin[d] || b->end[d] == a->begin[d];
    }
    return a->step == b->step && a->peer == b->peer && same == a->ndim - 1 && abutting > 0;
}

/* Checks that no two boxes could be one. Applies to reductions too, whose shares check_maximal()
 * cannot check. */
static void check_none_meet(const boxes *list, int64_t rank, const char *what)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t j = i + 1; j < list->count && list->at[j].peer == list->at[i].peer; j++)
            if (meet(&list->at[i], &list->at[j]))
                told_wrong("boxes %zu and %zu that rank %lld %s are one box", i, j, (long long)rank, what);
}

void elements_check(const story *s)
{
    tables t;
    tables_begin(&t, s);
    const bool moves = s->move.reduced_terms == 1 || s->move.shortcut;
    for (int64_t r = 0; r < s->c->world; r++)
        receive_all(&t, r);
    if (moves)
        check_needs(&t);
    bool shared = false;
    for (size_t i = 1; i < s->survey.step_count; i++)
        shared = shared || s->survey.steps[i].op == TSR_STEP_ALL_GATHER;
    for (int64_t r = 0; r < s->c->world && moves; r++) {
        if (shared)
            check_handed_on(&t, r);
        else
            check_all_maximal(s, r);
    }
    for (int64_t r = 0; r < s->c->world; r++) {
        check_none_meet(&s->receives[r], r, "receives");
        check_none_meet(&s->sends[r], r, "sends");
    }
    check_both_sides(s);
    tables_end(&t);
}
