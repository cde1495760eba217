/** The command line. */
#ifndef PIPELINE_OPTIONS_H
#define PIPELINE_OPTIONS_H

#include "pipeline.h"

typedef struct options {
    pipeline_options pipeline;
    int ranks;  /**< that the meshes of the stages need */
    bool shows; /**< the schedule, in place of training */
} options;

/** Parses the command line into `*out`; ends the program after --help, and, with exit status 2, if
 * it cannot be parsed. */
void options_parse(int argc, char **argv, options *out);

#endif
