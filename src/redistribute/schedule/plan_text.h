/** Plans in words. Thread-safe. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_PLAN_TEXT_H
#define TSR_REDISTRIBUTE_SCHEDULE_PLAN_TEXT_H

#include <stddef.h>

/** The tsr_call_describe of a plan: "redistribute f32 64x64 S(0) on mesh 2 -> S(1) on mesh 2,
 * direct". */
void tsr_plan_describe_call(const void *plan, char *text, size_t capacity);

#endif
