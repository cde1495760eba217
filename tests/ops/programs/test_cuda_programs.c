/* Programs on GPUs if the machine has any, else on emulated ones: what is exact has the host's
 * bits, and each op those of its call on the device. */
#include "device_cases.h"
#include "gpus.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A program on a mesh. */
typedef struct trial {
    device_running on;
    const char *mesh;
    const device_case *c;
} trial;

static tsr_status check_one(tsr_comm *comm, void *arg)
{
    const trial *const t = arg;
    return device_check(comm, t->mesh, t->c, &t->on);
}

static void run_on_meshes(const device_case *c, tsr_rank_main *body)
{
    static const char *const meshes[] = {"1", "2", "4"};
    gpus g;
    gpus_open(&g);
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        trial t = {.on = {.driver = g.driver, .devices = g.count}, .mesh = meshes[i], .c = c};
        const tsr_status status = tsr_threads_run(support_count_ranks(t.mesh), body, &t, NULL);
        if (status != TSR_OK)
            fail_msg("mesh %s: %s: %s", t.mesh, tsr_status_name(status), tsr_status_message());
    }
    tsr_device_driver_destroy(g.driver);
}

static void layers_forward_and_backward_have_the_bits_of_the_host(void **state)
{
    (void)state;
    run_on_meshes(&device_mlp, check_one);
}

static void moves_and_views_have_the_bits_of_the_host(void **state)
{
    (void)state;
    run_on_meshes(&device_moves, check_one);
}

static void states_have_the_bits_of_the_host(void **state)
{
    (void)state;
    run_on_meshes(&device_states, check_one);
}

/* Ops one after the other; values are x, weight, bias, w, then the results. */
typedef struct line {
    const char *op;
    int operands[3]; /* values; -1: none */
} line;

enum { GIVEN = 4, VALUES = 24 };

static const line lines[] = {
    {"softmax", {0, -1, -1}},           /* 4 */
    {"silu_mul", {4, 0, -1}},           /* 5 */
    {"rms_norm", {5, 1, -1}},           /* 6 */
    {"layer_norm", {6, 1, 2}},          /* 7 */
    {"gelu", {7, -1, -1}},              /* 8 */
    {"layer_norm_gradient", {8, 6, 1}}, /* 9 to 11 */
    {"rms_norm_gradient", {9, 5, 1}},   /* 12, 13 */
    {"softmax_gradient", {12, 4, -1}},  /* 14 */
    {"silu_gradient", {14, 0, -1}},     /* 15 */
    {"log_softmax", {15, -1, -1}},      /* 16 */
    {"matmul", {16, 3, -1}},            /* 17 */
    {"linear", {17, 3, 2}},             /* 18 */
    {"linear_gradient_x", {18, 3, -1}}, /* 19 */
    {"linear_gradient_w", {19, 0, -1}}, /* 20 */
    {"matmul_gradient_b", {18, 17, 3}}, /* 21 */
};

#define LINES (sizeof lines / sizeof lines[0])

static void record_lines(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    tsr_value values[VALUES] = {tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){6, 8}, "S(0)"),
                                device_parameter(p, "weight", mesh, "R", 1, 8, 0),
                                device_parameter(p, "bias", mesh, "R", 1, 8, 0),
                                device_parameter(p, "w", mesh, "R", 2, 8, 8)};
    int count = GIVEN;
    (void)arg;
    for (size_t i = 0; i < LINES; i++) {
        const tsr_op *op;
        tsr_op_info info;
        tsr_value operands[TSR_OP_MOST_OPERANDS];
        for (int k = 0; k < TSR_OP_MOST_OPERANDS; k++)
            operands[k] = k < 3 && lines[i].operands[k] >= 0 ? values[lines[i].operands[k]] : TSR_NONE;
        tsr_program_apply(p, lines[i].op, 0, NULL, operands, &values[count]);
        if (tsr_op_find(NULL, lines[i].op, &op) != TSR_OK)
            return;
        tsr_op_describe(op, &info);
        for (int k = 0; info.results[k]; k++) {
            char name[16];
            snprintf(name, sizeof name, "y%d", count);
            tsr_output(p, name, values[count++], NULL);
        }
    }
}

/* Calls the ops on the run's device, and puts the results in place of the host's outputs. */
static tsr_status call_lines(const device_run *r, device_run *calls)
{
    tsr_dtensor *values[VALUES] = {r->named[0], r->named[1], r->named[2], r->named[3]};
    int count = GIVEN;
    for (size_t i = 0; i < LINES; i++) {
        const tsr_op *op;
        tsr_op_info info;
        const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS] = {NULL};
        for (int k = 0; k < 3; k++)
            operands[k] = lines[i].operands[k] >= 0 ? values[lines[i].operands[k]] : NULL;
        TSR_TRY(tsr_op_find(NULL, lines[i].op, &op));
        tsr_op_describe(op, &info);
        TSR_TRY(tsr_op_call(op, 0, NULL, operands, &values[count]));
        for (int k = 0; info.results[k]; k++, count++) {
            calls->made[count - GIVEN] = values[count];
            calls->outputs[count - GIVEN] = tsr_dtensor_to_local(values[count]);
        }
    }
    return TSR_OK;
}

static tsr_status check_lines(tsr_comm *comm, void *arg)
{
    const trial *const t = arg;
    tsr_mesh *mesh;
    device_run r;
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    tsr_status status = device_run_open(comm, mesh, t->c, &t->on, &r);
    device_run calls = {.on = &t->on, .table = r.table, .self = r.self, .device = r.device};
    if (status == TSR_OK)
        status = device_run_prepare(&r);
    if (status == TSR_OK)
        status = device_run_enqueue(&r);
    if (status == TSR_OK)
        status = device_run_finish(&r);
    if (status == TSR_OK)
        status = call_lines(&r, &calls);
    for (int i = 0; i < GIVEN; i++)
        calls.named[i] = tsr_dtensor_retain(r.named[i]);
    if (status == TSR_OK)
        status = device_run_compare(t->c, &r, &calls);
    device_run_close(&calls);
    device_run_close(&r);
    tsr_mesh_destroy(mesh);
    return status;
}

static void each_op_has_the_bits_of_its_call_on_the_device(void **state)
{
    static const device_case c = {"lines", record_lines, NULL, 0};
    (void)state;
    run_on_meshes(&c, check_lines);
}

/* A Llama wants kernels that CUDA does not have: that is told by name. */
static tsr_status refuse_llama(tsr_comm *comm, void *arg)
{
    const trial *const t = arg;
    tsr_mesh *mesh;
    device_run r;
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    tsr_status status = device_run_open(comm, mesh, t->c, &t->on, &r);
    if (status == TSR_OK) {
        status = device_run_prepare(&r);
        EXPECT(status == TSR_ERROR_UNSUPPORTED && strstr(tsr_status_message(), "device \"cuda\" has no kernel of rope"),
               "%s: %s", tsr_status_name(status), tsr_status_message());
        status = TSR_OK;
    }
    device_run_close(&r);
    tsr_mesh_destroy(mesh);
    return status;
}

static void ops_without_a_kernel_are_refused_by_name(void **state)
{
    (void)state;
    run_on_meshes(&device_llama, refuse_llama);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_forward_and_backward_have_the_bits_of_the_host),
        cmocka_unit_test(moves_and_views_have_the_bits_of_the_host),
        cmocka_unit_test(states_have_the_bits_of_the_host),
        cmocka_unit_test(each_op_has_the_bits_of_its_call_on_the_device),
        cmocka_unit_test(ops_without_a_kernel_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
