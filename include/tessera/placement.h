/**
 * @file
 * How one mesh dim holds a tensor: a copy on every rank, a cut along a tensor dim, or terms that
 * are still to be reduced.
 *
 * Placements are plain values, one per mesh dim. They are PyTorch DTensor's Shard, Replicate and
 * Partial; JAX's PartitionSpec names the same cuts from the tensor's side. The text form is
 *
 *     placements := placement { "," placement }
 *     placement  := "R" | "P" [ "(" op ")" ] | "S(" dim { ";" modifier } ")" [ "[" order "]" ]
 *     op         := "sum" | "avg" | "max" | "min" | "prod"
 *     modifier   := "balanced" | "interleave=" k | "blocks=" a,b,.. | "sizes=" a,b,.. | "unit=" u
 */
#ifndef TESSERA_PLACEMENT_H
#define TESSERA_PLACEMENT_H

#include <tessera/dtype.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a mesh dim holds a tensor: a copy, a cut, or a term on every rank. */
typedef enum tsr_placement_kind { TSR_REPLICATE = 0, TSR_SHARD, TSR_PARTIAL } tsr_placement_kind;

/** For tsr_placement.order: the index of the mesh dim. */
#define TSR_ORDER_DEFAULT (-1)

/**
 * A mesh dim of size n cuts a piece of length L into n parts. Plain chunk: c = ceil(L/n), part r =
 * [min(L, c*r), min(L, c*(r+1))). Make values with tsr_shard(), tsr_replicate() and tsr_partial(),
 * then set the modifiers. `sizes` and `blocks` are borrowed for the call that takes the placement.
 */
typedef struct tsr_placement {
    tsr_placement_kind kind;
    int dim;              /**< Shard: the tensor dim */
    int order;            /**< Shard: place among the cuts of its tensor dim, or
                               TSR_ORDER_DEFAULT */
    int balanced;         /**< Shard: the first L mod n parts hold one index more than the rest,
                               instead of chunk */
    int64_t interleave;   /**< Shard: chunk into this many blocks first, then cut each; 0: off (1
                               means the same) */
    int64_t unit;         /**< Shard: cuts fall on multiples of this; 0: off (1 means the same) */
    const int64_t *sizes; /**< Shard: exactly n sizes that sum to L, or NULL; excludes all other
                               modifiers */
    size_t size_count;
    const int64_t *blocks; /**< Shard: sizes of blocks that sum to L, each cut n ways, or NULL;
                                excludes interleave */
    size_t block_count;
    tsr_reduce_op op; /**< Partial: how the terms combine */
} tsr_placement;

/* Makers of placements. They return plain values, whose fields may be changed. */
TSR_API tsr_placement tsr_replicate(void);           /**< a copy on every rank */
TSR_API tsr_placement tsr_shard(int dim);            /**< a chunk of `dim` on each rank */
TSR_API tsr_placement tsr_partial(tsr_reduce_op op); /**< terms that combine by `op` */

/**
 * True if both placements have the same kind, op of a Partial, dim and modifiers of a Shard. A
 * modifier's neutral value is the same as none. Orders are not compared, because an order ranks a
 * placement among others. Neither pointer is NULL; nothing is checked against a tensor. Allocates
 * nothing; any thread.
 */
TSR_API bool tsr_placement_same(const tsr_placement *a, const tsr_placement *b);

/**
 * Parses placements. At most `capacity` go to `out`, and `*count` gets the number in the text. The
 * numbers of sizes= and blocks= go to `numbers`, which the placements then point into; strlen(text)
 * of them always suffice. Allocates nothing; any thread.
 *
 * TSR_ERROR_ARGUMENT: the sentence quotes the text and points at the character that is wrong.
 * `*position`, where not NULL, gets that character's index. PyTorch's spelling, "Shard(0)", is
 * refused with ours. Only the form is checked here; the layout checks, for example, whether a dim
 * is in range.
 */
TSR_API tsr_status tsr_placements_parse(const char *text, tsr_placement *out, int capacity,
                                        int *count, int64_t *numbers, size_t number_capacity,
                                        size_t *position);

/**
 * Prints placements as snprintf() does: writes at most `capacity` bytes with the NUL and returns
 * the length of the whole text. The text parses to the same placements, and parsed text prints back
 * the same placements. Modifiers come in the order balanced, interleave, blocks, sizes, unit,
 * without spaces; defaults are not printed. Orders are printed only where they differ from those of
 * ascending mesh dims.
 */
TSR_API size_t tsr_placements_print(const tsr_placement *placements, int count, char *text,
                                    size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
