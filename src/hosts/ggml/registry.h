/* What ggml_backend_load() asks of the library. */
#ifndef TSR_HOSTS_GGML_REGISTRY_H
#define TSR_HOSTS_GGML_REGISTRY_H

#include <ggml-backend-impl.h>

/* The library's devices, the same at each call. NULL: TSR_GGML_DEVICES is not a number of devices,
 * which the log says. */
ggml_backend_reg_t tsr_ggml_registry(void);

#endif
