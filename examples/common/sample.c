#include "sample.h"

#include "random.h"

#include <math.h>

static double logit(const tsr_tensor *logits, int64_t token)
{
    return logits->dtype == TSR_F64 ? ((const double *)logits->data)[token] : ((const float *)logits->data)[token];
}

static int64_t first_largest(const tsr_tensor *logits)
{
    int64_t best = 0;
    for (int64_t i = 1; i < logits->shape[0]; i++)
        if (logit(logits, i) > logit(logits, best))
            best = i;
    return best;
}

int64_t llama_choose(const llama_sampling *sampling, const tsr_tensor *logits, uint64_t step)
{
    const int64_t best = first_largest(logits), count = logits->shape[0];
    if (sampling->temperature == 0)
        return best;
    double total = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        total += exp((logit(logits, i) - logit(logits, best)) / sampling->temperature);
    const double drawn = llama_random_unit(sampling->stream, step) * total;
    for (int64_t i = 0; i < count; i++) {
        sum += exp((logit(logits, i) - logit(logits, best)) / sampling->temperature);
        if (sum > drawn)
            return i;
    }
    return best;
}
