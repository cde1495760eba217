/* Calls that are moves: redistributions as their attributes say them, and collectives, each of
 * which is a redistribution between two layouts of the operand in another shape. */
#ifndef TSR_HOSTS_XLA_MOVES_H
#define TSR_HOSTS_XLA_MOVES_H

#include "work.h"

/* Which mesh dims the text names ("" or NULL: all): true in `in` for each. */
tsr_status tsr_xla_dims(const tsr_mesh *mesh, const char *text, bool *in);

/* The reduction with a name; NULL: sum. */
tsr_status tsr_xla_op(const char *name, tsr_reduce_op *op);

/* The placements that a text gives, one for each dim of `mesh`. Sizes and blocks go to memory of
 * `context` at `*numbers`, which the caller releases. */
tsr_status tsr_xla_placements(tsr_context *context, const tsr_mesh *mesh, const char *name, const char *text,
                              tsr_placement *out, void **numbers);

/* The layout of which the buffer is a rank's part: `shape` is the global shape, or without values
 * the buffer's, with each dim times the number of parts. */
tsr_status tsr_xla_layout(const tsr_mesh *mesh, const XLA_FFI_Buffer *buffer, const tsr_placement *placements,
                          const tsr_xla_numbers *shape, const char *name, tsr_layout **out);

/* Collective over the work's communicator: plans and prepares the move. */
tsr_status tsr_xla_move_prepare(tsr_xla_work *work, tsr_xla_kind kind, const tsr_xla_attributes *attributes,
                                const XLA_FFI_CallFrame *frame);

/* Collective: moves the operands to the results. */
tsr_status tsr_xla_move_execute(const tsr_xla_work *work);

#endif
