/* Which rank sends what, in plans without Partial: the rule for senders, compared with receivers
 * and boxes that the oracle lists. The k replicas of a source piece share its receivers, the ranks
 * that need some of it and do not own it. On one mesh no replica serves more than the k-th part of
 * them, rounded up. Between two meshes owners have turns that they do not use, so owners that need
 * some of the piece count too. */
#include "layouts.h"
#include "oracle_random.h"
#include "redistribute/schedule/plan.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 16, ELEMENTS = 1024 };

/* One pair of layouts, element by element. Rank numbers index everything. */
typedef struct pair {
    oracle_layout src, dst;
    oracle_numbers numbers;
    oracle_move move;
    int64_t elements;
    bool has[RANKS][ELEMENTS], wants[RANKS][ELEMENTS];
    int piece[RANKS];             /* the lowest rank with the same source piece; -1 outside the source mesh */
    int64_t box[RANKS][RANKS];    /* elements of the piece of one rank that another needs, and does not own */
    bool owns[RANKS][RANKS];      /* the other rank needs some and owns the piece */
    int64_t served[RANKS][RANKS]; /* elements that the plan of one sends to another */
} pair;

static int piece_of(const oracle_layout *layout, int rank)
{
    const int64_t position = oracle_mesh_position(&layout->mesh, rank);
    for (int other = 0; position >= 0 && other < rank; other++) {
        const int64_t p = oracle_mesh_position(&layout->mesh, other);
        if (p >= 0 && oracle_are_replicas(layout, p, position))
            return other;
    }
    return position >= 0 ? rank : -1;
}

static void list_boxes(pair *c)
{
    c->elements = oracle_count(&c->src);
    memset(c->has, 0, sizeof c->has);
    memset(c->wants, 0, sizeof c->wants);
    for (int r = 0; r < RANKS; r++) {
        oracle_mark(&c->src, r, c->has[r]);
        oracle_mark(&c->dst, r, c->wants[r]);
        c->piece[r] = piece_of(&c->src, r);
    }
    for (int s = 0; s < RANKS; s++)
        for (int q = 0; q < RANKS; q++) {
            int64_t wanted = 0;
            for (int64_t g = 0; g < c->elements; g++)
                wanted += c->has[s][g] && c->wants[q][g];
            c->owns[s][q] = wanted > 0 && c->piece[s] == c->piece[q];
            c->box[s][q] = c->owns[s][q] ? 0 : wanted;
        }
}

static void plan_all(pair *c)
{
    tsr_layout *src = abstract_layout(&c->src), *dst = abstract_layout(&c->dst);
    memset(c->served, 0, sizeof c->served);
    for (int r = 0; r < RANKS; r++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = r;
        tsr_plan *plan = NULL;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        const tsr_transfers *sends = &plan->items[0].sends;
        for (size_t i = 0; i < sends->count; i++)
            c->served[r][sends->at[i].peer] += sends->at[i].elements;
        tsr_plan_destroy(plan);
    }
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
}

static int count_replicas(const pair *c, int sender)
{
    int count = 0;
    for (int r = 0; r < RANKS; r++)
        count += c->piece[r] == c->piece[sender];
    return count;
}

static int count_served(const pair *c, int sender)
{
    int count = 0;
    for (int q = 0; q < RANKS; q++)
        count += c->served[sender][q] > 0;
    return count;
}

static void check_share(const pair *c, int sender)
{
    const int replicas = count_replicas(c, sender), served = count_served(c, sender);
    int receivers = 0;
    for (int q = 0; q < RANKS; q++)
        receivers += c->box[sender][q] > 0 || (!c->move.same_mesh && c->owns[sender][q]);
    const int most = (receivers + replicas - 1) / replicas;
    if (served > most)
        fail_msg("rank %d serves %d receivers; %d share them: at most %d: %s", sender, served, replicas, most,
                 test_case_text());
}

/* Every box comes once and whole from one of the ranks that have it, and nothing else is sent. */
static void check_boxes(const pair *c, int sender)
{
    for (int q = 0; q < RANKS; q++) {
        int64_t times = 0;
        for (int r = 0; r < RANKS; r++)
            times += c->piece[r] == c->piece[sender] && c->served[r][q] > 0;
        const int64_t sent = c->served[sender][q], box = c->box[sender][q];
        if ((sent != 0 && sent != box) || times != (box > 0))
            fail_msg("rank %d needs %lld elements of rank %d's piece, which sends %lld; %lld ranks send some of it: %s",
                     q, (long long)box, sender, (long long)sent, (long long)times, test_case_text());
    }
}

/* Boxes to deal out to senders, and the ranks that may send each. */
typedef struct dealing {
    int boxes;
    bool can[RANKS * RANKS][RANKS];
    int dealt[RANKS * RANKS]; /* the sender, or -1 */
    int load[RANKS];
    bool seen[RANKS];
} dealing;

/* Gives box `b` to a sender with fewer than `most` boxes. If need be, it first gives another box of
 * that sender to another one (an augmenting path). */
static bool deal(dealing *d, int b, int most)
{
    for (int s = 0; s < RANKS; s++) {
        if (!d->can[b][s] || d->seen[s])
            continue;
        d->seen[s] = true;
        bool room = d->load[s] < most;
        for (int other = 0; other < d->boxes && !room; other++)
            room = d->dealt[other] == s && deal(d, other, most);
        if (!room)
            continue;
        if (d->dealt[b] >= 0)
            d->load[d->dealt[b]]--;
        d->dealt[b] = s;
        d->load[s]++;
        return true;
    }
    return false;
}

static bool can_deal(dealing *d, int most)
{
    memset(d->load, 0, sizeof d->load);
    for (int b = 0; b < d->boxes; b++)
        d->dealt[b] = -1;
    for (int b = 0; b < d->boxes; b++) {
        memset(d->seen, 0, sizeof d->seen);
        if (!deal(d, b, most))
            return false;
    }
    return true;
}

static bool has_all(const pair *c, int rank, int sender, int receiver)
{
    for (int64_t g = 0; g < c->elements; g++)
        if (c->has[sender][g] && c->wants[receiver][g] && !c->has[rank][g])
            return false;
    return true;
}

/* False if boxes differ in size, or there are none. */
static bool list_equal_boxes(const pair *c, dealing *d)
{
    int64_t size = 0;
    d->boxes = 0;
    for (int s = 0; s < RANKS; s++)
        for (int q = 0; q < RANKS; q++) {
            if (c->piece[s] != s || c->box[s][q] == 0)
                continue;
            if (size != 0 && c->box[s][q] != size)
                return false;
            size = c->box[s][q];
            for (int r = 0; r < RANKS; r++)
                d->can[d->boxes][r] = c->piece[r] >= 0 && has_all(c, r, s, q);
            d->boxes++;
        }
    return d->boxes > 0;
}

/* The least load of the busiest sender over all ways to deal out boxes, by trying all loads. */
static void check_optimum(const pair *c)
{
    dealing d;
    if (!list_equal_boxes(c, &d))
        return;
    int most = 1, busiest = 0;
    while (!can_deal(&d, most))
        most++;
    for (int s = 0; s < RANKS; s++)
        busiest = count_served(c, s) > busiest ? count_served(c, s) : busiest;
    if (busiest > most + 1)
        fail_msg("the busiest sender sends %d boxes; %d would do: %s", busiest, most, test_case_text());
}

static void check_pair(pair *c)
{
    char mesh[300], other[300], shape[100], from[400], to[400];
    test_case("tessera plan --mesh %s --to-mesh %s --shape %s --from \"%s\" --to \"%s\"",
              oracle_print_mesh(&c->src.mesh, mesh, sizeof mesh), oracle_print_mesh(&c->dst.mesh, other, sizeof other),
              oracle_print_shape(c->src.ndim, c->src.shape, shape, sizeof(shape)),
              oracle_print_placements(c->src.placements, c->src.mesh.ndim, from, sizeof from),
              oracle_print_placements(c->dst.placements, c->dst.mesh.ndim, to, sizeof to));
    oracle_move_make(&c->src, &c->dst, &c->move);
    list_boxes(c);
    plan_all(c);
    for (int s = 0; s < RANKS; s++) {
        if (c->piece[s] < 0)
            continue;
        check_boxes(c, s);
        check_share(c, s);
    }
    check_optimum(c);
}

static void set_placements(oracle_layout *layout, int64_t number)
{
    const tsr_placement placements[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1)};
    for (int m = 0; m < layout->mesh.ndim; m++, number /= 3)
        layout->placements[m] = placements[number % 3];
}

/* Every pair of lists over {R, S(0), S(1)}. */
static void check_lists(const oracle_mesh *src, const oracle_mesh *dst, int64_t rows, int64_t columns)
{
    static pair c;
    c.src = (oracle_layout){.mesh = *src, .ndim = 2, .shape = {rows, columns}, .dtype = TSR_F32};
    c.dst = c.src;
    c.dst.mesh = *dst;
    for (int64_t from = 0; from < test_power(3, src->ndim); from++)
        for (int64_t to = 0; to < test_power(3, dst->ndim); to++) {
            set_placements(&c.src, from);
            set_placements(&c.dst, to);
            check_pair(&c);
        }
}

static void senders_share_their_receivers_on_one_mesh(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{2},    {3},    {5},    {8},    {2, 2},    {2, 3},
                                        {3, 2}, {4, 2}, {3, 3}, {4, 4}, {2, 2, 2}, {2, 3, 2}};
    static const int64_t tensors[][2] = {{12, 12}, {5, 3}, {7, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const oracle_mesh mesh = oracle_mesh_make(shapes[s][2] > 0 ? 3 : shapes[s][1] > 0 ? 2 : 1, shapes[s], 0);
        for (size_t t = 0; t < sizeof(tensors) / sizeof tensors[0]; t++)
            check_lists(&mesh, &mesh, tensors[t][0], tensors[t][1]);
    }
}

/* Meshes that are apart, shifted, grown, shrunk, or in another order. */
static void senders_share_their_receivers_between_two_meshes(void **state)
{
    (void)state;
    static const struct {
        int64_t shape[2], first;
    } pairs[][2] = {
        {{{4}, 0}, {{4}, 4}},       {{{6}, 0}, {{6}, 2}},       {{{6}, 0}, {{8}, 0}},    {{{8}, 0}, {{7}, 0}},
        {{{2, 3}, 0}, {{3, 2}, 0}}, {{{2, 4}, 0}, {{4, 2}, 3}}, {{{2, 2}, 1}, {{5}, 0}}, {{{5}, 2}, {{3, 3}, 0}},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        oracle_mesh meshes[2];
        for (int k = 0; k < 2; k++)
            meshes[k] = oracle_mesh_make(pairs[i][k].shape[1] > 0 ? 2 : 1, pairs[i][k].shape, pairs[i][k].first);
        check_lists(&meshes[0], &meshes[1], 12, 12);
        check_lists(&meshes[0], &meshes[1], 5, 3);
        for (int64_t low = 0, high = oracle_mesh_count(&meshes[1]) - 1; low < high; low++, high--) {
            const int64_t moved = meshes[1].ranks[low];
            meshes[1].ranks[low] = meshes[1].ranks[high];
            meshes[1].ranks[high] = moved;
        }
        check_lists(&meshes[0], &meshes[1], 12, 12);
    }
}

static void replicate_partials(oracle_layout *layout)
{
    for (int m = 0; m < layout->mesh.ndim; m++)
        if (layout->placements[m].kind == TSR_PARTIAL)
            layout->placements[m] = tsr_replicate();
}

/* All splits, units, blocks and orders. */
static void senders_share_their_receivers_of_random_layouts(void **state)
{
    (void)state;
    static pair c;
    const double deadline = test_now() + test_seconds(10);
    int64_t cases = 0;
    for (; test_now() < deadline; cases++) {
        oracle_random random = {.state = test_seed() * 1000003 + (uint64_t)cases};
        memset(&c, 0, sizeof c);
        c.src.dtype = TSR_F32;
        oracle_random_shape(&random, 3, 300, &c.src);
        c.src.mesh = oracle_random_mesh(&random, 4, 1 + oracle_random_below(&random, RANKS), RANKS);
        c.dst = c.src;
        if (oracle_random_below(&random, 3) == 0)
            c.dst.mesh = oracle_random_mesh(&random, 4, 1 + oracle_random_below(&random, RANKS), RANKS);
        oracle_random_placements(&random, &c.src, &c.numbers);
        oracle_random_placements(&random, &c.dst, &c.numbers);
        replicate_partials(&c.src);
        replicate_partials(&c.dst);
        check_pair(&c);
    }
    fprintf(stderr, "%lld cases\n", (long long)cases);
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senders_share_their_receivers_on_one_mesh),
        cmocka_unit_test(senders_share_their_receivers_between_two_meshes),
        cmocka_unit_test(senders_share_their_receivers_of_random_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
