/** A copy of a case's host memory on a device, guard bytes included, sent there before a move and
 * fetched back after it. */
#ifndef TESTS_REDISTRIBUTE_MIRROR_H
#define TESTS_REDISTRIBUTE_MIRROR_H

#include "sweep.h"

typedef struct mirror {
    const sweep_device *device; /**< NULL: the host memory itself is used */
    int rank;
    unsigned char *host;
    size_t bytes;
    void *memory;
} mirror;

/** Makes a mirror of `host`; after an error it is the host memory itself. */
tsr_status mirror_create(const sweep_device *device, int rank, unsigned char *host, size_t bytes, mirror *out);
void mirror_destroy(mirror *m);

/** A tensor in the mirror for `view`, a tensor in the host memory. */
tsr_tensor mirror_view(const mirror *m, tsr_tensor view);

/** Copy to the device and back, in the order of the stream; mirror_fetch() waits for it. */
tsr_status mirror_send(const mirror *m);
tsr_status mirror_fetch(const mirror *m);

/** The device and stream of a rank. */
tsr_device mirror_device(const sweep_device *device, int rank);
tsr_stream mirror_stream(const sweep_device *device, int rank);

#endif
