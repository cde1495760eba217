/** Reads a line of text from left to right. Errors quote the line (up to a newline) and tell which
 * character is wrong. Allocates nothing. */
#ifndef TSR_BASE_TEXT_SCAN_H
#define TSR_BASE_TEXT_SCAN_H

#include <tessera/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tsr_scan {
    const char *what; /**< names the text in errors: "mesh" */
    const char *text;
    size_t at; /**< index of the next character; after an error, of the wrong one */
} tsr_scan;

/** Steps over `word` if it comes next; false if it does not. */
bool tsr_scan_accept(tsr_scan *scan, const char *word);

/** Steps over a comma with any spaces around it; false, and stays where it is, if no comma comes
 * next. */
bool tsr_scan_comma(tsr_scan *scan);

/** Reads a decimal number without sign, from `least` to `most`. TSR_ERROR_ARGUMENT: there is no
 * such number; the sentence says that `expected` was expected. */
tsr_status tsr_scan_number(tsr_scan *scan, int64_t least, int64_t most, const char *expected, int64_t *out);

/** Returns TSR_ERROR_ARGUMENT: `expected` was expected at `at`, but the text has something else
 * there. */
tsr_status tsr_scan_expected(tsr_scan *scan, size_t at, const char *expected);

/** Returns TSR_ERROR_ARGUMENT: the text at `at` is well formed, but not allowed, for `reason`. */
tsr_status tsr_scan_refuse(tsr_scan *scan, size_t at, const char *reason);

#endif
