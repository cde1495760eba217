#include "bench/rows/hand_experts.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__SSE2__)
/* Rows of a multiple of 4 elements whose memory is aligned to 16 bytes may be streamed. */
static int may_stream(const hand_tokens *t, const void *row)
{
    return t->width % 4 == 0 && (uintptr_t)row % 16 == 0;
}

static void stream_row(float *to, const float *from, int64_t width)
{
    for (int64_t i = 0; i < width; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

static void stream_sum(float *out, const float *a, const float *b, float by_a, float by_b, int64_t width)
{
    const __m128 first = _mm_set1_ps(by_a), second = _mm_set1_ps(by_b);
    for (int64_t i = 0; i < width; i += 4)
        _mm_stream_ps(out + i,
                      _mm_add_ps(_mm_mul_ps(first, _mm_loadu_ps(a + i)), _mm_mul_ps(second, _mm_loadu_ps(b + i))));
}

static void fence(void)
{
    _mm_sfence();
}
#else
static int may_stream(const hand_tokens *t, const void *row)
{
    (void)t, (void)row;
    return 0;
}

static void stream_row(float *to, const float *from, int64_t width)
{
    memcpy(to, from, (size_t)width * sizeof *to);
}

static void stream_sum(float *out, const float *a, const float *b, float by_a, float by_b, int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        out[i] = by_a * a[i] + by_b * b[i];
}

static void fence(void) {}
#endif

void hand_dispatch(const hand_tokens *t, int stream)
{
    for (int64_t i = 0; i < t->count * HAND_SLOTS; i++) {
        const float *const from = t->x + i / HAND_SLOTS * t->width;
        if (stream && may_stream(t, t->places[i]))
            stream_row(t->places[i], from, t->width);
        else
            memcpy(t->places[i], from, (size_t)t->width * sizeof *from);
    }
    fence();
}

void hand_combine(const hand_tokens *t, int stream)
{
    for (int64_t token = 0; token < t->count; token++) {
        float *const out = t->out + token * t->width;
        const int64_t at = token * HAND_SLOTS;
        const float *const a = t->places[at], *const b = t->places[at + 1];
        const float by_a = t->weights[at], by_b = t->weights[at + 1];
        if (stream && may_stream(t, out)) {
            stream_sum(out, a, b, by_a, by_b, t->width);
            continue;
        }
        for (int64_t i = 0; i < t->width; i++)
            out[i] = by_a * a[i] + by_b * b[i];
    }
    fence();
}
