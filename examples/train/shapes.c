#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void train_shapes_finish(train_shapes *shapes)
{
    free(shapes->items);
    *shapes = (train_shapes){0};
}

bool train_shapes_add(train_shapes *shapes, const char *name, const int64_t shape[2])
{
    for (size_t i = 0; i < shapes->count; i++)
        if (strcmp(shapes->items[i].name, name) == 0)
            return true;
    if (shapes->count == shapes->room) {
        const size_t room = 2 * shapes->room + 16;
        void *const grown = realloc(shapes->items, room * sizeof *shapes->items);
        if (!grown)
            return false;
        shapes->items = grown;
        shapes->room = room;
    }
    snprintf(shapes->items[shapes->count].name, TRAIN_NAME_BYTES, "%s", name);
    memcpy(shapes->items[shapes->count++].shape, shape, sizeof shapes->items->shape);
    return true;
}

const int64_t *train_shapes_find(const train_shapes *shapes, const char *name, const tsr_layout *layout)
{
    for (size_t i = 0; i < shapes->count && tsr_layout_ndim(layout) == 1; i++) {
        const int64_t *const shape = shapes->items[i].shape;
        const size_t length = strlen(shapes->items[i].name);
        if (strncmp(name, shapes->items[i].name, length) == 0 && (name[length] == '\0' || name[length] == '.') &&
            tsr_layout_shape(layout)[0] == shape[0] * shape[1])
            return shape;
    }
    return NULL;
}
