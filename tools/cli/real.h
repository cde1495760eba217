/** Decimal numbers as the values of options. */
#ifndef TESSERA_TOOLS_CLI_REAL_H
#define TESSERA_TOOLS_CLI_REAL_H

/** A decimal number from 0 up; NULL is `otherwise`. Returns EXIT_USAGE, having complained, for
 * other text. */
int parse_real(const char *option, const char *text, double otherwise, double *out);

#endif
