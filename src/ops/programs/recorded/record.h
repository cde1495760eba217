/** Adds nodes to a program. */
#ifndef TSR_OPS_PROGRAMS_RECORDED_RECORD_H
#define TSR_OPS_PROGRAMS_RECORDED_RECORD_H

#include "ops/programs/program.h"

/** Records an op, and the redistributions of operands that the policy puts in. `results` has room
 * for TSR_OP_MOST_RESULTS. */
tsr_status tsr_program_record(tsr_program *program, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_value *operands, tsr_value *results);

/** tsr_program_record() of operands that fit as they are: nothing is put in, and of a state the
 * given value is read. The op is not one that moves. */
tsr_status tsr_program_record_fitting(tsr_program *program, const tsr_op *op, size_t count,
                                      const tsr_attribute *attributes, const tsr_value *operands, tsr_value *results);

/** What a move is for. */
typedef struct tsr_move_reason {
    bool chosen; /**< the policy put it in */
    int cause;   /**< the node for which it did; -1: an output, or the program wrote the move */
} tsr_move_reason;

/** Records a redistribution; the value itself where it has the layout already. */
tsr_status tsr_program_move(tsr_program *program, tsr_value value, const tsr_layout *layout, tsr_move_reason reason,
                            tsr_value *out);

/** tsr_program_move(), if the policy allows it or the move changes nothing; `what` is the value's
 * name in the error. */
tsr_status tsr_program_bring(tsr_program *program, const char *what, tsr_value value, const tsr_layout *layout,
                             tsr_value *out);

/** A value as the last store leaves it; itself where it is no state. */
tsr_value tsr_program_now(const tsr_program *program, tsr_value value);

#endif
