/** A model that is trained, on this rank: its programs, compiled, with the rank's part of weights
 * and of the optimizer's states. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "data.h"
#include "statement.h"

#include <tessera/safetensors.h>

/** What to train, the same on every rank. All is borrowed. */
typedef struct train_plan {
    const llama_config *config;
    const char *mesh;
    int64_t batch, length;
    tsr_dtype dtype; /**< of train_model */
    tsr_optimizer_options optimizer;
    double clip;                       /**< INFINITY: gradients are not clipped */
    const tsr_safetensors *checkpoint; /**< NULL: random weights by `seed` */
    uint64_t seed;
    double dropout;        /**< of train_model */
    bool shards_states;    /**< the optimizer's states, which are then cut along dp, too */
    bool measures_peak;    /**< so that steps can be compared with it */
    bool keeps_gradients;  /**< of each step */
    int64_t micro_batches; /**< the parts of a step, as even as can be, one after the other; 0: 1 */
    double loss_scale;     /**< the first one (tsr_loss_scale); 0: none, and no step is skipped */
} train_plan;

/** Sizes of the parts of a step but the last one. */
#define TRAIN_PARTS 2

/** A compiled program, over so many windows. */
typedef struct train_program {
    tsr_executable *executable; /**< NULL: there is none */
    int64_t windows;
    tsr_dtensor **inputs; /**< of the batch: tokens, targets, positions */
} train_program;

typedef struct train_trainer {
    tsr_comm *comm; /**< borrowed */
    const train_plan *plan;
    train_layouts layouts;
    train_program step;               /**< of the last part of a step, or of all of it */
    train_program parts[TRAIN_PARTS]; /**< of earlier parts, of those with a window more first */
    train_program validation;
    void *workspace; /**< of whichever program runs */
    size_t bytes;
    size_t count; /**< of weights and states of the optimizer */
    size_t all;   /**< of these, and then of states with terms of earlier parts */
    tsr_dtensor **tensors;
    const char **names;     /**< of tensors; borrowed from the program of a step */
    tsr_dtensor **outputs;  /**< of the last step: gradients, where they are kept, and numbers */
    tsr_loss_scale scale;   /**< of the next step */
    int64_t skipped;        /**< steps whose gradients were not finite */
    int64_t bytes_received; /**< by all ranks together, in a step */
    int64_t exchanges;      /**< of a step in which this rank receives */
    int64_t flops;          /**< of all ranks together, in a step */
    double peak;            /**< such operations a second in large products; 0: not measured */
    int64_t most_bytes;     /**< memory of the rank that needs the most: weights, states and a step */
} train_trainer;

/** What a step tells, the same on every rank. */
typedef struct train_told {
    double loss;     /**< before the update */
    double norm;     /**< of all gradients, before they are clipped */
    double scale;    /**< by which the loss was multiplied; 0: it was not */
    bool is_skipped; /**< gradients were not finite, so that nothing changed */
    double router;   /**< the loss that balances experts; NAN: the model asks for none */
} train_told;

/** Collective: makes a trainer, with weights as they begin. */
tsr_status train_trainer_create(tsr_comm *comm, const train_plan *plan, bool validates, train_trainer **out);
void train_trainer_destroy(train_trainer *trainer);

/** Collective: step `step`, counted from 0, with that learning rate. */
tsr_status train_trainer_step(train_trainer *trainer, const train_batches *batches, int64_t step, double rate,
                              train_told *out);

/** Collective: the mean loss over `count` batches, from batch 0 on. */
tsr_status train_trainer_validate(train_trainer *trainer, const train_batches *batches, int64_t count, double *loss);

/** The name of a weight or state, borrowed. */
const char *train_trainer_name(const train_trainer *trainer, size_t index);

#endif
