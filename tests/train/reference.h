/** A dense model of plain loops in f64, forward and backward, whose numbers have bounds of their
 * errors (number.h): what a training's first step on any mesh is compared with. */
#ifndef TESTS_TRAIN_REFERENCE_H
#define TESTS_TRAIN_REFERENCE_H

#include "config.h"
#include "number.h"

enum { REFERENCE_MOST = 64 };

/** A weight, and what its gradient is. */
typedef struct reference_weight {
    char name[96];
    int64_t count;
    number *values, *gradients;
} reference_weight;

typedef struct reference {
    const llama_config *config; /**< borrowed */
    int64_t batch, length;
    const int64_t *tokens, *targets; /**< (batch, length), borrowed */
    int count;
    reference_weight weights[REFERENCE_MOST];
    number loss, router; /**< the mean cross-entropy, and the loss that balances experts */
} reference;

/** Adds a weight. Free all by reference_finish(). */
void reference_add(reference *r, const char *name, int64_t count, const double *values);

/** The weight of that name; fails where there is none. */
reference_weight *reference_find(reference *r, const char *name);

/** Computes losses and gradients. */
void reference_run(reference *r);
void reference_finish(reference *r);

#endif
