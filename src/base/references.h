/** Reference counts of objects that threads share. */
#ifndef TSR_BASE_REFERENCES_H
#define TSR_BASE_REFERENCES_H

#include <stdatomic.h>
#include <stdbool.h>

/** How many references to the object there are: 1 when it is made. */
typedef atomic_int tsr_references;

/** Adds a reference. Relaxed, because the calling thread owns a reference already. */
static inline void tsr_references_add(tsr_references *references)
{
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/** Drops a reference. True if it was the last: the caller then sees all that other threads did to
 * the object, and destroys it. */
static inline bool tsr_references_drop(tsr_references *references)
{
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

#endif
