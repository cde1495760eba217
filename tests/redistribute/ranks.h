/** Checks for rank threads: a failed check becomes the status of the rank, and of
 * tsr_threads_run(). */
#ifndef TESTS_REDISTRIBUTE_RANKS_H
#define TESTS_REDISTRIBUTE_RANKS_H

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <string.h>

/** Ends the rank's program, with the place and the condition as its sentence, unless `condition`
 * holds. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s:%d: not true: %s", __FILE__, __LINE__, #condition);          \
    } while (0)

/** Ends the rank's program unless `call` returns `wanted` with a sentence that contains `part`. */
#define CHECK_ERROR(call, wanted, part) TSR_TRY(check_error((call), (wanted), (part), __FILE__, __LINE__, #call))

tsr_status check_error(tsr_status status, tsr_status wanted, const char *part, const char *file, int line,
                       const char *text);

/** Runs `body` on `count` ranks and fails the running test with the sentence of the rank that
 * failed. */
void run_ranks(int count, tsr_rank_main *body, void *arg);

/** Make a mesh and a layout over `comm` from text ("2x2", "S(0),R", "8x8"). */
tsr_status mesh_over(tsr_comm *comm, const char *text, tsr_mesh **out);
tsr_status layout_over(tsr_comm *comm, const char *mesh, const char *shape, const char *placements, tsr_dtype dtype,
                       tsr_layout **out);

/** Distributes a matrix of i32 whose element with global number g is g times `factor`; at most 64
 * elements. */
tsr_status numbered_over(const tsr_mesh *mesh, const char *placements, const int64_t *shape, int factor,
                         tsr_dtensor **out);

/** This rank's shard, contiguous in `memory`. */
tsr_status shard_over(const tsr_layout *layout, void *memory, tsr_tensor *out);

/** The workspace of a plan, which free() frees; NULL if it needs none. */
void *workspace_for(const tsr_plan *plan, size_t *bytes);

/** A message engine over a copy of `carrier` that reports itself as lent, so that it must not be
 * split. The caller destroys `*out`. */
tsr_status lend(tsr_comm *carrier, tsr_comm **out);

#endif
