/** Numbers on the command line. What is refused ends the program, with the exit status of argp. */
#ifndef EXAMPLE_NUMBERS_H
#define EXAMPLE_NUMBERS_H

#include <argp.h>
#include <stdint.h>

/** A whole number of digits from `least` to `most`. */
int64_t example_whole(const struct argp_state *state, const char *option, const char *text, int64_t least,
                      int64_t most);

/** A finite number from 0 to `most`. */
double example_number(const struct argp_state *state, const char *option, const char *text, double most);

#endif
