#include "place/blas.h"

void blas_gather(tsr_context *context, blas_facts *out)
{
    (void)context;
    *out = (blas_facts){.text = "none"};
}
