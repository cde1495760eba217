/**
 * How long one rank's part of a plan takes by the tables of a measured profile (tessera/profile.h). Pure.
 *
 * In direct mode a rank copies boxes out of its own and its peers' tensors, and reduces what it is the home of into the tensors of all
 * owners; by messages it reduces into its own, and the others get copies.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_WORK_H
#define TSR_REDISTRIBUTE_SCHEDULE_WORK_H

#include "redistribute/match/cost.h"
#include "redistribute/schedule/plan.h"

/** What the plan's rank does between meetings; the plan has tables. */
double tsr_work_seconds(const tsr_plan *plan);

/** What an item's all-reduce takes a rank by the plan's tables: where every owner reduces all for itself, or each its share. */
double tsr_work_reduction_seconds(const tsr_item *item, const tsr_plan *plan, bool each);

/** What a meeting in the middle of an item's move takes: by the plan's tables, or else its links. */
double tsr_work_middle_seconds(const tsr_item *item, const tsr_plan *plan);

/** What a plan takes whose busiest rank works for `work` seconds: by its tables, which tell of what is inside a node; without them by its
 * links alone. */
double tsr_work_plan_seconds(const tsr_plan *plan, double work, tsr_load inside, tsr_load between);

#endif
