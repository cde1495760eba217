#include "bench/check/terms.h"

int64_t terms_patterns(const oracle_move *move)
{
    int64_t picks = 1;
    bool any = false;
    for (int d = 0; d < move->src.mesh.ndim; d++) {
        if (move->src.placements[d].kind != TSR_PARTIAL)
            continue;
        any = true;
        picks *= move->src.mesh.shape[d];
    }
    return any ? picks * TERM_CHOICES : 0;
}

/* Where a rank is among the terms of an element. */
typedef struct where {
    tsr_reduce_op op; /* of the first Partial dim; avg goes with sum alone */
    bool picked;      /* the rank has the picked coordinate in all dims */
    bool picked_sums; /* the rank has it in all dims but those of avg */
    int64_t parity;   /* of the sum of its coordinates */
    int64_t noise;    /* the product of balance() of its coordinates */
} where;

/* Element `c` of n numbers whose sum is 0: +1, -1, +1, .., and 0 at the end of an odd n. */
static int64_t balance(int64_t c, int64_t n)
{
    return n % 2 == 1 && c == n - 1 ? 0 : c % 2 == 0 ? 1 : -1;
}

static where find_where(const oracle_layout *src, const int64_t *coordinate, int64_t pick)
{
    where w = {.picked = true, .picked_sums = true, .noise = 1};
    for (int d = src->mesh.ndim - 1; d >= 0; d--) {
        const int64_t size = src->mesh.shape[d], c = coordinate[d];
        if (src->placements[d].kind != TSR_PARTIAL)
            continue;
        w.op = src->placements[d].op;
        w.picked = w.picked && c == pick % size;
        w.picked_sums = w.picked_sums && (w.op == TSR_AVG || c == pick % size);
        w.parity ^= c & 1;
        w.noise *= balance(c, size);
        pick /= size;
    }
    return w;
}

/* A term of sum and avg: the value at the picked coordinate of the sum dims and every coordinate
 * of the avg dims, plus noise, which makes every term count and leaves every total as it is. */
static int64_t sum_term(const where *w, int64_t choice)
{
    return w->noise + (w->picked_sums ? 1 + choice % 7 : 0);
}

/* A term of min, max and prod: the picked coordinate decides the result. At most 8, so that f8e5m2
 * holds it exactly. */
static int64_t picked_term(const where *w, tsr_dtype dtype, int64_t choice)
{
    if (w->op == TSR_PROD)
        return w->picked ? 1 + choice % 7 : 1;
    if (dtype == TSR_BOOL)
        return w->picked ? choice & 1 : w->op == TSR_MIN;
    const int64_t value = 3 + choice % 4, away = w->picked ? 0 : 1 + w->parity;
    return w->op == TSR_MAX ? value - away : value + away;
}

void terms_draw(const oracle_move *move, const void *how, const int64_t *coordinate, int64_t pattern,
                unsigned char *value)
{
    (void)how;
    const where w = find_where(&move->src, coordinate, pattern / TERM_CHOICES);
    const int64_t choice = pattern % TERM_CHOICES;
    const bool sums = w.op == TSR_SUM || w.op == TSR_AVG;
    oracle_integer(move->src.dtype, sums ? sum_term(&w, choice) : picked_term(&w, move->src.dtype, choice), value);
}
