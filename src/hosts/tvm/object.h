/** Objects of the module as TVM-FFI's objects, which hosts count references of. */
#ifndef TSR_HOSTS_TVM_OBJECT_H
#define TSR_HOSTS_TVM_OBJECT_H

#include "hosts/tvm/call.h"

/** Types of objects, by their keys in TVM-FFI. */
#define TSR_TVM_LAYOUT "tessera.Layout"
#define TSR_TVM_PLAN   "tessera.Plan"
#define TSR_TVM_RANKS  "tessera.Ranks"
#define TSR_TVM_MOVE   "tessera.Move"

/** Returns `content` as an object of type `key`, whose last reference calls `destroy`; so does a
 * failure. */
tsr_status tsr_tvm_return_object(tsr_tvm_call *call, const char *key, void *content, void (*destroy)(void *content));

/** The content of argument `index`, borrowed by the call; a TypeError unless its type is `key`. */
tsr_status tsr_tvm_object(tsr_tvm_call *call, int32_t index, const char *what, const char *key, void **content);

#endif
