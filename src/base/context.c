
#include "base/context.h"

#include "base/attachment.h"
#include "base/environment.h"
#include "base/links.h"
#include "base/memory/memory.h"
#include "base/memory/pool.h"
#include "base/options.h"
#include "base/processor.h"
#include "base/profile.h"
#include "base/references.h"
#include "base/settings.h"

#include <tessera/context.h>
#include <tessera/sys/status.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define DEFAULT_PLAN_CACHE   64
#define DEFAULT_PLAN_ENTRIES ((size_t)1 << 23)
#define DEFAULT_KEPT_BYTES   ((size_t)1 << 30)

/* Blocks up to this many bytes come from malloc(), whose lists of small blocks posix_memalign()
 * does not use: it takes several times as long. AddressSanitizer must see where blocks begin and
 * end, so under it all blocks but empty ones come from posix_memalign(). */
#ifdef __SANITIZE_ADDRESS__
#define SMALL_BYTES ((size_t)0)
#else
#define SMALL_BYTES ((size_t)64 << 10)
#endif

/* A block aligned inside one of malloc(), whose address is stored right before it. malloc() aligns
 * to 16 bytes, so there is room for the address. */
static void *allocate_small(size_t bytes, size_t alignment)
{
    char *given = malloc(bytes + alignment);
    if (!given)
        return NULL;
    char *aligned = given + alignment - (uintptr_t)given % alignment;
    memcpy(aligned - sizeof given, &given, sizeof given);
    return aligned;
}

static void *allocate_libc(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes <= SMALL_BYTES)
        return allocate_small(bytes, alignment);
    void *memory;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void release_libc(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (bytes <= SMALL_BYTES)
        memcpy(&memory, (char *)memory - sizeof memory, sizeof memory);
    free(memory);
}

static void log_to_stderr(void *user, tsr_log_level level, const char *line)
{
    static const char *const names[] = {"silent", "error", "warn", "info", "debug"};
    (void)user;
    fprintf(stderr, "tessera %s: %s\n", names[level], line);
}

static tsr_status check_options(const tsr_context_options *options)
{
    if (!options->allocator.allocate != !options->allocator.release)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT, "tsr_context_create: options.allocator has %s but no %s; give both or neither",
            options->allocator.allocate ? "allocate" : "release", options->allocator.allocate ? "release" : "allocate");
    if ((unsigned)options->log_level > TSR_LOG_DEBUG)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_context_create: options.log_level is %d, not %d (silent) to %d (debug)",
                              (int)options->log_level, TSR_LOG_SILENT, TSR_LOG_DEBUG);
    if (options->plan_entries > TSR_MOST_PLAN_ENTRIES)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_context_create: options.plan_entries is %zu; at most %zu (2^40) can be allowed",
                              options->plan_entries, TSR_MOST_PLAN_ENTRIES);
    if ((unsigned)options->policy > TSR_POLICY_ALLOW)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_create: options.policy is %d, but must be a tsr_policy",
                              (int)options->policy);
    if (options->policy_bytes < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_context_create: options.policy_bytes is %lld, but must not be negative",
                              (long long)options->policy_bytes);
    return TSR_OK;
}

/* A program with a limited address space keeps at most an eighth of it, so that kept blocks do not
 * starve its other allocations. */
static size_t default_kept_bytes(void)
{
    struct rlimit limit;
    const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited && limit.rlim_cur / 8 < DEFAULT_KEPT_BYTES ? (size_t)limit.rlim_cur / 8 : DEFAULT_KEPT_BYTES;
}

static size_t kept_bytes(const tsr_context_options *options)
{
    if (options->kept_bytes == TSR_KEEP_NONE)
        return 0;
    return options->kept_bytes ? options->kept_bytes : default_kept_bytes();
}

/* The steps of decide() that may fail while the settings own a profile. */
static tsr_status choose_settings(const tsr_context_options *options, tsr_settings *settings)
{
    TSR_TRY(tsr_profile_check("tsr_context_create: options.profile", &settings->profile));
    if (options->kernels)
        TSR_TRY(tsr_settings_set_kernels(settings, "tsr_context_create: options.kernels", options->kernels));
    return tsr_environment_apply(options->environment, options->environment_user, settings);
}

/* Fills the settings from the options, overridden by the environment. On success the caller
 * releases settings->measured; after an error nothing is held. */
static tsr_status decide(const tsr_context_options *given, tsr_settings *settings)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    TSR_TRY(tsr_options_read("tsr_context_create", given, &options, sizeof options));
    TSR_TRY(check_options(&options));
    *settings = (tsr_settings){
        .allocator =
            options.allocator.allocate ? options.allocator : (tsr_allocator){allocate_libc, release_libc, NULL},
        .huge_pages = !options.allocator.allocate,
        .kept_bytes = kept_bytes(&options),
        .log = options.log ? options.log : log_to_stderr,
        .log_user = options.log_user,
        .log_level = options.log_level,
        .plan_cache_entries = options.plan_cache_entries ? options.plan_cache_entries : DEFAULT_PLAN_CACHE,
        .plan_entries = (int64_t)(options.plan_entries ? options.plan_entries : DEFAULT_PLAN_ENTRIES),
        .way = TSR_WAY_MEASURED,
        .blas = options.blas,
        .ops = options.ops,
        .op_count = options.ops ? options.op_count : 0,
        .policy = options.policy,
        .policy_bytes = options.policy_bytes,
        .profile = options.profile ? *options.profile : tsr_cost_default(),
    };
    if (options.measured)
        tsr_settings_set_profile(settings, options.measured);
    const tsr_status status = choose_settings(&options, settings);
    if (status != TSR_OK) {
        tsr_profile_destroy(settings->measured);
        return status;
    }
    /* A program's own allocator decides for itself which blocks it keeps. */
    if (options.allocator.allocate)
        settings->kept_bytes = 0;
    /* Asked once here, because every call on the host device reads it. */
    if (!settings->kernels)
        settings->kernels = tsr_processor_kernels();
    return TSR_OK;
}

/* The text of options and of the environment is borrowed, so the context copies it. */
static tsr_status copy_blas(tsr_context *context)
{
    tsr_settings *const settings = &context->settings;
    if (!settings->blas)
        return TSR_OK;
    const size_t bytes = strlen(settings->blas) + 1;
    void *copy;
    TSR_TRY(tsr_allocate(context, bytes, &copy));
    settings->blas = memcpy(copy, settings->blas, bytes);
    return TSR_OK;
}

static tsr_status create_pool(tsr_settings *settings)
{
    if (settings->kept_bytes == 0)
        return TSR_OK;
    settings->pool = tsr_pool_create(settings->kept_bytes);
    return settings->pool
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_MEMORY, "tsr_context_create: there is no memory for the list of kept blocks");
}

tsr_status tsr_context_create(const tsr_context_options *options, tsr_context **out)
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_create: out is NULL");
    tsr_context seed = {.references = 1};
    TSR_TRY(decide(options, &seed.settings));
    void *memory;
    tsr_status status = tsr_allocate(&seed, sizeof seed, &memory);
    if (status != TSR_OK) {
        tsr_profile_destroy(seed.settings.measured);
        return status;
    }
    tsr_context *context = memory;
    context->references = 1;
    atomic_init(&context->numbers, 0);
    context->settings = seed.settings;
    status = copy_blas(context);
    if (status == TSR_OK)
        status = create_pool(&context->settings);
    if (status != TSR_OK) {
        tsr_profile_destroy(seed.settings.measured);
        if (context->settings.blas != seed.settings.blas)
            tsr_release(&seed, (void *)context->settings.blas);
        tsr_release(&seed, context);
        return status;
    }
    tsr_attachments_init(&context->attachments);
    *out = context;
    return TSR_OK;
}

tsr_context *tsr_context_retain(tsr_context *context)
{
    if (context)
        tsr_references_add(&context->references);
    return context;
}

void tsr_context_destroy(tsr_context *context)
{
    if (!context || !tsr_references_drop(&context->references))
        return;
    tsr_attachments_finish(&context->attachments, context);
    tsr_release(context, (void *)context->settings.blas);
    tsr_pool_destroy(context->settings.pool);
    tsr_profile_destroy(context->settings.measured);
    /* The allocator's functions stand in the block that is released, so they are copied out
     * first. */
    tsr_context last = {.settings = context->settings};
    tsr_release(&last, context);
}

const char *tsr_context_kernels(const tsr_context *context)
{
    tsr_settings defaults;
    if (!context && decide(NULL, &defaults) != TSR_OK)
        return tsr_processor_kernels();
    if (context)
        return context->settings.kernels;
    tsr_profile_destroy(defaults.measured);
    return defaults.kernels;
}

const char *tsr_context_kernel_way(const tsr_context *context)
{
    tsr_settings defaults;
    if (!context && decide(NULL, &defaults) != TSR_OK)
        return tsr_way_name(TSR_WAY_MEASURED);
    return tsr_way_name(context ? context->settings.way : defaults.way);
}

tsr_kept_statistics tsr_context_kept_statistics(const tsr_context *context)
{
    return context && context->settings.pool ? tsr_pool_statistics(context->settings.pool) : (tsr_kept_statistics){0};
}

size_t tsr_context_trim(tsr_context *context)
{
    tsr_pool *const pool = context ? context->settings.pool : NULL;
    return pool ? tsr_pool_trim(pool) + tsr_pool_trim_keepers(pool) : 0;
}

tsr_policy tsr_context_policy(const tsr_context *context, int64_t *bytes)
{
    if (bytes)
        *bytes = context ? context->settings.policy_bytes : 0;
    return context ? context->settings.policy : TSR_POLICY_FORBID;
}

tsr_cost_profile tsr_context_links(const tsr_context *context)
{
    return context ? context->settings.profile : tsr_cost_default();
}

const tsr_profile *tsr_context_profile(const tsr_context *context)
{
    return context ? context->settings.measured : NULL;
}

double tsr_context_exchange_seconds(const tsr_context *context, int64_t ranks, int exchanges, double bytes)
{
    const tsr_profile *const profile = tsr_context_profile(context);
    const tsr_link inside = tsr_context_links(context).inside;
    if (!profile || !tsr_profile_has_tables(profile))
        return inside.latency * exchanges + bytes / inside.bandwidth;
    return tsr_profile_meeting_seconds(profile, ranks) * exchanges +
           tsr_profile_work_seconds(profile, TSR_WORK_COPY, TSR_RUN_WHOLE, bytes, bytes);
}

const struct tsr_op *const *tsr_context_ops(const tsr_context *context, size_t *count)
{
    *count = context->settings.op_count;
    return context->settings.ops;
}

const char *tsr_context_blas(const tsr_context *context)
{
    return context->settings.blas;
}

tsr_status tsr_context_attachment(tsr_context *context, const tsr_attachment_kind *kind, void **out)
{
    return tsr_attachments_get(&context->attachments, context, kind, out);
}

int64_t tsr_context_timeout_ms(const tsr_context *context, int64_t otherwise)
{
    return tsr_setting_or(context->settings.timeout_ms, otherwise);
}

tsr_status tsr_context_resolve(tsr_context *context, tsr_context **out)
{
    if (!context)
        return tsr_context_create(NULL, out);
    *out = tsr_context_retain(context);
    return TSR_OK;
}
