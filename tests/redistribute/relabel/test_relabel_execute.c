/* Moves to relabelled layouts on rank threads: the values are right, and ranks receive the bytes of
 * the report. */
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <tessera/relabel.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROWS = 12, COLUMNS = 10, MOST = ROWS * COLUMNS };

typedef struct relabel_case {
    int ranks;
    const char *from_mesh, *from, *to_mesh, *to;
    tsr_mode mode;
    int64_t received_given, received; /* bytes by all ranks, as dst is given and relabelled */
} relabel_case;

/* Every element's value is its global row-major number; `check` compares instead of writing. */
static tsr_status walk(const tsr_layout *layout, int32_t *values, bool check)
{
    tsr_interval rows[ROWS], columns[COLUMNS];
    size_t row_count, column_count, at = 0;
    TSR_TRY(tsr_layout_intervals(layout, NULL, 0, rows, ROWS, &row_count));
    TSR_TRY(tsr_layout_intervals(layout, NULL, 1, columns, COLUMNS, &column_count));
    for (size_t a = 0; a < row_count; a++)
        for (int64_t i = rows[a].begin; i < rows[a].end; i++)
            for (size_t b = 0; b < column_count; b++)
                for (int64_t j = columns[b].begin; j < columns[b].end; j++, at++) {
                    const int32_t value = (int32_t)(i * COLUMNS + j);
                    CHECK(!check || values[at] == value);
                    values[at] = value;
                }
    return TSR_OK;
}

/* This rank's tensor under the layout; `*given` is it, or NULL for a rank outside the mesh. */
static tsr_status tensor_of(const tsr_layout *layout, int32_t *values, tsr_tensor *tensor, const tsr_tensor **given)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(shard_over(layout, values, tensor));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    *given = inside ? tensor : NULL;
    return TSR_OK;
}

static tsr_status execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst)
{
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    void *workspace = NULL;
    TSR_TRY(tsr_plan_prepare(plan, comm));
    TSR_TRY(tsr_comm_alloc(comm, bytes, &workspace));
    const tsr_status status = tsr_plan_execute(plan, comm, src, dst, workspace, bytes, NULL);
    tsr_comm_free(comm, workspace, bytes);
    return status;
}

/* Moves, checks the values, and adds up the bytes that all ranks received. */
static tsr_status move(tsr_comm *comm, const tsr_layout *src, const tsr_layout *dst, tsr_mode mode, int64_t *received)
{
    int32_t from[MOST], to[MOST];
    tsr_tensor tensors[2];
    const tsr_tensor *source, *destination;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan *plan = NULL;
    options.mode = mode;
    for (int i = 0; i < MOST; i++)
        to[i] = -1;
    TSR_TRY(walk(src, from, false));
    TSR_TRY(tensor_of(src, from, &tensors[0], &source));
    TSR_TRY(tensor_of(dst, to, &tensors[1], &destination));
    TSR_TRY(tsr_plan_create(src, dst, &options, &plan));
    const int64_t own = tsr_plan_bytes_received(plan);
    const tsr_status status = execute(plan, comm, source, destination);
    tsr_plan_destroy(plan);
    TSR_TRY(status);
    TSR_TRY(walk(dst, to, true));
    return tsr_comm_all_reduce(comm, &own, received, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status run_case(tsr_comm *comm, void *arg)
{
    const relabel_case *c = arg;
    tsr_layout *src = NULL, *dst = NULL, *better = NULL;
    tsr_relabel_report report;
    int64_t before = 0, after = 0;
    TSR_TRY(layout_over(comm, c->from_mesh, "12x10", c->from, TSR_I32, &src));
    TSR_TRY(layout_over(comm, c->to_mesh, "12x10", c->to, TSR_I32, &dst));
    TSR_TRY(tsr_layout_relabel(src, dst, &better, &report));
    CHECK(tsr_mesh_comm(tsr_layout_mesh(better)) == comm);
    TSR_TRY(move(comm, src, dst, c->mode, &before));
    TSR_TRY(move(comm, src, better, c->mode, &after));
    CHECK(before == c->received_given && after == c->received);
    CHECK(before - after == report.bytes_kept - report.bytes_kept_given);
    tsr_layout_destroy(better);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static void relabelled_moves_bring_the_right_values_and_receive_less_by_what_is_kept(void **state)
{
    (void)state;
    const relabel_case cases[] = {
        /* All 480 bytes are elsewhere in a rotated mesh; none are when it is turned back. */
        {4, "4", "S(0)", "4@[1,2,3,0]", "S(0)", TSR_MODE_DIRECT, 480, 0},
        {2, "2", "S(0)", "2@[1,0]", "S(0)", TSR_MODE_DIRECT, 480, 0},
        /* The two ranks off the diagonal hold each other's blocks. */
        {4, "2x2", "S(0),S(1)", "2x2", "S(1),S(0)", TSR_MODE_DIRECT, 240, 0},
        /* Ranks 0 and 1 can keep the third of the tensor that each gets; only rank 2 then receives,
           160 bytes. */
        {3, "2", "S(0)", "3@[2,0,1]", "S(0)", TSR_MODE_DIRECT, 240, 160},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
            relabel_case c = cases[i];
            c.mode = mode;
            test_case("12x10 i32, %s on %s -> %s on %s, mode %d", c.from, c.from_mesh, c.to, c.to_mesh, (int)mode);
            run_ranks(c.ranks, run_case, &c);
        }
}

static int two_a_node(void *self, int rank)
{
    (void)self;
    return rank / 2;
}

static const tsr_comm_nodes pairs = {.size = sizeof pairs, .node_of = two_a_node};

/* The engine has nodes of two ranks, and the mesh is told of nodes of `*arg` ranks (0: one node).
 * The relabelled mesh keeps the nodes that it was told of. */
static tsr_status relabel_with_nodes(tsr_comm *carrier, void *arg)
{
    const int64_t told = *(const int64_t *)arg;
    tsr_comm_table table = message_engine_table;
    void *self = NULL;
    tsr_comm *copy = NULL, *comm = NULL;
    tsr_mesh *known = NULL, *mesh = NULL;
    tsr_layout *src = NULL, *dst = NULL, *better = NULL;
    table.nodes = &pairs;
    TSR_TRY(tsr_comm_split(carrier, 0, tsr_comm_rank(carrier), &copy));
    TSR_TRY(message_engine_self(copy, &self));
    TSR_TRY(tsr_comm_create_from_table(tsr_comm_context(carrier), &table, self, &comm));
    TSR_TRY(layout_over(comm, "4", "12x10", "S(0)", TSR_I32, &src));
    TSR_TRY(mesh_over(comm, "4@[1,2,3,0]", &known));
    CHECK(tsr_mesh_nodes(known).ranks_per_node == 2);
    TSR_TRY(tsr_mesh_with_nodes(known, &(tsr_nodes){.ranks_per_node = told}, &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, tsr_layout_shape(src), TSR_I32, &dst));
    TSR_TRY(tsr_layout_relabel(src, dst, &better, NULL));
    CHECK(better != dst && tsr_mesh_nodes(tsr_layout_mesh(better)).ranks_per_node == told);
    tsr_layout_destroy(better);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(known);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void nodes_are_those_that_the_given_mesh_was_told(void **state)
{
    (void)state;
    for (int64_t told = 0; told <= 4; told += 2) {
        test_case("%lld ranks a node, where the engine says 2", (long long)told);
        run_ranks(4, relabel_with_nodes, &told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relabelled_moves_bring_the_right_values_and_receive_less_by_what_is_kept),
        cmocka_unit_test(nodes_are_those_that_the_given_mesh_was_told),
    };
    test_watchdog(30);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
