/* States, stores and lengths: one program serves a prompt and each step after it. */
#include "layers.h"
#include "running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADS = 3, WIDTH = 2, MOST = 9, TOTAL = 8 };

static tsr_value apply(tsr_program *p, const char *op, size_t count, const tsr_attribute *attributes, tsr_value a,
                       tsr_value b)
{
    return tsr_program_apply(p, op, count, attributes, (const tsr_value[]){a, b, TSR_NONE, TSR_NONE}, NULL);
}

static tsr_value multiply(tsr_program *p, const char *equation, tsr_value a, tsr_value b)
{
    const tsr_attribute attribute = tsr_attribute_text("equation", equation);
    return apply(p, "einsum", 1, &attribute, a, b);
}

/* Sums over heads of (x k') k, where k are all keys so far; the heads are cut. */
static tsr_status record(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_layout *layout;
    const int64_t keys[] = {HEADS, MOST, WIDTH};
    const int64_t tokens = tsr_length(p, "tokens", MOST), total = tsr_length(p, "total", MOST);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 3, (const int64_t[]){HEADS, tokens, WIDTH}, "S(0)");
    const tsr_value position = tsr_input(p, "position", mesh, TSR_I64, 0, NULL, NULL);
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 3, keys, TSR_F32, &layout));
    const tsr_value cache = tsr_state(p, "cache", layout);
    tsr_layout_destroy(layout);
    const tsr_attribute dim0 = tsr_attribute_ints("dim", 1, (const int64_t[]){0});
    tsr_op_store(p, cache, x, position);
    const tsr_attribute range[] = {tsr_attribute_int("dim", 1), tsr_attribute_int("end", total)};
    const tsr_value k = apply(p, "slice", 2, range, cache, TSR_NONE);
    const tsr_value y = multiply(p, "hqk,hkd->hqd", multiply(p, "hqd,hkd->hqk", x, k), k);
    const tsr_value sum = apply(p, "sum", 1, &dim0, y, TSR_NONE);
    tsr_output(p, "y", apply(p, "all_reduce", 0, NULL, sum, TSR_NONE), NULL);
    return tsr_program_status(p, NULL);
}

static float value_of(int64_t head, int64_t token, int64_t i)
{
    return (float)((head * 5 + token * 3 + i * 7) % 5 - 2);
}

/* What the program computes for a token when there are `total`. */
static float expected(int64_t token, int64_t i, int64_t total)
{
    float sum = 0;
    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t t = 0; t < total; t++) {
            float product = 0;
            for (int64_t d = 0; d < WIDTH; d++)
                product += value_of(h, token, d) * value_of(h, t, d);
            sum += product * value_of(h, t, i);
        }
    return sum;
}

/* Runs `tokens` tokens from `position` on, of `total`. */
static tsr_status run(tsr_executable *x, tsr_comm *comm, const tsr_mesh *mesh, int64_t position, int64_t tokens,
                      int64_t total, void *workspace)
{
    float all[HEADS * MOST * WIDTH], y[MOST * WIDTH];
    const int64_t shape[] = {HEADS, tokens, WIDTH}, out[] = {tokens, WIDTH};
    tsr_dtensor *given;
    for (int64_t i = 0; i < HEADS * tokens * WIDTH; i++)
        all[i] = value_of(i / (tokens * WIDTH), position + i / WIDTH % tokens, i % WIDTH);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F32, 3, shape, all, &given));
    const tsr_tensor inputs[] = {tsr_dtensor_to_local(given), tsr_tensor_contiguous(&position, TSR_I64, 0, NULL)};
    const tsr_tensor outputs[] = {tsr_tensor_contiguous(y, TSR_F32, 2, out)};
    TSR_TRY(tsr_executable_set_length(x, "tokens", tokens));
    TSR_TRY(tsr_executable_set_length(x, "total", total));
    const tsr_status status =
        tsr_executable_run(x, comm, inputs, outputs, workspace, tsr_executable_workspace_bytes(x), NULL);
    tsr_dtensor_destroy(given);
    TSR_TRY(status);
    for (int64_t i = 0; i < tokens * WIDTH; i++) {
        const float wanted = expected(position + i / WIDTH, i % WIDTH, total);
        TSR_TRY(support_expect_held(y[i] == wanted, "y", i, y[i], wanted));
    }
    return TSR_OK;
}

static tsr_status step(tsr_executable *x, tsr_comm *comm, const tsr_mesh *mesh, int64_t position, int64_t tokens,
                       void *workspace)
{
    return run(x, comm, mesh, position, tokens, position + tokens, workspace);
}

/* Rank 0 stores past the end of the cache; its peers hear of it. */
static tsr_status expect_bad_position(tsr_executable *x, tsr_comm *comm, const tsr_mesh *mesh, void *workspace)
{
    const bool is_bad = tsr_comm_rank(comm) == 0;
    const tsr_status status = run(x, comm, mesh, is_bad ? MOST - 1 : 1, 2, 3, workspace);
    EXPECT(status == (is_bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER), "%s: %s", tsr_status_name(status),
           tsr_status_message());
    if (is_bad)
        EXPECT(strstr(tsr_status_message(),
                      "position is 8, but a value of 2 in a state of 9 must begin at 0 to 7; states may have "
                      "changed: \"cache\" and 0 more"),
               "%s", tsr_status_message());
    return run(x, comm, mesh, 0, 3, 3, workspace);
}

static tsr_status serve(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    tsr_dtensor *cache;
    char text[8];
    (void)arg;
    snprintf(text, sizeof text, "%d", tsr_comm_size(comm));
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    TSR_TRY(record(p, mesh));
    TSR_TRY(tsr_compile(p, NULL, &x));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(x, comm));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 3, (const int64_t[]){HEADS, MOST, WIDTH}, 1, &cache));
    TSR_TRY(tsr_executable_bind(x, "cache", cache));
    void *const workspace = aligned_alloc(64, tsr_executable_workspace_bytes(x));
    for (int round = 0; round < 2; round++) {
        TSR_TRY(step(x, comm, mesh, 0, 5, workspace));
        for (int64_t at = 5; at < TOTAL; at++)
            TSR_TRY(step(x, comm, mesh, at, 1, workspace));
    }
    /* More lengths than plans are kept for. */
    for (int64_t tokens = MOST; tokens >= 1; tokens--)
        TSR_TRY(step(x, comm, mesh, 0, tokens, workspace));
    /* The program's moves do not depend on this length, so a rank gives it without its peers. */
    for (int64_t total = 1; tsr_comm_rank(comm) == 0 && total <= MOST; total++)
        TSR_TRY(tsr_executable_set_length(x, "total", total));
    EXPECT(tsr_executable_set_length(x, "tokens", MOST + 1) == TSR_ERROR_ARGUMENT, "a length past the maximum");
    EXPECT(tsr_executable_set_length(x, "width", 1) == TSR_ERROR_ARGUMENT, "a length that is not there");
    TSR_TRY(expect_bad_position(x, comm, mesh, workspace));
    free(workspace);
    tsr_dtensor_destroy(cache);
    tsr_executable_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void one_program_serves_prompts_and_steps(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        layers_run(ranks, serve, NULL);
}

/* The first rows of a tensor, as many as a length says: a copy, because they are an output. */
static tsr_status take_rows(tsr_comm *comm, void *arg)
{
    enum { ROWS = 67, GUARD = 64 * 1024 };
    static const int64_t lengths[] = {1, ROWS, 64, 65, 66, ROWS};
    const int64_t shape[] = {ROWS, WIDTH};
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_value given = tsr_input(p, "x", mesh, TSR_F32, 2, shape, NULL);
    tsr_output(p, "y", tsr_op_narrow(p, given, 0, 0, tsr_length(p, "rows", ROWS)), NULL);
    TSR_TRY(tsr_compile(p, NULL, &x));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(x, comm));
    const size_t bytes = tsr_executable_workspace_bytes(x);
    EXPECT(bytes == 0, "copying rows wants %zu bytes", bytes);
    unsigned char *const workspace = aligned_alloc(64, bytes + GUARD);
    memset(workspace, 0xa5, bytes + GUARD);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        float all[ROWS * WIDTH], y[ROWS * WIDTH];
        for (int at = 0; at < ROWS * WIDTH; at++)
            all[at] = value_of(0, at / WIDTH, at % WIDTH);
        const tsr_tensor in = tsr_tensor_contiguous(all, TSR_F32, 2, shape);
        const tsr_tensor out = tsr_tensor_contiguous(y, TSR_F32, 2, (const int64_t[]){lengths[i], WIDTH});
        TSR_TRY(tsr_executable_set_length(x, "rows", lengths[i]));
        TSR_TRY(tsr_executable_run(x, comm, &in, &out, workspace, bytes, NULL));
        EXPECT(memcmp(y, all, (size_t)lengths[i] * WIDTH * sizeof y[0]) == 0, "other rows");
    }
    for (size_t i = bytes; i < bytes + GUARD; i++)
        EXPECT(workspace[i] == 0xa5, "byte %zu behind the workspace was written", i - bytes);
    free(workspace);
    tsr_executable_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void copies_stay_inside_the_workspace(void **state)
{
    (void)state;
    layers_run(1, take_rows, NULL);
}

/* One program adds terms to a state in each run, another one sums them over ranks. */
enum { TERM_RUNS = 3, TERM_ROWS = 2, TERM_IN = 5 };

static tsr_status record_terms(tsr_program *p, const tsr_mesh *mesh, bool sums)
{
    static const int64_t shape[] = {TERM_ROWS, TERM_IN};
    tsr_layout *layout;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(1)");
    const tsr_value terms = tsr_op_matmul(p, x, tsr_op_transpose(p, x, 0, 1));
    TSR_TRY(tsr_layout_parse(mesh, "P", 2, (const int64_t[]){TERM_ROWS, TERM_ROWS}, TSR_F32, &layout));
    const tsr_value kept = tsr_state(p, "terms", layout), more = tsr_op_add(p, kept, terms);
    tsr_layout_destroy(layout);
    if (sums)
        tsr_output(p, "sum", tsr_op_all_reduce(p, more, 0), NULL);
    else
        tsr_op_store(p, kept, more, TSR_NONE);
    return tsr_program_status(p, NULL);
}

static tsr_status open_terms(tsr_comm *comm, const tsr_mesh *mesh, bool sums, tsr_executable **x)
{
    tsr_program *p;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    TSR_TRY(record_terms(p, mesh, sums));
    TSR_TRY(tsr_compile(p, NULL, x));
    tsr_program_destroy(p);
    return tsr_executable_prepare(*x, comm);
}

static tsr_status accumulate(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_executable *add, *sum;
    tsr_executable_figures figures;
    tsr_executable_binding binding;
    tsr_dtensor *terms, *given;
    char text[8];
    float all[TERM_ROWS * TERM_IN], y[TERM_ROWS * TERM_ROWS];
    (void)arg;
    snprintf(text, sizeof text, "%d", tsr_comm_size(comm));
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    TSR_TRY(open_terms(comm, mesh, false, &add));
    TSR_TRY(open_terms(comm, mesh, true, &sum));
    TSR_TRY(tsr_executable_figures_of(add, &figures));
    EXPECT(figures.bytes_received == 0, "terms are received");
    TSR_TRY(tsr_executable_binding_at(add, 0, &binding));
    TSR_TRY(tsr_dtensor_create(binding.layout, tsr_device_host(), &terms));
    TSR_TRY(tsr_dtensor_fill(terms, 0, NULL));
    TSR_TRY(tsr_executable_bind(add, "terms", terms));
    TSR_TRY(tsr_executable_bind(sum, "terms", terms));
    for (int i = 0; i < TERM_ROWS * TERM_IN; i++)
        all[i] = value_of(0, i / TERM_IN, i % TERM_IN);
    TSR_TRY(support_distribute(mesh, "S(1)", TSR_F32, 2, (const int64_t[]){TERM_ROWS, TERM_IN}, all, &given));
    const tsr_tensor in = tsr_dtensor_to_local(given);
    const tsr_tensor out = tsr_tensor_contiguous(y, TSR_F32, 2, (const int64_t[]){TERM_ROWS, TERM_ROWS});
    void *const workspace = aligned_alloc(64, 4096);
    for (int i = 0; i < TERM_RUNS; i++)
        TSR_TRY(tsr_executable_run(add, comm, &in, NULL, workspace, 4096, NULL));
    TSR_TRY(tsr_executable_run(sum, comm, &in, &out, workspace, 4096, NULL));
    for (int i = 0; i < TERM_ROWS * TERM_ROWS; i++) {
        float wanted = 0;
        for (int k = 0; k < TERM_IN; k++)
            wanted += (TERM_RUNS + 1) * all[i / TERM_ROWS * TERM_IN + k] * all[i % TERM_ROWS * TERM_IN + k];
        TSR_TRY(support_expect_held(y[i] == wanted, "sum", i, y[i], wanted));
    }
    free(workspace);
    tsr_dtensor_destroy(given);
    tsr_dtensor_destroy(terms);
    tsr_executable_destroy(sum);
    tsr_executable_destroy(add);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void states_keep_terms(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++)
        layers_run(ranks, accumulate, NULL);
}

/* A state is kept in another one when its new value is made already. */
enum { KEPT = 5 };

static tsr_executable *compile_kept(const tsr_mesh *mesh, const tsr_layout *layout)
{
    tsr_program *p;
    tsr_executable *x = NULL;
    const int64_t size = KEPT;
    if (tsr_program_create(tsr_mesh_context(mesh), &p) != TSR_OK)
        return NULL;
    const tsr_value w = tsr_state(p, "w", layout), old = tsr_state(p, "old", layout);
    const tsr_value made = tsr_op_sub(p, w, tsr_input(p, "g", mesh, TSR_F32, 1, &size, "R"));
    tsr_op_store(p, old, w, TSR_NONE);
    tsr_op_store(p, w, made, TSR_NONE);
    (void)tsr_compile(p, NULL, &x);
    tsr_program_destroy(p);
    return x;
}

static tsr_status keep_old(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *w, *old;
    const int64_t size = KEPT;
    float g[KEPT] = {1, 2, 3, 4, 5};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 1, &size, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &w));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &old));
    TSR_TRY(tsr_dtensor_fill(w, 7, NULL));
    TSR_TRY(tsr_dtensor_fill(old, 0, NULL));
    tsr_executable *const x = compile_kept(mesh, layout);
    EXPECT(x, "the program is not compiled");
    TSR_TRY(tsr_executable_bind(x, "w", w));
    TSR_TRY(tsr_executable_bind(x, "old", old));
    TSR_TRY(tsr_executable_prepare(x, comm));
    void *const workspace = aligned_alloc(64, 4096);
    const tsr_tensor in = tsr_tensor_contiguous(g, TSR_F32, 1, &size);
    TSR_TRY(tsr_executable_run(x, comm, &in, NULL, workspace, 4096, NULL));
    const float *const now = tsr_dtensor_to_local(w).data, *const before = tsr_dtensor_to_local(old).data;
    for (int i = 0; i < KEPT; i++) {
        TSR_TRY(support_expect_held(before[i] == 7, "old", i, before[i], 7));
        TSR_TRY(support_expect_held(now[i] == 7 - g[i], "w", i, now[i], 7 - g[i]));
    }
    free(workspace);
    tsr_executable_destroy(x);
    tsr_dtensor_destroy(old);
    tsr_dtensor_destroy(w);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void states_are_copied_before_they_change(void **state)
{
    (void)state;
    layers_run(1, keep_old, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_program_serves_prompts_and_steps),
        cmocka_unit_test(states_keep_terms),
        cmocka_unit_test(states_are_copied_before_they_change),
        cmocka_unit_test(copies_stay_inside_the_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
