/** The check of a cost profile's links. */
#ifndef TSR_BASE_LINKS_H
#define TSR_BASE_LINKS_H

#include <tessera/cost.h>

/** TSR_ERROR_ARGUMENT: `profile` breaks what tsr_cost_profile requires; `source` ("tsr_plan_create:
 * options.profile") begins the sentence. */
tsr_status tsr_profile_check(const char *source, const tsr_cost_profile *profile);

#endif
