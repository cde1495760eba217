/** Errors of data, such as ids out of range, which kernels find. The host's next call on the same
 * stream reports them. */
#ifndef TSR_DEVICE_CUDA_FAULTS_H
#define TSR_DEVICE_CUDA_FAULTS_H

#include "device/cuda/ops/work.h"

#include <tessera/sys/status.h>

#include <cuda_runtime_api.h>
#include <pthread.h>

/** Streams of a device with a word of their own, its default stream first. Those beyond take turns
 * with the words of others, and may report an error of those. */
#define TSR_CUDA_FAULT_STREAMS 64

/** The words of a device. */
typedef struct tsr_cuda_faults {
    tsr_cuda_fault *words;                        /**< memory of the host that the device reaches */
    cudaStream_t streams[TSR_CUDA_FAULT_STREAMS]; /**< whose words they are */
    int count;                                    /**< of words that are taken, without that of the default stream */
    int turn;                                     /**< of the word that is taken over next, once all are taken */
} tsr_cuda_faults;

/** Makes the words of the thread's device. */
tsr_status tsr_cuda_faults_create(tsr_cuda_faults *faults);

/** Frees the words, if there are any. */
void tsr_cuda_faults_destroy(tsr_cuda_faults *faults);

/** The word that kernels on `stream` write. `mutex` is held while it is looked for. */
tsr_cuda_fault *tsr_cuda_faults_of(tsr_cuda_faults *faults, pthread_mutex_t *mutex, cudaStream_t stream);

/** TSR_ERROR_STATE, with a sentence, if kernels on `stream` that have run found an error that was
 * not reported yet; the word is then clear. Waits for nothing. */
tsr_status tsr_cuda_faults_report(tsr_cuda_faults *faults, pthread_mutex_t *mutex, cudaStream_t stream);

#endif
