/** Prints the results of bench simulate. */
#ifndef TESSERA_TOOLS_SIMULATE_REPORT_H
#define TESSERA_TOOLS_SIMULATE_REPORT_H

#include "bench/run/csv.h"
#include "simulate/simulation.h"

/** The simulations of one run; either all were measured too (--validate), or none was. */
typedef struct simulation_rows {
    simulation *rows;
    size_t count;
    const place *place; /**< where they were measured; NULL without --validate */
} simulation_rows;

/** Prints all rows. Returns the tool's exit status. */
int simulation_report(row_format format, const simulation_rows *all);

#endif
