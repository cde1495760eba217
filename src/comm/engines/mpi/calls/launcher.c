
#include "comm/engines/mpi/calls/launcher.h"

#include "comm/engines/mpi/calls/error.h"

#include <tessera/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI's version begins with this; implementations that descend from MPICH begin with names of
 * their own. */
#define OPEN_MPI_NAME "Open MPI"

/* Bytes of a version in a sentence. */
#define WORDS 128

#ifdef OPEN_MPI
#define IS_OPEN_MPI 1
#else
#define IS_OPEN_MPI 0
#endif

typedef struct implementation {
    const char *name, *package;
    const char *count; /* the environment variable in which its launchers tell how many processes they start */
} implementation;

static const implementation implementations[] = {{"MPICH", "tessera-mpi-mpich", "PMI_SIZE"},
                                                 {OPEN_MPI_NAME, "tessera-mpi-ompi", "OMPI_COMM_WORLD_SIZE"}};

/* srun --mpi=pmix starts processes of any MPI that was built for it. */
static const implementation slurm = {"Slurm", NULL, "SLURM_STEP_NUM_TASKS"};

static const implementation *const own = &implementations[IS_OPEN_MPI], *const other = &implementations[!IS_OPEN_MPI];

/* Keeps the first line, with single spaces: MPICH puts a tab before the number, and further lines
 * say how it was built. */
static void keep_first_line(char *words)
{
    size_t length = 0;
    for (const char *c = words; *c != '\0' && *c != '\n'; c++) {
        const char next = *c == '\t' ? ' ' : *c;
        if (next != ' ' || (length > 0 && words[length - 1] != ' '))
            words[length++] = next;
    }
    words[length] = '\0';
}

size_t tsr_mpi_version_print(char *text, size_t capacity)
{
    char words[TSR_MPI_VERSION_BYTES] = "";
    int length = 0;
    if (MPI_Get_library_version(words, &length) != MPI_SUCCESS)
        words[0] = '\0';
    keep_first_line(words);
    return (size_t)snprintf(text, capacity, "%s", words);
}

/* Writes "Open MPI v4.1.4" of "Open MPI v4.1.4, package: .." */
static const char *print_version(char words[WORDS])
{
    tsr_mpi_version_print(words, WORDS);
    words[strcspn(words, ",")] = '\0';
    return words;
}

tsr_status tsr_mpi_check_package(const char *call)
{
    char version[TSR_MPI_VERSION_BYTES] = "", words[WORDS];
    int length = 0;
    TSR_TRY(tsr_mpi_check(MPI_Get_library_version(version, &length), "MPI_Get_library_version"));
    if ((strncmp(version, OPEN_MPI_NAME, strlen(OPEN_MPI_NAME)) == 0) == IS_OPEN_MPI)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_STATE,
                          "%s: this is lib%s, for %s, but the program's calls of MPI go to %s: link %s in its place",
                          call, own->package, own->name, print_version(words), other->package);
}

/* How many processes a launcher's variable tells; 0: it is not set. */
static long count_of(const char *name)
{
    const char *const value = getenv(name);
    return value ? strtol(value, NULL, 10) : 0;
}

static tsr_status refuse_launcher(const char *call, const implementation *launcher, long count)
{
    char words[WORDS];
    if (launcher == own || !launcher->package)
        return tsr_status_set(
            TSR_ERROR_STATE,
            "%s: %s is %ld, but %s finds a job of one process: start the program with the mpirun of that very "
            "installation, or unset %s where jobs of one process are meant",
            call, launcher->count, count, print_version(words), launcher->count);
    return tsr_status_set(
        TSR_ERROR_STATE,
        "%s: a launcher of %s started %ld processes (%s), but the MPI of this program, %s, finds a job of one: start "
        "it "
        "with the mpirun of %s, or build it with %s and %s; unset %s where jobs of one process are meant",
        call, launcher->name, count, launcher->count, print_version(words), own->name, launcher->name,
        launcher->package, launcher->count);
}

tsr_status tsr_mpi_check_launcher(const char *call)
{
    int size;
    TSR_TRY(tsr_mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size"));
    const long mine = count_of(own->count), theirs = count_of(other->count);
    if (size > 1 || mine == 1)
        return TSR_OK;
    if (mine > 1)
        return refuse_launcher(call, own, mine);
    if (theirs > 1)
        return refuse_launcher(call, other, theirs);
    const long tasks = getenv("PMIX_RANK") ? count_of(slurm.count) : 0;
    return tasks > 1 ? refuse_launcher(call, &slurm, tasks) : TSR_OK;
}
