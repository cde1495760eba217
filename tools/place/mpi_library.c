#include "place/mpi_library.h"

#include "place/shared_library.h"

#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An implementation of MPI: its name for people, its word in TSR_MPI, and the file of its
 * libtessera-mpi. */
typedef struct implementation {
    const char *name, *word, *file;
} implementation;

static const implementation implementations[] = {
    {"Open MPI", "openmpi", TESSERA_TOOL_MPI_OMPI},
    {"MPICH", "mpich", TESSERA_TOOL_MPI_MPICH},
};

/* The environment variables in which a launcher gives its processes their number and each its
 * rank. */
typedef struct launcher {
    const char *count, *rank;
    const implementation *starts; /* the MPI of its processes; NULL: any */
} launcher;

static const launcher launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", &implementations[0]},
    {"PMI_SIZE", "PMI_RANK", &implementations[1]},
    {"SLURM_STEP_NUM_TASKS", "PMIX_RANK", NULL}, /* srun --mpi=pmix */
};

#define LENGTH(list) (sizeof list / sizeof *(list))

static bool find(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *library, mpi_library *out)
{
    return find(library, "tsr_mpi_job_create", &out->job_create) &&
           find(library, "tsr_mpi_job_destroy", &out->job_destroy) &&
           find(library, "tsr_mpi_job_rank", &out->job_rank) && find(library, "tsr_mpi_job_size", &out->job_size) &&
           find(library, "tsr_mpi_job_run", &out->job_run) &&
           find(library, "tsr_mpi_version_print", &out->version_print);
}

/* RTLD_GLOBAL, since MPI's plug-ins look up MPI's symbols in the global scope. */
static bool open_one(const implementation *it, mpi_library *out, char *reason)
{
    if (it->file[0] == '\0') {
        snprintf(reason, MPI_REASON_BYTES, "built without %s: there is no libtessera-mpi for it", it->name);
        return false;
    }
    void *const library = shared_library_open(it->file, RTLD_LAZY | RTLD_GLOBAL);
    if (!library) {
        snprintf(reason, MPI_REASON_BYTES, "libtessera-mpi for %s cannot be opened: %s", it->name,
                 shared_library_reason(it->file, RTLD_LAZY | RTLD_GLOBAL));
        return false;
    }
    if (find_all(library, out))
        return true;
    snprintf(reason, MPI_REASON_BYTES, "%s is of another version: %s", it->file, dlerror());
    return false;
}

static const launcher *find_launcher(void)
{
    for (size_t i = 0; i < LENGTH(launchers); i++)
        if (getenv(launchers[i].count) && getenv(launchers[i].rank))
            return &launchers[i];
    return NULL;
}

int mpi_launched(void)
{
    const launcher *const it = find_launcher();
    return it ? (int)strtol(getenv(it->count), NULL, 10) : 0;
}

int mpi_launched_rank(void)
{
    const launcher *const it = find_launcher();
    return it ? (int)strtol(getenv(it->rank), NULL, 10) : 0;
}

void mpi_launch_advice(int wanted, int joined, char advice[MPI_ADVICE_BYTES])
{
    snprintf(advice, MPI_ADVICE_BYTES, "%d %s launched; start it by mpirun -n %d", joined,
             joined == 1 ? "rank was" : "ranks were", wanted);
}

tsr_status mpi_library_create_job(const mpi_library *library, tsr_mpi_job **out)
{
    const char *const word = getenv("TSR_MPI");
    const tsr_status status = library->job_create(out);
    if (status != TSR_ERROR_STATE || !word || word[0] == '\0')
        return status;
    return tsr_status_set(
        status, "TSR_MPI is \"%.20s\", which this launcher may not be of; without it the launcher's own is used: %s",
        word, tsr_status_message());
}

/* The MPI that TSR_MPI names, else the launcher's, else NULL. False if TSR_MPI names no known
 * MPI. */
static bool choose(const implementation **out, char *reason)
{
    const char *const word = getenv("TSR_MPI");
    const launcher *const it = find_launcher();
    *out = it ? it->starts : NULL;
    if (!word || word[0] == '\0')
        return true;
    for (size_t i = 0; i < LENGTH(implementations); i++)
        if (strcmp(implementations[i].word, word) == 0) {
            *out = &implementations[i];
            return true;
        }
    snprintf(reason, MPI_REASON_BYTES, "TSR_MPI is \"%.100s\": it names the MPI to use, openmpi or mpich", word);
    return false;
}

/* Opens the first library that can be opened; gives both reasons if neither can. */
static bool open_any(mpi_library *out, char *reason)
{
    char first[MPI_REASON_BYTES], second[MPI_REASON_BYTES];
    if (open_one(&implementations[0], out, first))
        return true;
    if (errno == ENOMEM) { /* with more memory the first would have been chosen, so do not take the second */
        memcpy(reason, first, MPI_REASON_BYTES);
        return false;
    }
    if (open_one(&implementations[1], out, second))
        return true;
    snprintf(reason, MPI_REASON_BYTES, "%.*s; %.*s", MPI_REASON_BYTES / 2 - 2, first, MPI_REASON_BYTES / 2 - 2, second);
    return false;
}

bool mpi_library_open(mpi_library *out, char reason[MPI_REASON_BYTES])
{
    const implementation *chosen;
    errno = 0;
    if (!choose(&chosen, reason))
        return false;
    return chosen ? open_one(chosen, out, reason) : open_any(out, reason);
}
