/** A model that is trained, on this rank: its programs, compiled, with the rank's part of weights
 * and of the optimizer's states. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "data.h"
#include "memory.h"

#include <tessera/checkpoint.h>

/** A compiled program. */
typedef struct train_program {
    tsr_executable *executable; /**< NULL: there is none */
    tsr_dtensor **inputs;       /**< of the batch: tokens, targets, positions */
} train_program;

typedef struct train_trainer {
    tsr_comm *comm; /**< borrowed */
    const train_plan *plan;
    train_layouts layouts;
    train_shapes shapes; /**< of matrices that are kept with one dim */
    train_program programs[TRAIN_KINDS];
    tsr_executable *step; /**< that of TRAIN_STEP, which has all weights and states; borrowed */
    void *workspace;      /**< of whichever program runs */
    size_t bytes;
    size_t count; /**< of weights and states of the optimizer */
    size_t all;   /**< of these, and then of states with terms of earlier parts */
    tsr_dtensor **tensors;
    const char **names;     /**< of tensors; borrowed from `step` */
    tsr_dtensor **outputs;  /**< of the last step: gradients, where they are kept, and numbers */
    tsr_loss_scale scale;   /**< of the next step */
    int64_t skipped;        /**< steps whose gradients were not finite */
    int64_t bytes_received; /**< by all ranks together, in a step */
    int64_t exchanges;      /**< of a step in which this rank receives */
    int64_t flops;          /**< of all ranks together, in a step */
    double peak;            /**< such operations a second in large products; 0: not measured */
    train_memory memory;    /**< of this rank */
    int64_t most_bytes;     /**< memory of the rank that needs the most */
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

/** Binds the weights that are trained to another program, which asks for them by name. */
tsr_status train_trainer_bind(const train_trainer *trainer, tsr_executable *executable);

/** The name of a weight or state, borrowed. */
const char *train_trainer_name(const train_trainer *trainer, size_t index);

/** Lists the tensors that are kept with one dim, with what is saved of them; `out` has room for
 * all tensors. Returns their number. */
size_t train_trainer_views(const train_trainer *trainer, tsr_checkpoint_view *out);

#endif
