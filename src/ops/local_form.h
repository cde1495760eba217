/** What a plan of a layer expects of a local tensor, and what it makes room for. */
#ifndef TSR_OPS_LOCAL_FORM_H
#define TSR_OPS_LOCAL_FORM_H

#include <stdbool.h>
#include <tessera/layout.h>

/** What this rank brings for one operand, or gets as a result: zeroed, it stands for none. */
typedef struct tsr_local_form {
    tsr_layout *layout; /**< a reference; NULL for none */
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
} tsr_local_form;

/** Takes the reference over, on failure too. */
tsr_status tsr_local_form_take(tsr_layout *layout, tsr_local_form *out);

/** Retains `layout`, which may be NULL. */
tsr_status tsr_local_form_retain(const tsr_layout *layout, tsr_local_form *out);

void tsr_local_form_release(tsr_local_form *form);

/** A contiguous tensor of the form. */
tsr_tensor tsr_local_form_tensor(const tsr_local_form *form, void *data, tsr_device device);

/** Its bytes in a workspace, as a multiple of what parts are aligned to. */
size_t tsr_local_form_bytes(const tsr_local_form *form);

/** TSR_ERROR_ARGUMENT, in the words of `caller` about tensor `name`: it is not of the form, or not on `device`. */
tsr_status tsr_local_form_check(const tsr_local_form *form, const char *caller, const char *name, const tsr_tensor *tensor,
                                tsr_device device);

/** tsr_local_form_check() for a tensor that is written: its elements must not share memory either. */
tsr_status tsr_local_form_check_result(const tsr_local_form *form, const char *caller, const char *name, const tsr_tensor *tensor,
                                       tsr_device device);

#endif
