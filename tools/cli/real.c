#include "cli/real.h"

#include "command.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int parse_real(const char *option, const char *text, double otherwise, double *out)
{
    *out = otherwise;
    if (!text)
        return EXIT_DONE;
    char *end;
    /* strtod() alone would also take signs, spaces, hexadecimals, "inf" and "nan". */
    const double value =
        strspn(text, "0123456789.eE+-") == strlen(text) && isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
    if (!isfinite(value) || *end != '\0')
        return complain(EXIT_USAGE, "%s '%s' is not a number from 0 up, as 0.1 or 2e-6", option, text);
    *out = value;
    return EXIT_DONE;
}
