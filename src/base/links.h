/** The links of a cost profile: the rule that they keep, wherever they come from. */
#ifndef TSR_BASE_LINKS_H
#define TSR_BASE_LINKS_H

#include <tessera/cost.h>

/** TSR_ERROR_ARGUMENT: `profile` is not as tsr_cost_profile says; `source` ("tsr_plan_create: options.profile") begins the sentence. */
tsr_status tsr_profile_check(const char *source, const tsr_cost_profile *profile);

#endif
