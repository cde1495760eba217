/** What a call costs: the memory that it takes from its context, and the time of the processor. */
#ifndef TESTS_METER_H
#define TESTS_METER_H

#include <stddef.h>
#include <tessera/context.h>

typedef struct meter {
    size_t bound;      /**< bytes beyond which there is no memory */
    size_t used, most; /**< most: since meter_begin() */
    size_t before;
    double began;
} meter;

enum { MEBIBYTE = 1 << 20 };

/** A context whose memory `m` counts. One thread. */
tsr_status meter_context(meter *m, tsr_context **out);

void meter_begin(meter *m);
double meter_seconds(const meter *m);
/** Bytes that the call had at most. */
size_t meter_memory(const meter *m);
/** Bytes that the call has not given back. */
size_t meter_left(const meter *m);

#endif
