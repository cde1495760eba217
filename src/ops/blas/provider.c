#include "ops/blas/provider.h"

#include "ops/blas/open.h"

#include <tessera/sys/attachment.h>
#include <tessera/sys/log.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A context's attachment: its providers in order, and their libraries. */
typedef struct opened {
    tsr_blas_provider by[TSR_MOST_PROVIDERS];
    double seconds[TSR_MOST_PROVIDERS]; /* of a product, by each provider; 0: not measured */
    int count;
    tsr_library libraries[TSR_MOST_PROVIDERS];
    int library_count;
} opened;

static void close_all(tsr_context *context, void *made)
{
    opened *all = made;
    for (int i = 0; i < all->library_count; i++)
        tsr_library_close(context, &all->libraries[i]);
    tsr_release(context, all);
}

/* Adds a provider unless one with the same identity is there: one library under two names, or an
 * equal build. */
static void add_provider(opened *all, const tsr_blas_provider *provider)
{
    for (int i = 0; i < all->count; i++)
        if (tsr_provider_identity(&all->by[i]) == tsr_provider_identity(provider))
            return;
    all->by[all->count++] = *provider;
}

/* Opens the linked library, as libraries[0]; its place among the providers is decided later. */
static tsr_status link_first(tsr_context *context, opened *all)
{
    all->library_count = 1;
    return tsr_library_link(context, &all->libraries[0]);
}

static void add_linked(opened *all)
{
    add_provider(all, &all->libraries[0].provider);
}

static tsr_status add_named(tsr_context *context, opened *all, const char *name)
{
    if (strcmp(name, all->libraries[0].name) == 0) {
        add_linked(all);
        return TSR_OK;
    }
    if (all->library_count == TSR_MOST_PROVIDERS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "blas names more than %d libraries", TSR_MOST_PROVIDERS - 1);
    tsr_library *library = &all->libraries[all->library_count++];
    TSR_TRY(tsr_library_open(context, name, library));
    add_provider(all, &library->provider);
    return TSR_OK;
}

/* Adds all known libraries that are found. A library that is not found is no error. */
static void add_found(tsr_context *context, opened *all)
{
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    for (int i = 0; tsr_library_name(i); i++)
        add_named(context, all, tsr_library_name(i));
    add_linked(all);
    tsr_status_restore(&kept, TSR_OK);
}

static tsr_status add_listed(tsr_context *context, opened *all, const char *list)
{
    void *memory;
    TSR_TRY(tsr_allocate(context, strlen(list) + 1, &memory));
    tsr_status status = TSR_OK;
    char *rest = strcpy(memory, list);
    for (char *name = strsep(&rest, ","); name && status == TSR_OK; name = strsep(&rest, ",")) {
        if (strcmp(name, "auto") == 0)
            add_found(context, all);
        else
            status = add_named(context, all, name);
    }
    tsr_release(context, memory);
    return status;
}

/* ROUNDS products of SIDE x SIDE matrices tell which library is faster, in some milliseconds. */
enum { SIDE = 256, ROUNDS = 5 };

/* Seconds of this thread's CPU time: other threads may take its core meanwhile. */
static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double time_product(const tsr_blas_provider *provider, float *matrices)
{
    const tsr_blas_gemm product = {.m = SIDE,
                                   .n = SIDE,
                                   .k = SIDE,
                                   .alpha = 1,
                                   .a = matrices,
                                   .b = matrices,
                                   .c = matrices + SIDE * SIDE,
                                   .lda = SIDE,
                                   .ldb = SIDE,
                                   .ldc = SIDE};
    const int token = tsr_provider_begin(provider);
    const double start = cpu_seconds();
    const tsr_status status = provider->table->gemm_f32(provider->self, &product);
    const double seconds = cpu_seconds() - start;
    tsr_provider_end(provider, token);
    return status == TSR_OK ? seconds : 1e9;
}

/* Times the libraries in turns and takes the best of each, because a library's first products are
 * slow. */
static void measure_providers(opened *all, float *matrices)
{
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        matrices[i] = (float)(i % 61 - 30) / 64;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < all->count; i++) {
            const double seconds = all->by[i].table->gemm_f32 ? time_product(&all->by[i], matrices) : 1e9;
            all->seconds[i] = round == 0 || seconds < all->seconds[i] ? seconds : all->seconds[i];
        }
}

static void move_to_front(opened *all, int index)
{
    const tsr_blas_provider moved = all->by[index];
    const double seconds = all->seconds[index];
    memmove(&all->by[1], &all->by[0], (size_t)index * sizeof all->by[0]);
    memmove(&all->seconds[1], &all->seconds[0], (size_t)index * sizeof all->seconds[0]);
    all->by[0] = moved;
    all->seconds[0] = seconds;
}

/* Sorts the first `named` providers, the fastest first: selects the slowest, then the next, and
 * moves each to the front. */
static void sort(opened *all, int named)
{
    for (int done = 0; done < named; done++) {
        int slowest = done;
        for (int i = done + 1; i < named; i++)
            slowest = all->seconds[i] > all->seconds[slowest] ? i : slowest;
        move_to_front(all, slowest);
    }
}

static tsr_choice choose_all(const opened *all)
{
    tsr_choice choice = {.count = all->count};
    for (int i = 0; i < all->count; i++)
        choice.by[i] = &all->by[i];
    return choice;
}

static tsr_status put_in_order(tsr_context *context, opened *all, int named)
{
    void *memory;
    if (named < 2)
        return TSR_OK;
    TSR_TRY(tsr_allocate(context, 2 * SIDE * SIDE * sizeof(float), &memory));
    tsr_choice choice = choose_all(all);
    tsr_choice_hold(&choice);
    measure_providers(all, memory);
    tsr_choice_release(&choice);
    tsr_release(context, memory);
    sort(all, named);
    return TSR_OK;
}

static void tell_first(tsr_context *context, const opened *all)
{
    const tsr_blas_provider *first = &all->by[0];
    tsr_log(context, TSR_LOG_INFO, "BLAS: %s (%s), kernels for %s, the first of %d", first->table->name, first->source,
            first->table->core, all->count);
    if (first->warning)
        tsr_log(context, TSR_LOG_WARN, "%s", first->warning);
}

/* Opens the named providers, the fastest first, then the linked one, which has the products that
 * they lack. */
static tsr_status open_all(tsr_context *context, opened *all)
{
    TSR_TRY(link_first(context, all));
    if (tsr_context_blas(context))
        TSR_TRY(add_listed(context, all, tsr_context_blas(context)));
    const int named = all->count;
    add_linked(all);
    return put_in_order(context, all, named);
}

static tsr_status make_providers(tsr_context *context, void **out)
{
    void *memory;
    TSR_TRY(tsr_allocate(context, sizeof(opened), &memory));
    opened *all = memset(memory, 0, sizeof(opened));
    const tsr_status status = open_all(context, all);
    if (status != TSR_OK) {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        close_all(context, all);
        return tsr_status_restore(&kept, status);
    }
    tell_first(context, all);
    *out = all;
    return TSR_OK;
}

static const tsr_attachment_kind kind = {make_providers, close_all};

tsr_status tsr_blas_providers(tsr_context *context, const tsr_blas_provider **out, int *count)
{
    void *made;
    TSR_TRY(tsr_context_attachment(context, &kind, &made));
    const opened *all = made;
    *out = all->by;
    *count = all->count;
    return TSR_OK;
}

tsr_status tsr_choice_own(tsr_context *context, tsr_choice *out)
{
    const tsr_blas_provider *providers;
    TSR_TRY(tsr_blas_providers(context, &providers, &out->count));
    for (int i = 0; i < out->count; i++)
        out->by[i] = &providers[i];
    out->kernels = tsr_context_kernels(context);
    out->held = false;
    return TSR_OK;
}
