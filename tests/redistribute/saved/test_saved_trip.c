/* A loaded plan is the plan that was saved: the same bytes, figures and layouts on every rank, and
 * right results, also where other ranks have made the plan anew. */
#include "layouts.h"
#include "message_engine.h"
#include "oracle_random.h"
#include "ranks.h"
#include "saved_support.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORLD = 6, MOST_ITEMS = 3, MOST_BYTES = 1 << 16 };

static const int64_t uneven[] = {5, 5, 5, 1, 1, 1, 1, 1}, mixed[] = {0, 1, 0, 1, 2, 2, 0, 0};

static const saved_move moves[] = {
    {"8", NULL, "64x64", "S(0)", "S(1)", TSR_F32},
    {"dp=2,tp=4", NULL, "31x3", "S(0;balanced),R", "P(avg),S(1)", TSR_F64},
    {"2x2", NULL, "64", "S(0)[1],S(0)[0]", "S(0),S(0)", TSR_BF16},
    {"2x2", NULL, "192x8", "S(0;interleave=3),R", "S(0;unit=64),S(1;balanced;unit=2)", TSR_F16},
    {"4", NULL, "12x2", "S(0;blocks=6,3,3)", "S(0;sizes=0,5,7,0)", TSR_U8},
    {"2x1x3", NULL, "9", "P(max),S(0),P(max)", "R,R,S(0)", TSR_I32},
    {"2", NULL, "scalar", "P(prod)", "R", TSR_C128},
    {"2", NULL, "4x0", "S(0)", "S(1)", TSR_BOOL},
    {"6", "2x4", "1000", "S(0)", "S(0),R", TSR_I64},
    {"3@2", "3@[5,1,2]", "7", "S(0)", "S(0)", TSR_C64},
    {"a=2,b=2@[3,0,1,2]", "c=4", "8x8", "S(0),P(min)", "S(1)", TSR_F32},
    {"8", NULL, "64", "S(0)", "R", TSR_F32, {4, 0, NULL}},
    {"8", "8", "64", "S(0)", "R", TSR_F32, {4, 0, NULL}},
    {"8", NULL, "64", "S(0)", "R", TSR_F32, {0, 8, uneven}},
    {"2x4", "6@2", "64", "S(0),R", "R", TSR_F32, {0, 8, mixed}},
    {"2x2x2x2x2x2x2x2", NULL, "2x2x2x2x2x2x2x2", "S(7),S(6),S(5),S(4),S(3),S(2),S(1),S(0)", "R,R,R,R,S(0),S(0),P,P",
     TSR_F8E4M3},
};
enum { MOVES = sizeof moves / sizeof *moves };

static tsr_plan *load_for(const saved_bytes *bytes, int64_t rank)
{
    tsr_plan *plan = NULL;
    expect_ok(tsr_plan_load(NULL, bytes->at, bytes->size, rank, &plan));
    return plan;
}

static void expect_same_layout(const tsr_layout *a, const tsr_layout *b)
{
    char x[512], y[512];
    assert_true(tsr_layout_equal(a, b));
    tsr_layout_print(a, x, sizeof x);
    tsr_layout_print(b, y, sizeof y);
    assert_string_equal(x, y);
    tsr_mesh_print(tsr_layout_mesh(a), x, sizeof x);
    tsr_mesh_print(tsr_layout_mesh(b), y, sizeof y);
    assert_string_equal(x, y);
    const tsr_nodes nodes = tsr_mesh_nodes(tsr_layout_mesh(a)), others = tsr_mesh_nodes(tsr_layout_mesh(b));
    assert_int_equal(nodes.ranks_per_node, others.ranks_per_node);
    assert_int_equal(nodes.count, others.count);
    for (int64_t i = 0; i < nodes.count; i++)
        assert_int_equal(nodes.node[i], others.node[i]);
}

static void expect_same_plan(const tsr_plan *a, const tsr_plan *b)
{
    assert_int_equal(tsr_plan_count(a), tsr_plan_count(b));
    for (size_t i = 0; i < tsr_plan_count(a); i++) {
        const tsr_layout *a_src, *a_dst, *b_src, *b_dst;
        expect_ok(tsr_plan_layouts(a, i, &a_src, &a_dst));
        expect_ok(tsr_plan_layouts(b, i, &b_src, &b_dst));
        expect_same_layout(a_src, b_src);
        expect_same_layout(a_dst, b_dst);
    }
    assert_int_equal(tsr_plan_workspace_bytes(a), tsr_plan_workspace_bytes(b));
    assert_int_equal(tsr_plan_bytes_received(a), tsr_plan_bytes_received(b));
    assert_int_equal(tsr_plan_bytes_sent(a), tsr_plan_bytes_sent(b));
    assert_int_equal(tsr_plan_in_place(a), tsr_plan_in_place(b));
}

/* `bytes` are nobody's. */
static void expect_trip(const tsr_plan *plan, const saved_bytes *bytes, int64_t rank)
{
    expect_bytes(plan, bytes);
    tsr_plan *loaded = load_for(bytes, rank);
    expect_same_plan(plan, loaded);
    expect_bytes(loaded, bytes);
    tsr_plan_destroy(loaded);
}

static void every_rank_saves_the_same_bytes_and_loads_its_own_part(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOVES; i++) {
        tsr_plan *nobody = plan_of(&moves[i], NULL);
        saved_bytes bytes = bytes_of(nobody);
        expect_trip(nobody, &bytes, TSR_RANK_NONE);
        for (int64_t rank = 0; rank < 9; rank++) {
            tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
            options.rank = rank;
            tsr_plan *plan = plan_of(&moves[i], &options);
            expect_trip(plan, &bytes, rank);
            tsr_plan_destroy(plan);
        }
        bytes_free(&bytes);
        tsr_plan_destroy(nobody);
    }
}

static void every_option_comes_back(void **state)
{
    (void)state;
    const tsr_cost_profile profile = {{1e-7, 3.5e9}, {2e-6, 0x1.fffffffffffffp+30}};
    const tsr_plan_options plain = TSR_PLAN_OPTIONS_INIT;
    enum { OPTIONS = 9 };
    tsr_plan_options options[OPTIONS] = {plain, plain, plain, plain, plain, plain, plain, plain, plain};
    options[1].mode = TSR_MODE_MESSAGE;
    options[2].objective = TSR_OBJECTIVE_TIME;
    options[3].max_workspace = SIZE_MAX;
    options[4].nodes.ranks_per_node = 2;
    options[5].no_split = 1;
    options[6].reduction = TSR_REDUCTION_ANY_ORDER;
    options[7].profile = &profile;
    options[8].nodes = (tsr_nodes){0, 8, uneven};
    saved_bytes bytes[OPTIONS];
    for (int i = 0; i < OPTIONS; i++) {
        tsr_plan *plan = plan_of(&moves[0], &options[i]);
        bytes[i] = bytes_of(plan);
        expect_trip(plan, &bytes[i], TSR_RANK_NONE);
        tsr_plan_destroy(plan);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(bytes[i].at + AT_MODE, bytes[j].at + AT_MODE, AT_HASH - AT_MODE);
    }
    for (int i = 0; i < OPTIONS; i++)
        bytes_free(&bytes[i]);
}

static void tables_come_back_in_a_format_of_their_own(void **state)
{
    (void)state;
    tsr_profile *profile = NULL, *links = NULL;
    expect_ok(
        tsr_profile_parse("step=1e-7 meeting=2:1e-6,4:3e-6 copy@64=1024:1e9,65536:3e9 sum@whole=1:1e9", &profile));
    expect_ok(tsr_profile_parse("inside=1e-7,3.5e9", &links));
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.measured = profile;
    tsr_plan *plan = plan_of(&moves[0], &options), *loaded = NULL;
    saved_bytes bytes = bytes_of(plan);
    assert_int_equal(get_number(&bytes, AT_VERSION, 4), 3);
    expect_trip(plan, &bytes, TSR_RANK_NONE);
    tsr_plan_destroy(plan);
    options.measured = links;
    plan = plan_of(&moves[0], &options);
    saved_bytes plain = bytes_of(plan);
    assert_int_equal(get_number(&plain, AT_VERSION, 4), 2);
    tsr_plan_destroy(plan);
    /* Other text for the same, no tables at all, and none where the format says some. */
    for (size_t at = AT_HASH; bytes.at[at] != 0; at++) {
        saved_bytes other = bytes_copy(&bytes);
        other.at[at] ^= 1;
        seal(&other);
        assert_int_not_equal(tsr_plan_load(NULL, other.at, other.size, 0, &loaded), TSR_OK);
        bytes_free(&other);
    }
    put_number(&plain, AT_VERSION, 4, 3);
    seal(&plain);
    assert_int_not_equal(tsr_plan_load(NULL, plain.at, plain.size, 0, &loaded), TSR_OK);
    bytes_free(&plain);
    bytes_free(&bytes);
    tsr_profile_destroy(profile);
    tsr_profile_destroy(links);
}

/* Layouts that are equal may be written in several ways, but a plan is saved in one way. */
static void spelling_leaves_no_trace(void **state)
{
    (void)state;
    const saved_move plain = {"2x2", NULL, "8", "S(0)[1],S(0)[0]", "S(0),R", TSR_F32};
    const saved_move other = {"2x2@0", NULL, "8", "S(0)[7],S(0;interleave=1)[2]", "S(0;unit=1)[3],R", TSR_F32};
    tsr_plan *a = plan_of(&plain, NULL), *b = plan_of(&other, NULL);
    saved_bytes bytes = bytes_of(a);
    expect_bytes(b, &bytes);
    bytes_free(&bytes);
    tsr_plan_destroy(a);
    tsr_plan_destroy(b);
}

static void a_short_buffer_is_filled_and_the_whole_length_told(void **state)
{
    (void)state;
    tsr_plan *plan = plan_of(&moves[1], NULL);
    saved_bytes bytes = bytes_of(plan);
    for (size_t capacity = 0; capacity <= bytes.size; capacity++) {
        unsigned char buffer[1024];
        size_t size = 0;
        memset(buffer, 0xa5, sizeof buffer);
        test_case("a buffer of %zu bytes", capacity);
        expect_ok(tsr_plan_save(plan, buffer, capacity, &size));
        assert_int_equal(size, bytes.size);
        assert_memory_equal(buffer, bytes.at, capacity);
        assert_int_equal(buffer[capacity], 0xa5);
    }
    bytes_free(&bytes);
    tsr_plan_destroy(plan);
}

/* A slice too, whose ranks are regular, though not 0, 1, 2, .. */
static void saved_bytes_do_not_grow_with_the_ranks(void **state)
{
    (void)state;
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        const int64_t shape[] = {64}, side = i == 0 ? 2 : 1024, mesh_shape[] = {side, side, side};
        tsr_mesh *mesh = NULL, *slice = NULL;
        tsr_layout *src = NULL, *dst = NULL;
        tsr_plan *plan = NULL;
        expect_ok(tsr_mesh_create_abstract(NULL, 3, mesh_shape, NULL, NULL, &mesh));
        expect_ok(tsr_mesh_slice(mesh, "0,2", &slice));
        expect_ok(tsr_layout_parse(slice, "S(0),R", 1, shape, TSR_F32, &src));
        expect_ok(tsr_layout_parse(slice, "R,S(0)", 1, shape, TSR_F32, &dst));
        expect_ok(tsr_plan_create(src, dst, NULL, &plan));
        saved_bytes bytes = bytes_of(plan);
        tsr_plan *loaded = load_for(&bytes, TSR_RANK_NONE);
        assert_true(tsr_mesh_equal(tsr_layout_mesh(tsr_plan_source(loaded)), slice));
        sizes[i] = bytes.size;
        bytes_free(&bytes);
        tsr_plan_destroy(loaded);
        tsr_plan_destroy(plan);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
        tsr_mesh_destroy(slice);
        tsr_mesh_destroy(mesh);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_true(sizes[0] <= 300);
}

/* Otherwise a model's thousand parameters would hold a thousand lists of ranks. */
static void a_mesh_of_many_items_is_saved_once(void **state)
{
    (void)state;
    const saved_move listed = {"2x2@[3,0,1,2]", NULL, "8", "S(0),R", "R,S(0)", TSR_F32};
    tsr_plan *one = plan_of(&listed, NULL), *other = plan_of(&moves[9], NULL), *batch = NULL;
    const tsr_layout *const src[] = {tsr_plan_source(one), tsr_plan_source(other), tsr_plan_destination(one)};
    const tsr_layout *const dst[] = {tsr_plan_destination(one), tsr_plan_destination(other), tsr_plan_source(one)};
    expect_ok(tsr_plan_create_batch(3, src, dst, NULL, &batch));
    saved_bytes bytes = bytes_of(batch);
    test_case("a batch of three");
    expect_trip(batch, &bytes, TSR_RANK_NONE);
    tsr_plan *loaded = load_for(&bytes, 1);
    const tsr_layout *sides[6];
    for (size_t i = 0; i < 3; i++)
        expect_ok(tsr_plan_layouts(loaded, i, &sides[2 * i], &sides[2 * i + 1]));
    for (int i = 1; i < 6; i++)
        assert_int_equal(tsr_layout_mesh(sides[i]) == tsr_layout_mesh(sides[0]), i != 2 && i != 3);
    tsr_plan_destroy(loaded);
    bytes_free(&bytes);
    tsr_plan_destroy(batch);
    tsr_plan_destroy(one);
    tsr_plan_destroy(other);
}

/* A random batch, the same on every rank that draws it from one seed. */
typedef struct batch {
    int count;
    oracle_layout src[MOST_ITEMS], dst[MOST_ITEMS];
    oracle_numbers numbers[MOST_ITEMS];
    tsr_plan_options options;
    int64_t node[WORLD]; /* that options.nodes may list */
    tsr_layout *src_layouts[MOST_ITEMS], *dst_layouts[MOST_ITEMS];
} batch;

static void draw_item(oracle_random *random, const oracle_mesh meshes[2], batch *b, int item)
{
    oracle_layout *src = &b->src[item], *dst = &b->dst[item];
    src->dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 4, 300, src);
    src->mesh = meshes[oracle_random_below(random, 2)];
    *dst = *src;
    dst->mesh = meshes[oracle_random_below(random, 2)];
    oracle_random_placements(random, src, &b->numbers[item]);
    oracle_random_placements(random, dst, &b->numbers[item]);
}

static batch *draw_batch(int64_t number)
{
    oracle_random random = {.state = test_seed() * UINT64_C(1000003) + (uint64_t)number};
    batch *b = calloc(1, sizeof *b);
    const oracle_mesh meshes[2] = {oracle_random_mesh(&random, 4, WORLD, WORLD),
                                   oracle_random_mesh(&random, 4, 4, WORLD)};
    b->count = 1 + (int)oracle_random_below(&random, MOST_ITEMS);
    for (int i = 0; i < b->count; i++)
        draw_item(&random, meshes, b, i);
    b->options = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    b->options.mode = oracle_random_below(&random, 2) ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    b->options.objective = oracle_random_below(&random, 2) ? TSR_OBJECTIVE_TIME : TSR_OBJECTIVE_BYTES;
    if (oracle_random_below(&random, 2)) {
        oracle_random_nodes(&random, WORLD, b->node);
        b->options.nodes = (tsr_nodes){0, WORLD, b->node};
    } else {
        b->options.nodes.ranks_per_node = oracle_random_below(&random, 4);
    }
    return b;
}

/* Makes the batch's layouts over `comm`, or on abstract meshes if `comm` is NULL. */
static tsr_status make_layout(tsr_comm *comm, const oracle_layout *wanted, tsr_layout **out)
{
    const oracle_mesh *m = &wanted->mesh;
    tsr_mesh *mesh = NULL;
    if (comm)
        TSR_TRY(tsr_mesh_create(comm, m->ndim, m->shape, NULL, m->ranks, &mesh));
    else
        TSR_TRY(tsr_mesh_create_abstract(NULL, m->ndim, m->shape, NULL, m->ranks, &mesh));
    const tsr_status status =
        tsr_layout_create(mesh, wanted->placements, wanted->ndim, wanted->shape, wanted->dtype, out);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status plan_batch(batch *b, tsr_comm *comm, int64_t rank, tsr_plan **out)
{
    tsr_plan_options options = b->options;
    options.rank = rank;
    for (int i = 0; i < b->count; i++) {
        TSR_TRY(make_layout(comm, &b->src[i], &b->src_layouts[i]));
        TSR_TRY(make_layout(comm, &b->dst[i], &b->dst_layouts[i]));
    }
    return tsr_plan_create_batch((size_t)b->count, (const tsr_layout *const *)b->src_layouts,
                                 (const tsr_layout *const *)b->dst_layouts, &options, out);
}

static void forget_layouts(batch *b)
{
    for (int i = 0; i < b->count; i++) {
        tsr_layout_destroy(b->src_layouts[i]);
        tsr_layout_destroy(b->dst_layouts[i]);
        b->src_layouts[i] = b->dst_layouts[i] = NULL;
    }
}

static void random_batches_come_back_on_every_rank(void **state)
{
    (void)state;
    for (int64_t number = 0; number < 300; number++) {
        batch *b = draw_batch(number);
        tsr_plan *plan = NULL;
        test_case("random batch %lld of seed %llu", (long long)number, (unsigned long long)test_seed());
        expect_ok(plan_batch(b, NULL, TSR_RANK_NONE, &plan));
        saved_bytes bytes = bytes_of(plan);
        for (int64_t rank = TSR_RANK_NONE; rank <= WORLD; rank++) {
            tsr_plan_destroy(plan);
            forget_layouts(b);
            expect_ok(plan_batch(b, NULL, rank, &plan));
            expect_trip(plan, &bytes, rank);
        }
        tsr_plan_destroy(plan);
        forget_layouts(b);
        bytes_free(&bytes);
        free(b);
    }
}

/* The contiguous tensors of a batch on one rank; outside of a mesh they have no elements. */
typedef struct tensors {
    tsr_tensor src[MOST_ITEMS], dst[MOST_ITEMS];
    unsigned char src_bytes[MOST_ITEMS][MOST_BYTES], dst_bytes[MOST_ITEMS][MOST_BYTES], wanted[MOST_ITEMS][MOST_BYTES];
    size_t dst_size[MOST_ITEMS];
} tensors;

static tsr_tensor local_tensor(const oracle_layout *layout, int64_t rank, void *memory, size_t *size)
{
    oracle_shard shard;
    oracle_shard_create(layout, rank, &shard);
    const int64_t nothing[] = {0};
    const bool inside = oracle_mesh_position(&layout->mesh, rank) >= 0;
    *size = (size_t)shard.count * oracle_bytes(layout->dtype);
    const tsr_tensor tensor = inside ? tsr_tensor_contiguous(memory, layout->dtype, shard.ndim, shard.shape)
                                     : tsr_tensor_contiguous(memory, layout->dtype, 1, nothing);
    oracle_shard_destroy(&shard);
    return tensor;
}

static void fill_tensors(const batch *b, int rank, uint64_t seed, tensors *t)
{
    for (int i = 0; i < b->count; i++) {
        oracle_move move;
        size_t size;
        t->src[i] = local_tensor(&b->src[i], rank, t->src_bytes[i], &size);
        t->dst[i] = local_tensor(&b->dst[i], rank, t->dst_bytes[i], &t->dst_size[i]);
        oracle_move_make(&b->src[i], &b->dst[i], &move);
        if (oracle_mesh_position(&b->src[i].mesh, rank) >= 0)
            oracle_fill(&move, seed, false, rank, t->src_bytes[i]);
        if (oracle_mesh_position(&b->dst[i].mesh, rank) >= 0)
            oracle_fill(&move, seed, true, rank, t->wanted[i]);
        else
            t->dst_size[i] = 0;
        memset(t->dst_bytes[i], 0xee, t->dst_size[i]);
    }
}

/* Saves `plan` and loads it for this rank. */
static tsr_status reload(const tsr_plan *plan, int64_t rank, tsr_plan **out)
{
    unsigned char buffer[8192];
    size_t size;
    TSR_TRY(tsr_plan_save(plan, buffer, sizeof buffer, &size));
    CHECK(size <= sizeof buffer);
    return tsr_plan_load(NULL, buffer, size, rank, out);
}

static tsr_status execute(const tsr_plan *plan, tsr_comm *comm, const batch *b, tensors *t, uint64_t seed)
{
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    void *workspace = NULL;
    TSR_TRY(tsr_plan_prepare(plan, comm));
    TSR_TRY(tsr_comm_alloc(comm, bytes, &workspace));
    fill_tensors(b, tsr_comm_rank(comm), seed, t);
    const tsr_status status = tsr_plan_execute(plan, comm, t->src, t->dst, workspace, bytes, NULL);
    tsr_comm_free(comm, workspace, bytes);
    TSR_TRY(status);
    for (int i = 0; i < b->count; i++)
        if (memcmp(t->dst_bytes[i], t->wanted[i], t->dst_size[i]) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "seed %llu: item %d is not what the oracle says",
                                  (unsigned long long)seed, i);
    return TSR_OK;
}

/* Some ranks have loaded plans, others have made theirs. Preparing compares the plans, and the
 * results must be right. */
static tsr_status run_batch(tsr_comm *comm, int64_t number, tensors *t)
{
    const int rank = tsr_comm_rank(comm);
    batch *b = draw_batch(number);
    tsr_plan *made = NULL, *loaded = NULL;
    tsr_status status = plan_batch(b, comm, TSR_RANK_DEFAULT, &made);
    if (status == TSR_OK)
        status = reload(made, rank, &loaded);
    if (status == TSR_OK)
        status = execute((number + rank) % 3 > 0 ? loaded : made, comm, b, t, (uint64_t)number + 1);
    tsr_plan_destroy(loaded);
    tsr_plan_destroy(made);
    forget_layouts(b);
    free(b);
    return status;
}

static tsr_status run_batches(tsr_comm *comm, void *over_messages)
{
    tensors *t = malloc(sizeof *t);
    tsr_comm *messages = NULL;
    tsr_status status = over_messages ? message_engine_create(comm, NULL, &messages) : TSR_OK;
    for (int64_t number = 0; status == TSR_OK && number < 120; number++) {
        if (tsr_comm_rank(comm) == 0)
            test_case("random batch %lld of seed %llu, executed", (long long)number, (unsigned long long)test_seed());
        status = run_batch(messages ? messages : comm, number, t);
    }
    tsr_comm_destroy(messages);
    free(t);
    return status;
}

static void loaded_plans_execute_next_to_plans_made_on_the_spot(void **state)
{
    (void)state;
    test_seed();
    run_ranks(WORLD, run_batches, NULL);
}

/* The engine chose the mode. Made and loaded plans have the same mode, or preparing would refuse
 * them. */
static void plans_of_an_engine_that_only_has_messages_come_back_in_message_mode(void **state)
{
    (void)state;
    int over_messages = 1;
    run_ranks(WORLD, run_batches, &over_messages);
}

static tsr_status save_direct_plan(tsr_comm *carrier, void *unused)
{
    (void)unused;
    tsr_comm *comm = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    TSR_TRY(message_engine_create(carrier, NULL, &comm));
    TSR_TRY(layout_over(comm, "2", "4x4", "S(0)", TSR_F32, &src));
    TSR_TRY(layout_over(comm, "2", "4x4", "S(1)", TSR_F32, &dst));
    TSR_TRY(tsr_plan_create(src, dst, NULL, &plan));
    unsigned char buffer[1024];
    size_t size;
    TSR_TRY(tsr_plan_save(plan, buffer, sizeof buffer, &size));
    CHECK(buffer[AT_MODE] == TSR_MODE_MESSAGE);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void the_mode_that_was_picked_is_saved(void **state)
{
    (void)state;
    run_ranks(2, save_direct_plan, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_saves_the_same_bytes_and_loads_its_own_part),
        cmocka_unit_test(every_option_comes_back),
        cmocka_unit_test(tables_come_back_in_a_format_of_their_own),
        cmocka_unit_test(spelling_leaves_no_trace),
        cmocka_unit_test(a_short_buffer_is_filled_and_the_whole_length_told),
        cmocka_unit_test(saved_bytes_do_not_grow_with_the_ranks),
        cmocka_unit_test(a_mesh_of_many_items_is_saved_once),
        cmocka_unit_test(random_batches_come_back_on_every_rank),
        cmocka_unit_test(loaded_plans_execute_next_to_plans_made_on_the_spot),
        cmocka_unit_test(plans_of_an_engine_that_only_has_messages_come_back_in_message_mode),
        cmocka_unit_test(the_mode_that_was_picked_is_saved),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
