/** The matrices that are kept with one dim, and so cut by elements. */
#ifndef TRAIN_SHAPES_H
#define TRAIN_SHAPES_H

#include <tessera/optimizer.h>

#include <stdbool.h>

#define TRAIN_NAME_BYTES 128

/** A list of matrices by name; begin with zeros. */
typedef struct train_shapes {
    size_t count, room;
    struct {
        char name[TRAIN_NAME_BYTES];
        int64_t shape[2];
    } * items; /**< owned */
} train_shapes;

void train_shapes_finish(train_shapes *shapes);

/** Adds a matrix, unless it is there; false: there is no memory. */
bool train_shapes_add(train_shapes *shapes, const char *name, const int64_t shape[2]);

/** The shape of the matrix that the weight `name`, or a state "WEIGHT.suffix",
 * holds in one dim of `layout`; NULL: it is what its layout says. Borrowed. */
const int64_t *train_shapes_find(const train_shapes *shapes, const char *name, const tsr_layout *layout);

#endif
