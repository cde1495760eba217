/* Copies BYTES by THREADS threads at once, an equal part each, with the C library's memcpy():
 * memcpy_moves THREADS BYTES SAMPLES. */
#include "pages.h"
#include "timing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What the threads share. Each thread writes only its own row of `seconds`; thread 0 sets `calls`
 * between two barriers. */
typedef struct team {
    pthread_barrier_t together;
    int threads, samples;
    size_t bytes; /* bytes of a thread */
    int calls;    /* calls in a sample */
    double *seconds;
} team;

typedef struct member {
    team *team;
    int index;
    long long wrong;
    pthread_t thread;
} member;

static char *allocate(size_t bytes, int value)
{
    char *const at = allocate_pages(bytes);
    if (!at)
        abort();
    memset(at, value, bytes);
    return at;
}

static double copy_calls(char *dst, const char *src, size_t bytes, int calls)
{
    const double start = clock_seconds();
    for (int i = 0; i < calls; i++) {
        memcpy(dst, src, bytes);
        /* keeps the compiler from dropping copies that the next copy overwrites */
        __asm__ volatile("" : : "r"(dst) : "memory");
    }
    return (clock_seconds() - start) / calls;
}

/* Copies t->calls times between two barriers; returns this thread's seconds of a copy. */
static double copy_together(team *t, char *dst, const char *src)
{
    pthread_barrier_wait(&t->together);
    const double seconds = copy_calls(dst, src, t->bytes, t->calls);
    pthread_barrier_wait(&t->together);
    return seconds;
}

/* Warms up; the first copies touch the memory. Thread 0 decides how many calls fill a sample. */
static void warm_up(const member *m, char *dst, const char *src)
{
    team *const t = m->team;
    copy_together(t, dst, src);
    for (int i = 0; i <= WARM_LOOPS; i++) {
        const double seconds = copy_together(t, dst, src);
        if (m->index == 0)
            t->calls = calls_in_sample(seconds);
        pthread_barrier_wait(&t->together);
    }
}

static void *run_member(void *arg)
{
    member *const m = arg;
    team *const t = m->team;
    char *const src = allocate(t->bytes, 1), *const dst = allocate(t->bytes, 0);
    warm_up(m, dst, src);
    for (int s = 0; s < t->samples; s++)
        t->seconds[m->index * t->samples + s] = copy_together(t, dst, src);
    m->wrong = memcmp(dst, src, t->bytes) != 0;
    free(src);
    free(dst);
    return NULL;
}

/* Joins the threads, and leaves the slowest time of each sample in thread 0's row. Returns the
 * number of threads with wrong copies. */
static long long join(team *t, member *members)
{
    long long wrong = 0;
    for (int i = 0; i < t->threads; i++) {
        pthread_join(members[i].thread, NULL);
        wrong += members[i].wrong;
    }
    for (int i = 1; i < t->threads; i++)
        for (int s = 0; s < t->samples; s++)
            if (t->seconds[i * t->samples + s] > t->seconds[s])
                t->seconds[s] = t->seconds[i * t->samples + s];
    return wrong;
}

int main(int argc, char **argv)
{
    team t = {.threads = argc == 4 ? atoi(argv[1]) : 0, .samples = argc == 4 ? atoi(argv[3]) : 0, .calls = 1};
    if (t.threads < 1 || t.samples < 1) {
        fprintf(stderr, "usage: memcpy_moves THREADS BYTES SAMPLES\n");
        return 2;
    }
    t.bytes = (size_t)(atoll(argv[2]) / t.threads);
    t.seconds = calloc((size_t)t.threads * (size_t)t.samples, sizeof *t.seconds);
    member *const members = calloc((size_t)t.threads, sizeof *members);
    if (!t.seconds || !members)
        abort();
    pthread_barrier_init(&t.together, NULL, (unsigned)t.threads);
    for (int i = 0; i < t.threads; i++) {
        members[i] = (member){.team = &t, .index = i};
        if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0)
            abort();
    }
    const long long wrong = join(&t, members);
    print_answer(t.seconds, t.samples, wrong);
    pthread_barrier_destroy(&t.together);
    free(t.seconds);
    free(members);
    return wrong > 0;
}
