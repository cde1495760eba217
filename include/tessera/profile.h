/**
 * @file
 * A measured cost profile: the two numbers per link of cost.h, and tables of the time that a rank's
 * own work takes.
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
 * @par Text form
 * In the variable TSR_COST and in files, a profile is the text of cost.h, followed by any of
 *
 *     step=2e-7 piece=3e-8                      # seconds per plan, and per box
 *     meeting=2:1.5e-7,4:6e-6                   # seconds by the number of ranks
 *     copy@64=8192:2e9,524288:4e9,8388608:3e9   # bytes a second by touched bytes, runs of 64 bytes
 *     copy@whole=8192:8e9,524288:2e10           # for boxes that lie together on both sides
 *     keep@whole=8192:3e10                      # copies within a rank's own memory
 *     sum@whole=8192:5e9                        # bytes that a reduction reads and writes
 *
 * Keys of a row ascend. Between two keys, and between two runs, seconds are interpolated by the
 * logarithm of the key. Beyond the ends the nearest entry counts; but the time of a meeting of more
 * ranks than were measured keeps growing as between the last two. Without a row for a kind of work
 * inside.bandwidth counts, without `meeting` inside.latency. Nothing here communicates; any thread
 * may call.
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

/** 1 if the profile has more than its links, so that plans are timed by tables; else 0. */
TSR_API int tsr_profile_has_tables(const tsr_profile *profile);

/** Seconds that a plan takes besides its bytes and meetings, on a rank with `pieces` boxes;
 * `pieces` is 0 or more. */
TSR_API double tsr_profile_step_seconds(const tsr_profile *profile, int64_t pieces);

/** Seconds of one meeting of `ranks` ranks; `ranks` is 1 or more. */
TSR_API double tsr_profile_meeting_seconds(const tsr_profile *profile, int64_t ranks);

/** Seconds of `bytes` of work, by the rate for runs of `run` bytes (1 or more, or TSR_RUN_WHOLE)
 * where a rank touches `touched` bytes. */
TSR_API double tsr_profile_work_seconds(const tsr_profile *profile, tsr_work work, int64_t run,
                                        double touched, double bytes);

#ifdef __cplusplus
}
#endif

#endif
