/* Views: their memory, the bits of copies, gradients, and errors. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The most bytes of a tensor of these tests. */
#define BYTES 4096

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return tsr_status_set(TSR_ERROR_INTERNAL, "line %d: %s", __LINE__, #condition);                            \
    } while (0)

static bool is_inside(const tsr_dtensor *view, const tsr_tensor *parent, size_t bytes)
{
    const char *const at = tsr_dtensor_to_local(view).data, *const begin = parent->data;
    return at >= begin && at < begin + bytes;
}

/* Views of a 4x6 tensor on two ranks, cut by its columns. */
static tsr_status make_views(const tsr_dtensor *x, tsr_dtensor *views[11])
{
    static const int64_t order[] = {1, 0}, flat[] = {2, 2, 6}, many[] = {3, 1, 4, 6}, parts[] = {1, 3}, first = 0;
    TSR_TRY(tsr_transpose(x, 0, 1, &views[0]));
    TSR_TRY(tsr_permute(x, 2, order, &views[1]));
    TSR_TRY(tsr_slice(x, 1, 1, 6, 1, &views[2]));
    TSR_TRY(tsr_slice(x, 0, 1, INT64_MAX, 2, &views[3]));
    TSR_TRY(tsr_narrow(x, 0, 1, 2, &views[4]));
    TSR_TRY(tsr_unsqueeze(x, 0, &views[5]));
    TSR_TRY(tsr_squeeze(views[5], 1, &first, &views[6]));
    TSR_TRY(tsr_expand(views[5], 4, many, &views[7]));
    TSR_TRY(tsr_split(x, 0, 2, parts, &views[8]));
    return tsr_reshape(x, 3, flat, &views[10]);
}

static tsr_status share_memory(tsr_comm *comm, void *arg)
{
    static const int64_t shape[] = {4, 6};
    tsr_mesh *mesh;
    tsr_dtensor *x, *views[11];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(support_make_numbered(mesh, "S(1)", 2, shape, 0, &x));
    const tsr_tensor parent = tsr_dtensor_to_local(x);
    TSR_TRY(make_views(x, views));
    tsr_dtensor_destroy(x);
    for (int i = 0; i < 11; i++)
        CHECK(is_inside(views[i], &parent, 12 * sizeof(float)));
    /* A write to one view is seen in the others, after their parent is gone. */
    TSR_TRY(tsr_dtensor_fill(views[4], -1, NULL));
    static const float transposed[] = {0, -1, -1, 18, 1, -1, -1, 19, 2, -1, -1, 20,
                                       3, -1, -1, 21, 4, -1, -1, 22, 5, -1, -1, 23};
    static const float part[] = {1, 2, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 19, 20, 21, 22, 23};
    static const float second[] = {-1, -1, -1, -1, -1, -1, 18, 19, 20, 21, 22, 23};
    TSR_TRY(support_expect_whole("views[0]", views[0], "S(0)", 24, transposed));
    TSR_TRY(support_expect_whole("views[1]", views[1], "S(0)", 24, transposed));
    TSR_TRY(support_expect_whole("views[2]", views[2], "S(1;sizes=2,3)", 20, part));
    TSR_TRY(support_expect_whole("views[3]", views[3], "S(1)", 12, second));
    float repeated[72];
    for (int i = 0; i < 72; i++)
        repeated[i] = i / 6 % 4 == 1 || i / 6 % 4 == 2 ? -1 : (float)(i % 24);
    TSR_TRY(support_expect_whole("views[7]", views[7], "S(3)", 72, repeated));
    TSR_TRY(support_expect_whole("views[6]", views[6], "S(1)", 24, repeated));
    TSR_TRY(support_expect_whole("views[10]", views[10], "S(2)", 24, repeated));
    /* What is repeated can only be read. */
    TSR_TRY(layer_expect_refusal(tsr_neg_into(views[7], views[7]),
                                 "tsr_neg_into: elements of out share memory, so it can only be read"));
    for (int i = 0; i < 11; i++)
        tsr_dtensor_destroy(views[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void views_share_memory_and_keep_it(void **state)
{
    (void)state;
    layers_run(2, share_memory, NULL);
}

/* The element of x (3x4x5) that is element `i` of a result; -1: 0. */
typedef int64_t source(const int64_t *i);

static int64_t at(int64_t a, int64_t b, int64_t c)
{
    return (a * 4 + b) * 5 + c;
}

static int64_t transposed(const int64_t *i)
{
    return at(i[2], i[1], i[0]);
}

static int64_t permuted(const int64_t *i)
{
    return at(i[1], i[2], i[0]);
}

static int64_t sliced(const int64_t *i)
{
    return at(i[0], i[1], 1 + 2 * i[2]);
}

static int64_t narrowed(const int64_t *i)
{
    return at(i[0], 1 + i[1], i[2]);
}

static int64_t padded(const int64_t *i)
{
    return i[1] < 1 || i[1] > 4 ? -1 : at(i[0], i[1] - 1, i[2]);
}

static int64_t flipped(const int64_t *i)
{
    return at(2 - i[0], i[1], 4 - i[2]);
}

static int64_t rolled(const int64_t *i)
{
    return at(i[0], i[1], (i[2] + 3) % 5);
}

static int64_t lower(const int64_t *i)
{
    return i[2] > i[1] + 1 ? -1 : at(i[0], i[1], i[2]);
}

static int64_t upper(const int64_t *i)
{
    return i[2] < i[1] - 1 ? -1 : at(i[0], i[1], i[2]);
}

static int64_t expanded(const int64_t *i)
{
    return at(i[1], i[2], i[3]);
}

static int64_t doubled(const int64_t *i)
{
    return at(i[0] % 3, i[1], i[2]);
}

static int64_t stacked(const int64_t *i)
{
    return at(i[0], i[2], i[3]);
}

static int64_t kept(const int64_t *i)
{
    return at(i[0], i[1], i[2]);
}

static const int64_t cube[] = {3, 4, 5}, order_of_cube[] = {2, 0, 1}, ends[] = {0, 2}, four[] = {2, 3, 4, 5};

#define ROW(name, from, ndim, a, b, c, d, make, copy)                                                                  \
    static tsr_status make_##name(const tsr_dtensor *x, tsr_dtensor **out)                                             \
    {                                                                                                                  \
        return make;                                                                                                   \
    }                                                                                                                  \
    static tsr_status copy_##name(const tsr_dtensor *x, tsr_dtensor *out)                                              \
    {                                                                                                                  \
        return copy;                                                                                                   \
    }

#define ROWS                                                                                                           \
    ROW(transpose, transposed, 3, 5, 4, 3, 0, tsr_transpose(x, 0, 2, out), tsr_transpose_into(x, 0, 2, out))           \
    ROW(permute, permuted, 3, 5, 3, 4, 0, tsr_permute(x, 3, order_of_cube, out),                                       \
        tsr_permute_into(x, 3, order_of_cube, out))                                                                    \
    ROW(slice, sliced, 3, 3, 4, 2, 0, tsr_slice(x, 2, 1, 5, 2, out), tsr_slice_into(x, 2, 1, 5, 2, out))               \
    ROW(narrow, narrowed, 3, 3, 2, 5, 0, tsr_narrow(x, 1, 1, 2, out), tsr_narrow_into(x, 1, 1, 2, out))                \
    ROW(pad, padded, 3, 3, 7, 5, 0, tsr_pad(x, 1, 1, 2, 0, out), tsr_pad_into(x, 1, 1, 2, 0, out))                     \
    ROW(flip, flipped, 3, 3, 4, 5, 0, tsr_flip(x, 2, ends, out), tsr_flip_into(x, 2, ends, out))                       \
    ROW(roll, rolled, 3, 3, 4, 5, 0, tsr_roll(x, -1, 2, out), tsr_roll_into(x, -1, 2, out))                            \
    ROW(tril, lower, 3, 3, 4, 5, 0, tsr_tril(x, 1, out), tsr_tril_into(x, 1, out))                                     \
    ROW(triu, upper, 3, 3, 4, 5, 0, tsr_triu(x, -1, out), tsr_triu_into(x, -1, out))                                   \
    ROW(expand, expanded, 4, 2, 3, 4, 5, tsr_expand(x, 4, four, out), tsr_expand_into(x, 4, four, out))                \
    ROW(reshape, kept, 3, 3, 4, 5, 0, tsr_reshape(x, 3, cube, out), tsr_reshape_into(x, 3, cube, out))                 \
    ROW(squeeze, kept, 3, 3, 4, 5, 0, tsr_squeeze(x, 0, NULL, out), tsr_squeeze_into(x, 0, NULL, out))                 \
    ROW(unsqueeze, expanded, 4, 1, 3, 4, 5, tsr_unsqueeze(x, 0, out), tsr_unsqueeze_into(x, 0, out))                   \
    ROW(concat, doubled, 3, 6, 4, 5, 0, tsr_concat(2, (const tsr_dtensor *const[]){x, x}, 0, out),                     \
        tsr_concat_into(2, (const tsr_dtensor *const[]){x, x}, 0, out))                                                \
    ROW(stack, stacked, 4, 3, 2, 4, 5, tsr_stack(2, (const tsr_dtensor *const[]){x, x}, 1, out),                       \
        tsr_stack_into(2, (const tsr_dtensor *const[]){x, x}, 1, out))

ROWS

    static const struct copy_row {
    const char *name;
    source *from;
    int ndim;
    int64_t shape[4];
    tsr_status (*make)(const tsr_dtensor *x, tsr_dtensor **out);
    tsr_status (*copy)(const tsr_dtensor *x, tsr_dtensor *out);
} copy_rows[] = {
#undef ROW
#define ROW(name, from, ndim, a, b, c, d, make, copy) {#name, from, ndim, {a, b, c, d}, make_##name, copy_##name},
    ROWS};

enum { COPY_ROWS = sizeof copy_rows / sizeof copy_rows[0] };

/* Compares a result, of any strides, with the bytes that it must have. */
static tsr_status compare_bytes(const struct copy_row *row, const tsr_dtensor *result, const char *bytes)
{
    const tsr_tensor local = tsr_dtensor_to_local(result);
    const int64_t element = (int64_t)tsr_dtype_bytes(local.dtype);
    static const char zero[16];
    int64_t i[4] = {0};
    CHECK(local.ndim == row->ndim && memcmp(local.shape, row->shape, (size_t)row->ndim * sizeof(int64_t)) == 0);
    for (;;) {
        int64_t place = 0;
        for (int dim = 0; dim < local.ndim; dim++)
            place += i[dim] * local.strides[dim];
        const int64_t from = row->from(i);
        const char *const got = (const char *)local.data + place * element;
        if (memcmp(got, from < 0 ? zero : bytes + from * element, (size_t)element) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s: element %lld,%lld,%lld,%lld is wrong", row->name,
                                  tsr_dtype_name(local.dtype), (long long)i[0], (long long)i[1], (long long)i[2],
                                  (long long)i[3]);
        int dim = local.ndim - 1;
        while (dim >= 0 && ++i[dim] == local.shape[dim])
            i[dim--] = 0;
        if (dim < 0)
            return TSR_OK;
    }
}

/* Every op, on elements of random bytes, NaNs with payloads among them, of a dtype, with strides
 * too. */
static tsr_status check_dtype(const tsr_mesh *mesh, tsr_dtype dtype, bool strided)
{
    static const int64_t wide[] = {3, 4, 10};
    char bytes[60 * 16], spread[BYTES];
    const size_t element = tsr_dtype_bytes(dtype);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(dtype == TSR_BOOL ? i % 2 : i * i * 37 + i * 11 + 127);
    for (size_t i = 0; i < 60; i++)
        memcpy(spread + 2 * i * element, bytes + i * element, element);
    tsr_tensor local = tsr_tensor_contiguous(strided ? spread : bytes, dtype, 3, strided ? wide : cube);
    if (strided) {
        local.shape[2] = 5;
        local.strides[2] = 2;
    }
    tsr_layout *layout;
    tsr_dtensor *x;
    TSR_TRY(tsr_layout_parse(mesh, "R", 3, cube, dtype, &layout));
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    for (int i = 0; i < COPY_ROWS; i++) {
        tsr_dtensor *made, *copy;
        TSR_TRY(copy_rows[i].make(x, &made));
        TSR_TRY(compare_bytes(&copy_rows[i], made, bytes));
        TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(made), tsr_device_host(), &copy));
        TSR_TRY(copy_rows[i].copy(x, copy));
        TSR_TRY(compare_bytes(&copy_rows[i], copy, bytes));
        tsr_dtensor_destroy(copy);
        tsr_dtensor_destroy(made);
    }
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status check_dtypes(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (int dtype = 1; dtype < TSR_DTYPE_END; dtype++) {
        TSR_TRY(check_dtype(mesh, (tsr_dtype)dtype, false));
        TSR_TRY(check_dtype(mesh, (tsr_dtype)dtype, true));
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void every_dtype_keeps_its_bits(void **state)
{
    (void)state;
    layers_run(1, check_dtypes, NULL);
}

/* Results that overlap their operand. */
static tsr_status overlap(tsr_comm *comm, void *arg)
{
    static const int64_t square[] = {3, 3}, line = 6, all = 0;
    tsr_mesh *mesh;
    tsr_dtensor *x, *row, *front, *back, *reshaped, *columns;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(support_make_numbered(mesh, "R", 2, square, 0, &x));
    TSR_TRY(tsr_transpose_into(x, 0, 1, x));
    TSR_TRY(support_expect_whole("x", x, "R", 9, (const float[]){0, 3, 6, 1, 4, 7, 2, 5, 8}));
    TSR_TRY(tsr_flip_into(x, 1, &all, x));
    TSR_TRY(support_expect_whole("x", x, "R", 9, (const float[]){2, 5, 8, 1, 4, 7, 0, 3, 6}));
    TSR_TRY(tsr_tril_into(x, 0, x));
    TSR_TRY(support_expect_whole("x", x, "R", 9, (const float[]){2, 0, 0, 1, 4, 0, 0, 3, 6}));
    TSR_TRY(support_make_numbered(mesh, "R", 1, &line, 0, &row));
    TSR_TRY(tsr_slice(row, 0, 0, 5, 1, &front));
    TSR_TRY(tsr_slice(row, 0, 1, 6, 1, &back));
    TSR_TRY(tsr_roll_into(front, 0, 0, back));
    TSR_TRY(support_expect_whole("row", row, "R", 6, (const float[]){0, 0, 1, 2, 3, 4}));
    /* A transpose cannot be reshaped by strides, and neither can its copy's memory. */
    TSR_TRY(tsr_transpose(x, 0, 1, &columns));
    TSR_TRY(tsr_reshape(columns, 1, (const int64_t[]){9}, &reshaped));
    TSR_TRY(support_expect_whole("reshaped", reshaped, "R", 9, (const float[]){2, 1, 0, 0, 4, 3, 0, 0, 6}));
    tsr_dtensor *const made[] = {x, row, front, back, reshaped, columns};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        tsr_dtensor_destroy(made[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void results_may_overlap_operands(void **state)
{
    (void)state;
    layers_run(1, overlap, NULL);
}

/* A fused weight of two column-parallel ones, of which the second leaves two ranks without rows. */
static tsr_status fuse(tsr_comm *comm, void *arg)
{
    static const int64_t six[] = {6, 1}, two[] = {2, 1}, sizes[] = {6, 0, 2};
    static const float values[] = {0, 1, 2, 3, 4, 5, 0, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *fused, *gradients[2], *parts[3], *whole;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=4", &mesh));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 2, six, 0, &x));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 2, two, 0, &y));
    const tsr_dtensor *const both[] = {x, y};
    TSR_TRY(tsr_concat(2, both, 0, &fused));
    TSR_TRY(support_expect_whole("fused", fused, "S(0;blocks=6,2)", 8, values));
    CHECK(tsr_dtensor_to_local(fused).shape[0] == (tsr_comm_rank(comm) < 2 ? 3 : tsr_comm_rank(comm) == 2 ? 2 : 0));
    TSR_TRY(tsr_concat_backward(2, both, 0, fused, gradients));
    TSR_TRY(support_expect_whole("gradients[0]", gradients[0], "S(0)", 6, values));
    TSR_TRY(support_expect_whole("gradients[1]", gradients[1], "S(0)", 2, values));
    /* Splitting it gives the parts back, in its memory. */
    TSR_TRY(tsr_split(fused, 0, 3, sizes, parts));
    TSR_TRY(support_expect_whole("parts[0]", parts[0], "S(0)", 6, values));
    TSR_TRY(support_expect_whole("parts[1]", parts[1], "S(0)", 0, values));
    TSR_TRY(support_expect_whole("parts[2]", parts[2], "S(0)", 2, values));
    const tsr_dtensor *const some[] = {parts[0], NULL, NULL};
    TSR_TRY(tsr_split_backward(fused, 0, 3, sizes, some, &whole));
    TSR_TRY(support_expect_whole("whole", whole, "S(0;blocks=6,2)", 8, (const float[]){0, 1, 2, 3, 4, 5, 0, 0}));
    tsr_dtensor *const made[] = {x, y, fused, gradients[0], gradients[1], parts[0], parts[1], parts[2], whole};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        tsr_dtensor_destroy(made[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void concat_and_split_move_nothing(void **state)
{
    (void)state;
    layers_run(4, fuse, NULL);
}

/* A tensor of ones in the layout of another one. */
static tsr_status make_ones(const tsr_dtensor *like, tsr_dtensor **out)
{
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(like), tsr_device_host(), out));
    return tsr_dtensor_fill(*out, 1, NULL);
}

/* Gradients of 2x3 tensors, of ones: how often an element is in the result. */
static const int64_t matrix[] = {2, 3}, repeated_shape[] = {2, 2, 3}, swapped[] = {1, 0}, line_shape[] = {1, 6};
static const int64_t last_dim = 1, first_dim = 0;

#define GRADIENT(name, forward, backward)                                                                              \
    static tsr_status forward_##name(const tsr_dtensor *x, tsr_dtensor **out)                                          \
    {                                                                                                                  \
        return forward;                                                                                                \
    }                                                                                                                  \
    static tsr_status backward_##name(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)                 \
    {                                                                                                                  \
        return backward;                                                                                               \
    }
GRADIENT(reshape, tsr_reshape(x, 2, line_shape, out), tsr_reshape_backward(x, 2, line_shape, dout, dx))
GRADIENT(transpose, tsr_transpose(x, 0, 1, out), tsr_transpose_backward(x, 0, 1, dout, dx))
GRADIENT(permute, tsr_permute(x, 2, swapped, out), tsr_permute_backward(x, 2, swapped, dout, dx))
GRADIENT(expand, tsr_expand(x, 3, repeated_shape, out), tsr_expand_backward(x, 3, repeated_shape, dout, dx))
GRADIENT(squeeze, tsr_squeeze(x, 0, NULL, out), tsr_squeeze_backward(x, 0, NULL, dout, dx))
GRADIENT(unsqueeze, tsr_unsqueeze(x, 1, out), tsr_unsqueeze_backward(x, 1, dout, dx))
GRADIENT(slice, tsr_slice(x, 1, 0, 3, 2, out), tsr_slice_backward(x, 1, 0, 3, 2, dout, dx))
GRADIENT(narrow, tsr_narrow(x, 1, 1, 2, out), tsr_narrow_backward(x, 1, 1, 2, dout, dx))
GRADIENT(pad, tsr_pad(x, 1, 1, 1, 5, out), tsr_pad_backward(x, 1, 1, 1, 5, dout, dx))
GRADIENT(flip, tsr_flip(x, 1, &first_dim, out), tsr_flip_backward(x, 1, &first_dim, dout, dx))
GRADIENT(roll, tsr_roll(x, 0, 1, out), tsr_roll_backward(x, 0, 1, dout, dx))
GRADIENT(tril, tsr_tril(x, 0, out), tsr_tril_backward(x, 0, dout, dx))
GRADIENT(triu, tsr_triu(x, 1, out), tsr_triu_backward(x, 1, dout, dx))

static tsr_status forward_stack(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_stack(2, (const tsr_dtensor *const[]){x, x}, 0, out);
}

static tsr_status backward_stack(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    tsr_dtensor *both[2];
    TSR_TRY(tsr_stack_backward(2, (const tsr_dtensor *const[]){x, x}, 0, dout, both));
    tsr_dtensor_destroy(both[0]);
    *dx = both[1];
    return TSR_OK;
}

#define FUNCTIONS(name) #name, forward_##name, backward_##name

static const struct gradient_row {
    const char *name;
    tsr_status (*forward)(const tsr_dtensor *x, tsr_dtensor **out);
    tsr_status (*backward)(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx);
    float gradient[6];
} gradient_rows[] = {
    {FUNCTIONS(reshape), {1, 1, 1, 1, 1, 1}}, {FUNCTIONS(transpose), {1, 1, 1, 1, 1, 1}},
    {FUNCTIONS(permute), {1, 1, 1, 1, 1, 1}}, {FUNCTIONS(expand), {2, 2, 2, 2, 2, 2}},
    {FUNCTIONS(squeeze), {1, 1, 1, 1, 1, 1}}, {FUNCTIONS(unsqueeze), {1, 1, 1, 1, 1, 1}},
    {FUNCTIONS(slice), {1, 0, 1, 1, 0, 1}},   {FUNCTIONS(narrow), {0, 1, 1, 0, 1, 1}},
    {FUNCTIONS(pad), {1, 1, 1, 1, 1, 1}},     {FUNCTIONS(flip), {1, 1, 1, 1, 1, 1}},
    {FUNCTIONS(roll), {1, 1, 1, 1, 1, 1}},    {FUNCTIONS(tril), {1, 0, 0, 1, 1, 0}},
    {FUNCTIONS(triu), {0, 1, 1, 0, 0, 1}},    {FUNCTIONS(stack), {1, 1, 1, 1, 1, 1}},
};

static tsr_status check_gradients(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *x;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make_numbered(mesh, "S(1)", 2, matrix, 0, &x));
    for (size_t i = 0; i < sizeof gradient_rows / sizeof gradient_rows[0]; i++) {
        tsr_dtensor *out, *dout, *dx;
        TSR_TRY(gradient_rows[i].forward(x, &out));
        TSR_TRY(make_ones(out, &dout));
        tsr_dtensor_destroy(out);
        TSR_TRY(gradient_rows[i].backward(x, dout, &dx));
        tsr_dtensor_destroy(dout);
        TSR_TRY(support_expect_whole("dx", dx, "S(1)", 6, gradient_rows[i].gradient));
        tsr_dtensor_destroy(dx);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_go_back_to_where_elements_came_from(void **state)
{
    (void)state;
    layers_run(2, check_gradients, NULL);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    static const int64_t wrong[] = {2, 2}, five[] = {2, 5};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *balanced, *out, *many[9];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(support_make_numbered(mesh, "S(1)", 2, matrix, 0, &x));
    TSR_TRY(support_make_numbered(mesh, "R", 2, matrix, 0, &y));
    TSR_TRY(support_make_numbered(mesh, "S(1;sizes=1,4)", 2, five, 0, &balanced));
    for (int i = 0; i < 9; i++)
        many[i] = x;
    const tsr_dtensor *const *const all = (const tsr_dtensor *const *)many;
    TSR_TRY(layer_expect_refusal(tsr_transpose(x, 0, 2, &out),
                                 "tsr_transpose: dim0 and dim1 are 0 and 2, but must be below "
                                 "2, the dims of x, or -1 for the last"));
    TSR_TRY(layer_expect_refusal(tsr_permute(x, 2, wrong, &out),
                                 "tsr_permute: dims are 2,2, but must be each of the 2 dims of x once"));
    TSR_TRY(layer_expect_refusal(
        tsr_expand(x, 2, wrong, &out),
        "tsr_expand: shape is 2,2, but x of shape 2,3 can be repeated along dims of size 1 and along "
        "new leading dims alone"));
    TSR_TRY(layer_expect_refusal(tsr_squeeze(x, 1, &last_dim, &out),
                                 "tsr_squeeze: dim 1 of x has size 3, but dims of size 1 go away alone"));
    TSR_TRY(layer_expect_refusal(tsr_unsqueeze(x, 3, &out),
                                 "tsr_unsqueeze: dim is 3, but must be 0 to 2, a place among the "
                                 "dims of x, or -1 for the last"));
    TSR_TRY(layer_expect_refusal(tsr_slice(x, 1, 2, 4, 1, &out),
                                 "tsr_slice: elements 2 to 4, but dim 1 of x has elements 0 "
                                 "to 3; the end is not among them"));
    TSR_TRY(layer_expect_refusal(tsr_slice(x, 1, 0, 3, 0, &out), "tsr_slice: step is 0, but must be 1 or more"));
    TSR_TRY(layer_expect_refusal(tsr_slice(x, 2, 0, 3, 1, &out),
                                 "tsr_slice: dim is 2, but must be 0 to 1, a dim of x, or -1 for the last"));
    TSR_TRY(layer_expect_refusal(tsr_narrow(x, 1, 2, 2, &out),
                                 "tsr_narrow: elements 2 to 4, but dim 1 of x has elements 0 "
                                 "to 3; the end is not among them"));
    TSR_TRY(layer_expect_refusal(tsr_pad(x, 1, -1, 0, 0, &out),
                                 "tsr_pad: before is -1, but must be 0 or more, and no more than 2305843009213693951"));
    TSR_TRY(layer_expect_refusal(tsr_tril(NULL, 0, &out), "tsr_tril: x is NULL"));
    TSR_TRY(layer_expect_refusal(
        tsr_flip(x, 0, NULL, &out),
        "tsr_flip: mesh dim tp cuts dim 1 of x, which flip needs whole; redistribute x from \"S(1)\" "
        "to \"R\""));
    TSR_TRY(
        layer_expect_refusal(tsr_concat(2, (const tsr_dtensor *const[]){x, y}, 1, &out),
                             "tsr_concat: mesh dim tp must cut dim 1 of x and dim 1 of y alike; redistribute y from "
                             "\"R\" to \"S(1)\""));
    TSR_TRY(
        layer_expect_refusal(tsr_concat(2, (const tsr_dtensor *const[]){x, balanced}, 1, &out),
                             "tsr_concat: mesh dim tp cuts dim 1 of x so that no placement says which rank has what of "
                             "the result; redistribute y from \"S(1;sizes=1,4)\" to \"S(1)\""));
    TSR_TRY(layer_expect_refusal(tsr_concat(9, all, 1, &out), "tsr_concat: count is 9, but must be 1 to 8"));
    TSR_TRY(layer_expect_refusal(tsr_split(x, 1, 2, wrong, &out),
                                 "tsr_split: sizes must be 0 or more and sum to 3, the size of dim 1"));
    TSR_TRY(layer_expect_refusal(
        tsr_reshape(x, 2, wrong, &out),
        "tsr_reshape: shape is 2x2, but x of shape 2x3 needs one with as many elements, in which -1, "
        "once, may stand for what is left"));
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(balanced);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void errors_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_share_memory_and_keep_it),
        cmocka_unit_test(every_dtype_keeps_its_bits),
        cmocka_unit_test(results_may_overlap_operands),
        cmocka_unit_test(concat_and_split_move_nothing),
        cmocka_unit_test(gradients_go_back_to_where_elements_came_from),
        cmocka_unit_test(errors_say_what_would_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
