/** The programs of a training, recorded and compiled: those of the parts of a step, and that of the
 * validation. */
#ifndef TRAIN_PROGRAMS_H
#define TRAIN_PROGRAMS_H

#include "statement.h"

#include <tessera/executable.h>
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
    bool by_elements;      /**< matrices are cut by elements, not by whole rows */
    bool shards_states;    /**< the optimizer's states, which are then cut along dp, too */
    bool measures_peak;    /**< so that steps can be compared with it */
    bool keeps_gradients;  /**< of each step */
    int64_t micro_batches; /**< the parts of a step, as even as can be, one after the other; 0: 1 */
    double loss_scale;     /**< the first one (tsr_loss_scale); 0: none, and no step is skipped */
} train_plan;

/** The programs, in the order in which a step runs them: earlier parts with a window more than the
 * last, other earlier parts, and the last part, or all of the step; then the validation. */
typedef enum train_kind { TRAIN_LONGER_PART, TRAIN_PART, TRAIN_STEP, TRAIN_VALIDATION, TRAIN_KINDS } train_kind;

/** How often a step runs a program. */
int64_t train_plan_runs(const train_plan *plan, train_kind kind);

/** The windows of a run. */
int64_t train_plan_windows(const train_plan *plan, train_kind kind);

/** Makes the mesh of a plan, over `comm`, or abstract in `context` where `comm` is NULL, and what
 * lies on it. TSR_ERROR_ARGUMENT: as of train_layouts_init(), or parts are more than windows. */
tsr_status train_plan_lay(const train_plan *plan, tsr_comm *comm, tsr_context *context, train_layouts *layouts);

/** Compiles a program. `shapes` gets the matrices that are kept with one dim. The caller owns
 * `*out`. Does not communicate. Errors: as of tsr_compile(). */
tsr_status train_plan_compile(const train_plan *plan, const train_layouts *layouts, train_shapes *shapes,
                              tsr_context *context, train_kind kind, const tsr_compile_options *options,
                              tsr_executable **out);

#endif
