/* Kernels of ops in a build without them. */
#include "bench/calibrate/kernels.h"

void kernels_choose(const kernels_request *r, kernels *out)
{
    (void)r;
    out->count = 0;
}

int kernels_measure(place *p, const kernels_request *r, int status, kernels *k)
{
    (void)p;
    (void)r;
    (void)k;
    return status;
}
