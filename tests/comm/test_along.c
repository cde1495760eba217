/* Collectives along mesh dims, against what one thread computes from all ranks' inputs. */
#include "comm_suite.h"
#include "lines.h"
#include "reference.h"

#include <tessera/mesh_comm.h>

enum { COUNT = 7, MOST = COUNT * LINES_MOST_RANKS };

/* After their first call, calls along a dim meet the ranks along it alone. */
static tsr_status call_in_one_half(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh;
    int64_t sum = 1;
    double most = tsr_comm_rank(comm);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "a=2,b=2", &mesh));
    TSR_TRY(tsr_mesh_all_reduce_i64(mesh, "b", &sum, TSR_SUM));
    for (int i = 0; i < 50 && tsr_comm_rank(comm) < 2; i++)
        TSR_TRY(tsr_mesh_all_reduce_f64(mesh, "b", &most, TSR_MAX));
    CHECK(sum == 2 && most == (tsr_comm_rank(comm) < 2 ? 1 : tsr_comm_rank(comm)));
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void later_calls_meet_the_ranks_along_their_dims_alone(void **state)
{
    (void)state;
    suite_run(4, call_in_one_half, NULL);
}

/* Numbers of many magnitudes, so that a sum in another order differs. */
static float value_of(int rank, int i)
{
    static const float values[] = {1e8f, 1.25f, -1e8f, 3e-3f, 7.0f, -1e4f, 0.1f, 2e7f, -3.5f, 1e-6f, 33.0f};
    return values[(rank * 5 + i * 3) % 11];
}

static float sum_of(const line *l, int i)
{
    float values[LINES_MOST_RANKS], sum;
    const void *terms[LINES_MOST_RANKS];
    for (int k = 0; k < l->count; k++) {
        values[k] = value_of(l->ranks[k], i);
        terms[k] = &values[k];
    }
    reference_reduce(TSR_F32, TSR_SUM, 1, terms, l->count, &sum);
    return sum;
}

static bool is_same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* How many elements of a gather rank `position` has. */
static int64_t part_of(int position)
{
    return (position * 2 + 1) % 4;
}

static tsr_status reduce_along(const tsr_mesh *mesh, const line *l, const char *dims)
{
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    const tsr_device host = tsr_device_host();
    float send[MOST], receive[MOST], part[MOST];
    int64_t counts[LINES_MOST_RANKS] = {0};
    int total = 0, offset = 0;
    for (int k = 0; k < l->count; total += (int)counts[k++]) {
        counts[k] = part_of(k);
        offset += k < l->own ? (int)counts[k] : 0;
    }
    for (int i = 0; i < MOST; i++)
        send[i] = receive[i] = value_of(rank, i);
    TSR_TRY(tsr_mesh_all_reduce(mesh, dims, receive, receive, COUNT, TSR_F32, TSR_SUM, host, NULL));
    TSR_TRY(tsr_mesh_reduce_scatter(mesh, dims, send, part, 0, counts, TSR_F32, TSR_SUM, host, NULL));
    for (int i = 0; i < COUNT && l->count > 0; i++)
        CHECK(is_same(receive[i], sum_of(l, i)));
    for (int i = 0; i < (int)counts[l->own] && total > 0; i++)
        CHECK(is_same(part[i], sum_of(l, offset + i)));
    return TSR_OK;
}

static tsr_status move_along(const tsr_mesh *mesh, const line *l, const char *dims)
{
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    const tsr_device host = tsr_device_host();
    int32_t send[MOST], receive[MOST];
    int64_t counts[LINES_MOST_RANKS] = {0}, sends[LINES_MOST_RANKS] = {0}, receives[LINES_MOST_RANKS] = {0};
    for (int k = 0; k < l->count; k++) {
        counts[k] = part_of(k);
        sends[k] = (2 * l->own + k) % 3;
        receives[k] = (2 * k + l->own) % 3;
    }
    for (int i = 0; i < MOST; i++)
        send[i] = rank * 1000 + i;
    TSR_TRY(tsr_mesh_all_gather(mesh, dims, send, receive, 0, counts, TSR_I32, host, NULL));
    for (int k = 0, at = 0; k < l->count; k++)
        for (int i = 0; i < (int)counts[k]; i++)
            CHECK(receive[at++] == l->ranks[k] * 1000 + i);
    TSR_TRY(tsr_mesh_all_to_all(mesh, dims, send, receive, 2, NULL, NULL, TSR_I32, host, NULL));
    for (int k = 0; k < l->count; k++)
        CHECK(receive[2 * k] == l->ranks[k] * 1000 + 2 * l->own && receive[2 * k + 1] == receive[2 * k] + 1);
    TSR_TRY(tsr_mesh_all_to_all(mesh, dims, send, receive, 0, sends, receives, TSR_I32, host, NULL));
    for (int k = 0, at = 0; k < l->count; k++) {
        int before = 0;
        for (int j = 0; j < l->own; j++)
            before += (2 * k + j) % 3;
        for (int i = 0; i < (int)receives[k]; i++)
            CHECK(receive[at++] == l->ranks[k] * 1000 + before + i);
    }
    for (int root = 0; root < l->count; root++) {
        int32_t word[2] = {rank, -rank};
        int64_t token = rank * INT64_C(3000000000);
        double step = rank + 0.5;
        TSR_TRY(tsr_mesh_broadcast(mesh, dims, word, 2, TSR_I32, root, host, NULL));
        TSR_TRY(tsr_mesh_broadcast_i64(mesh, dims, &token, root));
        TSR_TRY(tsr_mesh_broadcast_f64(mesh, dims, &step, root));
        CHECK(word[0] == l->ranks[root] && word[1] == -l->ranks[root]);
        CHECK(token == l->ranks[root] * INT64_C(3000000000) && step == l->ranks[root] + 0.5);
    }
    return TSR_OK;
}

static tsr_status call_along_all(tsr_comm *comm, void *text)
{
    tsr_mesh *mesh;
    line l;
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    for (unsigned mask = 1; mask < lines_masks(mesh); mask++) {
        TSR_TRY(lines_find(mesh, mask, &l));
        TSR_TRY(reduce_along(mesh, &l, l.dims));
        TSR_TRY(move_along(mesh, &l, l.dims));
    }
    TSR_TRY(reduce_along(mesh, &l, NULL));
    TSR_TRY(reduce_along(mesh, &l, ""));
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void collectives_go_by_coordinates_along_their_dims(void **state)
{
    (void)state;
    lines_run(call_along_all);
}

static tsr_status fail_in_collectives(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_device host = tsr_device_host();
    tsr_mesh *mesh, *abstract;
    double x[2] = {0};
    int64_t n = 1;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "a=2,b=2", &mesh));
    TSR_TRY(tsr_mesh_parse(NULL, NULL, "a=2,b=2", &abstract));
    CHECK_ERROR(tsr_mesh_all_reduce_i64(NULL, "a", &n, TSR_SUM), TSR_ERROR_ARGUMENT, "mesh is NULL");
    CHECK_ERROR(tsr_mesh_all_reduce_i64(abstract, "a", &n, TSR_SUM), TSR_ERROR_ARGUMENT, "the mesh is abstract");
    tsr_mesh_destroy(abstract);
    /* A first call: all ranks meet. */
    TSR_TRY(lines_check_told(comm, tsr_mesh_all_reduce_i64(mesh, rank == 1 ? "z" : "b", &n, TSR_SUM), 1, true));
    TSR_TRY(tsr_mesh_all_reduce_i64(mesh, "b", &n, TSR_SUM));
    CHECK(n == 2);
    /* Later calls: the ranks along the dim do. */
    for (int culprit = 0; culprit < 4; culprit++) {
        const bool meets = rank / 2 == culprit / 2, bad = rank == culprit;
        TSR_TRY(lines_check_told(comm, tsr_mesh_all_reduce(mesh, "b", x, x, bad ? -1 : 2, TSR_F64, TSR_SUM, host, NULL),
                                 culprit, meets));
        TSR_TRY(lines_check_told(comm, tsr_mesh_broadcast_i64(mesh, "b", bad ? NULL : &n, 0), culprit, meets));
    }
    CHECK_ERROR(tsr_mesh_broadcast_i64(mesh, "b", NULL, 0), TSR_ERROR_ARGUMENT, "value is NULL on rank");
    CHECK_ERROR(tsr_mesh_broadcast(mesh, "b", x, 1, TSR_F64, 2, host, NULL), TSR_ERROR_ARGUMENT,
                "root is 2; the ranks are 0 to 1");
    CHECK_ERROR(tsr_mesh_all_reduce(mesh, "b", x, x, 1 + rank % 2, TSR_F64, TSR_SUM, host, NULL), TSR_ERROR_ARGUMENT,
                rank < 2 ? "rank 0 calls all_reduce of 1 f64, op sum, on host, but rank 1 calls all_reduce of 2"
                         : "rank 2 calls all_reduce of 1 f64, op sum, on host, but rank 3 calls all_reduce of 2");
    /* Every rank makes this mistake, as none would hear of that of another. */
    CHECK_ERROR(tsr_mesh_all_reduce_i64(mesh, "b,a", &n, TSR_SUM), TSR_ERROR_ARGUMENT,
                "tsr_mesh_all_reduce_i64: dims \"b,a\"");
    TSR_TRY(tsr_mesh_all_reduce_i64(mesh, "a", &n, TSR_SUM));
    CHECK(n == 4);
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void ranks_that_meet_hear_of_a_fault(void **state)
{
    (void)state;
    suite_run(4, fail_in_collectives, NULL);
}

int suite_along(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_calls_meet_the_ranks_along_their_dims_alone),
        cmocka_unit_test(collectives_go_by_coordinates_along_their_dims),
        cmocka_unit_test(ranks_that_meet_hear_of_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
