#include "ops/blas_guard.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* What openblas_get_parallel() says about the build. */
enum { BUILD_SERIAL = 0, BUILD_PTHREAD = 1, BUILD_OPENMP = 2 };

/* Tokens of tsr_blas_begin() other than an OpenMP thread count to restore, which is above 1. */
enum { TOKEN_NONE = 0, TOKEN_LOCKED = -1 };

/* `calls` orders BLAS calls where they must not overlap, `lock` guards the rest. The OpenMP calls are looked up in the process, which maps
 * that runtime exactly when OpenBLAS needs it. */
static struct {
    pthread_mutex_t lock, calls;
    int holders;
    int host_threads;
    int (*omp_get)(void);
    void (*omp_set)(int);
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .calls = PTHREAD_MUTEX_INITIALIZER};

static void find_openmp(void)
{
    void *get = dlsym(RTLD_DEFAULT, "omp_get_max_threads"), *set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!get || !set)
        return;
    *(void **)&guard.omp_get = get;
    *(void **)&guard.omp_set = set;
}

/* An OpenMP build also sets the calling thread's own count, which is the host's and put back. */
static void set_blas_threads(int count)
{
    const int own = guard.omp_get ? guard.omp_get() : 0;
    openblas_set_num_threads(count);
    if (own)
        guard.omp_set(own);
}

void tsr_blas_hold(void)
{
    pthread_mutex_lock(&guard.lock);
    if (guard.holders++ == 0) {
        if (openblas_get_parallel() == BUILD_OPENMP)
            find_openmp();
        guard.host_threads = openblas_get_num_threads();
        set_blas_threads(1);
    }
    pthread_mutex_unlock(&guard.lock);
}

void tsr_blas_release(void)
{
    pthread_mutex_lock(&guard.lock);
    if (--guard.holders == 0 && openblas_get_num_threads() == 1)
        set_blas_threads(guard.host_threads);
    pthread_mutex_unlock(&guard.lock);
}

int tsr_blas_begin(void)
{
    const int build = openblas_get_parallel();
    if (build == BUILD_PTHREAD)
        return TOKEN_NONE;
    if (build == BUILD_OPENMP && guard.omp_get) {
        const int own = guard.omp_get();
        if (own == 1)
            return TOKEN_NONE;
        guard.omp_set(1);
        return own;
    }
    pthread_mutex_lock(&guard.calls);
    return TOKEN_LOCKED;
}

void tsr_blas_end(int token)
{
    if (token == TOKEN_LOCKED)
        pthread_mutex_unlock(&guard.calls);
    else if (token != TOKEN_NONE)
        guard.omp_set(token);
}
