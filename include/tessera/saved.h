/**
 * @file
 * Plans as bytes: made ahead of time by a compiler, kept in files or programs, loaded by every
 * rank.
 *
 * Saved bytes belong to no rank and no machine. They hold layouts, options and a fingerprint, not
 * schedules, so they do not grow with the ranks (listed ranks and sizes aside); loading plans
 * again, which is host arithmetic. The same plan has the same bytes on every rank.
 */
#ifndef TESSERA_SAVED_H
#define TESSERA_SAVED_H

#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes at most `capacity` bytes of the saved plan to `buffer`, which may be NULL with capacity 0,
 * and all their number to `*bytes`: it is saved whole where `*bytes` <= `capacity`. Mode and cost
 * profile are saved as they were picked. Allocates nothing, does not communicate; any thread.
 */
TSR_API tsr_status tsr_plan_save(const tsr_plan *plan, void *buffer, size_t capacity,
                                 size_t *bytes);

/**
 * The plan that `size` bytes hold, for `rank` (or TSR_RANK_NONE: figures only), on abstract meshes
 * in `context` (NULL: defaults). It is prepared on a communicator and executed as any other; the
 * caller owns `*out`. Does not communicate; any thread.
 *
 * Bytes are not trusted: what tsr_plan_save() would not have written is refused before anything is
 * planned and before memory is taken that the bytes could not fill. What it would have written
 * costs what tsr_plan_create() takes for the same layouts, which may be far more than the bytes:
 * tsr_context_options.plan_entries of `context` bounds it, to some hundreds of MiB and some seconds
 * unless it is set lower. TSR_ERROR_ARGUMENT: not a saved plan, cut short, damaged, with values
 * that no plan has, or beyond plan_entries; the sentence says which. TSR_ERROR_UNSUPPORTED: saved
 * in another format, or by a library that plans these layouts otherwise: its ranks and ours would
 * not fit.
 */
TSR_API tsr_status tsr_plan_load(tsr_context *context, const void *bytes, size_t size, int64_t rank,
                                 tsr_plan **out);

#ifdef __cplusplus
}
#endif

#endif
