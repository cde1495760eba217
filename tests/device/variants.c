#include "variants.h"

#include <stdbool.h>

uint64_t seed_of(uint64_t fallback)
{
    const char *const text = getenv("TSR_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : fallback;
}

int step_of(int by)
{
    return getenv("TSR_TEST_THIN") ? by : 1;
}

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t draw_between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(draw(state) % (uint64_t)(high - low + 1));
}

void draw_bytes(uint64_t *state, void *memory, size_t bytes)
{
    unsigned char *const to = memory;
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = draw(state);
        memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

static void permute(uint64_t *state, int ndim, int *order)
{
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    for (int d = ndim - 1; d > 0; d--) {
        const int other = (int)draw_between(state, 0, d), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
}

int64_t arrange(uint64_t *state, arrangement how, int ndim, const int64_t *shape, int64_t *strides, int64_t *first)
{
    int order[TSR_MAX_DIMS];
    int64_t span = 1;
    *first = 0;
    permute(state, ndim, order);
    for (int d = ndim - 1; d >= 0; d--) {
        const int dim = how >= ARRANGED_ANYHOW ? order[d] : d;
        const bool gap = how == ARRANGED_WITH_GAPS ? d < ndim - 1 : how >= ARRANGED_ANYHOW;
        if (gap)
            span += draw_between(state, 0, 3);
        strides[dim] = span;
        if (how == ARRANGED_WITH_REPEATS && draw(state) % 3 == 0) {
            strides[dim] = 0;
            continue;
        }
        span = strides[dim] * (shape[dim] > 0 ? shape[dim] : 1);
        if (how >= ARRANGED_ANYHOW && draw(state) % 4 == 0 && shape[dim] > 0) {
            *first += strides[dim] * (shape[dim] - 1);
            strides[dim] = -strides[dim];
        }
    }
    return span;
}

int64_t offset_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t at)
{
    int64_t sum = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        sum += at % shape[d] * strides[d];
        at /= shape[d];
    }
    return sum;
}

int64_t count_of(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return count;
}
