/** The module's functions of layouts. */
#ifndef TSR_HOSTS_TVM_LAYOUTS_H
#define TSR_HOSTS_TVM_LAYOUTS_H

#include "hosts/tvm/call.h"

/** layout(mesh, shape, dtype, text, format="tessera") -> tessera.Layout */
tsr_status tsr_tvm_layout(tsr_tvm_call *call);

/** print_layout(layout, format="tessera") -> str */
tsr_status tsr_tvm_print_layout(tsr_tvm_call *call);

/** local_shape(layout, rank) -> Shape */
tsr_status tsr_tvm_local_shape(tsr_tvm_call *call);

/** local_offset(layout, rank) -> Shape */
tsr_status tsr_tvm_local_offset(tsr_tvm_call *call);

#endif
