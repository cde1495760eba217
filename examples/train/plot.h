/** The losses of a run as a picture. */
#ifndef TRAIN_PLOT_H
#define TRAIN_PLOT_H

#include "run.h"

/** What is drawn; begin with zeros. */
typedef struct train_plot {
    train_step *steps; /**< owned */
    size_t count, room;
    char *layouts; /**< owned: lines that say how the run lies on its mesh; NULL: not yet */
} train_plot;

/** Keeps how a trainer's batch and weights lie. */
tsr_status train_plot_begin(train_plot *plot, const train_trainer *trainer);

/** Keeps a step. TSR_ERROR_MEMORY: there is none for it. */
tsr_status train_plot_add(train_plot *plot, const train_step *step);

/** Writes the SVG to a new file at `path`, which appears when it is whole. */
tsr_status train_plot_write(const train_plot *plot, const char *path);

void train_plot_finish(train_plot *plot);

#endif
