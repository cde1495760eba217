/**
 * @file
 * The status that every call that can fail returns, and the sentence that goes with it.
 *
 * A call writes its outputs only when it returns TSR_OK. The status says whose fault it is; the
 * sentence names the argument, its value and what would work. The nearest relatives are
 * ncclResult_t with ncclGetLastError(), and MPI's error classes.
 */
#ifndef TESSERA_STATUS_H
#define TESSERA_STATUS_H

#include <tessera/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Whose fault it is. */
typedef enum tsr_status {
    TSR_OK = 0,
    TSR_ERROR_ARGUMENT,    /**< the caller's fault: a value out of range, a mismatch, text that
                                does not parse; or ranks disagree */
    TSR_ERROR_UNSUPPORTED, /**< understood, but this build, device or engine cannot do it */
    TSR_ERROR_UNAVAILABLE, /**< something that the call needs is not on this machine */
    TSR_ERROR_MEMORY,      /**< an allocation failed */
    TSR_ERROR_PEER,        /**< another rank failed, was lost, has returned, or timed out */
    TSR_ERROR_DEVICE,      /**< a device or its driver reported an error */
    TSR_ERROR_STATE,       /**< the object is not in a state that allows this call */
    TSR_ERROR_IO,          /**< a file could not be read or written */
    TSR_ERROR_INTERNAL     /**< a defect of the library */
} tsr_status;

/** The status' name without its prefix, in lower case: "ok", "argument", .. Static text; any
 * thread. */
TSR_API const char *tsr_status_name(tsr_status status);

/** The sentence of this thread's last failed call; "" if no call has failed yet. It stays valid
 * until the thread's next failing call. Success does not clear it, so read it only right after a
 * call that did not return TSR_OK. */
TSR_API const char *tsr_status_message(void);

#ifdef __cplusplus
}
#endif

#endif
