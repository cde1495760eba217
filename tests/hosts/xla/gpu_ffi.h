/* Inside of the host of gpu_host.h: its devices, and the table of its FFI. */
#ifndef TSR_TESTS_HOSTS_XLA_GPU_FFI_H
#define TSR_TESTS_HOSTS_XLA_GPU_FFI_H

#include "gpu_host.h"
#include "standin.h"

#include <tessera/sys/device.h>

#include <pthread.h>
#include <xla/ffi/api/collectives_c_api.h>

enum { GPU_CLIQUES = 4 };

/* A communicator of a group of devices, which are named by partition. */
typedef struct gpu_clique {
    int64_t ids[GPU_DEVICES], channel;
    size_t size;
    ncclUniqueId id;
    ncclComm_t comms[GPU_DEVICES]; /* by partition */
} gpu_clique;

typedef struct gpu_host {
    gpu_faults faults;
    const XLA_FFI_Api *api;
    int devices, launch;
    const int64_t *assignment;
    tsr_device_driver *driver;
    const tsr_device_table *table;
    void *self;
    pthread_mutex_t gate; /* of the cliques and counts */
    gpu_clique cliques[GPU_CLIQUES];
    int clique_count, blocks;
    void *states[GPU_SITES]; /* of the call sites */
    int64_t state_type;
} gpu_host;

/* What a call is given: one for each device. */
struct XLA_FFI_InvokeContext {
    gpu_host *host;
    int partition, ordinal, site;
    XLA_FFI_ExecutionStage stage;
    cudaStream_t stream;
};

struct XLA_FFI_Error {
    char text[2048];
};

/* The table, the same for all runs, for the host's faults. */
const XLA_FFI_Api *gpu_ffi_table(const gpu_faults *faults);

/* Frees the states as their type says. */
void gpu_ffi_delete_states(const gpu_host *host);

/* The clique of a group: a new one, or NULL if `makes` is false and there is none. */
gpu_clique *gpu_ffi_clique(gpu_host *host, const int64_t *ids, size_t size, int64_t channel, bool makes);

#endif
