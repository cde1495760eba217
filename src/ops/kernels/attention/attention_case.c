#include "ops/kernels/attention/attention_case.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/attention/attention.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <string.h>

/* From the end: the places of heads, tokens and elements of a head among a tensor's dims. */
#define HEADS    3
#define TOKENS   2
#define ELEMENTS 1

/* Beyond this many blocks of a head keys and values are packed once for all of them. */
#define FEW_BLOCKS 2

static const tsr_attention_kernels *const sets[] = TSR_KERNEL_SETS(tsr_attention_kernels);

static const tsr_attention_kernels *find_kernels(const char *name)
{
    return sets[tsr_kernel_set(name)];
}

void *tsr_attention_take(tsr_attention_memory *memory, int64_t count, int64_t bytes)
{
    void *const taken = memory->at ? memory->at + memory->used : NULL;
    memory->used += (count * bytes + 63) / 64 * 64;
    return taken;
}

static int64_t size_of(const tsr_tensor *tensor, int from_end)
{
    return tensor->shape[tensor->ndim - from_end];
}

static int64_t pad(int64_t count)
{
    return (count + TSR_ATTENTION_PAD - 1) / TSR_ATTENTION_PAD * TSR_ATTENTION_PAD;
}

/* Heads of q that a block of queries spans. */
static int64_t heads_of_block(const tsr_attention_case *a)
{
    return a->queries >= TSR_ATTENTION_LANES || a->queries == 0 ? 1 : TSR_ATTENTION_LANES / a->queries;
}

/* The most blocks that share a head of k. */
static int64_t most_blocks(const tsr_attention_case *a)
{
    const int64_t rows = (a->queries + TSR_ATTENTION_LANES - 1) / TSR_ATTENTION_LANES;
    return rows * ((a->heads + heads_of_block(a) - 1) / heads_of_block(a));
}

static void set_scale(tsr_attention_case *a)
{
    const double given = a->call->attributes[TSR_ATTENTION_SCALE].number;
    a->block.slope = given != 0 ? given : a->dim ? 1 / sqrt((double)a->dim) : 1;
    a->block.scale = a->block.slope * 0x1.71547652b82fep+0;
}

static void take_source(tsr_attention_case *a, int which, int64_t columns, bool gradient, tsr_attention_memory *memory)
{
    const tsr_tensor *const tensor = which ? a->v : a->k;
    const bool aliased = tensor->data == a->call->outputs[0].data;
    const bool whole = gradient || aliased || most_blocks(a) > FEW_BLOCKS;
    a->sources[which] =
        (tsr_attention_source){.columns = columns, .width = pad(columns), .whole = whole, .aliased = aliased};
    a->sources[which].rows =
        tsr_attention_take(memory, whole ? a->keys : TSR_ATTENTION_KEYS, a->sources[which].width * a->real);
}

static void take_block(tsr_attention_case *a, bool gradient, tsr_attention_memory *memory)
{
    tsr_attention_block *const b = &a->block;
    const int64_t lanes = TSR_ATTENTION_LANES, wider = b->width > b->value_width ? b->width : b->value_width;
    b->queries = tsr_attention_take(memory, lanes, b->width * a->real);
    b->turned_queries = tsr_attention_take(memory, lanes, b->width * a->real);
    b->out = tsr_attention_take(memory, lanes, wider * a->real);
    b->largest = tsr_attention_take(memory, lanes, a->real);
    b->sum = tsr_attention_take(memory, lanes, a->real);
    if (gradient) {
        b->douts = tsr_attention_take(memory, lanes, b->value_width * a->real);
        b->turned_douts = tsr_attention_take(memory, lanes, b->value_width * a->real);
        b->delta = tsr_attention_take(memory, lanes, a->real);
    }
}

void tsr_attention_measure(const tsr_kernel_call *call, bool gradient, tsr_attention_memory *memory,
                           tsr_attention_case *a)
{
    const tsr_tensor *const q = &call->inputs[gradient], *const result = &call->outputs[0];
    a->call = call;
    a->q = q;
    a->k = q + 1;
    a->v = q + 2;
    a->dout = gradient ? call->inputs : NULL;
    a->block = (tsr_attention_block){.used = 0};
    a->mask = q[3].ndim >= 0 ? &q[3] : NULL;
    a->kernels = find_kernels(call->kernels);
    a->moves = tsr_pointwise_kernels_for(call->kernels);
    a->memory = q->dtype;
    a->computed = tsr_pointwise_computes_in(q->dtype);
    a->bytes = (int64_t)tsr_dtype_bytes(a->memory);
    a->real = (int64_t)tsr_dtype_bytes(a->computed);
    a->batches = 1;
    for (int dim = 0; dim < result->ndim - HEADS; dim++)
        a->batches *= result->shape[dim];
    a->heads = size_of(q, HEADS);
    a->kv_heads = size_of(a->k, HEADS);
    a->queries = size_of(q, TOKENS);
    a->keys = size_of(a->k, TOKENS);
    a->dim = size_of(q, ELEMENTS);
    a->value_dim = size_of(a->v, ELEMENTS);
    a->block.dim = a->dim;
    a->block.value_dim = a->value_dim;
    a->block.width = pad(a->dim);
    a->block.value_width = pad(a->value_dim);
    set_scale(a);
    a->begin = tsr_attention_take(memory, a->queries, sizeof *a->begin);
    a->end = tsr_attention_take(memory, a->queries, sizeof *a->end);
    a->head_begin = tsr_attention_take(memory, a->kv_heads + 1, sizeof *a->head_begin);
    take_source(a, 0, a->dim, gradient, memory);
    take_source(a, 1, a->value_dim, gradient, memory);
    take_block(a, gradient, memory);
    const int64_t masked = a->mask ? (int64_t)TSR_ATTENTION_LANES * TSR_ATTENTION_KEYS : 0;
    a->mask_rows = a->mask ? tsr_attention_take(memory, masked, a->real) : NULL;
}

static int64_t global_size(const tsr_attention_case *a, const tsr_tensor *tensor, int from_end)
{
    return tsr_layout_shape(a->call->layouts[tensor - a->call->inputs])[tensor->ndim - from_end];
}

/* The global indices of a shard along a dim, in ascending order; `list` NULL: 0, 1, and so on. */
typedef struct indices {
    int64_t *list;
    int64_t count;
} indices;

/* Lists the global indices of a shard along a dim, from the end. `memory` has room for them, and
 * for as many intervals. */
static tsr_status list_indices(const tsr_attention_case *a, const tsr_tensor *tensor, int from_end,
                               tsr_attention_memory *memory, indices *out)
{
    const int64_t size = size_of(tensor, from_end);
    *out = (indices){NULL, size};
    if (size == global_size(a, tensor, from_end))
        return TSR_OK;
    int64_t *const list = tsr_attention_take(memory, size, sizeof *list);
    tsr_attention_memory rest = *memory;
    tsr_interval *const intervals = tsr_attention_take(&rest, size, sizeof *intervals);
    size_t count = 0;
    int64_t used = 0;
    TSR_TRY(tsr_layout_intervals(a->call->layouts[tensor - a->call->inputs], a->call->coordinate,
                                 tensor->ndim - from_end, intervals, (size_t)size, &count));
    for (size_t i = 0; i < count; i++) {
        for (int64_t index = intervals[i].begin; index < intervals[i].end; index++)
            list[used++] = index;
    }
    out->list = list;
    return TSR_OK;
}

static int64_t index_at(const indices *of, int64_t i)
{
    return of->list ? of->list[i] : i;
}

/* How many indices are less than `bound`. */
static int64_t count_below(const indices *of, int64_t bound)
{
    int64_t low = 0, high = of->count;
    if (!of->list)
        return bound < 0 ? 0 : bound < high ? bound : high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (of->list[middle] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the keys of each query. The last query stands where the last key does. */
static tsr_status locate_keys(tsr_attention_case *a, tsr_attention_memory memory)
{
    const bool causal = a->call->attributes[TSR_ATTENTION_CAUSAL].integer != 0;
    const int64_t window = a->call->attributes[TSR_ATTENTION_WINDOW].integer;
    const int64_t behind = global_size(a, a->k, TOKENS) - global_size(a, a->q, TOKENS);
    const bool some = causal || window;
    indices queries, keys;
    if (some) {
        TSR_TRY(list_indices(a, a->q, TOKENS, &memory, &queries));
        TSR_TRY(list_indices(a, a->k, TOKENS, &memory, &keys));
    }
    for (int64_t i = 0; i < a->queries; i++) {
        const int64_t own = some ? index_at(&queries, i) + behind : 0;
        const int64_t after = causal ? own + 1 : own + window;
        a->begin[i] = window ? count_below(&keys, own - window + 1) : 0;
        a->end[i] = some ? count_below(&keys, after) : a->keys;
    }
    return TSR_OK;
}

/* Finds the heads of q that share each head of k: with g times as many heads of q, head i of q has
 * head i / g of k. */
static tsr_status locate_heads(tsr_attention_case *a, tsr_attention_memory memory)
{
    const int64_t all = global_size(a, a->k, HEADS), group = all ? global_size(a, a->q, HEADS) / all : 1;
    indices heads, kv_heads;
    TSR_TRY(list_indices(a, a->q, HEADS, &memory, &heads));
    TSR_TRY(list_indices(a, a->k, HEADS, &memory, &kv_heads));
    for (int64_t i = 0; i < a->kv_heads; i++)
        a->head_begin[i] = count_below(&heads, index_at(&kv_heads, i) * group);
    if (a->kv_heads)
        a->head_begin[a->kv_heads] = count_below(&heads, (index_at(&kv_heads, a->kv_heads - 1) + 1) * group);
    return TSR_OK;
}

tsr_status tsr_attention_locate(tsr_attention_case *a, tsr_attention_memory memory)
{
    TSR_TRY(locate_keys(a, memory));
    return locate_heads(a, memory);
}

tsr_attention_head tsr_attention_head_of(const tsr_attention_case *a, const tsr_tensor *tensor, int64_t head)
{
    const tsr_tensor *const result = &a->call->outputs[0];
    int64_t left = a->batch, offset = tensor->ndim < HEADS ? 0 : head * tensor->strides[tensor->ndim - HEADS];
    for (int dim = result->ndim - HEADS - 1; dim >= 0; dim--) {
        const int own = dim - (result->ndim - tensor->ndim);
        const int64_t index = left % result->shape[dim];
        left /= result->shape[dim];
        if (own >= 0 && tensor->shape[own] > 1)
            offset += index * tensor->strides[own];
    }
    const int64_t bytes = tensor->dtype == a->memory ? a->bytes : (int64_t)tsr_dtype_bytes(tensor->dtype);
    return (tsr_attention_head){(char *)tensor->data + offset * bytes, tensor->strides[tensor->ndim - TOKENS],
                                tensor->strides[tensor->ndim - ELEMENTS]};
}

/* Reads rows of a head from row `first` on, padded with zeros. */
static void read_rows(const tsr_attention_case *a, tsr_attention_head from, int64_t first, int64_t count,
                      int64_t columns, int64_t width, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        char *const row = (char *)to + i * width * a->real;
        a->moves->gather[a->memory](from.at + (first + i) * from.row_step * a->bytes, row, columns, from.column_step);
        memset(row + columns * a->real, 0, (size_t)((width - columns) * a->real));
    }
}

void tsr_attention_write_rows(const tsr_attention_case *a, const void *rows, int64_t count, int64_t columns,
                              int64_t width, tsr_attention_head to)
{
    for (int64_t i = 0; i < count; i++)
        a->moves->scatter[a->memory]((const char *)rows + i * width * a->real, to.at + i * to.row_step * a->bytes,
                                     columns, to.column_step);
}

static void enter_source(const tsr_attention_case *a, const tsr_tensor *tensor, int64_t kv_head,
                         tsr_attention_source *source)
{
    source->head = tsr_attention_head_of(a, tensor, kv_head);
    /* Rows that follow one another without gaps stay apart in the cache; others may not. */
    source->direct = !source->aliased && a->memory == a->computed && source->head.column_step == 1 &&
                     source->columns == source->width && (!source->whole || source->head.row_step == source->columns);
    if (source->whole && !source->direct)
        read_rows(a, source->head, 0, a->keys, source->columns, source->width, source->rows);
}

void tsr_attention_enter(tsr_attention_case *a, int64_t kv_head)
{
    enter_source(a, a->k, kv_head, &a->sources[0]);
    enter_source(a, a->v, kv_head, &a->sources[1]);
}

/* Sets the keys of each query of the block. */
static void set_lanes(tsr_attention_case *a)
{
    tsr_attention_block *const b = &a->block;
    const int64_t lanes = tsr_attention_lanes(a);
    b->used = lanes;
    b->lanes = pad(lanes);
    b->begin = a->lane_begin;
    b->end = a->lane_end;
    a->first_key = a->keys;
    a->key_end = 0;
    b->last_begin = 0;
    b->first_end = a->keys;
    for (int64_t lane = 0, own = 0; lane < lanes; lane++, own = own + 1 < a->query_count ? own + 1 : 0) {
        const int64_t query = a->first_query + own;
        const int64_t begin = a->begin[query], end = a->end[query];
        a->lane_begin[lane] = begin;
        a->lane_end[lane] = end;
        b->last_begin = begin > b->last_begin ? begin : b->last_begin;
        b->first_end = end < b->first_end ? end : b->first_end;
        a->first_key = begin < a->first_key ? begin : a->first_key;
        a->key_end = end > a->key_end ? end : a->key_end;
    }
}

static void read_queries(const tsr_attention_case *a, const tsr_tensor *tensor, int64_t columns, int64_t width,
                         void *to)
{
    for (int64_t i = 0; i < a->head_count; i++)
        read_rows(a, tsr_attention_head_of(a, tensor, a->first_head + i), a->first_query, a->query_count, columns,
                  width, (char *)to + i * a->query_count * width * a->real);
}

/* Reads queries, and zeros for lanes without one. */
static void read_lanes(const tsr_attention_case *a, const tsr_tensor *tensor, int64_t columns, int64_t width, void *to)
{
    const int64_t lanes = tsr_attention_lanes(a), row = width * a->real;
    read_queries(a, tensor, columns, width, to);
    memset((char *)to + lanes * row, 0, (size_t)((a->block.lanes - lanes) * row));
}

/* Lanes without a query attend what the first one does. */
void tsr_attention_read_block(tsr_attention_case *a)
{
    const int64_t wider = a->block.width > a->block.value_width ? a->block.width : a->block.value_width;
    for (int64_t lane = a->block.used; lane < a->block.lanes; lane++) {
        a->lane_begin[lane] = a->lane_begin[0];
        a->lane_end[lane] = a->lane_end[0];
    }
    read_lanes(a, a->q, a->dim, a->block.width, a->block.queries);
    if (a->dout)
        read_lanes(a, a->dout, a->value_dim, a->block.value_width, a->block.douts);
    memset(a->block.out, 0, (size_t)(a->block.lanes * wider * a->real));
    a->kernels->begin[a->computed](&a->block, NULL);
}

void tsr_attention_read_few(tsr_attention_case *a)
{
    float *const largest = a->block.largest, *const sum = a->block.sum;
    read_queries(a, a->q, a->dim, a->block.width, a->block.queries);
    memset(a->block.out, 0, (size_t)(a->block.used * a->block.value_width) * sizeof(float));
    for (int64_t lane = 0; lane < a->block.used; lane++) {
        largest[lane] = -INFINITY;
        sum[lane] = 0;
    }
}

bool tsr_attention_next_block(tsr_attention_case *a, int64_t kv_head, int64_t *head, int64_t *query)
{
    const int64_t end = a->head_begin[kv_head + 1], most = heads_of_block(a);
    if (*head >= end || a->queries == 0)
        return false;
    a->first_head = *head;
    a->first_query = *query;
    a->head_count = end - *head < most ? end - *head : most;
    a->query_count = a->queries - *query < TSR_ATTENTION_LANES ? a->queries - *query : TSR_ATTENTION_LANES;
    *query += a->query_count;
    if (*query == a->queries) {
        *query = 0;
        *head += a->head_count;
    }
    set_lanes(a);
    return true;
}

static tsr_attention_rows read_source(const tsr_attention_case *a, const tsr_attention_source *source, int64_t first,
                                      int64_t count)
{
    if (source->direct)
        return (tsr_attention_rows){source->head.at + first * source->head.row_step * a->bytes, source->head.row_step};
    if (!source->whole)
        read_rows(a, source->head, first, count, source->columns, source->width, source->rows);
    return (tsr_attention_rows){(char *)source->rows + (source->whole ? first * source->width * a->real : 0),
                                source->width};
}

/* What a bool mask adds to scores. */
static void read_condition(const tsr_attention_case *a, const char *at, int64_t count, int64_t step, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        const double term = at[i * step] ? 0 : -INFINITY;
        if (a->computed == TSR_F64)
            ((double *)to)[i] = term;
        else
            ((float *)to)[i] = (float)term;
    }
}

/* The mask's row of a lane; the mask's heads, queries and keys may be repeated. */
static void read_mask(const tsr_attention_case *a, int64_t lane, int64_t first, int64_t count, void *to)
{
    const tsr_tensor *const m = a->mask;
    const int64_t head = a->first_head + lane / a->query_count, query = a->first_query + lane % a->query_count;
    const bool by_head = m->ndim >= HEADS && size_of(m, HEADS) > 1;
    const tsr_attention_head own = tsr_attention_head_of(a, m, by_head ? head : 0);
    const int64_t row = size_of(m, TOKENS) > 1 ? query * own.row_step : 0;
    const int64_t step = size_of(m, ELEMENTS) > 1 ? own.column_step : 0;
    const char *const at = own.at + (row + first * step) * (int64_t)tsr_dtype_bytes(m->dtype);
    if (m->dtype == TSR_BOOL)
        read_condition(a, at, count, step, to);
    else
        a->moves->gather[m->dtype](at, to, count, step);
}

void tsr_attention_begin_chunk(const tsr_attention_case *a, int64_t first, tsr_attention_chunk *chunk)
{
    chunk->first = first;
    chunk->count = a->key_end - first < TSR_ATTENTION_KEYS ? a->key_end - first : TSR_ATTENTION_KEYS;
    chunk->mask = a->mask_rows;
    for (int64_t lane = 0; lane < a->block.used && a->mask; lane++)
        read_mask(a, lane, first, chunk->count, (char *)a->mask_rows + lane * TSR_ATTENTION_KEYS * a->real);
}

void tsr_attention_read_chunk(const tsr_attention_case *a, int64_t first, tsr_attention_chunk *chunk)
{
    tsr_attention_begin_chunk(a, first, chunk);
    chunk->k = read_source(a, &a->sources[0], first, chunk->count);
    chunk->v = read_source(a, &a->sources[1], first, chunk->count);
}

void tsr_attention_write_block(const tsr_attention_case *a, const tsr_tensor *to, int64_t columns, int64_t width)
{
    for (int64_t i = 0; i < a->head_count; i++) {
        tsr_attention_head head = tsr_attention_head_of(a, to, a->first_head + i);
        head.at += a->first_query * head.row_step * a->bytes;
        tsr_attention_write_rows(a, (const char *)a->block.out + i * a->query_count * width * a->real, a->query_count,
                                 columns, width, head);
    }
}

int64_t tsr_attention_row(const tsr_attention_case *a, int64_t lane)
{
    const int64_t head = a->first_head + lane / a->query_count;
    return (a->batch * a->heads + head) * a->queries + a->first_query + lane % a->query_count;
}
