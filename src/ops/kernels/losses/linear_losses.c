#include "ops/kernels/losses/linear_losses.h"

#include "ops/kernels/pointwise.h"
#include "ops/layer.h"
#include "ops/numbers.h"

#define LEAST_ROWS 16

/* A call, and how its workspace is divided: rows of tsr_loss, logits of some rows, dw in f32 where
 * its dtype is narrower, and what products need. */
typedef struct pass {
    tsr_loss loss;
    const tsr_tensor *x, *w, *dx, *dw; /* dx and dw NULL: no gradient */
    tsr_row_blocks blocks;             /* of x and dx */
    tsr_dtype computed;
    int64_t rows; /* of logits */
    bool narrow;
    size_t logits, sums, products, bytes; /* offsets in the workspace, and its size */
    tsr_matmul_needs needs;
    tsr_matmul_site site;
    tsr_choice choice;
} pass;

static char *memory_of(const pass *p, size_t offset)
{
    return p->loss.call->workspace ? (char *)p->loss.call->workspace + offset : NULL;
}

/* The logits of up to `rows` rows. */
static tsr_matrix logits_of(const pass *p, int64_t rows)
{
    const int64_t classes = p->loss.own_classes;
    return (tsr_matrix){memory_of(p, p->logits), rows, classes, classes, 1, p->computed};
}

/* What dw is summed in. */
static tsr_matrix sums_of(const pass *p)
{
    const int64_t columns = p->w->shape[1];
    if (!p->narrow)
        return tsr_matrix_of(p->dw);
    return (tsr_matrix){memory_of(p, p->sums), p->w->shape[0], columns, columns, 1, TSR_F32};
}

static tsr_matrix rows_of(tsr_matrix all, int64_t first, int64_t count)
{
    if (all.data)
        all.data = (char *)all.data + first * all.row_stride * (int64_t)tsr_dtype_bytes(all.dtype);
    all.rows = count;
    return all;
}

/* Logits of `count` rows from `first` on of a block of x. */
static tsr_status make_logits(const pass *p, tsr_matrix x, int64_t first, int64_t count)
{
    return tsr_matrix_multiply(&p->site, rows_of(x, first, count), tsr_matrix_transpose(tsr_matrix_of(p->w)),
                               logits_of(p, count), false);
}

/* dx and dw from slopes, which have taken the place of logits. */
static tsr_status use_slopes(const pass *p, tsr_matrix x, tsr_matrix dx, int64_t first, int64_t count, bool accumulate)
{
    const tsr_matrix slopes = logits_of(p, count);
    TSR_TRY(tsr_matrix_multiply(&p->site, slopes, tsr_matrix_of(p->w), rows_of(dx, first, count), false));
    return tsr_matrix_multiply(&p->site, tsr_matrix_transpose(slopes), rows_of(x, first, count), sums_of(p),
                               accumulate);
}

/* Raises the needs to those of products with `rows` rows. */
static tsr_status measure(pass *p, int64_t rows)
{
    tsr_matrix x, dx;
    if (p->blocks.count == 0 || rows == 0)
        return TSR_OK;
    tsr_row_blocks_get(&p->blocks, 0, &x, &dx);
    TSR_TRY(make_logits(p, x, 0, rows));
    if (!p->dx)
        return TSR_OK;
    TSR_TRY(use_slopes(p, x, dx, 0, rows, false));
    return use_slopes(p, x, dx, 0, rows, true);
}

/* Chunks have `rows` rows, but for the last of each block. */
static tsr_status measure_chunks(pass *p)
{
    p->site = (tsr_matmul_site){.device = tsr_device_host(), .needs = &p->needs, .any_strides = true};
    TSR_TRY(measure(p, tsr_smaller(p->rows, p->blocks.first.rows)));
    return p->rows ? measure(p, p->blocks.first.rows % p->rows) : TSR_OK;
}

static void choose_rows(pass *p)
{
    const int64_t bytes = p->loss.own_classes * (int64_t)tsr_dtype_bytes(p->computed);
    const int64_t fitting = bytes ? TSR_LINEAR_LOSS_BYTES / bytes : p->loss.row_count;
    p->rows = tsr_smaller(tsr_larger(fitting, LEAST_ROWS), p->blocks.count ? p->blocks.first.rows : 0);
}

static tsr_status plan_pass(const tsr_kernel_call *call, pass *p)
{
    const bool backward = call->code == TSR_LINEAR_CROSS_ENTROPY_GRADIENT;
    *p = (pass){.loss = tsr_loss_of(call), .x = &call->inputs[backward], .w = &call->inputs[1 + backward]};
    if (backward) {
        p->dx = &call->outputs[0];
        p->dw = &call->outputs[1];
    }
    p->blocks = tsr_row_blocks_of(p->x, backward ? p->dx : p->x);
    p->computed = tsr_pointwise_computes_in(p->x->dtype);
    p->narrow = backward && p->computed != p->dw->dtype;
    choose_rows(p);
    TSR_TRY(measure_chunks(p));
    const tsr_matrix logits = logits_of(p, p->rows);
    p->logits = tsr_aligned_bytes((size_t)tsr_loss_workspace_bytes(call));
    p->sums = p->logits + tsr_aligned_bytes((size_t)(logits.rows * logits.cols) * tsr_dtype_bytes(p->computed));
    p->products =
        p->sums + (p->narrow ? tsr_aligned_bytes((size_t)(p->w->shape[0] * p->w->shape[1]) * sizeof(float)) : 0);
    p->bytes = p->products + tsr_layer_needs_bytes(&p->needs);
    return TSR_OK;
}

int64_t tsr_linear_loss_workspace_bytes(const tsr_kernel_call *call)
{
    pass p;
    return plan_pass(call, &p) == TSR_OK ? (int64_t)p.bytes : 0;
}

/* Plans again, now with memory, and chooses by what products are computed. */
static tsr_status begin_pass(const tsr_kernel_call *call, pass *p)
{
    TSR_TRY(plan_pass(call, p));
    TSR_TRY(tsr_layer_choose(tsr_mesh_context(tsr_layout_mesh(p->loss.targets.table)), tsr_device_host(), &p->choice));
    p->site = tsr_layer_site(tsr_device_host(), &p->choice, &p->needs, memory_of(p, p->products), NULL);
    tsr_choice_hold(&p->choice);
    return TSR_OK;
}

/* The logits of row `row` of those in memory. */
static void *logits_at(const pass *p, int64_t row)
{
    return (char *)logits_of(p, 1).data + row * p->loss.own_classes * (int64_t)tsr_dtype_bytes(p->computed);
}

static void scan_chunk(const pass *p, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tsr_loss_scan_row(&p->loss, first + i, logits_at(p, i), p->computed);
}

static tsr_status scan_blocks(const pass *p)
{
    for (int64_t block = 0; block < p->blocks.count; block++) {
        tsr_matrix x, dx;
        tsr_row_blocks_get(&p->blocks, block, &x, &dx);
        for (int64_t done = 0; done < x.rows; done += p->rows) {
            const int64_t count = tsr_smaller(p->rows, x.rows - done);
            TSR_TRY(make_logits(p, x, done, count));
            scan_chunk(p, block * x.rows + done, count);
        }
    }
    return TSR_OK;
}

static void slope_chunk(const pass *p, int64_t first, int64_t count, double rows_kept)
{
    for (int64_t i = 0; i < count; i++)
        tsr_loss_slope_row(&p->loss, first + i, logits_at(p, i), logits_at(p, i), 0, p->loss.own_classes,
                           tsr_loss_scale(&p->loss, first + i, rows_kept), p->computed);
}

static tsr_status slope_blocks(const pass *p, double rows_kept)
{
    bool accumulate = false;
    for (int64_t block = 0; block < p->blocks.count; block++) {
        tsr_matrix x, dx;
        tsr_row_blocks_get(&p->blocks, block, &x, &dx);
        for (int64_t done = 0; done < x.rows; done += p->rows, accumulate = true) {
            const int64_t count = tsr_smaller(p->rows, x.rows - done), first = block * x.rows + done;
            TSR_TRY(make_logits(p, x, done, count));
            if (p->loss.alone)
                scan_chunk(p, first, count);
            slope_chunk(p, first, count, rows_kept);
            TSR_TRY(use_slopes(p, x, dx, done, count, accumulate));
        }
    }
    return accumulate ? TSR_OK : tsr_matrix_fill(&p->site, sums_of(p), 0);
}

/* Rounds the sums to dw, row by row. */
static void round_sums(const pass *p)
{
    const tsr_matrix sums = sums_of(p), to = tsr_matrix_of(p->dw);
    const tsr_pointwise_kernels *const kernels = tsr_pointwise_kernels_for(p->loss.call->kernels);
    for (int64_t i = 0; i < sums.rows && p->narrow; i++)
        kernels->scatter[to.dtype](rows_of(sums, i, 1).data, rows_of(to, i, 1).data, sums.cols, to.col_stride);
}

static tsr_status scan_all(tsr_loss *loss)
{
    pass p;
    TSR_TRY(begin_pass(loss->call, &p));
    const tsr_status status = scan_blocks(&p);
    tsr_choice_release(&p.choice);
    return status;
}

static tsr_status slope_all(tsr_loss *loss, double rows_kept)
{
    pass p;
    TSR_TRY(begin_pass(loss->call, &p));
    const tsr_status status = slope_blocks(&p, rows_kept);
    tsr_choice_release(&p.choice);
    if (status == TSR_OK)
        round_sums(&p);
    return status;
}

tsr_status tsr_linear_cross_entropy_run(const tsr_kernel_call *call)
{
    return tsr_loss_forward(call, scan_all);
}

tsr_status tsr_linear_cross_entropy_gradient_run(const tsr_kernel_call *call)
{
    return tsr_loss_backward(call, scan_all, slope_all);
}
