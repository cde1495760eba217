/* Products of dtensors, compared with plain loops over small integers, which are exact, and their
 * errors. The layouts are proved in proof/products.c. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1 << 14, OPERANDS = 4 };

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state ^ *state >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32;
}

static int below(uint64_t *state, int bound)
{
    return (int)(next(state) % (uint64_t)bound);
}

/* Elements of floats by way of f32, which holds small integers. */
static void set_element(void *data, tsr_dtype dtype, int64_t i, float value)
{
    void *self;
    tsr_device_driver_table(NULL, &self)
        ->convert(self, 0, (char *)data + i * (int64_t)tsr_dtype_bytes(dtype), dtype, &value, TSR_F32, 1, NULL);
}

static float get_element(const void *data, tsr_dtype dtype, int64_t i)
{
    float value;
    void *self;
    tsr_device_driver_table(NULL, &self)
        ->convert(self, 0, &value, TSR_F32, (const char *)data + i * (int64_t)tsr_dtype_bytes(dtype), dtype, 1, NULL);
    return value;
}

/* A tensor of a term of letters, whose dims lie in memory in any order, with gaps, or repeat. */
typedef struct operand {
    const char *term;
    int64_t stride[128];
    tsr_tensor local;
    char *memory;
    tsr_dtensor *tensor;
} operand;

static tsr_status make_operand(const tsr_mesh *mesh, const int64_t *size, tsr_dtype dtype, uint64_t *state, operand *o)
{
    const int ndim = (int)strcspn(o->term, ",-");
    int order[TSR_MAX_DIMS] = {0};
    int64_t count = 1;
    tsr_layout *layout;
    for (int i = 0; i < ndim; i++) {
        const int at = below(state, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    o->local = (tsr_tensor){.dtype = dtype, .device = tsr_device_host(), .ndim = ndim};
    for (int i = ndim - 1; i >= 0; i--) {
        const int dim = order[i];
        const bool repeats = below(state, 12) == 0;
        o->local.shape[dim] = size[(int)o->term[dim]];
        o->local.strides[dim] = repeats ? 0 : count;
        count *= repeats ? 1 : o->local.shape[dim] + (below(state, 4) == 0);
        o->stride[(int)o->term[dim]] = o->local.strides[dim];
    }
    o->memory = calloc((size_t)count + 1, tsr_dtype_bytes(dtype));
    EXPECT(o->memory, "no memory");
    for (int64_t i = 0; i < count; i++)
        set_element(o->memory, dtype, i, (float)(below(state, 9) - 4));
    o->local.data = o->memory;
    const tsr_placement whole = tsr_replicate();
    TSR_TRY(tsr_layout_create(mesh, &whole, ndim, o->local.shape, dtype, &layout));
    const tsr_status status = tsr_dtensor_from_local(&o->local, layout, NULL, &o->tensor);
    tsr_layout_destroy(layout);
    return status;
}

static void drop_operand(operand *o)
{
    tsr_dtensor_destroy(o->tensor);
    free(o->memory);
}

/* Steps the index of each letter; false past the last. */
static bool step(const char *letters, const int64_t *size, int64_t *index)
{
    for (const char *at = letters; *at; at++) {
        if (++index[(int)*at] < size[(int)*at])
            return true;
        index[(int)*at] = 0;
    }
    return false;
}

static int64_t place_of(const char *term, const int64_t *stride, const int64_t *index)
{
    int64_t place = 0;
    for (; *term && *term != ',' && *term != '-'; term++)
        place += stride[(int)*term] * index[(int)*term];
    return place;
}

/* Computes an equation by one loop over all letters. */
static void multiply_plainly(int count, const operand *operands, const char *result, const int64_t *size,
                             const int64_t *stride, double *sums)
{
    char letters[64] = "";
    int64_t index[128] = {0};
    for (int i = 0; i < count; i++) {
        for (const char *at = operands[i].term; *at && *at != ',' && *at != '-'; at++) {
            if (!strchr(letters, *at))
                strncat(letters, at, 1);
        }
    }
    for (const char *at = letters; *at; at++) {
        if (size[(int)*at] == 0)
            return;
    }
    do {
        double product = 1;
        for (int i = 0; i < count; i++)
            product *= (double)get_element(operands[i].local.data, operands[i].local.dtype,
                                           place_of(operands[i].term, operands[i].stride, index));
        sums[place_of(result, stride, index)] += product;
    } while (step(letters, size, index));
}

static tsr_status check_equation(const tsr_mesh *mesh, const char *equation, tsr_dtype dtype, bool mixes,
                                 uint64_t *state)
{
    static const tsr_dtype narrow[] = {TSR_F32, TSR_F16, TSR_BF16};
    operand operands[OPERANDS];
    const tsr_dtensor *given[OPERANDS];
    int64_t size[128] = {0}, stride[128] = {0}, elements = 1;
    int count = 0;
    tsr_dtensor *out;
    for (int i = 'a'; i <= 'z'; i++)
        size[i] = below(state, 16) ? 1 + below(state, strlen(equation) > 12 ? 4 : 11) : 0;
    for (const char *at = equation; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        operands[count] = (operand){.term = at};
        TSR_TRY(make_operand(mesh, size, mixes ? narrow[below(state, 3)] : dtype, state, &operands[count]));
        given[count] = operands[count].tensor;
        count++;
    }
    const char *const result = strstr(equation, "->") + 2;
    for (size_t i = strlen(result); i-- > 0; elements *= size[(int)result[i]])
        stride[(int)result[i]] = elements;
    double *const sums = calloc((size_t)elements + 1, sizeof *sums);
    EXPECT(sums, "no memory");
    multiply_plainly(count, operands, result, size, stride, sums);
    TSR_TRY(tsr_einsum(equation, count, given, &out));
    const tsr_tensor local = tsr_dtensor_to_local(out);
    for (int64_t i = 0; i < elements; i++)
        EXPECT((double)get_element(local.data, local.dtype, i) == sums[i], "%s of %s: element %lld is %g, not %g",
               equation, tsr_dtype_name(local.dtype), (long long)i, (double)get_element(local.data, local.dtype, i),
               sums[i]);
    tsr_dtensor_destroy(out);
    for (int i = 0; i < count; i++)
        drop_operand(&operands[i]);
    free(sums);
    return TSR_OK;
}

static const char *const equations[] = {
    "ik,kj->ij",       "ki,kj->ij",     "ik,jk->ji",        "bik,bkj->bij", "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk",
    "bhqk,bkhd->bqhd", "bthd,hdo->bto", "ab,cd->dbca",      "ij->ji",       "ijk->",           "ij,i->j",
    "i,i->",           "i,->i",         "ij,kj->k",         "abc,cb->a",    "ab,bc,cd->ad",    "ij,jk,kl,li->ik",
    "i,ij,j,k->k",     "bn,anm,bm->ba", "abcdefgh,hg->feab"};

static tsr_status check_equations(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (size_t i = 0; i < sizeof equations / sizeof equations[0]; i++) {
        uint64_t state = i;
        for (int n = 0; n < 6; n++) {
            TSR_TRY(check_equation(mesh, equations[i], TSR_F32, false, &state));
            TSR_TRY(check_equation(mesh, equations[i], TSR_F64, false, &state));
            TSR_TRY(check_equation(mesh, equations[i], TSR_F32, true, &state));
        }
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void equations_are_plain_loops(void **state)
{
    (void)state;
    layers_run(1, check_equations, NULL);
}

static tsr_status make(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                       float low, tsr_dtensor **out)
{
    static _Thread_local char memory[MOST * sizeof(double)];
    int64_t count = 1;
    for (int dim = 0; dim < ndim; dim++)
        count *= shape[dim];
    for (int64_t i = 0; i < count; i++)
        set_element(memory, dtype, i, low + (float)(i * 7 % 23) * 0.37f);
    return support_distribute(mesh, placements, dtype, ndim, shape, memory, out);
}

static tsr_status expect_same(const char *what, const tsr_dtensor *a, const tsr_dtensor *b)
{
    char ours[64], theirs[64];
    int64_t bytes;
    const tsr_tensor x = tsr_dtensor_to_local(a), y = tsr_dtensor_to_local(b);
    tsr_layout_print(tsr_dtensor_layout(a), ours, sizeof ours);
    tsr_layout_print(tsr_dtensor_layout(b), theirs, sizeof theirs);
    EXPECT(tsr_layout_equal(tsr_dtensor_layout(a), tsr_dtensor_layout(b)), "%s: %s and %s", what, ours, theirs);
    bytes = (int64_t)tsr_dtype_bytes(x.dtype);
    for (int dim = 0; dim < x.ndim; dim++)
        bytes *= x.shape[dim];
    EXPECT(bytes == 0 || memcmp(x.data, y.data, (size_t)bytes) == 0, "%s: as \"%s\" bits differ", what, ours);
    return TSR_OK;
}

/* Layouts of a layer over 3 ranks. */
static const struct {
    const char *x, *w, *b, *y;
} layers[] = {{"R", "S(0)", "S(0)", "S(2)"},
              {"S(2)", "S(1)", "R", "P"},
              {"S(0)", "R", "R", "S(0)"},
              {"P", "R", "R", "P"},
              {"R", "R", "R", "R"}};

static const tsr_dtype mixtures[][3] = {{TSR_F32, TSR_F32, TSR_F32},
                                        {TSR_F64, TSR_F64, TSR_F64},
                                        {TSR_F32, TSR_BF16, TSR_F32},
                                        {TSR_BF16, TSR_BF16, TSR_BF16},
                                        {TSR_F16, TSR_F16, TSR_F32}};

static tsr_status check_layer(const tsr_mesh *mesh, int number, int mixture, int64_t rows, const tsr_op *op)
{
    const int64_t x_shape[] = {2, rows, 19}, w_shape[] = {23, 19}, b_shape[] = {23};
    const tsr_dtype *const dtypes = mixtures[mixture];
    tsr_dtensor *x, *w, *b, *y, *by_row = NULL, *dx, *dw, *db, *dout;
    tsr_dtensor *rows_of[3] = {NULL};
    tsr_layout *gradient;
    TSR_TRY(make(mesh, layers[number].x, dtypes[0], 3, x_shape, -3, &x));
    TSR_TRY(make(mesh, layers[number].w, dtypes[1], 2, w_shape, -4, &w));
    TSR_TRY(make(mesh, layers[number].b, dtypes[2], 1, b_shape, -1, &b));
    TSR_TRY(tsr_linear(x, w, b, NULL, &y));
    TSR_TRY(tsr_op_call(op, 0, NULL, (const tsr_dtensor *const[]){x, w, b}, &by_row));
    TSR_TRY(expect_same(layers[number].y, y, by_row));
    TSR_TRY(tsr_linear_into(x, w, b, by_row));
    TSR_TRY(expect_same("again", y, by_row));
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(y), &gradient));
    TSR_TRY(tsr_dtensor_create(gradient, tsr_device_host(), &dout));
    tsr_layout_destroy(gradient);
    TSR_TRY(tsr_dtensor_fill(dout, 1, NULL));
    TSR_TRY(tsr_op_backward(op, 0, NULL, (const tsr_dtensor *const[]){x, w, b}, dout,
                            (tsr_dtensor * *const[]){&rows_of[0], &rows_of[1], &rows_of[2]}));
    TSR_TRY(tsr_linear_backward(x, w, b, dout, tsr_layout_placements(tsr_dtensor_layout(rows_of[0])),
                                tsr_layout_placements(tsr_dtensor_layout(rows_of[1])),
                                tsr_layout_placements(tsr_dtensor_layout(rows_of[2])), &dx, &dw, &db));
    TSR_TRY(expect_same("dx", dx, rows_of[0]));
    TSR_TRY(expect_same("dw", dw, rows_of[1]));
    TSR_TRY(expect_same("db", db, rows_of[2]));
    tsr_dtensor *const all[] = {rows_of[0], rows_of[1], rows_of[2], dx, dw, db, dout, by_row, y, b, w, x};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tsr_dtensor_destroy(all[i]);
    return TSR_OK;
}

static tsr_status check_layers(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    const tsr_op *op;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=3", &mesh));
    TSR_TRY(tsr_op_find(NULL, "linear", &op));
    for (int number = 0; number < (int)(sizeof layers / sizeof layers[0]); number++) {
        for (int mixture = 0; mixture < (int)(sizeof mixtures / sizeof mixtures[0]); mixture++) {
            TSR_TRY(check_layer(mesh, number, mixture, 2, op));
            TSR_TRY(check_layer(mesh, number, mixture, 9, op));
        }
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_row_of_linear_has_the_bits_of_a_layer(void **state)
{
    (void)state;
    layers_run(3, check_layers, NULL);
}

static tsr_status check_in_place(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {6, 6};
    tsr_mesh *mesh;
    tsr_dtensor *a, *b, *out, *again;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "R", TSR_F32, 2, shape, -2, &a));
    TSR_TRY(make(mesh, "R", TSR_F32, 2, shape, -4, &b));
    TSR_TRY(tsr_matmul(a, b, &out));
    TSR_TRY(tsr_einsum("ab,bc->ac", 2, (const tsr_dtensor *const[]){a, b}, &again));
    TSR_TRY(expect_same("einsum", out, again));
    TSR_TRY(tsr_einsum_into("ab,bc->ac", 2, (const tsr_dtensor *const[]){a, b}, again));
    TSR_TRY(expect_same("einsum_into", out, again));
    TSR_TRY(tsr_matmul_into(a, b, b));
    TSR_TRY(expect_same("in place of b", out, b));
    tsr_dtensor *const all[] = {a, b, out, again};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_result_may_have_the_memory_of_an_operand(void **state)
{
    (void)state;
    layers_run(2, check_in_place, NULL);
}

/* Gradients of repeated operands are summed in the product: a (2, 3), b (2, 3, 2). */
static tsr_status check_gradients(tsr_comm *comm, void *arg)
{
    const int64_t a_shape[] = {2, 3}, b_shape[] = {2, 3, 2}, out_shape[] = {2, 2, 2};
    tsr_mesh *mesh;
    tsr_dtensor *a, *b, *out, *dout, *da, *db, *v, *dv;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make_numbered(mesh, "R", 2, a_shape, 1, &a));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 3, b_shape, 1, &b));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 3, out_shape, 1, &dout));
    TSR_TRY(tsr_matmul(a, b, &out));
    TSR_TRY(support_expect_whole("out", out, "S(0)", 8, (const float[]){22, 28, 49, 64, 58, 64, 139, 154}));
    TSR_TRY(tsr_matmul_backward(a, b, dout, &da, &db));
    /* da = sum over batch of dout b^T. */
    TSR_TRY(support_expect_whole("da", da, "P", 6, (const float[]){88, 116, 144, 124, 168, 212}));
    TSR_TRY(
        support_expect_whole("db", db, "S(0)", 12, (const float[]){13, 18, 17, 24, 21, 30, 33, 38, 45, 52, 57, 66}));
    tsr_dtensor_destroy(da);
    TSR_TRY(tsr_einsum_backward("ab,cbd->cad", 2, (const tsr_dtensor *const[]){a, b}, dout,
                                (tsr_dtensor * *const[]){&da, NULL}));
    TSR_TRY(support_expect_whole("da of einsum", da, "P", 6, (const float[]){88, 116, 144, 124, 168, 212}));
    /* A letter of one operand alone: its gradient is repeated. */
    TSR_TRY(support_make_numbered(mesh, "R", 1, (const int64_t[]){3}, 1, &v));
    TSR_TRY(
        tsr_einsum_backward("ab,b->b", 2, (const tsr_dtensor *const[]){a, v}, v, (tsr_dtensor * *const[]){&dv, NULL}));
    TSR_TRY(support_expect_whole("dv", dv, "R", 6, (const float[]){1, 4, 9, 1, 4, 9}));
    tsr_dtensor *const all[] = {a, b, out, dout, da, db, v, dv};
    for (int i = 0; i < 8; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_are_summed_in_the_product(void **state)
{
    (void)state;
    layers_run(2, check_gradients, NULL);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {4, 4};
    tsr_mesh *mesh;
    tsr_dtensor *a, *b, *cut, *wide, *scalar, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(make(mesh, "R", TSR_F32, 2, shape, 0, &a));
    TSR_TRY(make(mesh, "S(0)", TSR_F32, 2, shape, 0, &b));
    TSR_TRY(make(mesh, "S(1)", TSR_F32, 2, shape, 0, &cut));
    TSR_TRY(make(mesh, "R", TSR_F64, 2, shape, 0, &wide));
    TSR_TRY(make(mesh, "R", TSR_F32, 0, NULL, 0, &scalar));
    TSR_TRY(layer_expect_refusal(tsr_matmul(a, b, &out),
                                 "tsr_matmul: mesh dim tp must cut dim 0 of b and dim 1 of a alike; "
                                 "redistribute a from \"R\" to \"S(1)\""));
    TSR_TRY(
        layer_expect_refusal(tsr_matmul(b, cut, &out),
                             "tsr_matmul: mesh dim tp cuts dim 0 of a and dim 1 of b, which are different factors of "
                             "\"m k, k n -> m n | k sum | linear {0}{1}\"; redistribute b from \"S(1)\" to "
                             "\"R\""));
    TSR_TRY(layer_expect_refusal(tsr_matmul(a, scalar, &out),
                                 "tsr_matmul: b is a scalar, but matmul wants at least 1 dim; scale by mul"));
    TSR_TRY(layer_expect_refusal(tsr_matmul(a, wide, &out),
                                 "tsr_matmul: a is f32 but b is f64; all operands must have one "
                                 "dtype, or each be f32, f16 or bf16"));
    const tsr_dtensor *const two[] = {a, a};
    TSR_TRY(
        layer_expect_refusal(tsr_einsum("ab,bc->ad", 2, two, &out),
                             "tsr_einsum: equation \"ab,bc->ad\", character 8: expected a letter of an operand, found "
                             "\"d\""));
    TSR_TRY(
        layer_expect_refusal(tsr_einsum("aa,ab", 2, two, &out),
                             "tsr_einsum: equation \"aa,ab\", character 1: expected each letter once in a term, found "
                             "\"a\""));
    TSR_TRY(layer_expect_refusal(tsr_einsum("ab,b", 2, two, &out),
                                 "tsr_einsum: operand 1 has 2 dims, but equation \"ab,b\" wants 1"));
    TSR_TRY(layer_expect_refusal(tsr_einsum("ab", 2, two, &out),
                                 "tsr_einsum: equation \"ab\" has 1 operand, but 2 are given"));
    TSR_TRY(layer_expect_refusal(tsr_einsum("ab,ab,c", 2, two, &out),
                                 "tsr_einsum: equation \"ab,ab,c\" has more operands than the 2 given"));
    TSR_TRY(layer_expect_refusal(tsr_einsum("ab-cd", 1, two, &out),
                                 "tsr_einsum: equation \"ab-cd\", character 2: expected \",\" or \"->\", found \"-\""));
    TSR_TRY(layer_expect_refusal(tsr_einsum(NULL, 2, two, &out), "tsr_einsum: attribute equation is NULL"));
    TSR_TRY(layer_expect_refusal(tsr_einsum("ab", 5, two, &out), "tsr_einsum: count is 5, but must be 1 to 4"));
    EXPECT(!out, "an error wrote the result");
    tsr_dtensor *const all[] = {a, b, cut, wide, scalar};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void errors_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

/* Kept answers tell equations apart. */
static tsr_status check_kept(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {3, 3};
    tsr_mesh *mesh;
    tsr_dtensor *a, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(support_make_numbered(mesh, "R", 2, shape, 1, &a));
    for (int i = 0; i < 4; i++) {
        char equation[8];
        snprintf(equation, sizeof equation, "%s", i % 2 ? "ab->b" : "ab->a");
        TSR_TRY(tsr_einsum(equation, 1, (const tsr_dtensor *const[]){a}, &out));
        memset(equation, 'x', sizeof equation);
        TSR_TRY(support_expect_whole("sums", out, "R", 3,
                                     i % 2 ? (const float[]){12, 15, 18} : (const float[]){6, 15, 24}));
        tsr_dtensor_destroy(out);
    }
    const tsr_op *op;
    const tsr_attribute text = tsr_attribute_text("equation", "ab->ba"), number = tsr_attribute_int("equation", 1);
    const tsr_dtensor *const operands[] = {a, NULL, NULL, NULL}, *const apart[] = {a, NULL, a, NULL};
    TSR_TRY(tsr_op_find(NULL, "einsum", &op));
    TSR_TRY(tsr_op_call(op, 1, &text, operands, &out));
    TSR_TRY(support_expect_whole("transposed", out, "R", 9, (const float[]){1, 4, 7, 2, 5, 8, 3, 6, 9}));
    tsr_dtensor_destroy(out);
    TSR_TRY(
        layer_expect_refusal(tsr_op_call(op, 1, &number, operands, &out), "einsum: attribute equation must be a text"));
    TSR_TRY(
        layer_expect_refusal(tsr_op_call(op, 1, &text, apart, &out), "einsum: c is given, but b before it is NULL"));
    tsr_dtensor_destroy(a);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void equations_are_told_apart(void **state)
{
    (void)state;
    layers_run(1, check_kept, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equations_are_plain_loops),
        cmocka_unit_test(a_row_of_linear_has_the_bits_of_a_layer),
        cmocka_unit_test(a_result_may_have_the_memory_of_an_operand),
        cmocka_unit_test(gradients_are_summed_in_the_product),
        cmocka_unit_test(errors_say_what_would_work),
        cmocka_unit_test(equations_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
