/* Stacks whose slices lie in a safetensors file by themselves, as checkpoints hold experts. */
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <tessera/safetensors.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { EXPERTS = 5, GATE = 3, UP = 4, HIDDEN = 4, ROWS = GATE + UP };

static char folder[32], path[64];

static const char *const gate_up[] = {"l.0.e.*.gate", "l.0.e.*.up"};
static const char *const down[] = {"l.0.e.*.down"};

/* Distributes a tensor whose elements are first, first + 1, .. */
static tsr_status make(const tsr_mesh *mesh, int64_t first, int ndim, const int64_t *shape, tsr_dtensor **out)
{
    float values[ROWS * HIDDEN];
    for (int i = 0; i < ROWS * HIDDEN; i++)
        values[i] = (float)(first + i);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, ndim, shape);
    return tsr_distribute(&global, mesh, "R", out);
}

/* Writes gate and up of each expert, which together count on over all experts, and down, which
 * counts by itself; every second expert in bf16. */
static tsr_status write_experts(tsr_comm *comm, void *arg)
{
    static const char *const kinds[] = {"gate", "up", "down"};
    const int64_t shapes[][2] = {{GATE, HIDDEN}, {UP, HIDDEN}, {HIDDEN, GATE}};
    char names[3 * EXPERTS][16];
    tsr_safetensors_tensor tensors[3 * EXPERTS];
    tsr_dtensor *made[3 * EXPERTS];
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    for (int i = 0; i < 3 * EXPERTS; i++) {
        const int expert = i / 3, kind = i % 3;
        const int first = kind == 2 ? expert * HIDDEN * GATE : expert * ROWS * HIDDEN + kind * GATE * HIDDEN;
        snprintf(names[i], sizeof names[i], "l.0.e.%d.%s", expert, kinds[kind]);
        TSR_TRY(make(mesh, first, 2, shapes[kind], &made[i]));
        tensors[i] = (tsr_safetensors_tensor){names[i], made[i], expert % 2 ? TSR_BF16 : TSR_F32};
    }
    TSR_TRY(tsr_safetensors_write(path, 3 * EXPERTS, tensors, NULL));
    for (int i = 0; i < 3 * EXPERTS; i++)
        tsr_dtensor_destroy(made[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

/* Distributes a stack, and checks each of this rank's elements and how many bytes were read. */
static tsr_status check_stack(tsr_comm *comm, const tsr_safetensors *file, size_t count, const char *const *patterns,
                              const char *mesh, const char *placements)
{
    const int64_t sizes[] = {EXPERTS, count == 2 ? ROWS : HIDDEN, count == 2 ? HIDDEN : GATE};
    int64_t bytes_read = -1, wanted = 0;
    tsr_interval of[3][8];
    size_t counts[3];
    char text[32];
    tsr_layout *layout;
    tsr_dtensor *x;
    snprintf(text, sizeof text, "%dx%dx%d", (int)sizes[0], (int)sizes[1], (int)sizes[2]);
    if (tsr_comm_rank(comm) == 0)
        test_case("%s as %s", text, placements);
    TSR_TRY(layout_over(comm, mesh, text, placements, TSR_F32, &layout));
    TSR_TRY(tsr_safetensors_distribute_stacked(file, count, patterns, layout, &bytes_read, &x));
    for (int dim = 0; dim < 3; dim++)
        TSR_TRY(tsr_layout_intervals(layout, NULL, dim, of[dim], 8, &counts[dim]));
    const float *at = tsr_dtensor_to_local(x).data;
    for (size_t i = 0; i < counts[0]; i++)
        for (int64_t expert = of[0][i].begin; expert < of[0][i].end; expert++)
            for (size_t j = 0; j < counts[1]; j++)
                for (int64_t row = of[1][j].begin; row < of[1][j].end; row++)
                    for (size_t k = 0; k < counts[2]; k++)
                        for (int64_t column = of[2][k].begin; column < of[2][k].end; column++) {
                            CHECK(*at++ == (float)((expert * sizes[1] + row) * sizes[2] + column));
                            wanted += expert % 2 ? 2 : 4;
                        }
    CHECK(bytes_read == wanted);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status read_experts(tsr_comm *comm, void *arg)
{
    static const char *const placements[][2] = {
        {"4", "S(0)"},        {"4", "R"},        {"4", "S(0;balanced)"}, {"4", "S(1;blocks=3,4)"},
        {"2x2", "S(0),S(1)"}, {"2x2", "R,S(2)"}, {"2x2", "S(2),S(0)"},   {"4", "S(0;sizes=0,3,0,2)"}};
    static const char *const of_down[][2] = {{"4", "S(0)"}, {"2x2", "S(0),S(2)"}, {"4", "S(1)"}};
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        TSR_TRY(check_stack(comm, arg, 2, gate_up, placements[i][0], placements[i][1]));
    for (size_t i = 0; i < sizeof of_down / sizeof *of_down; i++)
        TSR_TRY(check_stack(comm, arg, 1, down, of_down[i][0], of_down[i][1]));
    return TSR_OK;
}

static tsr_status refuse(tsr_comm *comm, const tsr_safetensors *file, size_t count, const char *const *patterns,
                         const char *shape, const char *said)
{
    int64_t bytes_read = -1;
    tsr_layout *layout;
    tsr_dtensor *x = NULL;
    TSR_TRY(layout_over(comm, "2", shape, "R", TSR_F32, &layout));
    CHECK_ERROR(tsr_safetensors_distribute_stacked(file, count, patterns, layout, &bytes_read, &x), TSR_ERROR_ARGUMENT,
                said);
    CHECK(!x && bytes_read == -1);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status refuse_stacks(tsr_comm *comm, void *arg)
{
    static const char *const none[] = {"l.0.e.0.gate"}, *const two[] = {"l.*.e.*.gate"}, *const null[] = {NULL};
    static const char *const twice[] = {"l.0.e.*.gate", "l.0.e.*.gate"}, *const unlike[] = {"l.0.e.*.gate",
                                                                                            "l.0.e.*.down"};
    TSR_TRY(refuse(comm, arg, 2, gate_up, "6x7x4", "no tensor l.0.e.5.gate"));
    TSR_TRY(refuse(comm, arg, 2, gate_up, "4x7x4", "there is a tensor l.0.e.4.gate, but the layout ends with 3"));
    TSR_TRY(refuse(comm, arg, 2, gate_up, "5x8x4", "l.0.e.0.up, tensors have size 7"));
    TSR_TRY(refuse(comm, arg, 2, gate_up, "5x6x4", "size 4 along dim 0, but 3 of 6"));
    TSR_TRY(refuse(comm, arg, 2, gate_up, "5x7x3", "size 4 along dim 1"));
    TSR_TRY(refuse(comm, arg, 2, gate_up, "5x7", "2 dims, but a slice of the layout has 1"));
    TSR_TRY(refuse(comm, arg, 2, gate_up, "5", "2 patterns and a layout of 1 dims"));
    TSR_TRY(refuse(comm, arg, 1, gate_up, "5x4x4", "size 3 along dim 0"));
    TSR_TRY(refuse(comm, arg, 0, gate_up, "5x4x4", "0 patterns"));
    TSR_TRY(refuse(comm, arg, 1, none, "5x3x4", "\"l.0.e.0.gate\" must have one *"));
    TSR_TRY(refuse(comm, arg, 1, two, "5x3x4", "must have one *"));
    TSR_TRY(refuse(comm, arg, 1, null, "5x3x4", "must have one *"));
    TSR_TRY(refuse(comm, arg, 2, twice, "5x6x4", "comes twice"));
    TSR_TRY(refuse(comm, arg, 2, unlike, "5x7x4", "l.0.e.0.down has size 3 along dim 1"));
    TSR_TRY(refuse(comm, NULL, 2, gate_up, "5x7x4", "file is NULL"));
    return refuse(comm, arg, 2, NULL, "5x7x4", "patterns is NULL");
}

static void experts_that_lie_by_themselves_are_read_as_a_stack(void **state)
{
    (void)state;
    tsr_safetensors *file;
    strcpy(folder, "/tmp/tessera-files-XXXXXX");
    snprintf(path, sizeof path, "%s/x", mkdtemp(folder) ? folder : "");
    run_ranks(2, write_experts, NULL);
    expect_ok(tsr_safetensors_open(path, &file));
    run_ranks(4, read_experts, file);
    run_ranks(2, refuse_stacks, file);
    tsr_safetensors_destroy(file);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(experts_that_lie_by_themselves_are_read_as_a_stack)};
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
