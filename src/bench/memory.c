#include "bench/memory.h"

#include <tessera/sys/memory.h>

#include <string.h>

#define ALIGNMENT 64

void tsr_bench_release(const tsr_bench_rank *r, void *memory, size_t bytes)
{
    if (!memory)
        return;
    if (!tsr_bench_rank_has_device(r))
        tsr_comm_free(r->comm, memory, bytes);
    else
        r->table->free(r->self, r->options.device.index, memory, bytes, NULL);
}

void tsr_bench_allocate(const tsr_bench_rank *r, size_t bytes, void **out, tsr_bench_outcome *o)
{
    const size_t wanted = o->status == TSR_OK ? bytes : 0;
    *out = NULL;
    if (!tsr_bench_rank_has_device(r))
        tsr_bench_outcome_add(o, tsr_comm_alloc(r->comm, wanted, out));
    else if (wanted > 0)
        tsr_bench_outcome_add(o, r->table->alloc(r->self, r->options.device.index, wanted, NULL, out));
    if (wanted < bytes) {
        tsr_bench_release(r, *out, wanted);
        *out = NULL;
    }
}

size_t tsr_bench_round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t tsr_bench_tensor_bytes(const tsr_tensor *t)
{
    int64_t count;
    return tsr_tensor_count(t, &count) == TSR_OK ? (size_t)count * tsr_dtype_bytes(t->dtype) : 0;
}

static bool is_plain(const tsr_bench_rank *r, const tsr_tensor *t)
{
    return !tsr_bench_rank_has_device(r) && tsr_tensor_is_contiguous(t);
}

tsr_status tsr_bench_stage(const tsr_bench_rank *r, const tsr_tensor *t, void **out)
{
    *out = t->data;
    return is_plain(r, t) ? TSR_OK : tsr_allocate(tsr_comm_context(r->comm), tsr_bench_tensor_bytes(t), out);
}

void tsr_bench_unstage(const tsr_bench_rank *r, const tsr_tensor *t, void *staged)
{
    if (!is_plain(r, t))
        tsr_release(tsr_comm_context(r->comm), staged);
}

/* Copies between a tensor and contiguous memory of its device, `packed`, in the rank's stream. */
static tsr_status copy_boxes(const tsr_bench_rank *r, const tsr_tensor *t, void *packed, bool to_tensor)
{
    const tsr_tensor plain = tsr_tensor_contiguous(packed, t->dtype, t->ndim, t->shape),
                     *const to = to_tensor ? t : &plain, *const from = to_tensor ? &plain : t;
    tsr_box_copy box = {
        .dst = to->data, .src = from->data, .element_bytes = tsr_dtype_bytes(t->dtype), .ndim = t->ndim};
    memcpy(box.shape, t->shape, sizeof box.shape);
    memcpy(box.dst_strides, to->strides, sizeof box.dst_strides);
    memcpy(box.src_strides, from->strides, sizeof box.src_strides);
    return r->table->copy_boxes(r->self, r->options.device.index, &box, 1, r->options.stream);
}

/* Copies between contiguous memory of the device and of the host. */
static tsr_status copy_over(const tsr_bench_rank *r, void *packed, void *staged, size_t bytes, bool to_device)
{
    return r->table->copy(r->self, r->options.device.index, to_device ? packed : staged, to_device ? staged : packed,
                          bytes, to_device ? TSR_COPY_FROM_HOST : TSR_COPY_TO_HOST, r->options.stream);
}

/* By way of contiguous memory of the device. */
static tsr_status copy_by_way(const tsr_bench_rank *r, const tsr_tensor *t, void *staged, size_t bytes, bool to_tensor)
{
    void *packed;
    TSR_TRY(r->table->alloc(r->self, r->options.device.index, bytes, NULL, &packed));
    tsr_status status = to_tensor ? copy_over(r, packed, staged, bytes, true) : copy_boxes(r, t, packed, false);
    if (status == TSR_OK)
        status = to_tensor ? copy_boxes(r, t, packed, true) : copy_over(r, packed, staged, bytes, false);
    const tsr_status waited = tsr_bench_rank_wait(r);
    r->table->free(r->self, r->options.device.index, packed, bytes, NULL);
    return status == TSR_OK ? waited : status;
}

static tsr_status transfer(const tsr_bench_rank *r, const tsr_tensor *t, void *staged, bool to_tensor)
{
    const size_t bytes = tsr_bench_tensor_bytes(t);
    if (bytes == 0 || is_plain(r, t))
        return TSR_OK;
    if (!tsr_bench_rank_has_device(r))
        return copy_boxes(r, t, staged, to_tensor);
    if (!tsr_tensor_is_contiguous(t))
        return copy_by_way(r, t, staged, bytes, to_tensor);
    TSR_TRY(copy_over(r, t->data, staged, bytes, to_tensor));
    return tsr_bench_rank_wait(r);
}

tsr_status tsr_bench_push(const tsr_bench_rank *r, const tsr_tensor *t, void *staged)
{
    return transfer(r, t, staged, true);
}

tsr_status tsr_bench_pull(const tsr_bench_rank *r, const tsr_tensor *t, void *staged)
{
    return transfer(r, t, staged, false);
}
