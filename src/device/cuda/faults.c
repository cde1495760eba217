#include "device/cuda/faults.h"

#include "device/cuda/runtime.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *row, *ids;
} rows[] = {
#define ROW(name, row, ids) [TSR_CUDA_INDEX_##name] = {row, ids},
    TSR_CUDA_INDEXING(ROW)
#undef ROW
};

tsr_status tsr_cuda_faults_create(tsr_cuda_faults *faults)
{
    const size_t bytes = TSR_CUDA_FAULT_STREAMS * sizeof *faults->words;
    void *words;
    TSR_CUDA_TRY(cudaHostAlloc(&words, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
                 "allocating memory for errors of data");
    memset(words, 0, bytes);
    *faults = (tsr_cuda_faults){.words = words};
    return TSR_OK;
}

void tsr_cuda_faults_destroy(tsr_cuda_faults *faults)
{
    if (faults->words)
        (void)cudaFreeHost(faults->words);
    faults->words = NULL;
}

static bool is_default(cudaStream_t stream)
{
    return !stream || stream == cudaStreamLegacy;
}

/* The word of a stream that has one; -1: it has none. */
static int find(const tsr_cuda_faults *faults, cudaStream_t stream)
{
    for (int i = 1; i <= faults->count; i++)
        if (faults->streams[i] == stream)
            return i;
    return -1;
}

/* Words of which all are taken go to streams in turn. */
static int find_or_take(tsr_cuda_faults *faults, cudaStream_t stream)
{
    const int found = find(faults, stream);
    if (found > 0)
        return found;
    const bool is_free = faults->count < TSR_CUDA_FAULT_STREAMS - 1;
    const int taken = 1 + (is_free ? faults->count++ : faults->turn++ % (TSR_CUDA_FAULT_STREAMS - 1));
    faults->turn %= TSR_CUDA_FAULT_STREAMS - 1;
    faults->streams[taken] = stream;
    return taken;
}

tsr_cuda_fault *tsr_cuda_faults_of(tsr_cuda_faults *faults, pthread_mutex_t *mutex, cudaStream_t stream)
{
    if (is_default(stream))
        return &faults->words[0];
    pthread_mutex_lock(mutex);
    tsr_cuda_fault *const word = &faults->words[find_or_take(faults, stream)];
    pthread_mutex_unlock(mutex);
    return word;
}

/* "[2,5]"; nothing for a number. */
static void print_index(const tsr_cuda_fault *fault, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (int dim = 0; dim < fault->ndim && length < capacity; dim++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld%s", dim ? "," : "[",
                                   (long long)fault->index[dim], dim == fault->ndim - 1 ? "]" : "");
}

static tsr_status report(const tsr_cuda_fault *fault)
{
    char index[TSR_CUDA_OP_DIMS * 24];
    print_index(fault, index, sizeof index);
    return tsr_status_set(TSR_ERROR_STATE,
                          "%s: %s%s%s is %lld on rank %d, but must be at least 0 and below %lld; the device found this "
                          "in an earlier call, whose result is not valid",
                          rows[fault->code].row, rows[fault->code].ids, index,
                          fault->is_whole ? "" : " of the rank's shard", (long long)fault->id, fault->rank,
                          (long long)fault->size);
}

/* Several threads may look at the word of one stream: one of them reports it. */
tsr_status tsr_cuda_faults_report(tsr_cuda_faults *faults, pthread_mutex_t *mutex, cudaStream_t stream)
{
    tsr_status status = TSR_OK;
    if (is_default(stream) && !__atomic_load_n(&faults->words[0].is_set, __ATOMIC_ACQUIRE))
        return TSR_OK;
    pthread_mutex_lock(mutex);
    const int at = is_default(stream) ? 0 : find(faults, stream);
    if (at >= 0 && __atomic_load_n(&faults->words[at].is_set, __ATOMIC_ACQUIRE)) {
        status = report(&faults->words[at]);
        __atomic_store_n(&faults->words[at].is_set, 0, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(mutex);
    return status;
}
