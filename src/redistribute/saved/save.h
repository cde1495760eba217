/**
 * The bytes of a saved plan. Numbers are little-endian, signed ones in two's complement; nothing is
 * aligned.
 *
 *     plan      := "tsr-plan" u32 version, u64 bytes in all, options, [ tables "\0" ], u64 hash,
 *                  u64 items, { item }, u64 checksum of all before it
 *     options   := u32 mode, u32 objective, u32 no_split, u32 reduction, u64 max_workspace, nodes,
 *                  link inside, link between
 *     link      := f64 latency, f64 bandwidth
 *     tables    := the text of tsr_profile_print(); in version 3, which only a plan with tables has
 *     item      := u32 dtype, u32 ndim, { i64 size }, side source, side destination
 *     side      := u64 mesh, [ mesh ], { placement }         one placement per mesh dim
 *     mesh      := u32 ndim, u32 named, u32 listed, { i64 size }, { name "\0" }, ranks, nodes
 *     nodes     := i64 ranks per node                        as tsr_mesh_nodes() says it
 *                | i64 minus listed ranks, { u32 node }
 *     ranks     := i64 first, { i64 stride }                 one stride per mesh dim
 *                | { u32 rank }                              the listed ranks, row-major
 *     placement := u32 kind, shard | partial | nothing       by tsr_placement_kind
 *     shard     := u32 dim, u32 order, u32 balanced, u32 list, i64 interleave, i64 unit,
 *                  u64 count, { i64 number }
 *     partial   := u32 op
 *
 * Sides are numbered 0, 1, 2, .. in the order in which they are written. `mesh` is the number of
 * the first side on an equal mesh; the mesh follows if that is the side itself. Neutral values are
 * written as interleave 0, unit 0, order 2^32 - 1 (TSR_ORDER_DEFAULT). A plan has one form only:
 * bytes that would say the same in another way are refused. Any change of what is written, or of
 * the schedules that layouts and options lead to, needs another version. The hash is what ranks
 * compare when they prepare the plan.
 */
#ifndef TSR_REDISTRIBUTE_SAVED_SAVE_H
#define TSR_REDISTRIBUTE_SAVED_SAVE_H

#include "redistribute/schedule/plan.h"

#include <tessera/sys/bytes.h>

#define TSR_SAVED_VERSION     2 /* of a plan without tables */
#define TSR_SAVED_WITH_TABLES 3

static const tsr_frame tsr_saved_frame = {"plan", "tsr-plan", TSR_SAVED_VERSION, TSR_SAVED_WITH_TABLES};

/** What the list of numbers in a Shard is. */
typedef enum tsr_saved_list { TSR_SAVED_NO_LIST = 0, TSR_SAVED_SIZES, TSR_SAVED_BLOCKS } tsr_saved_list;

/** Writes the plan, with `bytes` as the number of its bytes in all. */
void tsr_saved_write(tsr_writer *writer, const tsr_plan *plan, size_t bytes);

#endif
