/**
 * Kernels between the model's linear layers, on local shards: plain loops that compilers vectorise.
 *
 * Sums run in a fixed order over LLAMA_LANES partial sums, so that results do not depend on the
 * processor.
 */
#ifndef LLAMA_KERNELS_H
#define LLAMA_KERNELS_H

#include <stdint.h>
#include <string.h>

/* Compiled once per instruction set; the loader picks one. Sanitizers cannot run that early. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define LLAMA_KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LLAMA_KERNEL
#endif

#define LLAMA_LANES 16

/** y = x * weight / rms(x), row by row; x and y are (rows, width), weight is (width). (Zhang and
 * Sennrich, "Root Mean Square Layer Normalization", 2019.) */
void llama_rms_norm(const float *x, const float *weight, int64_t rows, int64_t width, float epsilon, float *y);

/** gate = silu(gate) * up, where silu(x) = x / (1 + exp(-x)). */
void llama_silu_multiply(float *gate, const float *up, int64_t count);

/** x += y. */
void llama_add(float *x, const float *y, int64_t count);

/** x = softmax(x), for count > 0. */
void llama_softmax(float *x, int64_t count);

/** exp(x) to about 2 ulp, without branches, so that loops over it are vectorised: 2^n times a
 * polynomial in the remainder, whose magnitude is at most ln(2)/2. Arguments are clamped to [-87,
 * 88], where the result is neither denormal nor infinite. */
static inline float llama_exp(float x)
{
    const float shift = 0x1.8p23f; /* adding it leaves the nearest whole number in the low bits */
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float shifted = x * 0x1.715476p+0f + shift; /* 1 / ln 2 */
    const float n = shifted - shift;
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f; /* ln 2 in two parts, the first times n exact */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif
