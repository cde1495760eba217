/** Dispatch and combine as a program would write them for rank threads and f32, once it knows where
 * each row goes: what `bench rows --op experts` compares the library's calls with. */
#ifndef TESSERA_TOOLS_BENCH_ROWS_HAND_EXPERTS_H
#define TESSERA_TOOLS_BENCH_ROWS_HAND_EXPERTS_H

#include <stdint.h>

/** Experts that each token chooses. */
enum { HAND_SLOTS = 2 };

/** Tokens of one rank, and where their rows are: in the memory of any rank. */
typedef struct hand_tokens {
    int64_t count, width;
    const float *x;
    float *const *places; /**< count * HAND_SLOTS rows */
    const float *weights; /**< count * HAND_SLOTS */
    float *out;
} hand_tokens;

/** Copies each token to its rows. `stream`: past the cache, where the processor can. */
void hand_dispatch(const hand_tokens *t, int stream);

/** Sums each token's rows, times their weights. */
void hand_combine(const hand_tokens *t, int stream);

#endif
