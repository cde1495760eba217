/* XLA's side of a call: its header under one set of names, errors, dtypes and types of user data.
 *
 * The header is that of API 0.3 or 0.5, which renamed a few structs. Entries of the host's table
 * are used only where the host has them. */
#ifndef TSR_HOSTS_XLA_FFI_H
#define TSR_HOSTS_XLA_FFI_H

#include <tessera/dtype.h>

#include <stdbool.h>
#include <stdint.h>
#include <xla/ffi/api/c_api.h>

#if XLA_FFI_API_MINOR >= 5
#define XLA_FFI_Extension_Base                        XLA_FFI_InternalExtension
#define XLA_FFI_ExecutionContext_Get_Args             XLA_FFI_InvokeContext_Get_Args
#define XLA_FFI_ExecutionContext_Get_Args_STRUCT_SIZE XLA_FFI_InvokeContext_Get_Args_STRUCT_SIZE
#define XLA_FFI_ExecutionContext_Get                  XLA_FFI_InvokeContext_Get
#endif

/* The error for `status` with this thread's sentence behind "NAME on device D (rank R): " or, with
 * `device` -1, "NAME: ". NULL for TSR_OK. */
XLA_FFI_Error *tsr_xla_error(const XLA_FFI_Api *api, const char *name, int64_t device, int64_t rank, tsr_status status);

/* Makes the sentence of an error of XLA's this thread's last one, and destroys the error. */
tsr_status tsr_xla_pass_on(const XLA_FFI_Api *api, const char *what, XLA_FFI_Error *error);

/* Answers XLA's question for a handler's metadata, if the frame asks it: true. `state` is the type
 * of the handler's state. */
bool tsr_xla_tells_metadata(XLA_FFI_CallFrame *frame, XLA_FFI_TypeId state);

/* Which run this is, and the ordinal of the device that calls. */
tsr_status tsr_xla_whereabouts(XLA_FFI_CallFrame *frame, int64_t *run, int64_t *device);

/* Gives the call site a state of type `type`, at the stage INSTANTIATE; and finds it at EXECUTE. */
tsr_status tsr_xla_state_set(const XLA_FFI_CallFrame *frame, XLA_FFI_TypeId type, void *state);
tsr_status tsr_xla_state_get(const XLA_FFI_CallFrame *frame, XLA_FFI_TypeId type, void **state);

/* TSR_DTYPE_NONE for a type that Tessera does not have. */
tsr_dtype tsr_xla_dtype(XLA_FFI_DataType type);

#endif
