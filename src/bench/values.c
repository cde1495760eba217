#include "bench/values.h"

#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>

#include <string.h>

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

bool tsr_bench_is_partial(const tsr_layout *layout)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
        if (tsr_layout_placements(layout)[d].kind == TSR_PARTIAL && tsr_mesh_size(mesh, d) > 1)
            return true;
    return false;
}

/* Writes an integer in the dtype; of a complex number it is the real part. */
static tsr_status encode(const tsr_dtype_info *info, int value, unsigned char *out)
{
    const bool is_complex = info->kind == TSR_CLASS_COMPLEX;
    const tsr_dtype part = !is_complex ? info->dtype : info->dtype == TSR_C64 ? TSR_F32 : TSR_F64;
    const double number = value;
    const int64_t integer = value;
    void *self;
    memset(out, 0, TSR_BENCH_ELEMENT_BYTES);
    if (!is_complex && info->kind != TSR_CLASS_FLOAT) {
        memcpy(out, &integer, info->bytes);
        return TSR_OK;
    }
    return tsr_device_driver_table(NULL, &self)->convert(self, 0, out, part, &number, TSR_F64, 1, NULL);
}

tsr_status tsr_bench_values_of(const tsr_layout *from, const tsr_layout *to, tsr_bench_values *out)
{
    const tsr_dtype_info *const info = tsr_dtype_get(tsr_layout_dtype(from));
    *out = (tsr_bench_values){.from = from,
                              .dtype = info->dtype,
                              .bytes = info->bytes,
                              .terms = tsr_bench_is_partial(from) || tsr_bench_is_partial(to)};
    for (int i = 0; i < TSR_BENCH_INTEGERS; i++)
        TSR_TRY(encode(info, i, out->code[i]));
    return TSR_OK;
}

static int integer_of(const tsr_bench_values *v, uint64_t hash)
{
    return v->dtype == TSR_BOOL ? (int)(hash & 1) : 1 + (int)(hash % 7);
}

/* Writes the element at a global index of the tensor that the layouts mean. */
static void write_value(const tsr_bench_values *v, int64_t index, unsigned char *out)
{
    const uint64_t bits[2] = {mix((uint64_t)index + 1), mix(~(uint64_t)index)};
    if (v->terms) {
        memcpy(out, v->code[integer_of(v, bits[0])], v->bytes);
        return;
    }
    memcpy(out, bits, v->bytes);
    if (v->dtype == TSR_BOOL)
        *out &= 1;
}

/* True if `coordinate` is the one that the index picks in the Partial dims; in dims of avg every
 * one is picked. `*op` becomes the reduction. */
static bool is_picked(const tsr_bench_values *v, const int64_t *coordinate, uint64_t hash, tsr_reduce_op *op)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(v->from);
    bool picked = true;
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++) {
        const tsr_placement *const p = &tsr_layout_placements(v->from)[d];
        if (p->kind != TSR_PARTIAL || tsr_mesh_size(mesh, d) == 1)
            continue;
        *op = p->op;
        hash = mix(hash);
        picked = picked && (p->op == TSR_AVG || hash % (uint64_t)tsr_mesh_size(mesh, d) == (uint64_t)coordinate[d]);
    }
    return picked;
}

/* Writes a rank's element of the source: its term, if the source is Partial. */
static void write_term(const tsr_bench_values *v, const int64_t *coordinate, int64_t index, unsigned char *out)
{
    const uint64_t hash = mix((uint64_t)index + 1);
    const int value = integer_of(v, hash);
    tsr_reduce_op op = TSR_AVG;
    if (!v->terms || is_picked(v, coordinate, hash, &op)) {
        write_value(v, index, out);
        return;
    }
    const int highest = v->dtype == TSR_BOOL ? 1 : value + 1, lowest = v->dtype == TSR_BOOL ? 0 : value - 1;
    const int other = op == TSR_PROD ? 1 : op == TSR_MIN ? highest : op == TSR_MAX ? lowest : 0;
    memcpy(out, v->code[other], v->bytes);
}

/* The intervals that a shard has along one dim; on the heap. */
typedef struct lane {
    tsr_interval *at;
    size_t count;
} lane;

/* Visits the elements of a shard in memory order. */
typedef struct walk {
    const tsr_bench_values *values;
    const int64_t *coordinate, *shape;
    int ndim;
    lane lanes[TSR_MAX_DIMS];
    unsigned char *at;
    bool checks; /* compare elements with their values; else write terms */
    int64_t wrong;
} walk;

static void visit(walk *w, int64_t index)
{
    unsigned char value[TSR_BENCH_ELEMENT_BYTES];
    if (w->checks) {
        write_value(w->values, index, value);
        w->wrong += memcmp(w->at, value, w->values->bytes) != 0;
    } else
        write_term(w->values, w->coordinate, index, w->at);
    w->at += w->values->bytes;
}

/* `index` is the row-major index by the dims before `dim`. */
static void walk_dim(walk *w, int dim, int64_t index)
{
    if (dim == w->ndim) {
        visit(w, index);
        return;
    }
    for (size_t i = 0; i < w->lanes[dim].count; i++)
        for (int64_t x = w->lanes[dim].at[i].begin; x < w->lanes[dim].at[i].end; x++)
            walk_dim(w, dim + 1, index * w->shape[dim] + x);
}

static tsr_context *context_of(const tsr_layout *layout)
{
    return tsr_mesh_context(tsr_layout_mesh(layout));
}

static tsr_status read_lane(const tsr_layout *layout, const int64_t *coordinate, int dim, lane *out)
{
    size_t count;
    void *memory;
    TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, NULL, 0, &count));
    TSR_TRY(tsr_allocate(context_of(layout), count * sizeof *out->at, &memory));
    out->at = memory;
    return tsr_layout_intervals(layout, coordinate, dim, out->at, count, &out->count);
}

static tsr_status walk_shard(const tsr_layout *layout, const int64_t *coordinate, walk *w)
{
    tsr_status status = TSR_OK;
    w->coordinate = coordinate;
    w->shape = tsr_layout_shape(layout);
    w->ndim = tsr_layout_ndim(layout);
    for (int d = 0; d < w->ndim && status == TSR_OK; d++)
        status = read_lane(layout, coordinate, d, &w->lanes[d]);
    if (status == TSR_OK)
        walk_dim(w, 0, 0);
    for (int d = 0; d < w->ndim; d++)
        tsr_release(context_of(layout), w->lanes[d].at);
    return status;
}

tsr_status tsr_bench_values_fill(const tsr_bench_values *v, const int64_t *coordinate, void *local)
{
    walk w = {.values = v, .at = local};
    return walk_shard(v->from, coordinate, &w);
}

tsr_status tsr_bench_values_check(const tsr_bench_values *v, const tsr_layout *to, const int64_t *coordinate,
                                  const void *local, int64_t *wrong)
{
    walk w = {.values = v, .at = (unsigned char *)local, .checks = true};
    TSR_TRY(walk_shard(to, coordinate, &w));
    *wrong += w.wrong;
    return TSR_OK;
}
