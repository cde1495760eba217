/** The conformance suite of devices that is the same on the host: its parts, by name. */
#ifndef TESTS_DEVICE_PARTS_H
#define TESTS_DEVICE_PARTS_H

/** A part of the suite, which returns the number of tests that failed. The last row of a list has
 * no name. */
typedef struct device_part {
    const char *name;
    int (*run)(void);
} device_part;

/** The part of `parts` with this name; NULL if there is none. */
const device_part *device_find_part(const device_part *parts, const char *name);

/** Each runs the tests of one file over the tables of list_variants(). */
int device_convert(void);
int device_copy(void);
int device_fill(void);
int device_reduce(void);

#endif
