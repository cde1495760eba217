/**
 * @file
 * What a library on top of this one keeps with a context, such as libraries that it has opened.
 */
#ifndef TESSERA_SYS_ATTACHMENT_H
#define TESSERA_SYS_ATTACHMENT_H

#include <tessera/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A kind of attachment: static, and known by its address. */
typedef struct tsr_attachment_kind {
    /** Makes what is kept, in `*out`; takes no reference to `context`, which goes first otherwise,
     * and asks for no attachment. */
    tsr_status (*make)(tsr_context *context, void **out);
    /** when the context's last reference goes */
    void (*destroy)(tsr_context *context, void *made);
} tsr_attachment_kind;

/** What the kind has made for this context, in `*out`: made by the first call, while others wait,
 * and borrowed from the context. Any thread; takes no lock once it is there. `context` is not NULL.
 * The status of `make` where that fails; the next call tries again. */
TSR_API tsr_status tsr_context_attachment(tsr_context *context, const tsr_attachment_kind *kind,
                                          void **out);

#ifdef __cplusplus
}
#endif

#endif
