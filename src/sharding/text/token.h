/** Steps through a text that may have spaces between its tokens. */
#ifndef TSR_SHARDING_TEXT_TOKEN_H
#define TSR_SHARDING_TEXT_TOKEN_H

#include "base/text/scan.h"

/** Steps over spaces, and then over `word` if it comes next; false, after the spaces, if not. */
bool tsr_token_accept(tsr_scan *scan, const char *word);

/** Steps over `word`. TSR_ERROR_ARGUMENT: something else comes next. */
tsr_status tsr_token_need(tsr_scan *scan, const char *word);

/** Reads a number from 0 to `most`. */
tsr_status tsr_token_number(tsr_scan *scan, int64_t most, const char *expected, int64_t *out);

/** Reads a name in `quote`s (either quote if that is 0), of which `*start` and `*length` tell where
 * it lies in the text. */
tsr_status tsr_token_quoted(tsr_scan *scan, char quote, size_t *start, size_t *length);

/** Reads numbers apart by commas, at most `capacity` of them. TSR_ERROR_ARGUMENT also if there are
 * more. */
tsr_status tsr_token_numbers(tsr_scan *scan, int64_t most, int64_t *out, int capacity, int *count);

/** Steps over the rest of what is in braces, the first of which comes before. Braces in texts in ""
 * do not count. TSR_ERROR_ARGUMENT: the last brace is missing. */
tsr_status tsr_token_skip_braces(tsr_scan *scan);

/** TSR_ERROR_ARGUMENT unless only spaces are left. */
tsr_status tsr_token_end(tsr_scan *scan);

/** Returns TSR_ERROR_UNSUPPORTED: the text at `at` is well formed, and `reason` says why it is not
 * taken. */
tsr_status tsr_token_unsupported(tsr_scan *scan, size_t at, const char *reason);

#endif
