#include "ops/blas/guard.h"

#include <pthread.h>
#include <stddef.h>

/* Results of openblas_get_parallel(). */
enum { BUILD_SERIAL = 0, BUILD_PTHREAD = 1, BUILD_OPENMP = 2 };

/* Tokens of tsr_blas_begin(). A token above 1 is an OpenMP thread count to restore. */
enum { TOKEN_NONE = 0, TOKEN_LOCKED = -1 };

/* How many OpenBLAS libraries a process can guard. */
enum { GUARDS = 8 };

/* `calls` serialises BLAS calls that must not overlap. */
struct tsr_blas_guard {
    tsr_blas_threads threads;
    pthread_mutex_t calls;
    int build, holders, host_threads;
};

/* All guards of the process; they are never removed. The lock protects the list and the guards'
 * counts. */
static struct {
    pthread_mutex_t lock;
    int count;
    tsr_blas_guard guards[GUARDS];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tsr_blas_guard *find_or_add(const tsr_blas_threads *threads)
{
    for (int i = 0; i < process.count; i++)
        if (process.guards[i].threads.set == threads->set)
            return &process.guards[i];
    if (process.count == GUARDS)
        return NULL;
    tsr_blas_guard *guard = &process.guards[process.count++];
    *guard = (tsr_blas_guard){.threads = *threads, .calls = PTHREAD_MUTEX_INITIALIZER, .build = threads->parallel()};
    return guard;
}

tsr_blas_guard *tsr_blas_guard_of(const tsr_blas_threads *threads)
{
    pthread_mutex_lock(&process.lock);
    tsr_blas_guard *guard = find_or_add(threads);
    pthread_mutex_unlock(&process.lock);
    return guard;
}

/* Sets OpenBLAS' thread count. An OpenMP build also changes the calling thread's own count, which
 * belongs to the program and is restored. */
static void set_blas_threads(const tsr_blas_guard *guard, int count)
{
    const tsr_blas_threads *threads = &guard->threads;
    const int own = guard->build == BUILD_OPENMP && threads->omp_get ? threads->omp_get() : 0;
    threads->set(count);
    if (own)
        threads->omp_set(own);
}

void tsr_blas_hold(tsr_blas_guard *guard)
{
    pthread_mutex_lock(&process.lock);
    if (guard->holders++ == 0) {
        guard->host_threads = guard->threads.get();
        set_blas_threads(guard, 1);
    }
    pthread_mutex_unlock(&process.lock);
}

void tsr_blas_release(tsr_blas_guard *guard)
{
    pthread_mutex_lock(&process.lock);
    if (--guard->holders == 0 && guard->threads.get() == 1)
        set_blas_threads(guard, guard->host_threads);
    pthread_mutex_unlock(&process.lock);
}

int tsr_blas_begin(tsr_blas_guard *guard)
{
    const tsr_blas_threads *threads = &guard->threads;
    if (guard->build == BUILD_PTHREAD)
        return TOKEN_NONE;
    if (guard->build == BUILD_OPENMP && threads->omp_get) {
        const int own = threads->omp_get();
        if (own == 1)
            return TOKEN_NONE;
        threads->omp_set(1);
        return own;
    }
    pthread_mutex_lock(&guard->calls);
    return TOKEN_LOCKED;
}

void tsr_blas_end(tsr_blas_guard *guard, int token)
{
    if (token == TOKEN_LOCKED)
        pthread_mutex_unlock(&guard->calls);
    else if (token != TOKEN_NONE)
        guard->threads.omp_set(token);
}
