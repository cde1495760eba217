/** Rotary positions: each head's vectors are turned by angles that grow with the token's position. */
#ifndef LLAMA_ROPE_H
#define LLAMA_ROPE_H

#include "config.h"

/** cos and sin of position p and pair i at [p * head_dim / 2 + i]. Read-only once made. */
typedef struct llama_rope {
    int64_t half; /**< head_dim / 2 */
    float *cosines, *sines;
} llama_rope;

/** The angle that pair i of a head turns by at each position, i in 0..head_dim/2; `out` has room for as many. */
void llama_rope_frequencies(const llama_rope_config *config, int64_t head_dim, float *out);

/** Tables for positions 0..positions. */
tsr_status llama_rope_init(llama_rope *rope, const llama_rope_config *config, int64_t head_dim, int64_t positions);
void llama_rope_finish(llama_rope *rope);

/** Turns `x`, of shape (rows, heads, head_dim), in place; row r is at position first + r. */
void llama_rope_apply(const llama_rope *rope, float *x, int64_t rows, int64_t heads, int64_t first);

#endif
