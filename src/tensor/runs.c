#include "tensor/runs.h"

#include "base/checked.h"
#include "placement/ownership.h"
#include "placement/walk.h"

#include <tessera/sys/status.h>

/* The first dim, not before `first`, from which on all dims are whole on this rank: a run of the
 * dim before it is contiguous in the file. */
static int whole_from(const tsr_layout *layout, int first, const int64_t *coordinate)
{
    int dim = layout->ndim;
    while (dim > first && tsr_layout_length(layout, dim - 1, coordinate) == layout->shape[dim - 1])
        dim--;
    return dim;
}

/* A visit of one shard. Dims before `cut` are cut; one index of the last of them has `inner`
 * elements. */
typedef struct shard_visit {
    const tsr_layout *layout;
    const int64_t *coordinate;
    int cut;
    int64_t inner;
    tsr_visit_run *visit;
    void *arg;
} shard_visit;

/* Visits the rank's part of dims `dim` and further in, from element `base` of the tensor on. */
static tsr_status visit_dim(const shard_visit *v, int dim, int64_t base)
{
    tsr_shard_walk walk;
    const int64_t length = tsr_shard_walk_begin(&walk, v->layout, dim, v->coordinate);
    int64_t stride = v->inner;
    for (int i = dim + 1; i < v->cut; i++)
        stride *= v->layout->shape[i];
    for (int64_t at = 0; at < length;) {
        const tsr_cut_run run = tsr_shard_walk_at(&walk, at);
        if (dim == v->cut - 1)
            TSR_TRY(v->visit(v->arg, base + run.begin * stride, run.length * stride));
        for (int64_t i = 0; dim < v->cut - 1 && i < run.length; i++)
            TSR_TRY(visit_dim(v, dim + 1, base + (run.begin + i) * stride));
        at += run.length;
    }
    return TSR_OK;
}

static tsr_status visit_from(const tsr_layout *layout, int first, const int64_t *coordinate, tsr_visit_run *visit,
                             void *arg)
{
    shard_visit v = {layout, coordinate, whole_from(layout, first, coordinate), 1, visit, arg};
    for (int dim = v.cut; dim < layout->ndim; dim++)
        v.inner *= layout->shape[dim];
    return v.cut == first ? visit(arg, 0, v.inner) : visit_dim(&v, first, 0);
}

tsr_status tsr_visit_runs(const tsr_layout *layout, const int64_t *coordinate, tsr_visit_run *visit, void *arg)
{
    return visit_from(layout, 0, coordinate, visit, arg);
}

tsr_status tsr_visit_row_runs(const tsr_layout *layout, const int64_t *coordinate, tsr_visit_run *visit, void *arg)
{
    return visit_from(layout, 1, coordinate, visit, arg);
}

bool tsr_file_end(const tsr_layout *layout, size_t element_bytes, int64_t offset, int64_t *out)
{
    int64_t end = (int64_t)element_bytes;
    for (int dim = 0; dim < layout->ndim; dim++)
        if (!tsr_multiply(end, layout->shape[dim], &end))
            return false;
    return tsr_add_sizes(end, offset, out);
}

bool tsr_file_converts(tsr_dtype from, tsr_dtype to)
{
    const tsr_dtype_info *a = tsr_dtype_get(from), *b = tsr_dtype_get(to);
    return from == to || (a->kind == TSR_CLASS_FLOAT && b->kind == TSR_CLASS_FLOAT);
}
