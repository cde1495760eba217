/* The devices that ggml sees: how many, on which processors, with which memory. */
#include "split.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* How many devices a new process has with a value of TSR_GGML_DEVICES; -1: ggml does not load them,
 * and the log says why. */
static int devices_with(const char *value)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("TSR_GGML_DEVICES", value, 1);
        const ggml_backend_reg_t reg = load_tessera();
        if (!reg && !strstr(last_error, "ggml_backend_init returned NULL"))
            _exit(98);
        _exit(reg ? (int)ggml_backend_reg_dev_count(reg) : 99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 98);
    return WEXITSTATUS(status) == 99 ? -1 : WEXITSTATUS(status);
}

/* Runs before this process loads the library. */
static void the_environment_says_how_many(void **state)
{
    (void)state;
    assert_int_equal(devices_with("1"), 1);
    assert_int_equal(devices_with("4"), 4);
    assert_int_equal(devices_with("16"), 16);
    assert_in_range(devices_with(""), 1, MOST_DEVICES);
    assert_int_equal(devices_with("0"), -1);
    assert_int_equal(devices_with("17"), -1);
    assert_int_equal(devices_with("-2"), -1);
    assert_int_equal(devices_with("4 devices"), -1);
}

static void devices_have_names_and_memory(void **state)
{
    const ggml_backend_reg_t reg = load_tessera();
    (void)state;
    assert_string_equal(ggml_backend_reg_name(reg), "Tessera");
    assert_ptr_equal(load_tessera(), reg);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 16);
    assert_null(ggml_backend_reg_dev_get(reg, 16));
    assert_null(ggml_backend_reg_get_proc_address(reg, "ggml_backend_something_else"));
    for (size_t d = 0; d < 16; d++) {
        struct ggml_backend_dev_props props;
        char name[16];
        const ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, d);
        (void)snprintf(name, sizeof name, "Tessera%d", (int)d);
        ggml_backend_dev_get_props(device, &props);
        assert_string_equal(props.name, name);
        assert_ptr_equal(ggml_backend_dev_by_name(name), device);
        assert_non_null(strstr(props.description, "processors"));
        assert_true(props.memory_free > 0 && props.memory_free <= props.memory_total);
        assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_IGPU);
    }
}

/* Zero bytes too. A device takes memory of its own and of the host, but not of another device. */
static void memory_is_written_read_and_copied(void **state)
{
    const ggml_backend_t zero = open_backend(0), one = open_backend(1);
    const struct ggml_init_params params = {4 * ggml_tensor_overhead(), NULL, true};
    struct ggml_context *const contexts[] = {ggml_init(params), ggml_init(params)};
    struct ggml_tensor *const a = ggml_new_tensor_1d(contexts[0], GGML_TYPE_I32, 100);
    struct ggml_tensor *const b = ggml_new_tensor_1d(contexts[1], GGML_TYPE_I32, 100);
    const ggml_backend_buffer_t at = ggml_backend_alloc_ctx_tensors(contexts[0], zero);
    const ggml_backend_buffer_t bt = ggml_backend_alloc_ctx_tensors(contexts[1], one);
    const ggml_backend_buffer_t empty = ggml_backend_alloc_buffer(zero, 0);
    int32_t values[100], back[100];
    (void)state;
    for (int i = 0; i < 100; i++)
        values[i] = i * i;
    ggml_backend_buffer_clear(bt, 0);
    ggml_backend_tensor_set_async(zero, a, values, 0, sizeof values);
    ggml_backend_tensor_copy_async(zero, one, a, b);
    ggml_backend_tensor_memset(b, 0xff, 0, 40);
    ggml_backend_tensor_get_async(one, b, back, 0, sizeof back);
    for (int i = 0; i < 100; i++)
        assert_int_equal(back[i], i < 10 ? -1 : i * i);
    assert_false(ggml_backend_buffer_is_host(at));
    assert_true(ggml_backend_supports_buft(zero, at->buft));
    assert_false(ggml_backend_supports_buft(zero, bt->buft));
    assert_true(ggml_backend_supports_buft(zero, ggml_backend_cpu_buffer_type()));
    assert_true((uintptr_t)a->data % 64 == 0);
    assert_null(ggml_backend_alloc_buffer(zero, (size_t)1 << 60));
    ggml_backend_buffer_free(empty);
    ggml_backend_buffer_free(bt);
    ggml_backend_buffer_free(at);
    ggml_free(contexts[1]);
    ggml_free(contexts[0]);
    ggml_backend_free(one);
    ggml_backend_free(zero);
}

static void note_processors(struct ggml_tensor *target, const struct ggml_tensor *source, int thread, int threads,
                            void *data)
{
    cpu_set_t *const seen = data;
    (void)target, (void)source, (void)threads;
    if (thread == 0)
        (void)sched_getaffinity(0, sizeof *seen, seen);
}

static bool give_up(void *data)
{
    (void)data;
    return true;
}

/* Computes a node that notes where it runs, and returns the status. */
static enum ggml_status visit(ggml_backend_t backend, cpu_set_t *seen)
{
    const struct ggml_init_params params = {8 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    struct ggml_context *const context = ggml_init(params);
    struct ggml_tensor *const tensor = ggml_new_tensor_1d(context, GGML_TYPE_F32, 4);
    struct ggml_tensor *const node = ggml_map_custom1(context, tensor, note_processors, GGML_N_TASKS_MAX, seen);
    struct ggml_cgraph *const graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, ggml_sqr(context, node));
    const ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, backend);
    ggml_backend_buffer_clear(buffer, 0);
    const enum ggml_status status = ggml_backend_graph_compute(backend, graph);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    return status;
}

/* 16 devices: each has a sixteenth of the processors, or one of them. */
static void devices_stay_on_their_processors(void **state)
{
    cpu_set_t allowed, all, common;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&all);
    for (int d = 0; d < 16; d++) {
        cpu_set_t seen;
        const ggml_backend_t backend = open_backend(d);
        CPU_ZERO(&seen);
        assert_int_equal(visit(backend, &seen), GGML_STATUS_SUCCESS);
        const int most = CPU_COUNT(&allowed) > 16 ? (CPU_COUNT(&allowed) + 15) / 16 : 1;
        assert_in_range(CPU_COUNT(&seen), 1, most);
        CPU_AND(&common, &seen, &allowed);
        assert_true(CPU_EQUAL(&common, &seen));
        CPU_OR(&all, &all, &seen);
        ggml_backend_free(backend);
    }
    assert_true(CPU_EQUAL(&all, &allowed));
}

static void threads_and_an_end_can_be_set(void **state)
{
    cpu_set_t seen;
    ggml_backend_set_n_threads_t set_threads;
    ggml_backend_set_abort_callback_t set_abort;
    const ggml_backend_t backend = open_backend(0);
    (void)state;
    find_function(load_tessera(), "ggml_backend_set_n_threads", &set_threads);
    find_function(load_tessera(), "ggml_backend_set_abort_callback", &set_abort);
    for (int threads = 0; threads < 4; threads++) {
        set_threads(backend, threads);
        assert_int_equal(visit(backend, &seen), GGML_STATUS_SUCCESS);
    }
    set_abort(backend, give_up, NULL);
    assert_int_equal(visit(backend, &seen), GGML_STATUS_ABORTED);
    set_abort(backend, NULL, NULL);
    assert_int_equal(visit(backend, &seen), GGML_STATUS_SUCCESS);
    ggml_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_says_how_many),     cmocka_unit_test(devices_have_names_and_memory),
        cmocka_unit_test(memory_is_written_read_and_copied), cmocka_unit_test(devices_stay_on_their_processors),
        cmocka_unit_test(threads_and_an_end_can_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
