/** The content of a cost profile. */
#ifndef TSR_BASE_PROFILE_H
#define TSR_BASE_PROFILE_H

#include "base/references.h"

#include <tessera/profile.h>

#define TSR_ROW_POINTS    32 /* most points of a row */
#define TSR_TABLE_ROWS    8  /* most rows of a kind of work */
#define TSR_TABLE_KINDS   3  /* kinds of work: the values of tsr_work */
#define TSR_PROFILE_SPANS 2  /* single numbers of seconds of plans: step and piece */
#define TSR_PRODUCT_KINDS 2  /* kinds of products: the values of tsr_product */

/** Numbers by ascending keys: rates by touched bytes, or seconds by ranks. */
typedef struct tsr_row {
    int64_t run; /**< bytes; of products their least size; in a row of a table alone */
    size_t count;
    struct {
        double key, value;
    } at[TSR_ROW_POINTS];
} tsr_row;

/** The rows of a kind of work or of products, by ascending run. */
typedef struct tsr_table {
    size_t count;
    tsr_row rows[TSR_TABLE_ROWS];
} tsr_table;

typedef struct tsr_profile_content {
    tsr_cost_profile links;
    double spans[TSR_PROFILE_SPANS]; /**< seconds per plan (step) and per box (piece) */
    bool has_spans[TSR_PROFILE_SPANS];
    tsr_row meeting; /**< seconds by ranks; without points: not known */
    tsr_table work[TSR_TABLE_KINDS];
    double call; /**< seconds of a kernel of an op besides its work */
    bool has_call;
    tsr_row pass; /**< bytes a second of kernels that pass over elements, by touched bytes */
    tsr_table products[TSR_PRODUCT_KINDS];
} tsr_profile_content;

struct tsr_profile {
    tsr_references references;
    tsr_profile_content content;
    bool has_tables;  /**< for plans */
    bool has_kernels; /**< for kernels of ops */
    char *text;       /**< as tsr_profile_print() writes it; profiles are compared and saved by this text */
    size_t length;
    uint64_t hash; /**< of `text` */
};

/** The text of a profile, borrowed. */
static inline const char *tsr_profile_text(const tsr_profile *profile)
{
    return profile->text;
}

#endif
