#include "hosts/ggml/registry.h"

#include "hosts/ggml/comm.h"
#include "hosts/ggml/device.h"
#include "hosts/ggml/stream.h"

#include <ggml-impl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct registry {
    struct ggml_backend_reg public;
    int count;
    tsr_ggml_device devices[TSR_GGML_MAX_DEVICES];
} registry;

static const char *get_name(ggml_backend_reg_t reg)
{
    (void)reg;
    return "Tessera";
}

static size_t get_device_count(ggml_backend_reg_t reg)
{
    return (size_t)((const registry *)reg->context)->count;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index)
{
    registry *const self = reg->context;
    return index < (size_t)self->count ? &self->devices[index].device : NULL;
}

static void *get_proc_address(ggml_backend_reg_t reg, const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } rows[] = {
        {"ggml_backend_comm_init", (void (*)(void))tsr_ggml_comm_init},
        {"ggml_backend_comm_free", (void (*)(void))tsr_ggml_comm_free},
        {"ggml_backend_comm_allreduce_tensor", (void (*)(void))tsr_ggml_comm_allreduce_tensor},
        {"ggml_backend_set_n_threads", (void (*)(void))tsr_ggml_stream_set_threads},
        {"ggml_backend_set_abort_callback", (void (*)(void))tsr_ggml_stream_set_abort},
    };
    void *found = NULL;
    (void)reg;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0)
            memcpy(&found, &rows[i].function, sizeof found);
    return found;
}

/* How many devices are wanted; 0: the variable's value is no such number. */
static int wanted_devices(const char *value)
{
    char *end;
    if (!value || !*value)
        return tsr_ggml_node_count();
    const long count = strtol(value, &end, 10);
    return *end || count < 1 || count > TSR_GGML_MAX_DEVICES ? 0 : (int)count;
}

/* ggml keeps pointers to these until the process ends. */
static registry the_registry;

static void make_registry(void)
{
    registry *const self = &the_registry;
    tsr_ggml_place places[TSR_GGML_MAX_DEVICES];
    const char *const value = getenv("TSR_GGML_DEVICES");
    self->public = (struct ggml_backend_reg){
        GGML_BACKEND_API_VERSION, {get_name, get_device_count, get_device, get_proc_address}, self};
    self->count = wanted_devices(value);
    if (self->count == 0)
        GGML_LOG_ERROR("tessera: TSR_GGML_DEVICES=%s: expected a number of devices, 1 to %d\n", value,
                       TSR_GGML_MAX_DEVICES);
    tsr_ggml_places(self->count, places);
    for (int d = 0; d < self->count; d++)
        tsr_ggml_device_init(&self->devices[d], &self->public, d, self->count, &places[d]);
}

ggml_backend_reg_t tsr_ggml_registry(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_registry);
    return the_registry.count > 0 ? &the_registry.public : NULL;
}

GGML_BACKEND_DL_IMPL(tsr_ggml_registry)
