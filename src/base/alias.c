/*
 * Whether two elements of a tensor share memory, decided by integers alone.
 *
 * Two do exactly if some d, not all 0, has |d[i]| < shape[i] and d[0] strides[0] + d[1] strides[1] + .. = 0. Nearly every tensor is told
 * apart by steps that need no search: dims along which no such d can differ from 0 are left out, one after the other. What is left then
 * is searched, within a bound.
 */
#include <stdlib.h>
#include <tessera/tensor.h>

#include "base/checked.h"

/* Values tried at most: some milliseconds. */
#define MOST_TRIED (1 << 16)

/* A dim of which no more matters than this: d is at most `most` either way. */
typedef struct dim {
    int64_t stride, most;
} dim;

/* The dims that may differ, by descending stride. */
typedef struct dims {
    int count, tried;
    dim at[TSR_MAX_DIMS];
    int64_t reach[TSR_MAX_DIMS + 1];   /* of the dims from here on: the largest |sum|; 0 behind the last */
    int64_t divisor[TSR_MAX_DIMS + 1]; /* the greatest that the strides from here on have in common; 0 behind the last */
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

/* What all strides but that of dim `i` have in common. */
static int64_t divisor_without(const dims *all, int i)
{
    int64_t divisor = 0;
    for (int k = 0; k < all->count; k++)
        divisor = k == i ? divisor : divisor_of(divisor, all->at[k].stride);
    return divisor;
}

/* True if d[i] is 0: any other is too far for the other dims together, or no sum that their strides have. */
static bool is_apart(const dims *all, int i)
{
    const dim *d = &all->at[i];
    const int64_t others = all->reach[0] - d->stride * d->most, divisor = divisor_without(all, i);
    const int64_t step = divisor / divisor_of(divisor, d->stride); /* d[i] is a multiple of it; 0: there are no others */
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

/* More elements than places for them. */
static bool is_crowded(const dims *all)
{
    const int64_t places = all->reach[0] / (all->divisor[0] ? all->divisor[0] : 1) + 1;
    int64_t elements = 1;
    for (int i = 0; i < all->count; i++)
        if (!tsr_multiply(elements, all->at[i].most + 1, &elements) || elements > places)
            return true;
    return false;
}

/* The x from 0 to modulus - 1 with value x = 1 modulo `modulus`, where they have no divisor in common. */
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

/* a b modulo `modulus`, which is at most 2^62; neither is negative. */
static int64_t multiply_modulo(int64_t a, int64_t b, int64_t modulus)
{
    int64_t product = 0;
    for (; b > 0; b >>= 1, a = 2 * a % modulus)
        if (b & 1)
            product = (product + a) % modulus;
    return product;
}

/* Of the x >= `from` for which `rest` + x stride is a multiple of `divisor`, the first; `*step` is how far the next is. The caller has seen
 * to it that there are some. */
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

/* True if dims from `i` on can add up to -rest. `is_free`: a dim before `i` differs, so these need not. Of d and -d one is enough: the
 * first that is not 0 is positive. */
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

/* The dims that have more than one element; which way a stride goes does not matter. False where elements are 2^61 apart. */
static bool take_dims(const tsr_tensor *tensor, dims *all)
{
    int64_t reach = 0, span;
    all->count = all->tried = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        const int64_t stride = tensor->strides[i] < -INT64_MAX ? INT64_MAX : llabs(tensor->strides[i]), most = tensor->shape[i] - 1;
        if (most <= 0)
            continue;
        if (!tsr_multiply(stride, most, &span) || !tsr_add(reach, span, &reach))
            return false;
        insert_dim(all, (dim){stride, most});
    }
    return reach <= INT64_MAX / 4;
}

static bool is_empty(const tsr_tensor *tensor)
{
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] == 0)
            return true;
    return false;
}

int tsr_tensor_overlaps(const tsr_tensor *tensor)
{
    dims all;
    if (is_empty(tensor) || tsr_tensor_is_contiguous(tensor))
        return 0;
    if (!take_dims(tensor, &all))
        return 1;
    if (all.count > 0 && all.at[all.count - 1].stride == 0)
        return 1;
    sum_up(&all);
    leave_out_all(&all);
    return is_crowded(&all) || search_dims(&all, 0, 0, false);
}
