#include "device_cases.h"

#include <stdio.h>

tsr_value device_parameter(tsr_program *p, const char *name, const tsr_mesh *mesh, const char *placements, int ndim,
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

static tsr_value ones(tsr_program *p, const tsr_mesh *mesh, int64_t rows, int64_t columns)
{
    tsr_layout *layout;
    if (tsr_layout_parse(mesh, "R", 2, (const int64_t[]){rows, columns}, TSR_F32, &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value value = tsr_constant(p, 1, layout);
    tsr_layout_destroy(layout);
    return value;
}

/* An embedding and an MLP forward and backward: rows by ids, linears, products, moves, pointwise
 * ops, constants. The loss is a sum by products. */
static void record_mlp(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    tsr_value of[4], d[4];
    (void)arg;
    of[0] = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){5, 6}, NULL);
    const tsr_value ids = tsr_input(p, "ids", mesh, TSR_I64, 1, (const int64_t[]){5}, NULL);
    of[1] = device_parameter(p, "up", mesh, "S(0)", 2, 7, 6);
    of[2] = device_parameter(p, "down", mesh, "S(1)", 2, 6, 7);
    of[3] = device_parameter(p, "table", mesh, "S(0)", 2, 9, 6);
    const tsr_value x = tsr_op_add(p, of[0], tsr_op_all_reduce(p, tsr_op_embedding(p, of[3], ids), 0));
    const tsr_value h = tsr_op_relu(p, tsr_op_linear(p, tsr_op_vary(p, x), of[1], TSR_NONE));
    const tsr_value y = tsr_op_all_reduce(p, tsr_op_linear(p, h, of[2], TSR_NONE), 0);
    const tsr_value sums = tsr_op_matmul(p, ones(p, mesh, 1, 5), tsr_op_square(p, y));
    const tsr_value loss = tsr_op_matmul(p, sums, ones(p, mesh, 6, 1));
    tsr_gradients(p, loss, 4, of, d);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "x.again", of[0], NULL);
    tsr_output(p, "loss", loss, NULL);
    tsr_output(p, "d.x", d[0], NULL);
    tsr_output(p, "d.up", d[1], NULL);
    tsr_output(p, "d.down", tsr_op_redistribute(p, d[2], "S(0)"), NULL);
    tsr_output(p, "d.table", d[3], NULL);
}

/* A Llama with one layer, cut by heads and by inner features, with the loss and all gradients. */
static void record_llama(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    enum { TOKENS = 5, HIDDEN = 8, HEADS = 4, DIM = 2, INNER = 12, WORDS = 9 };
    static const int64_t tokens[] = {TOKENS}, heads[] = {TOKENS, HEADS, DIM}, rows[] = {TOKENS, HEADS * DIM};
    tsr_attention_options causal = TSR_ATTENTION_OPTIONS_INIT;
    tsr_value w[9], d[9], qkv[3];
    causal.causal = 1;
    (void)arg;
    const tsr_value ids = tsr_input(p, "ids", mesh, TSR_I64, 1, tokens, NULL);
    const tsr_value targets = tsr_input(p, "targets", mesh, TSR_I64, 1, tokens, NULL);
    const tsr_value positions = tsr_input(p, "positions", mesh, TSR_I64, 1, tokens, NULL);
    w[0] = device_parameter(p, "embedding", mesh, "S(0)", 2, WORDS, HIDDEN);
    w[1] = device_parameter(p, "norm", mesh, "R", 1, HIDDEN, 0);
    w[2] = device_parameter(p, "q", mesh, "S(0)", 2, HEADS * DIM, HIDDEN);
    w[3] = device_parameter(p, "k", mesh, "S(0)", 2, HEADS * DIM, HIDDEN);
    w[4] = device_parameter(p, "v", mesh, "S(0)", 2, HEADS * DIM, HIDDEN);
    w[5] = device_parameter(p, "o", mesh, "S(1)", 2, HIDDEN, HEADS * DIM);
    w[6] = device_parameter(p, "gate", mesh, "S(0)", 2, INNER, HIDDEN);
    w[7] = device_parameter(p, "up", mesh, "S(0)", 2, INNER, HIDDEN);
    w[8] = device_parameter(p, "down", mesh, "S(1)", 2, HIDDEN, INNER);

    tsr_value x = tsr_op_all_reduce(p, tsr_op_embedding(p, w[0], ids), 0);
    tsr_value h = tsr_op_vary(p, tsr_op_rms_norm(p, x, w[1], 1e-5));
    for (int i = 0; i < 3; i++) {
        qkv[i] = tsr_op_reshape(p, tsr_op_linear(p, h, w[2 + i], TSR_NONE), 3, heads);
        qkv[i] = tsr_op_transpose(p, i < 2 ? tsr_op_rope(p, qkv[i], positions, NULL) : qkv[i], 0, 1);
    }
    h = tsr_op_transpose(p, tsr_op_attention(p, qkv[0], qkv[1], qkv[2], TSR_NONE, &causal), 0, 1);
    h = tsr_op_linear(p, tsr_op_reshape(p, h, 2, rows), w[5], TSR_NONE);
    x = tsr_op_add(p, x, tsr_op_all_reduce(p, h, 0));
    h = tsr_op_vary(p, tsr_op_rms_norm(p, x, w[1], 1e-5));
    h = tsr_op_silu_mul(p, tsr_op_linear(p, h, w[6], TSR_NONE), tsr_op_linear(p, h, w[7], TSR_NONE));
    x = tsr_op_add(p, x, tsr_op_all_reduce(p, tsr_op_linear(p, h, w[8], TSR_NONE), 0));
    const tsr_value loss = tsr_op_cross_entropy(p, x, targets, NULL);

    tsr_gradients(p, loss, 9, w, d);
    tsr_output(p, "x", x, NULL);
    tsr_output(p, "loss", loss, NULL);
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "d.%d", i);
        tsr_output(p, name, d[i], NULL);
    }
}

/* A mesh of rank 0 alone, and a layout on it. */
static tsr_layout *lay_alone(const tsr_mesh *mesh, int ndim, const int64_t *shape)
{
    tsr_mesh *alone;
    tsr_layout *layout = NULL;
    if (tsr_mesh_create(tsr_mesh_comm(mesh), 1, (const int64_t[]){1}, NULL, NULL, &alone) != TSR_OK)
        return NULL;
    (void)tsr_layout_parse(alone, "R", ndim, shape, TSR_F32, &layout);
    tsr_mesh_destroy(alone);
    return layout;
}

/* Redistributions of all kinds, those that share an exchange too, and one to a rank alone; and
 * views that are copied. */
static void record_moves(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    static const int64_t turned[] = {35};
    (void)arg;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){5, 7}, "S(0)");
    const tsr_value terms = tsr_input(p, "terms", mesh, TSR_F32, 2, (const int64_t[]){5, 7}, "P");
    const tsr_value columns = tsr_op_redistribute(p, x, "S(1)"), rows = tsr_op_redistribute(p, terms, "S(0)");
    const tsr_value full = tsr_op_redistribute(p, columns, "R");
    tsr_output(p, "columns", columns, NULL);
    tsr_output(p, "sum", tsr_op_add(p, x, rows), NULL);
    tsr_output(p, "whole", full, NULL);
    tsr_output(p, "turned", tsr_op_transpose(p, full, 0, 1), NULL);
    tsr_output(p, "line", tsr_op_reshape(p, tsr_op_transpose(p, full, 0, 1), 1, turned), NULL);
    tsr_output(p, "part", tsr_op_slice(p, full, 1, 1, 7, 2), NULL);
    tsr_output(p, "again", x, NULL);
    tsr_layout *const alone = lay_alone(mesh, 2, (const int64_t[]){5, 7});
    tsr_output(p, "first", tsr_op_square(p, tsr_op_to_mesh(p, x, alone)), NULL);
    tsr_layout_destroy(alone);
}

/* States: written at a position that an input gives, at a constant one, and full. */
static void record_states(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    tsr_layout *layout, *one;
    (void)arg;
    if (tsr_layout_parse(mesh, "S(0)", 3, (const int64_t[]){4, 9, 2}, TSR_F32, &layout) != TSR_OK)
        return;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 3, (const int64_t[]){4, 3, 2}, "S(0)");
    const tsr_value position = tsr_input(p, "position", mesh, TSR_I64, 0, NULL, NULL);
    const tsr_value cache = tsr_state(p, "cache", layout), sum = tsr_state(p, "sum", layout);
    tsr_layout_destroy(layout);
    const tsr_value before = tsr_op_slice(p, cache, 1, 0, 4, 1);
    tsr_op_store(p, cache, x, position);
    if (tsr_layout_parse(mesh, "R", 0, NULL, TSR_I64, &one) != TSR_OK)
        return;
    tsr_op_store(p, cache, tsr_op_neg(p, x), tsr_constant(p, 6, one));
    tsr_layout_destroy(one);
    tsr_op_store(p, sum, tsr_op_add(p, sum, cache), TSR_NONE);
    tsr_output(p, "before", before, NULL);
    tsr_output(p, "after", tsr_op_slice(p, cache, 1, 0, 4, 1), NULL);
    tsr_output(p, "cache", cache, NULL);
}

/* Scores of tokens with all keys so far, which are exchanged. */
static void record_lengths(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    tsr_layout *layout;
    (void)arg;
    const int64_t tokens = tsr_length(p, "tokens", 9), total = tsr_length(p, "total", 9);
    if (tsr_layout_parse(mesh, "S(0)", 3, (const int64_t[]){4, 9, 2}, TSR_F32, &layout) != TSR_OK)
        return;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 3, (const int64_t[]){4, tokens, 2}, "S(0)");
    const tsr_value position = tsr_input(p, "position", mesh, TSR_I64, 0, NULL, NULL);
    const tsr_value cache = tsr_state(p, "cache", layout);
    tsr_layout_destroy(layout);
    tsr_op_store(p, cache, x, position);
    const tsr_value k = tsr_op_slice(p, cache, 1, 0, total, 1);
    const tsr_value scores = tsr_op_matmul(p, x, tsr_op_transpose(p, k, 1, 2));
    tsr_output(p, "scores", tsr_op_softmax(p, scores, 2), NULL);
    tsr_output(p, "y", tsr_op_redistribute(p, tsr_op_matmul(p, scores, k), "R"), NULL);
}

const device_case device_mlp = {"mlp", record_mlp, NULL, 9}, device_llama = {"llama", record_llama, NULL, 8},
                  device_moves = {"moves", record_moves, NULL, 0}, device_states = {"states", record_states, NULL, 6},
                  device_lengths = {"lengths", record_lengths, NULL, 1};
