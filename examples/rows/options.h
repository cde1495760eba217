/** The command line. */
#ifndef ROWS_OPTIONS_H
#define ROWS_OPTIONS_H

#include "training.h"

typedef struct options {
    training_options training;
    int ranks; /**< 0: as many as there are processors, or as a launcher started */
} options;

/** Parses the command line into `*out`; ends the program after --help, and, with exit status 2, if
 * it cannot be parsed. */
void options_parse(int argc, char **argv, options *out);

#endif
