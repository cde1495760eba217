/* Programs on devices that run work later, in any order that streams and events allow, and that
 * detect races: they give the host's bits. */
#include "async_ops.h"
#include "device_running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DEVICES = 2 };

static tsr_value parameter(tsr_program *p, const char *name, const tsr_mesh *mesh, const char *placements, int ndim,
                           int64_t rows, int64_t columns)
{
    tsr_layout *layout;
    const int64_t shape[] = {rows, columns};
    if (tsr_layout_parse(mesh, placements, ndim, shape, TSR_F32, &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value value = tsr_parameter(p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

/* An MLP forward and backward: linears, a P -> R, pointwise ops, sums, constants. */
static void record_mlp(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    tsr_value d[3];
    (void)arg;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){5, 6}, NULL);
    const tsr_value up = parameter(p, "up", mesh, "S(0)", 2, 7, 6), down = parameter(p, "down", mesh, "S(1)", 2, 6, 7);
    const tsr_value h = tsr_op_relu(p, tsr_op_linear(p, tsr_op_vary(p, x), up, TSR_NONE));
    const tsr_value y = tsr_op_all_reduce(p, tsr_op_linear(p, h, down, TSR_NONE), 0);
    const tsr_value loss = tsr_op_sum(p, tsr_op_square(p, y), 0, NULL, 0);
    tsr_gradients(p, loss, 3, (const tsr_value[]){x, up, down}, d);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "x.again", x, NULL);
    tsr_output(p, "loss", loss, NULL);
    tsr_output(p, "d.x", d[0], NULL);
    tsr_output(p, "d.up", d[1], NULL);
    tsr_output(p, "d.down", tsr_op_redistribute(p, d[2], "S(0)"), NULL);
}

static const device_case mlp = {"mlp", record_mlp, NULL, 0};

/* A program under test. */
typedef struct trial {
    const device_case *c;
    const char *mesh;
    tsr_policy policy;
    device_running on;
    async_machine *machine;
} trial;

static tsr_status check_one(tsr_comm *comm, void *arg)
{
    const trial *const t = arg;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    const tsr_status status = device_check(comm, mesh, t->c, &t->on);
    tsr_mesh_destroy(mesh);
    return status;
}

static void start(trial *t, const tsr_device_table *table, bool lazy)
{
    const async_options options = {.devices = DEVICES, .seed = 31, .lazy = lazy};
    t->machine = async_create(&options);
    assert_non_null(t->machine);
    t->on = (device_running){.devices = DEVICES, .held_up = async_held_up};
    assert_int_equal(tsr_device_driver_create(table, t->machine, &t->on.driver), TSR_OK);
}

static void stop(trial *t)
{
    const char *const fault = async_fault(t->machine);
    if (fault)
        fail_msg("%s", fault);
    tsr_device_driver_destroy(t->on.driver);
    async_destroy(t->machine);
}

static void run(trial *t, tsr_rank_main *body)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    options.policy = t->policy;
    threads.timeout_ms = 20000;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    const tsr_status status = tsr_threads_run(support_count_ranks(t->mesh), body, t, &threads);
    tsr_context_destroy(threads.context);
    if (status != TSR_OK)
        fail_msg("mesh %s: %s: %s", t->mesh, tsr_status_name(status), tsr_status_message());
}

static void check_on_meshes(const device_case *c, bool with_gemm)
{
    static const char *const meshes[] = {"1", "2", "4"};
    for (int lazy = 0; lazy < 2; lazy++) {
        trial t = {.c = c};
        start(&t, async_ops_table(with_gemm), lazy);
        for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
            t.mesh = meshes[i];
            run(&t, check_one);
        }
        stop(&t);
    }
}

static void layers_forward_and_backward_have_the_bits_of_the_host(void **state)
{
    (void)state;
    check_on_meshes(&mlp, true);
    check_on_meshes(&mlp, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_forward_and_backward_have_the_bits_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
