/** What the device tests share: the tables under test, random draws, and tensors laid out at random. */
#ifndef TESTS_DEVICE_VARIANTS_H
#define TESTS_DEVICE_VARIANTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the headers above before it. */
#include <cmocka.h>
#include <tessera/sys/device.h>

typedef struct variant {
    const char *name;
    const tsr_device_table *table;
} variant;

/** At most 3: the host's tables (host_variants.c) or the CUDA device's (cuda_variants.c). Those that cannot run here are left out, and
 * said; a test with none is skipped. */
int list_variants(variant out[3]);

/** TSR_TEST_SEED if it is set, else `fallback`; what failing tests print. */
uint64_t seed_of(uint64_t fallback);

/** From case to case: 1, or `by` where TSR_TEST_THIN is set, as it is for builds with sanitizers. */
int step_of(int by);

uint64_t draw(uint64_t *state);
int64_t draw_between(uint64_t *state, int64_t low, int64_t high);
void draw_bytes(uint64_t *state, void *memory, size_t bytes);

/** How to lay dims out in memory. */
typedef enum arrangement { ARRANGED_IN_ORDER, ARRANGED_WITH_GAPS, ARRANGED_ANYHOW, ARRANGED_WITH_REPEATS } arrangement;

/**
 * Strides for a shape: row-major; with gaps between rows; dims permuted, gaps anywhere and some strides negative; and that with some dims
 * of stride 0. Returns how many elements the box spans, and in `*first` the place of element 0 among them.
 */
int64_t arrange(uint64_t *state, arrangement how, int ndim, const int64_t *shape, int64_t *strides, int64_t *first);

/** The element offset of the `at`-th index in row-major order. */
int64_t offset_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t at);

int64_t count_of(int ndim, const int64_t *shape);

#endif
