/** What a context decided, for the folders above: all fields are final once the context exists. */
#ifndef TSR_BASE_SETTINGS_H
#define TSR_BASE_SETTINGS_H

#include "base/ways.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tessera/context.h>

#include "base/attachment.h"
#include "base/references.h"

/** The largest plan_entries: sums and small multiples of it do not overflow. */
#define TSR_MOST_PLAN_ENTRIES ((size_t)1 << 40)

/** A number that the environment may set. */
typedef struct tsr_setting {
    bool is_set;
    int64_t value;
} tsr_setting;

static inline int64_t tsr_setting_or(tsr_setting setting, int64_t otherwise)
{
    return setting.is_set ? setting.value : otherwise;
}

typedef struct tsr_settings {
    tsr_allocator allocator; /**< never empty */
    int huge_pages;          /**< the allocator is the default, so large blocks may ask for huge pages */
    tsr_log_sink *log;       /**< never NULL */
    void *log_user;
    tsr_log_level log_level;
    struct tsr_pool *pool; /**< of large blocks; NULL: nothing is kept */
    size_t kept_bytes;     /**< that the pool keeps at most; 0: there is none */
    size_t plan_cache_entries;
    int64_t plan_entries;     /**< that one question about layouts may take; at least 1 */
    const char *kernels;      /**< those in use: by options or TSR_KERNELS, else the best; static text */
    const char *blas;         /**< which BLAS the layers are to take (tsr_context_options.blas, TSR_BLAS); NULL: not said */
    tsr_way way;              /**< of the host's kernels: one, or how it is chosen */
    tsr_setting timeout_ms;   /**< TSR_TIMEOUT_MS */
    tsr_setting spin;         /**< TSR_SPIN */
    tsr_setting stall_ms;     /**< TSR_STALL_MS */
    tsr_cost_profile profile; /**< the links */
    tsr_profile *measured;    /**< a reference of its own, with tables; NULL: by the links alone */
} tsr_settings;

struct tsr_context {
    tsr_references references;
    atomic_uint_least64_t numbers; /**< that were given */
    tsr_attachments attachments;
    _Alignas(64) tsr_settings settings; /**< every call reads them: apart from what threads write */
};

/** `context` must not be NULL. */
const tsr_settings *tsr_context_settings(const tsr_context *context);

/** 1, 2, 3, ..: a number that this context has given nobody else. Thread-safe. */
uint64_t tsr_context_number(tsr_context *context);

#endif
