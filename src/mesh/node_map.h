/** Which ranks share a node, for meshes and plans. A map is immutable and reference-counted: a mesh
 * shares it with all meshes and plans made from it. */
#ifndef TSR_MESH_NODE_MAP_H
#define TSR_MESH_NODE_MAP_H

#include "base/references.h"
#include "base/text/text.h"

#include <tessera/mesh.h>

#include <stdbool.h>

/** Equal node maps have equal fields: nodes that `each` can describe are not listed, and listed
 * nodes are numbered in the order of their lowest ranks. */
typedef struct tsr_node_map {
    tsr_references references;
    tsr_context *context; /**< retained */
    uint64_t hash;
    int64_t each;  /**< ranks 0 to each - 1 share the first node, and so on; 0: nodes are listed in the fields below */
    int64_t ranks; /**< how many ranks are listed */
    int64_t count; /**< how many nodes there are */
    int64_t largest;        /**< the node with most ranks, the first of equals */
    const int64_t *node;    /**< the node of each rank */
    const int32_t *starts;  /**< count + 1 indices: node n has members[starts[n]] to members[starts[n + 1] - 1] */
    const int32_t *members; /**< ranks by node, ascending within each node */
} tsr_node_map;

/** Indices begin <= i < end of `members`; if nodes are not listed, ranks. */
typedef struct tsr_node_range {
    int64_t begin, end;
} tsr_node_range;

/** A map for `nodes`, which the caller destroys; NULL if `nodes` is NULL or says nothing.
 * TSR_ERROR_ARGUMENT, in sentences that begin with `what` ("tsr_mesh_with_nodes: nodes"): a number
 * is negative, ranks_per_node and a list are both given, or the list is NULL but its count is not
 * 0. */
tsr_status tsr_node_map_create(const char *what, tsr_context *context, const tsr_nodes *nodes, tsr_node_map **out);

/** A map of the nodes that `comm` tells of its ranks, which the caller destroys; NULL if its engine
 * does not know, or all ranks share one node. */
tsr_status tsr_node_map_of_comm(tsr_context *context, const tsr_comm *comm, tsr_node_map **out);

/** Adds a reference and returns `map`; NULL is fine. Any thread. */
tsr_node_map *tsr_node_map_retain(tsr_node_map *map);

/** Drops a reference; NULL is fine. Any thread. */
void tsr_node_map_destroy(tsr_node_map *map);

/** The map as a public value; borrowed from `map`. NULL: a value that says nothing. */
tsr_nodes tsr_node_map_value(const tsr_node_map *map);

/** True if both maps put the same ranks together; NULL equals only NULL. */
bool tsr_node_map_equal(const tsr_node_map *a, const tsr_node_map *b);

/** TSR_ERROR_ARGUMENT, in a sentence that begins with `what`: nodes are listed, but not for all
 * ranks up to `highest`, a mesh's highest rank. Checks a user's value; a map may have turned the
 * list into ranks per node. */
tsr_status tsr_nodes_check_ranks(const char *what, const tsr_nodes *nodes, int64_t highest);

/** The number of a rank's node; a rank beyond the listed ones has a node to itself. */
static inline int64_t tsr_node_map_find(const tsr_node_map *map, int64_t rank)
{
    if (map->each > 0)
        return rank / map->each;
    return rank < map->ranks ? map->node[rank] : map->count + rank;
}

/** How many ranks the largest node has. */
static inline int64_t tsr_node_map_most(const tsr_node_map *map)
{
    return map->each > 0 ? map->each : map->starts[map->largest + 1] - map->starts[map->largest];
}

/** The range of a node's members; the node is that of a rank that the map covers. */
static inline tsr_node_range tsr_node_map_range(const tsr_node_map *map, int64_t node)
{
    if (map->each > 0)
        return (tsr_node_range){node * map->each, (node + 1) * map->each};
    return (tsr_node_range){map->starts[node], map->starts[node + 1]};
}

/** The rank at index `at` of a range. */
static inline int64_t tsr_node_map_member(const tsr_node_map *map, int64_t at)
{
    return map->each > 0 ? at : map->members[at];
}

/** The index for which tsr_node_map_member() returns `rank`; the map covers `rank`. */
int64_t tsr_node_map_place(const tsr_node_map *map, int64_t rank);

/** Appends "4 ranks a node", or "nodes of 7, 8 ranks", or, if nodes do not hold consecutive ranks,
 * "ranks on nodes 0, 1, 0, 1". */
void tsr_node_map_append(tsr_text *text, const tsr_node_map *map);

#endif
