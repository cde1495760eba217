#include "counted_memory.h"
#include "mesh/mesh.h"
#include "mesh_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORLD 300

static void accessors_say_what_create_was_given(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    const int64_t shape[] = {2, 4};
    const char *const names[] = {"dp", "tp"};
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_create_abstract(context, 2, shape, names, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_ndim(mesh), 2);
    assert_int_equal(tsr_mesh_size(mesh, 1), 4);
    assert_int_equal(tsr_mesh_size(mesh, 2), 0);
    assert_int_equal(tsr_mesh_size(mesh, -1), 0);
    assert_int_equal(tsr_mesh_count(mesh), 8);
    assert_string_equal(tsr_mesh_name(mesh, 0), "dp");
    assert_string_equal(tsr_mesh_name(mesh, 1), "tp");
    assert_null(tsr_mesh_name(mesh, 2));
    assert_null(tsr_mesh_comm(mesh));
    assert_ptr_equal(tsr_mesh_context(mesh), context);
    int dim = 7;
    assert_int_equal(tsr_mesh_find(mesh, "tp", &dim), TSR_OK);
    assert_int_equal(dim, 1);
    assert_int_equal(tsr_mesh_find(mesh, "pp", &dim), TSR_ERROR_ARGUMENT);
    assert_int_equal(dim, 1);
    assert_non_null(strstr(tsr_status_message(), "dp, tp"));
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void every_random_mesh_is_the_list_that_it_was_made_from(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        random_state random = {seed};
        const mesh_model model = random_model(&random, WORLD);
        tsr_mesh *mesh = mesh_of(&model, NULL, NULL, false);
        assert_mesh_is(mesh, &model, WORLD, seed);
        tsr_mesh_destroy(mesh);
    }
}

static void every_random_mesh_knows_the_next_of_its_ranks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        random_state random = {seed};
        bool inside[WORLD] = {false};
        const mesh_model model = random_model(&random, WORLD);
        tsr_mesh *mesh = mesh_of(&model, NULL, NULL, false);
        int64_t next = INT64_MAX;
        for (int64_t i = 0; i < model.count; i++)
            inside[model.ranks[i]] = true;
        for (int64_t rank = WORLD - 1; rank >= 0; rank--) {
            next = inside[rank] ? rank : next;
            if (tsr_grid_from(tsr_mesh_grid(mesh), rank) != next)
                fail_msg("seed %llu: from %lld on it is not %lld", (unsigned long long)seed, (long long)rank,
                         (long long)next);
        }
        tsr_mesh_destroy(mesh);
    }
}

/* Equality by its definition: equal sizes, without those of 1, and equal lists of ranks. */
static bool models_equal(const mesh_model *a, const mesh_model *b)
{
    int64_t shapes[2][TSR_MAX_DIMS];
    int counts[2] = {0, 0};
    const mesh_model *const both[] = {a, b};
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < both[i]->ndim; d++)
            if (both[i]->shape[d] > 1)
                shapes[i][counts[i]++] = both[i]->shape[d];
    return counts[0] == counts[1] && memcmp(shapes[0], shapes[1], (size_t)counts[0] * sizeof(int64_t)) == 0 &&
           memcmp(a->ranks, b->ranks, (size_t)a->count * sizeof(int64_t)) == 0;
}

static void meshes_are_equal_exactly_where_their_lists_are_and_then_hash_alike(void **state)
{
    (void)state;
    enum { DRAWN = 300 };
    static mesh_model models[DRAWN];
    tsr_mesh *meshes[DRAWN];
    int equal_pairs = 0;
    for (int i = 0; i < DRAWN; i++) {
        random_state random = {(uint64_t)i};
        models[i] = random_model(&random, 256);
        meshes[i] = mesh_of(&models[i], NULL, NULL, i % 2);
    }
    for (int i = 0; i < DRAWN; i++) {
        for (int j = 0; j < DRAWN; j++) {
            const bool equal = models_equal(&models[i], &models[j]);
            equal_pairs += equal && i != j;
            if (tsr_mesh_equal(meshes[i], meshes[j]) != equal)
                fail_msg("%s and %s: equal should be %d", text_of(meshes[i]), text_of(meshes[j]), equal);
            if (equal)
                assert_true(tsr_mesh_hash(meshes[i]) == tsr_mesh_hash(meshes[j]));
        }
    }
    assert_true(equal_pairs > 0);
    for (int i = 0; i < DRAWN; i++)
        tsr_mesh_destroy(meshes[i]);
}

static void different_meshes_rarely_hash_alike(void **state)
{
    (void)state;
    const char *const texts[] = {
        "8", "2x4", "4x2", "2x2x2", "8@1", "8@[0,2,1,3,4,5,6,7]", "8@[7,6,5,4,3,2,1,0]", "2x4@[0,2,4,6,1,3,5,7]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t j = 0; j < i; j++) {
            tsr_mesh *a = parsed(texts[i]), *b = parsed(texts[j]);
            assert_true(tsr_mesh_hash(a) != tsr_mesh_hash(b));
            assert_false(tsr_mesh_equal(a, b));
            tsr_mesh_destroy(a);
            tsr_mesh_destroy(b);
        }
    }
}

static void dims_of_size_one_do_not_tell_meshes_apart(void **state)
{
    (void)state;
    const char *const equal[][2] = {
        {"2x4", "2x1x4"}, {"1x1", "1"}, {"dp=2,tp=4", "2x4x1"}, {"1x4@[3,1,0,2]", "4x1@[3,1,0,2]"}, {"1@5", "1x1x1@5"}};
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        tsr_mesh *a = parsed(equal[i][0]), *b = parsed(equal[i][1]);
        assert_true(tsr_mesh_equal(a, b));
        assert_true(tsr_mesh_hash(a) == tsr_mesh_hash(b));
        tsr_mesh_destroy(a);
        tsr_mesh_destroy(b);
    }
}

static void a_regular_mesh_of_any_size_takes_the_same_memory(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    const int64_t shapes[][3] = {{1, 1, 1}, {2, 2, 2}, {1024, 1024, 1024}, {1, 1, INT32_MAX}};
    size_t bytes[4];
    for (int i = 0; i < 4; i++) {
        tsr_mesh *mesh = NULL;
        const size_t before = memory.live_bytes;
        assert_int_equal(tsr_mesh_create_abstract(context, 3, shapes[i], NULL, NULL, &mesh), TSR_OK);
        bytes[i] = memory.live_bytes - before;
        assert_int_equal(bytes[i], bytes[0]);
        tsr_mesh_destroy(mesh);
    }
    const int64_t square[] = {16, 16};
    int64_t transposed[256];
    for (int64_t i = 0; i < 256; i++)
        transposed[i] = i % 16 * 16 + i / 16;
    tsr_mesh *mesh = NULL;
    const size_t before = memory.live_bytes;
    assert_int_equal(tsr_mesh_create_abstract(context, 2, square, NULL, transposed, &mesh), TSR_OK);
    assert_int_equal(memory.live_bytes - before, bytes[0]);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void the_largest_meshes_find_their_corners(void **state)
{
    (void)state;
    const int64_t shape[] = {1 << 10, 1, 1 << 10, 1 << 10};
    const int64_t corners[][4] = {{0, 0, 0, 0}, {1023, 0, 1023, 1023}, {1, 0, 2, 3}, {1023, 0, 0, 0}};
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_create_abstract(NULL, 4, shape, NULL, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_count(mesh), INT64_C(1) << 30);
    for (int i = 0; i < 4; i++) {
        int64_t rank = -1, found[4];
        int inside = 0;
        assert_int_equal(tsr_mesh_rank_at(mesh, corners[i], &rank), TSR_OK);
        assert_int_equal(rank, (corners[i][0] << 20) + (corners[i][2] << 10) + corners[i][3]);
        assert_int_equal(tsr_mesh_coordinate_of(mesh, rank, found, &inside), TSR_OK);
        assert_true(inside);
        assert_memory_equal(found, corners[i], sizeof found);
    }
    tsr_mesh_destroy(mesh);
}

static void a_rank_outside_leaves_the_coordinate_alone(void **state)
{
    (void)state;
    tsr_mesh *const meshes[] = {parsed("2x2@4"), parsed("2x2@[9,4,7,5]"), parsed("2x2@[4,6,7,9]"),
                                parsed("2x2@[12,8,11,7]")};
    const int64_t outside[] = {-1, INT64_MIN, 0, 3, 10, INT64_MAX};
    for (size_t m = 0; m < 4; m++) {
        for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
            int64_t coordinate[2] = {77, 78};
            int inside = 1;
            assert_int_equal(tsr_mesh_coordinate_of(meshes[m], outside[i], coordinate, &inside), TSR_OK);
            assert_int_equal(inside, 0);
            assert_int_equal(coordinate[0], 77);
            assert_int_equal(coordinate[1], 78);
        }
        tsr_mesh_destroy(meshes[m]);
    }
}

static void a_mesh_over_a_communicator_knows_its_own_coordinate(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    const int64_t shape[] = {2, 2}, ranks[] = {3, 1, 0, 5};
    for (int rank = 0; rank < 6; rank++) {
        tsr_comm comm = {rank, 6, context};
        tsr_mesh *mesh = NULL;
        int64_t coordinate[2] = {7, 7};
        int inside = -1;
        assert_int_equal(tsr_mesh_create(&comm, 2, shape, NULL, ranks, &mesh), TSR_OK);
        assert_ptr_equal(tsr_mesh_comm(mesh), &comm);
        assert_int_equal(tsr_mesh_coordinate(mesh, coordinate, &inside), TSR_OK);
        assert_int_equal(inside, rank != 2 && rank != 4);
        if (inside)
            assert_int_equal(ranks[coordinate[0] * 2 + coordinate[1]], rank);
        else
            assert_int_equal(coordinate[0], 7);
        tsr_mesh_destroy(mesh);
    }
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
    tsr_mesh *abstract = parsed("4");
    int64_t coordinate = 7;
    int inside = 1;
    assert_int_equal(tsr_mesh_coordinate(abstract, &coordinate, &inside), TSR_OK);
    assert_int_equal(inside, 0);
    tsr_mesh_destroy(abstract);
}

static void note_destroyed(void *data)
{
    ++*(int *)data;
}

static void slots_go_with_the_last_reference(void **state)
{
    (void)state;
    int destroyed = 0, replaced = 0, other = 0;
    tsr_mesh *mesh = parsed("4");
    assert_null(tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_PLANS));
    tsr_mesh_slot_set(mesh, TSR_MESH_SLOT_PLANS, &replaced, note_destroyed);
    tsr_mesh_slot_set(mesh, TSR_MESH_SLOT_PLANS, &destroyed, note_destroyed);
    assert_ptr_equal(tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_PLANS), &destroyed);
    assert_null(tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_GROUPS));
    tsr_mesh_slot_set(mesh, TSR_MESH_SLOT_GROUPS, &other, note_destroyed);
    assert_ptr_equal(tsr_mesh_retain(mesh), mesh);
    tsr_mesh_destroy(mesh);
    assert_int_equal(destroyed, 0);
    tsr_mesh_destroy(mesh);
    assert_int_equal(destroyed, 1);
    assert_int_equal(other, 1);
    assert_int_equal(replaced, 0);
    tsr_mesh_destroy(NULL);
    assert_null(tsr_mesh_retain(NULL));
}

/* What a create call refuses, and what the sentence then says. */
typedef struct refusal {
    int ndim;
    int64_t shape[9];
    const char *names[2];
    int64_t ranks[4];
    const char *says;
} refusal;

static const refusal refusals[] = {
    {0, {1}, {0}, {-9}, "ndim is 0; a mesh has 1 to 8 dims"},
    {-1, {1}, {0}, {-9}, "ndim is -1"},
    {9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {0}, {-9}, "ndim is 9"},
    {2, {2, 0}, {0}, {-9}, "shape[1] is 0; a mesh dim has at least 1 rank"},
    {2, {-2, -2}, {0}, {-9}, "shape[0] is -2"},
    {2, {2, INT64_MAX}, {0}, {-9}, "up to shape[1] = 9223372036854775807 there are more ranks"},
    {2, {1, 1}, {"dp", NULL}, {-9}, "names[1] is NULL"},
    {2, {1, 1}, {"dp", "dp"}, {-9}, "dims 0 and 1 would both be called \"dp\""},
    {2, {1, 1}, {"", "dp"}, {-9}, "names[0] is \"\""},
    {2, {1, 1}, {"dp", "2d"}, {-9}, "names[1] is \"2d\""},
    {2, {1, 1}, {"d-p", "x"}, {-9}, "names[0] is \"d-p\""},
    {2, {2, 2}, {0}, {0, 1, 1, 2}, "ranks[1] and ranks[2] are both 1"},
    {2, {2, 2}, {0}, {5, 5, 5, 5}, "are both 5"},
    {2, {2, 2}, {0}, {0, 1, -1, 2}, "ranks[2] is -1"},
    {1, {1}, {0}, {INT32_MAX}, "ranks[0] is 2147483647"},
};

static void bad_arguments_are_refused_by_name_and_value(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_comm comm = {0, 8, context};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *bad = &refusals[i];
        const char *const *names = bad->names[0] ? bad->names : NULL;
        const int64_t *ranks = bad->ranks[0] != -9 ? bad->ranks : NULL;
        for (int over_comm = 0; over_comm < 2; over_comm++) {
            tsr_mesh *mesh = NULL;
            const tsr_status status =
                over_comm ? tsr_mesh_create(&comm, bad->ndim, bad->shape, names, ranks, &mesh)
                          : tsr_mesh_create_abstract(context, bad->ndim, bad->shape, names, ranks, &mesh);
            if (status != TSR_ERROR_ARGUMENT || mesh || !strstr(tsr_status_message(), bad->says))
                fail_msg("case %zu: status %s, \"%s\" does not say \"%s\"", i, tsr_status_name(status),
                         tsr_status_message(), bad->says);
        }
    }
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void a_mesh_must_fit_its_communicator(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_comm comm = {0, 6, context};
    const int64_t shape[] = {2, 4}, pair[] = {2}, ranks[] = {0, 6};
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_create(&comm, 2, shape, NULL, NULL, &mesh), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "more ranks than the 6 that the communicator has"));
    assert_int_equal(tsr_mesh_create(&comm, 1, pair, NULL, ranks, &mesh), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "ranks[1] is 6, not 0 to 5"));
    const int64_t large[] = {1 << 16, 1 << 15};
    assert_int_equal(tsr_mesh_create_abstract(context, 2, large, NULL, NULL, &mesh), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "2147483647 that an abstract mesh can have"));
    assert_null(mesh);
    tsr_context_destroy(context);
}

static void a_mesh_knows_the_nodes_of_its_communicator(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    const int node[] = {7, 7, 7, 7, 2, 2, 2, 2};
    tsr_comm comm = {0, 8, context, node};
    const int64_t shape[] = {2, 2};
    tsr_mesh *mesh = NULL, *slice = NULL, *other = NULL;
    assert_int_equal(tsr_mesh_create(&comm, 2, shape, (const char *const[]){"a", "b"}, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_slice(mesh, "b", &slice), TSR_OK);
    assert_int_equal(tsr_mesh_with_nodes(mesh, NULL, &other), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(mesh).ranks_per_node, 4);
    assert_int_equal(tsr_mesh_nodes(slice).ranks_per_node, 4);
    assert_int_equal(tsr_mesh_nodes(other).ranks_per_node, 0);
    tsr_mesh_destroy(other);
    tsr_mesh_destroy(slice);
    tsr_mesh_destroy(mesh);
    const int uneven[] = {0, 0, 0, 3, 3, 3, 3, 3};
    comm.node = uneven;
    assert_int_equal(tsr_mesh_create(&comm, 2, shape, NULL, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(mesh).count, 8);
    assert_int_equal(tsr_mesh_nodes(mesh).node[2], 0);
    assert_int_equal(tsr_mesh_nodes(mesh).node[3], 1);
    tsr_mesh_destroy(mesh);
    const int one[] = {4, 4, 4, 4, 4, 4, 4, 4};
    comm.node = one;
    assert_int_equal(tsr_mesh_create(&comm, 2, shape, NULL, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(mesh).count, 0);
    assert_int_equal(tsr_mesh_nodes(mesh).ranks_per_node, 0);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void null_is_refused(void **state)
{
    (void)state;
    const int64_t shape[] = {2};
    int64_t number = 0;
    int inside = 0;
    tsr_mesh *mesh = parsed("2"), *out = NULL;
    assert_int_equal(tsr_mesh_create(NULL, 1, shape, NULL, NULL, &out), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_create_abstract(NULL, 1, NULL, NULL, NULL, &out), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_create_abstract(NULL, 1, shape, NULL, NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_find(mesh, NULL, &inside), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_rank_at(mesh, NULL, &number), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_rank_at(NULL, &number, &number), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_coordinate_of(mesh, 0, NULL, &inside), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_coordinate(mesh, &number, NULL), TSR_ERROR_ARGUMENT);
    assert_null(out);
    tsr_mesh_destroy(mesh);
}

static void a_coordinate_out_of_range_is_refused(void **state)
{
    (void)state;
    tsr_mesh *mesh = parsed("2x3");
    const int64_t bad[][2] = {{2, 0}, {0, 3}, {-1, 0}, {0, INT64_MIN}};
    for (int i = 0; i < 4; i++) {
        int64_t rank = 7;
        assert_int_equal(tsr_mesh_rank_at(mesh, bad[i], &rank), TSR_ERROR_ARGUMENT);
        assert_int_equal(rank, 7);
    }
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accessors_say_what_create_was_given),
        cmocka_unit_test(every_random_mesh_is_the_list_that_it_was_made_from),
        cmocka_unit_test(every_random_mesh_knows_the_next_of_its_ranks),
        cmocka_unit_test(meshes_are_equal_exactly_where_their_lists_are_and_then_hash_alike),
        cmocka_unit_test(different_meshes_rarely_hash_alike),
        cmocka_unit_test(dims_of_size_one_do_not_tell_meshes_apart),
        cmocka_unit_test(a_regular_mesh_of_any_size_takes_the_same_memory),
        cmocka_unit_test(the_largest_meshes_find_their_corners),
        cmocka_unit_test(a_rank_outside_leaves_the_coordinate_alone),
        cmocka_unit_test(a_mesh_over_a_communicator_knows_its_own_coordinate),
        cmocka_unit_test(slots_go_with_the_last_reference),
        cmocka_unit_test(bad_arguments_are_refused_by_name_and_value),
        cmocka_unit_test(a_mesh_must_fit_its_communicator),
        cmocka_unit_test(a_mesh_knows_the_nodes_of_its_communicator),
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(a_coordinate_out_of_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
