/** The form of a local tensor that a layer's plan expects or makes room for. */
#ifndef TSR_OPS_LOCAL_FORM_H
#define TSR_OPS_LOCAL_FORM_H

#include <tessera/dtensor.h>

#include <stdbool.h>

/** Layout and shape of this rank's local tensor of one operand or result; all zero: the plan does
 * not have it. */
typedef struct tsr_local_form {
    tsr_layout *layout; /**< one reference; NULL: the plan does not have this tensor */
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
} tsr_local_form;

/** Fills in a form; takes over the caller's reference to `layout`, also on failure. */
tsr_status tsr_local_form_take(tsr_layout *layout, tsr_local_form *out);

/** Fills in a form and retains `layout`; for NULL the form stays as it is. */
tsr_status tsr_local_form_retain(const tsr_layout *layout, tsr_local_form *out);

/** Drops the form's reference. */
void tsr_local_form_release(tsr_local_form *form);

/** A contiguous tensor of the form at `data` on `device`. */
tsr_tensor tsr_local_form_tensor(const tsr_local_form *form, void *data, tsr_device device);

/** A dtensor over `memory` on `device`, which is borrowed and has tsr_local_form_bytes(). `inside`:
 * this rank is in the mesh. The caller destroys it. */
tsr_status tsr_local_form_borrow(const tsr_local_form *form, bool inside, void *memory, tsr_device device,
                                 tsr_dtensor **out);

/** The bytes of a contiguous tensor of the form in a workspace: a multiple of 64. */
size_t tsr_local_form_bytes(const tsr_local_form *form);

/** TSR_ERROR_ARGUMENT, in a sentence that begins with `caller`: `tensor`, called `name`, does not
 * have the form, or is not on `device`. A form without a layout wants NULL. */
tsr_status tsr_local_form_check(const tsr_local_form *form, const char *caller, const char *name,
                                const tsr_tensor *tensor, tsr_device device);

/** tsr_local_form_check() for a tensor that is written: nor may its elements share memory. */
tsr_status tsr_local_form_check_result(const tsr_local_form *form, const char *caller, const char *name,
                                       const tsr_tensor *tensor, tsr_device device);

#endif
