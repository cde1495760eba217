/* A tensor that lies in files as boxes. */
#include "base/checked.h"
#include "base/memory/memory.h"
#include "device/allocation.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/walk.h"
#include "tensor/cover.h"
#include "tensor/dtensor.h"
#include "tensor/input.h"
#include "tensor/runs.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* Bytes of a file's elements that are converted, or read together, at a time. */
#define STAGE_BYTES ((size_t)256 * 1024)

/* Runs of fewer bytes, less than a page apart, are read together: a call of the system for each
 * would take longer than their bytes, and the system brings whole pages from the disk anyway. */
#define SHORT_BYTES ((int64_t)16 * 1024)
#define PAGE_BYTES  ((int64_t)4096)

/* The most runs that are read together. */
#define TOGETHER 512

/* Bytes of the text of a box. */
#define BOX_BYTES 400

/* Elements that follow each other in a file and in the shard. */
typedef struct file_run {
    int64_t at, end; /* bytes in the file */
    int64_t local;   /* the first element in the shard */
} file_run;

/* Short runs of one box that are to be read together. */
typedef struct short_runs {
    const tsr_file_box *box;
    size_t count;
    file_run runs[TOGETHER];
} short_runs;

/* Reads one rank's shard into contiguous host memory. */
typedef struct reader {
    const char *call; /* the public function, for error sentences */
    size_t count;
    const tsr_file_box *boxes;
    const tsr_layout *layout;
    int64_t coordinate[TSR_MAX_DIMS];
    int64_t lengths[TSR_MAX_DIMS]; /* of the shard */
    int64_t strides[TSR_MAX_DIMS]; /* of the shard's elements in memory, in elements */
    tsr_device_ops host;           /* converts */
    tsr_input input;
    char *data;
    char *stage; /* elements as a file has them */
    short_runs *pending;
    int64_t bytes; /* of elements that were read */
} reader;

/* One box. From dim `cut` on, the shard's part of the box is contiguous in the file and in memory,
 * `inner` elements for one index of the dims before. */
typedef struct box_visit {
    reader *r;
    const tsr_file_box *box;
    int cut;
    int64_t inner;
} box_visit;

static tsr_cover_box cover_of(const tsr_file_box *box, int ndim)
{
    tsr_cover_box cover = {{0}, {0}};
    for (int i = 0; i < ndim; i++) {
        cover.begin[i] = box->begin[i];
        cover.end[i] = box->begin[i] + box->shape[i];
    }
    return cover;
}

static tsr_status refuse_box(const reader *r, size_t index, const char *why)
{
    char text[BOX_BYTES];
    const tsr_file_box *const box = &r->boxes[index];
    const tsr_cover_box cover = cover_of(box, r->layout->ndim);
    tsr_cover_print(&cover, r->layout->ndim, text, sizeof text);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: boxes[%zu], %s in %s, %s", r->call, index, text, box->path, why);
}

static tsr_status check_box(const reader *r, size_t index)
{
    const tsr_layout *const layout = r->layout;
    const tsr_file_box *const box = &r->boxes[index];
    int64_t last = 0, far;
    if (!box->path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: boxes[%zu].path is NULL", r->call, index);
    if (!tsr_dtype_get(box->dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: boxes[%zu].dtype is %d, which is not a dtype", r->call, index,
                              (int)box->dtype);
    if (!tsr_file_converts(box->dtype, layout->dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: from %s to %s: only floating types are converted", r->call,
                              tsr_dtype_name(box->dtype), tsr_dtype_name(layout->dtype));
    for (int i = 0; i < layout->ndim; i++) {
        if (box->begin[i] < 0 || box->shape[i] < 0 || box->shape[i] > layout->shape[i] ||
            box->begin[i] > layout->shape[i] - box->shape[i])
            return refuse_box(r, index, "is not within the tensor");
        if (!tsr_multiply(tsr_max_i64(box->shape[i] - 1, 0), box->strides[i], &far) || !tsr_add_sizes(last, far, &last))
            return refuse_box(r, index, "has strides that are negative or too large");
    }
    if (box->offset < 0 || !tsr_multiply(last, (int64_t)tsr_dtype_bytes(box->dtype), &far) ||
        !tsr_add_sizes(far, box->offset, &far))
        return refuse_box(r, index, "has an offset that is negative or too large");
    return TSR_OK;
}

/* Where a box begins. */
typedef struct beginning {
    const tsr_file_box *box;
    int ndim;
} beginning;

static int by_beginning(const void *a, const void *b)
{
    const beginning *const x = a, *const y = b;
    for (int i = 0; i < x->ndim; i++)
        if (x->box->begin[i] != y->box->begin[i])
            return x->box->begin[i] < y->box->begin[i] ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

/* Takes the boxes in the order in which they begin, so that the rest is in few pieces, however many
 * boxes there are. `order` has room for all. */
static tsr_status take_in_order(const reader *r, beginning *order, tsr_cover *cover)
{
    const int ndim = r->layout->ndim;
    for (size_t i = 0; i < r->count; i++)
        order[i] = (beginning){&r->boxes[i], ndim};
    if (r->count > 1)
        qsort(order, r->count, sizeof *order, by_beginning);
    for (size_t i = 0; i < r->count; i++) {
        const tsr_cover_box box = cover_of(order[i].box, ndim);
        bool whole;
        TSR_TRY(tsr_cover_take(cover, &box, &whole));
        if (!whole)
            return refuse_box(r, (size_t)(order[i].box - r->boxes), "has elements that another box has too");
    }
    return TSR_OK;
}

static tsr_status take_boxes(const reader *r, tsr_cover *cover)
{
    const int ndim = r->layout->ndim;
    void *order;
    TSR_TRY(tsr_allocate_array(r->layout->context, r->count, sizeof(beginning), &order));
    const tsr_status status = take_in_order(r, order, cover);
    tsr_release(r->layout->context, order);
    TSR_TRY(status);
    const tsr_cover_box *const missing = tsr_cover_first(cover);
    if (!missing)
        return TSR_OK;
    char text[BOX_BYTES], whole[BOX_BYTES];
    tsr_cover_box all = {{0}, {0}};
    for (int i = 0; i < ndim; i++)
        all.end[i] = r->layout->shape[i];
    tsr_cover_print(missing, ndim, text, sizeof text);
    tsr_cover_print(&all, ndim, whole, sizeof whole);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: no box has the elements %s of %s", r->call, text, whole);
}

/* Checks that the boxes make up the tensor. */
static tsr_status check_boxes(const reader *r)
{
    tsr_cover cover;
    int64_t count;
    if (!tsr_file_end(r->layout, 1, 0, &count))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 elements", r->call);
    for (size_t i = 0; i < r->count; i++)
        TSR_TRY(check_box(r, i));
    tsr_status status = tsr_cover_begin(&cover, r->layout->context, r->layout->ndim, r->layout->shape);
    if (status == TSR_OK)
        status = take_boxes(r, &cover);
    tsr_cover_end(&cover);
    return status;
}

static char *address_of(const reader *r, int64_t local)
{
    return r->data + (size_t)local * r->layout->element_bytes;
}

static tsr_status convert(const reader *r, const tsr_file_box *box, const char *from, char *to, int64_t count)
{
    return r->host.table->convert(r->host.self, r->host.index, to, r->layout->dtype, from, box->dtype, count, NULL);
}

/* Reads one run to where it belongs. */
static tsr_status read_alone(reader *r, const tsr_file_box *box, const file_run *one)
{
    const int64_t file_bytes = (int64_t)tsr_dtype_bytes(box->dtype);
    char *to = address_of(r, one->local);
    if (box->dtype == r->layout->dtype)
        return tsr_input_read(&r->input, one->at, to, (size_t)(one->end - one->at));
    for (int64_t at = one->at; at < one->end;) {
        const int64_t some = tsr_min_i64(one->end - at, (int64_t)STAGE_BYTES);
        TSR_TRY(tsr_input_read(&r->input, at, r->stage, (size_t)some));
        TSR_TRY(convert(r, box, r->stage, to, some / file_bytes));
        at += some;
        to += (size_t)(some / file_bytes) * r->layout->element_bytes;
    }
    return TSR_OK;
}

/* Reads the runs that are pending. */
static tsr_status read_pending(reader *r)
{
    short_runs *const p = r->pending;
    const size_t count = p->count;
    p->count = 0;
    if (count < 2)
        return count == 0 ? TSR_OK : read_alone(r, p->box, &p->runs[0]);
    const int64_t begin = p->runs[0].at, file_bytes = (int64_t)tsr_dtype_bytes(p->box->dtype);
    TSR_TRY(tsr_input_read(&r->input, begin, r->stage, (size_t)(p->runs[count - 1].end - begin)));
    for (size_t i = 0; i < count; i++) {
        const file_run *const one = &p->runs[i];
        const char *const from = r->stage + (one->at - begin);
        if (p->box->dtype == r->layout->dtype)
            memcpy(address_of(r, one->local), from, (size_t)(one->end - one->at));
        else
            TSR_TRY(convert(r, p->box, from, address_of(r, one->local), (one->end - one->at) / file_bytes));
    }
    return TSR_OK;
}

/* True if the run can be read together with those that are pending. */
static bool joins(const short_runs *p, const file_run *one)
{
    if (p->count == 0 || p->count == TOGETHER)
        return false;
    const file_run *const first = &p->runs[0], *const last = &p->runs[p->count - 1];
    return one->at >= last->end && one->at - last->end < PAGE_BYTES && one->end - first->at <= (int64_t)STAGE_BYTES;
}

/* Reads `count` elements that follow each other in the file, from byte `at` on: now, or with the
 * runs behind them. */
static tsr_status read_run(reader *r, const tsr_file_box *box, int64_t at, int64_t local, int64_t count)
{
    const file_run one = {at, at + count * (int64_t)tsr_dtype_bytes(box->dtype), local};
    short_runs *const p = r->pending;
    r->bytes += one.end - one.at;
    if (!joins(p, &one))
        TSR_TRY(read_pending(r));
    TSR_TRY(tsr_input_open(&r->input, box->path));
    if (one.end - one.at >= SHORT_BYTES) {
        TSR_TRY(read_pending(r));
        return read_alone(r, box, &one);
    }
    p->box = box;
    p->runs[p->count++] = one;
    return TSR_OK;
}

/* Reads the shard's part of dims `dim` and further in: from element `at` of the box in the file,
 * and element `local` of the shard on. */
static tsr_status visit_dim(const box_visit *v, int dim, int64_t at, int64_t local)
{
    const tsr_file_box *const box = v->box;
    reader *const r = v->r;
    tsr_shard_walk walk;
    if (dim == v->cut)
        return read_run(r, box, box->offset + at * (int64_t)tsr_dtype_bytes(box->dtype), local, v->inner);
    const bool joined = dim == v->cut - 1 && box->strides[dim] == v->inner;
    const int64_t length = tsr_shard_walk_begin(&walk, r->layout, dim, r->coordinate);
    const int64_t box_end = box->begin[dim] + box->shape[dim];
    for (int64_t i = 0; i < length;) {
        const tsr_cut_run run = tsr_shard_walk_at(&walk, i);
        const int64_t from = tsr_max_i64(run.begin, box->begin[dim]);
        const int64_t count = tsr_min_i64(run.begin + run.length, box_end) - from;
        for (int64_t j = 0; j < count; j += joined ? count : 1) {
            const int64_t to = at + (from + j - box->begin[dim]) * box->strides[dim];
            const int64_t mine = local + (i + from + j - run.begin) * r->strides[dim];
            if (joined)
                TSR_TRY(
                    read_run(r, box, box->offset + to * (int64_t)tsr_dtype_bytes(box->dtype), mine, count * v->inner));
            else
                TSR_TRY(visit_dim(v, dim + 1, to, mine));
        }
        i += run.length;
    }
    return TSR_OK;
}

/* True if the box has all of the shard's indices of `dim`, and they are one run. */
static bool holds_dim(const reader *r, const tsr_file_box *box, int dim)
{
    tsr_shard_walk walk;
    if (r->lengths[dim] == 0)
        return false;
    tsr_shard_walk_begin(&walk, r->layout, dim, r->coordinate);
    const tsr_cut_run run = tsr_shard_walk_at(&walk, 0);
    return run.length == r->lengths[dim] && box->begin[dim] <= run.begin &&
           run.begin + run.length <= box->begin[dim] + box->shape[dim];
}

/* Where the first index of `dim` that the shard has lies in the box. */
static int64_t skipped(const reader *r, const tsr_file_box *box, int dim)
{
    tsr_shard_walk walk;
    tsr_shard_walk_begin(&walk, r->layout, dim, r->coordinate);
    return tsr_shard_walk_at(&walk, 0).begin - box->begin[dim];
}

/* True if the box has an index of each dim that the shard has. */
static bool may_meet(const reader *r, const tsr_file_box *box)
{
    for (int dim = 0; dim < r->layout->ndim; dim++)
        if (r->lengths[dim] == 0 || box->shape[dim] == 0)
            return false;
    return true;
}

static tsr_status read_box(reader *r, const tsr_file_box *box)
{
    box_visit v = {r, box, r->layout->ndim, 1};
    int64_t at = 0;
    if (!may_meet(r, box))
        return TSR_OK;
    while (v.cut > 0 && box->strides[v.cut - 1] == v.inner && holds_dim(r, box, v.cut - 1)) {
        v.cut--;
        at += skipped(r, box, v.cut) * box->strides[v.cut];
        v.inner *= r->lengths[v.cut];
    }
    TSR_TRY(visit_dim(&v, 0, at, 0));
    return read_pending(r);
}

static tsr_status read_boxes(reader *r)
{
    tsr_context *const context = r->layout->context;
    void *stage = NULL, *runs = NULL;
    tsr_status status = tsr_allocate(context, STAGE_BYTES, &stage);
    if (status == TSR_OK)
        status = tsr_allocate(context, sizeof *r->pending, &runs);
    r->stage = stage;
    r->pending = runs;
    if (status == TSR_OK)
        r->pending->count = 0;
    for (size_t i = 0; i < r->count && status == TSR_OK; i++)
        status = read_box(r, &r->boxes[i]);
    tsr_input_close(&r->input);
    tsr_release(context, runs);
    tsr_release(context, stage);
    return status;
}

/* Reads into host memory, and copies it to the local tensor, which is strided or on a device. */
static tsr_status read_packed(reader *r, const tsr_device_ops *ops, const tsr_tensor *local)
{
    tsr_context *const context = r->layout->context;
    tsr_tensor packed = tsr_tensor_contiguous(NULL, local->dtype, local->ndim, local->shape);
    int64_t count;
    TSR_TRY(tsr_tensor_count(local, &count));
    const size_t bytes = (size_t)count * r->layout->element_bytes;
    void *data;
    TSR_TRY(tsr_allocate(context, bytes, &data));
    r->data = data;
    tsr_status status = read_boxes(r);
    packed.device = local->device;
    packed.data = data;
    void *there = NULL;
    if (status == TSR_OK && local->device.driver) {
        status = tsr_device_allocate(context, local->device, bytes, &there);
        if (status == TSR_OK)
            status = ops->table->copy(ops->self, ops->index, there, data, bytes, TSR_COPY_FROM_HOST, NULL);
        packed.data = there;
    }
    if (status == TSR_OK)
        status = tsr_device_copy_tensor(ops, &packed, local, NULL);
    status = tsr_device_settle(ops, NULL, status);
    if (there)
        tsr_device_release(context, local->device, there, bytes);
    tsr_release(context, data);
    return status;
}

static tsr_status read_own(reader *r, const tsr_tensor *local)
{
    const tsr_device_ops ops = tsr_device_resolve(r->layout->context, local->device);
    tsr_reduce_op op;
    int64_t stride = 1;
    r->host = tsr_device_resolve(r->layout->context, tsr_device_host());
    if (!tsr_input_holds_value(r->layout, r->coordinate, &op))
        return tsr_device_settle(&ops, NULL, tsr_device_fill_identity(&ops, local, op, NULL));
    for (int dim = r->layout->ndim - 1; dim >= 0; dim--) {
        r->lengths[dim] = tsr_layout_length(r->layout, dim, r->coordinate);
        r->strides[dim] = stride;
        stride *= r->lengths[dim];
    }
    if (local->device.driver || !tsr_tensor_is_contiguous(local))
        return read_packed(r, &ops, local);
    r->data = local->data;
    return read_boxes(r);
}

tsr_status tsr_file_boxes_check(size_t count, const tsr_file_box *boxes, const tsr_layout *layout)
{
    const reader r = {.call = "tsr_file_boxes_check", .count = count, .boxes = boxes, .layout = layout};
    if ((!boxes && count > 0) || !layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r.call, !layout ? "layout" : "boxes");
    return check_boxes(&r);
}

tsr_status tsr_distribute_file_boxes_into(size_t count, const tsr_file_box *boxes, int64_t *bytes_read,
                                          tsr_dtensor *out)
{
    reader r = {.call = "tsr_distribute_file_boxes_into", .count = count, .boxes = boxes};
    if ((!boxes && count > 0) || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r.call, !out ? "out" : "boxes");
    r.layout = out->layout;
    TSR_TRY(check_boxes(&r));
    if (tsr_tensor_overlaps(&out->local))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: elements of out share memory, so it can only be read", r.call);
    const int rank = tsr_comm_rank(tsr_mesh_comm(r.layout->mesh));
    if (tsr_mesh_locate(r.layout->mesh, rank, r.coordinate))
        TSR_TRY(read_own(&r, &out->local));
    if (bytes_read)
        *bytes_read = r.bytes;
    return TSR_OK;
}
