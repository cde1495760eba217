/* ggml's own CPU backend, which computes for ours. It is found in ggml's registry, not linked, as
 * builds of ggml may load it at run time. */
#ifndef TSR_HOSTS_GGML_CPU_H
#define TSR_HOSTS_GGML_CPU_H

#include <ggml-backend-impl.h>

/* What the CPU backend hands out by name. */
typedef struct tsr_ggml_cpu {
    struct ggml_threadpool *(*new_pool)(struct ggml_threadpool_params *params);
    void (*free_pool)(struct ggml_threadpool *pool);
    void (*set_pool)(ggml_backend_t backend, struct ggml_threadpool *pool);
    ggml_backend_set_n_threads_t set_threads;
    ggml_backend_set_abort_callback_t set_abort;
} tsr_ggml_cpu;

/* The CPU device. NULL: ggml has not loaded it. */
ggml_backend_dev_t tsr_ggml_cpu_device(void);

/* Finds the functions. False: ggml has not loaded its CPU backend, or that lacks one of them. */
bool tsr_ggml_cpu_find(tsr_ggml_cpu *out);

#endif
