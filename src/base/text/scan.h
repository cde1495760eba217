/** Reading a line of text from the left, with errors that quote it (up to a newline) and point at the character that is wrong. Allocates
 * nothing. */
#ifndef TSR_BASE_TEXT_SCAN_H
#define TSR_BASE_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tessera/status.h>

typedef struct tsr_scan {
    const char *what; /**< names the text in errors: "mesh" */
    const char *text;
    size_t at; /**< the next character; after an error, the wrong one */
} tsr_scan;

/** Steps over `word` if it comes next. */
bool tsr_scan_accept(tsr_scan *scan, const char *word);

/** Steps over a comma with any spaces around it; leaves the place alone if there is none. */
bool tsr_scan_comma(tsr_scan *scan);

/** A decimal number without sign from `least` to `most`, else the error says that `expected` was. */
tsr_status tsr_scan_number(tsr_scan *scan, int64_t least, int64_t most, const char *expected, int64_t *out);

/** TSR_ERROR_ARGUMENT: `expected` was, but the text has something else at `at`. */
tsr_status tsr_scan_expected(tsr_scan *scan, size_t at, const char *expected);

/** TSR_ERROR_ARGUMENT: what stands at `at` reads well, but cannot be, for this reason. */
tsr_status tsr_scan_refuse(tsr_scan *scan, size_t at, const char *reason);

#endif
