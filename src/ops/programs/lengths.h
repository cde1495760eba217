/** Numbers that stand for what runs give: lengths and keys. */
#ifndef TSR_OPS_PROGRAMS_LENGTHS_H
#define TSR_OPS_PROGRAMS_LENGTHS_H

#include "ops/programs/program.h"

/** The length that a number of a shape or an attribute stands for; -1: the number is itself. */
int tsr_program_length_of(const tsr_program *program, int64_t number);

/** Puts lengths into attributes, and zeros in place of a key that runs give. Returns which lengths,
 * by bits. */
unsigned tsr_program_resolve(size_t length_count, const int64_t *lengths, tsr_attribute *attributes, size_t count);

/** Puts the maxima of a program's lengths into attributes, and zeros in place of a key that runs
 * give. */
void tsr_program_resolve_largest(const tsr_program *program, tsr_attribute *attributes, size_t count);

/** Checks that a key that stands for one that runs give is of the program. */
tsr_status tsr_program_check_key(const tsr_program *program, const char *caller, const tsr_attribute *attributes);

/** Which of the program's keys a run puts into attributes; -1: none. */
int tsr_program_key_of(const tsr_attribute *attributes);

/** Puts the key of a run into attributes for which tsr_program_key_of() is not -1. */
void tsr_program_resolve_key(tsr_random_key key, tsr_attribute *attributes);

#endif
