/** The options of `plan` and `bench plan`: two layouts of one tensor, and how to plan between
 * them. */
#ifndef TESSERA_TOOLS_PLAN_REQUEST_H
#define TESSERA_TOOLS_PLAN_REQUEST_H

#include "cli/parse.h"

#include <tessera/relabel.h>

typedef struct plan_request {
    tsr_mesh *mesh, *to_mesh;   /**< to_mesh: another reference to `mesh`, or --to-mesh */
    tsr_layout *from, *to;      /**< with --relabel, the ranks of `to` are in the order that it chose */
    tsr_plan_options options;   /**< options.rank is --rank, or TSR_RANK_NONE */
    tsr_profile *profile;       /**< --profile, which options.measured points to; NULL without */
    int64_t *node;              /**< --nodes, which options.nodes points to; NULL without */
    bool relabelled;            /**< --relabel */
    tsr_relabel_report relabel; /**< with --relabel: its report */
} plan_request;

/** Reads the options; meshes are abstract, in `context` (NULL: the default one). Returns the tool's
 * exit status; the caller calls plan_request_finish() in any case. */
int plan_request_read(const tool_arguments *given, tsr_context *context, plan_request *out);
void plan_request_finish(plan_request *r);

const char *objective_name(tsr_objective objective);

#endif
