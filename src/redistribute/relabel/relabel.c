#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "mesh/derive.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "redistribute/match/overlap.h"
#include "redistribute/match/problem.h"
#include "redistribute/relabel/assignment.h"

#include <tessera/relabel.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Greedy assignment weighs about OFFERS_IN_ALL overlaps, but at least OFFERS_OF_RANK of each
 * rank. */
#define OFFERS_IN_ALL  (INT64_C(1) << 20)
#define OFFERS_OF_RANK 4

/* The most bytes that one rank may keep in an exact assignment: the weight of a rank that keeps
 * them, TSR_ASSIGNMENT_EXACT_RANKS + 1 times as much and 1 for a rank that stays, is less than
 * TSR_ASSIGNMENT_MOST. */
#define MOST_KEPT (INT64_C(1) << 50)

/* What a piece of the source meets of the destination along one tensor dim. */
typedef struct meeting {
    tsr_overlap overlap;
    tsr_segments *heaviest; /* the groups of the overlap, the longest first */
} meeting;

typedef struct relabel {
    const tsr_layout *src, *dst;
    tsr_meter meter;
    tsr_problem apart; /* its dst and `reduces` are set as if the meshes were not equal, so that no Partial is kept */
    int64_t count;
    /* of dst's mesh, row-major: row i of an assignment is ranks[i], which stays if it gets i */
    int64_t *ranks;
    meeting *meetings[TSR_MAX_DIMS]; /* by tensor dim, and by key of the source's cuts */
} relabel;

static void coordinate_at(const tsr_mesh *mesh, int64_t position, int64_t *coordinate)
{
    tsr_grid_coordinate(tsr_mesh_grid(mesh), position, coordinate);
}

/* Terms that are reduced and become Partial again count at coordinate 0 alone: keeping one saves at
 * most one transfer, wherever copies of the result go. */
static void count_reduced_once(tsr_problem *problem, const tsr_layout *dst)
{
    for (int i = 0; problem->reduces && i < dst->mesh_ndim; i++)
        if (tsr_layout_kind(dst, i) == TSR_PARTIAL && problem->dst.roles[i] == TSR_ROLE_FREE)
            problem->dst.roles[i] = TSR_ROLE_ZERO;
}

/* Sets what tsr_problem_has_value() looks at. */
static void init_apart(tsr_problem *apart, const tsr_layout *src, const tsr_layout *dst)
{
    for (int i = 0; i < src->mesh_ndim; i++)
        apart->reduces |= tsr_layout_kind(src, i) == TSR_PARTIAL;
    apart->dst.ndim = dst->mesh_ndim;
    for (int i = 0; i < dst->mesh_ndim; i++) {
        const tsr_reduce_op op = dst->placements[i].op;
        const bool zero = tsr_layout_kind(dst, i) == TSR_PARTIAL && (op == TSR_SUM || op == TSR_PROD);
        apart->dst.roles[i] = zero ? TSR_ROLE_ZERO : TSR_ROLE_FREE;
    }
    count_reduced_once(apart, dst);
}

static tsr_status list_ranks(relabel *r)
{
    void *memory;
    TSR_TRY(tsr_meter_take(&r->meter, r->count));
    TSR_TRY(tsr_allocate_array(r->dst->context, (size_t)r->count, sizeof(int64_t), &memory));
    r->ranks = memory;
    int64_t coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++) {
        coordinate_at(r->dst->mesh, i, coordinate);
        r->ranks[i] = tsr_mesh_rank(r->dst->mesh, coordinate);
    }
    return TSR_OK;
}

static int longest_first(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_segments *x = a, *y = b;
    if (x->length != y->length)
        return x->length > y->length ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static tsr_status meet_piece(relabel *r, int dim, const int64_t *coordinate)
{
    meeting *m = &r->meetings[dim][tsr_cut_key(r->src, dim, coordinate)];
    if (m->heaviest)
        return TSR_OK;
    TSR_TRY(tsr_overlap_build(&m->overlap, &r->meter, r->src, coordinate, r->dst, dim));
    void *memory;
    TSR_TRY(tsr_allocate_array(r->src->context, m->overlap.group_count, sizeof *m->heaviest, &memory));
    m->heaviest = memory;
    if (m->overlap.group_count > 0)
        memcpy(m->heaviest, m->overlap.groups, m->overlap.group_count * sizeof *m->heaviest);
    tsr_sort_array(m->heaviest, m->overlap.group_count, sizeof *m->heaviest, longest_first, NULL);
    return TSR_OK;
}

/* Makes the meetings of every source piece that a rank of the destination's mesh holds, once for
 * each piece. */
static tsr_status meet_all(relabel *r)
{
    for (int dim = 0; dim < r->src->ndim; dim++) {
        void *memory;
        TSR_TRY(tsr_meter_take(&r->meter, tsr_cut_keys(r->src, dim)));
        TSR_TRY(tsr_allocate_array(r->src->context, (size_t)tsr_cut_keys(r->src, dim), sizeof(meeting), &memory));
        r->meetings[dim] = memory;
    }
    int64_t coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++)
        for (int dim = 0; dim < r->src->ndim && tsr_mesh_locate(r->src->mesh, r->ranks[i], coordinate); dim++)
            TSR_TRY(meet_piece(r, dim, coordinate));
    return TSR_OK;
}

static void free_meetings(relabel *r)
{
    tsr_context *context = r->src->context;
    for (int dim = 0; dim < r->src->ndim; dim++) {
        const int64_t keys = r->meetings[dim] ? tsr_cut_keys(r->src, dim) : 0;
        for (int64_t key = 0; key < keys; key++) {
            tsr_overlap_free(&r->meetings[dim][key].overlap, context);
            tsr_release(context, r->meetings[dim][key].heaviest);
        }
        tsr_release(context, r->meetings[dim]);
    }
}

/* What a rank's source piece meets along every dim; false for a rank outside the source's mesh. */
static bool meetings_of(const relabel *r, int64_t rank, const meeting **dims)
{
    int64_t coordinate[TSR_MAX_DIMS];
    if (!tsr_mesh_locate(r->src->mesh, rank, coordinate))
        return false;
    for (int dim = 0; dim < r->src->ndim; dim++)
        dims[dim] = &r->meetings[dim][tsr_cut_key(r->src, dim, coordinate)];
    return true;
}

static int64_t length_met(const tsr_overlap *overlap, int64_t key)
{
    const size_t found = tsr_overlap_find(overlap, key);
    return found < overlap->group_count && overlap->groups[found].key == key ? overlap->groups[found].length : 0;
}

/* The bytes that the source piece and the destination piece share: no more than those of the
 * tensor, which are in range. */
static int64_t bytes_met(const relabel *r, const meeting *const *dims, const int64_t *dst_coordinate)
{
    int64_t bytes = (int64_t)r->dst->element_bytes;
    for (int dim = 0; dim < r->dst->ndim && bytes > 0; dim++)
        bytes *= length_met(&dims[dim]->overlap, tsr_cut_key(r->dst, dim, dst_coordinate));
    return bytes;
}

/* The bytes that all ranks together keep on the way from the source to `dst`, which has the ranks
 * of r->dst in any order. */
static tsr_status measure_kept(const relabel *r, const tsr_layout *dst, int64_t *bytes)
{
    tsr_problem problem;
    tsr_problem_init(&problem, r->src, dst);
    count_reduced_once(&problem, dst);
    int64_t sum = 0, coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++) {
        const meeting *dims[TSR_MAX_DIMS];
        coordinate_at(dst->mesh, i, coordinate);
        if ((!problem.shortcut && !tsr_problem_has_value(&problem, coordinate)) ||
            !meetings_of(r, tsr_mesh_rank(dst->mesh, coordinate), dims))
            continue;
        if (!tsr_add_sizes(sum, bytes_met(r, dims, coordinate), &sum))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_layout_relabel: more than 2^63 - 1 bytes would be kept in all; use fewer ranks");
    }
    *bytes = sum;
    return TSR_OK;
}

/* Sets the weights of an exact assignment so that it keeps the most bytes, and among equal sums
 * leaves the most ranks in place. */
static tsr_status weigh_positions(const relabel *r, int64_t *weights)
{
    int64_t coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++) {
        const meeting *dims[TSR_MAX_DIMS];
        const bool inside = meetings_of(r, r->ranks[i], dims);
        for (int64_t position = 0; position < r->count; position++) {
            coordinate_at(r->dst->mesh, position, coordinate);
            const int64_t kept =
                inside && tsr_problem_has_value(&r->apart, coordinate) ? bytes_met(r, dims, coordinate) : 0;
            if (kept > MOST_KEPT)
                return tsr_status_set(
                    TSR_ERROR_ARGUMENT,
                    "tsr_layout_relabel: rank %lld would keep %lld bytes; at most 2^50 can be compared",
                    (long long)r->ranks[i], (long long)kept);
            weights[i * r->count + position] = kept * (r->count + 1) + (i == position);
        }
    }
    return TSR_OK;
}

static tsr_status assign_exactly(const relabel *r, int64_t *position_of)
{
    tsr_context *context = r->dst->context;
    const size_t n = (size_t)r->count;
    void *memory;
    TSR_TRY(tsr_allocate(context, (n * n + TSR_ASSIGNMENT_SCRATCH(n)) * sizeof(int64_t), &memory));
    int64_t *weights = memory;
    const tsr_status status = weigh_positions(r, weights);
    if (status == TSR_OK)
        tsr_assignment_exact(r->count, weights, weights + n * n, position_of);
    tsr_release(context, memory);
    return status;
}

/* How many pieces the destination has. They are the classes of a greedy assignment: positions that
 * hold the same piece weigh the same. */
static int64_t count_pieces(const tsr_layout *dst)
{
    int64_t pieces = 1;
    for (int dim = 0; dim < dst->ndim; dim++)
        pieces *= tsr_cut_keys(dst, dim);
    return pieces;
}

static int64_t piece_at(const relabel *r, const int64_t *coordinate)
{
    int64_t piece = 0;
    if (!tsr_problem_has_value(&r->apart, coordinate))
        return -1;
    for (int dim = 0; dim < r->dst->ndim; dim++)
        piece = piece * tsr_cut_keys(r->dst, dim) + tsr_cut_key(r->dst, dim, coordinate);
    return piece;
}

typedef struct offers {
    const relabel *r;
    tsr_offer *at;
    size_t count, capacity;
    const meeting *dims[TSR_MAX_DIMS]; /* of the rank whose offers are being made: what its source piece meets */
    int64_t own; /* of the rank whose offers are being made: the piece at its own position, or -1 */
} offers;

static tsr_status offer(offers *o, const tsr_offer *made)
{
    void *memory = o->at;
    const tsr_status status = tsr_reserve(o->r->dst->context, &memory, &o->capacity, o->count + 1, sizeof *made);
    o->at = memory;
    TSR_TRY(status);
    o->at[o->count++] = *made;
    return TSR_OK;
}

/*
 * Makes offers for the products of one group of each dim from `dim` on; `made` is the product of
 * those of the dims before. Groups come longest first, so the product of groups i, j, .. weighs no
 * more than the (i + 1) (j + 1) .. - 1 products of groups before them, and is left out if there are
 * k of these.
 */
static tsr_status offer_heaviest(offers *o, int dim, const tsr_offer *made, int64_t k)
{
    const tsr_layout *dst = o->r->dst;
    if (dim == dst->ndim)
        return made->class_of_column == o->own ? TSR_OK : offer(o, made);
    const meeting *m = o->dims[dim];
    const int64_t keys = tsr_cut_keys(dst, dim);
    for (int64_t i = 0; i < (int64_t)m->overlap.group_count && i < k; i++) {
        const tsr_segments *group = &m->heaviest[i];
        const tsr_offer next = {made->weight * group->length, made->row,
                                (int32_t)(made->class_of_column * keys + group->key)};
        TSR_TRY(offer_heaviest(o, dim + 1, &next, k / (i + 1)));
    }
    return TSR_OK;
}

/* What a rank would keep at its own position is always among its offers. */
static tsr_status offer_all(offers *o, const int32_t *class_of)
{
    const relabel *r = o->r;
    const int64_t k = tsr_max_i64(OFFERS_OF_RANK, OFFERS_IN_ALL / r->count);
    int64_t coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++) {
        if (!meetings_of(r, r->ranks[i], o->dims))
            continue;
        o->own = class_of[i];
        coordinate_at(r->dst->mesh, i, coordinate);
        const tsr_offer own = {o->own < 0 ? 0 : bytes_met(r, o->dims, coordinate), (int32_t)i, (int32_t)o->own};
        if (own.weight > 0)
            TSR_TRY(offer(o, &own));
        const tsr_offer none = {(int64_t)r->dst->element_bytes, (int32_t)i, 0};
        TSR_TRY(offer_heaviest(o, 0, &none, k));
    }
    return TSR_OK;
}

static tsr_status assign_greedily(const relabel *r, int64_t *position_of)
{
    tsr_context *context = r->dst->context;
    tsr_column_classes classes = {r->count, count_pieces(r->dst), NULL};
    offers o = {.r = r};
    void *memory;
    TSR_TRY(tsr_allocate_array(context, (size_t)r->count + TSR_GREEDY_SCRATCH(&classes), sizeof(int32_t), &memory));
    int32_t *class_of = memory;
    classes.class_of = class_of;
    int64_t coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++) {
        coordinate_at(r->dst->mesh, i, coordinate);
        class_of[i] = (int32_t)piece_at(r, coordinate);
    }
    const tsr_status status = offer_all(&o, class_of);
    if (status == TSR_OK)
        tsr_assignment_greedy(&classes, o.at, o.count, class_of + r->count, position_of);
    tsr_release(context, o.at);
    tsr_release(context, memory);
    return status;
}

static tsr_status make_layout(const tsr_layout *like, const int64_t *order, tsr_layout **out)
{
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_reorder(like->mesh, order, &mesh));
    const tsr_status status = tsr_layout_create(mesh, like->placements, like->ndim, like->shape, like->dtype, out);
    tsr_mesh_destroy(mesh);
    return status;
}

/* An order of the ranks as a layout, owned, and the bytes that it keeps. */
typedef struct choice {
    tsr_layout *layout;
    int64_t bytes;
} choice;

static tsr_status choice_make(const relabel *r, const int64_t *order, choice *out)
{
    choice made;
    TSR_TRY(make_layout(r->dst, order, &made.layout));
    const tsr_status status = measure_kept(r, made.layout, &made.bytes);
    if (status != TSR_OK) {
        tsr_layout_destroy(made.layout);
        return status;
    }
    *out = made;
    return TSR_OK;
}

/* Replaces `best` by `other` if that keeps more; destroys the layout that is left over. */
static void consider(choice *best, choice other)
{
    const bool better = other.bytes > best->bytes;
    tsr_layout_destroy(better ? best->layout : other.layout);
    if (better)
        *best = other;
}

/* The order in which dst's mesh equals the source's; false if there is none. */
static bool source_order(const relabel *r, int64_t *order)
{
    const tsr_mesh *src = r->src->mesh, *dst = r->dst->mesh;
    int dims[TSR_MAX_DIMS], count = 0, matched = 0;
    for (int i = 0; i < r->dst->mesh_ndim; i++)
        if (tsr_mesh_shape(dst)[i] > 1)
            dims[count++] = i;
    int64_t at[TSR_MAX_DIMS], coordinate[TSR_MAX_DIMS] = {0}, unused[TSR_MAX_DIMS];
    for (int i = 0; i < r->src->mesh_ndim; i++)
        if (tsr_mesh_shape(src)[i] > 1 &&
            (matched == count || tsr_mesh_shape(src)[i] != tsr_mesh_shape(dst)[dims[matched++]]))
            return false;
    if (matched < count)
        return false;
    for (int64_t i = 0; i < r->count; i++) {
        coordinate_at(dst, i, at);
        for (int j = 0, next = 0; j < r->src->mesh_ndim; j++)
            coordinate[j] = tsr_mesh_shape(src)[j] > 1 ? at[dims[next++]] : 0;
        order[i] = tsr_mesh_rank(src, coordinate);
        if (!tsr_mesh_locate(dst, order[i], unused))
            return false;
    }
    return true;
}

typedef tsr_status assign_ranks(const relabel *r, int64_t *position_of);

/* `order` and `position_of` have room for one number for each rank. */
static tsr_status choose_assigned(const relabel *r, assign_ranks *assign, int64_t *order, int64_t *position_of,
                                  choice *out)
{
    TSR_TRY(assign(r, position_of));
    for (int64_t i = 0; i < r->count; i++)
        order[position_of[i]] = r->ranks[i];
    return choice_make(r, order, out);
}

/* Replaces `best`, which is dst itself, by the order that keeps most, if that is more. */
static tsr_status choose_order(const relabel *r, int64_t *order, int64_t *position_of, choice *best,
                               tsr_relabel_report *report)
{
    choice other;
    if (source_order(r, order)) {
        TSR_TRY(choice_make(r, order, &other));
        consider(best, other);
    }
    if (r->count <= TSR_ASSIGNMENT_EXACT_RANKS) {
        TSR_TRY(choose_assigned(r, assign_exactly, order, position_of, &other));
        consider(best, other);
    }
    TSR_TRY(choose_assigned(r, assign_greedily, order, position_of, &other));
    report->bytes_kept_greedy = other.bytes;
    consider(best, other);
    return TSR_OK;
}

static int64_t count_moved(const relabel *r, const tsr_layout *layout)
{
    int64_t moved = 0, coordinate[TSR_MAX_DIMS];
    for (int64_t i = 0; i < r->count; i++) {
        coordinate_at(layout->mesh, i, coordinate);
        moved += tsr_mesh_rank(layout->mesh, coordinate) != r->ranks[i];
    }
    return moved;
}

static tsr_status relabel_layout(const relabel *r, tsr_layout **out, tsr_relabel_report *report)
{
    tsr_context *context = r->dst->context;
    tsr_relabel_report told = {.method = r->count <= TSR_ASSIGNMENT_EXACT_RANKS ? TSR_ASSIGNMENT_EXACT
                                                                                : TSR_ASSIGNMENT_GREEDY};
    void *memory;
    TSR_TRY(measure_kept(r, r->dst, &told.bytes_kept_given));
    TSR_TRY(tsr_allocate_array(context, 2 * (size_t)r->count, sizeof(int64_t), &memory));
    int64_t *order = memory;
    choice best = {tsr_layout_retain((tsr_layout *)r->dst), told.bytes_kept_given};
    const tsr_status status = choose_order(r, order, order + r->count, &best, &told);
    tsr_release(context, memory);
    if (status != TSR_OK) {
        tsr_layout_destroy(best.layout);
        return status;
    }
    told.bytes_kept = best.bytes;
    told.moved_ranks = count_moved(r, best.layout);
    *out = best.layout;
    if (report)
        *report = told;
    return TSR_OK;
}

static tsr_status check_arguments(const tsr_layout *src, const tsr_layout *dst, bool has_out)
{
    if (!src || !dst || !has_out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_relabel: %s is NULL",
                              !src   ? "src"
                              : !dst ? "dst"
                                     : "out");
    const tsr_comm *const from = tsr_mesh_comm(src->mesh), *const to = tsr_mesh_comm(dst->mesh);
    if (from && to && !tsr_comm_congruent(from, to))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_layout_relabel: the communicators differ: src is over one of %d ranks, dst over one "
                              "of %d: both meshes must "
                              "be over the same ranks in the same order, or abstract",
                              tsr_comm_size(from), tsr_comm_size(to));
    if (tsr_layout_same_tensor(src, dst))
        return TSR_OK;
    char a[512], b[512];
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_layout_relabel: from %s to %s: both must have the same global shape and dtype",
                          tsr_layout_describe(src, a, sizeof a), tsr_layout_describe(dst, b, sizeof b));
}

tsr_status tsr_layout_relabel(const tsr_layout *src, const tsr_layout *dst, tsr_layout **out,
                              tsr_relabel_report *report)
{
    TSR_TRY(check_arguments(src, dst, out != NULL));
    relabel r = {.src = src,
                 .dst = dst,
                 .count = tsr_mesh_count(dst->mesh),
                 .meter = tsr_meter_of("tsr_layout_relabel", src, dst)};
    init_apart(&r.apart, src, dst);
    tsr_status status = list_ranks(&r);
    if (status == TSR_OK)
        status = meet_all(&r);
    if (status == TSR_OK)
        status = relabel_layout(&r, out, report);
    free_meetings(&r);
    tsr_release(dst->context, r.ranks);
    return status;
}
