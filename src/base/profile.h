/** What a cost profile holds. */
#ifndef TSR_BASE_PROFILE_H
#define TSR_BASE_PROFILE_H

#include <tessera/profile.h>

#include "base/references.h"

#define TSR_ROW_POINTS    32 /* of a row, at most */
#define TSR_TABLE_ROWS    8  /* of a kind of work, at most */
#define TSR_TABLE_KINDS   3  /* by tsr_work */
#define TSR_PROFILE_SPANS 2  /* single numbers: step and piece */

/** A number by a key that grows: a rate by touched bytes, seconds by ranks. */
typedef struct tsr_row {
    int64_t run; /**< of rates: the row's */
    size_t count;
    struct {
        double key, value;
    } at[TSR_ROW_POINTS];
} tsr_row;

/** The rows of a kind of work, by run. */
typedef struct tsr_table {
    size_t count;
    tsr_row rows[TSR_TABLE_ROWS];
} tsr_table;

typedef struct tsr_profile_content {
    tsr_cost_profile links;
    double spans[TSR_PROFILE_SPANS]; /**< seconds: a plan, and a box */
    bool has_spans[TSR_PROFILE_SPANS];
    tsr_row meeting; /**< seconds by ranks; of no points: it is not known */
    tsr_table work[TSR_TABLE_KINDS];
} tsr_profile_content;

struct tsr_profile {
    tsr_references references;
    tsr_profile_content content;
    bool has_tables;
    char *text; /**< as it is printed: what is compared and saved */
    size_t length;
    uint64_t hash; /**< of the text */
};

/** The text of a profile, borrowed. */
static inline const char *tsr_profile_text(const tsr_profile *profile)
{
    return profile->text;
}

#endif
