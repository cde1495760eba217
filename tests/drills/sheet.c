#include "sheet.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5, MARGIN = 32 };

/* Draws strides from the innermost dim outwards, each with or without a gap. */
static int64_t draw_strides(drill_draws *draws, tsr_tensor *tensor)
{
    int dims[RULE_DIMS] = {0, 1, 2, 3};
    int64_t stride = 1 + drill_below(draws, 2);
    for (int d = tensor->ndim - 1; d > 0; d--) {
        const int other = (int)drill_below(draws, d + 1), kept = dims[d];
        dims[d] = dims[other];
        dims[other] = kept;
    }
    for (int d = 0; d < tensor->ndim; d++) {
        tensor->strides[dims[d]] = stride;
        stride *= tensor->shape[dims[d]] + drill_below(draws, 3);
        stride += stride == 0;
    }
    return stride;
}

bool sheet_create(const rule_layout *layout, int64_t rank, bool strided, drill_draws *draws, sheet *out)
{
    int64_t coordinate[RULE_DIMS], shape[RULE_DIMS], count = 1;
    memset(out, 0, sizeof *out);
    out->inside = rule_mesh_find(&layout->mesh, rank, coordinate);
    if (!out->inside)
        return true;
    for (int d = 0; d < layout->ndim; d++) {
        shape[d] = rule_owned(layout, coordinate, d, RULE_DIMS, out->owned[d]);
        count *= shape[d];
    }
    out->tensor = tsr_tensor_contiguous(NULL, layout->dtype, layout->ndim, shape);
    if (strided)
        count = draw_strides(draws, &out->tensor);
    out->bytes = ((size_t)count * rule_bytes(layout->dtype) + 2 * (size_t)MARGIN + 63) / 64 * 64;
    out->memory = aligned_alloc(64, out->bytes);
    out->tensor.data = out->memory + MARGIN;
    if (out->memory)
        sheet_blank(out);
    return out->memory;
}

void sheet_destroy(sheet *s)
{
    free(s->memory);
    memset(s, 0, sizeof *s);
}

void sheet_blank(sheet *s)
{
    if (s->inside)
        memset(s->memory, PATTERN, s->bytes);
}

/* Writes the expected bytes of the whole sheet to `memory`. */
static void draw_image(const sheet *s, const rule_move *move, rule_values values, int64_t rank, sheet_value *value,
                       unsigned char *memory)
{
    const tsr_tensor *t = &s->tensor;
    const size_t bytes = rule_bytes(t->dtype);
    int64_t count = 1;
    for (int d = 0; d < t->ndim; d++)
        count *= t->shape[d];
    memset(memory, PATTERN, s->bytes);
    for (int64_t local = 0; local < count; local++) {
        int64_t index[RULE_DIMS], left = local, global = 0, offset = 0;
        for (int d = t->ndim - 1; d >= 0; d--) {
            index[d] = left % t->shape[d];
            left /= t->shape[d];
        }
        for (int d = 0; d < t->ndim; d++) {
            global = global * move->src.shape[d] + s->owned[d][index[d]];
            offset += index[d] * t->strides[d];
        }
        value(move, values, rank, global, memory + MARGIN + (size_t)offset * bytes);
    }
}

void sheet_fill(sheet *s, const rule_move *move, rule_values values, int64_t rank, sheet_value *value)
{
    if (s->inside)
        draw_image(s, move, values, rank, value, s->memory);
}

bool sheet_holds(const sheet *s, const rule_move *move, rule_values values, int64_t rank, sheet_value *value,
                 size_t *at)
{
    if (!s->inside)
        return true;
    unsigned char *image = malloc(s->bytes);
    *at = 0;
    if (!image)
        return false;
    draw_image(s, move, values, rank, value, image);
    while (*at < s->bytes && image[*at] == s->memory[*at])
        ++*at;
    free(image);
    return *at == s->bytes;
}
