#include "redistribute/execute/fragments.h"

#include "base/checked.h"

static int64_t box_elements(const tsr_item *item, size_t box)
{
    const int64_t *shape = tsr_item_box(item, box);
    int64_t elements = 1;
    for (int dim = 0; dim < item->src->ndim; dim++)
        elements *= shape[dim];
    return elements;
}

tsr_fragments tsr_fragments_begin(const tsr_item *item, size_t first_box, int64_t begin, int64_t end)
{
    tsr_fragments fragments = {.item = item, .box = first_box, .at = begin, .left = end - begin};
    if (fragments.left <= 0)
        return fragments;
    fragments.size = box_elements(item, first_box);
    while (fragments.at >= fragments.size) {
        fragments.at -= fragments.size;
        fragments.size = box_elements(item, ++fragments.box);
    }
    return fragments;
}

/* The outermost dim `d` for which a whole slice, dims `d` and all behind it, begins at `at` and
 * has no more than `limit` elements; ndim: a slice is one element. `*slice`: the elements of a
 * slice. */
static int outermost(const int64_t *shape, int ndim, int64_t at, int64_t limit, int64_t *slice)
{
    int dim = ndim;
    *slice = 1;
    while (dim > 0 && at % (*slice * shape[dim - 1]) == 0 && *slice * shape[dim - 1] <= limit)
        *slice *= shape[--dim];
    return dim;
}

/* A fragment is as many slices along dim `dim` - 1 as are left of its row and of the range; with
 * `dim` 0 it is the whole box. */
bool tsr_fragments_next(tsr_fragments *f, tsr_fragment *fragment)
{
    if (f->left <= 0)
        return false;
    const int ndim = f->item->src->ndim;
    const int64_t *shape = tsr_item_box(f->item, f->box);
    int64_t slice;
    const int dim = outermost(shape, ndim, f->at, tsr_min_i64(f->left, f->size - f->at), &slice);
    *fragment = (tsr_fragment){.box = f->box, .elements = slice};
    for (int d = 0; d < ndim; d++)
        fragment->shape[d] = d >= dim ? shape[d] : 1;
    if (dim > 0) {
        const int64_t count = tsr_min_i64(f->left / slice, shape[dim - 1] - f->at / slice % shape[dim - 1]);
        fragment->shape[dim - 1] = count;
        fragment->elements *= count;
    }
    int64_t rest = f->at;
    for (int d = ndim - 1; d >= 0; d--) {
        fragment->offset[d] = rest % shape[d];
        rest /= shape[d];
    }
    f->at += fragment->elements;
    f->left -= fragment->elements;
    if (f->at == f->size && f->left > 0) {
        f->size = box_elements(f->item, ++f->box);
        f->at = 0;
    }
    return true;
}
