/**
 * @file
 * Attachments: what a library on top of this one keeps with a context, such as libraries that it
 * opened.
 */
#ifndef TESSERA_SYS_ATTACHMENT_H
#define TESSERA_SYS_ATTACHMENT_H

#include <tessera/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A kind of attachment: a static object, identified by its address. */
typedef struct tsr_attachment_kind {
    /** Makes the attachment in `*out`. It takes no reference to `context`, whose last reference
     * would then never go, and asks for no attachment itself. */
    tsr_status (*make)(tsr_context *context, void **out);
    /** Called when the context's last reference goes. */
    void (*destroy)(tsr_context *context, void *made);
} tsr_attachment_kind;

/** The kind's attachment to this context, in `*out`; borrowed from the context. The first call
 * makes it, while others wait; later calls take no lock. If `make` fails, its status is returned,
 * and the next call tries again. `context` is not NULL. Any thread. */
TSR_API tsr_status tsr_context_attachment(tsr_context *context, const tsr_attachment_kind *kind,
                                          void **out);

#ifdef __cplusplus
}
#endif

#endif
