#include "comm/run/library.h"

#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lower bound of the memory that the loader needs for a library, in bytes. */
#define LOADER_BYTES 4096

/* Its address lies in the library or program that has this copy of libtessera-core. */
static const char anchor;

/* Writes the path of `file` in the folder of libtessera-core. False if there is no such file. */
static bool find_beside(const char *file, char path[PATH_MAX])
{
    Dl_info own;
    if (dladdr(&anchor, &own) == 0 || !own.dli_fname)
        return false;
    const char *const slash = strrchr(own.dli_fname, '/');
    if (!slash)
        return false;
    const int length = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - own.dli_fname), own.dli_fname, file);
    return length < PATH_MAX && access(path, F_OK) == 0;
}

/* True if a folder of LD_LIBRARY_PATH has `file`, so that the loader takes that one. */
static bool user_names(const char *file)
{
    char path[PATH_MAX];
    const char *folder = getenv("LD_LIBRARY_PATH");
    for (size_t length; folder && *folder; folder += length + (folder[length] != '\0')) {
        length = strcspn(folder, ":;");
        const int bytes = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, file);
        if (length > 0 && bytes < PATH_MAX && access(path, F_OK) == 0)
            return true;
    }
    return false;
}

/* The loader reports a lack of memory in many ways, "no such file" among them, so a failure is
 * tried once more. */
static void *open_twice(const char *file, int flags)
{
    void *const library = dlopen(file, flags);
    return library ? library : dlopen(file, flags);
}

static tsr_status refuse(const char *file, int flags)
{
    static const char lack[] = "out of memory";
    const char *said = dlerror();
    void *const probe = malloc(LOADER_BYTES);
    const tsr_status status = probe ? TSR_ERROR_UNAVAILABLE : TSR_ERROR_MEMORY;
    free(probe);
    /* The loader may have lacked memory for the reason itself. */
    if (said && strncmp(said, lack, sizeof lack - 1) == 0 && !dlopen(file, flags))
        said = dlerror();
    return tsr_status_set(status, "%s", said ? said : "the loader gives no reason");
}

tsr_status tsr_library_load(const char *file, int flags, void **out)
{
    char path[PATH_MAX];
    if (!file || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_library_load: %s is NULL", file ? "out" : "file");
    const char *const name = !strchr(file, '/') && !user_names(file) && find_beside(file, path) ? path : file;
    void *const library = open_twice(name, flags);
    if (!library)
        return refuse(name, flags);
    *out = library;
    return TSR_OK;
}

bool tsr_library_find(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    if (found)
        memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Code of others may fail without a sentence, or forget its result. */
static tsr_status make_driver(tsr_device_plugin *make, tsr_context *context, const char *file, tsr_device_driver **out)
{
    tsr_device_driver *made = NULL;
    tsr_kept_sentence kept;
    tsr_status_forget();
    const tsr_status status = make(context, &made);
    if (status != TSR_OK) {
        tsr_status_keep_returned(&kept, status);
        return tsr_status_set(status, "%s: tessera_device: %.900s", file, kept.text);
    }
    if (!made)
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s: tessera_device returned ok without a driver", file);
    *out = made;
    return TSR_OK;
}

tsr_status tsr_device_driver_load(tsr_context *context, const char *file, tsr_device_driver **out)
{
    void *library;
    tsr_device_plugin *make;
    if (!file || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_device_driver_load: %s is NULL", file ? "out" : "file");
    TSR_TRY(tsr_library_load(file, RTLD_NOW | RTLD_LOCAL, &library));
    if (tsr_library_find(library, "tessera_device", &make))
        return make_driver(make, context, file, out);
    dlclose(library);
    return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s: it has no devices: it exports no function tessera_device", file);
}
