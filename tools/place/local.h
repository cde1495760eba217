/** A rank's local tensor in memory of its device, and copies between there and the host. */
#ifndef TESSERA_TOOLS_PLACE_LOCAL_H
#define TESSERA_TOOLS_PLACE_LOCAL_H

#include "place/place.h"

typedef struct local {
    const place *place;
    tsr_comm *comm;
    tsr_tensor tensor; /**< contiguous; of 0 elements for a rank outside the mesh */
    size_t bytes;
} local;

/** Collective: makes the local tensor of `layout` on this rank, of uninitialised memory. Free it
 * before `comm` goes. */
tsr_status local_create(const place *p, tsr_comm *comm, const tsr_layout *layout, local *out);

/** Frees the memory; a zeroed local is fine. */
void local_free(local *l);

/** Host memory of the tensor's size: on the host the tensor's own memory, else a new buffer.
 * local_unstage() frees it. */
tsr_status local_stage(const local *l, void **out);
void local_unstage(const local *l, void *staged);

/** Copies staged memory to the tensor (push) or back (pull); complete on return. Nothing to do on
 * the host. */
tsr_status local_push(const local *l, const void *staged);
tsr_status local_pull(const local *l, void *staged);

/** Sets every byte of the tensor. */
tsr_status local_set(const local *l, unsigned char byte);

/** Copies a host tensor of the same shape and dtype, with any strides, to the tensor. */
tsr_status local_write(const local *l, const tsr_tensor *host);

#endif
