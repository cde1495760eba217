/**
 * @file
 * A measured cost profile: the two numbers per link of cost.h, and tables of the time that a rank's
 * own work takes: moves of plans, and kernels of ops.
 *
 * @par Model
 * Two numbers cannot say that a cache is faster than memory, that short runs are slower than long
 * ones, and that a sum takes longer than a copy. Where a profile has tables, a rank's part of a
 * plan takes
 *
 *     step + pieces * piece + meetings * meeting(ranks)
 *         + the sum over its boxes of bytes / rate(work, run, touched)
 *
 * and a plan takes as long as its slowest rank, or as the links between nodes if these take longer.
 * `touched` is the number of bytes of a rank's tensors that the plan reads and writes, which
 * decides the cache that holds them. `run` is the number of bytes of a box that lie together on
 * both sides. `tessera bench calibrate` measures all of it.
 *
 * A kernel of an op takes
 *
 *     call + touched / rate(touched)                    where it passes over elements
 *     call + flops / rate(product, least, touched)      of products and of attention
 *
 * `touched` is the number of bytes of its operands and results, and `flops` the number of its
 * multiplications and additions. `least` is the least of the sizes m, n and k of a product of
 * (m, k) and (k, n): one token waits for the bytes of a weight, many tokens for the
 * multiplications. Of attention it is the number of queries. All ranks compute at once where a
 * profile is measured, because they share the memory.
 *
 * @par Text form
 * In the variable TSR_COST and in files, a profile is the text of cost.h, followed by any of
 *
 *     step=2e-7 piece=3e-8                      # seconds per plan, and per box
 *     meeting=2:1.5e-7,4:6e-6                   # seconds by the number of ranks
 *     copy@64=8192:2e9,524288:4e9,8388608:3e9   # bytes a second by touched bytes, runs of 64 bytes
 *     copy@whole=8192:8e9,524288:2e10           # for boxes that lie together on both sides
 *     keep@whole=8192:3e10                      # copies within a rank's own memory
 *     sum@whole=8192:5e9                        # bytes that a reduction reads and writes
 *     call=4e-7                                 # seconds per kernel of an op
 *     pass=12288:3e10,12582912:9e9              # bytes read and written a second, by touched bytes
 *     multiply@1=65536:8e9,16777216:4e9         # flops a second by touched bytes; least size 1
 *     multiply@512=4194304:1.2e11               # the same where the least size is 512
 *     attend@1=65536:5e9 attend@512=65536:4e10  # flops a second of attention, by queries
 *
 * Keys of a row ascend. Between two keys, and between two runs, seconds are interpolated by the
 * logarithm of the key; between two least sizes, seconds grow linearly. Beyond the ends the nearest
 * entry counts; but the time of a meeting of more ranks than were measured keeps growing as between
 * the last two. Without a row for a kind of work inside.bandwidth counts, without `meeting`
 * inside.latency, without `pass` the copies of `keep@whole`, without a row for products the slower
 * of inside.bandwidth and TSR_PROFILE_FLOPS. Nothing here communicates; any thread may call.
 */
#ifndef TESSERA_PROFILE_H
#define TESSERA_PROFILE_H

#include <tessera/cost.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A measured cost profile. Immutable, reference-counted, shared freely between threads. Its memory
 * comes from the C library. */
typedef struct tsr_profile tsr_profile;

/** Kinds of work that a rank does on bytes. */
typedef enum tsr_work {
    TSR_WORK_COPY = 0, /**< copies from another rank; counts the bytes received */
    TSR_WORK_KEEP,     /**< copies within the rank's own memory */
    TSR_WORK_SUM       /**< reduces; counts the bytes of all terms read and all results written */
} tsr_work;

/** Kernels of ops whose work is multiplications and additions. */
typedef enum tsr_product {
    TSR_PRODUCT_MULTIPLY = 0, /**< products of matrices */
    TSR_PRODUCT_ATTEND        /**< attention */
} tsr_product;

/** Multiplications and additions a second that are assumed where nothing was measured: one core
 * with vectors of 512 bits. */
#define TSR_PROFILE_FLOPS 1e11

/** For `run`: the box lies together on both sides. */
#define TSR_RUN_WHOLE INT64_MAX

/** Reads a profile from text; the caller owns one reference to `*out`. TSR_ERROR_ARGUMENT: the text
 * is not a profile; the sentence points at the character. TSR_ERROR_MEMORY: there is no memory for
 * it. */
TSR_API tsr_status tsr_profile_parse(const char *text, tsr_profile **out);

/**
 * Writes a profile, one line for the links and one for each row, with the fewest digits that
 * tsr_profile_parse() reads back as the same numbers. Returns the length of the whole text, and
 * writes at most `capacity` bytes of it, the last NUL (`text` may be NULL where `capacity` is 0).
 */
TSR_API size_t tsr_profile_print(const tsr_profile *profile, char *text, size_t capacity);

/** Adds a reference and returns `profile`. */
TSR_API tsr_profile *tsr_profile_retain(tsr_profile *profile);

/** Gives one reference back; NULL is fine. */
TSR_API void tsr_profile_destroy(tsr_profile *profile);

/** The costs of the links. */
TSR_API tsr_cost_profile tsr_profile_links(const tsr_profile *profile);

/** 1 if the profile has tables of moves, so that plans are timed by tables; else 0. */
TSR_API int tsr_profile_has_tables(const tsr_profile *profile);

/** 1 if the profile has entries for kernels of ops (`call`, `pass`, `multiply` or `attend`); else
 * 0. */
TSR_API int tsr_profile_has_kernels(const tsr_profile *profile);

/** Seconds that a plan takes besides its bytes and meetings, on a rank with `pieces` boxes;
 * `pieces` is 0 or more. */
TSR_API double tsr_profile_step_seconds(const tsr_profile *profile, int64_t pieces);

/** Seconds of one meeting of `ranks` ranks; `ranks` is 1 or more. */
TSR_API double tsr_profile_meeting_seconds(const tsr_profile *profile, int64_t ranks);

/** Seconds of `bytes` of work, by the rate for runs of `run` bytes (1 or more, or TSR_RUN_WHOLE)
 * where a rank touches `touched` bytes. */
TSR_API double tsr_profile_work_seconds(const tsr_profile *profile, tsr_work work, int64_t run,
                                        double touched, double bytes);

/** Seconds that a kernel of an op takes besides its work; 0 without `call`. */
TSR_API double tsr_profile_call_seconds(const tsr_profile *profile);

/** Seconds of the work of a kernel that passes over elements, and reads and writes `touched` bytes
 * (0 or more). */
TSR_API double tsr_profile_pass_seconds(const tsr_profile *profile, double touched);

/** Seconds of the work of a product, or of attention, of `flops` multiplications and additions,
 * whose operands and results are `touched` bytes; `least` (1 or more) is its least size, or the
 * number of queries. `reach` takes the place of `touched` for the choice of a rate: it is
 * `touched`, or more where other bytes push operands out of caches between two uses. */
TSR_API double tsr_profile_product_seconds(const tsr_profile *profile, tsr_product product,
                                           int64_t least, double reach, double touched,
                                           double flops);

#ifdef __cplusplus
}
#endif

#endif
