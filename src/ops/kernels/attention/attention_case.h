/** What attention and its gradient have in common: which keys and heads belong to which queries of
 * the shards, and blocks of queries and chunks of keys as the loops of attention_kernels.h want
 * them. */
#ifndef TSR_OPS_KERNELS_ATTENTION_CASE_H
#define TSR_OPS_KERNELS_ATTENTION_CASE_H

#include "ops/kernels/attention/attention_kernels.h"
#include "ops/kernels/call.h"
#include "ops/kernels/pointwise.h"

/** Memory of a workspace that is given out in order. */
typedef struct tsr_attention_memory {
    char *at; /**< NULL: only bytes are counted */
    int64_t used;
} tsr_attention_memory;

/** The next `count` elements of `bytes` bytes, aligned to 64; NULL while bytes are counted. */
void *tsr_attention_take(tsr_attention_memory *memory, int64_t count, int64_t bytes);

/** One head of a tensor (.., heads, tokens, dim). Strides in elements. */
typedef struct tsr_attention_head {
    char *at;
    int64_t row_step, column_step;
} tsr_attention_head;

/** Keys or values of one head, and how chunks of them come to the loops. */
typedef struct tsr_attention_source {
    tsr_attention_head head;
    int64_t columns, width;
    bool direct;  /**< the loops read the tensor itself */
    bool aliased; /**< the result has the same memory, so all rows are read before it is written */
    bool whole;   /**< all rows lie in `rows`, else the chunk's */
    void *rows;
} tsr_attention_source;

/** A call, its sizes on this rank, and the block that is computed. */
typedef struct tsr_attention_case {
    const tsr_kernel_call *call;
    const tsr_tensor *q, *k, *v, *dout; /**< dout NULL: the op itself */
    const tsr_tensor *mask;             /**< NULL: none */
    void *mask_rows;                    /**< of the block's queries and a chunk's keys */
    const tsr_attention_kernels *kernels;
    const tsr_pointwise_kernels *moves;
    tsr_dtype memory, computed;       /**< dtypes of tensors, and of loops */
    int64_t bytes, real;              /**< of an element of each */
    int64_t batches, heads, kv_heads; /**< of the shards: heads of q, and of k and v */
    int64_t queries, keys, dim, value_dim;
    int64_t *begin, *end; /**< by query: its keys of the shard */
    int64_t *head_begin;  /**< by head of k: its first head of q; one more at the end */
    int64_t lane_begin[TSR_ATTENTION_LANES], lane_end[TSR_ATTENTION_LANES];
    tsr_attention_block block;
    tsr_attention_source sources[2]; /**< of k and v */
    int64_t batch;
    int64_t first_head, head_count;   /**< the block's heads of q, */
    int64_t first_query, query_count; /**< and its queries of each */
    int64_t first_key, key_end;       /**< the keys that some query of the block attends */
} tsr_attention_case;

/** Sets the call's sizes, and gives out memory for what belongs to a block. `gradient` is true for
 * attention_gradient. */
void tsr_attention_measure(const tsr_kernel_call *call, bool gradient, tsr_attention_memory *memory,
                           tsr_attention_case *a);

/** Finds keys and heads of queries, from the global intervals of the shards. */
tsr_status tsr_attention_locate(tsr_attention_case *a, tsr_attention_memory memory);

/** One head of a tensor in batch `a->batch`. */
tsr_attention_head tsr_attention_head_of(const tsr_attention_case *a, const tsr_tensor *tensor, int64_t head);

/** Goes to a head of k and v. */
void tsr_attention_enter(tsr_attention_case *a, int64_t kv_head);

/** Finds the block of queries that begins with head `*head` of q and query `*query`, and moves both
 * to the next block. False: the head of k and v has no further block. */
bool tsr_attention_next_block(tsr_attention_case *a, int64_t kv_head, int64_t *head, int64_t *query);

/** Reads the block's queries, and begins its sums. */
void tsr_attention_read_block(tsr_attention_case *a);

/** The same for the loop `stream`. */
void tsr_attention_read_few(tsr_attention_case *a);

/** Sets first, count and mask of the chunk that begins with key `first`. */
void tsr_attention_begin_chunk(const tsr_attention_case *a, int64_t first, tsr_attention_chunk *chunk);

/** Sets its keys and values, too. */
void tsr_attention_read_chunk(const tsr_attention_case *a, int64_t first, tsr_attention_chunk *chunk);

/** Writes the block's rows of `width` elements to a tensor. */
void tsr_attention_write_block(const tsr_attention_case *a, const tsr_tensor *to, int64_t columns, int64_t width);

/** Writes `count` rows of `width` elements to a head. */
void tsr_attention_write_rows(const tsr_attention_case *a, const void *rows, int64_t count, int64_t columns,
                              int64_t width, tsr_attention_head to);

/** The place among all rows of this rank's queries of a lane of the block. */
int64_t tsr_attention_row(const tsr_attention_case *a, int64_t lane);

/** The block's queries, without padding. */
static inline int64_t tsr_attention_lanes(const tsr_attention_case *a)
{
    return a->head_count * a->query_count;
}

#endif
