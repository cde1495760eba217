/** The text of cost profiles. */
#ifndef TSR_BASE_PROFILE_TEXT_H
#define TSR_BASE_PROFILE_TEXT_H

#include "base/profile.h"
#include "base/text/text.h"

/** The text as tsr_profile_parse() reads it, links that are left out being those of tsr_cost_default(). */
tsr_status tsr_profile_read(const char *text, tsr_profile_content *out);

/** The text as tsr_profile_print() writes it. */
void tsr_profile_append(tsr_text *text, const tsr_profile_content *content);

#endif
