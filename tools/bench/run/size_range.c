#include "bench/run/size_range.h"

#include "cli/real.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Bounds that make a sweep end, and keep bytes far from the end of int64_t. */
#define LEAST_FACTOR 1.001
#define MOST_BYTES   (INT64_C(1) << 50)

int size_read(const char *option, const char *text, int64_t *out)
{
    static const char units[] = "KMGT";
    const size_t length = strlen(text);
    const char *const unit = length > 0 ? strchr(units, toupper((unsigned char)text[length - 1])) : NULL;
    char number[24];
    int64_t value = 0;
    const size_t digits = unit ? length - 1 : length;
    if (digits == 0 || digits > 18 || strspn(text, "0123456789") < digits)
        return complain(EXIT_USAGE, "%s '%s' is not a number of bytes, as 64, 4K, 16M, 1G or 1T", option, text);
    memcpy(number, text, digits);
    number[digits] = '\0';
    value = strtoll(number, NULL, 10);
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (value == 0 || value > MOST_BYTES >> shift)
        return complain(EXIT_REFUSED, "%s is %s; from 1 byte to %lldT can be asked for", option, text,
                        (long long)(MOST_BYTES >> 40));
    *out = value << shift;
    return EXIT_DONE;
}

int size_range_read(const tool_arguments *given, size_range *out)
{
    const char *const begin = given->value[OPT_BEGIN], *const end = given->value[OPT_END];
    *out = (size_range){.factor = 2};
    if (!begin && (end || given->value[OPT_FACTOR]))
        return complain(EXIT_USAGE, "--end and --factor need --begin");
    if (!begin)
        return EXIT_DONE;
    int status = size_read("--begin", begin, &out->begin);
    out->end = out->begin;
    if (status == EXIT_DONE && end)
        status = size_read("--end", end, &out->end);
    if (status == EXIT_DONE)
        status = parse_real("--factor", given->value[OPT_FACTOR], 2, &out->factor);
    if (status == EXIT_DONE && out->factor < LEAST_FACTOR)
        return complain(EXIT_REFUSED, "--factor is %s; it must be %g at least", given->value[OPT_FACTOR], LEAST_FACTOR);
    if (status == EXIT_DONE && out->end < out->begin)
        return complain(EXIT_REFUSED, "--end %s is less than --begin %s", end, begin);
    return status;
}

int64_t size_range_next(const size_range *r, int64_t size)
{
    const double next = (double)size * r->factor;
    const int64_t whole = next > (double)size + 1 ? (int64_t)next : size + 1;
    return next <= (double)r->end ? whole : 0;
}

int64_t size_range_count(const size_range *r)
{
    int64_t count = 0;
    for (int64_t size = r->begin; size > 0; size = size_range_next(r, size))
        count++;
    return count;
}

/* The number of parts into which one side cuts the tensor and each of its dims, and the last dim
 * that it cuts. */
typedef struct parts {
    int64_t all, of_dim[TSR_MAX_DIMS];
    int last_dim;
} parts;

static int count_parts(const tsr_mesh *mesh, const char *option, const char *text, parts *out)
{
    const size_t room = strlen(text) + 1;
    int64_t *const numbers = calloc(room, sizeof *numbers);
    tsr_placement placements[TSR_MAX_DIMS];
    int count = 0;
    if (!numbers)
        return complain(EXIT_REFUSED, "there is no memory for %zu characters of placements", room);
    const tsr_status status = tsr_placements_parse(text, placements, TSR_MAX_DIMS, &count, numbers, room, NULL);
    free(numbers);
    if (status != TSR_OK)
        return complain(EXIT_USAGE, "%s: %s", option, tsr_status_message());
    *out = (parts){.all = 1};
    for (int d = 0; d < TSR_MAX_DIMS; d++)
        out->of_dim[d] = 1;
    for (int d = 0; d < count && d < tsr_mesh_ndim(mesh); d++) {
        const int dim = placements[d].dim;
        if (placements[d].kind != TSR_SHARD)
            continue;
        if (dim >= TSR_MAX_DIMS)
            return complain(EXIT_REFUSED, "the placements cut tensor dim %d; tensors have at most %d dims", dim,
                            TSR_MAX_DIMS);
        out->all *= tsr_mesh_size(mesh, d);
        out->of_dim[dim] *= tsr_mesh_size(mesh, d);
        out->last_dim = dim > out->last_dim ? dim : out->last_dim;
    }
    return EXIT_DONE;
}

/* The greatest multiple of `unit` up to `size`; `size` itself if it is less than `unit`. */
static int64_t round_down(int64_t size, int64_t unit)
{
    return size >= unit ? size - size % unit : size;
}

/* Rows are `unit` times a power of two, at most about as many as columns; columns get the rest. */
static void fill_shape(int64_t elements, int64_t unit, tensor_shape *s)
{
    for (int d = 2; d < s->ndim; d++) {
        s->size[d] = elements >= unit ? unit : 1;
        elements /= s->size[d];
    }
    s->size[0] = elements >= unit ? unit : 1;
    while (s->size[0] <= elements / 4 / s->size[0])
        s->size[0] *= 2;
    s->size[1] = round_down(elements / s->size[0], unit);
    s->size[1] = s->size[1] > 0 ? s->size[1] : 1;
}

/* Lengthens the dims so that every rank holds an element on both sides. */
static void lengthen(const parts *before, const parts *after, tensor_shape *s)
{
    for (int d = 0; d < s->ndim; d++) {
        const int64_t least = before->of_dim[d] > after->of_dim[d] ? before->of_dim[d] : after->of_dim[d];
        s->size[d] = s->size[d] > least ? s->size[d] : least;
    }
}

int choose_shape(const tsr_mesh *mesh, const char *from, const char *to, tsr_dtype dtype, int64_t bytes,
                 tensor_shape *out)
{
    parts before, after;
    int status = count_parts(mesh, "--from", from, &before);
    if (status == EXIT_DONE)
        status = count_parts(mesh, "--to", to, &after);
    if (status != EXIT_DONE)
        return status;
    /* The layout with fewer parts has the larger shard. */
    const int64_t fewer = before.all < after.all ? before.all : after.all,
                  elements = bytes / (int64_t)tsr_dtype_bytes(dtype);
    const int last_dim = before.last_dim > after.last_dim ? before.last_dim : after.last_dim;
    int64_t all;
    if (__builtin_mul_overflow(elements > 0 ? elements : 1, fewer, &all))
        return complain(EXIT_REFUSED, "%lld parts of %lld bytes have more than 2^63-1 elements together",
                        (long long)fewer, (long long)bytes);
    *out = (tensor_shape){.ndim = last_dim > 1 ? last_dim + 1 : 2};
    fill_shape(all, tsr_mesh_count(mesh), out);
    if (fewer > 1)
        lengthen(&before, &after, out);
    return EXIT_DONE;
}
