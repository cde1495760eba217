/** Measures the cost of a call: memory from its context, and processor time. */
#ifndef TESTS_METER_H
#define TESTS_METER_H

#include <tessera/context.h>

#include <stddef.h>

typedef struct meter {
    size_t bound;      /**< bytes above which allocations fail */
    size_t used, most; /**< bytes now, and the most since meter_begin() */
    size_t before;
    double began;
} meter;

enum { MEBIBYTE = 1 << 20 };

/** A context whose memory `m` counts; for one thread. */
tsr_status meter_context(meter *m, tsr_context **out);

void meter_begin(meter *m);
double meter_seconds(const meter *m);
/** The most bytes that the call held. */
size_t meter_memory(const meter *m);
/** Bytes that the call has not freed. */
size_t meter_left(const meter *m);

#endif
