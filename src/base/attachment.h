/** The attachments of a context (tessera/sys/attachment.h): a list that only grows, so that it is
 * read without a lock.
 */
#ifndef TSR_BASE_ATTACHMENT_H
#define TSR_BASE_ATTACHMENT_H

#include <tessera/sys/attachment.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct tsr_attached tsr_attached;

typedef struct tsr_attachments {
    _Atomic(tsr_attached *) first;
    pthread_mutex_t making;
} tsr_attachments;

void tsr_attachments_init(tsr_attachments *attachments);

/** Destroys all attachments, the newest first. `context` is the context that contains
 * `attachments`. */
void tsr_attachments_finish(tsr_attachments *attachments, tsr_context *context);

/** Does what tsr_context_attachment() says; `context` is the context that contains
 * `attachments`. */
tsr_status tsr_attachments_get(tsr_attachments *attachments, tsr_context *context, const tsr_attachment_kind *kind,
                               void **out);

#endif
