/** How ranks lie on nodes, as an option says it. */
#ifndef TESSERA_TOOLS_CLI_NODE_LIST_H
#define TESSERA_TOOLS_CLI_NODE_LIST_H

#include <stdint.h>

/** Ranks that may be listed. */
#define MAX_LISTED_RANKS (INT64_C(1) << 24)

/** "7,8", how many ranks each node has, or "[0,1,0,1]", the node of each rank: `*count` numbers in `*node`, one a rank, which the caller
 * frees. Returns the tool's exit status: EXIT_USAGE for what is no list, EXIT_REFUSED for a node without ranks, or too many ranks. */
int parse_nodes(const char *text, int64_t *count, int64_t **node);

#endif
