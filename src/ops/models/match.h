/** Patterns of plans, and the names that they match. */
#ifndef TSR_OPS_MODELS_MATCH_H
#define TSR_OPS_MODELS_MATCH_H

#include <tessera/status.h>

#include <stdbool.h>
#include <stddef.h>

/** Refuses a text that is no pattern: components of letters, digits, `_` and `-`, or `*`, apart by
 * dots. */
tsr_status tsr_pattern_check(const char *pattern);

/** True if the pattern matches the first `length` characters of a name. */
bool tsr_pattern_matches(const char *pattern, const char *name, size_t length);

/** True if the pattern matches a name, or the name of a module that it lies in. */
bool tsr_pattern_reaches(const char *pattern, const char *name);

/** True if `a` goes before `b`, both of which match one name: at the first difference it has a
 * number, where `b` has `*`. */
bool tsr_pattern_precedes(const char *a, const char *b);

/** The most patterns that tsr_near_add() keeps. */
#define TSR_NEAR 3

/** Room for a name as a pattern. */
#define TSR_NEAR_TEXT 256

/** The names that are most like a pattern, the nearest first. */
typedef struct tsr_near {
    const char *pattern;
    size_t count;
    size_t distances[TSR_NEAR];
    char names[TSR_NEAR][TSR_NEAR_TEXT];
} tsr_near;

/** Adds a name, and the modules that it lies in, with `*` for numbers. */
void tsr_near_add(tsr_near *near, const char *name);

/** Prints what was found: "a", or "a", "b"; nothing if there is none. */
void tsr_near_print(const tsr_near *near, char *text, size_t capacity);

#endif
