/** The attachments of a context (tessera/sys/attachment.h): a list that only grows, so that it is read without a lock. */
#ifndef TSR_BASE_ATTACHMENT_H
#define TSR_BASE_ATTACHMENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <tessera/sys/attachment.h>

typedef struct tsr_attached tsr_attached;

typedef struct tsr_attachments {
    _Atomic(tsr_attached *) first;
    pthread_mutex_t making;
} tsr_attachments;

void tsr_attachments_init(tsr_attachments *attachments);

/** Of the context in which they stand; the newest goes first. */
void tsr_attachments_finish(tsr_attachments *attachments, tsr_context *context);

/** What tsr_context_attachment() says, of the context in which they stand. */
tsr_status tsr_attachments_get(tsr_attachments *attachments, tsr_context *context, const tsr_attachment_kind *kind, void **out);

#endif
