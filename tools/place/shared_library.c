#include "place/shared_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lower bound of the memory that the loader needs for a library, in bytes. */
#define LOADER_BYTES 4096

void *shared_library_open(const char *file, int flags)
{
    /* The loader reports a lack of memory in many ways, "no such file" among them, so a failure is
     * tried once more. */
    void *library = dlopen(file, flags);
    if (!library)
        library = dlopen(file, flags);
    void *const probe = malloc(LOADER_BYTES);
    errno = !probe ? ENOMEM : 0;
    free(probe);
    return library;
}

const char *shared_library_reason(const char *file, int flags)
{
    static const char lack[] = "out of memory";
    const char *const said = dlerror();
    if (!said || strncmp(said, lack, sizeof lack - 1) != 0 || dlopen(file, flags))
        return said;
    return dlerror();
}
