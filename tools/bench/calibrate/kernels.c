#include "bench/calibrate/kernels.h"

#include <tessera/ops.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* Sizes that are measured. Sizes of products between two that are fitted, and other ops that pass
 * over elements, tell the error. */
static const struct {
    kernel_topic topic;
    const char *op;
    bool fitted;
    int64_t size[4];
} rows[] = {
    {KERNEL_CALL, "silu_mul", true, {16}},
    {KERNEL_PASS, "silu_mul", true, {2048}},
    {KERNEL_PASS, "silu_mul", true, {16384}},
    {KERNEL_PASS, "silu_mul", true, {131072}},
    {KERNEL_PASS, "silu_mul", true, {1048576}},
    {KERNEL_PASS, "silu_mul", true, {4194304}},
    {KERNEL_PASS, "silu_mul", false, {500000}},
    {KERNEL_PASS, "add", false, {60000}},
    {KERNEL_PASS, "add", false, {2000000}},
    {KERNEL_MULTIPLY, "linear", true, {1, 64, 64}},
    {KERNEL_MULTIPLY, "linear", true, {1, 256, 256}},
    {KERNEL_MULTIPLY, "linear", true, {1, 1024, 1024}},
    {KERNEL_MULTIPLY, "linear", true, {1, 2048, 2048}},
    {KERNEL_MULTIPLY, "linear", true, {1, 3584, 3584}},
    {KERNEL_MULTIPLY, "linear", true, {4, 64, 64}},
    {KERNEL_MULTIPLY, "linear", true, {4, 1024, 1024}},
    {KERNEL_MULTIPLY, "linear", true, {4, 2048, 2048}},
    {KERNEL_MULTIPLY, "linear", true, {8, 64, 64}},
    {KERNEL_MULTIPLY, "linear", true, {8, 256, 256}},
    {KERNEL_MULTIPLY, "linear", true, {8, 1024, 1024}},
    {KERNEL_MULTIPLY, "linear", true, {8, 3072, 3072}},
    {KERNEL_MULTIPLY, "linear", true, {64, 64, 64}},
    {KERNEL_MULTIPLY, "linear", true, {64, 256, 256}},
    {KERNEL_MULTIPLY, "linear", true, {64, 1024, 1024}},
    {KERNEL_MULTIPLY, "linear", true, {64, 2048, 2048}},
    {KERNEL_MULTIPLY, "linear", true, {512, 512, 512}},
    {KERNEL_MULTIPLY, "linear", true, {512, 1024, 1024}},
    {KERNEL_MULTIPLY, "linear", true, {512, 2048, 2048}},
    {KERNEL_MULTIPLY, "linear", false, {1, 1536, 512}},
    {KERNEL_MULTIPLY, "linear", false, {1, 768, 3072}},
    {KERNEL_MULTIPLY, "linear", false, {2, 1024, 1024}},
    {KERNEL_MULTIPLY, "linear", false, {24, 512, 768}},
    {KERNEL_MULTIPLY, "linear", false, {200, 1024, 512}},
    {KERNEL_MULTIPLY, "linear", false, {384, 768, 1536}},
    {KERNEL_ATTEND, "attention", true, {4, 1, 64, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 1, 1024, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 1, 16384, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 16, 128, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 16, 2048, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 128, 128, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 128, 1024, 64}},
    {KERNEL_ATTEND, "attention", true, {4, 1024, 1024, 64}},
    {KERNEL_ATTEND, "attention", false, {2, 1, 3000, 64}},
    {KERNEL_ATTEND, "attention", false, {3, 48, 700, 64}},
    {KERNEL_ATTEND, "attention", false, {2, 500, 500, 64}},
};

/* The byte of which all operands are made: small normal numbers, and integers, in every dtype. */
#define FILLED_WITH 0x3c

/* An op of these sizes has so many operands, each of the shape in its row. */
typedef struct call_shapes {
    int count, ndim;
    int64_t shape[4][TSR_MAX_DIMS]; /* operands, then the result */
} call_shapes;

static call_shapes shapes_of(const kernel_call_point *p)
{
    const int64_t *const s = p->size;
    if (p->topic == KERNEL_MULTIPLY)
        return (call_shapes){2, 2, {{s[0], s[1]}, {s[2], s[1]}, {s[0], s[2]}}};
    if (p->topic == KERNEL_ATTEND)
        return (call_shapes){3, 3, {{s[0], s[1], s[3]}, {s[0], s[2], s[3]}, {s[0], s[2], s[3]}, {s[0], s[1], s[3]}}};
    return (call_shapes){2, 1, {{s[0]}, {s[0]}, {s[0]}}};
}

static double bytes_of(const call_shapes *shapes, int64_t element)
{
    double bytes = 0;
    for (int i = 0; i <= shapes->count; i++) {
        double elements = (double)element;
        for (int d = 0; d < shapes->ndim; d++)
            elements *= (double)shapes->shape[i][d];
        bytes += elements;
    }
    return bytes;
}

/* Attention is causal, and its queries are the last. */
static double flops_of(const kernel_call_point *p)
{
    const double a = (double)p->size[0], b = (double)p->size[1], c = (double)p->size[2], d = (double)p->size[3];
    if (p->topic == KERNEL_MULTIPLY)
        return 2 * a * b * c;
    return p->topic == KERNEL_ATTEND ? 4 * a * d * (b * (c - b) + b * (b + 1) / 2) : 0;
}

static tsr_dtype dtype_of(const kernels_request *r)
{
    const bool fits = r->dtype == TSR_F64 || r->dtype == TSR_F16 || r->dtype == TSR_BF16;
    return fits ? r->dtype : TSR_F32;
}

void kernels_choose(const kernels_request *r, kernels *out)
{
    out->count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && out->count < KERNEL_POINTS; i++) {
        kernel_call_point p = {.topic = rows[i].topic, .op = rows[i].op, .fitted = rows[i].fitted, .least = 1};
        memcpy(p.size, rows[i].size, sizeof p.size);
        if (p.topic >= KERNEL_MULTIPLY)
            p.least = p.topic == KERNEL_MULTIPLY ? p.size[0] : p.size[1];
        const call_shapes shapes = shapes_of(&p);
        p.touched = bytes_of(&shapes, (int64_t)tsr_dtype_bytes(dtype_of(r)));
        p.flops = flops_of(&p);
        if (p.touched <= (double)r->most)
            out->points[out->count++] = p;
    }
}

typedef struct job {
    place *place;
    const kernels_request *request;
    kernels *kernels;
} job;

/* One rank's side of one call. */
typedef struct side {
    const kernel_call_point *point;
    const tsr_op *op;
    bool computes; /* the rank is one of the mesh */
    size_t attribute_count;
    tsr_attribute attributes[1];
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS], *result;
} side;

static tsr_status call(tsr_comm *comm, void *arg)
{
    side *const s = arg;
    (void)comm;
    if (!s->computes)
        return TSR_OK;
    return tsr_op_call_into(s->op, s->attribute_count, s->attributes, (const tsr_dtensor *const *)s->operands,
                            &s->result);
}

static tsr_status fill(const place *p, int rank, const tsr_dtensor *x)
{
    size_t bytes;
    const tsr_tensor local = tsr_dtensor_to_local(x);
    TSR_TRY(tsr_layout_local_bytes(tsr_dtensor_layout(x), NULL, &bytes));
    void *const values = malloc(bytes + 1);
    if (!values)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for an operand of %zu bytes", bytes);
    memset(values, FILLED_WITH, bytes);
    const tsr_status status = place_upload(p, rank, local.data, values, bytes);
    free(values);
    return status;
}

static tsr_status make_operand(const job *j, int rank, const tsr_mesh *mesh, int ndim, const int64_t *shape,
                               tsr_dtensor **out)
{
    tsr_layout *layout;
    const tsr_placement whole[] = {tsr_replicate()};
    TSR_TRY(tsr_layout_create(mesh, whole, ndim, shape, dtype_of(j->request), &layout));
    const tsr_status status = tsr_dtensor_create(layout, place_device(j->place, rank), out);
    tsr_layout_destroy(layout);
    return status == TSR_OK ? fill(j->place, rank, *out) : status;
}

static tsr_status prepare(const job *j, int rank, const tsr_mesh *mesh, side *s)
{
    const call_shapes shapes = shapes_of(s->point);
    if (s->point->topic == KERNEL_ATTEND)
        s->attributes[s->attribute_count++] = tsr_attribute_int("causal", 1);
    TSR_TRY(tsr_op_find(NULL, s->point->op, &s->op));
    for (int i = 0; i < shapes.count; i++)
        TSR_TRY(make_operand(j, rank, mesh, shapes.ndim, shapes.shape[i], &s->operands[i]));
    return make_operand(j, rank, mesh, shapes.ndim, shapes.shape[shapes.count], &s->result);
}

static void finish(side *s)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_dtensor_destroy(s->operands[i]);
    tsr_dtensor_destroy(s->result);
}

/* Times a call, after one that tells whether the device has the op: no entry is made without. */
static tsr_status time_call(const job *j, tsr_comm *comm, const bench_settings *settings, side *s,
                            kernel_call_point *point)
{
    tsr_bench_result result;
    const int rank = tsr_comm_rank(comm);
    int64_t lacks = 0;
    tsr_bench_options options = bench_options(settings, j->place, rank);
    const tsr_status first = call(comm, s);
    if (first != TSR_OK && first != TSR_ERROR_UNSUPPORTED)
        return first;
    lacks = first == TSR_ERROR_UNSUPPORTED;
    TSR_TRY(tsr_comm_all_reduce(comm, &lacks, &lacks, 1, TSR_I64, TSR_MAX, tsr_device_host(), NULL));
    if (lacks)
        return TSR_OK;
    options.stream = NULL; /* ops are enqueued on the device's default stream */
    TSR_TRY(tsr_bench_call(comm, &(tsr_bench_subject){.call = call, .arg = s}, &options, &result));
    if (bench_keeps(j->place, rank))
        point->seconds = result.seconds;
    return TSR_OK;
}

static tsr_status run_point(const job *j, tsr_comm *comm, const tsr_mesh *mesh, const bench_settings *settings,
                            kernel_call_point *point)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    tsr_kept_sentence kept;
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside));
    side s = {.point = point, .computes = inside != 0};
    tsr_status status = s.computes ? prepare(j, rank, mesh, &s) : TSR_OK;
    bench_step(settings, j->place, rank);
    if (status == TSR_OK)
        status = time_call(j, comm, settings, &s, point);
    tsr_status_keep(&kept);
    finish(&s);
    return status == TSR_OK ? TSR_OK : tsr_status_restore(&kept, status);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const job *const j = arg;
    tsr_mesh *mesh;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_mesh_parse(comm, NULL, j->request->mesh, &mesh));
    for (size_t i = 0; i < j->kernels->count && status == TSR_OK; i++)
        status = run_point(j, comm, mesh, &j->request->settings, &j->kernels->points[i]);
    tsr_mesh_destroy(mesh);
    return status;
}

int kernels_measure(place *p, const kernels_request *r, int status, kernels *k)
{
    job j = {p, r, k};
    return bench_on_ranks(&r->settings, status, p, r->ranks, run_rank, &j);
}
