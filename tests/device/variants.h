/** Support of the device tests: the tables under test, random draws, and random strides. */
#ifndef TESTS_DEVICE_VARIANTS_H
#define TESTS_DEVICE_VARIANTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the headers above, which cmocka.h needs */
#include <tessera/sys/device.h>

#include <cmocka.h>

typedef struct variant {
    const char *name;
    const tsr_device_table *table;
} variant;

/** Lists the tables under test, at most 3: the host's (host_variants.c) or the CUDA device's
 * (cuda_variants.c). Tables that cannot run here are left out with a message; a test without any is
 * skipped. */
int list_variants(variant out[3]);

/** The seed: TSR_TEST_SEED if it is set, else `fallback`. Failing tests print it. */
uint64_t seed_of(uint64_t fallback);

/** The step from case to case: 1, or `by` if TSR_TEST_THIN is set, as for builds with
 * sanitizers. */
int step_of(int by);

uint64_t draw(uint64_t *state);
int64_t draw_between(uint64_t *state, int64_t low, int64_t high);
void draw_bytes(uint64_t *state, void *memory, size_t bytes);

/** Kinds of strides. */
typedef enum arrangement { ARRANGED_IN_ORDER, ARRANGED_WITH_GAPS, ARRANGED_ANYHOW, ARRANGED_WITH_REPEATS } arrangement;

/**
 * Draws strides for a shape: row-major; with gaps between rows; with permuted dims, gaps anywhere
 * and negative strides; or that with some strides of 0. Returns the number of elements that the box
 * spans, and in `*first` the position of element 0 among them.
 */
int64_t arrange(uint64_t *state, arrangement how, int ndim, const int64_t *shape, int64_t *strides, int64_t *first);

/** The element offset of the `at`-th index in row-major order. */
int64_t offset_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t at);

int64_t count_of(int ndim, const int64_t *shape);

#endif
