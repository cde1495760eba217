/** What `bench simulate` prints. */
#ifndef TESSERA_TOOLS_SIMULATE_REPORT_H
#define TESSERA_TOOLS_SIMULATE_REPORT_H

#include "bench/run/csv.h"
#include "simulate/simulation.h"

/** Of one run: some simulations, of which either all were measured as well, or none was. */
typedef struct simulation_rows {
    simulation *rows;
    size_t count;
    const place *place; /**< where they were measured; else NULL */
} simulation_rows;

/** Returns the tool's exit status. */
int simulation_report(row_format format, const simulation_rows *all);

#endif
