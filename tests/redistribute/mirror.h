/** The memory of a case on a device: as large as what it mirrors on the host, whose bytes, watched ones too, go there and come back. */
#ifndef TESTS_REDISTRIBUTE_MIRROR_H
#define TESTS_REDISTRIBUTE_MIRROR_H

#include "sweep.h"

typedef struct mirror {
    const sweep_device *device; /**< NULL: the host's own memory is used */
    int rank;
    unsigned char *host;
    size_t bytes;
    void *memory;
} mirror;

/** TSR_ERROR_MEMORY or the like leave it as the host's. */
tsr_status mirror_create(const sweep_device *device, int rank, unsigned char *host, size_t bytes, mirror *out);
void mirror_destroy(mirror *m);

/** The view, which points into the host's bytes, of the mirror's. */
tsr_tensor mirror_view(const mirror *m, tsr_tensor view);

/** In the stream's order; fetching waits for it. */
tsr_status mirror_send(const mirror *m);
tsr_status mirror_fetch(const mirror *m);

/** The device and stream of a rank. */
tsr_device mirror_device(const sweep_device *device, int rank);
tsr_stream mirror_stream(const sweep_device *device, int rank);

#endif
