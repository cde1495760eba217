/** Numbers with a point as the values of options. */
#ifndef TESSERA_TOOLS_CLI_REAL_H
#define TESSERA_TOOLS_CLI_REAL_H

/** A decimal number from 0 up; NULL is `otherwise`. Returns the tool's exit status, having complained where that is not 0. */
int parse_real(const char *option, const char *text, double otherwise, double *out);

#endif
