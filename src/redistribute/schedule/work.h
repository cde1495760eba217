/**
 * How long one rank's part of a plan takes by the tables of a measured profile (tessera/profile.h).
 * Pure.
 *
 * In direct mode a rank copies boxes out of its own and its peers' tensors, and reduces what it is
 * the home of into the tensors of all owners. In message mode it reduces into its own tensor, and
 * the other owners get copies.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_WORK_H
#define TSR_REDISTRIBUTE_SCHEDULE_WORK_H

#include "redistribute/match/cost.h"
#include "redistribute/schedule/plan.h"

/** Seconds that the plan's rank works between meetings; the plan has tables. */
double tsr_work_seconds(const tsr_plan *plan);

/** Seconds that an item's all-reduce takes a rank by the plan's tables, if every owner reduces
 * everything by itself (`each`), or only its share. */
double tsr_work_reduction_seconds(const tsr_item *item, const tsr_plan *plan, bool each);

/** Seconds that a meeting in the middle of an item's move takes: by the plan's tables, or by its
 * links if it has none. */
double tsr_work_middle_seconds(const tsr_item *item, const tsr_plan *plan);

/** Seconds that a plan takes whose busiest rank works for `work` seconds. Tables tell the time
 * inside nodes, links the time between nodes; without tables, links tell both. */
double tsr_work_plan_seconds(const tsr_plan *plan, double work, tsr_load inside, tsr_load between);

#endif
