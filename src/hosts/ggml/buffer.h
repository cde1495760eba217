/* Memory of a device: pages of the host, on the device's NUMA node. */
#ifndef TSR_HOSTS_GGML_BUFFER_H
#define TSR_HOSTS_GGML_BUFFER_H

#include "hosts/ggml/device.h"

/* Fills in the type of buffers of a device. ggml must not take them for the host's own (is_host):
 * a meta device over such buffers would be taken for one, whose addresses it has not. */
void tsr_ggml_buffer_type_init(struct ggml_backend_buffer_type *type, tsr_ggml_device *device);

/* True if a thread of the host can read and write the tensor's elements by its address. */
bool tsr_ggml_tensor_is_near(const struct ggml_tensor *tensor);

#endif
