/** Trainings of tests: parameters whose gradients runs are given, on any mesh. */
#ifndef TESTS_OPS_OPTIMIZERS_TRIALS_H
#define TESTS_OPS_OPTIMIZERS_TRIALS_H

#include <tessera/tessera.h>

#include <stdbool.h>

enum { TRIAL_PARAMETERS = 4, TRIAL_ROOM = 4096 };

/** A parameter, and where it, its gradient and its states lie; states NULL: as options say. */
typedef struct trial_parameter {
    int ndim;
    int64_t shape[3];
    const char *placements, *gradient, *states;
    bool is_view; /**< it has one dim, which the placements cut, and is a view of a tensor of the shape */
} trial_parameter;

/** A training. */
typedef struct trial {
    const char *mesh;
    tsr_dtype dtype;
    tsr_optimizer_options options;
    int count;
    trial_parameter parameters[TRIAL_PARAMETERS];
    int steps;
    double rate;
    double max_norm; /**< 0: no clipping */
    double scale;    /**< 0: gradients are neither scaled nor tested */
    /** Of each parameter its first elements, and those of its gradient in all steps, one after the
     * other; NULL: those of trial_weight() and trial_gradient(). */
    const double *weights[TRIAL_PARAMETERS], *gradients[TRIAL_PARAMETERS];
    int spoilt; /**< the step, from 1, in which an element of the last gradient is infinite; 0: none */
} trial;

/** What is there after a training: of all parameters and states, in the order of recording, their
 * elements; and of the last run the norm and the flag. */
typedef struct trial_result {
    int count; /**< of parameters and states */
    char names[24][32];
    int sizes[24];
    int first[24]; /**< where its elements begin in `room` */
    double room[TRIAL_ROOM];
    double norms[8];
    bool finite[8];
} trial_result;

/** An element of a parameter, before the training, and of its gradient in a step, from 1. */
double trial_weight(int parameter, int64_t i);
double trial_gradient(int parameter, int step, int64_t i);

/** Runs a training on this rank; collective. */
tsr_status trial_run(tsr_comm *comm, const trial *t, trial_result *out);

/** Runs it on rank threads, and keeps what rank 0 has. */
void trial_run_threads(const trial *t, trial_result *out);

/** The elements of "w0.exp_avg"; fails the test if there is no such parameter or state. */
const double *trial_find(const trial_result *r, const char *name);

/** Fails the test unless two trainings left the same bits. */
void trial_expect_same(const trial_result *got, const trial_result *wanted);

#endif
