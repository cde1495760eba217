/**
 * @file
 * What a host program may decide once: memory, log, environment, bounds.
 *
 * The library keeps no mutable globals; these choices live in a context that is given to whatever
 * begins something: communicators of every engine, abstract meshes, drivers of GPUs, saved plans.
 * What is made from those has theirs. Wherever a context is asked for, NULL stands for one with the
 * defaults.
 */
#ifndef TESSERA_CONTEXT_H
#define TESSERA_CONTEXT_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What it decided never changes; reference-counted, shared freely between threads. */
typedef struct tsr_context tsr_context;

/** How much a log tells: each level includes those before it. */
typedef enum tsr_log_level {
    TSR_LOG_SILENT = 0,
    TSR_LOG_ERROR,
    TSR_LOG_WARN,
    TSR_LOG_INFO,
    TSR_LOG_DEBUG
} tsr_log_level;

/** Called from any thread, for one line without a newline; must not call the library. */
typedef void tsr_log_sink(void *user, tsr_log_level level, const char *line);

/** Both functions may be called from any thread. `alignment` is a power of two, at least
 * sizeof(void *). */
typedef struct tsr_allocator {
    /** NULL when there is no memory */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);       /**< never called with NULL */
    void *user;
} tsr_allocator;

/** Options of a context: all zero but `size` are the defaults. */
typedef struct tsr_context_options {
    size_t size;             /**< sizeof(tsr_context_options) */
    tsr_allocator allocator; /**< both functions NULL: the C library's */
    tsr_log_sink *log;       /**< NULL: standard error */
    void *log_user;
    tsr_log_level log_level;                                  /**< silent by default */
    /** NULL: getenv(); return NULL from it for "not set" */
    const char *(*environment)(void *user, const char *name);
    void *environment_user;
    size_t plan_cache_entries; /**< plans that a mesh keeps for tsr_redistribute(); 0: 64 */
    /**
     * Kernels of the host: a set of instructions, how they move bytes, or both with a comma
     * between: "avx2", "fixed", "avx512,stream". A set is "portable", "avx2" or "avx512"; without
     * one it is the best that this processor runs. Large moves go in ways that are chosen by timing
     * them ("measured", the default), by a rule that says the same in every run ("fixed"), or in
     * one way: "plain", "plain-ahead", "plain-rows", "stream", "stream-ahead" or "stream-rows"
     * (docs/environment.md). Results have the same bytes whichever it is. NULL: the best set,
     * measured.
     */
    const char *kernels;
    const tsr_cost_profile *profile; /**< what plans compare and time by; copied; NULL:
                                          tsr_cost_default() */
    /**
     * Bounds what one question about layouts may cost, so that a short text or file cannot take all
     * memory or time: the elements of the lists that it builds, of some 50 bytes each, and the
     * steps of its loops. Plans (made, loaded, or looked at), lists of intervals and relabelling
     * are refused where they would need more, with TSR_ERROR_ARGUMENT and a sentence that names
     * layouts and bound; a survey, which plans for many ranks, may take 16 times as many in all. 0:
     * 2^23, enough for a gather over a million ranks on nodes of up to 128.
     */
    size_t plan_entries;
    /**
     * Memory of more than 64 KiB that holds elements, of results above all, is kept when it is
     * given back, for the next of about its size, which then costs no page fault. This many bytes
     * are kept at most. The system may take back what exceeds 32 MiB when it runs short of memory,
     * except memory that processes share; tsr_context_trim() gives all back. 0: 2^30, but no more
     * than an eighth of what RLIMIT_AS leaves the process; TSR_KEEP_NONE: nothing is kept. A
     * context with an allocator of its own keeps nothing.
     */
    size_t kept_bytes;
    tsr_profile *measured; /**< in the place of `profile`, with tables; retained; NULL: by
                                `profile` */
    /**
     * Which BLAS linear layers multiply by on the host: "openblas", "scipy-openblas", "onednn",
     * "mkl", the path of a shared library (text with a '/'), several of these with commas between,
     * of which the fastest comes first, or "auto": all that are found. The BLAS that libtessera
     * links serves products that these do not have. Copied; opened when the first layer is
     * prepared, which fails where one that is named cannot be (sys/blas.h). NULL: the one that
     * libtessera links.
     */
    const char *blas;
} tsr_context_options;

/** For tsr_context_options.kept_bytes: all memory goes back at once. */
#define TSR_KEEP_NONE ((size_t)-1)

/** The defaults. */
#define TSR_CONTEXT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tsr_context_options), {0, 0, 0}, 0, 0, TSR_LOG_SILENT, 0, 0, 0, 0, 0, 0, 0, 0, 0    \
    }

/** Makes a context; the caller owns one reference to `*out`. Environment variables override
 * `options` here, once. TSR_ERROR_ARGUMENT: an option or variable has a value that is not known
 * (the sentence names it). Does not communicate. */
TSR_API tsr_status tsr_context_create(const tsr_context_options *options, tsr_context **out);

/** One reference more; returns `context`. */
TSR_API tsr_context *tsr_context_retain(tsr_context *context);

/** Gives one reference back; NULL is fine. */
TSR_API void tsr_context_destroy(tsr_context *context);

/** The host kernels that this context uses: "portable", "avx2" or "avx512". `context` may be NULL.
 * Static text. */
TSR_API const char *tsr_context_kernels(const tsr_context *context);

/** How those kernels move many bytes: "measured", "fixed", or the name of one way. `context` may be
 * NULL. Static text. Any thread. */
TSR_API const char *tsr_context_kernel_way(const tsr_context *context);

/** What its option or TSR_BLAS says of the BLAS (tsr_context_options.blas), or NULL; the context's.
 * `context` is not NULL. Any thread. */
TSR_API const char *tsr_context_blas(const tsr_context *context);

/** What a context keeps of large blocks that were released (tsr_context_options.kept_bytes). All 0
 * where it keeps nothing. */
typedef struct tsr_kept_statistics {
    size_t most_bytes;    /**< that may be kept */
    size_t bytes, blocks; /**< that are kept now */
    uint64_t hits;        /**< large blocks that were kept when they were asked for: without a
                               page fault */
    uint64_t misses;      /**< those that the system was asked for */
} tsr_kept_statistics;

/** Now; `context` may be NULL, which keeps nothing. Any thread. */
TSR_API tsr_kept_statistics tsr_context_kept_statistics(const tsr_context *context);

/** Gives all memory that is kept back to the system, and returns how many bytes that was; NULL is
 * fine. Any thread, at any time. */
TSR_API size_t tsr_context_trim(tsr_context *context);

/** A row of the table of environment variables: every one that the library reads, and what it
 * overrides. */
typedef struct tsr_environment_variable {
    const char *name; /**< "TSR_LOG" */
    const char *help; /**< one sentence */
} tsr_environment_variable;

/** Row `index`, or NULL past the last. Static. */
TSR_API const tsr_environment_variable *tsr_environment_get(size_t index);

#ifdef __cplusplus
}
#endif

#endif
