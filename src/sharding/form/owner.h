/** Tensors that one rank holds alone. */
#ifndef TSR_SHARDING_FORM_OWNER_H
#define TSR_SHARDING_FORM_OWNER_H

#include "sharding/form/form.h"

/** The form of a layout in which all axes cut at once. Where the cuts fall otherwise, but one rank
 * holds the whole tensor, the form has that owner. Errors as for tsr_form_of(). */
tsr_status tsr_form_or_owner(const tsr_layout *layout, const char *format, tsr_sharding_form *form);

#endif
