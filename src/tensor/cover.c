#include "tensor/cover.h"

#include "base/checked.h"
#include "base/memory/memory.h"

#include <tessera/sys/status.h>

#include <stdio.h>

static bool is_empty(const tsr_cover_box *box, int ndim)
{
    for (int i = 0; i < ndim; i++)
        if (box->begin[i] >= box->end[i])
            return true;
    return false;
}

static int64_t count_elements(const tsr_cover_box *box, int ndim)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= box->end[i] - box->begin[i];
    return count;
}

static tsr_status add(tsr_cover *cover, const tsr_cover_box *box)
{
    if (cover->count == cover->capacity) {
        void *grown = cover->rest;
        TSR_TRY(tsr_reserve(cover->context, &grown, &cover->capacity, cover->count + 1, sizeof *cover->rest));
        cover->rest = grown;
    }
    cover->rest[cover->count++] = *box;
    return TSR_OK;
}

tsr_status tsr_cover_begin(tsr_cover *cover, tsr_context *context, int ndim, const int64_t *shape)
{
    tsr_cover_box all = {{0}, {0}};
    for (int i = 0; i < ndim; i++)
        all.end[i] = shape[i];
    *cover = (tsr_cover){.context = context, .ndim = ndim};
    return is_empty(&all, ndim) ? TSR_OK : add(cover, &all);
}

/* Cuts what lies around `box` off `part`, and adds it to the rest. What is left of `part` is in
 * `box`. */
static tsr_status add_around(tsr_cover *cover, tsr_cover_box *part, const tsr_cover_box *box)
{
    for (int i = 0; i < cover->ndim; i++) {
        tsr_cover_box before = *part, behind = *part;
        before.end[i] = box->begin[i];
        behind.begin[i] = box->end[i];
        if (before.begin[i] < before.end[i])
            TSR_TRY(add(cover, &before));
        if (behind.begin[i] < behind.end[i])
            TSR_TRY(add(cover, &behind));
        part->begin[i] = tsr_max_i64(part->begin[i], box->begin[i]);
        part->end[i] = tsr_min_i64(part->end[i], box->end[i]);
    }
    return TSR_OK;
}

static bool meets(const tsr_cover_box *a, const tsr_cover_box *b, int ndim)
{
    for (int i = 0; i < ndim; i++)
        if (a->end[i] <= b->begin[i] || b->end[i] <= a->begin[i])
            return false;
    return true;
}

tsr_status tsr_cover_take(tsr_cover *cover, const tsr_cover_box *box, bool *whole)
{
    int64_t wanted = is_empty(box, cover->ndim) ? 0 : count_elements(box, cover->ndim);
    for (size_t i = 0; i < cover->count && wanted > 0;) {
        tsr_cover_box part = cover->rest[i];
        if (!meets(&part, box, cover->ndim)) {
            i++;
            continue;
        }
        cover->rest[i] = cover->rest[--cover->count];
        TSR_TRY(add_around(cover, &part, box));
        wanted -= count_elements(&part, cover->ndim);
    }
    *whole = wanted == 0;
    return TSR_OK;
}

static bool begins_before(const tsr_cover_box *a, const tsr_cover_box *b, int ndim)
{
    for (int i = 0; i < ndim; i++)
        if (a->begin[i] != b->begin[i])
            return a->begin[i] < b->begin[i];
    return false;
}

const tsr_cover_box *tsr_cover_first(const tsr_cover *cover)
{
    const tsr_cover_box *first = cover->count > 0 ? &cover->rest[0] : NULL;
    for (size_t i = 1; i < cover->count; i++)
        if (begins_before(&cover->rest[i], first, cover->ndim))
            first = &cover->rest[i];
    return first;
}

void tsr_cover_end(tsr_cover *cover)
{
    tsr_release(cover->context, cover->rest);
    cover->rest = NULL;
}

size_t tsr_cover_print(const tsr_cover_box *box, int ndim, char *text, size_t capacity)
{
    size_t length = (size_t)snprintf(text, capacity, "[");
    for (int i = 0; i < ndim; i++) {
        const size_t at = length < capacity ? length : capacity;
        length += (size_t)snprintf(text + at, capacity - at, "%s%lld:%lld", i > 0 ? ", " : "", (long long)box->begin[i],
                                   (long long)box->end[i]);
    }
    const size_t at = length < capacity ? length : capacity;
    return length + (size_t)snprintf(text + at, capacity - at, "]");
}
