/** What ranks exchange inside an op: along which mesh dims they meet, and the size of records. */
#ifndef TSR_OPS_ROWS_EXCHANGE_BYTES_H
#define TSR_OPS_ROWS_EXCHANGE_BYTES_H

#include "ops/rows/row.h"

/** Bytes to which records are aligned; as many go behind each. */
#define TSR_RECORD_ALIGNMENT 64

/** The mesh dims, by bits and out of `exchanged`, along which ranks meet after a stage. */
unsigned tsr_op_met(const tsr_op_case *c, int stage, unsigned exchanged);

/** Bytes from one record of `call->stage` to the next, with what goes behind each. */
int64_t tsr_op_record_stride(const tsr_op *op, const tsr_kernel_call *call);

#endif
