/* Stacks, such as of experts, whose slices lie in files by themselves. */
#include "files/safetensors.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The call, and a buffer for names. */
typedef struct stack {
    const tsr_safetensors *file;
    size_t count;
    const char *const *patterns;
    const tsr_layout *layout;
    char *name;
    size_t capacity;
} stack;

/* The slice of a pattern at `index`, whose name goes to the buffer; NULL: the file has none. */
static const tsr_safetensors_entry *find_slice(const stack *s, size_t pattern, int64_t index)
{
    const char *const text = s->patterns[pattern], *const star = strchr(text, '*');
    snprintf(s->name, s->capacity, "%.*s%lld%s", (int)(star - text), text, (long long)index, star + 1);
    return tsr_safetensors_find(s->file, s->name);
}

/* Checks a slice's shape, but for the size of its dim 0 where several are joined along it, which is
 * added to `*rows`. */
static tsr_status check_slice(const stack *s, const tsr_safetensors_entry *slice, int64_t *rows)
{
    const int ndim = tsr_layout_ndim(s->layout) - 1, first = s->count > 1;
    const int64_t *const shape = tsr_layout_shape(s->layout) + 1;
    if (slice->ndim != ndim)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s has %d dims, but a slice of the layout has %d",
                              slice->path, slice->name, slice->ndim, ndim);
    for (int i = first; i < ndim; i++)
        if (slice->shape[i] != shape[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: tensor %.200s has size %lld along dim %d, but a slice of the layout has %lld",
                                  slice->path, slice->name, (long long)slice->shape[i], i, (long long)shape[i]);
    if (first && slice->shape[0] > shape[0] - *rows)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT, "%s: tensor %.200s has size %lld along dim 0, but %lld of %lld are left for it",
            slice->path, slice->name, (long long)slice->shape[0], (long long)(shape[0] - *rows), (long long)shape[0]);
    *rows += first ? slice->shape[0] : 0;
    return TSR_OK;
}

/* Checks the slices at `index`, which are joined to one of the layout's. */
static tsr_status check_index(const stack *s, int64_t index)
{
    int64_t rows = 0;
    for (size_t i = 0; i < s->count; i++) {
        const tsr_safetensors_entry *const slice = find_slice(s, i, index);
        if (!slice)
            return tsr_status_set(
                TSR_ERROR_ARGUMENT, "%s: there is no tensor %.200s; the layout has %lld slices %.200s",
                tsr_safetensors_path(s->file), s->name, (long long)tsr_layout_shape(s->layout)[0], s->patterns[i]);
        TSR_TRY(check_slice(s, slice, &rows));
    }
    if (s->count > 1 && rows != tsr_layout_shape(s->layout)[1])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: up to %.200s, tensors have size %lld along dim 0 together, but a slice of the "
                              "layout has %lld",
                              tsr_safetensors_path(s->file), s->name, (long long)rows,
                              (long long)tsr_layout_shape(s->layout)[1]);
    return TSR_OK;
}

static tsr_status check_stack(const stack *s)
{
    const int64_t length = tsr_layout_shape(s->layout)[0];
    for (int64_t index = 0; index < length; index++)
        TSR_TRY(check_index(s, index));
    for (size_t i = 0; i < s->count; i++) {
        const tsr_safetensors_entry *const more = find_slice(s, i, length);
        if (more)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is a tensor %.200s, but the layout ends with %lld",
                                  more->path, more->name, (long long)length - 1);
    }
    return TSR_OK;
}

static tsr_status read_stack(const stack *s, int64_t *bytes_read, tsr_dtensor **out)
{
    const size_t length = (size_t)tsr_layout_shape(s->layout)[0];
    TSR_TRY(check_stack(s));
    /* No more than the file's tensors. */
    tsr_file_part *const parts = malloc((length * s->count + 1) * sizeof *parts);
    if (!parts)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the list of %zu tensors", length * s->count);
    for (size_t i = 0; i < length * s->count; i++) {
        const tsr_safetensors_entry *const slice = find_slice(s, i % s->count, (int64_t)(i / s->count));
        parts[i] = (tsr_file_part){slice->path, slice->offset, slice->dtype, 1};
        for (int dim = 0; dim < slice->ndim; dim++)
            parts[i].count *= slice->shape[dim];
    }
    const tsr_status status = tsr_distribute_file_parts(length * s->count, parts, s->layout, bytes_read, out);
    free(parts);
    return status;
}

/* Checks the patterns, and sets `*longest` to the length of the longest. */
static tsr_status check_patterns(size_t count, const char *const *patterns, size_t *longest)
{
    *longest = 0;
    for (size_t i = 0; i < count; i++) {
        const char *const star = patterns[i] ? strchr(patterns[i], '*') : NULL;
        if (!star || strchr(star + 1, '*'))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_safetensors_distribute_stacked: pattern \"%.200s\" must have one *",
                                  patterns[i] ? patterns[i] : "");
        for (size_t j = 0; j < i; j++)
            if (strcmp(patterns[i], patterns[j]) == 0)
                return tsr_status_set(TSR_ERROR_ARGUMENT,
                                      "tsr_safetensors_distribute_stacked: pattern \"%.200s\" comes twice",
                                      patterns[i]);
        const size_t length = strlen(patterns[i]);
        *longest = length > *longest ? length : *longest;
    }
    return TSR_OK;
}

tsr_status tsr_safetensors_distribute_stacked(const tsr_safetensors *file, size_t count, const char *const *patterns,
                                              const tsr_layout *layout, int64_t *bytes_read, tsr_dtensor **out)
{
    size_t longest;
    if (!file || !patterns || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_safetensors_distribute_stacked: %s is NULL",
                              !file       ? "file"
                              : !patterns ? "patterns"
                              : !layout   ? "layout"
                                          : "out");
    const int least = count > 1 ? 2 : 1;
    if (count == 0 || tsr_layout_ndim(layout) < least)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_safetensors_distribute_stacked: %zu patterns and a layout of %d dims; give at least "
                              "one pattern, and a dim for the stack%s",
                              count, tsr_layout_ndim(layout),
                              count > 1 ? " and one along which slices are joined" : "");
    TSR_TRY(check_patterns(count, patterns, &longest));
    stack s = {file, count, patterns, layout, malloc(longest + 32), longest + 32};
    if (!s.name)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a name of %zu characters", longest + 32);
    const tsr_status status = read_stack(&s, bytes_read, out);
    free(s.name);
    return status;
}
