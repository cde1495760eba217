#include "ops/kernels/losses/losses.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/pointwise.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <string.h>

static const tsr_losses_kernels *const sets[] = TSR_KERNEL_SETS(tsr_losses_kernels);

static const tsr_losses_kernels *kernels_for(const char *name)
{
    return sets[tsr_kernel_set(name)];
}

const tsr_loss_place *tsr_loss_place_of(int code)
{
    static const tsr_loss_place places[] = {[TSR_CROSS_ENTROPY] = {0, 1, false},
                                            [TSR_CROSS_ENTROPY_GRADIENT] = {1, 2, false},
                                            [TSR_LINEAR_CROSS_ENTROPY] = {1, 2, true},
                                            [TSR_LINEAR_CROSS_ENTROPY_GRADIENT] = {2, 3, true}};
    return &places[code];
}

unsigned tsr_loss_cuts(const tsr_layout *layout, bool first)
{
    unsigned cuts = 0;
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        const tsr_placement *const p = &tsr_layout_placements(layout)[k];
        const bool is_cut = p->kind == TSR_SHARD && p->dim == (first ? 0 : tsr_layout_ndim(layout) - 1);
        cuts |= is_cut && tsr_mesh_size(mesh, k) > 1 ? 1u << k : 0;
    }
    return cuts;
}

bool tsr_loss_counts(const tsr_attribute *attributes)
{
    return attributes[TSR_LOSS_REDUCTION].integer == TSR_LOSS_MEAN &&
           attributes[TSR_LOSS_IGNORE_INDEX].integer != TSR_IGNORE_NONE;
}

tsr_loss tsr_loss_of(const tsr_kernel_call *call)
{
    const tsr_loss_place *const place = tsr_loss_place_of(call->code);
    const tsr_layout *const layout = call->layouts[place->operand];
    const tsr_tensor *const local = &call->inputs[place->operand];
    const int dim = place->first ? 0 : tsr_layout_ndim(layout) - 1;
    tsr_loss loss = {.call = call,
                     .kernels = kernels_for(call->kernels),
                     .targets = tsr_ids_of_table(call, place->targets, "targets", layout, dim),
                     .reduction = (tsr_loss_reduction)call->attributes[TSR_LOSS_REDUCTION].integer,
                     .smoothing = call->attributes[TSR_LOSS_LABEL_SMOOTHING].number,
                     .counts = tsr_loss_counts(call->attributes),
                     .alone = tsr_loss_cuts(layout, place->first) == 0,
                     .classes = tsr_layout_shape(layout)[dim],
                     .own_classes = local->shape[dim],
                     .rows = call->workspace};
    loss.targets.skipped = call->attributes[TSR_LOSS_IGNORE_INDEX].integer;
    loss.targets.skips = loss.targets.skipped != TSR_IGNORE_NONE;
    loss.row_count = tsr_ids_count(&loss.targets);
    return loss;
}

/* Doubles of a row in the record of the scan: a loss of each row also needs the picked logit, and
 * with smoothing the total. */
static int record_width(const tsr_loss *loss)
{
    const bool forward = loss->call->code == TSR_CROSS_ENTROPY || loss->call->code == TSR_LINEAR_CROSS_ENTROPY;
    if (!forward || loss->reduction != TSR_LOSS_NONE)
        return 2;
    return loss->smoothing != 0 ? 4 : 3;
}

int64_t tsr_loss_record_bytes(const tsr_kernel_call *call)
{
    const tsr_loss loss = tsr_loss_of(call);
    return (int64_t)sizeof(double) * (call->stage == 0 ? loss.row_count * record_width(&loss) : 2);
}

int64_t tsr_loss_workspace_bytes(const tsr_kernel_call *call)
{
    return tsr_loss_of(call).row_count * (int64_t)sizeof(tsr_loss_row);
}

/* Begins all rows: without any logits. */
static tsr_status read_targets(tsr_loss *loss)
{
    int64_t places[TSR_IDS_CHUNK];
    for (int64_t done = 0; done < loss->row_count; done += TSR_IDS_CHUNK) {
        const int64_t count = loss->row_count - done < TSR_IDS_CHUNK ? loss->row_count - done : TSR_IDS_CHUNK;
        TSR_TRY(tsr_ids_read(&loss->targets, done, count, places));
        for (int64_t i = 0; i < count; i++)
            loss->rows[done + i] = (tsr_loss_row){.sums = {.largest = -INFINITY}, .target = places[i]};
    }
    return TSR_OK;
}

void tsr_loss_scan_row(const tsr_loss *loss, int64_t row, const void *logits, tsr_dtype computed)
{
    tsr_loss_row *const r = &loss->rows[row];
    if (r->target == TSR_ID_SKIPPED)
        return;
    r->sums = (tsr_loss_sums){.largest = -INFINITY};
    loss->kernels->scan[computed](logits, loss->own_classes, loss->smoothing != 0, &r->sums);
    if (r->target >= 0)
        r->picked = computed == TSR_F64 ? ((const double *)logits)[r->target] : ((const float *)logits)[r->target];
}

static void write_scan(const tsr_loss *loss)
{
    double *to = loss->call->record;
    const int width = record_width(loss);
    for (int64_t i = 0; i < loss->row_count; i++, to += width) {
        const tsr_loss_row *const r = &loss->rows[i];
        const double numbers[] = {r->sums.largest, r->sums.sum, r->picked, r->sums.total};
        memcpy(to, numbers, (size_t)width * sizeof(double));
    }
}

/* Puts together what ranks know of each row, in the order of their coordinates. Totals stay this
 * rank's own, unless they were sent. */
static void merge_scans(const tsr_loss *loss)
{
    const tsr_kernel_call *const call = loss->call;
    const int width = record_width(loss);
    for (int64_t i = 0; i < loss->row_count; i++) {
        tsr_loss_row *const r = &loss->rows[i];
        const double own_total = r->sums.total;
        r->sums = (tsr_loss_sums){.largest = -INFINITY};
        r->picked = width > 2 ? 0 : r->picked;
        for (int k = 0; k < call->record_count; k++) {
            double numbers[4] = {0};
            memcpy(numbers, (const char *)call->records + k * call->record_stride + i * width * (int64_t)sizeof(double),
                   (size_t)width * sizeof(double));
            const tsr_loss_sums others = {numbers[0], numbers[1], numbers[3]};
            loss->kernels->merge(&r->sums, &others);
            r->picked += numbers[2];
        }
        r->sums.total = width == 4 ? r->sums.total : own_total;
    }
}

/* The loss of a row of which everything is known. */
static double whole_loss(const tsr_loss *loss, const tsr_loss_row *r)
{
    const double level = loss->kernels->level(&r->sums);
    if (r->target == TSR_ID_SKIPPED)
        return 0;
    if (loss->smoothing == 0)
        return level - r->picked;
    return (1 - loss->smoothing) * (level - r->picked) +
           loss->smoothing * (level - r->sums.total / (double)loss->classes);
}

/* This rank's term of the loss of a row. */
static double own_loss(const tsr_loss *loss, const tsr_loss_row *r)
{
    if (r->target == TSR_ID_SKIPPED)
        return 0;
    const double level = loss->kernels->level(&r->sums);
    const double picked = r->target >= 0 ? level - r->picked : 0;
    if (loss->smoothing == 0)
        return picked;
    const double all = (double)loss->own_classes * level - r->sums.total;
    return (1 - loss->smoothing) * picked + (loss->own_classes ? loss->smoothing / (double)loss->classes * all : 0);
}

static double count_kept(const tsr_loss *loss)
{
    double count = 0;
    for (int64_t i = 0; i < loss->row_count; i++)
        count += loss->rows[i].target != TSR_ID_SKIPPED;
    return count;
}

/* The number of rows of the whole tensor. */
static double count_all(const tsr_loss *loss)
{
    double count = 1;
    for (int dim = 0; dim < tsr_layout_ndim(loss->targets.layout); dim++)
        count *= (double)tsr_layout_shape(loss->targets.layout)[dim];
    return count;
}

/* Elements of a tensor that lie apart: converts up to a block of them. */
typedef struct converter {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype memory, computed;
    int64_t stride; /* in elements */
} converter;

static converter converter_of(const tsr_kernel_call *call, const tsr_tensor *tensor)
{
    return (converter){.kernels = tsr_pointwise_kernels_for(call->kernels),
                       .memory = tensor->dtype,
                       .computed = tsr_pointwise_computes_in(tensor->dtype),
                       .stride = tensor->ndim ? tensor->strides[tensor->ndim - 1] : 1};
}

static void write_number(const converter *to, char *at, double number)
{
    double converted;
    to->kernels->convert[TSR_F64][to->computed]((const void *const[]){&number, NULL, NULL}, &converted, 1, 0);
    to->kernels->scatter[to->memory](&converted, at, 1, 1);
}

static double read_number(const converter *from, const char *at)
{
    double read, number;
    from->kernels->gather[from->memory](at, &read, 1, 1);
    from->kernels->convert[from->computed][TSR_F64]((const void *const[]){&read, NULL, NULL}, &number, 1, 0);
    return number;
}

/* The address of a row, counted in row-major order of all dims but the last `inner` ones. */
static char *row_address(const tsr_tensor *tensor, int inner, int64_t row)
{
    int64_t offset = 0;
    for (int dim = tensor->ndim - 1 - inner; dim >= 0; dim--) {
        offset += row % tensor->shape[dim] * tensor->strides[dim];
        row /= tensor->shape[dim];
    }
    return (char *)tensor->data + offset * (int64_t)tsr_dtype_bytes(tensor->dtype);
}

static void write_losses(const tsr_loss *loss)
{
    const tsr_tensor *const out = &loss->call->outputs[0];
    const converter to = converter_of(loss->call, out);
    for (int64_t i = 0; i < loss->row_count; i++)
        write_number(&to, row_address(out, 0, i), whole_loss(loss, &loss->rows[i]));
}

/* Sums over this rank's rows: of its terms, and of rows that are kept, which one of the ranks with
 * the same rows counts. */
static void sum_rows(const tsr_loss *loss, double sums[2])
{
    sums[0] = 0;
    for (int64_t i = 0; i < loss->row_count; i++)
        sums[0] += own_loss(loss, &loss->rows[i]);
    sums[1] = loss->call->own_record == 0 ? count_kept(loss) : 0;
}

static void write_reduced(const tsr_loss *loss, const double sums[2])
{
    const tsr_tensor *const out = &loss->call->outputs[0];
    const converter to = converter_of(loss->call, out);
    const double divisor = loss->reduction == TSR_LOSS_SUM ? 1 : loss->counts ? sums[1] : count_all(loss);
    write_number(&to, out->data, sums[0] / divisor);
}

/* Adds the two numbers that each rank recorded. */
static void add_records(const tsr_kernel_call *call, double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int k = 0; k < call->record_count; k++) {
        double numbers[2];
        memcpy(numbers, (const char *)call->records + k * call->record_stride, sizeof numbers);
        sums[0] += numbers[0];
        sums[1] += numbers[1];
    }
}

tsr_status tsr_loss_forward(const tsr_kernel_call *call, tsr_loss_scanner *scan)
{
    double sums[2];
    tsr_loss loss = tsr_loss_of(call);
    if (call->stage <= 0) {
        TSR_TRY(read_targets(&loss));
        TSR_TRY(scan(&loss));
    }
    if (call->stage == 0)
        write_scan(&loss);
    if (call->stage == 1)
        merge_scans(&loss);
    if (call->stage == 0 || (call->stage == 2 && loss.reduction == TSR_LOSS_NONE))
        return TSR_OK;
    if (loss.reduction == TSR_LOSS_NONE) {
        write_losses(&loss);
        return TSR_OK;
    }
    if (call->stage == 2)
        add_records(call, sums);
    else
        sum_rows(&loss, sums);
    if (call->stage == 1)
        memcpy(call->record, sums, sizeof sums);
    else
        write_reduced(&loss, sums);
    return TSR_OK;
}

tsr_status tsr_loss_backward(const tsr_kernel_call *call, tsr_loss_scanner *scan, tsr_loss_sloper *slope)
{
    double sums[2] = {0, 0};
    tsr_loss loss = tsr_loss_of(call);
    if (call->stage <= 0)
        TSR_TRY(read_targets(&loss));
    if (call->stage == 0 && !loss.alone)
        TSR_TRY(scan(&loss));
    if (call->stage == 0)
        write_scan(&loss);
    if (call->stage == 1) {
        if (!loss.alone)
            merge_scans(&loss);
        sums[1] = count_kept(&loss);
        memcpy(call->record, sums, sizeof sums);
    }
    if (call->stage == 2)
        add_records(call, sums);
    if (call->stage == 0 || call->stage == 1)
        return TSR_OK;
    if (call->stage == TSR_STAGE_WHOLE)
        sums[1] = count_kept(&loss);
    return slope(&loss, loss.counts ? sums[1] : count_all(&loss));
}

double tsr_loss_scale(const tsr_loss *loss, int64_t row, double rows_kept)
{
    const tsr_tensor *const dout = &loss->call->inputs[0];
    const converter from = converter_of(loss->call, dout);
    if (loss->reduction == TSR_LOSS_NONE)
        return read_number(&from, row_address(dout, 0, row));
    return read_number(&from, dout->data) / (loss->reduction == TSR_LOSS_MEAN ? rows_kept : 1);
}

void tsr_loss_slope_row(const tsr_loss *loss, int64_t row, const void *logits, void *to, int64_t first, int64_t count,
                        double scale, tsr_dtype computed)
{
    const tsr_loss_row *const r = &loss->rows[row];
    const double largest = r->sums.largest == -INFINITY ? 0 : r->sums.largest, more = (1 - loss->smoothing) * scale;
    const int64_t picked = r->target - first;
    if (r->target == TSR_ID_SKIPPED) {
        memset(to, 0, (size_t)count * tsr_dtype_bytes(computed));
        return;
    }
    loss->kernels->slopes[computed](logits, to, count, largest, scale / r->sums.sum,
                                    loss->smoothing / (double)loss->classes * scale);
    if (r->target < 0 || picked < 0 || picked >= count)
        return;
    if (computed == TSR_F64)
        ((double *)to)[picked] -= more;
    else
        ((float *)to)[picked] = (float)(((float *)to)[picked] - more);
}

/* The most logits of one row that are converted at a time. */
#define CHUNK TSR_LOSSES_BLOCK

static bool is_direct(const converter *c)
{
    return c->memory == c->computed && c->stride == 1;
}

static int64_t chunk_of(const tsr_loss *loss, int64_t done)
{
    return loss->own_classes - done < CHUNK ? loss->own_classes - done : CHUNK;
}

/* Scans a row whose logits must be converted. */
static void scan_converted(const tsr_loss *loss, int64_t row, const converter *from, const char *at)
{
    double values[CHUNK];
    tsr_loss_row *const r = &loss->rows[row];
    const int64_t bytes = from->stride * (int64_t)tsr_dtype_bytes(from->memory);
    if (r->target == TSR_ID_SKIPPED)
        return;
    r->sums = (tsr_loss_sums){.largest = -INFINITY};
    for (int64_t done = 0; done < loss->own_classes; done += CHUNK) {
        const int64_t n = chunk_of(loss, done);
        from->kernels->gather[from->memory](at + done * bytes, values, n, from->stride);
        loss->kernels->scan[from->computed](values, n, loss->smoothing != 0, &r->sums);
    }
    if (r->target >= 0)
        r->picked = read_number(from, at + r->target * bytes);
}

static void scan_row(const tsr_loss *loss, int64_t row, const tsr_tensor *logits, const converter *from)
{
    const char *const at = row_address(logits, 1, row);
    if (is_direct(from))
        tsr_loss_scan_row(loss, row, at, from->computed);
    else
        scan_converted(loss, row, from, at);
}

static tsr_status scan_rows(tsr_loss *loss)
{
    const tsr_tensor *const logits = &loss->call->inputs[tsr_loss_place_of(loss->call->code)->operand];
    const converter from = converter_of(loss->call, logits);
    for (int64_t i = 0; i < loss->row_count; i++)
        scan_row(loss, i, logits, &from);
    return TSR_OK;
}

/* Makes the slopes of a row, a chunk at a time. */
static void slope_row(const tsr_loss *loss, int64_t row, const converter *from, const char *logits, const converter *to,
                      char *dlogits, double scale)
{
    double values[CHUNK], slopes[CHUNK];
    const int64_t bytes = (int64_t)tsr_dtype_bytes(from->memory);
    for (int64_t done = 0; done < loss->own_classes; done += CHUNK) {
        const int64_t n = chunk_of(loss, done);
        const char *const at = logits + done * from->stride * bytes;
        char *const target = dlogits + done * to->stride * bytes;
        if (!is_direct(from))
            from->kernels->gather[from->memory](at, values, n, from->stride);
        tsr_loss_slope_row(loss, row, is_direct(from) ? (const void *)at : values,
                           is_direct(to) ? (void *)target : slopes, done, n, scale, from->computed);
        if (!is_direct(to))
            to->kernels->scatter[to->memory](slopes, target, n, to->stride);
    }
}

static tsr_status slope_rows(tsr_loss *loss, double rows_kept)
{
    const tsr_tensor *const logits = &loss->call->inputs[1], *const dlogits = &loss->call->outputs[0];
    const converter from = converter_of(loss->call, logits), to = converter_of(loss->call, dlogits);
    for (int64_t i = 0; i < loss->row_count; i++) {
        if (loss->alone)
            scan_row(loss, i, logits, &from);
        slope_row(loss, i, &from, row_address(logits, 1, i), &to, row_address(dlogits, 1, i),
                  tsr_loss_scale(loss, i, rows_kept));
    }
    return TSR_OK;
}

tsr_status tsr_cross_entropy_run(const tsr_kernel_call *call)
{
    return tsr_loss_forward(call, scan_rows);
}

tsr_status tsr_cross_entropy_gradient_run(const tsr_kernel_call *call)
{
    return tsr_loss_backward(call, scan_rows, slope_rows);
}
