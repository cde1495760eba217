/* Programs on devices that run work later, in any order that streams and events allow, and that
 * detect races: they give the host's bits. */
#include "device_cases.h"
#include "queued_trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static tsr_status check_one(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    const tsr_status status = device_check(comm, mesh, t->c, &t->on);
    tsr_mesh_destroy(mesh);
    return status;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_forward_and_backward_have_the_bits_of_the_host),
        cmocka_unit_test(a_llama_with_gradients_has_the_bits_of_the_host),
        cmocka_unit_test(moves_and_views_have_the_bits_of_the_host),
        cmocka_unit_test(states_have_the_bits_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
