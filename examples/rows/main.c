/* tessera-rows-example: node classification on a graph, with a table of learned rows that ranks
 * share. */
#include "training.h"

#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    training_options o = {{100000, 10, 10, 0.2, 1}, 5, 1, 0.05};
    const tsr_status status = tsr_run(argc, argv, training_run, &o);
    if (status != TSR_OK && tsr_launch_get().rank == 0)
        fprintf(stderr, "%s: %s\n", tsr_status_name(status), tsr_status_message());
    return status != TSR_OK;
}
