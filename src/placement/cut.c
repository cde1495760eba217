#include "placement/cut.h"

#include "base/checked.h"

/* Where part `part` begins within one block of `length`; at part == parts this is the block's end. */
static int64_t part_start(const tsr_cut *cut, int64_t length, int64_t part)
{
    if (cut->size_starts)
        return cut->size_starts[part];
    const int64_t units = tsr_ceil_div(length, cut->unit);
    int64_t first;
    if (cut->balanced) {
        const int64_t share = units / cut->parts, extra = units % cut->parts;
        first = share * part + tsr_min_i64(part, extra);
    } else {
        const int64_t chunk = tsr_ceil_div(units, cut->parts);
        first = chunk == 0 ? 0 : (part > units / chunk ? units : chunk * part);
    }
    return first > length / cut->unit ? length : first * cut->unit;
}

static int64_t part_length(const tsr_cut *cut, int64_t length, int64_t part)
{
    return part_start(cut, length, part + 1) - part_start(cut, length, part);
}

/* The last index i with starts[i] <= at, skipping empty pieces: starts has count + 1 entries and at < starts[count]. */
static int64_t find_piece(const int64_t *starts, int64_t count, int64_t at)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (starts[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The part of a block of `length` that holds position `at`. */
static int64_t part_at(const tsr_cut *cut, int64_t length, int64_t at)
{
    if (cut->size_starts)
        return find_piece(cut->size_starts, cut->parts, at);
    const int64_t units = tsr_ceil_div(length, cut->unit), unit = at / cut->unit;
    if (!cut->balanced)
        return unit / tsr_ceil_div(units, cut->parts);
    const int64_t share = units / cut->parts, extra = units % cut->parts, wide = extra * (share + 1);
    return unit < wide ? unit / (share + 1) : extra + (unit - wide) / share;
}

typedef struct block {
    int64_t index, begin, length;
} block;

static block block_get(const tsr_cut *cut, int64_t length, int64_t index)
{
    if (cut->block_starts)
        return (block){index, cut->block_starts[index], cut->block_starts[index + 1] - cut->block_starts[index]};
    const int64_t chunk = tsr_ceil_div(length, cut->interleave), begin = chunk * index;
    return (block){index, begin, tsr_min_i64(chunk, length - begin)};
}

static block block_at(const tsr_cut *cut, int64_t length, int64_t at)
{
    if (cut->block_starts)
        return block_get(cut, length, find_piece(cut->block_starts, (int64_t)cut->block_count, at));
    return block_get(cut, length, at / tsr_ceil_div(length, cut->interleave));
}

/* What part `part` holds of the blocks before `index`. All interleaved blocks but the last have one length. */
static int64_t part_before(const tsr_cut *cut, int64_t length, int64_t part, int64_t index)
{
    if (index == 0)
        return 0;
    if (!cut->block_starts)
        return index * part_length(cut, block_get(cut, length, 0).length, part);
    int64_t sum = 0;
    for (int64_t i = 0; i < index; i++)
        sum += part_length(cut, block_get(cut, length, i).length, part);
    return sum;
}

int64_t tsr_cut_size(const tsr_cut *cut, int64_t length, int64_t part)
{
    if (length == 0)
        return 0;
    const int64_t last = cut->block_starts ? (int64_t)cut->block_count - 1 : block_at(cut, length, length - 1).index;
    return part_before(cut, length, part, last) + part_length(cut, block_get(cut, length, last).length, part);
}

tsr_run tsr_cut_owner(const tsr_cut *cut, int64_t length, int64_t at)
{
    const block b = block_at(cut, length, at);
    const int64_t part = part_at(cut, b.length, at - b.begin);
    const int64_t start = part_start(cut, b.length, part), end = part_start(cut, b.length, part + 1);
    const int64_t inside = at - b.begin - start;
    return (tsr_run){part, part_before(cut, length, part, b.index) + inside, at, end - start - inside};
}

tsr_run tsr_cut_position(const tsr_cut *cut, int64_t length, int64_t part, int64_t at)
{
    int64_t index = 0, before = 0;
    if (cut->block_starts) {
        for (int64_t here; at - before >= (here = part_length(cut, block_get(cut, length, index).length, part)); index++)
            before += here;
    } else {
        const int64_t each = part_length(cut, block_get(cut, length, 0).length, part);
        const int64_t last = block_at(cut, length, length - 1).index;
        index = each == 0 ? last : tsr_min_i64(at / each, last);
        before = index * each;
    }
    const block b = block_get(cut, length, index);
    const int64_t start = part_start(cut, b.length, part), end = part_start(cut, b.length, part + 1);
    return (tsr_run){part, at, b.begin + start + (at - before), end - start - (at - before)};
}
