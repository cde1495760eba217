#include "types.h"

#include <tessera/sys/status.h>
#include <tessera/xla.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* An XLA and its ids, which do not change once `known` counts it. */
typedef struct entry {
    const XLA_FFI_Api *api;
    tsr_xla_types types;
} entry;

static struct {
    pthread_mutex_t gate; /* held by whoever adds one */
    atomic_int known;
    entry entries[8];
} registry = {.gate = PTHREAD_MUTEX_INITIALIZER};

static const entry *find_entry(const XLA_FFI_Api *api)
{
    const int known = atomic_load_explicit(&registry.known, memory_order_acquire);
    for (int e = 0; e < known; e++)
        if (registry.entries[e].api == api)
            return &registry.entries[e];
    return NULL;
}

static tsr_status register_type(const XLA_FFI_Api *api, const char *name, const XLA_FFI_TypeInfo *info,
                                XLA_FFI_TypeId *id)
{
    XLA_FFI_Type_Register_Args args = {.struct_size = XLA_FFI_Type_Register_Args_STRUCT_SIZE,
                                       .name = {name, strlen(name)},
                                       .type_id = id,
                                       .type_info = info};
    return tsr_xla_pass_on(api, name, api->XLA_FFI_Type_Register(&args));
}

static tsr_status add_entry(const XLA_FFI_Api *api, void (*deleter)(void *state))
{
    const int known = atomic_load(&registry.known);
    const int room = (int)(sizeof registry.entries / sizeof registry.entries[0]);
    if (known == room)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "there are %d copies of XLA in this process, and no room for more",
                              known);
    entry *const e = &registry.entries[known];
    const XLA_FFI_TypeInfo state = {XLA_FFI_TypeInfo_STRUCT_SIZE, NULL, deleter};
    const XLA_FFI_TypeInfo lent = {XLA_FFI_TypeInfo_STRUCT_SIZE, NULL, NULL};
    *e = (entry){.api = api};
    TSR_TRY(register_type(api, "tsr_xla_call", &state, &e->types.state));
    TSR_TRY(register_type(api, "tsr_xla_lent", &lent, &e->types.lent));
    atomic_store_explicit(&registry.known, known + 1, memory_order_release);
    return TSR_OK;
}

tsr_status tsr_xla_types_find(const XLA_FFI_Api *api, void (*deleter)(void *state), tsr_xla_types *out)
{
    const entry *e = find_entry(api);
    if (!e) {
        pthread_mutex_lock(&registry.gate);
        const tsr_status status = find_entry(api) ? TSR_OK : add_entry(api, deleter);
        pthread_mutex_unlock(&registry.gate);
        TSR_TRY(status);
        e = find_entry(api);
    }
    *out = e->types;
    return TSR_OK;
}

tsr_status tsr_xla_lent_type(const XLA_FFI_Api *api, int64_t *type_id)
{
    if (!type_id)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_xla_lent_type: type_id is NULL");
    const int known = atomic_load_explicit(&registry.known, memory_order_acquire);
    const entry *const e = api ? find_entry(api) : known == 1 ? &registry.entries[0] : NULL;
    if (!e)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_xla_lent_type: handlers are registered with %d XLA of this process%s", known,
                              api ? ", and not with this one" : "; with several, say which by `api`");
    *type_id = e->types.lent.type_id;
    return TSR_OK;
}
