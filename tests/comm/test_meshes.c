/* What ranks of a mesh do together: meshes split off with communicators of their own, and
 * collectives along mesh dims, against what one thread computes from all ranks' inputs. */
#include "comm_suite.h"
#include "reference.h"

#include <tessera/dtensor.h>
#include <tessera/mesh_comm.h>

#include <stdio.h>

enum { MOST_RANKS = 8, COUNT = 7, MOST = COUNT * MOST_RANKS };

/* A mesh in a communicator of `ranks` ranks. */
typedef struct situation {
    int ranks;
    const char *mesh;
} situation;

static const situation situations[] = {
    {8, "a=2,b=2,c=2"}, {8, "a=2,b=2,c=2@[5,2,7,0,3,6,1,4]"}, {8, "2x3@1"}, {5, "a=2,b=2@1"}, {4, "a=2,b=2@[3,1,0,2]"},
    {4, "a=2,b=2"},     {3, "a=1,b=2@1"},                     {3, "3"},     {2, "2@[1,0]"},  {1, "a=1,b=1"},
};
#define SITUATIONS (sizeof situations / sizeof *situations)

static void run_situations(tsr_rank_main *body)
{
    for (size_t i = 0; i < SITUATIONS; i++)
        suite_run(situations[i].ranks, body, (void *)situations[i].mesh);
}

/* The ranks along some dims through this rank, by looking at every rank of the mesh. */
typedef struct line {
    char dims[32];
    int count, own, ranks[MOST_RANKS]; /* count is 0 for a rank outside */
} line;

static tsr_status find_line(const tsr_mesh *mesh, unsigned mask, line *out)
{
    int64_t mine[TSR_MAX_DIMS], theirs[TSR_MAX_DIMS];
    const int ndim = tsr_mesh_ndim(mesh), rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    int inside, outside = 0;
    *out = (line){.count = 0};
    for (int d = 0, at = 0; d < ndim; d++)
        if (mask & 1u << d && tsr_mesh_name(mesh, d))
            at += sprintf(out->dims + at, "%s%s", at ? "," : "", tsr_mesh_name(mesh, d));
        else if (mask & 1u << d)
            at += sprintf(out->dims + at, "%s%d", at ? "," : "", d);
    TSR_TRY(tsr_mesh_coordinate(mesh, mine, &inside));
    for (int64_t i = 0; i < tsr_mesh_count(mesh) && inside; i++) {
        int64_t left = i, other;
        bool along = true;
        for (int d = ndim - 1; d >= 0; left /= tsr_mesh_size(mesh, d), d--) {
            theirs[d] = left % tsr_mesh_size(mesh, d);
            along = along && (mask & 1u << d || theirs[d] == mine[d]);
        }
        TSR_TRY(tsr_mesh_rank_at(mesh, theirs, &other));
        outside += !along;
        if (!along)
            continue;
        if (other == rank)
            out->own = out->count;
        out->ranks[out->count++] = (int)other;
    }
    CHECK(!inside || out->count + outside == (int)tsr_mesh_count(mesh));
    return TSR_OK;
}

static unsigned masks(const tsr_mesh *mesh)
{
    return 1u << tsr_mesh_ndim(mesh);
}

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
    int32_t mine = tsr_comm_rank(tsr_mesh_comm(mesh)), all[MOST_RANKS];
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
    for (unsigned mask = 1; mask < masks(mesh); mask++) {
        TSR_TRY(find_line(mesh, mask, &l));
        TSR_TRY(split_once(mesh, mask, l.dims, &l));
    }
    TSR_TRY(split_once(mesh, masks(mesh) - 1, NULL, &l));
    TSR_TRY(split_once(mesh, masks(mesh) - 1, "", &l));
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void a_split_mesh_is_the_slice_over_its_own_ranks(void **state)
{
    (void)state;
    run_situations(split_along_all);
}

/* Every rank of the communicator brings a slice of its own. */
static tsr_status split_slices(tsr_comm *comm, void *text)
{
    tsr_mesh *mesh, *slice;
    line along, l;
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    for (unsigned mask = 1; mask < masks(mesh); mask++) {
        int64_t sum = tsr_comm_rank(comm), wanted = 0;
        TSR_TRY(find_line(mesh, mask, &along));
        TSR_TRY(tsr_mesh_slice(mesh, along.dims, &slice));
        TSR_TRY(find_line(slice, masks(slice) - 1, &l));
        TSR_TRY(split_once(slice, masks(slice) - 1, NULL, &l));
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
    run_situations(split_slices);
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
    float values[MOST_RANKS], sum;
    const void *terms[MOST_RANKS];
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
    int64_t counts[MOST_RANKS] = {0};
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
    int64_t counts[MOST_RANKS] = {0}, sends[MOST_RANKS] = {0}, receives[MOST_RANKS] = {0};
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
    for (unsigned mask = 1; mask < masks(mesh); mask++) {
        TSR_TRY(find_line(mesh, mask, &l));
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
    run_situations(call_along_all);
}

/* What rank `rank` gets where `culprit` of its group fails: its own fault, a sentence about it, or
 * nothing. */
static tsr_status check_told(tsr_comm *comm, tsr_status status, int culprit, bool meets)
{
    char told[32];
    snprintf(told, sizeof told, "rank %d failed: tsr_", culprit);
    if (tsr_comm_rank(comm) == culprit)
        CHECK_ERROR(status, TSR_ERROR_ARGUMENT, "tsr_mesh_");
    else if (meets)
        CHECK_ERROR(status, TSR_ERROR_PEER, told);
    else
        TSR_TRY(status);
    return TSR_OK;
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
    TSR_TRY(check_told(comm, tsr_mesh_all_reduce_i64(mesh, rank == 1 ? "z" : "b", &n, TSR_SUM), 1, true));
    TSR_TRY(tsr_mesh_all_reduce_i64(mesh, "b", &n, TSR_SUM));
    CHECK(n == 2);
    /* Later calls: the ranks along the dim do. */
    for (int culprit = 0; culprit < 4; culprit++) {
        const bool meets = rank / 2 == culprit / 2, bad = rank == culprit;
        TSR_TRY(check_told(
            comm, tsr_mesh_all_reduce(mesh, "b", x, x, bad ? -1 : 2, TSR_F64, TSR_SUM, host, NULL), culprit, meets));
        TSR_TRY(check_told(comm, tsr_mesh_broadcast_i64(mesh, "b", bad ? NULL : &n, 0), culprit, meets));
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
        TSR_TRY(check_told(comm, tsr_mesh_split(mesh, rank == culprit ? "a,z" : "b", &sub), culprit, true));
        TSR_TRY(check_told(comm, tsr_mesh_split(mesh, "b", rank == culprit ? NULL : &sub), culprit, true));
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
    case ELDER: tsr_comm_destroy(f->elder); break;
    case MESH: tsr_mesh_destroy(f->mesh); break;
    case SUB: tsr_mesh_destroy(f->sub); break;
    case SLICE: tsr_mesh_destroy(f->slice); break;
    case LAYOUT: tsr_layout_destroy(f->layout); break;
    default: tsr_dtensor_destroy(f->x);
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

static tsr_status leave_behind(tsr_comm *comm, void *arg)
{
    tsr_mesh **kept = arg, *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x2", &mesh));
    const tsr_status status = tsr_mesh_split(mesh, "1", &kept[tsr_comm_rank(comm)]);
    tsr_mesh_destroy(mesh);
    return status;
}

static void a_mesh_may_outlive_its_ranks(void **state)
{
    (void)state;
    NEEDS_ONE_PROCESS();
    tsr_mesh *kept[4] = {NULL};
    suite_run(4, leave_behind, kept);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(tsr_mesh_count(kept[r]), 2);
        tsr_mesh_destroy(kept[r]);
    }
}

int suite_meshes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_mesh_is_the_slice_over_its_own_ranks),
        cmocka_unit_test(slices_of_ranks_are_taken_together),
        cmocka_unit_test(nodes_come_along),
        cmocka_unit_test(a_split_mesh_meets_nobody_else),
        cmocka_unit_test(later_calls_meet_the_ranks_along_their_dims_alone),
        cmocka_unit_test(collectives_go_by_coordinates_along_their_dims),
        cmocka_unit_test(ranks_that_meet_hear_of_a_fault),
        cmocka_unit_test(no_rank_gets_a_mesh_if_one_fails),
        cmocka_unit_test(a_split_communicator_ends_with_the_last_object_over_it),
        cmocka_unit_test(a_rank_destroys_its_mesh_alone),
        cmocka_unit_test(a_mesh_may_outlive_its_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
