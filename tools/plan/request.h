/** What `plan` and `bench plan` are asked: two layouts of one tensor, and how to plan between them. */
#ifndef TESSERA_TOOLS_PLAN_REQUEST_H
#define TESSERA_TOOLS_PLAN_REQUEST_H

#include "cli/parse.h"

#include <tessera/relabel.h>

typedef struct plan_request {
    tsr_mesh *mesh, *to_mesh;   /**< to_mesh: another reference to `mesh`, or --to-mesh */
    tsr_layout *from, *to;      /**< `to` is in the order that --relabel chose */
    tsr_plan_options options;   /**< rank: --rank, or TSR_RANK_NONE */
    tsr_cost_profile profile;   /**< where options.profile points */
    int64_t *node;              /**< where options.nodes may point */
    bool relabelled;            /**< --relabel */
    tsr_relabel_report relabel; /**< then: what it did */
} plan_request;

/** Reads the options that the command takes; meshes are abstract, in `context` (NULL: defaults). Returns the tool's exit status. The caller
 * calls plan_request_finish() in any case. `out` must not move. */
int plan_request_read(const tool_arguments *given, tsr_context *context, plan_request *out);
void plan_request_finish(plan_request *r);

const char *objective_name(tsr_objective objective);

#endif
