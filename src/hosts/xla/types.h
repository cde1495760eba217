/* Types of user data that XLA knows this library's objects by.
 *
 * Their ids are facts of an XLA, of which a process may hold several: each is told by its API. They
 * are the only state of this library that outlives a call without an owner (ADR 70). */
#ifndef TSR_HOSTS_XLA_TYPES_H
#define TSR_HOSTS_XLA_TYPES_H

#include "ffi.h"

/* The ids of an XLA's types. */
typedef struct tsr_xla_types {
    XLA_FFI_TypeId state; /* of a call site: a tsr_xla_call */
    XLA_FFI_TypeId lent;  /* of a tsr_xla_lent */
} tsr_xla_types;

/* The ids in the XLA of `api`. The first call registers the types; `deleter` frees a state. */
tsr_status tsr_xla_types_find(const XLA_FFI_Api *api, void (*deleter)(void *state), tsr_xla_types *out);

#endif
