/* Pointwise steps that run together, tile by tile, give the bits of calls on dtensors. */
#include "elements.h"
#include "layers.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VALUES = 64, STEPS = 16, DRAWS = 8, OUTPUTS = 5, GIVEN = 8 };

/* Layouts of tensors of one shape, and of a row and a column that are repeated over them. */
typedef struct setting {
    const char *mesh, *whole, *row, *column;
    int64_t rows, columns;
    bool is_square; /* and whole on each rank, so that transposes fit */
} setting;

/* A value of a program, and what it must be. */
typedef struct pair {
    tsr_value value;
    tsr_dtensor *x;
    bool is_whole; /* not repeated */
} pair;

/* A program that is drawn, and the same by calls. */
typedef struct drawn {
    const setting *s;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *exe;
    uint64_t state;
    pair pairs[VALUES];
    int count;
    int given[GIVEN], given_count; /* inputs, by pair */
    int outputs[OUTPUTS], output_count;
    int cache;         /* the pair of the state */
    tsr_dtensor *kept; /* the state's memory */
} drawn;

static atomic_int tiled, steps_in_groups;

static int draw(drawn *d, int limit)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((d->state >> 33) % (uint64_t)limit);
}

static void add_pair(drawn *d, tsr_value value, tsr_dtensor *x, bool is_whole)
{
    d->pairs[d->count++] = (pair){value, x, is_whole};
}

/* Records an op, and calls it. */
static tsr_status apply(drawn *d, const char *name, size_t count, const tsr_attribute *attributes, const int *operands,
                        bool is_whole)
{
    tsr_value values[TSR_OP_MOST_OPERANDS], made[TSR_OP_MOST_RESULTS];
    const tsr_dtensor *given[TSR_OP_MOST_OPERANDS] = {NULL};
    tsr_dtensor *results[TSR_OP_MOST_RESULTS] = {NULL};
    const tsr_op *op;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        const bool is_there = i < 3 && operands[i] >= 0;
        values[i] = is_there ? d->pairs[operands[i]].value : TSR_NONE;
        given[i] = is_there ? d->pairs[operands[i]].x : NULL;
    }
    TSR_TRY(tsr_op_find(NULL, name, &op));
    TSR_TRY(tsr_op_call(op, count, attributes, given, results));
    tsr_program_apply(d->p, name, count, attributes, values, made);
    add_pair(d, made[0], results[0], is_whole);
    return tsr_program_status(d->p, NULL);
}

static tsr_dtype dtype_of(const drawn *d, int at)
{
    return tsr_layout_dtype(tsr_dtensor_layout(d->pairs[at].x));
}

/* A value of a dtype; `is_whole`: not one that is repeated. -1: there is none. */
static int find(drawn *d, tsr_dtype dtype, bool is_whole)
{
    int found[VALUES], count = 0;
    for (int i = 0; i < d->count; i++)
        if (dtype_of(d, i) == dtype && (d->pairs[i].is_whole || !is_whole))
            found[count++] = i;
    /* Late values more often, so that there are chains. */
    const int at = count ? draw(d, count) : 0, other = count ? draw(d, count) : 0;
    return count ? found[at > other ? at : other] : -1;
}

static tsr_status apply_unary(drawn *d, int x)
{
    static const char *const floats[] = {"neg",   "abs",  "exp",   "sqrt",     "tanh",   "sigmoid",   "silu",
                                         "relu",  "gelu", "sin",   "cos",      "square", "erf",       "expm1",
                                         "log1p", "sign", "floor", "softplus", "vary",   "reciprocal"};
    return apply(d, floats[draw(d, sizeof floats / sizeof floats[0])], 0, NULL, (const int[]){x, -1, -1}, true);
}

static tsr_status apply_binary(drawn *d, int x, int y)
{
    static const char *const names[] = {
        "add",           "sub",           "mul", "div", "maximum", "minimum",       "silu_mul", "silu_gradient",
        "gelu_gradient", "relu_gradient", "lt",  "ge",  "eq",      "tanh_gradient", "pow"};
    const bool first = draw(d, 2) == 0; /* one of the two is whole */
    return apply(d, names[draw(d, sizeof names / sizeof names[0])], 0, NULL,
                 (const int[]){first ? x : y, first ? y : x, -1}, true);
}

static tsr_status apply_masked(drawn *d, int x, int y)
{
    const int mask = find(d, TSR_BOOL, true);
    const tsr_attribute value = tsr_attribute_float("value", 0.5);
    if (mask < 0)
        return apply_binary(d, x, y);
    if (draw(d, 4) == 0)
        return apply(d, "logical_not", 0, NULL, (const int[]){mask, -1, -1}, true);
    if (draw(d, 2))
        return apply(d, "where", 0, NULL, (const int[]){mask, x, y}, true);
    return apply(d, "masked_fill", 1, &value, (const int[]){x, mask, -1}, true);
}

static tsr_status apply_other(drawn *d, int x)
{
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_BF16, TSR_F64, TSR_F16};
    const tsr_attribute to = tsr_attribute_dtype("dtype", dtypes[draw(d, 4)]);
    const tsr_attribute factor = tsr_attribute_float("factor", 0.75);
    const tsr_attribute bounds[] = {tsr_attribute_float("min", -1.5), tsr_attribute_float("max", 2)};
    const tsr_attribute dims[] = {tsr_attribute_int("dim0", 0), tsr_attribute_int("dim1", 1)};
    switch (draw(d, 5)) {
    case 0:
        return apply(d, "scale", 1, &factor, (const int[]){x, -1, -1}, true);
    case 1:
        return apply(d, "clamp", 2, bounds, (const int[]){x, -1, -1}, true);
    case 2:
        if (d->s->is_square)
            return apply(d, "transpose", 2, dims, (const int[]){x, -1, -1}, true);
        return apply(d, "neg", 0, NULL, (const int[]){x, -1, -1}, true);
    default:
        return apply(d, "cast", 1, &to, (const int[]){x, -1, -1}, true);
    }
}

/* Stores a value into the state: what is read below is that value. */
static tsr_status store(drawn *d)
{
    const int x = find(d, TSR_F32, true);
    tsr_op_store(d->p, d->pairs[d->cache].value, d->pairs[x].value, TSR_NONE);
    tsr_dtensor_retain(d->pairs[x].x);
    tsr_dtensor_destroy(d->pairs[d->cache].x);
    d->pairs[d->cache].x = d->pairs[x].x;
    return tsr_program_status(d->p, NULL);
}

static tsr_status apply_any(drawn *d)
{
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_F32, TSR_F32, TSR_BF16, TSR_F64};
    const tsr_dtype dtype = dtypes[draw(d, sizeof dtypes / sizeof dtypes[0])];
    int x = find(d, dtype, true);
    x = x < 0 ? find(d, TSR_F32, true) : x;
    const int y = find(d, dtype_of(d, x), false);
    switch (draw(d, 8)) {
    case 0:
        return apply_masked(d, x, y);
    case 1:
    case 2:
        return apply_other(d, x);
    case 3:
        return draw(d, 2) ? store(d) : apply_unary(d, x);
    case 4:
    case 5:
        return apply_unary(d, x);
    default:
        return apply_binary(d, x, y);
    }
}

/* Makes a dtensor of numbers near 0. */
static tsr_status make(drawn *d, const char *placements, tsr_dtype dtype, int ndim, int64_t rows, int64_t columns,
                       tsr_dtensor **out)
{
    const int64_t shape[] = {rows, columns}, count = ndim ? rows * columns : 1;
    double *const values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)(draw(d, 4001) - 2000) / 512;
    const tsr_status status =
        support_make(d->mesh, placements, dtype, ndim, ndim == 1 ? &shape[1] : shape, values, out);
    free(values);
    return status;
}

static tsr_status give(drawn *d, const char *placements, tsr_dtype dtype, int ndim, int64_t rows, int64_t columns)
{
    tsr_dtensor *x;
    char name[16];
    snprintf(name, sizeof name, "x%d", d->count);
    TSR_TRY(make(d, placements, dtype, ndim, rows, columns, &x));
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    d->given[d->given_count++] = d->count;
    add_pair(d, tsr_input(d->p, name, d->mesh, dtype, ndim, tsr_layout_shape(layout), placements), x,
             rows == d->s->rows && columns == d->s->columns && ndim == 2);
    return tsr_program_status(d->p, NULL);
}

static tsr_status give_all(drawn *d)
{
    const setting *const s = d->s;
    tsr_dtensor *x;
    char scalar[32];
    snprintf(scalar, sizeof scalar, "%s", strchr(s->mesh, 'x') ? "R,R" : "R");
    TSR_TRY(give(d, s->row, TSR_F32, 1, 1, s->columns));
    TSR_TRY(give(d, s->column, TSR_F32, 2, s->rows, 1));
    TSR_TRY(give(d, scalar, TSR_F32, 0, 1, 1));
    TSR_TRY(give(d, s->whole, TSR_BF16, 2, s->rows, s->columns));
    TSR_TRY(give(d, s->whole, TSR_F64, 2, s->rows, s->columns));
    TSR_TRY(give(d, s->whole, TSR_F32, 2, s->rows, s->columns));
    const uint64_t before = d->state;
    TSR_TRY(make(d, s->whole, TSR_F32, 2, s->rows, s->columns, &x));
    d->cache = d->count;
    add_pair(d, tsr_state(d->p, "cache", tsr_dtensor_layout(x)), x, true);
    d->state = before;
    return make(d, s->whole, TSR_F32, 2, s->rows, s->columns, &d->kept);
}

/* A copy of a local tensor with a gap after each row. */
static tsr_status leave_gaps(const tsr_dtensor *x, tsr_tensor *out)
{
    const tsr_tensor t = tsr_dtensor_to_local(x);
    const size_t bytes = tsr_dtype_bytes(t.dtype);
    *out = t;
    if (t.ndim != 2)
        return TSR_OK;
    out->strides[0] = t.shape[1] + 3;
    char *const data = calloc((size_t)(t.shape[0] * out->strides[0] + 1), bytes);
    out->data = data;
    for (int64_t row = 0; row < t.shape[0]; row++)
        memcpy(data + (size_t)(row * out->strides[0]) * bytes,
               (const char *)t.data + (size_t)(row * t.strides[0]) * bytes, (size_t)t.shape[1] * bytes);
    return TSR_OK;
}

/* Compares the bits of this rank's elements, but for those of NaNs. */
static tsr_status compare(const char *what, const tsr_dtensor *got, const tsr_dtensor *wanted)
{
    int64_t count;
    const tsr_tensor a = tsr_dtensor_to_local(got), b = tsr_dtensor_to_local(wanted);
    const size_t bytes = tsr_dtype_bytes(a.dtype);
    TSR_TRY(tsr_tensor_count(&a, &count));
    EXPECT(a.dtype == b.dtype, "another dtype");
    for (int64_t i = 0; i < count; i++) {
        const char *const x = (const char *)a.data + (size_t)element_place(&a, i) * bytes;
        const char *const y = (const char *)b.data + (size_t)element_place(&b, i) * bytes;
        const double own = element_get(x, a.dtype, 0), other = element_get(y, b.dtype, 0);
        if (memcmp(x, y, bytes) != 0 && (own == own || other == other))
            return tsr_status_set(TSR_ERROR_INTERNAL, "element %lld of %s is %.17g instead of %.17g", (long long)i,
                                  what, own, other);
    }
    return TSR_OK;
}

static void choose_outputs(drawn *d)
{
    char name[16];
    for (int i = 0; i < OUTPUTS; i++) {
        const int at = i ? draw(d, d->count) : d->count - 1;
        bool is_new = at != d->cache;
        for (int j = 0; j < d->output_count; j++)
            is_new = is_new && d->outputs[j] != at;
        if (!is_new)
            continue;
        snprintf(name, sizeof name, "y%d", d->output_count);
        tsr_output(d->p, name, d->pairs[at].value, NULL);
        d->outputs[d->output_count++] = at;
    }
}

static tsr_status run(drawn *d)
{
    tsr_tensor inputs[GIVEN], outputs[OUTPUTS];
    tsr_dtensor *made[OUTPUTS] = {NULL};
    const bool gaps = draw(d, 2);
    for (int i = 0; i < d->given_count; i++) {
        inputs[i] = tsr_dtensor_to_local(d->pairs[d->given[i]].x);
        if (gaps)
            TSR_TRY(leave_gaps(d->pairs[d->given[i]].x, &inputs[i]));
    }
    for (int i = 0; i < d->output_count; i++) {
        TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(d->exe, (size_t)i), tsr_device_host(), &made[i]));
        outputs[i] = tsr_dtensor_to_local(made[i]);
    }
    const size_t bytes = tsr_executable_workspace_bytes(d->exe);
    void *const workspace = aligned_alloc(64, bytes + 64);
    memset(workspace, 0xa5, bytes);
    tsr_status status = tsr_executable_run(d->exe, d->comm, inputs, outputs, workspace, bytes, NULL);
    for (int i = 0; i < d->output_count && status == TSR_OK; i++)
        status = compare(tsr_executable_output_name(d->exe, (size_t)i), made[i], d->pairs[d->outputs[i]].x);
    if (status == TSR_OK)
        status = compare("the state", d->kept, d->pairs[d->cache].x);
    free(workspace);
    for (int i = 0; i < d->output_count; i++)
        tsr_dtensor_destroy(made[i]);
    for (int i = 0; gaps && i < d->given_count; i++)
        if (inputs[i].data != tsr_dtensor_to_local(d->pairs[d->given[i]].x).data)
            free(inputs[i].data);
    return status;
}

static tsr_status count_groups(const drawn *d)
{
    for (size_t i = 0; i < tsr_executable_step_count(d->exe); i++) {
        tsr_executable_step step;
        TSR_TRY(tsr_executable_step_at(d->exe, i, &step));
        steps_in_groups += step.group >= 0;
        tiled += step.group >= 0 && d->s->rows * d->s->columns > 16384;
    }
    return TSR_OK;
}

static tsr_status try_one(drawn *d)
{
    TSR_TRY(tsr_program_create(tsr_mesh_context(d->mesh), &d->p));
    TSR_TRY(give_all(d));
    for (int i = 0; i < STEPS; i++)
        TSR_TRY(apply_any(d));
    choose_outputs(d);
    TSR_TRY(tsr_compile(d->p, NULL, &d->exe));
    TSR_TRY(tsr_executable_bind(d->exe, "cache", d->kept));
    TSR_TRY(tsr_executable_prepare(d->exe, d->comm));
    TSR_TRY(count_groups(d));
    return run(d);
}

static tsr_status draw_chains(tsr_comm *comm, void *arg)
{
    const setting *const s = arg;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->mesh, &mesh));
    tsr_status status = TSR_OK;
    const bool is_large = s->rows * s->columns > 1 << 20;
    const int draws = is_large ? 1 : getenv("TSR_TEST_THIN") ? 2 : DRAWS;
    for (int i = 0; i < draws && status == TSR_OK; i++) {
        drawn d = {.s = s, .comm = comm, .mesh = mesh, .state = (uint64_t)(i * 977 + s->rows * 31 + s->columns)};
        status = try_one(&d);
        if (status != TSR_OK) {
            char kept[512];
            snprintf(kept, sizeof kept, "%s", tsr_status_message());
            status = tsr_status_set(TSR_ERROR_INTERNAL, "draw %d of %s on %s: %s", i, s->whole, s->mesh, kept);
        }
        for (int j = 0; j < d.count; j++)
            tsr_dtensor_destroy(d.pairs[j].x);
        tsr_dtensor_destroy(d.kept);
        tsr_executable_destroy(d.exe);
        tsr_program_destroy(d.p);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static void chains_give_the_bits_of_calls(void **state)
{
    static const setting all[] = {
        {"1", "R", "R", "R", 97, 131, false},
        {"1", "R", "R", "R", 139, 139, true},
        {"1", "R", "R", "R", 5, 7, false},
        {"1", "R", "R", "R", 9, 9, true},
        {"1", "R", "R", "R", 3, 5000, false},
        {"1", "R", "R", "R", 5000, 3, false},
        {"2", "S(0)", "R", "S(0)", 255, 97, false},
        {"2", "S(1)", "S(0)", "R", 97, 131, false},
        {"3", "S(0)", "R", "S(0)", 193, 127, false},
        {"3", "S(0;sizes=0,190,3)", "R", "S(0;sizes=0,190,3)", 193, 67, false},
        {"2x2", "S(0),S(1)", "R,S(0)", "S(0),R", 260, 130, false},
        {"1", "R", "R", "R", 2111, 1009, false}, /* results of 8 MiB, which go past the caches */
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        layers_run(support_count_ranks(all[i].mesh), draw_chains, (void *)&all[i]);
    print_message("%d steps ran in groups, %d of them in tiles\n", (int)steps_in_groups, (int)tiled);
    assert_true(tiled > 0);
}

enum { TOKENS = 300, WIDTH = 62 };

static tsr_value one(tsr_program *p, const char *op, tsr_value x)
{
    return tsr_program_apply(p, op, 0, NULL, (const tsr_value[]){x, TSR_NONE, TSR_NONE, TSR_NONE}, NULL);
}

/* A program for up to TOKENS tokens. */
static tsr_status record_tokens(tsr_program *p, const tsr_mesh *mesh)
{
    const int64_t tokens = tsr_length(p, "tokens", TOKENS), width = WIDTH;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_BF16, 2, (const int64_t[]){tokens, WIDTH}, "S(1)");
    const tsr_value row = tsr_input(p, "row", mesh, TSR_F32, 1, &width, "S(0)");
    const tsr_value wide = tsr_op_cast(p, x, TSR_F32), y = tsr_op_add(p, one(p, "gelu", wide), row);
    tsr_output(p, "y", tsr_op_cast(p, tsr_op_mul(p, y, wide), TSR_BF16), NULL);
    tsr_output(p, "wide", wide, NULL);
    return tsr_program_status(p, NULL);
}

/* What the program computes, by calls. */
static tsr_status call_tokens(const tsr_dtensor *x, const tsr_dtensor *row, tsr_dtensor **y, tsr_dtensor **wide)
{
    tsr_dtensor *gelu, *sum, *product;
    TSR_TRY(tsr_cast(x, TSR_F32, wide));
    TSR_TRY(tsr_gelu(*wide, 0, &gelu));
    TSR_TRY(tsr_add(gelu, row, &sum));
    TSR_TRY(tsr_mul(sum, *wide, &product));
    TSR_TRY(tsr_cast(product, TSR_BF16, y));
    tsr_dtensor_destroy(gelu);
    tsr_dtensor_destroy(sum);
    tsr_dtensor_destroy(product);
    return TSR_OK;
}

static tsr_status run_tokens(drawn *d, const tsr_dtensor *row, int64_t tokens, void *workspace)
{
    tsr_dtensor *x, *wanted[2], *made[2];
    tsr_tensor outputs[2];
    TSR_TRY(make(d, "S(1)", TSR_BF16, 2, tokens, WIDTH, &x));
    TSR_TRY(call_tokens(x, row, &wanted[0], &wanted[1]));
    TSR_TRY(tsr_executable_set_length(d->exe, "tokens", tokens));
    for (size_t i = 0; i < 2; i++) {
        TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(d->exe, i), tsr_device_host(), &made[i]));
        outputs[i] = tsr_dtensor_to_local(made[i]);
    }
    const tsr_tensor inputs[] = {tsr_dtensor_to_local(x), tsr_dtensor_to_local(row)};
    tsr_status status =
        tsr_executable_run(d->exe, d->comm, inputs, outputs, workspace, tsr_executable_workspace_bytes(d->exe), NULL);
    for (int i = 0; i < 2; i++) {
        status = status == TSR_OK ? compare(i ? "wide" : "y", made[i], wanted[i]) : status;
        tsr_dtensor_destroy(made[i]);
        tsr_dtensor_destroy(wanted[i]);
    }
    tsr_dtensor_destroy(x);
    return status;
}

static tsr_status serve_tokens(tsr_comm *comm, void *arg)
{
    static const int64_t all[] = {TOKENS, 1, 66, 67, TOKENS, 133, 2, 299};
    drawn d = {.comm = comm};
    tsr_dtensor *row;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &d.mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(d.mesh), &d.p));
    TSR_TRY(record_tokens(d.p, d.mesh));
    TSR_TRY(tsr_compile(d.p, NULL, &d.exe));
    TSR_TRY(tsr_executable_prepare(d.exe, comm));
    TSR_TRY(make(&d, "S(0)", TSR_F32, 1, 1, WIDTH, &row));
    const size_t bytes = tsr_executable_workspace_bytes(d.exe);
    /* "wide" is an output; one value lies over the one before. */
    EXPECT(bytes == 2048 * sizeof(float), "the workspace has %zu bytes", bytes);
    void *const workspace = aligned_alloc(64, bytes);
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && status == TSR_OK; i++)
        status = run_tokens(&d, row, all[i], workspace);
    free(workspace);
    tsr_dtensor_destroy(row);
    tsr_executable_destroy(d.exe);
    tsr_program_destroy(d.p);
    tsr_mesh_destroy(d.mesh);
    return status;
}

/* With few tokens there is one tile, with many there are several. */
static void tiles_follow_lengths(void **state)
{
    (void)state;
    layers_run(2, serve_tokens, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_give_the_bits_of_calls),
        cmocka_unit_test(tiles_follow_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
