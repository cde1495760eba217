#include "hosts/ggml/device.h"

#include "hosts/ggml/buffer.h"
#include "hosts/ggml/cpu.h"
#include "hosts/ggml/stream.h"

#include <stdio.h>
#include <unistd.h>

static const tsr_ggml_device *device_of(ggml_backend_dev_t device)
{
    return device->context;
}

static const char *get_name(ggml_backend_dev_t device)
{
    return device_of(device)->name;
}

static const char *get_description(ggml_backend_dev_t device)
{
    return device_of(device)->description;
}

/* An equal share of the machine's memory. */
static void get_memory(ggml_backend_dev_t device, size_t *available, size_t *total)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (size_t)device_of(device)->count;
    *total = (size_t)sysconf(_SC_PHYS_PAGES) / count * page;
    *available = (size_t)sysconf(_SC_AVPHYS_PAGES) / count * page;
}

/* llama.cpp gives layers only to devices that are not of the type CPU. This type's memory is the
 * host's, and llama.cpp uses it by default only where there is no GPU. */
static enum ggml_backend_dev_type get_type(ggml_backend_dev_t device)
{
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_IGPU;
}

static void get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props)
{
    *props = (struct ggml_backend_dev_props){
        .name = get_name(device), .description = get_description(device), .type = get_type(device)};
    get_memory(device, &props->memory_free, &props->memory_total);
}

static ggml_backend_t init_backend(ggml_backend_dev_t device, const char *params)
{
    (void)params;
    return tsr_ggml_stream_create(device);
}

static ggml_backend_buffer_type_t get_buffer_type(ggml_backend_dev_t device)
{
    return &((tsr_ggml_device *)device->context)->buffers;
}

static bool supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op)
{
    const ggml_backend_dev_t cpu = tsr_ggml_cpu_device();
    (void)device;
    return cpu && ggml_backend_dev_supports_op(cpu, op);
}

static bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t type)
{
    return type == get_buffer_type(device) || ggml_backend_buft_is_host(type);
}

static const struct ggml_backend_device_i functions = {
    .get_name = get_name,
    .get_description = get_description,
    .get_memory = get_memory,
    .get_type = get_type,
    .get_props = get_props,
    .init_backend = init_backend,
    .get_buffer_type = get_buffer_type,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
};

void tsr_ggml_device_init(tsr_ggml_device *device, ggml_backend_reg_t registry, int index, int count,
                          const tsr_ggml_place *place)
{
    device->device = (struct ggml_backend_device){functions, registry, device};
    device->place = *place;
    device->count = count;
    (void)snprintf(device->name, sizeof device->name, "Tessera%d", index);
    (void)snprintf(device->description, sizeof device->description, "%d of this machine's processors",
                   place->processor_count);
    tsr_ggml_buffer_type_init(&device->buffers, device);
}
