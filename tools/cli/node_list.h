/** Parses --nodes: how ranks lie on nodes. */
#ifndef TESSERA_TOOLS_CLI_NODE_LIST_H
#define TESSERA_TOOLS_CLI_NODE_LIST_H

#include <stdint.h>

/** Upper bound of the ranks in a list. */
#define MAX_LISTED_RANKS (INT64_C(1) << 24)

/** Parses "7,8" (the ranks of each node) or "[0,1,0,1]" (the node of each rank). `*node` gets the
 * node of each of `*count` ranks; the caller frees it. Returns EXIT_USAGE for text that is not a
 * list, EXIT_REFUSED for a node without ranks, too many ranks, or a lack of memory. */
int parse_nodes(const char *text, int64_t *count, int64_t **node);

#endif
