/** Numbers that stand for lengths. */
#ifndef TSR_OPS_PROGRAMS_LENGTHS_H
#define TSR_OPS_PROGRAMS_LENGTHS_H

#include "ops/programs/program.h"

/** The length that a number of a shape or an attribute stands for; -1: the number is itself. */
int tsr_program_length_of(const tsr_program *program, int64_t number);

/** Puts lengths into attributes. Returns which of them, by bits. */
unsigned tsr_program_resolve(size_t length_count, const int64_t *lengths, tsr_attribute *attributes, size_t count);

/** Puts the maxima of a program's lengths into attributes. */
void tsr_program_resolve_largest(const tsr_program *program, tsr_attribute *attributes, size_t count);

#endif
