/**
 * Support of the drills: options, seeded draws, a watchdog and the line of figures at the end.
 *
 * A drill is a program that tests one promise of the library for a given time. Case `n` of a drill
 * depends only on the seed and `n`, so `--seed S --first N --count 1` repeats it. The last line on
 * standard output is a JSON object:
 *
 * {"drill": "moves", "promise": "..", "tried": 1000, "held": 1000, "seed": 1, "seconds": 2.5}
 *
 * If the promise does not hold in a case, the program says so on standard error, and exits with
 * status 1.
 */
#ifndef TESTS_DRILL_H
#define TESTS_DRILL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct drill drill;

/** A drill's description of itself. */
typedef struct drill_about {
    const char *name;
    const char *promise;   /**< one sentence of the documentation */
    int64_t cases;         /**< number of cases if neither --count nor --seconds is given */
    unsigned case_seconds; /**< a case that takes longer counts as hung, and ends the program */
} drill_about;

/** Reads the command line: --seed N, --first N, --count N, --seconds N. There is one drill in a
 * process. */
drill *drill_begin(int argc, char **argv, const drill_about *about);

/** Limits the drill to `cases` cases, all that exist, whatever the options say. */
void drill_limit(drill *d, int64_t cases);

/** Ends the current case, if there is one, and begins the next: true, with its number in `*index`,
 * or false after the last. */
bool drill_next(drill *d, int64_t *index);

/** Counts the current case as `tries` tries of the promise instead of one. */
void drill_weigh(drill *d, int64_t tries);

/** Reports that the promise does not hold in the current case. Any thread. */
void drill_fail(drill *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints the figures and returns the exit status. */
int drill_end(drill *d);

uint64_t drill_seed(const drill *d);

/** A stream of draws (splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", 2014). */
typedef struct drill_draws {
    uint64_t state;
} drill_draws;

/** A stream of draws that depends only on the two numbers. */
drill_draws drill_draws_of(uint64_t seed, uint64_t index);
uint64_t drill_draw(drill_draws *draws);
/** A random number from 0 to `end` - 1. */
int64_t drill_below(drill_draws *draws, int64_t end);
/** True with probability 1 / times. */
bool drill_one_in(drill_draws *draws, int64_t times);

/** Resident memory of the process, in kilobytes. */
long drill_resident(void);

double drill_now(void);

#endif
