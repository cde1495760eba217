#include "mesh/node_map.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "mesh/grid.h"

#include <tessera/sys/status.h>

#include <string.h>

/* A sentence lists at most this many numbers. */
#define MOST_NUMBERS 32

static tsr_status check_nodes(const char *what, const tsr_nodes *nodes)
{
    if (nodes->ranks_per_node < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s.ranks_per_node is %lld; it is the number of ranks that share a node, or 0 if nodes "
                              "are listed or not known",
                              what, (long long)nodes->ranks_per_node);
    if (nodes->count < 0 || nodes->count > TSR_GRID_RANKS)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s.count is %lld; it is the number of ranks whose nodes are listed, 0 to %lld", what,
                              (long long)nodes->count, (long long)TSR_GRID_RANKS);
    if (nodes->count > 0 && !nodes->node)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s.node is NULL, but count is %lld", what, (long long)nodes->count);
    if (nodes->count > 0 && nodes->ranks_per_node > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s has %lld ranks a node and a list of %lld ranks: give one of the two", what,
                              (long long)nodes->ranks_per_node, (long long)nodes->count);
    return TSR_OK;
}

tsr_status tsr_nodes_check_ranks(const char *what, const tsr_nodes *nodes, int64_t highest)
{
    if (nodes->count == 0 || highest < nodes->count)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s are listed for ranks 0 to %lld, but a mesh has rank %lld", what,
                          (long long)nodes->count - 1, (long long)highest);
}

static void init(tsr_node_map *map, tsr_context *context)
{
    map->references = 1;
    map->context = tsr_context_retain(context);
}

static tsr_status make_equal(tsr_context *context, int64_t each, tsr_node_map **out)
{
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof(tsr_node_map), &memory));
    tsr_node_map *map = memory;
    map->each = each;
    map->hash = tsr_hash_word(TSR_HASH_SEED, (uint64_t)each);
    init(map, context);
    *out = map;
    return TSR_OK;
}

static int by_node_and_rank(const void *a, const void *b, const void *arg)
{
    const int64_t *node = arg;
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (node[x] != node[y])
        return node[x] < node[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* node[rank] becomes the lowest rank on the same node, by the numbers in `given`; `order` is
 * scratch memory for `ranks` numbers. */
static void find_lowest(const int64_t *given, int64_t ranks, int32_t *order, int64_t *node)
{
    for (int64_t i = 0; i < ranks; i++)
        order[i] = (int32_t)i;
    tsr_sort_array(order, (size_t)ranks, sizeof *order, by_node_and_rank, given);
    for (int64_t i = 0; i < ranks; i++) {
        const bool first = i == 0 || given[order[i]] != given[order[i - 1]];
        node[order[i]] = first ? order[i] : node[order[i - 1]];
    }
}

/* Replaces each rank's entry in `node`, the lowest rank on its node, by the node's number, in the
 * order of lowest ranks; returns how many nodes there are. A node's lowest rank comes first, so its
 * entry is a number already when the other ranks read it. */
static int64_t number_nodes(int64_t *node, int64_t ranks)
{
    int64_t count = 0;
    for (int64_t i = 0; i < ranks; i++)
        node[i] = node[i] == i ? count++ : node[node[i]];
    return count;
}

/* Fills `starts` and `members` (node_map.h). `starts` comes as count + 1 zeros. */
static void list_members(const int64_t *node, int64_t ranks, int64_t count, int32_t *starts, int32_t *members)
{
    for (int64_t i = 0; i < ranks; i++)
        starts[node[i] + 1]++;
    for (int64_t n = 0; n < count; n++)
        starts[n + 1] += starts[n];
    for (int64_t i = 0; i < ranks; i++)
        members[starts[node[i]]++] = (int32_t)i;
    for (int64_t n = count; n > 0; n--)
        starts[n] = starts[n - 1];
    starts[0] = 0;
}

static int64_t find_largest(const int32_t *starts, int64_t count)
{
    int64_t largest = 0;
    for (int64_t n = 1; n < count; n++)
        if (starts[n + 1] - starts[n] > starts[largest + 1] - starts[largest])
            largest = n;
    return largest;
}

/* n if the ranks lie as ranks_per_node = n says; else 0. */
static int64_t find_each(const int64_t *node, int64_t ranks)
{
    int64_t each = 0;
    while (each < ranks && node[each] == 0)
        each++;
    for (int64_t i = each; i < ranks; i++)
        if (node[i] != i / each)
            return 0;
    return each;
}

/* Makes one block: the map, node, members, and starts; the latter has room for as many nodes as
 * ranks. */
static tsr_status make_listed(tsr_context *context, const tsr_nodes *nodes, tsr_node_map **out)
{
    const size_t ranks = (size_t)nodes->count;
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(
        context, sizeof(tsr_node_map) + ranks * sizeof(int64_t) + (2 * ranks + 1) * sizeof(int32_t), &memory));
    tsr_node_map *map = memory;
    int64_t *node = (int64_t *)(map + 1);
    int32_t *members = (int32_t *)(node + ranks), *starts = members + ranks;
    find_lowest(nodes->node, nodes->count, members, node);
    map->ranks = nodes->count;
    map->count = number_nodes(node, nodes->count);
    const int64_t each = find_each(node, nodes->count);
    if (each > 0) {
        tsr_release(context, memory);
        return make_equal(context, each, out);
    }
    list_members(node, map->ranks, map->count, starts, members);
    map->largest = find_largest(starts, map->count);
    map->node = node;
    map->members = members;
    map->starts = starts;
    map->hash = tsr_hash_words(tsr_hash_word(TSR_HASH_SEED, 0), node, ranks);
    init(map, context);
    *out = map;
    return TSR_OK;
}

tsr_status tsr_node_map_create(const char *what, tsr_context *context, const tsr_nodes *nodes, tsr_node_map **out)
{
    if (!nodes || (nodes->ranks_per_node == 0 && nodes->count == 0)) {
        *out = NULL;
        return TSR_OK;
    }
    TSR_TRY(check_nodes(what, nodes));
    return nodes->count > 0 ? make_listed(context, nodes, out) : make_equal(context, nodes->ranks_per_node, out);
}

tsr_status tsr_node_map_of_comm(tsr_context *context, const tsr_comm *comm, tsr_node_map **out)
{
    const int ranks = tsr_comm_size(comm), first = tsr_comm_node_of(comm, 0);
    int same = 1;
    while (same < ranks && tsr_comm_node_of(comm, same) == first)
        same++;
    *out = NULL;
    if (same == ranks)
        return TSR_OK;
    void *memory;
    TSR_TRY(tsr_allocate(context, (size_t)ranks * sizeof(int64_t), &memory));
    int64_t *node = memory;
    for (int r = 0; r < ranks; r++)
        node[r] = tsr_comm_node_of(comm, r);
    const tsr_nodes nodes = {0, ranks, node};
    const tsr_status status = tsr_node_map_create("the communicator's nodes", context, &nodes, out);
    tsr_release(context, memory);
    return status;
}

tsr_node_map *tsr_node_map_retain(tsr_node_map *map)
{
    if (map)
        tsr_references_add(&map->references);
    return map;
}

void tsr_node_map_destroy(tsr_node_map *map)
{
    if (!map || !tsr_references_drop(&map->references))
        return;
    tsr_context *context = map->context;
    tsr_release(context, map);
    tsr_context_destroy(context);
}

tsr_nodes tsr_node_map_value(const tsr_node_map *map)
{
    return map ? (tsr_nodes){map->each, map->ranks, map->node} : (tsr_nodes){0};
}

bool tsr_node_map_equal(const tsr_node_map *a, const tsr_node_map *b)
{
    if (a == b || !a || !b)
        return a == b;
    return a->hash == b->hash && a->each == b->each && a->ranks == b->ranks &&
           (a->ranks == 0 || memcmp(a->node, b->node, (size_t)a->ranks * sizeof *a->node) == 0);
}

int64_t tsr_node_map_place(const tsr_node_map *map, int64_t rank)
{
    if (map->each > 0)
        return rank;
    tsr_node_range range = tsr_node_map_range(map, map->node[rank]);
    while (range.end - range.begin > 1) {
        const int64_t middle = range.begin + (range.end - range.begin) / 2;
        *(map->members[middle] <= rank ? &range.begin : &range.end) = middle;
    }
    return range.begin;
}

/* True if each node holds consecutive ranks and nodes follow one another: then the members are 0,
 * 1, 2, .. */
static bool is_in_order(const tsr_node_map *map)
{
    for (int64_t i = 0; i < map->ranks; i++)
        if (map->members[i] != i)
            return false;
    return true;
}

/* Appends the size of each node, "7, 8", or the node of each rank, "0, 1, 0, 1". */
static void append_numbers(tsr_text *text, const tsr_node_map *map, bool sizes)
{
    const int64_t count = sizes ? map->count : map->ranks;
    for (int64_t i = 0; i < count && i < MOST_NUMBERS; i++) {
        const int64_t number = sizes ? map->starts[i + 1] - map->starts[i] : map->node[i];
        tsr_text_append(text, "%s%lld", i == 0 ? "" : ", ", (long long)number);
    }
    tsr_text_append(text, "%s", count > MOST_NUMBERS ? ", .." : "");
}

void tsr_node_map_append(tsr_text *text, const tsr_node_map *map)
{
    if (map->each > 0) {
        tsr_text_append(text, "%lld rank%s a node", (long long)map->each, map->each == 1 ? "" : "s");
        return;
    }
    const bool in_order = is_in_order(map);
    tsr_text_append(text, "%s", in_order ? "nodes of " : "ranks on nodes ");
    append_numbers(text, map, in_order);
    tsr_text_append(text, "%s", in_order ? " ranks" : "");
}
