/** The settings of a context, for the folders above. All fields are final once the context
 * exists. */
#ifndef TSR_BASE_SETTINGS_H
#define TSR_BASE_SETTINGS_H

#include "base/attachment.h"
#include "base/references.h"
#include "base/ways.h"

#include <tessera/context.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** The largest plan_entries; sums and small multiples of it do not overflow an int64_t. */
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
    tsr_allocator allocator; /**< both functions are set */
    int huge_pages;          /**< 1: the allocator is the default, so large blocks may ask for huge pages */
    tsr_log_sink *log;       /**< never NULL */
    void *log_user;
    tsr_log_level log_level;
    struct tsr_pool *pool; /**< keeps large blocks; NULL: no block is kept */
    size_t kept_bytes;     /**< the most that the pool keeps; 0: there is no pool */
    size_t plan_cache_entries;
    int64_t plan_entries; /**< the most entries that a plan, or a question about layouts, may take */
    const char *kernels;  /**< name of the kernels in use: by options or TSR_KERNELS, else the best; static text */
    const char *blas;     /**< the BLAS that layers take (tsr_context_options.blas, TSR_BLAS); NULL: not set */
    const struct tsr_op *const *ops; /**< the program's rows of ops, borrowed; NULL: none */
    size_t op_count;
    tsr_policy policy;        /**< what ops may do about operands that do not fit */
    int64_t policy_bytes;     /**< the most bytes that they may then receive; 0: no limit */
    tsr_way way;              /**< the way in which the host's kernels move bytes, or how it is chosen */
    tsr_setting timeout_ms;   /**< TSR_TIMEOUT_MS */
    tsr_setting spin;         /**< TSR_SPIN */
    tsr_setting stall_ms;     /**< TSR_STALL_MS */
    tsr_setting ranks;        /**< TSR_RANKS */
    const char *mpi;          /**< TSR_MPI, one of the names in environment.h; NULL: not set; static text */
    tsr_cost_profile profile; /**< latency and bandwidth of the links */
    tsr_profile *measured;    /**< a profile with more than links, one reference; NULL: the links alone count */
} tsr_settings;

struct tsr_context {
    tsr_references references;
    atomic_uint_least64_t numbers; /**< the last number that tsr_context_number() returned */
    tsr_attachments attachments;
    _Alignas(64) tsr_settings settings; /**< every call reads them, so no thread writes to their cache lines */
};

/** Borrowed from `context`, which must not be NULL. */
const tsr_settings *tsr_context_settings(const tsr_context *context);

/** The next of 1, 2, 3, ..: each call of a context returns another number. Thread-safe. */
uint64_t tsr_context_number(tsr_context *context);

#endif
