/** Which elements of a tensor are in no box yet. */
#ifndef TSR_TENSOR_COVER_H
#define TSR_TENSOR_COVER_H

#include <tessera/api.h>
#include <tessera/context.h>

#include <stdbool.h>

typedef struct tsr_cover_box {
    int64_t begin[TSR_MAX_DIMS], end[TSR_MAX_DIMS];
} tsr_cover_box;

/** The rest of a tensor as boxes that do not overlap. Zeroed, it owns nothing. */
typedef struct tsr_cover {
    tsr_context *context; /**< whose memory `rest` is */
    int ndim;
    tsr_cover_box *rest;
    size_t count, capacity;
} tsr_cover;

/** Begins with the whole tensor. tsr_cover_end() follows, also after an error. */
tsr_status tsr_cover_begin(tsr_cover *cover, tsr_context *context, int ndim, const int64_t *shape);

/** Takes a box away. `*whole`: true if all of its elements were there. */
tsr_status tsr_cover_take(tsr_cover *cover, const tsr_cover_box *box, bool *whole);

/** The box of the rest that begins first, in row-major order; NULL: nothing is left. Borrowed. */
const tsr_cover_box *tsr_cover_first(const tsr_cover *cover);

/** Frees the boxes. */
void tsr_cover_end(tsr_cover *cover);

/** Prints a box as "[0:4, 2:3]" or "[]", like snprintf(). */
size_t tsr_cover_print(const tsr_cover_box *box, int ndim, char *text, size_t capacity);

#endif
