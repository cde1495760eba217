/**
 * Attention between a block of queries and a chunk of keys: one source, compiled once for each set
 * of instructions. Products are fused with sums where the set can, so sets give other last bits.
 *
 * Everything is f32 or f64; which one is said by the table's index. Rows of queries, keys and
 * values are padded with zeros to `width` and `value_width` columns. Scores lie in tiles, a row
 * for each key and a column for each query of the block ("lane"), so that what is computed by query
 * is computed for a whole vector of them. Scores are logarithms to base 2.
 */
#ifndef TSR_OPS_KERNELS_ATTENTION_KERNELS_H
#define TSR_OPS_KERNELS_ATTENTION_KERNELS_H

#include <tessera/dtype.h>

#include <stdint.h>

#define TSR_ATTENTION_LANES 64  /**< the most queries of a block, and the columns of a tile */
#define TSR_ATTENTION_KEYS  128 /**< the most keys of a chunk */
#define TSR_ATTENTION_PAD   16  /**< lanes and widths are multiples of it */
#define TSR_ATTENTION_FEW   7   /**< the most queries of a block whose keys and values are streamed */

/** Rows of keys or values, `step` elements apart. */
typedef struct tsr_attention_rows {
    void *at;
    int64_t step;
} tsr_attention_rows;

/** A block of queries. The memory is the caller's. */
typedef struct tsr_attention_block {
    int64_t used; /**< the queries: the first lanes; the others have rows of zeros */
    int64_t lanes, width, value_width;
    int64_t dim, value_dim; /**< columns of keys and values, without padding */
    double scale;           /**< of scores; base 2, so it includes 1 / ln 2 */
    double slope;           /**< of scores; base e, for gradients */
    const int64_t *begin;   /**< by lane: it attends keys from begin to end - 1 */
    const int64_t *end;
    int64_t last_begin, first_end; /**< the largest of begin, the smallest of end */
    void *queries, *douts;         /**< rows of the queries, and of the gradients of their results */
    void *turned_queries;          /**< width rows of LANES: the queries' columns, times the scale */
    void *turned_douts;            /**< value_width rows of LANES */
    void *largest, *sum;           /**< by lane: the largest score, and the sum of 2^(score - largest) */
    void *delta;                   /**< by lane: the sum of 2^(score - largest) times the weight's gradient */
    void *out; /**< rows of value_width: the weighted sum of values; of width: the gradient of queries */
} tsr_attention_block;

/** A chunk of `count` keys, the first of which is key `first`. */
typedef struct tsr_attention_chunk {
    int64_t first, count;
    tsr_attention_rows k, v;
    const void *mask;          /**< NULL, or by query, with KEYS to a row, what is added to scores of base e */
    void *weights;             /**< a tile: 2^(score - largest) */
    void *slopes;              /**< a tile: the gradients of weights, then those of scores */
    void *largest;             /**< by lane: what the tile's weights are relative to */
    tsr_attention_rows dk, dv; /**< gradients, which are added to */
} tsr_attention_chunk;

typedef void tsr_attention_loop(const tsr_attention_block *block, const tsr_attention_chunk *chunk);

/** Merges the records that ranks made of one query, in their order. A record is the largest score,
 * the sum of 2^(score - largest), and `count` values that are sums with these weights. Gives the
 * largest score of all, 1 / sum or 0 if the sum is 0, and the values divided by the sum. */
typedef void tsr_attention_merge(const void *records, int64_t stride, int ranks, int64_t count, void *largest,
                                 void *inverse, void *values);

/** Loops by dtype, f32 or f64. */
typedef struct tsr_attention_kernels {
    /** Turns the queries, and douts unless NULL; sets largest to -infinity, sum and delta to 0. The
     * chunk is NULL. */
    tsr_attention_loop *begin[TSR_DTYPE_END];
    /** Adds a chunk to largest, sum and out. */
    tsr_attention_loop *attend[TSR_DTYPE_END];
    /** As attend, for at most FEW queries, which begin need not turn, with keys and values as they
     * lie in memory. Weights are by query, with KEYS to a row. By the dtype in memory, f32, bf16 or
     * f16, of what is computed in f32. */
    tsr_attention_loop *stream[TSR_DTYPE_END];
    /** Adds a chunk to largest, sum and delta, and leaves weights, slopes and the chunk's
     * largest. */
    tsr_attention_loop *measure[TSR_DTYPE_END];
    /** Makes weights and slopes again, relative to the block's largest. */
    tsr_attention_loop *recall[TSR_DTYPE_END];
    /** After the last chunk: divides delta, or without delta out, by sum, and makes sum 1 / sum, or
     * 0 if it is 0. The chunk is NULL. */
    tsr_attention_loop *finish[TSR_DTYPE_END];
    /** Adds to the gradients dk, dv and out from weights and slopes, after finish. */
    tsr_attention_loop *differentiate[TSR_DTYPE_END];
    tsr_attention_merge *merge[TSR_DTYPE_END];
} tsr_attention_kernels;

extern const tsr_attention_kernels tsr_attention_kernels_portable, tsr_attention_kernels_avx2,
    tsr_attention_kernels_avx512;

#endif
