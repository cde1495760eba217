/** A graph made by rule: no file holds it, and every rank asks for any node. */
#ifndef ROWS_GRAPH_H
#define ROWS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

/** Upper bound of the number of communities. */
#define GRAPH_MOST_COMMUNITIES 1000

/**
 * Nodes lie in communities, blocks of consecutive numbers. From each node edges lead to `degree`
 * neighbours: to any node with probability `noise`, else to one of its own community. Half of the
 * nodes, by chance, are labelled: a model may be told their communities.
 */
typedef struct graph {
    int64_t nodes, communities, degree;
    double noise;
    uint64_t seed;
} graph;

/** The community of a node. */
int64_t graph_community(const graph *g, int64_t node);

/** The first node of a community, or the number of nodes behind the last one. */
int64_t graph_first(const graph *g, int64_t community);

/** Neighbour `number` of a node, from 0 to degree - 1. */
int64_t graph_neighbour(const graph *g, int64_t node, int64_t number);

/** True if training may see the community of the node. */
bool graph_is_labelled(const graph *g, int64_t node);

#endif
