/* Ranks of one node among several: groups of them, and plans that move within nodes alone, read
 * peers' memory in place and send nothing through MPI. */
#include "comm_suite.h"
#include "halves.h"
#include "launched.h"
#include "nodes.h"

#include <tessera/dtensor.h>
#include <tessera/plan.h>

#include <stdio.h>
#include <stdlib.h>

enum { EDGE = 120, HEADERS = 4000, PATIENT_MS = 60000 };

/* A move of EDGE x EDGE integers, element i being i, between tensors in memory that ranks do not
 * share. */
typedef struct move {
    const char *src, *dst; /* placements */
    int64_t most;          /* bytes that cross from a rank to another node, without headers; -1: any */
} move;

/* The value of a global element; a Partial term of coordinate c holds it once more, plus c. */
static int32_t value_of(int64_t row, int64_t column)
{
    return (int32_t)(row * EDGE + column);
}

typedef struct local {
    tsr_tensor tensor;
    int64_t offset[2];
} local;

static tsr_status make_local(const tsr_layout *layout, const int64_t *coordinate, local *out)
{
    int64_t shape[2];
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, out->offset));
    out->tensor = tsr_tensor_contiguous(calloc((size_t)(shape[0] * shape[1] + 1), sizeof(int32_t)), TSR_I32, 2, shape);
    CHECK(out->tensor.data);
    return TSR_OK;
}

static int32_t *element(const local *l, int64_t row, int64_t column)
{
    return (int32_t *)l->tensor.data + row * l->tensor.strides[0] + column;
}

static void fill(const local *l, int32_t factor, int32_t more)
{
    for (int64_t i = 0; i < l->tensor.shape[0]; i++)
        for (int64_t j = 0; j < l->tensor.shape[1]; j++)
            *element(l, i, j) = factor * value_of(l->offset[0] + i, l->offset[1] + j) + more;
}

/* Checks this rank's elements, which are sums of `terms` terms. */
static tsr_status check_filled(const local *l, int32_t terms)
{
    for (int64_t i = 0; i < l->tensor.shape[0]; i++)
        for (int64_t j = 0; j < l->tensor.shape[1]; j++) {
            const int32_t wanted = terms * value_of(l->offset[0] + i, l->offset[1] + j) + terms * (terms - 1) / 2;
            if (*element(l, i, j) != wanted)
                return tsr_status_set(TSR_ERROR_INTERNAL, "element %d,%d is %d, not %d", (int)(l->offset[0] + i),
                                      (int)(l->offset[1] + j), *element(l, i, j), wanted);
        }
    return TSR_OK;
}

/* Executes the plan at once, or in two halves. */
static tsr_status run_plan(tsr_comm *comm, const tsr_plan *plan, const local *src, const local *dst, void *workspace,
                           bool in_halves)
{
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    if (!in_halves)
        return tsr_plan_execute(plan, comm, &src->tensor, &dst->tensor, workspace, bytes, NULL);
    TSR_TRY(tsr_plan_start(plan, comm, &src->tensor, &dst->tensor, workspace, bytes, NULL));
    return tsr_plan_finish(plan, comm);
}

/* All of it, twice; what went through MPI the second time, in two halves, is counted. */
static tsr_status execute(tsr_comm *comm, const tsr_plan *plan, const local *src, local *dst, const move *m,
                          int32_t terms)
{
    size_t inside, between;
    void *workspace = malloc(tsr_plan_workspace_bytes(plan) + 1);
    tsr_status status = workspace ? tsr_plan_prepare(plan, comm) : TSR_ERROR_MEMORY;
    for (int round = 0; round < 2 && status == TSR_OK; round++) {
        memset(dst->tensor.data, 0xee, (size_t)(dst->tensor.shape[0] * dst->tensor.shape[1]) * sizeof(int32_t));
        nodes_count(&inside, &between);
        status = run_plan(comm, plan, src, dst, workspace, round == 1);
        nodes_count(&inside, &between);
        if (status == TSR_OK)
            status = check_filled(dst, terms);
    }
    free(workspace);
    TSR_TRY(status);
    if ((m->most == 0 && (inside > 0 || between > 0)) || (m->most > 0 && between > (size_t)m->most + HEADERS))
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s -> %s: MPI carried %zu bytes inside nodes, and %zu between them",
                              m->src, m->dst, inside, between);
    return TSR_OK;
}

static bool is_partial(const char *placements)
{
    return strchr(placements, 'P') != NULL;
}

/* Sets this rank's terms. Its `coordinate` ends with that of the mesh dim along which terms are
 * summed. */
static tsr_status run_move(tsr_comm *comm, const tsr_mesh *mesh, const int64_t *coordinate, const move *m)
{
    const int last = tsr_mesh_ndim(mesh) - 1;
    const int64_t shape[] = {EDGE, EDGE};
    tsr_layout *from, *to;
    tsr_plan *plan;
    local src, dst;
    TSR_TRY(tsr_layout_parse(mesh, m->src, 2, shape, TSR_I32, &from));
    TSR_TRY(tsr_layout_parse(mesh, m->dst, 2, shape, TSR_I32, &to));
    TSR_TRY(tsr_plan_create(from, to, NULL, &plan));
    TSR_TRY(make_local(from, coordinate, &src));
    TSR_TRY(make_local(to, coordinate, &dst));
    fill(&src, 1, is_partial(m->src) ? (int32_t)coordinate[last] : 0);
    const tsr_status status =
        execute(comm, plan, &src, &dst, m, is_partial(m->src) ? (int32_t)tsr_mesh_size(mesh, last) : 1);
    free(src.tensor.data);
    free(dst.tensor.data);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    return status;
}

static const move line_moves[] = {
    {"S(0)", "S(1)", 0}, {"S(0)", "R", 0}, {"P", "S(0)", 0}, {"P", "R", 0}, {"R", "S(1)", 0},
};

static tsr_status move_in_groups(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int node = tsr_comm_rank(comm) / halves_size(comm);
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, node, -tsr_comm_rank(comm), &group));
    const int64_t shape[] = {tsr_comm_size(group)}, coordinate[] = {tsr_comm_rank(group)};
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_create(group, 1, shape, NULL, NULL, &mesh));
    for (size_t i = 0; i < sizeof line_moves / sizeof *line_moves; i++)
        TSR_TRY(run_move(group, mesh, coordinate, &line_moves[i]));
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(group);
    return tsr_comm_barrier(comm);
}

static void run_four(tsr_rank_main *body, void *arg)
{
    if (launched_ranks() != 4)
        suite_skip("what crosses is known of four ranks");
    halves_run(body, arg, PATIENT_MS);
}

static void groups_within_a_node_are_direct_in_a_world_of_several(void **state)
{
    (void)state;
    halves_run(move_in_groups, NULL, PATIENT_MS);
}

/* Moves of the world's own tensors: along the second dim, whose lines lie in nodes, nothing
 * crosses. */
static const move grid_moves[] = {
    {"S(0),S(1)", "S(0),R", 0},        {"S(0),P", "S(0),S(1)", 0}, {"S(0),P", "S(0),R", 0},
    {"R,S(0)", "R,S(1)", 0},           {"R,S(0)", "R,R", 0},       {"S(0),S(0)", "S(0),R", 0},
    {"S(0),S(0)", "S(0),S(1)", 0},     {"R,P", "R,S(0)", -1},      {"S(0),R", "S(1),R", -1},
    {"S(0)[1],S(0)[0]", "S(0),R", -1},
};

static tsr_status move_along_lines(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t shape[] = {HALVES, halves_size(comm)};
    const int64_t coordinate[] = {tsr_comm_rank(comm) / halves_size(comm), tsr_comm_rank(comm) % halves_size(comm)};
    tsr_mesh *mesh, *line;
    TSR_TRY(tsr_mesh_create(comm, 2, shape, (const char *const[]){"dp", "tp"}, NULL, &mesh));
    for (size_t i = 0; i < sizeof grid_moves / sizeof *grid_moves; i++)
        TSR_TRY(run_move(comm, mesh, coordinate, &grid_moves[i]));
    TSR_TRY(tsr_mesh_slice(mesh, "tp", &line));
    for (size_t i = 0; i < sizeof line_moves / sizeof *line_moves; i++)
        TSR_TRY(run_move(comm, line, coordinate + 1, &line_moves[i]));
    tsr_mesh_destroy(line);
    tsr_mesh_destroy(mesh);
    return tsr_comm_barrier(comm);
}

static void moves_along_lines_within_nodes_are_direct(void **state)
{
    (void)state;
    halves_run(move_along_lines, NULL, PATIENT_MS);
}

/* Plans and prepares a sum of `rows` rows. */
static tsr_status prepare_sum(tsr_comm *comm, const tsr_mesh *mesh, int64_t rows, tsr_plan **out)
{
    const int64_t shape[] = {rows, EDGE};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_layout *from, *to;
    options.mode = TSR_MODE_MESSAGE;
    TSR_TRY(tsr_layout_parse(mesh, "P", 2, shape, TSR_I32, &from));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, shape, TSR_I32, &to));
    TSR_TRY(tsr_plan_create(from, to, &options, out));
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    return tsr_plan_prepare(*out, comm);
}

/* A large sum is prepared on a communicator, and on another one of the same ranks only a small one,
 * so that there is not the memory to go by nodes. */
static tsr_status sum_where_little_is_prepared(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t shape[] = {tsr_comm_size(comm)}, coordinate[] = {tsr_comm_rank(comm)};
    size_t inside, between;
    tsr_comm *other;
    tsr_mesh *mesh, *others;
    tsr_plan *large, *small;
    local src, dst;
    TSR_TRY(tsr_mesh_create(comm, 1, shape, NULL, NULL, &mesh));
    TSR_TRY(tsr_comm_split(comm, 0, 0, &other));
    TSR_TRY(tsr_mesh_create(other, 1, shape, NULL, NULL, &others));
    TSR_TRY(prepare_sum(comm, mesh, EDGE, &large));
    TSR_TRY(prepare_sum(other, others, shape[0], &small));
    TSR_TRY(make_local(tsr_plan_source(large), coordinate, &src));
    TSR_TRY(make_local(tsr_plan_destination(large), coordinate, &dst));
    fill(&src, 1, (int32_t)coordinate[0]);
    void *workspace = malloc(tsr_plan_workspace_bytes(large) + 1);
    CHECK(workspace);
    nodes_count(&inside, &between);
    TSR_TRY(run_plan(other, large, &src, &dst, workspace, false));
    nodes_count(&inside, &between);
    CHECK(between > 2 * EDGE * EDGE + HEADERS);
    TSR_TRY(check_filled(&dst, (int32_t)shape[0]));
    free(workspace);
    free(src.tensor.data);
    free(dst.tensor.data);
    tsr_plan_destroy(small);
    tsr_plan_destroy(large);
    tsr_mesh_destroy(others);
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(other);
    return tsr_comm_barrier(comm);
}

static void reductions_go_by_mail_where_a_smaller_one_was_prepared(void **state)
{
    (void)state;
    run_four(sum_where_little_is_prepared, NULL);
}

/* Over four ranks on two nodes: terms are summed up in their node, and one share of the sum crosses
 * from each rank; of an all-reduce another one, which is done. */
static const move reductions[] = {{"P", "S(0)", EDGE *EDGE}, {"P", "S(1)", EDGE *EDGE}, {"P", "R", 2 * EDGE *EDGE}};

static tsr_status reduce_over_nodes(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t shape[] = {tsr_comm_size(comm)}, coordinate[] = {tsr_comm_rank(comm)};
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_create(comm, 1, shape, NULL, NULL, &mesh));
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        TSR_TRY(run_move(comm, mesh, coordinate, &reductions[i]));
    tsr_mesh_destroy(mesh);
    return tsr_comm_barrier(comm);
}

static void exact_reductions_add_up_inside_nodes_first(void **state)
{
    (void)state;
    run_four(reduce_over_nodes, NULL);
}

/* Of floats they do where any order will do; these sums have the same bits in any. */
static tsr_status reduce_floats(tsr_comm *comm, const tsr_mesh *mesh, tsr_dtype dtype, const char *placement,
                                void *terms, void *sums, size_t *between)
{
    const int64_t shape[] = {EDGE, EDGE};
    const tsr_tensor src = tsr_tensor_contiguous(terms, dtype, 2, shape),
                     dst = tsr_tensor_contiguous(sums, dtype, 2, shape);
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_layout *from, *to;
    tsr_plan *plan;
    void *workspace;
    size_t inside;
    options.reduction = TSR_REDUCTION_ANY_ORDER;
    TSR_TRY(tsr_layout_parse(mesh, placement, 2, shape, dtype, &from));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, shape, dtype, &to));
    TSR_TRY(tsr_plan_create(from, to, &options, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    TSR_TRY(tsr_comm_alloc(comm, bytes, &workspace));
    nodes_count(&inside, between);
    const tsr_status status = tsr_plan_execute(plan, comm, &src, &dst, workspace, bytes, NULL);
    nodes_count(&inside, between);
    tsr_comm_free(comm, workspace, bytes);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    return status;
}

static tsr_status sum_in_any_order(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t ranks[] = {tsr_comm_size(comm)};
    float *const terms = calloc((size_t)EDGE * EDGE, sizeof *terms), *const sums =
                                                                         calloc((size_t)EDGE * EDGE, sizeof *sums);
    size_t between = 0;
    tsr_mesh *mesh;
    CHECK(terms && sums);
    for (int i = 0; i < EDGE * EDGE; i++)
        terms[i] = (float)(i + tsr_comm_rank(comm));
    TSR_TRY(tsr_mesh_create(comm, 1, ranks, NULL, NULL, &mesh));
    TSR_TRY(reduce_floats(comm, mesh, TSR_F32, "P", terms, sums, &between));
    CHECK(between <= 2 * EDGE * EDGE + HEADERS);
    for (int i = 0; i < EDGE * EDGE; i++)
        CHECK(sums[i] == (float)(ranks[0] * i + ranks[0] * (ranks[0] - 1) / 2));
    tsr_mesh_destroy(mesh);
    free(terms);
    free(sums);
    return TSR_OK;
}

static void so_do_reductions_in_any_order(void **state)
{
    (void)state;
    run_four(sum_in_any_order, NULL);
}

/* Terms of 2-byte floats by rank, as bits, and their sum. */
typedef struct narrow {
    tsr_dtype dtype;
    const char *from;
    uint16_t terms[4], wanted;
} narrow;

static tsr_status reduce_narrow(tsr_comm *comm, void *arg)
{
    const narrow *n = arg;
    const int64_t ranks[] = {tsr_comm_size(comm)};
    uint16_t *const terms = calloc((size_t)EDGE * EDGE, sizeof *terms), *const sums =
                                                                            calloc((size_t)EDGE * EDGE, sizeof *sums);
    size_t between = 0;
    tsr_mesh *mesh;
    CHECK(terms && sums);
    for (int i = 0; i < EDGE * EDGE; i++)
        terms[i] = n->terms[tsr_comm_rank(comm)];
    TSR_TRY(tsr_mesh_create(comm, 1, ranks, NULL, NULL, &mesh));
    TSR_TRY(reduce_floats(comm, mesh, n->dtype, n->from, terms, sums, &between));
    for (int i = 0; i < EDGE * EDGE; i++)
        if (sums[i] != n->wanted)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s, %s: element %d is %#x, not %#x", tsr_dtype_name(n->dtype),
                                  n->from, i, sums[i], n->wanted);
    tsr_mesh_destroy(mesh);
    free(terms);
    free(sums);
    return TSR_OK;
}

/* A node's sum of 40000 and 40000 is more than f16 holds, and the average of four is not. In bf16,
 * which has 8 bits, 256 + 1 is 256 and 1 + 1 is 2, but all four come to 259, and that rounds to
 * 260. */
static void narrow_floats_are_rounded_once(void **state)
{
    static narrow average = {TSR_F16, "P(avg)", {0x78e2, 0x78e2, 0x78e2, 0x78e2}, 0x78e2};
    static narrow sum = {TSR_BF16, "P", {0x4380, 0x3f80, 0x3f80, 0x3f80}, 0x4382};
    (void)state;
    run_four(reduce_narrow, &average);
    run_four(reduce_narrow, &sum);
}

/* Of an all-gather every part crosses once into the other node, of an all-reduce half of what would
 * if ranks did not know of nodes. What else MPI carries is a header a message, and what ranks agree
 * on before. */
static tsr_status gather_and_reduce(tsr_comm *comm, void *arg)
{
    enum { PART = 20000, MORE = HEADERS };
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    size_t inside, between;
    int32_t *const values = calloc((size_t)size * PART, sizeof *values), *const sums =
                                                                             calloc((size_t)size * PART, sizeof *sums);
    CHECK(values && sums);
    for (int i = 0; i < PART; i++)
        values[rank * PART + i] = rank + i;
    nodes_count(&inside, &between);
    tsr_status status =
        tsr_comm_all_gather(comm, values + rank * PART, values, PART, NULL, TSR_I32, tsr_device_host(), NULL);
    nodes_count(&inside, &between);
    if (status == TSR_OK && between > PART * sizeof *values + MORE)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "rank %d: %zu bytes crossed in an all-gather of %zu", rank, between,
                                PART * sizeof *values);
    if (status == TSR_OK)
        status = tsr_comm_all_reduce(comm, values, sums, size * PART, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
    nodes_count(&inside, &between);
    if (status == TSR_OK && between > 2 * PART * sizeof *values + 2 * MORE)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "rank %d: %zu bytes crossed in an all-reduce with shares of %zu",
                                rank, between, PART * sizeof *values);
    for (int i = 0; i < size * PART && status == TSR_OK; i++)
        if (values[i] != i / PART + i % PART || sums[i] != size * values[i])
            status = tsr_status_set(TSR_ERROR_INTERNAL, "rank %d: element %d is %d, and %d in all", rank, i, values[i],
                                    sums[i]);
    free(values);
    free(sums);
    return status;
}

static void collectives_cross_once_into_each_node(void **state)
{
    (void)state;
    halves_run(gather_and_reduce, NULL, PATIENT_MS);
}

/* Groups of groups, too, and a group over nodes in between, whose own groups share nodes again. */
static tsr_status split_again(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), node = rank / halves_size(comm);
    tsr_comm *all, *group;
    TSR_TRY(tsr_comm_split(comm, 0, -rank, &all));
    TSR_TRY(tsr_comm_split(all, node, 0, &group));
    CHECK(tsr_comm_size(group) == halves_size(comm));
    const int64_t shape[] = {tsr_comm_size(group)}, coordinate[] = {tsr_comm_rank(group)};
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_create(group, 1, shape, NULL, NULL, &mesh));
    TSR_TRY(run_move(group, mesh, coordinate, &line_moves[0]));
    TSR_TRY(suite_check_usable(all));
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(group);
    tsr_comm_destroy(all);
    return tsr_comm_barrier(comm);
}

static void so_are_groups_of_groups_over_nodes(void **state)
{
    (void)state;
    halves_run(split_again, NULL, PATIENT_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_within_a_node_are_direct_in_a_world_of_several),
        cmocka_unit_test(moves_along_lines_within_nodes_are_direct),
        cmocka_unit_test(reductions_go_by_mail_where_a_smaller_one_was_prepared),
        cmocka_unit_test(exact_reductions_add_up_inside_nodes_first),
        cmocka_unit_test(so_do_reductions_in_any_order),
        cmocka_unit_test(narrow_floats_are_rounded_once),
        cmocka_unit_test(collectives_cross_once_into_each_node),
        cmocka_unit_test(so_are_groups_of_groups_over_nodes),
    };
    char *const node[] = {"", "node", NULL};
    suite_start(2, (char **)node);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
