#include "samples.h"

#include "wholes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tsr_layout *lay(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape)
{
    tsr_layout *layout;
    return tsr_layout_parse(mesh, placements, ndim, shape, TSR_F32, &layout) == TSR_OK ? layout : NULL;
}

static tsr_value parameter(tsr_program *p, const char *name, const tsr_mesh *mesh, const char *placements, int64_t rows,
                           int64_t columns)
{
    tsr_layout *const layout = lay(mesh, placements, 2, (const int64_t[]){rows, columns});
    const tsr_value value = tsr_parameter(p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

static tsr_value input(tsr_program *p, const char *name, const tsr_mesh *mesh, const char *placements, int64_t rows,
                       int64_t columns)
{
    return tsr_input(p, name, mesh, TSR_F32, 2, (const int64_t[]){rows, columns}, placements);
}

/* An op with up to two attributes, of which those without a name are not given. */
static tsr_value with(tsr_program *p, const char *op, tsr_attribute first, tsr_attribute second, tsr_value a,
                      tsr_value b)
{
    const tsr_attribute attributes[] = {first, second};
    const size_t count = (first.name != NULL) + (second.name != NULL);
    return tsr_program_apply(p, op, count, attributes, (const tsr_value[]){a, b, TSR_NONE, TSR_NONE}, NULL);
}

#define NO_ATTRIBUTE ((tsr_attribute){.name = NULL})

static tsr_value apply(tsr_program *p, const char *op, tsr_value a, tsr_value b)
{
    return with(p, op, NO_ATTRIBUTE, NO_ATTRIBUTE, a, b);
}

static tsr_value linear(tsr_program *p, tsr_value x, tsr_value w)
{
    return tsr_program_apply(p, "linear", 0, NULL, (const tsr_value[]){x, apply(p, "vary", w, TSR_NONE), TSR_NONE},
                             NULL);
}

/* An MLP with weights that are cut, and its gradients, for which the hidden values are computed
 * again. */
static void record_mlp(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value d[3];
    const tsr_value x = input(p, "x", mesh, "R", 6, 5), up = parameter(p, "up", mesh, "S(0)", 7, 5),
                    down = parameter(p, "down", mesh, "S(1)", 5, 7);
    const tsr_value h = with(p, "gelu", tsr_attribute_word("approximate", "tanh"), NO_ATTRIBUTE,
                             linear(p, apply(p, "vary", x, TSR_NONE), up), TSR_NONE);
    const tsr_value y = apply(p, "all_reduce", linear(p, tsr_op_recompute(p, h), down), TSR_NONE);
    const tsr_value loss = apply(p, "all_reduce", apply(p, "sum", apply(p, "square", y, TSR_NONE), TSR_NONE), TSR_NONE);
    tsr_gradients(p, loss, 3, (const tsr_value[]){x, up, down}, d);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "d.x", d[0], NULL);
    tsr_output(p, "d.up", d[1], NULL);
    tsr_output(p, "d.down", d[2], NULL);
}

/* A cache, two lengths, and a position; a move that depends on a length, and an exchange. */
static void record_states(tsr_program *p, const tsr_mesh *mesh)
{
    const int64_t tokens = tsr_length(p, "tokens", 9), total = tsr_length(p, "total", 9);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 3, (const int64_t[]){3, tokens, 2}, "S(0)");
    const tsr_value position = tsr_input(p, "position", mesh, TSR_I64, 0, NULL, NULL);
    tsr_layout *const layout = lay(mesh, "S(0)", 3, (const int64_t[]){3, 9, 2});
    const tsr_value cache = tsr_state(p, "cache", layout);
    tsr_layout_destroy(layout);
    tsr_op_store(p, cache, x, position);
    const tsr_value k = with(p, "slice", tsr_attribute_int("dim", 1), tsr_attribute_int("end", total), cache, TSR_NONE);
    const tsr_value scores = with(p, "einsum", tsr_attribute_text("equation", "hqd,hkd->hqk"), NO_ATTRIBUTE, x, k);
    const tsr_value y = with(p, "einsum", tsr_attribute_text("equation", "hqk,hkd->hqd"), NO_ATTRIBUTE, scores, k);
    const tsr_value sum = with(p, "sum", tsr_attribute_ints("dim", 1, (const int64_t[]){0}), NO_ATTRIBUTE, y, TSR_NONE);
    tsr_output(p, "y", apply(p, "all_reduce", sum, TSR_NONE), NULL);
    tsr_output(p, "cache", cache, NULL);
}

/* Ranks meet inside softmax; a row of the program's own; a constant; a cast. */
static void record_exchanges(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_layout *const layout = lay(mesh, "S(1)", 2, (const int64_t[]){4, 6});
    const tsr_value half = tsr_constant(p, 0.5, layout);
    tsr_layout_destroy(layout);
    const tsr_value x = apply(p, "mul", input(p, "x", mesh, "S(1)", 4, 6), half);
    const tsr_value y =
        with(p, "softmax", tsr_attribute_int("dim", 1), NO_ATTRIBUTE, apply(p, "sample.twice", x, TSR_NONE), TSR_NONE);
    const tsr_value z = apply(p, "sample.twice", y, TSR_NONE);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "z", with(p, "cast", tsr_attribute_dtype("dtype", TSR_F64), NO_ATTRIBUTE, z, TSR_NONE), NULL);
}

/* A mesh over the communicator of another one, which may have none. */
static tsr_status make_mesh(const tsr_mesh *like, int64_t count, const char *const *names, const int64_t *ranks,
                            tsr_mesh **out)
{
    tsr_comm *const comm = tsr_mesh_comm(like);
    return comm ? tsr_mesh_create(comm, 1, &count, names, ranks, out)
                : tsr_mesh_create_abstract(tsr_mesh_context(like), 1, &count, names, ranks, out);
}

/* Values on the mesh, on its ranks in another order, and on rank 0 alone. */
static void record_meshes(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_mesh *turned = NULL, *first = NULL;
    int64_t ranks[16];
    const int64_t count = tsr_mesh_count(mesh), shape[] = {4, 6};
    const char *const names[] = {"turned"};
    for (int64_t i = 0; i < count; i++)
        ranks[i] = count - 1 - i;
    if (make_mesh(mesh, count, names, ranks, &turned) != TSR_OK || make_mesh(mesh, 1, NULL, NULL, &first) != TSR_OK) {
        tsr_mesh_destroy(turned);
        tsr_output(p, "y", TSR_NONE, NULL);
        return;
    }
    tsr_layout *const over = lay(turned, "S(1)", 2, shape), *const alone = lay(first, "R", 2, shape);
    const tsr_value x = input(p, "x", mesh, "S(0),R", 4, 6);
    const tsr_value y = apply(p, "sample.twice", tsr_op_to_mesh(p, x, over), TSR_NONE);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "first", apply(p, "square", tsr_op_to_mesh(p, y, alone), TSR_NONE), NULL);
    tsr_layout_destroy(over);
    tsr_layout_destroy(alone);
    tsr_mesh_destroy(turned);
    tsr_mesh_destroy(first);
}

/* Operands that do not fit, which the policy moves; gradients through a slice, and by a value on
 * which the loss does not depend. */
static void record_policy(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value d[3];
    const tsr_value x = input(p, "x", mesh, "S(0)", 6, 4), y = parameter(p, "y", mesh, "S(1)", 6, 4),
                    z = parameter(p, "z", mesh, "S(0)", 2, 4);
    const tsr_value part =
        with(p, "slice", tsr_attribute_int("dim", 1), tsr_attribute_int("end", 3), apply(p, "mul", x, y), TSR_NONE);
    const tsr_value loss =
        apply(p, "all_reduce", apply(p, "sum", apply(p, "square", part, TSR_NONE), TSR_NONE), TSR_NONE);
    tsr_gradients(p, loss, 3, (const tsr_value[]){x, y, z}, d);
    tsr_output(p, "part", part, "R");
    tsr_output(p, "d.x", d[0], NULL);
    tsr_output(p, "d.y", d[1], "R");
    tsr_output(p, "d.z", d[2], NULL);
}

/* Rows of ranks meet by themselves, and all ranks afterwards. */
static void record_rows(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value x = apply(p, "sample.twice", input(p, "x", mesh, "S(0),S(1)", 4, 6), TSR_NONE);
    x = with(p, "softmax", tsr_attribute_int("dim", 1), NO_ATTRIBUTE, x, TSR_NONE);
    x = apply(p, "sample.twice", x, TSR_NONE);
    tsr_output(p, "y", apply(p, "all_reduce", apply(p, "sum", x, TSR_NONE), TSR_NONE), NULL);
}

/* Kernels that may fail before a move, an exchange, a store and a reduction, and after them. */
static void record_kernels(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_layout *const layout = lay(mesh, "S(1)", 2, (const int64_t[]){4, 6});
    const tsr_value state = tsr_state(p, "state", layout);
    tsr_layout_destroy(layout);
    tsr_value x = apply(p, "sample.twice", input(p, "x", mesh, "S(0)", 4, 6), TSR_NONE);
    x = with(p, "redistribute", tsr_attribute_text("placements", "S(1)"), NO_ATTRIBUTE, x, TSR_NONE);
    x = apply(p, "sample.twice", x, TSR_NONE);
    x = with(p, "softmax", tsr_attribute_int("dim", 1), NO_ATTRIBUTE, x, TSR_NONE);
    x = apply(p, "sample.twice", x, TSR_NONE);
    tsr_op_store(p, state, x, TSR_NONE);
    x = apply(p, "all_reduce", apply(p, "sum", x, TSR_NONE), TSR_NONE);
    tsr_output(p, "y", apply(p, "mul", x, x), NULL);
    tsr_output(p, "z", apply(p, "sample.twice", state, TSR_NONE), NULL);
}

/* Ranks never meet. */
static void record_alone(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_output(p, "y", apply(p, "sample.twice", input(p, "x", mesh, "S(0)", 4, 6), TSR_NONE), NULL);
}

static tsr_value twice_of(tsr_program *p, tsr_value x)
{
    return apply(p, "sample.twice", x, TSR_NONE);
}

static tsr_value whole_of(tsr_program *p, tsr_value x)
{
    return with(p, "redistribute", tsr_attribute_text("placements", "R"), NO_ATTRIBUTE, x, TSR_NONE);
}

/* Moves that may start long before a step reads them: of an input, while its memory is read; of a
 * parameter; of a state that is stored into soon; and of terms, which only an output awaits. */
static void record_early(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_layout *const layout = lay(mesh, "S(0)", 2, (const int64_t[]){4, 6});
    const tsr_value state = tsr_state(p, "state", layout);
    tsr_layout_destroy(layout);
    const tsr_value x = input(p, "x", mesh, "S(0)", 4, 6), w = parameter(p, "w", mesh, "S(0)", 4, 6);
    const tsr_value y = twice_of(p, x), all = whole_of(p, y), z = apply(p, "square", twice_of(p, y), TSR_NONE);
    const tsr_value sum = apply(p, "add", twice_of(p, all), whole_of(p, w));
    const tsr_value old = whole_of(p, state), more = twice_of(p, twice_of(p, z));
    tsr_op_store(p, state, more, TSR_NONE);
    tsr_output(p, "old", apply(p, "mul", old, sum), NULL);
    tsr_output(p, "total", apply(p, "all_reduce", apply(p, "sum", more, TSR_NONE), TSR_NONE), NULL);
    tsr_output(p, "last", twice_of(p, twice_of(p, more)), NULL);
}

/* A mask of a key that runs give, in the forward and the backward, and softmax, inside of which
 * ranks meet. */
static void record_keys(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value d;
    const tsr_random_key key = tsr_run_key(p, "key", TSR_RANDOM_THREEFRY), own = tsr_random_key_fold_in(key, 3);
    const tsr_value x = input(p, "x", mesh, "S(1)", 4, 6), kept = tsr_op_dropout(p, x, 0.5, &own);
    const tsr_value y = with(p, "softmax", tsr_attribute_int("dim", 1), NO_ATTRIBUTE, kept, TSR_NONE);
    const tsr_value loss = apply(p, "all_reduce", apply(p, "sum", apply(p, "square", y, TSR_NONE), TSR_NONE), TSR_NONE);
    tsr_gradients(p, loss, 1, &x, &d);
    tsr_output(p, "kept", kept, NULL);
    tsr_output(p, "d", d, NULL);
}

/* A move of what a step in the middle of a group makes, and a store among its steps. */
static void record_tiles(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_layout *const layout = lay(mesh, "S(0)", 2, (const int64_t[]){96, 64});
    const tsr_value x = input(p, "x", mesh, "S(0)", 96, 64), state = tsr_state(p, "state", layout);
    tsr_layout_destroy(layout);
    const tsr_value b = apply(p, "neg", x, TSR_NONE), square = apply(p, "square", b, TSR_NONE);
    const tsr_value c = apply(p, "add", square, state);
    tsr_op_store(p, state, b, TSR_NONE);
    const tsr_value moved = tsr_op_redistribute(p, b, "S(1)"), sum = apply(p, "sum", c, TSR_NONE);
    const tsr_value other = apply(p, "sum", moved, TSR_NONE);
    tsr_output(p, "sum", apply(p, "all_reduce", sum, TSR_NONE), NULL);
    tsr_output(p, "other", apply(p, "all_reduce", other, TSR_NONE), NULL);
}

/* A move of what a step in the middle of a group makes, by another name that it has there. */
static void record_tiles_varied(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, "x", mesh, "S(0)", 96, 64);
    const tsr_value varied = tsr_op_vary(p, apply(p, "neg", x, TSR_NONE));
    const tsr_value square = apply(p, "square", varied, TSR_NONE), moved = tsr_op_redistribute(p, varied, "S(1)");
    const tsr_value sum = apply(p, "sum", square, TSR_NONE), other = apply(p, "sum", moved, TSR_NONE);
    tsr_output(p, "sum", apply(p, "all_reduce", sum, TSR_NONE), NULL);
    tsr_output(p, "other", apply(p, "all_reduce", other, TSR_NONE), NULL);
}

const sample samples[] = {
    {"mlp", "2", 2, TSR_POLICY_FORBID, record_mlp, 0, 0},
    {"mlp", "3", 3, TSR_POLICY_FORBID, record_mlp, 0, 0},
    {"states", "2", 2, TSR_POLICY_FORBID, record_states, 2, 5},
    {"exchanges", "2", 2, TSR_POLICY_FORBID, record_exchanges, 0, 0},
    {"exchanges", "1", 1, TSR_POLICY_FORBID, record_exchanges, 0, 0},
    {"meshes", "a=2,b=1", 2, TSR_POLICY_FORBID, record_meshes, 0, 0},
    {"meshes", "a=2,b=2", 4, TSR_POLICY_FORBID, record_meshes, 0, 0},
    {"kernels", "2", 2, TSR_POLICY_FORBID, record_kernels, 0, 0},
    {"kernels", "4", 4, TSR_POLICY_FORBID, record_kernels, 0, 0},
    {"early", "2", 2, TSR_POLICY_FORBID, record_early, 0, 0},
    {"early", "4", 4, TSR_POLICY_FORBID, record_early, 0, 0},
    {"rows", "2x2", 4, TSR_POLICY_FORBID, record_rows, 0, 0},
    {"tiles", "2", 2, TSR_POLICY_FORBID, record_tiles, 0, 0},
    {"tiles varied", "2", 2, TSR_POLICY_FORBID, record_tiles_varied, 0, 0},
    {"alone", "2", 2, TSR_POLICY_FORBID, record_alone, 0, 0},
    {"policy", "2", 2, TSR_POLICY_ALLOW, record_policy, 0, 0},
    {"keys", "2", 2, TSR_POLICY_FORBID, record_keys, 0, 0},
    {.name = NULL},
};

static _Thread_local int left;

int samples_fail_here(int nth)
{
    const int before = left;
    left = nth;
    return before;
}

static tsr_status check_twice(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

static tsr_status run_twice(const tsr_kernel_call *call)
{
    int64_t count;
    TSR_TRY(tsr_tensor_count(&call->inputs[0], &count));
    if (left > 0 && --left == 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: the disk is gone", call->op);
    for (int64_t i = 0; i < count; i++)
        ((float *)call->outputs[0].data)[i] = 2 * ((const float *)call->inputs[0].data)[i];
    return TSR_OK;
}

static const tsr_op twice = {.size = sizeof(tsr_op),
                             .name = "sample.twice",
                             .rule = "n ... -> n ...",
                             .operands = {"x"},
                             .results = {"out"},
                             .check = check_twice,
                             .host = run_twice};

const tsr_op *const sample_rows[1] = {&twice};

tsr_context_options sample_options(const sample *s)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.policy = s->policy;
    options.ops = sample_rows;
    options.op_count = 1;
    return options;
}

/* Fills contiguous memory with small numbers; an index is 1. */
static void fill(const tsr_tensor *t, int64_t count, int seed)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = (i * 7 + seed * 5 + i / 3) % 9 - 4;
        if (t->dtype == TSR_I64)
            ((int64_t *)t->data)[i] = 1;
        else
            ((float *)t->data)[i] = (float)number / 4;
    }
}

/* This rank's tensor of a layout, in new memory. */
static tsr_status make_local(const tsr_layout *layout, int64_t rank, int seed, tsr_tensor *out)
{
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS], count;
    int inside;
    *out = (tsr_tensor){.ndim = -1, .device = tsr_device_host()};
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(layout), rank, coordinate, &inside));
    if (!inside)
        return TSR_OK;
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), tsr_layout_ndim(layout), shape);
    TSR_TRY(tsr_tensor_count(out, &count));
    out->data = calloc((size_t)count + 1, 8);
    if (seed)
        fill(out, count, seed);
    return TSR_OK;
}

static bool is_input(const tsr_executable *x, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < tsr_executable_input_count(x); i++)
        found = found || strcmp(tsr_executable_input_name(x, i), name) == 0;
    return found;
}

tsr_status sample_bind(const tsr_program *program, tsr_executable *x, tsr_dtensor **bound)
{
    int at = 0;
    memset(bound, 0, 8 * sizeof *bound);
    for (tsr_value v = 0; tsr_value_layout(program, v); v++) {
        int64_t count;
        const char *const name = tsr_value_name(program, v);
        if (!name || is_input(x, name))
            continue;
        TSR_TRY(tsr_dtensor_create(tsr_value_layout(program, v), tsr_device_host(), &bound[at]));
        const tsr_tensor local = tsr_dtensor_to_local(bound[at]);
        TSR_TRY(tsr_tensor_count(&local, &count));
        fill(&local, count, at + 10);
        TSR_TRY(tsr_executable_bind(x, name, bound[at++]));
    }
    return TSR_OK;
}

void sample_unbind(tsr_dtensor **bound)
{
    for (int i = 0; i < 8; i++)
        tsr_dtensor_destroy(bound[i]);
}

static tsr_status keep(const tsr_tensor *t, sample_written *out)
{
    int64_t count = 0;
    if (t->ndim < 0)
        return TSR_OK;
    TSR_TRY(tsr_tensor_count(t, &count));
    const size_t bytes = (size_t)count * tsr_dtype_bytes(t->dtype);
    EXPECT(out->count + bytes <= SAMPLE_ROOM, "there is no room for outputs");
    if (bytes)
        memcpy(out->bytes + out->count, t->data, bytes);
    out->count += bytes;
    return TSR_OK;
}

static tsr_status run_with(tsr_executable *x, tsr_comm *comm, tsr_dtensor *const *bound, tsr_tensor *inputs,
                           tsr_tensor *outputs, sample_written *out)
{
    const int64_t rank = tsr_comm_rank(comm);
    for (size_t i = 0; i < tsr_executable_input_count(x); i++)
        TSR_TRY(make_local(tsr_executable_input_layout(x, i), rank, (int)i + 1, &inputs[i]));
    for (size_t i = 0; i < tsr_executable_output_count(x); i++)
        TSR_TRY(make_local(tsr_executable_output_layout(x, i), rank, 0, &outputs[i]));
    const size_t bytes = tsr_executable_workspace_bytes(x);
    void *const workspace = aligned_alloc(64, bytes + 64);
    const tsr_status status = tsr_executable_run(x, comm, inputs, outputs, workspace, bytes, NULL);
    free(workspace);
    TSR_TRY(status);
    out->count = 0;
    for (size_t i = 0; i < tsr_executable_output_count(x); i++)
        TSR_TRY(keep(&outputs[i], out));
    for (int i = 0; bound[i]; i++) {
        const tsr_tensor local = tsr_dtensor_to_local(bound[i]);
        TSR_TRY(keep(&local, out));
    }
    return TSR_OK;
}

tsr_status sample_run(const sample *s, tsr_executable *x, tsr_comm *comm, tsr_dtensor *const *bound,
                      sample_written *out)
{
    tsr_tensor inputs[8] = {{.data = NULL}}, outputs[8] = {{.data = NULL}};
    if (s->tokens) {
        TSR_TRY(tsr_executable_set_length(x, "tokens", s->tokens));
        TSR_TRY(tsr_executable_set_length(x, "total", s->total));
    }
    if (s->record == record_keys) {
        const tsr_random_key key = tsr_random_key_threefry(4);
        TSR_TRY(tsr_executable_set_key(x, "key", &key));
    }
    const tsr_status status = run_with(x, comm, bound, inputs, outputs, out);
    for (int i = 0; i < 8; i++) {
        free(inputs[i].data);
        free(outputs[i].data);
    }
    return status;
}

tsr_status sample_open(const sample *s, tsr_comm *comm, tsr_context *context, int rank, sample_scene *out)
{
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    *out = (sample_scene){.mesh = NULL};
    options.rank = rank;
    TSR_TRY(tsr_mesh_parse(comm, context, s->mesh, &out->mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(out->mesh), &out->program));
    s->record(out->program, out->mesh);
    TSR_TRY(tsr_compile(out->program, &options, &out->x));
    return comm ? sample_bind(out->program, out->x, out->bound) : TSR_OK;
}

void sample_close(sample_scene *c)
{
    sample_unbind(c->bound);
    tsr_executable_destroy(c->x);
    tsr_program_destroy(c->program);
    tsr_mesh_destroy(c->mesh);
}

tsr_status sample_run_all(const sample *s, tsr_comm *comm, sample_written *out)
{
    sample_scene c;
    TSR_TRY(sample_open(s, comm, NULL, tsr_comm_rank(comm), &c));
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    TSR_TRY(sample_run(s, c.x, comm, c.bound, out));
    TSR_TRY(sample_run(s, c.x, comm, c.bound, out));
    sample_close(&c);
    return TSR_OK;
}
