#include "ops/rules/parts.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

void tsr_parts_clear(tsr_parts *parts)
{
    if (parts->context) {
        tsr_release(parts->context, parts->begin);
        tsr_release(parts->context, parts->intervals);
    }
    memset(parts, 0, sizeof *parts);
}

const tsr_interval *tsr_parts_get(const tsr_parts *parts, size_t i, size_t *count)
{
    *count = parts->begin[i + 1] - parts->begin[i];
    return parts->intervals + parts->begin[i];
}

size_t tsr_parts_place(const tsr_parts *parts, const int64_t *coordinate)
{
    size_t place = 0;
    for (int k = 0; k < TSR_MAX_DIMS; k++) {
        if (parts->dims >> k & 1)
            place = place * (size_t)parts->extent[k] + (size_t)coordinate[k];
    }
    return place;
}

bool tsr_parts_advance(const tsr_parts *parts, unsigned dims, int64_t *coordinate)
{
    for (int k = TSR_MAX_DIMS - 1; k >= 0; k--) {
        if (!(dims >> k & 1))
            continue;
        if (++coordinate[k] < parts->extent[k])
            return true;
        coordinate[k] = 0;
    }
    return false;
}

static tsr_status refuse_number(void)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "a compound is cut in more than %zu pieces; make them longer or fewer",
                          TSR_PARTS_MOST);
}

/* Begins an empty list for the mesh dims of `dims`. */
static tsr_status begin_parts(const tsr_parts *like, unsigned dims, int64_t size, tsr_parts *out)
{
    void *begin;
    *out = (tsr_parts){.context = like->context, .size = size, .dims = dims, .count = 1};
    for (int k = 0; k < TSR_MAX_DIMS; k++) {
        out->extent[k] = dims >> k & 1 ? like->extent[k] : 1;
        if (__builtin_mul_overflow(out->count, (size_t)out->extent[k], &out->count) || out->count > TSR_PARTS_MOST)
            return refuse_number();
    }
    TSR_TRY(tsr_allocate(out->context, (out->count + 1) * sizeof(size_t), &begin));
    out->begin = begin;
    out->begin[0] = 0;
    return TSR_OK;
}

/* Makes room for `more` intervals behind the `used` ones. */
static tsr_status reserve(tsr_parts *parts, size_t used, size_t more)
{
    void *larger;
    if (used + more <= parts->capacity)
        return TSR_OK;
    if (more > TSR_PARTS_MOST || used + more > TSR_PARTS_MOST)
        return refuse_number();
    const size_t capacity = 2 * (used + more);
    TSR_TRY(tsr_allocate(parts->context, capacity * sizeof(tsr_interval), &larger));
    if (used)
        memcpy(larger, parts->intervals, used * sizeof(tsr_interval));
    tsr_release(parts->context, parts->intervals);
    parts->intervals = larger;
    parts->capacity = capacity;
    return TSR_OK;
}

/* Adds an interval behind all others of a part, with the last one of which it may touch. */
static tsr_status append(tsr_parts *parts, size_t part, int64_t begin, int64_t end)
{
    size_t used = parts->begin[part + 1];
    if (begin == end)
        return TSR_OK;
    if (used > parts->begin[part] && parts->intervals[used - 1].end == begin) {
        parts->intervals[used - 1].end = end;
        return TSR_OK;
    }
    TSR_TRY(reserve(parts, used, 1));
    parts->intervals[used] = (tsr_interval){begin, end};
    parts->begin[part + 1]++;
    return TSR_OK;
}

static void describe_mesh(const tsr_mesh *mesh, tsr_parts *like)
{
    *like = (tsr_parts){.context = tsr_mesh_context(mesh)};
    for (int k = 0; k < TSR_MAX_DIMS; k++)
        like->extent[k] = k < tsr_mesh_ndim(mesh) ? tsr_mesh_size(mesh, k) : 1;
}

static tsr_status list_layout(const tsr_layout *layout, tsr_parts *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    for (size_t i = 0; i < out->count; i++) {
        size_t count;
        const size_t used = out->begin[i];
        TSR_TRY(tsr_layout_intervals(layout, coordinate, 0, NULL, 0, &count));
        TSR_TRY(reserve(out, used, count));
        TSR_TRY(tsr_layout_intervals(layout, coordinate, 0, out->intervals + used, count, &count));
        out->begin[i + 1] = used + count;
        tsr_parts_advance(out, out->dims, coordinate);
    }
    return TSR_OK;
}

tsr_status tsr_parts_list(const tsr_mesh *mesh, int64_t size, const tsr_placement *cuts, tsr_parts *out)
{
    tsr_parts like;
    unsigned dims = 0;
    tsr_layout *layout;
    describe_mesh(mesh, &like);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        dims |= cuts[k].kind == TSR_SHARD && tsr_mesh_size(mesh, k) > 1 ? 1u << k : 0;
    memset(out, 0, sizeof *out);
    TSR_TRY(tsr_layout_create(mesh, cuts, 1, &size, TSR_U8, &layout));
    tsr_status status = begin_parts(&like, dims, size, out);
    if (status == TSR_OK)
        status = list_layout(layout, out);
    tsr_layout_destroy(layout);
    if (status != TSR_OK)
        tsr_parts_clear(out);
    return status;
}

static int64_t count_indices(const tsr_interval *intervals, size_t count)
{
    int64_t indices = 0;
    for (size_t i = 0; i < count; i++)
        indices += intervals[i].end - intervals[i].begin;
    return indices;
}

static int compare_intervals(const void *a, const void *b)
{
    const int64_t x = ((const tsr_interval *)a)->begin, y = ((const tsr_interval *)b)->begin;
    return (x > y) - (x < y);
}

/* Sorts the intervals of a part, the last one, and joins those that touch or overlap. */
static void join_intervals(tsr_parts *parts, size_t part)
{
    const size_t first = parts->begin[part];
    size_t last = first;
    tsr_interval *const all = parts->intervals;
    const size_t count = parts->begin[part + 1] - first;
    if (count == 0)
        return;
    qsort(all + first, count, sizeof *all, compare_intervals);
    for (size_t i = first + 1; i < first + count; i++) {
        if (all[i].begin > all[last].end)
            all[++last] = all[i];
        else if (all[i].end > all[last].end)
            all[last].end = all[i].end;
    }
    parts->begin[part + 1] = last + 1;
}

/* The indices along one factor, of `size` and with `minor` indices behind it, that each part has.
 * */
static tsr_status project(const tsr_parts *parts, int64_t size, int64_t minor, tsr_parts *out)
{
    TSR_TRY(begin_parts(parts, parts->dims, size, out));
    for (size_t i = 0; i < parts->count; i++) {
        size_t count;
        const tsr_interval *const own = tsr_parts_get(parts, i, &count);
        size_t used = out->begin[i];
        TSR_TRY(reserve(out, used, 2 * count));
        for (size_t j = 0; j < count; j++) {
            const int64_t from = own[j].begin / minor, to = (own[j].end - 1) / minor;
            const bool all = to - from + 1 >= size, wraps = !all && from % size > to % size;
            const int64_t begin = all ? 0 : from % size, end = all ? size : to % size + 1;
            if (wraps)
                out->intervals[used++] = (tsr_interval){0, end};
            out->intervals[used++] = (tsr_interval){begin, wraps ? size : end};
        }
        out->begin[i + 1] = used;
        join_intervals(out, i);
    }
    return TSR_OK;
}

static bool are_same(const tsr_parts *parts, size_t a, size_t b)
{
    size_t ours, theirs;
    const tsr_interval *const x = tsr_parts_get(parts, a, &ours), *const y = tsr_parts_get(parts, b, &theirs);
    return ours == theirs && (ours == 0 || memcmp(x, y, ours * sizeof *x) == 0);
}

static bool is_empty(const tsr_parts *parts, size_t i)
{
    return parts->begin[i] == parts->begin[i + 1];
}

/* True if parts that have indices differ along mesh dim k. */
static bool depends(const tsr_parts *parts, int k)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    const unsigned others = parts->dims & ~(1u << k);
    do {
        size_t first = parts->count;
        for (coordinate[k] = 0; coordinate[k] < parts->extent[k]; coordinate[k]++) {
            const size_t place = tsr_parts_place(parts, coordinate);
            if (is_empty(parts, place))
                continue;
            if (first < parts->count && !are_same(parts, first, place))
                return true;
            first = place;
        }
        coordinate[k] = 0;
    } while (tsr_parts_advance(parts, others, coordinate));
    return false;
}

/* Projections of parts on factors, of which a factor's depend on some mesh dims alone. */
typedef struct division {
    const tsr_parts *parts;
    int count;
    const int64_t *sizes;
    const int *hint;
    tsr_parts full[TSR_MAX_DIMS]; /* projections, for all mesh dims that cut the parts */
    unsigned dims[TSR_MAX_DIMS];  /* those on which a factor's depend */
    int *mesh_dim;                /* one that does not fit */
} division;

static tsr_status project_all(division *d)
{
    int64_t minor = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        TSR_TRY(project(d->parts, d->sizes[i], minor, &d->full[i]));
        minor *= d->sizes[i];
    }
    return TSR_OK;
}

/* True if each part is as large as the product of its projections, and so is that product. */
static bool are_products(const division *d)
{
    for (size_t part = 0; part < d->parts->count; part++) {
        size_t count;
        int64_t product = 1;
        for (int i = 0; i < d->count; i++) {
            const tsr_interval *const own = tsr_parts_get(&d->full[i], part, &count);
            product *= count_indices(own, count);
        }
        const tsr_interval *const all = tsr_parts_get(d->parts, part, &count);
        if (product != count_indices(all, count))
            return false;
    }
    return true;
}

/* Finds the mesh dims on which each factor's parts depend; false: one cuts two factors. */
static bool find_dims(division *d, unsigned *assigned)
{
    *assigned = 0;
    for (int k = 0; k < TSR_MAX_DIMS; k++) {
        if (!(d->parts->dims >> k & 1))
            continue;
        for (int i = 0; i < d->count; i++) {
            if (!depends(&d->full[i], k))
                continue;
            if (*assigned >> k & 1) {
                *d->mesh_dim = k;
                return false;
            }
            *assigned |= 1u << k;
            d->dims[i] |= 1u << k;
        }
    }
    return true;
}

/* True if a factor's parts at equal coordinates in its own mesh dims are equal where there are any;
 * `source[place]` gets such a part + 1, or 0 for none. */
static bool find_sources(const division *d, int factor, size_t *source)
{
    const tsr_parts *const full = &d->full[factor];
    tsr_parts own = *full;
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    own.dims = d->dims[factor];
    for (size_t i = 0; i < full->count; i++) {
        const size_t place = tsr_parts_place(&own, coordinate);
        if (!is_empty(full, i)) {
            if (source[place] && !are_same(full, source[place] - 1, i))
                return false;
            source[place] = i + 1;
        }
        tsr_parts_advance(full, full->dims, coordinate);
    }
    return true;
}

static tsr_status copy_sources(const division *d, int factor, const size_t *source, tsr_parts *out)
{
    const tsr_parts *const full = &d->full[factor];
    TSR_TRY(begin_parts(full, d->dims[factor], full->size, out));
    for (size_t i = 0; i < out->count; i++) {
        size_t count = 0;
        const tsr_interval *const own = source[i] ? tsr_parts_get(full, source[i] - 1, &count) : NULL;
        TSR_TRY(reserve(out, out->begin[i], count));
        if (count)
            memcpy(out->intervals + out->begin[i], own, count * sizeof *own);
        out->begin[i + 1] = out->begin[i] + count;
    }
    return TSR_OK;
}

/* Reduces one factor's parts to its own mesh dims. */
static tsr_status reduce(const division *d, int factor, tsr_parts *out, bool *fits)
{
    void *memory;
    const size_t bytes = d->parts->count * sizeof(size_t);
    TSR_TRY(tsr_allocate(d->parts->context, bytes, &memory));
    memset(memory, 0, bytes);
    *fits = find_sources(d, factor, memory);
    const tsr_status status = *fits ? copy_sources(d, factor, memory, out) : TSR_OK;
    tsr_release(d->parts->context, memory);
    return status;
}

/* True if each empty part has an empty part of a factor. */
static bool explain_empty(const division *d, const tsr_parts *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    for (size_t i = 0; i < d->parts->count; i++) {
        bool empty = !is_empty(d->parts, i);
        for (int factor = 0; factor < d->count && !empty; factor++)
            empty = is_empty(&out[factor], tsr_parts_place(&out[factor], coordinate));
        if (!empty)
            return false;
        tsr_parts_advance(d->parts, d->parts->dims, coordinate);
    }
    return true;
}

static tsr_status try_dims(const division *d, tsr_parts *out, bool *fits)
{
    *fits = true;
    tsr_status status = TSR_OK;
    for (int i = 0; i < d->count && status == TSR_OK && *fits; i++)
        status = reduce(d, i, &out[i], fits);
    *fits = status == TSR_OK && *fits && explain_empty(d, out);
    for (int i = 0; i < d->count && !*fits; i++)
        tsr_parts_clear(&out[i]);
    return status;
}

/* Tries all ways of giving mesh dims from k on, that are not assigned yet, to factors. */
static tsr_status assign(division *d, unsigned assigned, tsr_parts *out, bool *fits)
{
    const unsigned left = d->parts->dims & ~assigned;
    if (!left)
        return try_dims(d, out, fits);
    const int k = __builtin_ctz(left);
    for (int turn = d->hint[k] >= 0 ? -1 : 0; turn < d->count; turn++) {
        const int factor = turn < 0 ? d->hint[k] : turn;
        d->dims[factor] |= 1u << k;
        TSR_TRY(assign(d, assigned | 1u << k, out, fits));
        if (*fits)
            return TSR_OK;
        d->dims[factor] &= ~(1u << k);
        *d->mesh_dim = k;
    }
    return TSR_OK;
}

tsr_status tsr_parts_divide(const tsr_parts *parts, int count, const int64_t *sizes, const int *hint, tsr_parts *out,
                            bool *divides, int *mesh_dim)
{
    unsigned assigned;
    division d = {.parts = parts, .count = count, .sizes = sizes, .hint = hint, .mesh_dim = mesh_dim};
    *divides = false;
    *mesh_dim = parts->dims ? __builtin_ctz(parts->dims) : 0;
    memset(out, 0, (size_t)count * sizeof *out);
    tsr_status status = project_all(&d);
    if (status == TSR_OK && are_products(&d) && find_dims(&d, &assigned))
        status = assign(&d, assigned, out, divides);
    for (int i = 0; i < count; i++)
        tsr_parts_clear(&d.full[i]);
    return status;
}

/* Adds the product of major intervals and minor ones, of a dim of `size`, to a part. */
static tsr_status append_product(tsr_parts *out, size_t part, const tsr_interval *major, size_t major_count,
                                 const tsr_interval *minor, size_t minor_count, int64_t size)
{
    const bool whole = minor_count == 1 && minor[0].begin == 0 && minor[0].end == size;
    for (size_t i = 0; i < major_count && minor_count; i++) {
        if (whole) {
            TSR_TRY(append(out, part, major[i].begin * size, major[i].end * size));
            continue;
        }
        for (int64_t index = major[i].begin; index < major[i].end; index++) {
            for (size_t j = 0; j < minor_count; j++)
                TSR_TRY(append(out, part, index * size + minor[j].begin, index * size + minor[j].end));
        }
    }
    return TSR_OK;
}

/* The product of two dims' parts. */
static tsr_status multiply_two(const tsr_parts *like, const tsr_parts *major, const tsr_parts *minor, tsr_parts *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    TSR_TRY(begin_parts(like, major->dims | minor->dims, major->size * minor->size, out));
    for (size_t i = 0; i < out->count; i++) {
        size_t major_count, minor_count;
        const tsr_interval *const a = tsr_parts_get(major, tsr_parts_place(major, coordinate), &major_count);
        const tsr_interval *const b = tsr_parts_get(minor, tsr_parts_place(minor, coordinate), &minor_count);
        out->begin[i + 1] = out->begin[i];
        TSR_TRY(append_product(out, i, a, major_count, b, minor_count, minor->size));
        tsr_parts_advance(out, out->dims, coordinate);
    }
    return TSR_OK;
}

tsr_status tsr_parts_multiply(const tsr_mesh *mesh, int count, const tsr_parts *factors, tsr_parts *out)
{
    tsr_parts like, product = {0};
    describe_mesh(mesh, &like);
    tsr_status status = TSR_OK;
    for (int i = count - 1; i > 0 && status == TSR_OK; i--) {
        tsr_parts larger = {0};
        status = multiply_two(&like, &factors[i - 1], i == count - 1 ? &factors[i] : &product, &larger);
        tsr_parts_clear(&product);
        product = larger;
    }
    if (status != TSR_OK)
        tsr_parts_clear(&product);
    *out = product;
    return status;
}
