#include "ops/kernels/attention/attention.h"

#include "ops/kernels/attention/attention_case.h"

#include <tessera/sys/status.h>

#include <string.h>

/* A record is a row for each query: the largest score, the sum of weights, and values. */
#define STATISTICS 2

/* Up to this many keys the gradient keeps the weights of a block; beyond it computes them again. */
#define KEPT_KEYS 8192

static bool is_whole(const tsr_attention_case *a)
{
    return a->call->stage == TSR_STAGE_WHOLE;
}

/* What lists of global indices take (attention_case.c), once the rest of the workspace is given
 * out. */
static int64_t list_bytes(const tsr_attention_case *a)
{
    tsr_attention_memory m = {NULL, 0};
    tsr_attention_take(&m, a->queries + a->heads, sizeof(int64_t) + sizeof(tsr_interval));
    tsr_attention_take(&m, a->keys + a->kv_heads, sizeof(int64_t) + sizeof(tsr_interval));
    return m.used + 8 * 64;
}

/* Copies the statistics of the block, and `count` values of each query, into this rank's record. */
static void write_record(const tsr_attention_case *a, const void *values, int64_t count, int64_t width)
{
    const tsr_attention_block *const b = &a->block;
    const int64_t row = (STATISTICS + count) * a->real;
    for (int64_t lane = 0; lane < tsr_attention_lanes(a); lane++) {
        char *const to = (char *)a->call->record + tsr_attention_row(a, lane) * row;
        memcpy(to, (const char *)b->largest + lane * a->real, (size_t)a->real);
        memcpy(to + a->real, (const char *)b->sum + lane * a->real, (size_t)a->real);
        memcpy(to + STATISTICS * a->real, (const char *)values + lane * width * a->real, (size_t)(count * a->real));
    }
}

/* Merges the records of the block's queries. */
static void read_records(const tsr_attention_case *a, void *values, int64_t count, int64_t width)
{
    const tsr_attention_block *const b = &a->block;
    const int64_t row = (STATISTICS + count) * a->real;
    for (int64_t lane = 0; lane < tsr_attention_lanes(a); lane++)
        a->kernels->merge[a->computed]((const char *)a->call->records + tsr_attention_row(a, lane) * row,
                                       a->call->record_stride, a->call->record_count, count,
                                       (char *)b->largest + lane * a->real, (char *)b->sum + lane * a->real,
                                       (char *)values + lane * width * a->real);
}

/* The forward call's memory beside the case. */
typedef struct forward {
    tsr_attention_case a;
    void *tile;
} forward;

/* True if keys and values go by as they lie in memory, in products with the few queries of the
 * block: decoding is bound by memory. */
static bool is_streamed(const tsr_attention_case *a)
{
    const tsr_attention_source *const k = &a->sources[0], *const v = &a->sources[1];
    return a->computed == TSR_F32 && a->block.used <= TSR_ATTENTION_FEW && !k->whole && !v->whole &&
           k->head.column_step == 1 && v->head.column_step == 1;
}

static tsr_attention_rows rows_at(const tsr_attention_case *a, const tsr_attention_head *head, int64_t first)
{
    return (tsr_attention_rows){head->at + first * head->row_step * a->bytes, head->row_step};
}

static void stream_block(forward *f)
{
    tsr_attention_case *const a = &f->a;
    tsr_attention_chunk chunk = {.weights = f->tile};
    tsr_attention_read_few(a);
    for (int64_t first = a->first_key; first < a->key_end; first += TSR_ATTENTION_KEYS) {
        tsr_attention_begin_chunk(a, first, &chunk);
        chunk.k = rows_at(a, &a->sources[0].head, first);
        chunk.v = rows_at(a, &a->sources[1].head, first);
        a->kernels->stream[a->memory](&a->block, &chunk);
    }
}

static void attend_block(forward *f)
{
    tsr_attention_case *const a = &f->a;
    tsr_attention_chunk chunk = {.weights = f->tile};
    if (is_streamed(a)) {
        stream_block(f);
        return;
    }
    tsr_attention_read_block(a);
    for (int64_t first = a->first_key; first < a->key_end; first += TSR_ATTENTION_KEYS) {
        tsr_attention_read_chunk(a, first, &chunk);
        a->kernels->attend[a->computed](&a->block, &chunk);
    }
}

/* Computes a block of queries: its results, its record, or its results from all ranks' records. */
static void run_block(forward *f)
{
    const tsr_attention_case *const a = &f->a;
    const tsr_attention_block *const b = &a->block;
    if (a->call->stage > 0) {
        read_records(a, b->out, a->value_dim, b->value_width);
    } else {
        attend_block(f);
        if (!is_whole(a)) {
            write_record(a, b->out, a->value_dim, b->value_width);
            return;
        }
        a->kernels->finish[a->computed](b, NULL);
    }
    tsr_attention_write_block(a, &a->call->outputs[0], a->value_dim, b->value_width);
}

static void measure_forward(const tsr_kernel_call *call, tsr_attention_memory *memory, forward *f)
{
    tsr_attention_measure(call, false, memory, &f->a);
    f->tile = tsr_attention_take(memory, (int64_t)TSR_ATTENTION_KEYS * TSR_ATTENTION_LANES, f->a.real);
}

tsr_status tsr_attention_run(const tsr_kernel_call *call)
{
    forward f;
    tsr_attention_memory memory = {call->workspace, 0};
    measure_forward(call, &memory, &f);
    tsr_attention_case *const a = &f.a;
    TSR_TRY(tsr_attention_locate(a, memory));
    for (a->batch = 0; a->batch < a->batches; a->batch++) {
        for (int64_t kv_head = 0; kv_head < a->kv_heads; kv_head++) {
            int64_t head = a->head_begin[kv_head], query = 0;
            if (call->stage <= 0)
                tsr_attention_enter(a, kv_head);
            while (tsr_attention_next_block(a, kv_head, &head, &query))
                run_block(&f);
        }
    }
    return TSR_OK;
}

int64_t tsr_attention_workspace(const tsr_kernel_call *call)
{
    forward f;
    tsr_attention_memory memory = {NULL, 0};
    measure_forward(call, &memory, &f);
    return memory.used + list_bytes(&f.a);
}

int64_t tsr_attention_record(const tsr_kernel_call *call)
{
    forward f;
    tsr_attention_memory memory = {NULL, 0};
    measure_forward(call, &memory, &f);
    return f.a.batches * f.a.heads * f.a.queries * (STATISTICS + f.a.value_dim) * f.a.real;
}

/* The gradient's memory beside the case. */
typedef struct gradient {
    tsr_attention_case a;
    void *dk, *dv;                    /* of all keys of the head */
    void *weights, *slopes, *largest; /* of all chunks, or of one */
    bool keeps;                       /* weights are kept for all chunks */
} gradient;

static void measure_gradient(const tsr_kernel_call *call, tsr_attention_memory *memory, gradient *g)
{
    tsr_attention_case *const a = &g->a;
    tsr_attention_measure(call, true, memory, a);
    g->keeps = a->keys <= KEPT_KEYS;
    const int64_t tiles = g->keeps ? (a->keys + TSR_ATTENTION_KEYS - 1) / TSR_ATTENTION_KEYS : 1;
    const int64_t lanes = tiles * TSR_ATTENTION_LANES;
    g->dk = tsr_attention_take(memory, a->keys, a->block.width * a->real);
    g->dv = tsr_attention_take(memory, a->keys, a->block.value_width * a->real);
    g->weights = tsr_attention_take(memory, lanes * TSR_ATTENTION_KEYS, a->real);
    g->slopes = tsr_attention_take(memory, lanes * TSR_ATTENTION_KEYS, a->real);
    g->largest = tsr_attention_take(memory, lanes, a->real);
}

/* The chunk that begins with key `first`, as tiles are kept or not. */
static tsr_attention_chunk chunk_of(const gradient *g, int64_t first, bool keeps)
{
    const tsr_attention_case *const a = &g->a;
    const int64_t tile = keeps ? (first - a->first_key) / TSR_ATTENTION_KEYS * TSR_ATTENTION_LANES * a->real : 0;
    tsr_attention_chunk chunk = {.weights = (char *)g->weights + tile * TSR_ATTENTION_KEYS,
                                 .slopes = (char *)g->slopes + tile * TSR_ATTENTION_KEYS,
                                 .largest = (char *)g->largest + tile};
    tsr_attention_read_chunk(a, first, &chunk);
    chunk.dk = (tsr_attention_rows){(char *)g->dk + first * a->block.width * a->real, a->block.width};
    chunk.dv = (tsr_attention_rows){(char *)g->dv + first * a->block.value_width * a->real, a->block.value_width};
    return chunk;
}

static void measure_block(const gradient *g, bool keeps)
{
    for (int64_t first = g->a.first_key; first < g->a.key_end; first += TSR_ATTENTION_KEYS) {
        const tsr_attention_chunk chunk = chunk_of(g, first, keeps);
        g->a.kernels->measure[g->a.computed](&g->a.block, &chunk);
    }
}

static void differentiate_block(const gradient *g, bool kept)
{
    for (int64_t first = g->a.first_key; first < g->a.key_end; first += TSR_ATTENTION_KEYS) {
        const tsr_attention_chunk chunk = chunk_of(g, first, kept);
        if (!kept)
            g->a.kernels->recall[g->a.computed](&g->a.block, &chunk);
        g->a.kernels->differentiate[g->a.computed](&g->a.block, &chunk);
    }
}

static void run_gradient_block(gradient *g)
{
    tsr_attention_case *const a = &g->a;
    tsr_attention_read_block(a);
    const bool kept = g->keeps && is_whole(a);
    if (a->call->stage > 0) {
        read_records(a, a->block.delta, 1, 1);
    } else {
        measure_block(g, kept);
        if (!is_whole(a)) {
            write_record(a, a->block.delta, 1, 1);
            return;
        }
        a->kernels->finish[a->computed](&a->block, NULL);
    }
    differentiate_block(g, kept);
    tsr_attention_write_block(a, &a->call->outputs[0], a->dim, a->block.width);
}

/* All queries of a head of k, which then gets its gradients. */
static void run_gradient_head(gradient *g, int64_t kv_head)
{
    tsr_attention_case *const a = &g->a;
    const tsr_attention_block *const b = &a->block;
    int64_t head = a->head_begin[kv_head], query = 0;
    memset(g->dk, 0, (size_t)(a->keys * b->width * a->real));
    memset(g->dv, 0, (size_t)(a->keys * b->value_width * a->real));
    tsr_attention_enter(a, kv_head);
    while (tsr_attention_next_block(a, kv_head, &head, &query))
        run_gradient_block(g);
    if (a->call->stage == 0)
        return;
    tsr_attention_write_rows(a, g->dk, a->keys, a->dim, b->width,
                             tsr_attention_head_of(a, &a->call->outputs[1], kv_head));
    tsr_attention_write_rows(a, g->dv, a->keys, a->value_dim, b->value_width,
                             tsr_attention_head_of(a, &a->call->outputs[2], kv_head));
}

tsr_status tsr_attention_gradient_run(const tsr_kernel_call *call)
{
    gradient g;
    tsr_attention_memory memory = {call->workspace, 0};
    measure_gradient(call, &memory, &g);
    TSR_TRY(tsr_attention_locate(&g.a, memory));
    for (g.a.batch = 0; g.a.batch < g.a.batches; g.a.batch++)
        for (int64_t kv_head = 0; kv_head < g.a.kv_heads; kv_head++)
            run_gradient_head(&g, kv_head);
    return TSR_OK;
}

int64_t tsr_attention_gradient_workspace(const tsr_kernel_call *call)
{
    gradient g;
    tsr_attention_memory memory = {NULL, 0};
    measure_gradient(call, &memory, &g);
    return memory.used + list_bytes(&g.a);
}

int64_t tsr_attention_gradient_record(const tsr_kernel_call *call)
{
    gradient g;
    tsr_attention_memory memory = {NULL, 0};
    measure_gradient(call, &memory, &g);
    return g.a.batches * g.a.heads * g.a.queries * (STATISTICS + 1) * g.a.real;
}
