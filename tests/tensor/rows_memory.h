/** Memory of a device that a rank fills and reads by the device's table, on its default stream. */
#ifndef TESTS_TENSOR_ROWS_MEMORY_H
#define TESTS_TENSOR_ROWS_MEMORY_H

#include <tessera/sys/device.h>

typedef struct rows_memory {
    tsr_device device;
    void *data; /**< NULL: there is none */
    size_t bytes;
} rows_memory;

tsr_status rows_memory_take(tsr_device device, size_t bytes, rows_memory *out);
void rows_memory_free(rows_memory *memory);

/** Copy `bytes` bytes to the begin of the memory, and from there, and wait. */
tsr_status rows_memory_put(const rows_memory *memory, const void *from, size_t bytes);
tsr_status rows_memory_get(const rows_memory *memory, void *to, size_t bytes);

#endif
