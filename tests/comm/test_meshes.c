/* Meshes split off others, with communicators of their own. */
#include "comm_suite.h"
#include "lines.h"

#include <tessera/dtensor.h>
#include <tessera/mesh_comm.h>

static tsr_status check_geometry(const tsr_mesh *mesh, unsigned mask, const line *l, const tsr_mesh *sub)
{
    int64_t coordinate[TSR_MAX_DIMS], position = 0;
    int inside, at = 0;
    tsr_comm *const comm = tsr_mesh_comm(sub);
    TSR_TRY(tsr_mesh_coordinate(sub, coordinate, &inside));
    CHECK(inside && tsr_mesh_count(sub) == l->count && tsr_comm_size(comm) == l->count);
    CHECK(tsr_comm_rank(comm) == l->own && comm != tsr_mesh_comm(mesh));
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++) {
        if (!(mask & 1u << d))
            continue;
        const char *const name = tsr_mesh_name(mesh, d);
        CHECK(tsr_mesh_size(sub, at) == tsr_mesh_size(mesh, d));
        CHECK(name ? strcmp(tsr_mesh_name(sub, at), name) == 0 : !tsr_mesh_name(sub, at));
        position = position * tsr_mesh_size(sub, at) + coordinate[at];
        at++;
    }
    CHECK(at == tsr_mesh_ndim(sub) && position == l->own);
    return TSR_OK;
}

static tsr_status split_once(const tsr_mesh *mesh, unsigned mask, const char *dims, const line *l)
{
    int32_t mine = tsr_comm_rank(tsr_mesh_comm(mesh)), all[LINES_MOST_RANKS];
    tsr_mesh *sub = (tsr_mesh *)&mine;
    TSR_TRY(tsr_mesh_split(mesh, dims, &sub));
    if (l->count == 0) {
        CHECK(!sub);
        return TSR_OK;
    }
    tsr_status status = check_geometry(mesh, mask, l, sub);
    if (status == TSR_OK)
        status = tsr_comm_all_gather(tsr_mesh_comm(sub), &mine, all, 1, NULL, TSR_I32, tsr_device_host(), NULL);
    tsr_mesh_destroy(sub);
    TSR_TRY(status);
    for (int i = 0; i < l->count; i++)
        CHECK(all[i] == l->ranks[i]);
    return TSR_OK;
}

static tsr_status split_along_all(tsr_comm *comm, void *text)
{
    tsr_mesh *mesh;
    line l;
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    for (unsigned mask = 1; mask < lines_masks(mesh); mask++) {
        TSR_TRY(lines_find(mesh, mask, &l));
        TSR_TRY(split_once(mesh, mask, l.dims, &l));
    }
    TSR_TRY(split_once(mesh, lines_masks(mesh) - 1, NULL, &l));
    TSR_TRY(split_once(mesh, lines_masks(mesh) - 1, "", &l));
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void a_split_mesh_is_the_slice_over_its_own_ranks(void **state)
{
    (void)state;
    lines_run(split_along_all);
}

/* Every rank of the communicator brings a slice of its own. */
static tsr_status split_slices(tsr_comm *comm, void *text)
{
    tsr_mesh *mesh, *slice;
    line along, l;
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    for (unsigned mask = 1; mask < lines_masks(mesh); mask++) {
        int64_t sum = tsr_comm_rank(comm), wanted = 0;
        TSR_TRY(lines_find(mesh, mask, &along));
        TSR_TRY(tsr_mesh_slice(mesh, along.dims, &slice));
        TSR_TRY(lines_find(slice, lines_masks(slice) - 1, &l));
        TSR_TRY(split_once(slice, lines_masks(slice) - 1, NULL, &l));
        TSR_TRY(tsr_mesh_all_reduce_i64(slice, NULL, &sum, TSR_SUM));
        for (int i = 0; i < along.count; i++)
            wanted += along.ranks[i];
        CHECK(along.count == 0 || sum == wanted);
        tsr_mesh_destroy(slice);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void slices_of_ranks_are_taken_together(void **state)
{
    (void)state;
    lines_run(split_slices);
}

static tsr_status check_nodes(const tsr_mesh *mesh, const char *dims, int64_t each, const int64_t *node, int64_t count)
{
    tsr_mesh *sub;
    TSR_TRY(tsr_mesh_split(mesh, dims, &sub));
    const tsr_nodes nodes = tsr_mesh_nodes(sub);
    CHECK(nodes.ranks_per_node == each && nodes.count == count);
    for (int64_t i = 0; i < count; i++)
        CHECK(nodes.node[i] == node[i]);
    tsr_mesh_destroy(sub);
    return TSR_OK;
}

static tsr_status carry_nodes(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t listed[] = {7, 7, 3, 7}, wanted[] = {0, 0, 1, 0};
    const tsr_nodes pairs = {.ranks_per_node = 2}, list = {.count = 4, .node = listed}, none = {.count = 0};
    tsr_mesh *mesh, *nodes;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "a=2,b=2", &mesh));
    TSR_TRY(tsr_mesh_with_nodes(mesh, &pairs, &nodes));
    TSR_TRY(check_nodes(nodes, "a", 1, NULL, 0));
    TSR_TRY(check_nodes(nodes, "b", 2, NULL, 0));
    TSR_TRY(check_nodes(nodes, NULL, 2, NULL, 0));
    tsr_mesh_destroy(nodes);
    TSR_TRY(tsr_mesh_with_nodes(mesh, &list, &nodes));
    TSR_TRY(check_nodes(nodes, NULL, 0, wanted, 4));
    tsr_mesh_destroy(nodes);
    TSR_TRY(tsr_mesh_with_nodes(mesh, &none, &nodes));
    TSR_TRY(check_nodes(nodes, "a,b", 0, NULL, 0));
    tsr_mesh_destroy(nodes);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void nodes_come_along(void **state)
{
    (void)state;
    suite_run(4, carry_nodes, NULL);
}

/* One half makes new layouts and moves again and again, and the other half does nothing. */
static tsr_status work_in_one_half(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t shape[] = {5, 3};
    float values[15] = {0};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    tsr_mesh *mesh, *sub;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "half=2,b=2", &mesh));
    TSR_TRY(tsr_mesh_split(mesh, "b", &sub));
    tsr_mesh_destroy(mesh);
    for (int i = 0; i < 20 && status == TSR_OK && tsr_comm_rank(comm) < 2; i++) {
        static const char *const placements[] = {"R", "S(1)", "P", "S(0)"};
        tsr_dtensor *x = NULL, *y = NULL;
        int64_t sum = 1;
        status = tsr_distribute(&global, sub, "S(0)", &x);
        if (status == TSR_OK)
            status = tsr_redistribute_to(x, placements[i % 4], &y);
        if (status == TSR_OK)
            status = tsr_mesh_all_reduce_i64(sub, "b", &sum, TSR_SUM);
        if (status == TSR_OK && sum != 2)
            status = TSR_ERROR_INTERNAL;
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
    }
    tsr_mesh_destroy(sub);
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void a_split_mesh_meets_nobody_else(void **state)
{
    (void)state;
    suite_run(4, work_in_one_half, NULL);
}

static tsr_status fail_to_split(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *mesh, *abstract, *line_mesh, *sub = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "a=2,b=2", &mesh));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &line_mesh));
    TSR_TRY(tsr_mesh_parse(NULL, NULL, "a=2,b=2", &abstract));
    CHECK_ERROR(tsr_mesh_split(NULL, NULL, &sub), TSR_ERROR_ARGUMENT, "tsr_mesh_split: mesh is NULL");
    CHECK_ERROR(tsr_mesh_split(abstract, NULL, &sub), TSR_ERROR_ARGUMENT, "tsr_mesh_split: the mesh is abstract");
    for (int culprit = 0; culprit < 4; culprit++) {
        TSR_TRY(lines_check_told(comm, tsr_mesh_split(mesh, rank == culprit ? "a,z" : "b", &sub), culprit, true));
        TSR_TRY(lines_check_told(comm, tsr_mesh_split(mesh, "b", rank == culprit ? NULL : &sub), culprit, true));
    }
    CHECK_ERROR(tsr_mesh_split(mesh, rank == 1 ? "a" : "b", &sub), TSR_ERROR_ARGUMENT,
                "rank 0 calls tsr_mesh_split along \"b\" of mesh a=2,b=2, but rank 1 calls tsr_mesh_split along \"a\"");
    CHECK_ERROR(tsr_mesh_split(rank == 3 ? line_mesh : mesh, NULL, &sub), TSR_ERROR_ARGUMENT,
                "rank 0 calls tsr_mesh_split along all dims of mesh a=2,b=2, but rank 3 calls");
    CHECK(!sub);
    tsr_mesh_destroy(abstract);
    tsr_mesh_destroy(line_mesh);
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void no_rank_gets_a_mesh_if_one_fails(void **state)
{
    (void)state;
    suite_run(4, fail_to_split, NULL);
}

/* Objects over a split mesh; those from SUB on keep its communicator. */
enum { ELDER, MESH, SUB, SLICE, LAYOUT, TENSOR, OBJECTS };

typedef struct family {
    tsr_comm *elder;
    tsr_mesh *mesh, *sub, *slice;
    tsr_layout *layout;
    tsr_dtensor *x;
} family;

static tsr_status make_family(tsr_comm *comm, family *f)
{
    const int64_t shape[] = {3};
    float values[3] = {0};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 1, shape);
    TSR_TRY(tsr_comm_split(comm, 0, 0, &f->elder));
    TSR_TRY(tsr_mesh_parse(f->elder, NULL, "a=2,b=2", &f->mesh));
    TSR_TRY(tsr_mesh_split(f->mesh, "b", &f->sub));
    TSR_TRY(tsr_mesh_slice(f->sub, "b", &f->slice));
    TSR_TRY(tsr_layout_parse(f->slice, "S(0)", 1, shape, TSR_F32, &f->layout));
    return tsr_distribute(&global, f->sub, "S(0)", &f->x);
}

static void destroy_member(family *f, int member)
{
    switch (member) {
    case ELDER:
        tsr_comm_destroy(f->elder);
        break;
    case MESH:
        tsr_mesh_destroy(f->mesh);
        break;
    case SUB:
        tsr_mesh_destroy(f->sub);
        break;
    case SLICE:
        tsr_mesh_destroy(f->slice);
        break;
    case LAYOUT:
        tsr_layout_destroy(f->layout);
        break;
    default:
        tsr_dtensor_destroy(f->x);
    }
}

/* A mesh over the split communicator, of what is left; NULL: nothing is. */
static const tsr_mesh *mesh_left(const family *f, const bool *gone)
{
    if (!gone[SUB])
        return f->sub;
    if (!gone[SLICE])
        return f->slice;
    if (!gone[LAYOUT])
        return tsr_layout_mesh(f->layout);
    return gone[TENSOR] ? NULL : tsr_layout_mesh(tsr_dtensor_layout(f->x));
}

static tsr_status destroy_in_order(tsr_comm *comm, void *arg)
{
    const int first = *(const int *)arg % OBJECTS, step = *(const int *)arg < OBJECTS ? 1 : OBJECTS - 1;
    family f;
    bool gone[OBJECTS] = {false};
    TSR_TRY(make_family(comm, &f));
    for (int i = 0; i < OBJECTS; i++) {
        const int member = (first + i * step) % OBJECTS;
        const tsr_mesh *left;
        int64_t sum = 1;
        destroy_member(&f, member);
        gone[member] = true;
        left = mesh_left(&f, gone);
        if (left)
            TSR_TRY(tsr_mesh_all_reduce_i64(left, NULL, &sum, TSR_SUM));
        CHECK(!left || sum == 2);
        if (left && i % 2)
            TSR_TRY(suite_check_usable(tsr_mesh_comm(left)));
    }
    return suite_check_usable(comm);
}

static void a_split_communicator_ends_with_the_last_object_over_it(void **state)
{
    (void)state;
    for (int order = 0; order < 2 * OBJECTS; order++)
        suite_run(4, destroy_in_order, &order);
}

/* A rank that has destroyed its mesh, without waiting for anybody, is gone for its peers. */
static tsr_status destroy_alone(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh, *sub;
    int64_t n = 1;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_mesh_split(mesh, NULL, &sub));
    if (tsr_comm_rank(comm) == 0)
        tsr_mesh_destroy(sub);
    else
        CHECK_ERROR(tsr_mesh_all_reduce_i64(sub, NULL, &n, TSR_SUM), TSR_ERROR_PEER, "rank 0");
    TSR_TRY(suite_check_usable(comm));
    if (tsr_comm_rank(comm) == 1)
        tsr_mesh_destroy(sub);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_rank_destroys_its_mesh_alone(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    suite_run(2, destroy_alone, NULL);
}

int suite_meshes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_mesh_is_the_slice_over_its_own_ranks),
        cmocka_unit_test(slices_of_ranks_are_taken_together),
        cmocka_unit_test(nodes_come_along),
        cmocka_unit_test(a_split_mesh_meets_nobody_else),
        cmocka_unit_test(no_rank_gets_a_mesh_if_one_fails),
        cmocka_unit_test(a_split_communicator_ends_with_the_last_object_over_it),
        cmocka_unit_test(a_rank_destroys_its_mesh_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
