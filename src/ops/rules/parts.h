/** What each coordinate owns of one dim, listed: how cuts of compounds are compared with cuts of
 * their factors. Pure. Lists are bounded: beyond TSR_PARTS_MOST intervals they are refused. */
#ifndef TSR_OPS_RULES_PARTS_H
#define TSR_OPS_RULES_PARTS_H

#include <tessera/layout.h>

#include <stdbool.h>

#define TSR_PARTS_MOST ((size_t)1 << 22)

/** The parts of a dim: one for each coordinate in the mesh dims that cut it, row-major. */
typedef struct tsr_parts {
    tsr_context *context;
    int64_t size;                 /**< of the dim */
    unsigned dims;                /**< the mesh dims that cut it, by bits */
    int64_t extent[TSR_MAX_DIMS]; /**< sizes of these, 1 elsewhere */
    size_t count;                 /**< of parts */
    size_t *begin;                /**< count + 1 places in `intervals` */
    tsr_interval *intervals;      /**< of each part ascending, and apart */
    size_t capacity;
} tsr_parts;

/** Lists what cuts of a dim of `size`, Shards of dim 0 or Replicate, give each coordinate. */
tsr_status tsr_parts_list(const tsr_mesh *mesh, int64_t size, const tsr_placement *cuts, tsr_parts *out);

/**
 * Divides parts of a dim that is a product of `count` factors, major to minor, into those of each
 * factor, so that each part is the product of them and a mesh dim cuts one factor. Where a mesh dim
 * may be said to cut any of several factors, it is `hint[k]`, if that is not -1, or else the first.
 * `*divides` false: the parts are no such products, at mesh dim `*mesh_dim` for one; `out` is
 * empty.
 */
tsr_status tsr_parts_divide(const tsr_parts *parts, int count, const int64_t *sizes, const int *hint, tsr_parts *out,
                            bool *divides, int *mesh_dim);

/** The parts of the dim that is the product of factors, major to minor, from theirs. */
tsr_status tsr_parts_multiply(const tsr_mesh *mesh, int count, const tsr_parts *factors, tsr_parts *out);

/** The intervals of part `i`, `*count` of them. */
const tsr_interval *tsr_parts_get(const tsr_parts *parts, size_t i, size_t *count);

/** The place among the parts of a coordinate in all mesh dims. */
size_t tsr_parts_place(const tsr_parts *parts, const int64_t *coordinate);

/** Goes on to the next coordinate in the mesh dims of `dims`; false, with 0s: there is none. */
bool tsr_parts_advance(const tsr_parts *parts, unsigned dims, int64_t *coordinate);

/** Frees the lists. */
void tsr_parts_clear(tsr_parts *parts);

#endif
