/** Names of weights on two sides, and the rules that turn one into the other. Pure. */
#ifndef TSR_TENSOR_SYNC_SYNC_NAMES_H
#define TSR_TENSOR_SYNC_SYNC_NAMES_H

#include <tessera/sync.h>

/** The most characters of a name or of a side of a rule, and room for one with its NUL. */
enum { TSR_SYNC_NAME = 255, TSR_SYNC_TEXT = TSR_SYNC_NAME + 1 };

/** TSR_ERROR_ARGUMENT unless `name` has 1 to 255 characters. `what` begins the sentence. */
tsr_status tsr_sync_check_name(const char *what, size_t number, const char *name);

/** Checks the sides of each rule. */
tsr_status tsr_sync_check_rules(size_t count, const tsr_sync_rule *rules);

/** Writes the name of the source that the destination called `name` gets. `*rule` becomes the rule
 * that says so, or NULL. TSR_ERROR_ARGUMENT: the name would be too long. */
tsr_status tsr_sync_name_source(size_t count, const tsr_sync_rule *rules, const char *name, char out[TSR_SYNC_TEXT],
                                const tsr_sync_rule **rule);

#endif
