#include "rope.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

/*
 * Llama 3.1 extends the context by slowing down the pairs that rotate slowly. Pairs whose
 * wavelength is longer than original / low_freq_factor positions are slowed by `factor`; those
 * shorter than original / high_freq_factor are not; those between get a blend. (Source:
 * models/llama3_1/api/model.py, apply_scaling, in github.com/meta-llama/llama-models; transformers,
 * modeling_rope_utils.py.)
 */
static double slow_down(const llama_rope_config *config, double frequency)
{
    const double waves = config->original_positions * frequency / (2 * PI);
    if (waves < config->low_frequency_factor)
        return frequency / config->factor;
    if (waves > config->high_frequency_factor)
        return frequency;
    const double blend =
        (waves - config->low_frequency_factor) / (config->high_frequency_factor - config->low_frequency_factor);
    return (1 - blend) * frequency / config->factor + blend * frequency;
}

void llama_rope_frequencies(const llama_rope_config *config, int64_t head_dim, float *out)
{
    for (int64_t i = 0; i < head_dim / 2; i++) {
        const double frequency = pow(config->theta, -2.0 * (double)i / (double)head_dim);
        if (config->type == LLAMA_ROPE_LLAMA3)
            out[i] = (float)slow_down(config, frequency);
        else
            out[i] = (float)(config->type == LLAMA_ROPE_LINEAR ? frequency / config->factor : frequency);
    }
}

tsr_status llama_rope_init(llama_rope *rope, const llama_rope_config *config, int64_t head_dim, int64_t positions)
{
    const int64_t half = head_dim / 2;
    float *const frequencies = calloc((size_t)half, sizeof(float));
    *rope = (llama_rope){half, calloc((size_t)(positions * half), sizeof(float)),
                         calloc((size_t)(positions * half), sizeof(float))};
    if (!frequencies || !rope->cosines || !rope->sines) {
        free(frequencies);
        llama_rope_finish(rope);
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the rotary tables of %lld positions",
                              (long long)positions);
    }
    llama_rope_frequencies(config, head_dim, frequencies);
    for (int64_t p = 0; p < positions; p++)
        for (int64_t i = 0; i < half; i++) {
            /* Models are trained with angles rounded to f32. */
            const float angle = (float)p * frequencies[i];
            rope->cosines[p * half + i] = cosf(angle);
            rope->sines[p * half + i] = sinf(angle);
        }
    free(frequencies);
    return TSR_OK;
}

void llama_rope_finish(llama_rope *rope)
{
    free(rope->cosines);
    free(rope->sines);
    *rope = (llama_rope){0};
}

/* Rotates one head. In the Hugging Face order, element i of a head pairs with element i + half. */
static void turn(float *head, const float *cosines, const float *sines, int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        const float x = head[i], y = head[half + i];
        head[i] = x * cosines[i] - y * sines[i];
        head[half + i] = y * cosines[i] + x * sines[i];
    }
}

void llama_rope_apply(const llama_rope *rope, float *x, int64_t rows, int64_t heads, int64_t first)
{
    const int64_t half = rope->half;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < heads; h++)
            turn(x + (r * heads + h) * 2 * half, rope->cosines + (first + r) * half, rope->sines + (first + r) * half,
                 half);
}
