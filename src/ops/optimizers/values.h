/** Values that optimizers record: scalars, casts, and other layouts. */
#ifndef TSR_OPS_OPTIMIZERS_VALUES_H
#define TSR_OPS_OPTIMIZERS_VALUES_H

#include <tessera/program.h>

#include <stdbool.h>

/** The dtype in which a tensor's update is computed; TSR_DTYPE_NONE: there is none. */
tsr_dtype tsr_update_dtype(tsr_dtype dtype);

/** The layout of a tensor without dims on a mesh. */
tsr_status tsr_scalar_layout(const tsr_mesh *mesh, tsr_dtype dtype, tsr_layout **out);

/** A number without dims on the mesh of `like`, of its dtype unless `dtype` says another. */
tsr_value tsr_scalar_constant(tsr_program *program, double number, const tsr_layout *like, tsr_dtype dtype);

/** A value in a dtype; itself if it has it. */
tsr_value tsr_value_cast(tsr_program *program, tsr_value value, tsr_dtype dtype);

/** A value without dims on the mesh of `like`; itself if it is there. */
tsr_value tsr_scalar_on(tsr_program *program, tsr_value value, const tsr_layout *like);

/** A value brought to placements of its mesh, one a mesh dim; itself if it has them. */
tsr_value tsr_value_place(tsr_program *program, tsr_value value, const tsr_placement *placements);

/** A value with Replicate in place of Partial; itself if it has none. */
tsr_value tsr_value_whole(tsr_program *program, tsr_value value);

/** Begins a round, in which what was recorded before is recorded anew instead of shared; returns
 * the round that was, to which the caller goes back at the end. */
int tsr_program_open_round(tsr_program *program);

/** A value that was cast, or multiplied by a number, is so again, in this round, so that it is made
 * where it is read, in one pass with what reads it; any other as it is. */
tsr_value tsr_value_again(tsr_program *program, tsr_value value);

/** What a value was before it was widened, which loses nothing, and, with `scale`, before it was
 * multiplied by a number, which `*scale` gets; the value itself if it was neither. */
tsr_value tsr_value_source(const tsr_program *program, tsr_value value, tsr_value *scale);

/** True if a value has no dims, is Replicate, and is of a class: float, or integer too. */
bool tsr_value_is_scalar(const tsr_program *program, tsr_value value, bool integers);

/** Checks the arguments that calls have in common: an array, and its values, which are floats. If
 * not, the program fails. */
bool tsr_values_hold(tsr_program *program, const char *call, const char *what, size_t count, const tsr_value *values);

#endif
