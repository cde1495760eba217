#include "ops/kernels/norms/norm_rows.h"

#include "ops/kernels/pointwise.h"

void tsr_norm_walk_begin(const tsr_tensor *x, const bool *marked, const tsr_pointwise_kernels *kernels,
                         tsr_norm_walk *out)
{
    *out = (tsr_norm_walk){.kernels = kernels, .memory = x->dtype, .rows = 1, .length = 1};
    out->computed = tsr_pointwise_computes_in(x->dtype);
    out->bytes = (int64_t)tsr_dtype_bytes(x->dtype);
    out->computed_bytes = (int64_t)tsr_dtype_bytes(out->computed);
    for (int dim = 0; dim < x->ndim; dim++) {
        if (marked[dim])
            out->along[out->along_count++] = x->shape[dim];
        else
            out->across[out->across_count++] = x->shape[dim];
        *(marked[dim] ? &out->length : &out->rows) *= x->shape[dim];
    }
    if (!out->along_count)
        out->along[out->along_count++] = 1;
    if (!out->across_count)
        out->across[out->across_count++] = 1;
}

void tsr_norm_walk_add(tsr_norm_walk *walk, const tsr_tensor *tensor, const bool *marked, int ndim, bool across,
                       bool along)
{
    tsr_norm_view *const view = &walk->views[walk->view_count++];
    int own = 0, across_count = 0, along_count = 0;
    *view = (tsr_norm_view){.data = tensor->data};
    for (int dim = 0; dim < ndim; dim++) {
        const bool has = (marked[dim] ? along : across) || tensor->ndim == ndim;
        const int64_t stride = has && (marked[dim] ? along : across) ? tensor->strides[own] : 0;
        own += has;
        if (marked[dim])
            view->along[along_count++] = stride;
        else
            view->across[across_count++] = along && walk->length == 0 ? 0 : stride;
    }
}

static int64_t *strides_of(tsr_norm_walk *walk, int view, bool along)
{
    return along ? walk->views[view].along : walk->views[view].across;
}

/* True if in all views dim `dim` goes on where the next one ends, so that they are one. */
static bool is_one_dim(tsr_norm_walk *walk, int dim, int64_t next_size, bool along)
{
    for (int i = 0; i < walk->view_count; i++) {
        const int64_t *const strides = strides_of(walk, i, along);
        if (strides[dim] != strides[dim + 1] * next_size)
            return false;
    }
    return true;
}

/* Joins dims that are one, and drops those of size 1; one stays. */
static void join(tsr_norm_walk *walk, int *count, int64_t *sizes, bool along)
{
    for (int dim = *count - 1; dim >= 0 && *count > 1; dim--) {
        const bool one = sizes[dim] == 1;
        if (!one && (dim == *count - 1 || !is_one_dim(walk, dim, sizes[dim + 1], along)))
            continue;
        if (!one)
            sizes[dim + 1] *= sizes[dim];
        (*count)--;
        for (int next = dim; next < *count; next++) {
            sizes[next] = sizes[next + 1];
            for (int i = 0; i < walk->view_count; i++)
                strides_of(walk, i, along)[next] = strides_of(walk, i, along)[next + 1];
        }
    }
}

void tsr_norm_walk_join(tsr_norm_walk *walk)
{
    join(walk, &walk->across_count, walk->across, false);
    join(walk, &walk->along_count, walk->along, true);
    for (int i = 0; i < walk->view_count; i++)
        walk->views[i].direct = walk->memory == walk->computed && walk->along_count == 1 &&
                                (walk->views[i].along[0] == 1 || walk->along[0] == 1);
}

/* Moves a row between memory and an array. */
static void move_row(const tsr_norm_walk *walk, int view, char *at, char *array, bool reads)
{
    const int last = walk->along_count - 1;
    const int64_t *const strides = walk->views[view].along;
    int64_t index[TSR_MAX_DIMS] = {0};
    for (int64_t done = 0; done < walk->length; done += walk->along[last]) {
        char *const part = array + done * walk->computed_bytes;
        if (reads)
            walk->kernels->gather[walk->memory](at, part, walk->along[last], strides[last]);
        else
            walk->kernels->scatter[walk->memory](part, at, walk->along[last], strides[last]);
        for (int dim = last - 1; dim >= 0; dim--) {
            const bool more = ++index[dim] < walk->along[dim];
            at += (more ? 1 : 1 - walk->along[dim]) * strides[dim] * walk->bytes;
            if (more)
                break;
            index[dim] = 0;
        }
    }
}

void tsr_norm_read(const tsr_norm_walk *walk, int view, const char *at, char *to)
{
    move_row(walk, view, (char *)at, to, true);
}

void tsr_norm_write(const tsr_norm_walk *walk, int view, const char *from, char *at)
{
    move_row(walk, view, at, (char *)from, false);
}

bool tsr_norm_walk_advance(const tsr_norm_walk *walk, int64_t *index, char **at)
{
    for (int dim = walk->across_count - 2; dim >= 0; dim--) {
        const bool more = ++index[dim] < walk->across[dim];
        for (int i = 0; i < walk->view_count; i++)
            at[i] += (more ? 1 : 1 - walk->across[dim]) * walk->views[i].across[dim] * walk->bytes;
        if (more)
            return true;
        index[dim] = 0;
    }
    return false;
}
