/**
 * @file
 * What a host program may decide once: memory, log, environment, bounds.
 *
 * The library keeps no mutable globals. These choices live in a context, which is given to every
 * call that starts something: communicators of every engine, abstract meshes, drivers of GPUs,
 * saved plans. Objects made from these have their context. A NULL context means the defaults.
 */
#ifndef TESSERA_CONTEXT_H
#define TESSERA_CONTEXT_H

#include <tessera/profile.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Choices that never change after creation; reference-counted, shared freely between threads. */
typedef struct tsr_context tsr_context;

/** How much a log tells: each level includes those before it. */
typedef enum tsr_log_level {
    TSR_LOG_SILENT = 0,
    TSR_LOG_ERROR,
    TSR_LOG_WARN,
    TSR_LOG_INFO,
    TSR_LOG_DEBUG
} tsr_log_level;

/** Called from any thread with one line, without a newline. It must not call the library. */
typedef void tsr_log_sink(void *user, tsr_log_level level, const char *line);

/** An allocator. Both functions may be called from any thread. `alignment` is a power of two, at
 * least sizeof(void *). */
typedef struct tsr_allocator {
    /** Returns NULL when there is no memory. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes); /**< never called with NULL */
    void *user;
} tsr_allocator;

/** Which redistributions calls of ops put in by themselves, in the cheapest way that their rules
 * allow. */
typedef enum tsr_policy {
    TSR_POLICY_FORBID = 0, /**< none: operands that do not fit are refused */
    TSR_POLICY_PARTIALS,   /**< of Partial to Replicate or Shard alone */
    TSR_POLICY_WARN,       /**< all, each with a line in the log, level warn */
    TSR_POLICY_ALLOW       /**< all */
} tsr_policy;

/** Options of a context; a field that is 0 has its default, except `size`. */
typedef struct tsr_context_options {
    size_t size;             /**< sizeof(tsr_context_options) */
    tsr_allocator allocator; /**< both functions NULL: the C library's */
    tsr_log_sink *log;       /**< NULL: standard error */
    void *log_user;
    tsr_log_level log_level; /**< silent by default */
    /** NULL: getenv(); return NULL from it for "not set" */
    const char *(*environment)(void *user, const char *name);
    void *environment_user;
    size_t plan_cache_entries; /**< plans that a mesh keeps for tsr_redistribute(); 0: 64 */
    /**
     * How the host's kernels compute and move bytes: a set of instructions, a way, or both with a
     * comma between: "avx2", "fixed", "avx512,stream". Results have the same bytes whatever is
     * chosen. NULL: the best set, measured.
     * - Sets: "portable", "avx2", "avx512"; without one, the best that this processor runs.
     * - Ways of large moves: "measured" (the default) times the ways and chooses; "fixed" chooses
     *   by a rule that gives the same answer in every run; "plain", "plain-ahead", "plain-rows",
     *   "stream", "stream-ahead" and "stream-rows" are one way each (docs/environment.md).
     */
    const char *kernels;
    const tsr_cost_profile *profile; /**< costs by which plans are compared and timed; copied;
                                          NULL: tsr_cost_default() */
    /**
     * Bounds what one question about layouts may cost, so that a short text or file cannot take all
     * memory or time. It counts the elements of the lists that the answer builds, of about 50 bytes
     * each, and the steps of its loops. Plans (made, loaded, or looked at), lists of intervals and
     * relabelling that would need more are refused with TSR_ERROR_ARGUMENT and a sentence that
     * names layouts and bound. A survey plans for many ranks and may take 16 times as much in all.
     * 0: 2^23, enough for a gather over a million ranks on nodes of up to 128.
     */
    size_t plan_entries;
    /**
     * How many bytes of released memory the context keeps at most. It keeps blocks of more than 64
     * KiB that held elements, results above all, for a new block of about the same size, which then
     * costs no page fault. The system may take back what exceeds 32 MiB when it runs short of
     * memory, except memory that processes share; tsr_context_trim() gives all of it back. 0: 2^30,
     * but no more than an eighth of what RLIMIT_AS leaves the process. TSR_KEEP_NONE: nothing is
     * kept. A context with an allocator of its own keeps nothing.
     */
    size_t kept_bytes;
    tsr_profile *measured; /**< used instead of `profile`: one with tables, or with kernels of ops
                                (profile.h); retained; NULL: `profile` is used */
    /**
     * Which BLAS linear layers multiply with on the host: "openblas", "scipy-openblas", "onednn",
     * "mkl", the path of a shared library (text with a '/'), or several of these with commas
     * between, of which the fastest is tried first. "auto": all that are found. The BLAS that
     * libtessera links computes the products that these lack. Copied. Libraries are opened when the
     * first layer is prepared; that call fails if a library named here cannot be opened
     * (sys/blas.h). NULL: the linked BLAS alone.
     */
    const char *blas;
    /** Ops of the program's own (sys/ops.h): `op_count` rows, found by name beside the library's.
     * The list and the rows are borrowed, and must outlive the context. All ranks give the same
     * rows. They are checked when the first op is looked up. NULL: none. */
    const struct tsr_op *const *ops;
    size_t op_count;
    /** What a call of an op may do about operands whose layouts do not fit its rule. */
    tsr_policy policy;
    /** With a policy other than TSR_POLICY_FORBID: the most bytes that a rank may receive for one
     * call; a call that would need more is refused. 0: no limit. */
    int64_t policy_bytes;
} tsr_context_options;

/** For tsr_context_options.kept_bytes: all released memory goes back to the system at once. */
#define TSR_KEEP_NONE SIZE_MAX

/** The default options. */
#define TSR_CONTEXT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tsr_context_options), {TSR_NULL, TSR_NULL, TSR_NULL}, TSR_NULL, TSR_NULL,           \
            TSR_LOG_SILENT, TSR_NULL, TSR_NULL, 0, TSR_NULL, TSR_NULL, 0, 0, TSR_NULL, TSR_NULL,   \
            TSR_NULL, 0, TSR_POLICY_FORBID, 0                                                      \
    }

/** Makes a context; the caller owns one reference to `*out`. Environment variables are read here,
 * once, and override `options`. TSR_ERROR_ARGUMENT: an option or variable has an unknown value (the
 * sentence names it). Does not communicate. */
TSR_API tsr_status tsr_context_create(const tsr_context_options *options, tsr_context **out);

/** Adds a reference and returns `context`. */
TSR_API tsr_context *tsr_context_retain(tsr_context *context);

/** Gives one reference back; NULL is fine. */
TSR_API void tsr_context_destroy(tsr_context *context);

/** The host kernels that this context uses: "portable", "avx2" or "avx512". `context` may be NULL.
 * Static text. */
TSR_API const char *tsr_context_kernels(const tsr_context *context);

/** The policy of the context, and, in `*bytes` where `bytes` is not NULL, its limit (0: none).
 * `context` may be NULL. Any thread. */
TSR_API tsr_policy tsr_context_policy(const tsr_context *context, int64_t *bytes);

/** The costs of links by which the context's plans are timed. `context` may be NULL: the default.
 * Any thread. */
TSR_API tsr_cost_profile tsr_context_links(const tsr_context *context);

/** The profile by which the context's plans and programs are timed, where it has more than links;
 * borrowed. NULL: links alone count, or `context` is NULL. Any thread. */
TSR_API const tsr_profile *tsr_context_profile(const tsr_context *context);

/** Seconds in which `ranks` ranks (1 or more) meet `exchanges` times and a rank receives `bytes` in
 * all, by the context's profile. `context` may be NULL: the default. Any thread. */
TSR_API double tsr_context_exchange_seconds(const tsr_context *context, int64_t ranks,
                                            int exchanges, double bytes);

/** The rows of ops of the context's options, and their number; borrowed. Neither pointer is NULL.
 * Any thread. */
TSR_API const struct tsr_op *const *tsr_context_ops(const tsr_context *context, size_t *count);

/** How those kernels move many bytes: "measured", "fixed", or the name of one way. `context` may be
 * NULL. Static text. Any thread. */
TSR_API const char *tsr_context_kernel_way(const tsr_context *context);

/** The value of tsr_context_options.blas or TSR_BLAS, which overrides it; NULL: neither is set.
 * Borrowed from the context. `context` is not NULL. Any thread. */
TSR_API const char *tsr_context_blas(const tsr_context *context);

/** The large released blocks that a context keeps (tsr_context_options.kept_bytes); all 0 where it
 * keeps nothing. */
typedef struct tsr_kept_statistics {
    size_t most_bytes;    /**< the bound */
    size_t bytes, blocks; /**< kept at this moment */
    uint64_t hits;        /**< requests for a large block that a kept one served, without a page
                               fault */
    uint64_t misses;      /**< requests for a large block that went to the system */
} tsr_kept_statistics;

/** The figures at this moment. `context` may be NULL: all 0. Any thread. */
TSR_API tsr_kept_statistics tsr_context_kept_statistics(const tsr_context *context);

/** Gives all kept memory back to the system and returns how many bytes that was; 0 for NULL. Any
 * thread, at any time. */
TSR_API size_t tsr_context_trim(tsr_context *context);

/** One environment variable that the library reads; the table has every one. */
typedef struct tsr_environment_variable {
    const char *name; /**< "TSR_LOG" */
    const char *help; /**< one sentence: what it overrides */
} tsr_environment_variable;

/** Row `index`, or NULL past the last. Static. */
TSR_API const tsr_environment_variable *tsr_environment_get(size_t index);

#ifdef __cplusplus
}
#endif

#endif
