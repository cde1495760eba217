/**
 * What the drills share: options, seeded draws, a watchdog and the line of figures at the end.
 *
 * A drill is a program that tries one promise of the library for as long as it is told to. Case `n` of a drill depends on the seed and on
 * `n` alone, so `--seed S --first N --count 1` repeats it. The last line on standard output is a JSON object:
 *
 *     {"drill": "moves", "promise": "..", "tried": 1000, "held": 1000, "seed": 1, "seconds": 2.5}
 *
 * What does not hold is told on standard error, and the exit status is 1.
 */
#ifndef TESTS_DRILL_H
#define TESTS_DRILL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct drill drill;

/** What a program says of itself. */
typedef struct drill_about {
    const char *name;
    const char *promise;   /**< one sentence of the documentation */
    int64_t cases;         /**< how many are tried where neither --count nor --seconds is given */
    unsigned case_seconds; /**< a case that takes longer hangs: the program says so and ends */
} drill_about;

/** Reads the command line: --seed N, --first N, --count N, --seconds N. There is one drill in a process. */
drill *drill_begin(int argc, char **argv, const drill_about *about);

/** No more cases than these, whatever was asked for: there are no others. */
void drill_limit(drill *d, int64_t cases);

/** Whether there is another case, whose number goes to `*index`. A case that is under way ends here. */
bool drill_next(drill *d, int64_t *index);

/** The current case tries the promise so many times, not once. */
void drill_weigh(drill *d, int64_t tries);

/** The promise does not hold in the current case. Any thread. */
void drill_fail(drill *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints the figures and gives the exit status. */
int drill_end(drill *d);

uint64_t drill_seed(const drill *d);

/** A stream of draws (splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
typedef struct drill_draws {
    uint64_t state;
} drill_draws;

/** Draws that depend on the two numbers alone. */
drill_draws drill_draws_of(uint64_t seed, uint64_t index);
uint64_t drill_draw(drill_draws *draws);
/** 0 to `end` - 1. */
int64_t drill_below(drill_draws *draws, int64_t end);
/** True once in `times`. */
bool drill_one_in(drill_draws *draws, int64_t times);

/** Kilobytes that the process holds in memory now. */
long drill_resident(void);

double drill_now(void);

#endif
