#include "redistribute/relabel/assignment.h"

#include "base/sort.h"

#include <string.h>

/*
 * Shortest augmenting paths with potentials (R. Jonker, A. Volgenant, Computing 38, 1987), where
 * costs are negated weights. The potentials u and v keep every reduced cost -weight - u - v at 0 or
 * above, and at 0 where a row has its column. A free column keeps v = 0, and there is one until the
 * last row is placed: so -TSR_ASSIGNMENT_MOST <= u <= 0 and |v| <= TSR_ASSIGNMENT_MOST.
 */
typedef struct solver {
    int64_t n;
    const int64_t *weights;
    int64_t *u, *v;    /* potentials of rows, of columns */
    int64_t *row_of;   /* the row that has a column, or -1 */
    int64_t *distance; /* of a column from the row that is being placed */
    int64_t *from;     /* the row before a column on its shortest path */
    int64_t *columns;  /* all columns: those whose distance is final, then the others */
} solver;

static solver solver_make(int64_t n, const int64_t *weights, int64_t *scratch)
{
    solver s = {.n = n, .weights = weights};
    int64_t **const arrays[] = {&s.u, &s.v, &s.row_of, &s.distance, &s.from, &s.columns};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = scratch + i * (size_t)n;
    memset(scratch, 0, 2 * (size_t)n * sizeof *scratch);
    for (int64_t j = 0; j < n; j++)
        s.row_of[j] = -1;
    return s;
}

static int64_t reduced_cost(const solver *s, int64_t row, int64_t column)
{
    return -s->weights[row * s->n + column] - s->u[row] - s->v[column];
}

static void start_search(solver *s, int64_t row)
{
    for (int64_t j = 0; j < s->n; j++) {
        s->distance[j] = reduced_cost(s, row, j);
        s->from[j] = row;
        s->columns[j] = j;
    }
}

/* Brings the nearest of the columns from place `done` on to place `done`, and returns it; of
 * equally near columns a free one, which ends the search. */
static int64_t pick_nearest(solver *s, int64_t done)
{
    int64_t best = done;
    for (int64_t i = done + 1; i < s->n; i++) {
        const int64_t j = s->columns[i], k = s->columns[best];
        if (s->distance[j] < s->distance[k] ||
            (s->distance[j] == s->distance[k] && s->row_of[j] < 0 && s->row_of[k] >= 0))
            best = i;
    }
    const int64_t column = s->columns[best];
    s->columns[best] = s->columns[done];
    s->columns[done] = column;
    return column;
}

/* Updates the columns that are nearer by way of `column` and the row that has it. */
static void relax(solver *s, int64_t done, int64_t column)
{
    const int64_t row = s->row_of[column];
    for (int64_t i = done; i < s->n; i++) {
        const int64_t j = s->columns[i], distance = s->distance[column] + reduced_cost(s, row, j);
        if (distance < s->distance[j]) {
            s->distance[j] = distance;
            s->from[j] = row;
        }
    }
}

/* Updates the potentials after a search that ended at distance `least`, having passed `done`
 * columns before. */
static void shift_potentials(solver *s, int64_t row, int64_t done, int64_t least)
{
    s->u[row] += least;
    for (int64_t i = 0; i < done; i++) {
        const int64_t j = s->columns[i], shift = least - s->distance[j];
        s->v[j] -= shift;
        s->u[s->row_of[j]] += shift;
    }
}

static void place_row(solver *s, int64_t row, int64_t *column_of)
{
    start_search(s, row);
    int64_t done = 0, column = pick_nearest(s, done);
    while (s->row_of[column] >= 0) {
        relax(s, ++done, column);
        column = pick_nearest(s, done);
    }
    shift_potentials(s, row, done, s->distance[column]);
    for (int64_t i = -1; i != row;) {
        i = s->from[column];
        const int64_t before = column_of[i];
        s->row_of[column] = i;
        column_of[i] = column;
        column = before;
    }
}

void tsr_assignment_exact(int64_t n, const int64_t *weights, int64_t *scratch, int64_t *column_of)
{
    solver s = solver_make(n, weights, scratch);
    for (int64_t row = 0; row < n; row++)
        column_of[row] = -1;
    for (int64_t row = 0; row < n; row++)
        place_row(&s, row, column_of);
}

static int heaviest_first(const void *a, const void *b, const void *classes)
{
    const tsr_offer *x = a, *y = b;
    const int32_t *class_of = ((const tsr_column_classes *)classes)->class_of;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    const int x_own = class_of[x->row] == x->class_of_column, y_own = class_of[y->row] == y->class_of_column;
    if (x_own != y_own)
        return y_own - x_own;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->class_of_column < y->class_of_column ? -1 : x->class_of_column > y->class_of_column;
}

/* The free columns: those of class c are columns[next[c]] to columns[end[c] - 1], ascending, except
 * the taken ones. */
typedef struct pool {
    const tsr_column_classes *classes;
    int32_t *columns, *taken, *next, *end;
} pool;

static pool pool_make(const tsr_column_classes *classes, int32_t *scratch)
{
    pool p = {classes, scratch, scratch + classes->n, scratch + 2 * classes->n, NULL};
    memset(scratch, 0, TSR_GREEDY_SCRATCH(classes) * sizeof *scratch);
    p.end = p.next + classes->count + 1;
    for (int64_t j = 0; j < classes->n; j++)
        if (classes->class_of[j] >= 0)
            p.next[classes->class_of[j] + 1]++;
    for (int64_t c = 0; c < classes->count; c++) {
        p.next[c + 1] += p.next[c];
        p.end[c] = p.next[c];
    }
    for (int64_t j = 0; j < classes->n; j++)
        if (classes->class_of[j] >= 0)
            p.columns[p.end[classes->class_of[j]]++] = (int32_t)j;
    return p;
}

/* A free column of the offer's class, the row's own where possible; -1 if the class has none
 * left. */
static int64_t free_column(pool *p, const tsr_offer *offer)
{
    const int32_t c = offer->class_of_column;
    if (p->classes->class_of[offer->row] == c && !p->taken[offer->row])
        return offer->row;
    while (p->next[c] < p->end[c] && p->taken[p->columns[p->next[c]]])
        p->next[c]++;
    return p->next[c] < p->end[c] ? p->columns[p->next[c]] : -1;
}

static void assign(pool *p, int64_t row, int64_t column, int64_t *column_of)
{
    column_of[row] = column;
    p->taken[column] = 1;
}

/* Assigns the rows that have no column yet: those without an offer, or with offers only of columns
 * that others have. */
static void assign_rest(pool *p, int64_t *column_of)
{
    const int64_t n = p->classes->n;
    for (int64_t row = 0; row < n; row++)
        if (column_of[row] < 0 && !p->taken[row])
            assign(p, row, row, column_of);
    int64_t column = 0;
    for (int64_t row = 0; row < n; row++) {
        if (column_of[row] >= 0)
            continue;
        while (p->taken[column])
            column++;
        assign(p, row, column, column_of);
    }
}

void tsr_assignment_greedy(const tsr_column_classes *classes, tsr_offer *offers, size_t count, int32_t *scratch,
                           int64_t *column_of)
{
    pool p = pool_make(classes, scratch);
    for (int64_t row = 0; row < classes->n; row++)
        column_of[row] = -1;
    tsr_sort_array(offers, count, sizeof *offers, heaviest_first, classes);
    for (size_t i = 0; i < count; i++) {
        const int64_t column = column_of[offers[i].row] < 0 ? free_column(&p, &offers[i]) : -1;
        if (column >= 0)
            assign(&p, offers[i].row, column, column_of);
    }
    assign_rest(&p, column_of);
}
