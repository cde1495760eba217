/** The rule that every cost profile keeps, wherever it comes from. */
#ifndef TSR_BASE_PROFILE_H
#define TSR_BASE_PROFILE_H

#include <tessera/cost.h>

/** TSR_ERROR_ARGUMENT: `profile` is not as tsr_cost_profile says; `source` ("tsr_plan_create: options.profile") begins the sentence. */
tsr_status tsr_profile_check(const char *source, const tsr_cost_profile *profile);

#endif
