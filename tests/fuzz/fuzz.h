/** Support of the fuzz targets. Each defines LLVMFuzzerTestOneInput(), which libFuzzer or replay.c
 * calls. */
#ifndef TESSERA_TESTS_FUZZ_H
#define TESSERA_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Ends the program unless `condition` holds, in every build type. */
#define FUZZ_REQUIRE(condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline void *fuzz_memory(size_t bytes)
{
    void *memory = calloc(bytes > 0 ? bytes : 1, 1);
    FUZZ_REQUIRE(memory != NULL);
    return memory;
}

/** A block of exactly `size` bytes, so that the sanitizer sees a read past its end. */
static inline uint8_t *fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_memory(size);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/** fuzz_copy() as a string, with a NUL. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = fuzz_memory(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
