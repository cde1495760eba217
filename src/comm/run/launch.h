/** How this process was launched, by the environment variables of launchers. */
#ifndef TSR_COMM_RUN_LAUNCH_H
#define TSR_COMM_RUN_LAUNCH_H

#include <tessera/run.h>

#include <stdbool.h>

/** A launcher, and the environment variables in which it gives its processes their number and each
 * its rank. */
typedef struct tsr_launcher {
    const char *name;
    const char *ranks, *rank; /**< the variables */
    const char *mpi;          /**< the MPI of its processes, as TSR_MPI names it; NULL: any */
    int least;                /**< fewer processes are not a launch */
    bool lonely;              /**< it tells its processes nothing by which an MPI finds the others */
} tsr_launcher;

/** The launcher of this process, with what its variables say in `*out`; NULL, and zeros, if there
 * is none. Static. */
const tsr_launcher *tsr_launcher_find(tsr_launch *out);

#endif
