/** Decimal numbers in text, alike in every locale. They are read to the nearest double, and written
 * with the fewest digits that read back as the same double. Allocates nothing. */
#ifndef TSR_BASE_TEXT_DECIMAL_H
#define TSR_BASE_TEXT_DECIMAL_H

#include "base/text/scan.h"
#include "base/text/text.h"

/** Reads a number without sign, as 12, 0.5 or 1.6e-10. TSR_ERROR_ARGUMENT: there is no number (the
 * sentence says that `expected` was expected), it has more than 64 digits besides leading zeros, or
 * it is greater than any double. */
tsr_status tsr_scan_decimal(tsr_scan *scan, const char *expected, double *out);

/** Appends any double: 5e-7, 1.25e10, 0, inf, nan. */
void tsr_decimal_append(tsr_text *text, double value);

#endif
