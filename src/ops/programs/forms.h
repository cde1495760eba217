/** Layouts that values of an executable share. */
#ifndef TSR_OPS_PROGRAMS_FORMS_H
#define TSR_OPS_PROGRAMS_FORMS_H

#include "ops/programs/executable.h"

/** Finds or adds a form: sizes are those of `layout` where all lengths are at their maxima, and
 * `factor` says how each depends on lengths. */
tsr_status tsr_executable_add_form(tsr_executable *x, const tsr_layout *layout,
                                   const int64_t factor[TSR_MAX_DIMS][TSR_LENGTHS], int *out);

/** Gives forms the sizes of the lengths of now: those that depend on length `at`; -1: all. What was
 * before stays, also after a failure, until tsr_executable_settle_forms(). */
tsr_status tsr_executable_update_forms(tsr_executable *x, int at);

/** Frees the layouts of the lengths before; with `back` those of the lengths after, so that forms
 * are as they were. */
void tsr_executable_settle_forms(tsr_executable *x, bool back);

/** `*alike` is true if each rank has the same elements by both layouts of a tensor, and terms of
 * one kind, whatever cuts are called: a move from one to the other changes nothing. */
tsr_status tsr_program_compare(const tsr_layout *a, const tsr_layout *b, bool *alike);

#endif
