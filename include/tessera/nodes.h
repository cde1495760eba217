/**
 * @file
 * How ranks lie on nodes: machines, or other groups with quicker links inside than to the outside.
 *
 * A plain value that meshes and plans copy. Nodes may be of any sizes, and ranks lie on them in any
 * order.
 */
#ifndef TESSERA_NODES_H
#define TESSERA_NODES_H

#include <tessera/api.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How ranks lie on nodes, in one of two forms; all zero: unknown. At most one form may be given. A
 * list that describes the nodes of a ranks_per_node is treated as that form. */
typedef struct tsr_nodes {
    int64_t ranks_per_node; /**< n: ranks 0 to n-1 share the first node, the next n the second,
                                 ..; the last may have fewer */
    int64_t count;          /**< number of entries of `node`: for ranks 0 to count-1 */
    const int64_t *node;    /**< one number per rank: ranks with equal numbers share a node.
                                 Borrowed for the call */
} tsr_nodes;

#ifdef __cplusplus
}
#endif

#endif
