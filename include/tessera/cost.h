/**
 * What links cost: the model by which plans are compared and timed.
 *
 * A step takes, for each kind of link that it uses, latency + bytes / bandwidth, and the kinds run at once. Inside a node the bytes are
 * those that the busiest rank receives; between nodes those that the busiest node receives (Hockney's model, R. W. Hockney, Parallel
 * Computing 20, 1994, with one term a level).
 */
#ifndef TESSERA_COST_H
#define TESSERA_COST_H

#include <stddef.h>
#include <tessera/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One kind of link. */
typedef struct tsr_link {
    double latency;   /**< seconds a step */
    double bandwidth; /**< bytes a second */
} tsr_link;

/** A value: copied where it is given. */
typedef struct tsr_cost_profile {
    tsr_link inside;  /**< a node: into one rank */
    tsr_link between; /**< nodes: into one node */
} tsr_cost_profile;

#ifdef __cplusplus
}
#endif

#endif
