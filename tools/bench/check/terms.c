#include "bench/check/terms.h"

#include <stdlib.h>
#include <string.h>

terms terms_of(const tsr_layout *layout)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    const tsr_placement *const placements = tsr_layout_placements(layout);
    terms t = {.dtype = tsr_layout_dtype(layout), .picks = 1};
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++) {
        if (placements[d].kind != TSR_PARTIAL || tsr_mesh_size(mesh, d) == 1)
            continue;
        t.mesh_dim[t.count] = d;
        t.size[t.count] = tsr_mesh_size(mesh, d);
        t.op[t.count++] = placements[d].op;
        t.picks *= tsr_mesh_size(mesh, d);
    }
    return t;
}

/* Bits of the exponent and the mantissa of floating-point formats; 0 for other dtypes. */
static const struct {
    int exponent, mantissa;
} formats[TSR_DTYPE_END] = {[TSR_F64] = {11, 52},  [TSR_F32] = {8, 23},   [TSR_F16] = {5, 10}, [TSR_BF16] = {8, 7},
                            [TSR_F8E4M3] = {4, 3}, [TSR_F8E5M2] = {5, 2}, [TSR_C64] = {8, 23}, [TSR_C128] = {11, 52}};

/* The bits of an integer that the format holds exactly; -0.0 if `magnitude` is 0 and
 * `negative`. */
static uint64_t float_bits(tsr_dtype dtype, uint64_t magnitude, bool negative)
{
    const int mantissa = formats[dtype].mantissa, exponent = formats[dtype].exponent;
    const uint64_t sign = (uint64_t)negative << (mantissa + exponent);
    if (magnitude == 0)
        return sign;
    const int log = 63 - __builtin_clzll(magnitude);
    const uint64_t bias = ((uint64_t)1 << (exponent - 1)) - 1;
    const uint64_t fraction = (magnitude ^ ((uint64_t)1 << log)) << mantissa >> log;
    return sign | (bias + (uint64_t)log) << mantissa | fraction;
}

static void encode(tsr_dtype dtype, int64_t value, bool negative_zero, unsigned char out[ELEMENT_BYTES])
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    uint64_t parts[2] = {(uint64_t)value, 0};
    if (formats[dtype].exponent > 0) {
        parts[0] = float_bits(dtype, (uint64_t)llabs(value), value < 0 || negative_zero);
        parts[1] = float_bits(dtype, 0, negative_zero);
    }
    const size_t part = info->kind == TSR_CLASS_COMPLEX ? info->bytes / 2 : info->bytes;
    memcpy(out, &parts[0], part);
    if (part < info->bytes)
        memcpy(out + part, &parts[1], part);
}

void encode_neutral(tsr_dtype dtype, tsr_reduce_op op, unsigned char out[ELEMENT_BYTES])
{
    encode(dtype, op == TSR_PROD, op == TSR_SUM, out);
}

static bool is_sum(tsr_reduce_op op)
{
    return op == TSR_SUM || op == TSR_AVG;
}

/* Element `c` of n numbers whose sum is 0: +1, -1, +1, .., and 0 at the end of an odd n. */
static int64_t balance(int64_t c, int64_t n)
{
    return n % 2 == 1 && c == n - 1 ? 0 : c % 2 == 0 ? 1 : -1;
}

/* A term of sum and avg: the value at the picked coordinate of the sum dims and every coordinate
 * of the avg dims, plus a product of balance(), which makes every term count and leaves every total
 * as it is. */
static int64_t sum_term(const terms *t, const int64_t *c, const int64_t *pick, int64_t choice)
{
    bool picked = true;
    int64_t noise = 1;
    for (int i = 0; i < t->count; i++) {
        picked = picked && (t->op[i] == TSR_AVG || c[i] == pick[i]);
        noise *= balance(c[i], t->size[i]);
    }
    return noise + (picked ? 1 + choice % 7 : 0);
}

/* A term of min, max and prod: the picked coordinate decides the result. At most 8, so that f8e5m2
 * holds it exactly. */
static int64_t picked_term(const terms *t, const int64_t *c, const int64_t *pick, int64_t choice)
{
    bool picked = true;
    int64_t parity = 0;
    for (int i = 0; i < t->count; i++) {
        picked = picked && c[i] == pick[i];
        parity ^= c[i] & 1;
    }
    if (t->op[0] == TSR_PROD)
        return picked ? 1 + choice % 7 : 1;
    if (t->dtype == TSR_BOOL)
        return picked ? choice & 1 : t->op[0] == TSR_MIN;
    const int64_t value = 3 + choice % 4, away = picked ? 0 : 1 + parity;
    return t->op[0] == TSR_MAX ? value - away : value + away;
}

static int64_t combine(tsr_reduce_op op, int64_t a, int64_t b)
{
    if (op == TSR_MIN)
        return a < b ? a : b;
    if (op == TSR_MAX)
        return a > b ? a : b;
    return op == TSR_PROD ? a * b : a + b;
}

static bool next_reduced(const terms *t, const bool *reduced, int64_t *c)
{
    for (int i = t->count - 1; i >= 0; i--) {
        if (!reduced[i])
            continue;
        if (++c[i] < t->size[i])
            return true;
        c[i] = 0;
    }
    return false;
}

/* Reduces over the marked dims, in integers. avg divides without remainder, since every coordinate
 * of its dims has the value. */
static int64_t reduce(const terms *t, const int64_t *coordinate, const bool *reduced, const int64_t *pick,
                      int64_t choice)
{
    int64_t c[TSR_MAX_DIMS], divisor = 1, result = 0;
    for (int i = 0; i < t->count; i++) {
        c[i] = reduced[i] ? 0 : coordinate[t->mesh_dim[i]];
        divisor *= reduced[i] && t->op[i] == TSR_AVG ? t->size[i] : 1;
    }
    bool first = true;
    do {
        const int64_t term = is_sum(t->op[0]) ? sum_term(t, c, pick, choice) : picked_term(t, c, pick, choice);
        result = first ? term : combine(t->op[0], result, term);
        first = false;
    } while (next_reduced(t, reduced, c));
    return result / divisor;
}

void terms_table(const terms *t, const int64_t *coordinate, const bool *reduced, unsigned char *table)
{
    for (int64_t p = 0; p < t->picks; p++) {
        int64_t pick[TSR_MAX_DIMS], rest = p;
        for (int i = t->count - 1; i >= 0; i--) {
            pick[i] = rest % t->size[i];
            rest /= t->size[i];
        }
        for (int64_t choice = 0; choice < TERM_CHOICES; choice++)
            encode(t->dtype, reduce(t, coordinate, reduced, pick, choice), false,
                   table + (p * TERM_CHOICES + choice) * ELEMENT_BYTES);
    }
}
