/* Calls that are linear layers or their gradients. */
#ifndef TSR_HOSTS_XLA_LAYERS_H
#define TSR_HOSTS_XLA_LAYERS_H

#include "work.h"

/* Collective over the work's communicator: plans the layer. */
tsr_status tsr_xla_layer_prepare(tsr_xla_work *work, tsr_xla_kind kind, const tsr_xla_attributes *attributes,
                                 const XLA_FFI_CallFrame *frame);

/* Collective: runs the layer on the work's tensors. */
tsr_status tsr_xla_layer_execute(const tsr_xla_work *work);

#endif
