#include "numbers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int64_t example_whole(const struct argp_state *state, const char *option, const char *text, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text || value < least || value > most)
        argp_error(state, "--%s %s: a whole number from %lld to %lld is expected", option, text, (long long)least,
                   (long long)most);
    return value;
}

double example_number(const struct argp_state *state, const char *option, const char *text, double most)
{
    char *end;
    const double value = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(value) || value < 0 || value > most)
        argp_error(state, "--%s %s: a number from 0 to %g is expected", option, text, most);
    return value;
}
