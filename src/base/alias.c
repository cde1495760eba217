/*
 * Whether two elements of a tensor share memory, decided by integers alone.
 *
 * Two elements share memory exactly if there are index differences d, not all 0, with |d[i]| <
 * shape[i] and d[0] strides[0] + d[1] strides[1] + .. = 0. Most tensors need no search: a dim where
 * d[i] must be 0 is left out, then the next, until no dim is left. Dims that stay are searched,
 * within a bound.
 */
#include "base/checked.h"

#include <tessera/tensor.h>

#include <stdlib.h>

/* The search tries at most this many values of d, which takes some milliseconds; after that the
 * tensor counts as overlapping. */
#define MOST_TRIED (1 << 16)

/* One dim of the search: `stride` in elements, at least 0; -most <= d <= most. */
typedef struct dim {
    int64_t stride, most;
} dim;

/* The dims whose d may differ from 0, by descending stride. */
typedef struct dims {
    int count, tried;
    dim at[TSR_MAX_DIMS];
    int64_t reach[TSR_MAX_DIMS + 1]; /* reach[i]: the largest |sum| of dims i to the last; reach[count] is 0 */
    /* divisor[i]: greatest common divisor of strides i to the last; divisor[count] is 0 */
    int64_t divisor[TSR_MAX_DIMS + 1];
} dims;

static int64_t divisor_of(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void insert_dim(dims *all, dim added)
{
    int at = all->count++;
    for (; at > 0 && all->at[at - 1].stride < added.stride; at--)
        all->at[at] = all->at[at - 1];
    all->at[at] = added;
}

static void sum_up(dims *all)
{
    all->reach[all->count] = all->divisor[all->count] = 0;
    for (int i = all->count - 1; i >= 0; i--) {
        all->reach[i] = all->reach[i + 1] + all->at[i].stride * all->at[i].most;
        all->divisor[i] = divisor_of(all->at[i].stride, all->divisor[i + 1]);
    }
}

/* The greatest common divisor of all strides but that of dim `i`; 0: there are no other dims. */
static int64_t divisor_without(const dims *all, int i)
{
    int64_t divisor = 0;
    for (int k = 0; k < all->count; k++)
        divisor = k == i ? divisor : divisor_of(divisor, all->at[k].stride);
    return divisor;
}

/* True if d[i] must be 0: any other d[i] * stride is more than the other dims can sum to, or not a
 * multiple of their divisor. */
static bool is_apart(const dims *all, int i)
{
    const dim *d = &all->at[i];
    const int64_t others = all->reach[0] - d->stride * d->most, divisor = divisor_without(all, i);
    /* d[i] is a multiple of `step`; 0: there are no other dims */
    const int64_t step = divisor / divisor_of(divisor, d->stride);
    return step == 0 || step > d->most || step > others / d->stride;
}

static void leave_out(dims *all, int i)
{
    all->count--;
    for (; i < all->count; i++)
        all->at[i] = all->at[i + 1];
    sum_up(all);
}

static void leave_out_all(dims *all)
{
    for (int i = 0; i < all->count;) {
        const bool apart = is_apart(all, i);
        if (apart)
            leave_out(all, i);
        i = apart ? 0 : i + 1;
    }
}

/* True if the tensor has more elements than memory places that they can take. */
static bool is_crowded(const dims *all)
{
    const int64_t places = all->reach[0] / (all->divisor[0] ? all->divisor[0] : 1) + 1;
    int64_t elements = 1;
    for (int i = 0; i < all->count; i++)
        if (!tsr_multiply(elements, all->at[i].most + 1, &elements) || elements > places)
            return true;
    return false;
}

/* The x from 0 to modulus - 1 for which value * x is 1 modulo `modulus`; `value` and `modulus` have
 * no common divisor. */
static int64_t inverse(int64_t value, int64_t modulus)
{
    int64_t a = modulus, b = value % modulus, x = 0, y = 1;
    while (b > 0) {
        const int64_t times = a / b, rest = a % b, next = x - times * y;
        a = b, b = rest;
        x = y, y = next;
    }
    return modulus == 1 ? 0 : x < 0 ? x + modulus : x;
}

/* a * b modulo `modulus`, which is at most 2^62; neither factor is negative. */
static int64_t multiply_modulo(int64_t a, int64_t b, int64_t modulus)
{
    int64_t product = 0;
    for (; b > 0; b >>= 1, a = 2 * a % modulus)
        if (b & 1)
            product = (product + a) % modulus;
    return product;
}

/* The first x >= `from` for which rest + x * stride is a multiple of `divisor`; the next one is
 * x + *step. The caller has checked that such x exist. */
static int64_t first_met(int64_t rest, int64_t stride, int64_t divisor, int64_t from, int64_t *step)
{
    const int64_t common = divisor_of(stride, divisor), modulus = divisor / common;
    const int64_t wanted = ((-(rest / common)) % modulus + modulus) % modulus;
    const int64_t x = multiply_modulo(wanted, inverse(stride / common % modulus, modulus), modulus);
    const int64_t behind = ((x - from) % modulus + modulus) % modulus;
    *step = modulus;
    return from + behind;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b + (a % b != 0) : -(-a / b);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return -ceil_div(-a, b);
}

/* True if dims from `i` on can sum to -rest, or if the search ran out of tries. `is_free`: some d
 * before `i` is not 0, so all d from `i` on may be 0. d and -d are equivalent, so the first d that
 * is not 0 is taken positive. */
static bool search_dims(dims *all, int i, int64_t rest, bool is_free)
{
    if (i == all->count)
        return is_free && rest == 0;
    const dim *d = &all->at[i];
    const int64_t reach = all->reach[i + 1], divisor = all->divisor[i + 1];
    const int64_t least = is_free ? tsr_max_i64(-d->most, ceil_div(-rest - reach, d->stride)) : 0;
    const int64_t most = tsr_min_i64(d->most, floor_div(reach - rest, d->stride));
    if (divisor == 0) {
        const int64_t x = -rest / d->stride;
        return is_free && x * d->stride == -rest && x >= least && x <= most;
    }
    if (rest % divisor_of(d->stride, divisor) != 0)
        return false;
    int64_t step;
    for (int64_t x = first_met(rest, d->stride, divisor, least, &step); x <= most; x += step)
        if (++all->tried > MOST_TRIED || search_dims(all, i + 1, rest + x * d->stride, is_free || x > 0))
            return true;
    return false;
}

/* Takes the dims of more than one element; the sign of a stride does not matter. False if elements
 * are 2^61 or more apart. */
static bool take_dims(const tsr_tensor *tensor, dims *all)
{
    int64_t reach = 0, span;
    all->count = all->tried = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        const int64_t stride = tensor->strides[i] < -INT64_MAX ? INT64_MAX : llabs(tensor->strides[i]),
                      most = tensor->shape[i] - 1;
        if (most <= 0)
            continue;
        if (!tsr_multiply(stride, most, &span) || !tsr_add_sizes(reach, span, &reach))
            return false;
        insert_dim(all, (dim){stride, most});
    }
    return reach <= INT64_MAX / 4;
}

int tsr_tensor_overlaps(const tsr_tensor *tensor)
{
    dims all;
    if (tsr_shape_is_empty(tensor->ndim, tensor->shape) || tsr_tensor_is_contiguous(tensor))
        return 0;
    if (!take_dims(tensor, &all))
        return 1;
    if (all.count > 0 && all.at[all.count - 1].stride == 0)
        return 1;
    sum_up(&all);
    leave_out_all(&all);
    return is_crowded(&all) || search_dims(&all, 0, 0, false);
}
