/**
 * How a training lies on its mesh, whose dims are called dp, fsdp, tp and cp, in any order; a dim
 * that is missing has one rank.
 *
 * | dim  | batch (rows, tokens, ..) | weights                          | gradients and states    |
 * | ---- | ------------------------ | -------------------------------- | ----------------------- |
 * | dp   | rows: S(0;balanced)      | R                                | R                       |
 * | fsdp | rows: S(0;balanced)      | kept in rows, gathered before use | in rows, as the weights |
 * | tp   | R                        | as in tessera-llama              | as the weights          |
 * | cp   | tokens: S(1;balanced)    | R                                | R                       |
 *
 * Experts are cut along tp as wholes, and along fsdp each by its hidden features. With more ranks
 * of tp than experts, tp cuts the inner features of each.
 *
 * By elements, matrices are kept with one dim, of which fsdp has balanced parts, in the midst of
 * rows. Experts, tensors of three dims, stay as they are: hidden features are many.
 */
#ifndef TRAIN_LAYOUTS_H
#define TRAIN_LAYOUTS_H

#include "config.h"

#include <tessera/tessera.h>

/** What a mesh dim is for. */
typedef enum train_role { TRAIN_DP, TRAIN_FSDP, TRAIN_TP, TRAIN_CP, TRAIN_ROLES } train_role;

/** Room for the placement of a value along one dim, and for its placements. */
#define TRAIN_CUT_BYTES  96
#define TRAIN_TEXT_BYTES 256

typedef struct train_layouts {
    tsr_mesh *mesh;        /**< owned */
    int dims[TRAIN_ROLES]; /**< the mesh dim of each role; -1: none */
    bool by_elements;      /**< matrices are kept with one dim, of which dp and fsdp cut elements, not rows */
    bool shares_experts;   /**< more ranks of tp than experts: each is cut */
    bool shares_keys;      /**< more ranks of tp than key/value heads, which queries share: these are whole there, and
                                single query heads are cut */
} train_layouts;

/** A mesh from text, over `comm`, or abstract in `context` where `comm` is NULL.
 * TSR_ERROR_ARGUMENT: as of tsr_mesh_parse(), or a dim has another name. */
tsr_status train_layouts_init(train_layouts *layouts, const llama_config *config, tsr_comm *comm, tsr_context *context,
                              const char *mesh);
void train_layouts_finish(train_layouts *layouts);

/** The number of ranks along a role's dim. */
int64_t train_layouts_size(const train_layouts *layouts, train_role role);

/** Writes the placements of activations: tensor dims of rows and tokens (-1: none) and the
 * placement along tp. */
void train_layouts_activation(const train_layouts *layouts, int rows, int tokens, const char *tp,
                              char text[TRAIN_TEXT_BYTES]);

/** Changes how tp cuts a matrix, "S(0;unit=8)", into how it cuts the matrix as one dim. */
void train_layouts_flatten(const int64_t shape[2], char tp[TRAIN_CUT_BYTES]);

/** Writes one placement for dp, fsdp and cp, and one for tp. */
void train_layouts_each(const train_layouts *layouts, const char *others, const char *tp, char text[TRAIN_TEXT_BYTES]);

/** Writes the placements of activations of which each rank has whole windows: along cp their rows
 * are cut, too. A window is `unit` elements of the tensor dim `dim`. */
void train_layouts_windows(const train_layouts *layouts, int dim, int64_t unit, char text[TRAIN_TEXT_BYTES]);

/** Writes the placements of a weight that tp cuts as `tp` says: as it is kept, where fsdp cuts the
 * tensor dim `fsdp`, or, where that is -1, as it is used. */
void train_layouts_weight(const train_layouts *layouts, const char *tp, int fsdp, char text[TRAIN_TEXT_BYTES]);

#endif
