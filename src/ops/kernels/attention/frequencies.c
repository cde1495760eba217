#include "ops/kernels/attention/frequencies.h"

#include "ops/kernels/attention/rope.h"

#include <tessera/sys/attachment.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <stdatomic.h>

#define TWO_PI 6.28318530717958647693

/* The most tables that a context keeps: a model has one or two. */
#define MOST_TABLES 8

/* Frequencies, and what they follow from. */
typedef struct table {
    struct table *next;
    double base, factor, low, high, fastest;
    int64_t original, half;
    double frequencies[];
} table;

/* A context's attachment: a list that only grows, so that readers take no lock. */
typedef struct tables {
    _Atomic(table *) first;
} tables;

/*
 * Llama 3.1 extends the context by slowing down the pairs that rotate slowly: those that turn less
 * than low_freq_factor times within the original length are slowed by `factor`, those that turn
 * more than high_freq_factor times are not, and those between get a blend. (Source:
 * models/llama3_1/api/model.py, apply_scaling, in github.com/meta-llama/llama-models.) Without an
 * original length all are slowed.
 */
static double slow_down(const tsr_attribute *a, double frequency)
{
    const double factor = a[TSR_ROPE_FACTOR].number, low = a[TSR_ROPE_LOW].number, high = a[TSR_ROPE_HIGH].number;
    const double turns = (double)a[TSR_ROPE_ORIGINAL].integer * frequency / TWO_PI;
    if (a[TSR_ROPE_ORIGINAL].integer == 0 || turns < low)
        return frequency / factor;
    if (turns > high)
        return frequency;
    const double blend = (turns - low) / (high - low);
    return (1 - blend) * frequency / factor + blend * frequency;
}

tsr_frequencies tsr_frequencies_compute(const tsr_attribute *attributes, int64_t half, double *memory)
{
    tsr_frequencies made = {0, memory};
    for (int64_t i = 0; i < half; i++) {
        memory[i] = slow_down(attributes, pow(attributes[TSR_ROPE_BASE].number, -(double)i / (double)half));
        made.fastest = memory[i] > made.fastest ? memory[i] : made.fastest;
    }
    return made;
}

static tsr_status make_tables(tsr_context *context, void **out)
{
    TSR_TRY(tsr_allocate(context, sizeof(tables), out));
    atomic_init(&((tables *)*out)->first, NULL);
    return TSR_OK;
}

static void destroy_tables(tsr_context *context, void *made)
{
    for (table *at = atomic_load(&((tables *)made)->first), *next; at; at = next) {
        next = at->next;
        tsr_release(context, at);
    }
    tsr_release(context, made);
}

static const tsr_attachment_kind kind = {make_tables, destroy_tables};

/* True if the table is that of a call's attributes. */
static bool is_of(const table *t, const tsr_attribute *a, int64_t half)
{
    return t->half == half && t->base == a[TSR_ROPE_BASE].number && t->factor == a[TSR_ROPE_FACTOR].number &&
           t->low == a[TSR_ROPE_LOW].number && t->high == a[TSR_ROPE_HIGH].number &&
           t->original == a[TSR_ROPE_ORIGINAL].integer;
}

static tsr_status find_tables(const tsr_kernel_call *call, tsr_context **context, tables **out)
{
    void *made;
    *context = tsr_mesh_context(tsr_layout_mesh(call->layouts[0]));
    TSR_TRY(tsr_context_attachment(*context, &kind, &made));
    *out = made;
    return TSR_OK;
}

bool tsr_frequencies_find(const tsr_kernel_call *call, int64_t half, tsr_frequencies *out)
{
    tsr_context *context;
    tables *kept;
    if (find_tables(call, &context, &kept) != TSR_OK)
        return false;
    const table *at = atomic_load_explicit(&kept->first, memory_order_acquire);
    while (at && !is_of(at, call->attributes, half))
        at = at->next;
    if (at)
        *out = (tsr_frequencies){at->fastest, at->frequencies};
    return at;
}

/* Makes a table that is not in the list yet. Two threads may make the same one. */
static tsr_status add_table(const tsr_kernel_call *call, int64_t half)
{
    const tsr_attribute *const a = call->attributes;
    tsr_context *context;
    tables *kept;
    void *memory;
    int count = 0;
    TSR_TRY(find_tables(call, &context, &kept));
    for (const table *at = atomic_load_explicit(&kept->first, memory_order_acquire); at; at = at->next)
        count++;
    if (count >= MOST_TABLES)
        return TSR_OK;
    TSR_TRY(tsr_allocate(context, sizeof(table) + (size_t)half * sizeof(double), &memory));
    table *const made = memory;
    *made = (table){.base = a[TSR_ROPE_BASE].number,
                    .factor = a[TSR_ROPE_FACTOR].number,
                    .low = a[TSR_ROPE_LOW].number,
                    .high = a[TSR_ROPE_HIGH].number,
                    .original = a[TSR_ROPE_ORIGINAL].integer,
                    .half = half};
    made->fastest = tsr_frequencies_compute(a, half, made->frequencies).fastest;
    made->next = atomic_load_explicit(&kept->first, memory_order_acquire);
    while (!atomic_compare_exchange_weak(&kept->first, &made->next, made))
        ;
    return TSR_OK;
}

void tsr_frequencies_keep(const tsr_kernel_call *call, int64_t half)
{
    tsr_frequencies found;
    tsr_kept_sentence sentence;
    if (half == 0 || tsr_frequencies_find(call, half, &found))
        return;
    tsr_status_keep(&sentence);
    (void)add_table(call, half);
    tsr_status_restore(&sentence, TSR_OK);
}
