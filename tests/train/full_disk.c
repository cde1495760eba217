/* Preloaded: pwrite() finds the disk full from call number TSR_TEST_WRITES on. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int calls;

#pragma GCC visibility push(default)

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
    const char *const most = getenv("TSR_TEST_WRITES");
    if (most && atomic_fetch_add(&calls, 1) >= atoi(most)) {
        errno = ENOSPC;
        return -1;
    }
    return __extension__((__typeof__(&pwrite))dlsym(RTLD_NEXT, "pwrite"))(file, bytes, count, at);
}

#pragma GCC visibility pop
