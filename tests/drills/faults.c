#undef _FILE_OFFSET_BITS /* with it, mmap would be a macro for mmap64, and both are needed */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TAKES_PLACE __attribute__((visibility("default")))

/* The GNU C library's own functions, under their exported names. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

static atomic_long calls[FAULT_KINDS], live;
static atomic_long fails_at;
static atomic_int fails_kind, fails_sticky, armed;

void faults_arm(fault_kind kind, long at, bool sticky)
{
    for (int k = 0; k < FAULT_KINDS; k++)
        calls[k] = 0;
    fails_at = at;
    fails_kind = (int)kind;
    fails_sticky = sticky;
    armed = 1;
}

void faults_disarm(void)
{
    armed = 0;
}

long faults_calls(fault_kind kind)
{
    return calls[kind];
}

long faults_live(void)
{
    return live;
}

static bool fails(fault_kind kind)
{
    if (!armed)
        return false;
    const long call = atomic_fetch_add(&calls[kind], 1);
    return (int)kind == fails_kind && (fails_sticky ? call >= fails_at : call == fails_at);
}

static void *given(void *memory)
{
    live += memory != NULL;
    return memory;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

TAKES_PLACE void *malloc(size_t bytes)
{
    return fails(FAULT_MALLOC) ? no_memory() : given(__libc_malloc(bytes));
}

TAKES_PLACE void *calloc(size_t count, size_t bytes)
{
    return fails(FAULT_MALLOC) ? no_memory() : given(__libc_calloc(count, bytes));
}

TAKES_PLACE void *realloc(void *memory, size_t bytes)
{
    if (fails(FAULT_MALLOC))
        return no_memory();
    void *moved = __libc_realloc(memory, bytes);
    live += memory ? -(!moved && bytes == 0) : moved != NULL;
    return moved;
}

TAKES_PLACE void *memalign(size_t alignment, size_t bytes);
TAKES_PLACE void *memalign(size_t alignment, size_t bytes)
{
    return fails(FAULT_MALLOC) ? no_memory() : given(__libc_memalign(alignment, bytes));
}

TAKES_PLACE void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

TAKES_PLACE int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *memory = memalign(alignment, bytes);
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}

TAKES_PLACE void free(void *memory)
{
    live -= memory != NULL;
    __libc_free(memory);
}

/* Finds the function that is replaced. memcpy(), since ISO C has no cast from an object pointer to
 * a function pointer. */
static void find_next(const char *name, void *function)
{
    void *next = dlsym(RTLD_NEXT, name);
    memcpy(function, &next, sizeof next);
}

TAKES_PLACE void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *(*next)(void *, size_t, int, int, int, off_t);
    if (fails(FAULT_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    find_next("mmap", &next);
    return next(at, bytes, protection, flags, file, offset);
}

TAKES_PLACE void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    return mmap(at, bytes, protection, flags, file, offset);
}

TAKES_PLACE int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (fails(FAULT_THREAD))
        return EAGAIN;
    find_next("pthread_create", &next);
    return next(thread, attributes, start, arg);
}

TAKES_PLACE ssize_t write(int file, const void *bytes, size_t count)
{
    ssize_t (*next)(int, const void *, size_t);
    if (fails(FAULT_WRITE)) {
        errno = ENOSPC;
        return -1;
    }
    find_next("write", &next);
    return next(file, bytes, count);
}

/* For preloading. */

__attribute__((constructor)) static void read_environment(void)
{
    static const char *const names[] = {"malloc", "mmap", "thread", "write"};
    const char *kind = getenv("FAULTS_KIND"), *at = getenv("FAULTS_AT");
    if (getenv("FAULTS_REPORT"))
        faults_arm(FAULT_KINDS, 0, false);
    for (int k = 0; kind && at && k < FAULT_KINDS; k++)
        if (strcmp(kind, names[k]) == 0)
            faults_arm((fault_kind)k, atol(at), getenv("FAULTS_STICKY") != NULL);
}

__attribute__((destructor)) static void write_report(void)
{
    const char *path = getenv("FAULTS_REPORT");
    faults_disarm();
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (int k = 0; k < FAULT_KINDS; k++)
        fprintf(file, "%ld\n", faults_calls((fault_kind)k));
    fclose(file);
}

/* Hides the libraries of GPUs, since vendors' libraries end the process when memory is short. */
static bool left_out;

TAKES_PLACE void *dlopen(const char *file, int flags)
{
    void *(*next)(const char *, int);
    void *const found = dlsym(RTLD_NEXT, "dlopen");
    left_out = file && strstr(file, "libtessera-cuda");
    memcpy(&next, &found, sizeof next);
    return left_out ? NULL : next(file, flags);
}

TAKES_PLACE char *dlerror(void)
{
    static char words[] = "it is left out";
    char *(*next)(void);
    void *const found = dlsym(RTLD_NEXT, "dlerror");
    memcpy(&next, &found, sizeof next);
    return left_out ? words : next();
}
