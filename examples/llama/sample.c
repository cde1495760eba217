#include "sample.h"

#include "random.h"

#include <math.h>

static int64_t first_largest(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

int64_t llama_choose(const llama_sampling *sampling, const float *logits, int64_t count, uint64_t step)
{
    const int64_t best = first_largest(logits, count);
    if (sampling->temperature == 0)
        return best;
    double total = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        total += exp(((double)logits[i] - logits[best]) / sampling->temperature);
    const double drawn = llama_random_unit(sampling->stream, step) * total;
    for (int64_t i = 0; i < count; i++) {
        sum += exp(((double)logits[i] - logits[best]) / sampling->temperature);
        if (sum > drawn)
            return i;
    }
    return best;
}
