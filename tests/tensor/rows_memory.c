#include "rows_memory.h"

static const tsr_device_table *table_of(const rows_memory *memory, void **self)
{
    return tsr_device_driver_table(memory->device.driver, self);
}

tsr_status rows_memory_take(tsr_device device, size_t bytes, rows_memory *out)
{
    void *self;
    *out = (rows_memory){.device = device, .bytes = bytes};
    return table_of(out, &self)->alloc(self, device.index, bytes, NULL, &out->data);
}

void rows_memory_free(rows_memory *memory)
{
    void *self;
    if (memory->data)
        table_of(memory, &self)->free(self, memory->device.index, memory->data, memory->bytes, NULL);
    memory->data = NULL;
}

static tsr_status copy(const rows_memory *memory, void *to, const void *from, size_t bytes, tsr_copy_kind kind)
{
    void *self;
    const tsr_device_table *const table = table_of(memory, &self);
    const tsr_status status = table->copy(self, memory->device.index, to, from, bytes, kind, NULL);
    return status == TSR_OK && table->stream_synchronize ? table->stream_synchronize(self, memory->device.index, NULL)
                                                         : status;
}

tsr_status rows_memory_put(const rows_memory *memory, const void *from, size_t bytes)
{
    return copy(memory, memory->data, from, bytes, TSR_COPY_FROM_HOST);
}

tsr_status rows_memory_get(const rows_memory *memory, void *to, size_t bytes)
{
    return copy(memory, to, memory->data, bytes, TSR_COPY_TO_HOST);
}
