/** What a training tells: a line for each step. */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include "run.h"

/** Prints on standard error what is trained, and how. */
void train_report_begin(const train_trainer *trainer);

/** Prints a step of that model on standard output: for people, or as a JSON object. */
tsr_status train_report_step(const llama_config *config, const train_step *step, bool json);

#endif
