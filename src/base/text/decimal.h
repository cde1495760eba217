/** Decimal numbers in text, the same in every locale: read to the nearest double, written with the fewest digits that read back. Allocates
 * nothing. */
#ifndef TSR_BASE_TEXT_DECIMAL_H
#define TSR_BASE_TEXT_DECIMAL_H

#include "base/text/scan.h"
#include "base/text/text.h"

/** A number without sign, as 12, 0.5 or 1.6e-10, of at most 64 digits that count, no greater than a double; else the error says that
 * `expected` was, or what is too much. */
tsr_status tsr_scan_decimal(tsr_scan *scan, const char *expected, double *out);

/** Appends any double: 5e-7, 1.25e10, 0, inf, nan. */
void tsr_decimal_append(tsr_text *text, double value);

#endif
