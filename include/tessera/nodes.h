/**
 * @file
 * How ranks lie on nodes: machines, or whatever else has quicker links inside than to the outside.
 *
 * A plain value that meshes and plans are given and copy. Nodes may be of any sizes, and ranks lie
 * on them in any order.
 */
#ifndef TESSERA_NODES_H
#define TESSERA_NODES_H

#include <stdint.h>
#include <tessera/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All zero: not known. At most one of the two forms is given; what is listed but lies as the other
 * form says is taken for that. */
typedef struct tsr_nodes {
    int64_t ranks_per_node; /**< n: ranks 0 to n-1 share the first node, the next n the second,
                                 ..; the last may have fewer */
    int64_t count;          /**< how many ranks `node` is of: 0 to count-1 */
    const int64_t *node;    /**< one number a rank: ranks with equal numbers, whatever they are,
                                 share a node. Borrowed for the call */
} tsr_nodes;

#ifdef __cplusplus
}
#endif

#endif
