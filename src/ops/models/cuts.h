/** Where a plan cuts tensors. */
#ifndef TSR_OPS_MODELS_CUTS_H
#define TSR_OPS_MODELS_CUTS_H

#include "ops/models/plan.h"

/** The most mesh dims along which a plan cuts. */
#define TSR_PLAN_DIMS 2

/** The mesh dims of a plan. */
typedef struct tsr_plan_dims {
    int count;
    int at[TSR_PLAN_DIMS]; /**< the plan's dim, then its group */
} tsr_plan_dims;

/** Finds the plan's dims in a mesh. */
tsr_status tsr_plan_find_dims(const tsr_parallel_plan *plan, const tsr_mesh *mesh, tsr_plan_dims *out);

/** A tensor to cut by a rule. */
typedef struct tsr_plan_tensor {
    const tsr_parallel_plan *plan;
    const tsr_plan_rule *rule; /**< NULL: none */
    const char *name;          /**< of the parameter or module, by which heads are known */
    const tsr_mesh *mesh;
    tsr_dtype dtype;
    int ndim;
    const int64_t *shape;
} tsr_plan_tensor;

/** The layout of a parameter. `varies`: each rank has a term of its gradient along dims on which it
 * is Replicate, because of the rule's style, or because it is of key/value heads. */
tsr_status tsr_plan_place(const tsr_plan_tensor *tensor, tsr_layout **out, bool *varies);

/** Like the tensor `own`, with its dim `dim` cut along the plan's dims as a rule's columns are. */
tsr_status tsr_plan_split(const tsr_plan_tensor *tensor, const tsr_layout *own, int dim, tsr_layout **out);

#endif
