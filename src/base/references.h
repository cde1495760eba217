/** Reference counts of objects that threads share. */
#ifndef TSR_BASE_REFERENCES_H
#define TSR_BASE_REFERENCES_H

#include <stdatomic.h>
#include <stdbool.h>

/** How many own the object: 1 when it is made. */
typedef atomic_int tsr_references;

/** One more. Whoever adds it owns one, so nothing has to be ordered. */
static inline void tsr_references_add(tsr_references *references)
{
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/** One less; true if that was the last, who then sees what the others did. */
static inline bool tsr_references_drop(tsr_references *references)
{
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

#endif
