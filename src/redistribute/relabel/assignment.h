/** Gives each of n rows a column of its own, so that the sum of weights is large. Pure and
 * deterministic; allocates nothing. */
#ifndef TSR_REDISTRIBUTE_RELABEL_ASSIGNMENT_H
#define TSR_REDISTRIBUTE_RELABEL_ASSIGNMENT_H

#include <stddef.h>
#include <stdint.h>

/** Weights of an exact assignment are from 0 to this: sums of four numbers stay in range. */
#define TSR_ASSIGNMENT_MOST (INT64_C(1) << 60)

/** How many int64_t of scratch an exact assignment takes. */
#define TSR_ASSIGNMENT_SCRATCH(n) (6 * (size_t)(n))

/** The assignment of largest weight: row i gets column column_of[i]. `weights` is n * n, row-major.
 * O(n^3). */
void tsr_assignment_exact(int64_t n, const int64_t *weights, int64_t *scratch, int64_t *column_of);

/**
 * Columns by class: to any row, all columns of a class weigh the same. Row i's own column is column
 * i, which the row prefers among the columns of its class. class_of[column] is -1 for a column that
 * weighs 0 to every row.
 */
typedef struct tsr_column_classes {
    int64_t n, count;
    const int32_t *class_of; /**< n entries, one for each column */
} tsr_column_classes;

/** How many int32_t of scratch a greedy assignment takes. */
#define TSR_GREEDY_SCRATCH(classes) (2 * (size_t)(classes)->n + 2 * (size_t)(classes)->count + 2)

/** What any column of the class weighs to the row. */
typedef struct tsr_offer {
    int64_t weight;
    int32_t row, class_of_column;
} tsr_offer;

/**
 * Takes the heaviest offer whose row has no column yet and whose class has a free one, again and
 * again. Among equally heavy offers, those of the class of a row's own column come first, then the
 * lowest row, then the lowest class. Rows that are left get their own columns where these are free,
 * then the lowest. Sorts `offers`.
 */
void tsr_assignment_greedy(const tsr_column_classes *classes, tsr_offer *offers, size_t count, int32_t *scratch,
                           int64_t *column_of);

#endif
