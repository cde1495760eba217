/* The devices of the library: each is a share of this machine's processors, with memory of its own
 * beside them. They are made once, when ggml loads the library, and stay until the process ends, as
 * ggml's interface wants it. */
#ifndef TSR_HOSTS_GGML_DEVICE_H
#define TSR_HOSTS_GGML_DEVICE_H

#include "hosts/ggml/places.h"

#include <ggml-backend-impl.h>

typedef struct tsr_ggml_device {
    struct ggml_backend_device device;
    struct ggml_backend_buffer_type buffers; /* the type of buffers in the device's memory */
    tsr_ggml_place place;
    int count; /* how many devices share the machine */
    char name[16];
    char description[64];
} tsr_ggml_device;

/* Fills in device `index` of `count`. */
void tsr_ggml_device_init(tsr_ggml_device *device, ggml_backend_reg_t registry, int index, int count,
                          const tsr_ggml_place *place);

#endif
