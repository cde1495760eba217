/* Calls nearly every public function with each allocation, mapping and thread failing in turn:
 * alone, and with all later ones. */
#include "faults.h"
#include "workload.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KINDS = FAULT_WRITE + 1, OF_CONTEXT = FAULT_WRITE, WARM_UPS = 3, FILE_BYTES = 1200 };

/* The allocator of a context, all of whose memory must be freed. */
static atomic_long given, calls, fails_at;
static atomic_int fails_sticky;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    const long call = atomic_fetch_add(&calls, 1);
    void *memory = NULL;
    if (fails_at >= 0 && (fails_sticky ? call >= fails_at : call == fails_at))
        return NULL;
    if (posix_memalign(&memory, alignment, bytes ? bytes : 1) == 0)
        given++;
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    given--;
    free(memory);
}

typedef struct trial {
    int kind;
    long at;
    bool sticky;
} trial;

static tsr_status run_in_context(drill *d, const trial *t, const char *file)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context = NULL;
    options.allocator = (tsr_allocator){allocate, release, NULL};
    calls = 0;
    fails_sticky = t->sticky;
    fails_at = t->at;
    tsr_status status = tsr_context_create(&options, &context);
    if (status == TSR_OK)
        status = workload_run(d, context, file);
    tsr_context_destroy(context);
    fails_at = -1;
    if (given != 0)
        drill_fail(d, "%ld pieces of the context's memory were not given back", (long)given);
    given = 0;
    return status;
}

static tsr_status run_trial(drill *d, const trial *t, const char *file)
{
    if (t->kind == OF_CONTEXT)
        return run_in_context(d, t, file);
    faults_arm((fault_kind)t->kind, t->at, t->sticky);
    const tsr_status status = workload_run(d, NULL, file);
    faults_disarm();
    return status;
}

/* Counts the calls of each kind in the workload, which runs several times, since the C library
 * keeps some memory when threads first run. */
static bool count_calls(drill *d, const char *file, long *counts)
{
    bool ran = true;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < WARM_UPS; i++) {
            const trial whole = {kind, -1, false};
            ran = ran && run_trial(d, &whole, file) == TSR_OK;
            counts[kind] = kind == OF_CONTEXT ? calls : faults_calls((fault_kind)kind);
        }
    return ran;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* The trial of a case: a permutation of all trials in which any few consecutive cases are spread
 * over all; each comes once in `total` cases. */
static trial trial_of(uint64_t seed, int64_t index, const long *counts, int64_t total)
{
    int64_t step = total * 5 / 8 + 1;
    while (common_divisor(total, step) != 1)
        step++;
    int64_t left = (int64_t)((seed + (uint64_t)index) % (uint64_t)total) * step % total;
    trial t = {0};
    t.sticky = left % 2;
    left /= 2;
    for (; left >= counts[t.kind]; t.kind++)
        left -= counts[t.kind];
    t.at = left;
    return t;
}

static bool make_file(char *path, size_t capacity)
{
    static const char bytes[FILE_BYTES];
    const char *directory = getenv("TMPDIR");
    snprintf(path, capacity, "%s/drill-allocations-XXXXXX", directory ? directory : "/tmp");
    const int file = mkstemp(path);
    if (file < 0)
        return false;
    const bool written = write(file, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
    return close(file) == 0 && written;
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"malloc", "mmap", "pthread_create", "allocation of the context"};
    drill_about about = {
        "allocations",
        "where memory or a thread is missing every rank gets a status with a sentence, nothing leaks or hangs",
        INT64_MAX, 60};
    drill *d = drill_begin(argc, argv, &about);
    char path[4096];
    long counts[KINDS];
    if (!make_file(path, sizeof path) || !count_calls(d, path, counts)) {
        fprintf(stderr, "drill allocations: the workload does not run as it is\n");
        return 1;
    }
    const int64_t total = 2 * (counts[0] + counts[1] + counts[2] + counts[3]);
    const long live = faults_live();
    long slack = 16;
    int64_t index;
    drill_limit(d, total);
    while (drill_next(d, &index)) {
        const trial t = trial_of(drill_seed(d), index, counts, total);
        run_trial(d, &t, path);
        if (faults_live() > live + slack) {
            drill_fail(d, "%s %ld%s: %ld pieces of memory more than before", kinds[t.kind], t.at,
                       t.sticky ? " and all later" : "", faults_live() - live);
            slack = faults_live() - live;
        }
    }
    unlink(path);
    return drill_end(d);
}
