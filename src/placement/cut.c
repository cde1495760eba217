#include "placement/cut.h"

#include "base/checked.h"

/* Where part `part` begins within a block of `length`; for part == parts, the block's end. */
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

/* The last index i with starts[i] <= at, so never an empty piece; starts has count + 1 entries, and
 * at < starts[count]. */
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

/* How many positions part `part` has in the blocks before `index`. All interleaved blocks but the
 * last have one length; listed blocks are added up, from `mark` on if it is not past `index`. */
static int64_t part_before(const tsr_cut *cut, int64_t length, int64_t part, int64_t index, tsr_cut_mark *mark)
{
    if (!cut->block_starts)
        return index == 0 ? 0 : index * part_length(cut, block_get(cut, length, 0).length, part);
    tsr_cut_mark from = {0};
    if (mark && mark->index <= index)
        from = *mark;
    for (; from.index < index; from.index++)
        from.before += part_length(cut, block_get(cut, length, from.index).length, part);
    if (mark)
        *mark = from;
    return from.before;
}

int64_t tsr_cut_size(const tsr_cut *cut, int64_t length, int64_t part)
{
    if (length == 0)
        return 0;
    const int64_t last = cut->block_starts ? (int64_t)cut->block_count - 1 : block_at(cut, length, length - 1).index;
    return part_before(cut, length, part, last, NULL) + part_length(cut, block_get(cut, length, last).length, part);
}

static int64_t longest_size(const tsr_cut *cut)
{
    int64_t longest = 0;
    for (int64_t part = 0; part < cut->parts; part++)
        longest = tsr_max_i64(longest, part_length(cut, 0, part));
    return longest;
}

/* Without listed sizes part 0 is the longest, and it grows with the piece, except with
 * `interleave`: a longer piece can have fewer blocks. So each of the blocks counts with the length
 * of the first. */
int64_t tsr_cut_most(const tsr_cut *cut, int64_t length)
{
    if (cut->size_starts)
        return longest_size(cut);
    if (cut->block_starts || cut->interleave == 1)
        return tsr_cut_size(cut, length, 0);
    int64_t most;
    const bool fits = tsr_multiply(cut->interleave, part_length(cut, tsr_ceil_div(length, cut->interleave), 0), &most);
    return fits ? tsr_min_i64(most, length) : length;
}

bool tsr_cut_deals_intervals(const tsr_cut *cut)
{
    return !tsr_cut_interleaves(cut) && !cut->block_starts;
}

bool tsr_cut_interleaves(const tsr_cut *cut)
{
    return cut->interleave > 1;
}

bool tsr_cut_lists_sizes(const tsr_cut *cut)
{
    return cut->size_starts != NULL;
}

/* Only listed sizes can make a part longer than the one before it, so elsewhere the first and the
 * last part tell of all. */
bool tsr_cut_is_even(const tsr_cut *cut, int64_t length)
{
    const int64_t first = tsr_cut_size(cut, length, 0);
    bool even = tsr_cut_size(cut, length, cut->parts - 1) == first;
    for (int64_t part = 1; tsr_cut_lists_sizes(cut) && even && part < cut->parts; part++)
        even = tsr_cut_size(cut, length, part) == first;
    return even;
}

/* Full parts, then one that holds what is left. Of a balanced cut those with a unit more come
 * first. */
int tsr_cut_stretches(const tsr_cut *cut, int64_t length, tsr_cut_stretch *out)
{
    const int64_t units = tsr_ceil_div(length, cut->unit);
    const int64_t share = cut->balanced ? units / cut->parts : tsr_ceil_div(units, cut->parts);
    const int64_t wide = cut->balanced ? units % cut->parts : 0;
    int count = 0;
    int64_t part = 0, at = 0;
    for (int narrow = wide == 0; narrow < 2; narrow++) {
        const int64_t size = (share + !narrow) * cut->unit;
        const int64_t full = size == 0 ? 0 : tsr_min_i64(narrow ? cut->parts - part : wide, (length - at) / size);
        if (full > 0)
            out[count++] = (tsr_cut_stretch){part, part + full, size};
        part += full;
        at += full * size;
    }
    if (at < length)
        out[count++] = (tsr_cut_stretch){part, part + 1, length - at};
    return count;
}

tsr_cut tsr_cut_balanced(int64_t parts, int64_t unit)
{
    return (tsr_cut){.parts = parts, .balanced = 1, .interleave = 1, .unit = unit};
}

int64_t tsr_cut_part(const tsr_cut *cut, int64_t length, int64_t at)
{
    const block b = block_at(cut, length, at);
    return part_at(cut, b.length, at - b.begin);
}

tsr_cut_run tsr_cut_owner(const tsr_cut *cut, int64_t length, int64_t at, tsr_cut_mark *mark)
{
    const block b = block_at(cut, length, at);
    const int64_t part = part_at(cut, b.length, at - b.begin);
    const int64_t start = part_start(cut, b.length, part), end = part_start(cut, b.length, part + 1);
    const int64_t inside = at - b.begin - start;
    return (tsr_cut_run){part, part_before(cut, length, part, b.index, mark) + inside, at, end - start - inside};
}

/* The block in which position `at` of the part lies, and how many positions the part has before
 * that block. */
static tsr_cut_mark find_block(const tsr_cut *cut, int64_t length, int64_t part, int64_t at, const tsr_cut_mark *mark)
{
    if (!cut->block_starts) {
        const int64_t each = part_length(cut, block_get(cut, length, 0).length, part);
        const int64_t last = block_at(cut, length, length - 1).index;
        const int64_t index = each == 0 ? last : tsr_min_i64(at / each, last);
        return (tsr_cut_mark){index, index * each};
    }
    tsr_cut_mark found = {0};
    if (mark && mark->before <= at)
        found = *mark;
    for (int64_t here; at - found.before >= (here = part_length(cut, block_get(cut, length, found.index).length, part));
         found.index++)
        found.before += here;
    return found;
}

tsr_cut_run tsr_cut_position(const tsr_cut *cut, int64_t length, int64_t part, int64_t at, tsr_cut_mark *mark)
{
    const tsr_cut_mark found = find_block(cut, length, part, at, mark);
    if (mark)
        *mark = found;
    const block b = block_get(cut, length, found.index);
    const int64_t start = part_start(cut, b.length, part), end = part_start(cut, b.length, part + 1);
    return (tsr_cut_run){part, at, b.begin + start + (at - found.before), end - start - (at - found.before)};
}
