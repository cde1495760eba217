#include "kernels.h"

#include <math.h>

static inline float sum_of_squares(const float *x, int64_t count)
{
    float lanes[LLAMA_LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LLAMA_LANES <= count; i += LLAMA_LANES)
        for (int lane = 0; lane < LLAMA_LANES; lane++)
            lanes[lane] += x[i + lane] * x[i + lane];
    for (; i < count; i++)
        sum += x[i] * x[i];
    for (int lane = 0; lane < LLAMA_LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static inline float largest(const float *x, int64_t count)
{
    float lanes[LLAMA_LANES], most = x[0];
    int64_t i = 0;
    for (int lane = 0; lane < LLAMA_LANES; lane++)
        lanes[lane] = x[0];
    for (; i + LLAMA_LANES <= count; i += LLAMA_LANES)
        for (int lane = 0; lane < LLAMA_LANES; lane++)
            lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
    for (; i < count; i++)
        most = x[i] > most ? x[i] : most;
    for (int lane = 0; lane < LLAMA_LANES; lane++)
        most = lanes[lane] > most ? lanes[lane] : most;
    return most;
}

static inline float sum_of(const float *x, int64_t count)
{
    float lanes[LLAMA_LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LLAMA_LANES <= count; i += LLAMA_LANES)
        for (int lane = 0; lane < LLAMA_LANES; lane++)
            lanes[lane] += x[i + lane];
    for (; i < count; i++)
        sum += x[i];
    for (int lane = 0; lane < LLAMA_LANES; lane++)
        sum += lanes[lane];
    return sum;
}

LLAMA_KERNEL void llama_rms_norm(const float *x, const float *weight, int64_t rows, int64_t width, float epsilon,
                                 float *y)
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        const float scale = 1.0f / sqrtf(sum_of_squares(x, width) / (float)width + epsilon);
        for (int64_t i = 0; i < width; i++)
            y[i] = weight[i] * (x[i] * scale);
    }
}

LLAMA_KERNEL void llama_silu_multiply(float *gate, const float *up, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        gate[i] = gate[i] / (1.0f + llama_exp(-gate[i])) * up[i];
}

LLAMA_KERNEL void llama_add(float *x, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] += y[i];
}

LLAMA_KERNEL void llama_softmax(float *x, int64_t count)
{
    const float most = largest(x, count);
    for (int64_t i = 0; i < count; i++)
        x[i] = llama_exp(x[i] - most);
    const float scale = 1.0f / sum_of(x, count);
    for (int64_t i = 0; i < count; i++)
        x[i] *= scale;
}
