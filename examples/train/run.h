/** A whole training: the same work on every rank. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "generate.h"
#include "processes.h"
#include "saving.h"

/** What is told of a step. */
typedef struct train_step {
    int64_t step;
    double loss, norm, rate, seconds;
    double router;   /**< the loss that balances experts; NAN: none */
    double scale;    /**< of the loss; 0: none */
    bool is_skipped; /**< gradients were not finite */
    double tokens_per_second;
    int64_t bytes_received;  /**< by all ranks together */
    double rate_of_products; /**< multiplications and additions a second, of all ranks together */
    double of_peak;          /**< the same, as a part of what they reach in large products; 0: not measured */
    bool has_validation;
    double validation;              /**< the loss after this step */
    const llama_generation *sample; /**< text after this step, borrowed for the call; NULL: none */
} train_step;

/** A training, the same on every rank. */
typedef struct train_job {
    train_plan plan;
    train_batches batches;
    const train_data *validation; /**< NULL: none */
    tsr_schedule schedule;        /**< of the learning rate */
    int64_t steps;
    int64_t every;        /**< 0: only at the end */
    llama_request sample; /**< the text to generate; its stream is that of all samples */
    int64_t sample_every; /**< steps; 0: never */
    const char *save;     /**< NULL: not */
    bool saves_in_background;
    train_numbers settings; /**< which are saved, too */
    const char *resume;     /**< NULL: from the beginning */
    int ranks;
    const llama_processes *processes; /**< NULL: ranks are threads of this process */
    const char *config;               /**< the path of config.json, which is saved, too */
    /** called on rank 0 before the first step, and after each step */
    tsr_status (*on_begin)(void *user, const train_trainer *trainer);
    tsr_status (*on_step)(void *user, const train_step *step);
    void *user;
} train_job;

/** Runs the job, and returns when all ranks have returned. */
tsr_status train_run(const train_job *job);

#endif
