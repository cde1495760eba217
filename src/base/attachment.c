#include "base/attachment.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

struct tsr_attached {
    tsr_attached *next;
    const tsr_attachment_kind *kind;
    void *made;
};

void tsr_attachments_init(tsr_attachments *attachments)
{
    atomic_init(&attachments->first, NULL);
    pthread_mutex_init(&attachments->making, NULL);
}

void tsr_attachments_finish(tsr_attachments *attachments, tsr_context *context)
{
    for (tsr_attached *at = atomic_load(&attachments->first), *next; at; at = next) {
        next = at->next;
        at->kind->destroy(context, at->made);
        tsr_release(context, at);
    }
    pthread_mutex_destroy(&attachments->making);
}

static tsr_attached *find_attached(tsr_attachments *attachments, const tsr_attachment_kind *kind)
{
    tsr_attached *at = atomic_load_explicit(&attachments->first, memory_order_acquire);
    while (at && at->kind != kind)
        at = at->next;
    return at;
}

/* The caller holds the lock `making`. */
static tsr_status make_attached(tsr_attachments *attachments, tsr_context *context, const tsr_attachment_kind *kind)
{
    void *memory;
    TSR_TRY(tsr_allocate(context, sizeof(tsr_attached), &memory));
    tsr_attached *attached = memory;
    *attached = (tsr_attached){.next = atomic_load(&attachments->first), .kind = kind};
    const tsr_status status = kind->make(context, &attached->made);
    if (status == TSR_OK)
        atomic_store_explicit(&attachments->first, attached, memory_order_release);
    else
        tsr_release(context, attached);
    return status;
}

tsr_status tsr_attachments_get(tsr_attachments *attachments, tsr_context *context, const tsr_attachment_kind *kind,
                               void **out)
{
    tsr_status status = TSR_OK;
    if (!find_attached(attachments, kind)) {
        pthread_mutex_lock(&attachments->making);
        if (!find_attached(attachments, kind))
            status = make_attached(attachments, context, kind);
        pthread_mutex_unlock(&attachments->making);
    }
    if (status == TSR_OK)
        *out = find_attached(attachments, kind)->made;
    return status;
}
