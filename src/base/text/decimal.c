#include "base/text/decimal.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Digits that a text may have; 17 are enough for any double. */
#define MOST_DIGITS   64
#define MOST_EXPONENT 9999

/* digits * 10^exponent. Without a decimal point, whose character depends on the locale wherever the
 * C library reads or writes it. */
typedef struct decimal {
    char digits[MOST_DIGITS + 1];
    size_t count;
    int64_t exponent;
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static double nearest(const decimal *d)
{
    char text[MOST_DIGITS + 32];
    snprintf(text, sizeof text, "%se%lld", d->count > 0 ? d->digits : "0", (long long)d->exponent);
    return strtod(text, NULL);
}

/* Takes a run of digits; leading zeros do not count. False: there are more than MOST_DIGITS. */
static bool take_digits(tsr_scan *scan, decimal *d)
{
    for (; is_digit(scan->text[scan->at]); scan->at++) {
        if (d->count == 0 && scan->text[scan->at] == '0')
            continue;
        if (d->count == MOST_DIGITS)
            return false;
        d->digits[d->count++] = scan->text[scan->at];
        d->digits[d->count] = '\0';
    }
    return true;
}

static tsr_status take_fraction(tsr_scan *scan, decimal *d)
{
    const size_t first = scan->at;
    if (!is_digit(scan->text[first]))
        return tsr_scan_expected(scan, first, "a digit");
    if (!take_digits(scan, d))
        return tsr_scan_refuse(scan, scan->at, "a number has at most 64 digits");
    d->exponent = -(int64_t)(scan->at - first);
    return TSR_OK;
}

static tsr_status take_exponent(tsr_scan *scan, decimal *d)
{
    const bool negative = tsr_scan_accept(scan, "-");
    if (!negative)
        tsr_scan_accept(scan, "+");
    int64_t exponent = 0;
    TSR_TRY(tsr_scan_number(scan, 0, MOST_EXPONENT, "an exponent from 0 to 9999", &exponent));
    d->exponent += negative ? -exponent : exponent;
    return TSR_OK;
}

tsr_status tsr_scan_decimal(tsr_scan *scan, const char *expected, double *out)
{
    const size_t first = scan->at;
    decimal d = {.count = 0};
    if (!is_digit(scan->text[first]))
        return tsr_scan_expected(scan, first, expected);
    if (!take_digits(scan, &d))
        return tsr_scan_refuse(scan, scan->at, "a number has at most 64 digits");
    if (tsr_scan_accept(scan, "."))
        TSR_TRY(take_fraction(scan, &d));
    if (tsr_scan_accept(scan, "e") || tsr_scan_accept(scan, "E"))
        TSR_TRY(take_exponent(scan, &d));
    const double value = nearest(&d);
    if (isinf(value))
        return tsr_scan_refuse(scan, first, "this number is greater than any double");
    *out = value;
    return TSR_OK;
}

/* `value` rounded to `digits` digits, without trailing zeros; `exponent` is that of the first
 * digit. */
static decimal rounded(double value, int digits)
{
    char text[64];
    decimal d = {.count = 0};
    snprintf(text, sizeof text, "%.*e", digits - 1, value);
    const char *at = text;
    for (; *at != 'e'; at++)
        if (is_digit(*at))
            d.digits[d.count++] = *at;
    while (d.count > 1 && d.digits[d.count - 1] == '0')
        d.count--;
    d.digits[d.count] = '\0';
    d.exponent = strtol(at + 1, NULL, 10);
    return d;
}

static decimal shortest(double value)
{
    for (int digits = 1; digits < 17; digits++) {
        const decimal leading = rounded(value, digits);
        decimal whole = leading;
        whole.exponent -= (int64_t)whole.count - 1;
        if (nearest(&whole) == value)
            return leading;
    }
    return rounded(value, 17);
}

void tsr_decimal_append(tsr_text *text, double value)
{
    if (signbit(value))
        tsr_text_append(text, "-");
    if (!isfinite(value)) {
        tsr_text_append(text, isnan(value) ? "nan" : "inf");
        return;
    }
    const decimal d = shortest(fabs(value));
    tsr_text_append(text, "%c%s%s", d.digits[0], d.count > 1 ? "." : "", d.digits + 1);
    if (d.exponent != 0)
        tsr_text_append(text, "e%lld", (long long)d.exponent);
}
