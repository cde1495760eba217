#include "tensor/rows/row_apply.h"

#include "base/checked.h"
#include "tensor/rows/row_set.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Rows are fetched so many ahead of the one that is worked on, and so many bytes of each. */
#define AHEAD       8
#define AHEAD_BYTES 512

const char *tsr_rows_op_name(tsr_rows_op op)
{
    static const char *const names[TSR_ROWS_OP_END] = {
        [TSR_ROWS_ASSIGN] = "assign", [TSR_ROWS_ADD] = "add", [TSR_ROWS_MEAN] = "mean", [TSR_ROWS_MAX] = "max"};
    return (unsigned)op < TSR_ROWS_OP_END ? names[op] : "none";
}

static bool has_op(tsr_rows_op op, tsr_dtype dtype)
{
    const tsr_row_arithmetic *const arithmetic = &tsr_row_arithmetic_portable[dtype];
    switch (op) {
    case TSR_ROWS_ADD:
        return arithmetic->add;
    case TSR_ROWS_MEAN:
        return arithmetic->divide;
    case TSR_ROWS_MAX:
        return tsr_dtype_get(dtype)->reduce_ops & 1u << TSR_MAX;
    default:
        return true;
    }
}

tsr_status tsr_row_op_check(const char *call, tsr_rows_op op, tsr_dtype dtype)
{
    if ((unsigned)op >= TSR_ROWS_OP_END)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: op is %d: assign, add, mean and max are TSR_ROWS_ASSIGN to _MAX",
                              call, (int)op);
    if (has_op(op, dtype))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: op is %s, which %s does not have", call, tsr_rows_op_name(op),
                          tsr_dtype_name(dtype));
}

static bool sums(const tsr_row_apply *apply)
{
    return apply->op == TSR_ROWS_ADD || apply->op == TSR_ROWS_MEAN;
}

bool tsr_row_op_groups(tsr_rows_op op, tsr_dtype dtype)
{
    return op == TSR_ROWS_MAX || (op == TSR_ROWS_ADD && !tsr_row_arithmetic_portable[dtype].divide);
}

/* True if rows of equal ids are taken together: if their sums depend on their order, as those of
 * floats do, or become a step. Integers are added one after the other. On a device, which works on
 * many rows at once, equal ids may not follow one another. */
static bool needs_chains(const tsr_row_apply *apply)
{
    const bool ordered = sums(apply) && apply->arithmetic->divide;
    return apply->step || ((ordered || apply->batch) && apply->segment_count > 0);
}

static const char *row_of(const tsr_row_source *source, int64_t i)
{
    return source->data + (size_t)(source->positions ? source->positions[i] : i) * source->stride;
}

/* The most elements that are summed at a time. */
static int64_t longest_sum(const tsr_row_apply *apply)
{
    int64_t longest = apply->step ? apply->width : 0;
    for (size_t i = 0; i < apply->segment_count; i++)
        longest = tsr_max_i64(longest, apply->segments[i].length);
    return longest;
}

/* Takes the memory of chains, and begins a set of rows. */
static tsr_status take_chains(tsr_row_apply *apply, tsr_row_set *set, uint32_t **last)
{
    const size_t bytes = sizeof(int64_t) + sizeof(char *) + 2 * sizeof(uint32_t);
    size_t count = 0;
    void *memory;
    for (int s = 0; s < apply->source_count; s++)
        count += (size_t)apply->sources[s].count;
    TSR_TRY(tsr_row_room_take(apply->rooms, TSR_ROOM_CHAIN, count, bytes, &memory));
    apply->locals = memory;
    apply->rows = (const char **)(apply->locals + count);
    apply->next = (uint32_t *)(apply->rows + count);
    apply->first = apply->next + count;
    TSR_TRY(tsr_row_room_take(apply->rooms, TSR_ROOM_LAST, count, sizeof(uint32_t), &memory));
    *last = memory;
    if (apply->batch)
        TSR_TRY(tsr_row_batch_reserve(apply->batch, (int64_t)count, longest_sum(apply)));
    /* Accumulators, of 16 bytes an element at most. */
    const size_t row = tsr_round_up((size_t)longest_sum(apply) * 16, TSR_LINE);
    TSR_TRY(tsr_row_room_take(apply->rooms, TSR_ROOM_SUM, apply->step ? 3 : 2, row, &memory));
    apply->sum = memory;
    apply->term = apply->sum + row;
    apply->part = apply->step ? apply->term + row : NULL;
    return tsr_row_set_begin(apply->rooms, count, apply->locals, set);
}

/* Hangs a row behind the one before it that is for the same row of the table, or begins a chain.
 * `last` has the last row of each chain, at the index of its first. */
static void hang(tsr_row_apply *apply, tsr_row_set *set, uint32_t *last, uint32_t entry)
{
    const uint32_t first = tsr_row_set_add(set, entry);
    apply->next[entry] = entry;
    if (first == entry)
        apply->first[apply->chains++] = entry;
    else
        apply->next[last[first]] = entry;
    last[first] = entry;
}

static tsr_status build_chains(tsr_row_apply *apply)
{
    uint32_t *last;
    tsr_row_set set;
    TSR_TRY(take_chains(apply, &set, &last));
    for (int s = 0; s < apply->source_count; s++)
        for (int64_t i = 0; i < apply->sources[s].count; i++) {
            apply->locals[apply->count] = apply->sources[s].locals[i];
            apply->rows[apply->count] = row_of(&apply->sources[s], i);
            hang(apply, &set, last, apply->count++);
        }
    return TSR_OK;
}

tsr_status tsr_row_apply_reserve(tsr_row_apply *apply)
{
    uint32_t *last;
    tsr_row_set set;
    return needs_chains(apply) ? take_chains(apply, &set, &last) : TSR_OK;
}

tsr_status tsr_row_apply_prepare(tsr_row_apply *apply)
{
    return needs_chains(apply) ? build_chains(apply) : TSR_OK;
}

static void fetch_row(const tsr_row_apply *apply, const char *row, bool own)
{
    const tsr_row_segment *const s = apply->segments;
    const size_t bytes = apply->element_bytes, length = (size_t)s->length * bytes;
    const char *const begin = row + (size_t)(own ? s->local : s->whole) * bytes;
    for (size_t at = 0; at < length && at < AHEAD_BYTES; at += TSR_LINE)
        if (own)
            __builtin_prefetch(begin + at, 1);
        else
            __builtin_prefetch(begin + at, 0);
}

static char *own_row(const tsr_row_apply *apply, int64_t local)
{
    return apply->local + (size_t)local * apply->local_stride;
}

static tsr_status convert(const tsr_row_apply *apply, void *to, tsr_dtype to_dtype, const void *from,
                          tsr_dtype from_dtype, int64_t count)
{
    return apply->ops.table->convert(apply->ops.self, apply->ops.index, to, to_dtype, from, from_dtype, count, NULL);
}

/* The segment's elements of a row as accumulators: where they are, or in `room`. */
static tsr_status widen(const tsr_row_apply *apply, const char *elements, int64_t count, char *room, const char **out)
{
    const tsr_dtype accumulator = apply->arithmetic->accumulator;
    *out = elements;
    if (accumulator == apply->dtype)
        return TSR_OK;
    *out = room;
    return convert(apply, room, accumulator, elements, apply->dtype, count);
}

/* Adds up the segment's elements of a chain's rows in `sum`, which is not `apply->term`. */
static tsr_status sum_chain(const tsr_row_apply *apply, const tsr_row_segment *s, uint32_t entry, char *sum)
{
    const tsr_row_arithmetic *const arithmetic = apply->arithmetic;
    const size_t from = (size_t)s->whole * apply->element_bytes;
    const char *term;
    int64_t rows = 1;
    TSR_TRY(widen(apply, apply->rows[entry] + from, s->length, sum, &term));
    if (term != sum)
        memcpy(sum, term, (size_t)s->length * apply->element_bytes);
    for (; apply->next[entry] != entry; rows++) {
        entry = apply->next[entry];
        TSR_TRY(widen(apply, apply->rows[entry] + from, s->length, apply->term, &term));
        arithmetic->add(sum, term, s->length * arithmetic->numbers);
    }
    if (apply->op == TSR_ROWS_MEAN && rows > 1)
        arithmetic->divide(sum, rows, s->length * arithmetic->numbers);
    return TSR_OK;
}

/* Adds `sum`, of accumulators, to the segment's elements of a row of the table. */
static tsr_status add_sum(const tsr_row_apply *apply, const tsr_row_segment *s, char *to)
{
    const tsr_row_arithmetic *const arithmetic = apply->arithmetic;
    const int64_t numbers = s->length * arithmetic->numbers;
    if (arithmetic->accumulator == apply->dtype) {
        arithmetic->add(to, apply->sum, numbers);
        return TSR_OK;
    }
    TSR_TRY(convert(apply, apply->term, arithmetic->accumulator, to, apply->dtype, s->length));
    arithmetic->add(apply->term, apply->sum, numbers);
    return convert(apply, to, apply->dtype, apply->term, arithmetic->accumulator, s->length);
}

static tsr_status add_chain(const tsr_row_apply *apply, uint32_t entry)
{
    const tsr_row_arithmetic *const arithmetic = apply->arithmetic;
    const size_t bytes = apply->element_bytes;
    const bool at_once = apply->next[entry] == entry && arithmetic->accumulator == apply->dtype;
    char *const to = own_row(apply, apply->locals[entry]);
    for (const tsr_row_segment *s = apply->segments; s < apply->segments + apply->segment_count; s++) {
        char *const part = to + (size_t)s->local * bytes;
        if (at_once) {
            arithmetic->add(part, apply->rows[entry] + (size_t)s->whole * bytes, s->length * arithmetic->numbers);
            continue;
        }
        TSR_TRY(sum_chain(apply, s, entry, apply->sum));
        TSR_TRY(add_sum(apply, s, part));
    }
    return TSR_OK;
}

/* The sum of the segment's elements of a chain's rows: in `room`, or where the only row is. */
static tsr_status find_sum(const tsr_row_apply *apply, const tsr_row_segment *s, uint32_t entry, char *room,
                           const char **out)
{
    *out = room;
    if (apply->next[entry] != entry || apply->arithmetic->accumulator != apply->dtype)
        return sum_chain(apply, s, entry, room);
    *out = apply->rows[entry] + (size_t)s->whole * apply->element_bytes;
    return TSR_OK;
}

/* Finds the elements that this rank has of a chain's sum. */
static tsr_status sum_part(const tsr_row_apply *apply, uint32_t entry, const void **out)
{
    const size_t bytes = tsr_dtype_bytes(apply->arithmetic->accumulator);
    const char *sum = apply->part;
    if (apply->segment_count == 1)
        TSR_TRY(find_sum(apply, apply->segments, entry, apply->part, &sum));
    for (size_t i = 0; i < apply->segment_count && apply->segment_count > 1; i++) {
        const tsr_row_segment *const s = &apply->segments[i];
        TSR_TRY(sum_chain(apply, s, entry, apply->part + (size_t)s->local * bytes));
    }
    *out = sum;
    return TSR_OK;
}

/* Finds all elements of a chain's sum, and among them those that this rank has. */
static tsr_status sum_whole(const tsr_row_apply *apply, uint32_t entry, tsr_row_gradient *row)
{
    const size_t bytes = tsr_dtype_bytes(apply->arithmetic->accumulator);
    const tsr_row_segment all = {0, 0, apply->width};
    const char *whole;
    TSR_TRY(find_sum(apply, &all, entry, apply->sum, &whole));
    row->whole = whole;
    row->part = apply->part;
    if (apply->segment_count == 1)
        row->part = whole + (size_t)apply->segments->whole * bytes;
    for (size_t i = 0; i < apply->segment_count && apply->segment_count > 1; i++) {
        const tsr_row_segment *const s = &apply->segments[i];
        memcpy(apply->part + (size_t)s->local * bytes, whole + (size_t)s->whole * bytes, (size_t)s->length * bytes);
    }
    return TSR_OK;
}

static tsr_status step_chain(const tsr_row_apply *apply, const tsr_row_shard *shard, uint32_t entry)
{
    tsr_row_gradient row = {.local = apply->locals[entry]};
    if (apply->step->needs_whole)
        TSR_TRY(sum_whole(apply, entry, &row));
    else
        TSR_TRY(sum_part(apply, entry, &row.part));
    return apply->step->change(apply->step, shard, &row);
}

/* Begins to read the rows of the chain AHEAD of chain `i`. */
static void fetch_ahead(const tsr_row_apply *apply, uint32_t i)
{
    if (apply->chains - i <= AHEAD || apply->segment_count == 0)
        return;
    const uint32_t ahead = apply->first[i + AHEAD];
    fetch_row(apply, apply->rows[ahead], false);
    fetch_row(apply, own_row(apply, apply->locals[ahead]), true);
}

static tsr_status step_chains(const tsr_row_apply *apply)
{
    const tsr_row_shard shard = {apply->table, apply->local, apply->local_stride};
    TSR_TRY(apply->step->begin(apply->step, &shard));
    for (uint32_t i = 0; i < apply->chains; i++) {
        fetch_ahead(apply, i);
        TSR_TRY(step_chain(apply, &shard, apply->first[i]));
    }
    return apply->step->finish(apply->step, &shard);
}

static tsr_status add_chains(const tsr_row_apply *apply)
{
    for (uint32_t i = 0; i < apply->chains; i++) {
        fetch_ahead(apply, i);
        TSR_TRY(add_chain(apply, apply->first[i]));
    }
    return TSR_OK;
}

static tsr_status raise_to(const tsr_row_apply *apply, void *to, const void *from, int64_t count)
{
    static const int64_t ones[2][TSR_MAX_DIMS] = {{1}, {1}};
    const void *const src[] = {to, from};
    void *const dst[] = {to};
    const tsr_box_reduce reduce = {.dtype = apply->dtype,
                                   .op = TSR_MAX,
                                   .divisor = 1,
                                   .ndim = 1,
                                   .shape = {count},
                                   .src_count = 2,
                                   .dst_count = 1,
                                   .src = src,
                                   .src_strides = ones,
                                   .dst = dst,
                                   .dst_strides = ones};
    return apply->ops.table->reduce(apply->ops.self, apply->ops.index, &reduce, NULL);
}

tsr_status tsr_row_apply_one(const tsr_row_apply *apply, char *to, const char *row)
{
    const size_t bytes = apply->element_bytes;
    for (const tsr_row_segment *s = apply->segments; s < apply->segments + apply->segment_count; s++) {
        char *const part = to + (size_t)s->local * bytes;
        const char *const from = row + (size_t)s->whole * bytes;
        if (apply->op == TSR_ROWS_ASSIGN)
            memcpy(part, from, (size_t)s->length * bytes);
        else if (apply->op == TSR_ROWS_ADD)
            apply->arithmetic->add(part, from, s->length);
        else
            TSR_TRY(raise_to(apply, part, from, s->length));
    }
    return TSR_OK;
}

static tsr_status change_rows(const tsr_row_apply *apply, const tsr_row_source *source)
{
    for (int64_t i = 0; i < source->count; i++) {
        if (source->count - i > AHEAD) {
            fetch_row(apply, row_of(source, i + AHEAD), false);
            fetch_row(apply, own_row(apply, source->locals[i + AHEAD]), true);
        }
        TSR_TRY(tsr_row_apply_one(apply, own_row(apply, source->locals[i]), row_of(source, i)));
    }
    return TSR_OK;
}

/* Lists what a segment becomes of the rows of a chain; of an assignment the last counts. */
static void list_chain(const tsr_row_apply *apply, const tsr_row_segment *s, uint32_t entry)
{
    const size_t bytes = apply->element_bytes;
    tsr_row_batch_add_target(apply->batch, own_row(apply, apply->locals[entry]) + (size_t)s->local * bytes);
    for (;; entry = apply->next[entry]) {
        const bool is_last = apply->next[entry] == entry;
        if (is_last || apply->op != TSR_ROWS_ASSIGN)
            tsr_row_batch_add_source(apply->batch, apply->rows[entry] + (size_t)s->whole * bytes);
        if (is_last)
            return;
    }
}

static tsr_status run_on_device(const tsr_row_apply *apply)
{
    for (const tsr_row_segment *s = apply->segments; s < apply->segments + apply->segment_count; s++) {
        tsr_row_batch_set(apply->batch, &(tsr_row_work){.op = apply->op,
                                                        .keeps = apply->op != TSR_ROWS_ASSIGN && !apply->is_new,
                                                        .dtype = apply->dtype,
                                                        .length = s->length});
        for (uint32_t i = 0; i < apply->chains; i++)
            list_chain(apply, s, apply->first[i]);
        TSR_TRY(tsr_row_batch_finish(apply->batch));
    }
    return TSR_OK;
}

tsr_status tsr_row_apply_run(const tsr_row_apply *apply)
{
    if (apply->step)
        return step_chains(apply);
    if (apply->batch)
        return run_on_device(apply);
    if (needs_chains(apply))
        return add_chains(apply);
    for (int s = 0; s < apply->source_count && apply->segment_count > 0; s++)
        TSR_TRY(change_rows(apply, &apply->sources[s]));
    return TSR_OK;
}
