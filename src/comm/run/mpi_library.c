#include "comm/run/mpi_library.h"

#include "comm/run/launch.h"
#include "comm/run/library.h"

#include <tessera/sys/status.h>
#include <tessera/version.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(number)   #number
#define SONAME_OF(number) ".so." TEXT_OF(number)
#define SONAME_OF_THIS    SONAME_OF(TSR_VERSION_MAJOR)
#define IMPLEMENTATIONS   2

/* An implementation of MPI: its name for people, its word in TSR_MPI, and its libtessera-mpi. */
typedef struct implementation {
    const char *name, *word, *file, *package;
} implementation;

/* In the order in which they are tried. */
static const implementation implementations[IMPLEMENTATIONS] = {
    {"Open MPI", "openmpi", "libtessera-mpi-ompi" SONAME_OF_THIS, "ompi-c"},
    {"MPICH", "mpich", "libtessera-mpi-mpich" SONAME_OF_THIS, "mpich"},
};

static bool find_all(void *library, tsr_mpi_library *out)
{
    return tsr_library_find(library, "tsr_mpi_job_create_with", &out->job_create) &&
           tsr_library_find(library, "tsr_mpi_job_destroy", &out->job_destroy) &&
           tsr_library_find(library, "tsr_mpi_job_rank", &out->job_rank) &&
           tsr_library_find(library, "tsr_mpi_job_size", &out->job_size) &&
           tsr_library_find(library, "tsr_mpi_job_run", &out->job_run) &&
           tsr_library_find(library, "tsr_mpi_version_print", &out->version_print);
}

/* True if the library calls this very copy of libtessera-core: then the sentence of a failing call
 * is this thread's. A program that is linked with libtessera-core.a has a copy of its own. */
static bool shares_core(const tsr_mpi_library *library)
{
    tsr_status_forget();
    library->job_create(0, NULL, NULL);
    return tsr_status_message()[0] != '\0';
}

/* RTLD_GLOBAL, since MPI's plug-ins look up MPI's symbols in the global scope. */
static tsr_status open_one(const implementation *it, tsr_mpi_library *out)
{
    void *library;
    const tsr_status status = tsr_library_load(it->file, RTLD_LAZY | RTLD_GLOBAL, &library);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s, for %s, cannot be opened: %s", it->file, it->name, tsr_status_message());
    if (!find_all(library, out))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s is of another version: %s", it->file, dlerror());
    if (shares_core(out))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNAVAILABLE,
                          "%s does not work in a program with a libtessera-core of its own; link libtessera-core.so in "
                          "place of libtessera-core.a",
                          it->file);
}

/* Opens the first library that can be opened; gives both reasons if neither can. Where memory is
 * short the first might have been chosen, so the second is not taken. */
static tsr_status open_any(tsr_mpi_library *out)
{
    tsr_kept_sentence first, second;
    tsr_status status = open_one(&implementations[0], out);
    if (status != TSR_ERROR_UNAVAILABLE)
        return status;
    tsr_status_keep(&first);
    status = open_one(&implementations[1], out);
    if (status != TSR_ERROR_UNAVAILABLE)
        return status;
    tsr_status_keep(&second);
    return tsr_status_set(status, "%.500s; %.500s", first.text, second.text);
}

static tsr_status open_for_launcher(const implementation *it, const tsr_launch *launch, tsr_mpi_library *out)
{
    const implementation *const other = &implementations[it == implementations];
    const tsr_status status = open_one(it, out);
    if (status != TSR_ERROR_UNAVAILABLE)
        return status;
    return tsr_status_set(
        status,
        "the launcher of %s started %d processes, but %.500s. Builds with %s (pkg-config: %s) have the "
        "library; else start the program with the launcher of %s",
        it->name, launch->ranks, tsr_status_message(), it->name, it->package, other->name);
}

static const implementation *find_word(const char *word)
{
    for (int i = 0; i < IMPLEMENTATIONS; i++)
        if (strcmp(implementations[i].word, word) == 0)
            return &implementations[i];
    return NULL;
}

static tsr_status open_wished(const tsr_mpi_wish *wish, tsr_mpi_library *out)
{
    const tsr_status status = open_one(find_word(wish->mpi), out);
    if (status != TSR_ERROR_UNAVAILABLE)
        return status;
    return tsr_status_set(status, "%s is \"%s\", but %s", wish->source, wish->mpi, tsr_status_message());
}

tsr_status tsr_mpi_library_open(const tsr_mpi_wish *wish, tsr_mpi_library *out)
{
    tsr_launch launch;
    const tsr_launcher *const launcher = tsr_launcher_find(&launch);
    if (wish->source)
        return open_wished(wish, out);
    if (launcher && launcher->mpi)
        return open_for_launcher(find_word(launcher->mpi), &launch, out);
    return open_any(out);
}

tsr_status tsr_mpi_library_create_job(const tsr_mpi_library *library, const tsr_mpi_wish *wish, int argc, char **argv,
                                      tsr_mpi_job **out)
{
    const tsr_status status = library->job_create(argc, argv, out);
    if (status != TSR_ERROR_STATE || !wish->source)
        return status;
    return tsr_status_set(status,
                          "%s is \"%s\", which this launcher may not be of; without it the launcher's own is used: %s",
                          wish->source, wish->mpi, tsr_status_message());
}
