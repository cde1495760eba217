/**
 * @file
 * Plans as bytes: made ahead of time by a compiler, kept in files or programs, loaded by every
 * rank.
 *
 * Saved bytes do not depend on rank or machine: a plan has the same bytes on every rank. They hold
 * layouts, options and a fingerprint, not schedules, so they do not grow with the number of ranks
 * (except for listed ranks and sizes). Loading makes the plan anew, which is host arithmetic.
 */
#ifndef TESSERA_SAVED_H
#define TESSERA_SAVED_H

#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Saves the plan: writes at most `capacity` bytes to `buffer` (NULL where `capacity` is 0), and the
 * number of bytes of the whole saved plan to `*bytes`. It is saved whole if `*bytes` <= `capacity`.
 * Mode and cost profile are saved as the plan chose them. Allocates nothing; does not communicate;
 * any thread.
 */
TSR_API tsr_status tsr_plan_save(const tsr_plan *plan, void *buffer, size_t capacity,
                                 size_t *bytes);

/**
 * The plan that `size` bytes hold, for `rank` (or TSR_RANK_NONE: figures only), on abstract meshes
 * in `context` (NULL: defaults). Prepare it on a communicator and execute it like any other. The
 * caller owns `*out`. Does not communicate; any thread.
 *
 * Bytes are not trusted. Any that tsr_plan_save() would not write are refused before anything is
 * planned, and before more memory is taken than the bytes could fill. Other bytes cost as much as
 * tsr_plan_create() for the same layouts, which may be far more than their own size:
 * tsr_context_options.plan_entries of `context` bounds this, by default to some hundreds of MiB and
 * some seconds.
 *
 * TSR_ERROR_ARGUMENT: not a saved plan, cut short, damaged, with values that no plan has, or beyond
 * plan_entries; the sentence says which. TSR_ERROR_UNSUPPORTED: saved in another format, or by a
 * library that plans these layouts differently, so that its ranks could not work with ours.
 */
TSR_API tsr_status tsr_plan_load(tsr_context *context, const void *bytes, size_t size, int64_t rank,
                                 tsr_plan **out);

#ifdef __cplusplus
}
#endif

#endif
