#include "place/launch_advice.h"

#include <stdio.h>

void launch_advice(int wanted, int joined, char advice[LAUNCH_ADVICE_BYTES])
{
    snprintf(advice, LAUNCH_ADVICE_BYTES, "%d %s launched; start it by mpirun -n %d", joined,
             joined == 1 ? "rank was" : "ranks were", wanted);
}
