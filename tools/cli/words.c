#include "cli/words.h"

#include <stdio.h>

/* Largest number printed exactly: its digits are as short as a multiple. */
#define MOST_EXACT 9999

/* Scales to the unit in which the number has one to four digits before the point; returns the
 * unit: "Ki", "Mi", .. */
static const char *scale_bytes(int64_t bytes, double *scaled)
{
    static const char *const units[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t unit = 0;
    *scaled = (double)bytes / 1024;
    for (; *scaled >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        *scaled /= 1024;
    return units[unit];
}

void print_short_bytes(int64_t bytes, char text[BYTES_TEXT])
{
    double scaled;
    if (bytes <= MOST_EXACT) {
        snprintf(text, BYTES_TEXT, "%lld", (long long)bytes);
        return;
    }
    const char *const unit = scale_bytes(bytes, &scaled);
    snprintf(text, BYTES_TEXT, "%.*f %s", scaled < 99.95, scaled, unit);
}

void print_bytes(int64_t bytes, char text[BYTES_TEXT])
{
    double scaled;
    if (bytes <= MOST_EXACT) {
        snprintf(text, BYTES_TEXT, "%lld byte%s", (long long)bytes, bytes == 1 ? "" : "s");
        return;
    }
    const char *const unit = scale_bytes(bytes, &scaled);
    snprintf(text, BYTES_TEXT, "%lld bytes (%.*f %sB)", (long long)bytes, scaled < 99.95, scaled, unit);
}

void print_seconds(double seconds, char text[BYTES_TEXT])
{
    if (seconds < 1e-3)
        snprintf(text, BYTES_TEXT, "%.3g us", 1e6 * seconds);
    else if (seconds < 1)
        snprintf(text, BYTES_TEXT, "%.3g ms", 1e3 * seconds);
    else
        snprintf(text, BYTES_TEXT, "%.3g s", seconds);
}
