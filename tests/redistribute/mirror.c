#include "mirror.h"

#include <string.h>

tsr_device mirror_device(const sweep_device *device, int rank)
{
    return device ? (tsr_device){device->driver, rank % device->devices} : tsr_device_host();
}

tsr_stream mirror_stream(const sweep_device *device, int rank)
{
    return device ? device->streams[rank] : NULL;
}

tsr_status mirror_create(const sweep_device *device, int rank, unsigned char *host, size_t bytes, mirror *out)
{
    void *self;
    *out = (mirror){NULL, rank, host, bytes, host};
    if (!device || !host)
        return TSR_OK;
    if (!device->driver) {
        out->memory = device->take(bytes);
        out->device = device;
        return out->memory ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "there are no %zu bytes", bytes);
    }
    const tsr_device_table *table = tsr_device_driver_table(device->driver, &self);
    void *memory = NULL;
    TSR_TRY(table->alloc(self, rank % device->devices, bytes, device->streams[rank], &memory));
    out->device = device;
    out->memory = memory;
    return TSR_OK;
}

void mirror_destroy(mirror *m)
{
    void *self;
    if (!m->device)
        return;
    if (!m->device->driver) {
        m->device->give_back(m->memory, m->bytes);
        return;
    }
    const tsr_device_table *table = tsr_device_driver_table(m->device->driver, &self);
    table->free(self, m->rank % m->device->devices, m->memory, m->bytes, m->device->streams[m->rank]);
}

tsr_tensor mirror_view(const mirror *m, tsr_tensor view)
{
    view.device = mirror_device(m->device, m->rank);
    if (view.data)
        view.data = (unsigned char *)m->memory + ((unsigned char *)view.data - m->host);
    return view;
}

static tsr_status carry(const mirror *m, void *dst, const void *src, tsr_copy_kind kind)
{
    void *self;
    if (!m->device->driver) {
        memcpy(dst, src, m->bytes);
        return TSR_OK;
    }
    const tsr_device_table *table = tsr_device_driver_table(m->device->driver, &self);
    return table->copy(self, m->rank % m->device->devices, dst, src, m->bytes, kind, m->device->streams[m->rank]);
}

tsr_status mirror_send(const mirror *m)
{
    return m->device ? carry(m, m->memory, m->host, TSR_COPY_FROM_HOST) : TSR_OK;
}

tsr_status mirror_fetch(const mirror *m)
{
    void *self;
    if (!m->device)
        return TSR_OK;
    const tsr_device_table *table = tsr_device_driver_table(m->device->driver, &self);
    TSR_TRY(carry(m, m->host, m->memory, TSR_COPY_TO_HOST));
    if (!m->device->driver)
        return TSR_OK;
    return table->stream_synchronize
               ? table->stream_synchronize(self, m->rank % m->device->devices, m->device->streams[m->rank])
               : TSR_OK;
}
