/** The text of cost profiles. */
#ifndef TSR_BASE_PROFILE_TEXT_H
#define TSR_BASE_PROFILE_TEXT_H

#include "base/profile.h"
#include "base/text/text.h"

/** Reads a text as tsr_profile_parse() does; links that it leaves out are those of
 * tsr_cost_default(). */
tsr_status tsr_profile_read(const char *text, tsr_profile_content *out);

/** Appends the text that tsr_profile_print() writes. */
void tsr_profile_append(tsr_text *text, const tsr_profile_content *content);

#endif
