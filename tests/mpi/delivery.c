#include "delivery.h"

#include "comm_suite.h"

#include <stdlib.h>

static unsigned char byte_of(int from, int to, size_t index)
{
    return (unsigned char)(index * 31 + (size_t)from * 7 + (size_t)to * 3);
}

tsr_status deliver(tsr_comm *comm, void *arg)
{
    const delivery *d = arg;
    const int rank = tsr_comm_rank(comm), next = (rank + 1) % tsr_comm_size(comm),
              previous = (rank + tsr_comm_size(comm) - 1) % tsr_comm_size(comm);
    const size_t sizes[] = {d->bytes, 1, 64};
    unsigned char *memory = malloc(2 * (d->bytes + 65));
    CHECK(memory);
    unsigned char *out = memory, *in = memory + d->bytes + 65;
    for (size_t i = 0; i < d->bytes + 65; i++)
        out[i] = byte_of(rank, next, i);
    tsr_message sends[3], receives[3];
    for (size_t i = 0, at = 0; i < 3; at += sizes[i++]) {
        sends[i] = (tsr_message){next, out + at, sizes[i]};
        receives[i] = (tsr_message){previous, in + at, sizes[i]};
    }
    tsr_status status = TSR_OK;
    for (int round = 0; round < d->rounds && status == TSR_OK; round++) {
        memset(in, 0, d->bytes + 65);
        status = tsr_comm_exchange(comm, sends, 3, receives, 3, tsr_device_host(), NULL);
        for (size_t i = 0; i < d->bytes + 65 && status == TSR_OK; i++)
            if (in[i] != byte_of(previous, rank, i))
                status = tsr_status_set(TSR_ERROR_INTERNAL, "byte %zu of %zu came wrong", i, d->bytes);
    }
    free(memory);
    return status;
}
