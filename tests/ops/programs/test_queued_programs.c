/* Programs on devices that run work later, in any order that streams and events allow, and that
 * detect races: they give the host's bits. */
#include "device_cases.h"
#include "message_engine.h"
#include "queued_trial.h"
#include "wholes.h"

#include <tessera/saved_program.h>
#include <tessera/sys/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static tsr_status check_one(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    return device_check(comm, t->mesh, t->c, &t->on);
}

static void check_on_meshes(const device_case *c, bool with_gemm)
{
    static const char *const meshes[] = {"1", "2", "4"};
    for (int lazy = 0; lazy < 2; lazy++) {
        queued_trial t = {.c = c};
        queued_start(&t, async_ops_table(with_gemm), lazy);
        for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
            t.mesh = meshes[i];
            queued_run(&t, check_one);
        }
        queued_stop(&t);
    }
}

static void layers_forward_and_backward_have_the_bits_of_the_host(void **state)
{
    (void)state;
    check_on_meshes(&device_mlp, true);
    check_on_meshes(&device_mlp, false);
}

static void moves_by_messages_have_the_bits_of_the_host(void **state)
{
    static const device_case *const cases[] = {&device_mlp, &device_moves};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        queued_trial t = {.c = cases[i], .mesh = "4"};
        queued_start(&t, async_ops_table(true), i);
        if (message_engine_run(4, check_one, &t, NULL) != TSR_OK)
            fail_msg("%s", tsr_status_message());
        queued_stop(&t);
    }
}

static void a_llama_with_gradients_has_the_bits_of_the_host(void **state)
{
    (void)state;
    check_on_meshes(&device_llama, false);
}

static void moves_and_views_have_the_bits_of_the_host(void **state)
{
    (void)state;
    check_on_meshes(&device_moves, true);
}

static void states_have_the_bits_of_the_host(void **state)
{
    (void)state;
    check_on_meshes(&device_states, true);
}

/* A prompt of three tokens, and two steps of one token. */
static tsr_status run_lengths(tsr_comm *comm, device_run *r)
{
    static const int64_t steps[][2] = {{3, 3}, {1, 4}, {1, 5}, {9, 9}};
    for (int i = 0; i < 4; i++) {
        TSR_TRY(device_run_set_length(r, "tokens", steps[i][0]));
        TSR_TRY(device_run_set_length(r, "total", steps[i][1]));
        *(int64_t *)r->inputs[1].data = steps[i][1] - steps[i][0];
        TSR_TRY(device_run_enqueue(r));
        TSR_TRY(tsr_executable_prepare(r->x, comm)); /* with these lengths */
    }
    return device_run_finish(r);
}

/* Gives the run an executable that was saved and loaded. */
static tsr_status load(tsr_comm *comm, device_run *r)
{
    char bytes[8192];
    size_t count;
    tsr_executable *x;
    TSR_TRY(tsr_executable_save(r->x, bytes, sizeof bytes, &count));
    EXPECT(count <= sizeof bytes, "the executable has %zu bytes", count);
    TSR_TRY(tsr_executable_load_on(tsr_comm_context(comm), bytes, count, r->device, &x));
    tsr_executable_destroy(r->x);
    r->x = x;
    TSR_TRY(tsr_executable_bind(x, "cache", r->named[2]));
    TSR_TRY(tsr_executable_prepare(x, comm));
    return run_lengths(comm, r);
}

/* Compares what `with` does on the device with what it does on the host. */
static tsr_status check_with(tsr_comm *comm, const queued_trial *t, tsr_status (*with)(tsr_comm *comm, device_run *r))
{
    tsr_mesh *mesh;
    device_run runs[2] = {{.on = NULL}, {.on = NULL}};
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    tsr_status status = TSR_OK;
    for (int i = 0; i < 2 && status == TSR_OK; i++) {
        status = device_run_open(comm, mesh, t->c, i ? &t->on : NULL, &runs[i]);
        if (status == TSR_OK)
            status = device_run_prepare(&runs[i]);
        if (status == TSR_OK)
            status = with(comm, &runs[i]);
    }
    if (status == TSR_OK)
        status = device_run_compare(t->c, &runs[1], &runs[0]);
    device_run_close(&runs[0]);
    device_run_close(&runs[1]);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status check_lengths(tsr_comm *comm, void *arg)
{
    return check_with(comm, arg, run_lengths);
}

static tsr_status check_loaded(tsr_comm *comm, void *arg)
{
    return check_with(comm, arg, load);
}

static void lengths_change_between_runs(void **state)
{
    queued_trial t = {.c = &device_lengths, .mesh = "2"};
    (void)state;
    queued_start(&t, async_ops_table(true), false);
    queued_run(&t, check_lengths);
    queued_stop(&t);
}

static void an_executable_is_loaded_for_a_device(void **state)
{
    queued_trial t = {.c = &device_lengths, .mesh = "2"};
    (void)state;
    queued_start(&t, async_ops_table(true), true);
    queued_run(&t, check_loaded);
    queued_stop(&t);
}

/* Runs while captures record the ranks' streams, one capture for all: a run that waited, for a
 * stream or for an event from outside, would be a fault. */
static tsr_status run_captured(tsr_comm *comm, const queued_trial *t, device_run *r)
{
    TSR_TRY(device_run_enqueue(r));
    TSR_TRY(device_run_finish(r));
    TSR_TRY(tsr_comm_barrier(comm));
    async_capture(t->machine, r->device.index, r->stream, 7);
    TSR_TRY(tsr_comm_barrier(comm));
    TSR_TRY(device_run_enqueue(r));
    TSR_TRY(tsr_comm_barrier(comm));
    async_capture(t->machine, r->device.index, r->stream, 0);
    return device_run_finish(r);
}

static tsr_status check_captured(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    tsr_mesh *mesh;
    device_run r;
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    tsr_status status = device_run_open(comm, mesh, t->c, &t->on, &r);
    if (status == TSR_OK)
        status = device_run_prepare(&r);
    if (status == TSR_OK)
        status = run_captured(comm, t, &r);
    device_run_close(&r);
    tsr_mesh_destroy(mesh);
    return status;
}

static void a_run_can_be_captured(void **state)
{
    queued_trial t = {.c = &device_mlp, .mesh = "2"};
    (void)state;
    queued_start(&t, async_ops_table(true), false);
    queued_run(&t, check_captured);
    queued_stop(&t);
}

/* A device whose calls are done on return. */
static tsr_status launch_at_once(void *self, int index, const struct tsr_kernel_call *call, tsr_stream stream)
{
    const tsr_op *op;
    (void)self;
    (void)index;
    (void)stream;
    TSR_TRY(tsr_op_find(NULL, call->op, &op));
    if (!call->query)
        return op->host(call);
    *call->query = op->workspace_bytes ? op->workspace_bytes(call) : 0;
    return TSR_OK;
}

static void devices_without_streams_have_the_bits_of_the_host(void **state)
{
    static const device_case *const cases[] = {&device_mlp, &device_llama, &device_moves, &device_states};
    const tsr_device_table *host;
    queued_trial t = {.mesh = "2"};
    (void)state;
    assert_int_equal(tsr_device_host_table("portable", &host), TSR_OK);
    tsr_device_table table = *host;
    table.name = "prompt";
    table.launch = launch_at_once;
    t.on.devices = 1;
    assert_int_equal(tsr_device_driver_create(&table, NULL, &t.on.driver), TSR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t.c = cases[i];
        queued_run(&t, check_one);
    }
    tsr_device_driver_destroy(t.on.driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_forward_and_backward_have_the_bits_of_the_host),
        cmocka_unit_test(moves_by_messages_have_the_bits_of_the_host),
        cmocka_unit_test(a_llama_with_gradients_has_the_bits_of_the_host),
        cmocka_unit_test(moves_and_views_have_the_bits_of_the_host),
        cmocka_unit_test(states_have_the_bits_of_the_host),
        cmocka_unit_test(lengths_change_between_runs),
        cmocka_unit_test(an_executable_is_loaded_for_a_device),
        cmocka_unit_test(a_run_can_be_captured),
        cmocka_unit_test(devices_without_streams_have_the_bits_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
