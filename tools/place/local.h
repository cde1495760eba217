/** A rank's local tensor in the memory of its place, and the way between there and the host. */
#ifndef TESSERA_TOOLS_PLACE_LOCAL_H
#define TESSERA_TOOLS_PLACE_LOCAL_H

#include "place/place.h"

typedef struct local {
    const place *place;
    tsr_comm *comm;
    tsr_tensor tensor; /**< contiguous; of 0 elements for a rank outside the mesh */
    size_t bytes;
} local;

/** Collective: uninitialised memory for what `layout` gives this rank. To be freed before `comm` goes; a zeroed one is fine. */
tsr_status local_create(const place *p, tsr_comm *comm, const tsr_layout *layout, local *out);
void local_free(local *l);

/** Host memory for the elements, which is the tensor's own on the host; given back with local_unstage(). */
tsr_status local_stage(const local *l, void **out);
void local_unstage(const local *l, void *staged);

/** From the staged memory to the tensor, and the other way; done on return. */
tsr_status local_push(const local *l, const void *staged);
tsr_status local_pull(const local *l, void *staged);

/** Every byte. */
tsr_status local_set(const local *l, unsigned char byte);

/** Writes a host tensor of the same shape, whatever its strides. */
tsr_status local_write(const local *l, const tsr_tensor *host);

#endif
