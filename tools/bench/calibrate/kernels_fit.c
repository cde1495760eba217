#include "bench/calibrate/kernels.h"
#include "cli/order.h"
#include "cli/text_buffer.h"

#include <math.h>
#include <stdlib.h>

/* A kernel's work gets at least this share of its time, since what a call costs beside it, which is
 * subtracted, is not exact. */
#define LEAST_SHARE 0.1

static const char *const product_names[] = {[KERNEL_MULTIPLY] = "multiply", [KERNEL_ATTEND] = "attend"};

static tsr_product product_of(const kernel_call_point *point)
{
    return point->topic == KERNEL_MULTIPLY ? TSR_PRODUCT_MULTIPLY : TSR_PRODUCT_ATTEND;
}

double kernels_seconds(const kernel_call_point *point, const tsr_profile *profile)
{
    const double call = tsr_profile_call_seconds(profile);
    if (point->topic == KERNEL_CALL || point->topic == KERNEL_PASS)
        return call + tsr_profile_pass_seconds(profile, point->touched);
    return call + tsr_profile_product_seconds(profile, product_of(point), point->least, point->touched, point->touched,
                                              point->flops);
}

static bool is_entry(const kernel_call_point *point)
{
    return point->fitted && point->seconds.median > 0;
}

/* The call whose time is what a call costs beside its work; NULL: it was not measured. */
static const kernel_call_point *find_call(const kernels *k)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->points[i].topic == KERNEL_CALL && is_entry(&k->points[i]))
            return &k->points[i];
    return NULL;
}

static double work_seconds(const kernel_call_point *point, double call)
{
    const double left = point->seconds.median - call, least = LEAST_SHARE * point->seconds.median;
    return left > least ? left : least;
}

/* Writes the points of the row of points[first]: those of its topic and least size, whose keys
 * ascend; none for a point of a row that began before. */
static void write_row(text_buffer *text, const kernels *k, size_t first, double call)
{
    const kernel_call_point *const like = &k->points[first];
    double last = 0;
    for (size_t i = 0; i < k->count; i++) {
        const kernel_call_point *const point = &k->points[i];
        if (!is_entry(point) || point->topic != like->topic || point->least != like->least)
            continue;
        if (i < first)
            return;
        if (point->touched <= last)
            continue;
        if (i == first && like->topic == KERNEL_PASS)
            text_buffer_add(text, "\npass=");
        else if (i == first)
            text_buffer_print(text, "\n%s@%lld=", product_names[like->topic], (long long)like->least);
        const double work = like->topic == KERNEL_PASS ? point->touched : point->flops;
        text_buffer_print(text, "%s%.0f:%.3e", i > first ? "," : "", point->touched, work / work_seconds(point, call));
        last = point->touched;
    }
}

static void write_entries(text_buffer *text, const kernels *k)
{
    const kernel_call_point *const call = find_call(k);
    if (call)
        text_buffer_print(text, "\ncall=%.3e", call->seconds.median);
    for (size_t i = 0; i < k->count; i++)
        if (is_entry(&k->points[i]) && k->points[i].topic != KERNEL_CALL)
            write_row(text, k, i, call ? call->seconds.median : 0);
}

int kernels_fit(const kernels *k, const tsr_profile *base, tsr_profile **out)
{
    text_buffer text = {0};
    const size_t length = tsr_profile_print(base, NULL, 0);
    char *const links = malloc(length + 1);
    if (links)
        tsr_profile_print(base, links, length + 1);
    text_buffer_add(&text, links);
    free(links);
    write_entries(&text, k);
    char *const whole = text_buffer_take(&text, NULL);
    if (!whole)
        return complain(EXIT_REFUSED, "there is no memory for the text of a profile");
    const tsr_status status = tsr_profile_parse(whole, out);
    free(whole);
    return status == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

fit_error kernels_error(const kernels *k, const tsr_profile *profile, size_t *count)
{
    double errors[KERNEL_POINTS];
    *count = 0;
    for (size_t i = 0; i < k->count; i++) {
        const kernel_call_point *const point = &k->points[i];
        if (!point->fitted && point->seconds.median > 0)
            errors[(*count)++] = fabs(kernels_seconds(point, profile) / point->seconds.median - 1);
    }
    if (*count == 0)
        return (fit_error){0, 0};
    const double median = sort_to_median(errors, *count);
    return (fit_error){median, errors[*count - 1]};
}
