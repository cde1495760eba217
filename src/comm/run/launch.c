#include "comm/run/launch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* An mpirun that starts its processes by srun leaves Slurm's variables to them, so its own come
 * first. Slurm's steps of one task are those of interactive shells too, in which nothing was
 * launched. SLURM_NTASKS says nothing: it is also in the environment of batch scripts. */
static const tsr_launcher launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "openmpi", 1, false},
    {"MPICH", "PMI_SIZE", "PMI_RANK", "mpich", 1, false},
    {"Slurm", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", NULL, 2, false},
    {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL, 2, true},
};

/* Reads a number from 0 on; false if the variable has none. */
static bool read_number(const char *name, int *out)
{
    const char *const value = getenv(name);
    char *end;
    errno = 0;
    const long number = value ? strtol(value, &end, 10) : -1;
    if (!value || end == value || *end || errno || number < 0 || number > INT_MAX)
        return false;
    *out = (int)number;
    return true;
}

static bool has_launched(const tsr_launcher *launcher, tsr_launch *out)
{
    int rank, ranks;
    if (!read_number(launcher->ranks, &ranks) || !read_number(launcher->rank, &rank))
        return false;
    if (ranks < launcher->least || rank >= ranks)
        return false;
    *out = (tsr_launch){launcher->name, rank, ranks};
    return true;
}

const tsr_launcher *tsr_launcher_find(tsr_launch *out)
{
    *out = (tsr_launch){0};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (has_launched(&launchers[i], out))
            return &launchers[i];
    return NULL;
}

tsr_launch tsr_launch_get(void)
{
    tsr_launch launch;
    tsr_launcher_find(&launch);
    return launch;
}
