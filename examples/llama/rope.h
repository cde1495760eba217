/**
 * Rotary positions: each head's vectors are rotated by angles that grow with the token's position.
 */
#ifndef LLAMA_ROPE_H
#define LLAMA_ROPE_H

#include "config.h"

/** Tables: cos and sin of position p and pair i are at [p * half + i]. Read-only once made. */
typedef struct llama_rope {
    int64_t half; /**< head_dim / 2 */
    float *cosines, *sines;
} llama_rope;

/**
 * The angle per position, in radians, of each pair i of a head; `out` has room for head_dim / 2.
 */
void llama_rope_frequencies(const llama_rope_config *config, int64_t head_dim, float *out);

/** Makes tables for positions 0 to positions - 1. */
tsr_status llama_rope_init(llama_rope *rope, const llama_rope_config *config, int64_t head_dim, int64_t positions);
void llama_rope_finish(llama_rope *rope);

/** Rotates `x`, of shape (rows, heads, head_dim), in place; row r is at position first + r. */
void llama_rope_apply(const llama_rope *rope, float *x, int64_t rows, int64_t heads, int64_t first);

#endif
