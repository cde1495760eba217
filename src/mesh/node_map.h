/** Which ranks share a node, as meshes keep it and plans ask: immutable and counted, so that a mesh shares it with all that is made from
 * it. */
#ifndef TSR_MESH_NODE_MAP_H
#define TSR_MESH_NODE_MAP_H

#include <stdbool.h>
#include <tessera/mesh.h>

#include "base/references.h"
#include "base/text/text.h"

/** Nodes have one form: what can be said by one number is not listed, and listed nodes are numbered in the order of their lowest ranks. */
typedef struct tsr_node_map {
    tsr_references references;
    tsr_context *context; /**< retained */
    uint64_t hash;
    int64_t each;           /**< ranks 0 to each-1 share the first node, and so on; 0: the rest of this holds */
    int64_t ranks;          /**< how many are listed */
    int64_t count;          /**< of nodes */
    int64_t largest;        /**< the node with most ranks, the first of equals */
    const int64_t *node;    /**< of each rank */
    const int32_t *starts;  /**< count + 1: where each node's members begin */
    const int32_t *members; /**< ranks by node, ascending within each */
} tsr_node_map;

/** Some of the members of a map, or ranks where nodes are not listed: begin <= i < end. */
typedef struct tsr_node_range {
    int64_t begin, end;
} tsr_node_range;

/** A map for `nodes`, or NULL where they are not known (or `nodes` is NULL). The caller releases it. TSR_ERROR_ARGUMENT, in sentences that
 * begin with `what`, "tsr_mesh_with_nodes: nodes": a negative number, both forms at once, or no list where one is said to be. */
tsr_status tsr_node_map_create(const char *what, tsr_context *context, const tsr_nodes *nodes, tsr_node_map **out);

/** One for what the engine of `comm` says; NULL where it does not know, or all ranks share one node. */
tsr_status tsr_node_map_of_comm(tsr_context *context, const tsr_comm *comm, tsr_node_map **out);

/** One reference more, and one back; NULL is fine. Any thread. */
tsr_node_map *tsr_node_map_retain(tsr_node_map *map);
void tsr_node_map_destroy(tsr_node_map *map);

/** The value that it was made of, in its one form; borrowed. Of NULL: not known. */
tsr_nodes tsr_node_map_value(const tsr_node_map *map);

/** NULL: not known. */
bool tsr_node_map_equal(const tsr_node_map *a, const tsr_node_map *b);

/** TSR_ERROR_ARGUMENT, in a sentence that begins with `what`: nodes are listed, but not for all ranks up to `highest`, which a mesh has.
 * To be asked of what a user gives, before it takes its one form. */
tsr_status tsr_nodes_check_ranks(const char *what, const tsr_nodes *nodes, int64_t highest);

/** The number of a rank's node; one that it says nothing of has a node to itself. */
static inline int64_t tsr_node_map_find(const tsr_node_map *map, int64_t rank)
{
    if (map->each > 0)
        return rank / map->each;
    return rank < map->ranks ? map->node[rank] : map->count + rank;
}

/** How many ranks the node with most of them has. */
static inline int64_t tsr_node_map_most(const tsr_node_map *map)
{
    return map->each > 0 ? map->each : map->starts[map->largest + 1] - map->starts[map->largest];
}

/** The ranks of a node: of a rank that the map covers. */
static inline tsr_node_range tsr_node_map_range(const tsr_node_map *map, int64_t node)
{
    if (map->each > 0)
        return (tsr_node_range){node * map->each, (node + 1) * map->each};
    return (tsr_node_range){map->starts[node], map->starts[node + 1]};
}

/** The rank at place `at` of a range. */
static inline int64_t tsr_node_map_member(const tsr_node_map *map, int64_t at)
{
    return map->each > 0 ? at : map->members[at];
}

/** The place of a rank that the map covers, from which tsr_node_map_member() leads back. */
int64_t tsr_node_map_place(const tsr_node_map *map, int64_t rank);

/** "4 ranks a node", "nodes of 7, 8 ranks", or where these are not in order "ranks on nodes 0, 1, 0, 1". */
void tsr_node_map_append(tsr_text *text, const tsr_node_map *map);

#endif
