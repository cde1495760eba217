#include "cli/node_list.h"

#include "cli/parse.h"

#include <stdlib.h>
#include <string.h>

typedef struct node_list {
    int64_t *node;
    int64_t count, capacity;
} node_list;

static int reserve(node_list *list, int64_t more)
{
    if (more > MAX_LISTED_RANKS - list->count)
        return complain(EXIT_REFUSED, "--nodes: more than %lld ranks; nodes of one size have --ranks-per-node",
                        (long long)MAX_LISTED_RANKS);
    if (list->count + more <= list->capacity)
        return EXIT_DONE;
    const int64_t capacity = 2 * list->count + more;
    int64_t *const grown = realloc(list->node, (size_t)capacity * sizeof *grown);
    if (!grown)
        return complain(EXIT_REFUSED, "--nodes: there is no memory for %lld ranks", (long long)capacity);
    list->node = grown;
    list->capacity = capacity;
    return EXIT_DONE;
}

static int append(node_list *list, int64_t node, int64_t ranks)
{
    if (ranks == 0)
        return complain(EXIT_REFUSED, "--nodes: node %lld has 0 ranks; it must have 1 at least", (long long)node);
    const int status = reserve(list, ranks);
    for (int64_t i = 0; i < ranks && status == EXIT_DONE; i++)
        list->node[list->count++] = node;
    return status;
}

static void skip_spaces(const char **at)
{
    *at += strspn(*at, " ");
}

static int refuse(const char *text, const char *at)
{
    return complain(
        EXIT_USAGE,
        "--nodes '%s', character %td: this is not a list of nodes; give the ranks of each node, as 7,8, or the node of "
        "each rank, as [0,1,0,1]",
        text, at - text + 1);
}

static int read_list(const char *text, node_list *list)
{
    const bool by_rank = *text == '[';
    const char *at = text + by_rank;
    for (int64_t item = 0; item == 0 || *at == ','; item++) {
        int64_t number;
        at += item > 0;
        skip_spaces(&at);
        if (!parse_number(&at, &number))
            return refuse(text, at);
        const int status = by_rank ? append(list, number, 1) : append(list, item, number);
        if (status != EXIT_DONE)
            return status;
        skip_spaces(&at);
    }
    if (by_rank && *at == ']')
        at++;
    else if (by_rank)
        return refuse(text, at);
    return *at == '\0' ? EXIT_DONE : refuse(text, at);
}

int parse_nodes(const char *text, int64_t *count, int64_t **node)
{
    node_list list = {0};
    const int status = read_list(text, &list);
    if (status != EXIT_DONE) {
        free(list.node);
        return status;
    }
    *count = list.count;
    *node = list.node;
    return EXIT_DONE;
}
