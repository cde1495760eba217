/** Tokens of a file, and which of them a step sees: a function of the step and the seed alone. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "file.h"

#include <tessera/npy.h>

#include <stdbool.h>

/** The tokens of a file: bytes, or integers of a .npy. */
typedef struct train_data {
    const char *path; /**< borrowed */
    llama_file text;
    tsr_npy *numbers;  /**< NULL: bytes */
    tsr_tensor tokens; /**< of `numbers` */
    int64_t count;
} train_data;

/** Which windows of the tokens make batches. */
typedef struct train_batches {
    const train_data *data; /**< borrowed */
    int64_t batch, length;
    bool random;
    uint64_t stream; /**< of random numbers (random.h) */
} train_batches;

/**
 * Reads a file, bytes where `vocab_size` is 256, else a .npy of i32 or i64 with one dim. The caller
 * frees it by train_data_finish(). `option` is the name that errors give. TSR_ERROR_ARGUMENT: a
 * token is not in the vocabulary, or there are fewer than `length` + 2. TSR_ERROR_IO: the file
 * cannot be read.
 */
tsr_status train_data_open(const char *option, const char *path, int64_t vocab_size, int64_t length, train_data *out);
void train_data_finish(train_data *data);

int64_t train_data_token(const train_data *data, int64_t index);

/** Where window `row` of step `step` begins. Its inputs are `length` tokens from there on, its
 * targets those from the next one on. */
int64_t train_batches_begin(const train_batches *batches, int64_t step, int64_t row);

#endif
