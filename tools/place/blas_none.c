#include "place/blas.h"

#include <string.h>

void blas_describe(char text[BLAS_TEXT_BYTES])
{
    strcpy(text, "none");
}
