#include "ops/kernels/products/products.h"

#include "ops/blas/provider.h"
#include "ops/forward.h"
#include "ops/gradients.h"
#include "ops/kernels/products/grouped.h"
#include "ops/kernels/products/q8.h"
#include "ops/layer.h"
#include "ops/rows.h"

#include <string.h>

/* Where a call computes, or is measured. */
typedef struct place {
    const tsr_kernel_call *call;
    const tsr_matmul_site *site;
    tsr_arena *arena;
} place;

/* Multiplies tensors from left to right into the last argument; each product keeps the factors that
 * later tensors or the result have. */
static tsr_status contract_all(const place *p, int count, const tsr_factored *tensors, const tsr_factored *result)
{
    const tsr_dtype dtype = result->dtype == TSR_F64 ? TSR_F64 : TSR_F32;
    static const tsr_factored nothing;
    tsr_factored left = tensors[0];
    if (count == 1) {
        tsr_factored one = tsr_factored_create(p->arena, &nothing, 0, dtype);
        TSR_TRY(tsr_matrix_fill(p->site, (tsr_matrix){one.data, 1, 1, 1, 1, dtype}, 1));
        return tsr_contract(p->site, p->arena, &left, &one, result);
    }
    for (int i = 1; i + 1 < count; i++) {
        unsigned kept = result->factors;
        for (int later = i + 1; later < count; later++)
            kept |= tensors[later].factors;
        kept &= left.factors | tensors[i].factors;
        tsr_factored like = left;
        for (int factor = 0; factor < TSR_EQUATION_FACTORS; factor++)
            like.size[factor] = left.factors >> factor & 1 ? left.size[factor] : tensors[i].size[factor];
        const tsr_factored made = tsr_factored_create(p->arena, &like, kept, dtype);
        TSR_TRY(tsr_contract(p->site, p->arena, &left, &tensors[i], &made));
        left = made;
    }
    return tsr_contract(p->site, p->arena, &left, &tensors[count - 1], result);
}

/* Reads the equation of a call whose operands begin at input `first`. */
static tsr_status read_equation(const tsr_kernel_call *call, int first, tsr_equation *out)
{
    const tsr_layout *const *const operands = call->layouts + first;
    int count = 0;
    if (call->code < TSR_PRODUCT_EINSUM)
        return tsr_equation_of_matmul(call->op, operands, out);
    while (first + count < call->input_count && operands[count])
        count++;
    return tsr_equation_parse(call->op, call->attributes[0].words, count, operands, out);
}

static tsr_status contract(const place *p, const tsr_tensor *out)
{
    const int gradient = p->call->code % TSR_PRODUCT_EINSUM - TSR_PRODUCT_GRADIENT, first = gradient >= 0;
    tsr_equation e;
    tsr_factored tensors[TSR_EQUATION_OPERANDS + 1];
    int count = 0;
    TSR_TRY(read_equation(p->call, first, &e));
    if (gradient >= 0)
        tensors[count++] = tsr_factored_of(&p->call->inputs[0], &e.result);
    for (int i = 0; i < e.operand_count; i++) {
        if (i != gradient)
            tensors[count++] = tsr_factored_of(&p->call->inputs[first + i], &e.operands[i]);
    }
    const tsr_factored result = tsr_factored_of(out, gradient >= 0 ? &e.operands[gradient] : &e.result);
    return contract_all(p, count, tensors, &result);
}

static bool adds_bias(const tsr_kernel_call *call, int operand)
{
    return call->layouts[operand] && tsr_forward_adds_bias(call->result_layouts[0], call->coordinate);
}

static tsr_status multiply_linear(const place *p, const tsr_tensor *out)
{
    const tsr_kernel_call *const call = p->call;
    return tsr_forward_multiply(p->site, &call->inputs[0], &call->inputs[1],
                                adds_bias(call, 2) ? &call->inputs[2] : NULL, out);
}

static tsr_status multiply_gradient(const place *p, const tsr_tensor *out)
{
    const int which = p->call->code - TSR_PRODUCT_LINEAR_X + TSR_DX;
    tsr_gradient_sources from = {.dy = p->call->inputs[0]};
    if (which == TSR_DX)
        from.w = p->call->inputs[1];
    if (which == TSR_DW)
        from.x = p->call->inputs[1];
    return tsr_gradient_compute(which, p->site, &from, out, false);
}

static tsr_status multiply(const place *p, const tsr_tensor *out)
{
    const int code = p->call->code;
    switch (code) {
    case TSR_PRODUCT_LINEAR:
        return multiply_linear(p, out);
    case TSR_PRODUCT_LINEAR_X:
    case TSR_PRODUCT_LINEAR_W:
    case TSR_PRODUCT_LINEAR_B:
        return multiply_gradient(p, out);
    case TSR_PRODUCT_GROUPED:
    case TSR_PRODUCT_GROUPED_X:
    case TSR_PRODUCT_GROUPED_W:
        return tsr_grouped_multiply(p->call, TSR_GROUPED_OUT + code - TSR_PRODUCT_GROUPED, p->site, p->arena, out);
    case TSR_PRODUCT_Q8:
        return tsr_q8_multiply(p->call, p->site, p->arena, adds_bias(p->call, 3), out);
    case TSR_PRODUCT_Q8_X:
        return tsr_q8_multiply_back(p->call, p->site, p->arena, out);
    default:
        return contract(p, out);
    }
}

/* True if the result has the memory of an operand, which a product reads many times. */
static bool overwrites(const tsr_kernel_call *call)
{
    for (int i = 0; i < call->input_count; i++) {
        if (call->layouts[i] && call->inputs[i].data == call->outputs[0].data)
            return true;
    }
    return false;
}

/* Computes the result beside its memory, and copies it there. */
static tsr_status multiply_beside(const place *p)
{
    const tsr_tensor *const out = &p->call->outputs[0];
    tsr_equation_term dims = {.ndim = out->ndim};
    for (int dim = 0; dim < out->ndim; dim++)
        dims.factor[dim] = dim;
    const tsr_factored to = tsr_factored_of(out, &dims);
    tsr_tensor beside = tsr_tensor_contiguous(NULL, out->dtype, out->ndim, out->shape);
    int64_t count = 1;
    for (int dim = 0; dim < out->ndim; dim++)
        count *= out->shape[dim];
    beside.data = tsr_arena_take(p->arena, (size_t)count * tsr_dtype_bytes(out->dtype));
    const tsr_factored from = tsr_factored_of(&beside, &dims);
    TSR_TRY(multiply(p, &beside));
    return tsr_factored_copy(p->site, &from, &to);
}

static tsr_status compute(const place *p)
{
    return overwrites(p->call) ? multiply_beside(p) : multiply(p, &p->call->outputs[0]);
}

/* What a call needs on a device: for products, and in the arena behind. */
static tsr_status measure(const tsr_kernel_call *call, tsr_device device, tsr_matmul_needs *needs, size_t *beside)
{
    tsr_arena arena = {NULL, 0};
    *needs = (tsr_matmul_needs){0, 0};
    const tsr_matmul_site site = {.device = device, .needs = needs};
    TSR_TRY(compute(&(place){call, &site, &arena}));
    *beside = arena.used;
    return TSR_OK;
}

int64_t tsr_product_bytes(const tsr_kernel_call *call)
{
    tsr_matmul_needs needs;
    size_t beside;
    /* The kernel fails in the same way, and can say so. */
    return measure(call, tsr_device_host(), &needs, &beside) == TSR_OK
               ? (int64_t)(tsr_layer_needs_bytes(&needs) + beside)
               : 0;
}

/* Finds the rows of x and y, (.., k) and (.., n): one dim may have several. False: more have. */
static bool find_rows(const tsr_tensor *x, const tsr_tensor *y, tsr_gemm *g)
{
    const int last = x->ndim - 1;
    g->m = 1;
    g->k = g->lda = x->shape[last];
    g->n = g->ldc = y->shape[last];
    for (int dim = 0; dim < last; dim++) {
        if (x->shape[dim] == 1)
            continue;
        if (g->m != 1)
            return false;
        g->m = x->shape[dim];
        g->lda = x->strides[dim];
        g->ldc = y->strides[dim];
    }
    return x->strides[last] == 1 && y->strides[last] == 1;
}

/* Describes a linear layer of few rows, as in decoding, which the kernels of rows.h compute with
 * its operands where they lie: neither a BLAS nor memory is wanted. False: it is another
 * product. */
static bool describe_few(const tsr_kernel_call *call, tsr_gemm *out)
{
    const tsr_tensor *const x = &call->inputs[0], *const w = &call->inputs[1], *const b = &call->inputs[2],
                            *const y = &call->outputs[0];
    if (call->code != TSR_PRODUCT_LINEAR || x->dtype != TSR_F32 || w->strides[1] != 1 || overwrites(call))
        return false;
    *out = (tsr_gemm){.size = sizeof *out,
                      .a_dtype = x->dtype,
                      .b_dtype = w->dtype,
                      .c_dtype = y->dtype,
                      .trans_b = 1,
                      .alpha = 1,
                      .a = x->data,
                      .b = w->data,
                      .c = y->data,
                      .ldb = w->strides[0]};
    if (!find_rows(x, y, out) || !tsr_rows_takes(out))
        return false;
    if (!adds_bias(call, 2))
        return true;
    out->bias = b->data;
    out->bias_dtype = b->dtype;
    return b->strides[0] == 1;
}

/* The BLAS libraries of a call; a layer of few rows with weights of 8 bits needs none. */
static tsr_status choose(const tsr_kernel_call *call, tsr_choice *out)
{
    *out = (tsr_choice){.kernels = call->kernels};
    if (call->code == TSR_PRODUCT_Q8 && tsr_q8_is_few(call, &call->outputs[0]))
        return TSR_OK;
    return tsr_choice_own(tsr_mesh_context(tsr_layout_mesh(call->result_layouts[0])), out);
}

tsr_status tsr_product_run(const tsr_kernel_call *call)
{
    tsr_matmul_needs needs;
    tsr_choice choice;
    size_t beside;
    tsr_gemm few;
    if (describe_few(call, &few))
        return tsr_rows_run(tsr_rows_kernels_for(call->kernels), &few);
    TSR_TRY(measure(call, tsr_device_host(), &needs, &beside));
    TSR_TRY(choose(call, &choice));
    const tsr_matmul_site site = tsr_layer_site(tsr_device_host(), &choice, &needs, call->workspace, NULL);
    tsr_arena arena = {beside ? (char *)call->workspace + tsr_layer_needs_bytes(&needs) : NULL, 0};
    tsr_choice_hold(&choice);
    const tsr_status status = compute(&(place){call, &site, &arena});
    tsr_choice_release(&choice);
    return status;
}

/* True of products that a device's gemm computes: the sizes of groups, and weights of 8 bits with
 * their scales, are read by the host alone. */
static bool is_by_gemm(int code)
{
    return code <= TSR_PRODUCT_LINEAR_B;
}

/* A product without elements, in which a device sees the dtypes. */
static tsr_status check_dtypes(const tsr_kernel_call *call, tsr_device device)
{
    const tsr_dtype first = call->inputs[0].dtype;
    const tsr_gemm product = {.size = sizeof product,
                              .a_dtype = first,
                              .b_dtype = call->input_count > 1 && call->layouts[1] ? call->inputs[1].dtype : first,
                              .c_dtype = call->outputs[0].dtype};
    return tsr_gemm_supported(call->op, device, &product);
}

tsr_status tsr_product_wants(const tsr_kernel_call *call, tsr_device device, int64_t *bytes)
{
    tsr_matmul_needs needs;
    size_t beside;
    if (!is_by_gemm(call->code))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: no gemm of a device computes it", call->op);
    TSR_TRY(check_dtypes(call, device));
    TSR_TRY(measure(call, device, &needs, &beside));
    *bytes = (int64_t)(tsr_layer_needs_bytes(&needs) + beside);
    return TSR_OK;
}

tsr_status tsr_product_enqueue(const tsr_kernel_call *call, tsr_device device, tsr_stream stream)
{
    tsr_matmul_needs needs;
    size_t beside;
    TSR_TRY(measure(call, device, &needs, &beside));
    const tsr_matmul_site site = tsr_layer_site(device, NULL, &needs, call->workspace, stream);
    tsr_arena arena = {beside ? (char *)call->workspace + tsr_layer_needs_bytes(&needs) : NULL, 0};
    return compute(&(place){call, &site, &arena});
}
