#include "split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a meta device's function that splits is given. */
typedef struct cutting {
    int devices;
    int unit;
} cutting;

enum { MOST_UNIT = 64 };

char last_error[1024];

static void keep_errors(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR)
        (void)snprintf(last_error, sizeof last_error, "%s", text);
}

/* ggml keeps what its meta devices are made of to the end of the process. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:ggml_backend_meta_device";
}

ggml_backend_reg_t load_tessera(void)
{
    (void)setenv("TSR_GGML_DEVICES", "16", 0);
    ggml_log_set(keep_errors, NULL);
    return ggml_backend_load(GGML_TESSERA);
}

void find_function(ggml_backend_reg_t reg, const char *name, void *function)
{
    void *const found = ggml_backend_reg_get_proc_address(reg, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

/* One thread: others spin, which on busy processors takes far longer than these products. */
ggml_backend_t open_processor(void)
{
    const ggml_backend_t backend = ggml_backend_init_by_name("CPU", NULL);
    ggml_backend_set_n_threads_t set_threads;
    find_function(ggml_backend_reg_by_name("CPU"), "ggml_backend_set_n_threads", &set_threads);
    set_threads(backend, 1);
    return backend;
}

ggml_backend_t open_backend(int rank)
{
    ggml_backend_t const backend = ggml_backend_dev_init(ggml_backend_reg_dev_get(load_tessera(), (size_t)rank), NULL);
    assert_non_null(backend);
    return backend;
}

/* Units that are before a rank. */
static int64_t before(int64_t length, int unit, int devices, int rank)
{
    const int64_t at = length / unit * rank / devices * unit;
    return rank == devices ? length : at;
}

int64_t features_before(const layer *l, int devices, int rank)
{
    return before(l->inner, l->unit, devices, rank);
}

static struct ggml_backend_meta_split_state split_by_name(const struct ggml_tensor *tensor, void *data)
{
    const cutting *const c = data;
    struct ggml_backend_meta_split_state state = {.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED, .nr = {1}, .n_segments = 1};
    if (strcmp(tensor->name, "up") == 0)
        state.axis = GGML_BACKEND_SPLIT_AXIS_1;
    else if (strcmp(tensor->name, "down") == 0)
        state.axis = GGML_BACKEND_SPLIT_AXIS_0;
    else
        return state;
    const int64_t length = tensor->ne[state.axis];
    for (int r = 0; r < c->devices; r++)
        state.ne[r] = before(length, c->unit, c->devices, r + 1) - before(length, c->unit, c->devices, r);
    return state;
}

ggml_backend_dev_t meta_device(int devices, int unit)
{
    /* ggml keeps the pointers to the end of the process. */
    static cutting cuttings[MOST_DEVICES + 1][MOST_UNIT + 1];
    ggml_backend_dev_t members[MOST_DEVICES];
    for (int r = 0; r < devices; r++)
        members[r] = ggml_backend_reg_dev_get(load_tessera(), (size_t)r);
    cuttings[devices][unit] = (cutting){devices, unit};
    return ggml_backend_meta_device(members, (size_t)devices, split_by_name, &cuttings[devices][unit]);
}

/* Writes floats into a tensor, in the tensor's dtype. */
static void set_floats(struct ggml_tensor *tensor, const float *values)
{
    const int64_t rows = ggml_nrows(tensor);
    void *const bytes = malloc(ggml_nbytes(tensor) + 1);
    if (tensor->type == GGML_TYPE_F32)
        memcpy(bytes, values, ggml_nbytes(tensor));
    else
        ggml_quantize_chunk(tensor->type, values, bytes, 0, rows, tensor->ne[0], NULL);
    ggml_backend_tensor_set(tensor, bytes, 0, ggml_nbytes(tensor));
    free(bytes);
}

static struct ggml_context *small_context(void)
{
    const struct ggml_init_params params = {64 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    return ggml_init(params);
}

enum ggml_status run_layer(const layer *l, ggml_backend_t backend, int times, float *y)
{
    struct ggml_context *const constants = small_context(), *const nodes = small_context();
    struct ggml_tensor *const up = ggml_new_tensor_2d(constants, l->weights, l->in, l->inner);
    struct ggml_tensor *const down = ggml_new_tensor_2d(constants, l->weights, l->inner, l->out);
    struct ggml_tensor *const x = ggml_new_tensor_2d(constants, GGML_TYPE_F32, l->in, l->tokens);
    struct ggml_tensor *const bias = ggml_new_tensor_1d(constants, GGML_TYPE_F32, l->out);
    const ggml_backend_buffer_type_t memory = ggml_backend_get_default_buffer_type(backend);
    enum ggml_status status = GGML_STATUS_SUCCESS;
    ggml_set_name(up, "up");
    ggml_set_name(down, "down");
    const ggml_backend_buffer_t weights = ggml_backend_alloc_ctx_tensors_from_buft(constants, memory);
    set_floats(up, l->up);
    set_floats(down, l->down);
    set_floats(x, l->x);
    set_floats(bias, l->bias);
    struct ggml_tensor *const inner = ggml_mul_mat(nodes, up, x);
    struct ggml_tensor *const out = ggml_add(nodes, ggml_mul_mat(nodes, down, inner), bias);
    struct ggml_cgraph *const graph = ggml_new_graph(nodes);
    const ggml_gallocr_t allocator = ggml_gallocr_new(memory);
    ggml_build_forward_expand(graph, out);
    assert_true(ggml_gallocr_alloc_graph(allocator, graph));
    for (int i = 0; i < times; i++)
        status = ggml_backend_graph_compute(backend, graph);
    ggml_backend_tensor_get(out, y, 0, ggml_nbytes(out));
    ggml_gallocr_free(allocator);
    ggml_backend_buffer_free(weights);
    ggml_free(nodes);
    ggml_free(constants);
    return status;
}

/* The rows of `down` hold `l->inner` features, of which a rank has some; they are copied. */
static float *columns_of(const layer *l, int64_t begin, int64_t end)
{
    float *const part = malloc((size_t)(l->out * (end - begin) + 1) * sizeof *part);
    for (int64_t row = 0; row < l->out; row++)
        memcpy(part + row * (end - begin), l->down + row * l->inner + begin, (size_t)(end - begin) * sizeof *part);
    return part;
}

void run_apart(const layer *l, int devices, float *y)
{
    const int64_t elements = l->tokens * l->out;
    const ggml_backend_t cpu = open_processor();
    float *const term = calloc((size_t)elements, sizeof *term), *const zeros = calloc((size_t)l->out, sizeof *zeros);
    for (int r = 0; r < devices; r++) {
        const int64_t begin = features_before(l, devices, r), end = features_before(l, devices, r + 1);
        float *const down = columns_of(l, begin, end);
        layer part = *l;
        part.inner = end - begin;
        part.up = l->up + begin * l->in;
        part.down = down;
        part.bias = zeros;
        memset(term, 0, (size_t)elements * sizeof *term);
        if (part.inner > 0)
            assert_int_equal(run_layer(&part, cpu, 1, term), GGML_STATUS_SUCCESS);
        for (int64_t i = 0; i < elements; i++)
            y[i] = r == 0 ? term[i] : y[i] + term[i];
        free(down);
    }
    for (int64_t i = 0; i < elements; i++)
        y[i] += l->bias[i % l->out];
    free(zeros);
    free(term);
    ggml_backend_free(cpu);
}

float *numbers(int64_t count, unsigned seed, int whole)
{
    float *const values = malloc((size_t)(count + 1) * sizeof *values);
    uint32_t state = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = whole ? (float)((int)(state >> 28) - 8) : (float)(int32_t)state / 2147483648.0f;
    }
    return values;
}
