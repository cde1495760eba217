#include "hosts/ggml/snapshot.h"

#include <ggml-impl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Which tensor is copied where. Slots are found by the tensor's address. */
typedef struct pair {
    const struct ggml_tensor *tensor;
    struct ggml_tensor *copy;
} pair;

typedef struct copier {
    pair *pairs;
    size_t mask; /* the number of pairs, a power of two, less 1 */
    struct ggml_tensor *copies;
    size_t count; /* of copies */
} copier;

/* The parts of a snapshot's memory, by their offsets. */
typedef struct parts {
    size_t copies, pairs, keys, nodes, used, counts, bytes;
    size_t slots;  /* pairs */
    size_t hashes; /* slots of the graph's own table of nodes */
} parts;

static size_t take(size_t *offset, size_t count, size_t bytes)
{
    const size_t begin = *offset;
    *offset += (count * bytes + 63) / 64 * 64;
    return begin;
}

/* A bound of how many tensors the graph's nodes and their operands are. */
static size_t count_tensors(const struct ggml_cgraph *graph)
{
    size_t count = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct ggml_tensor *const node = graph->nodes[i];
        count += 1 + (node->view_src != NULL);
        for (int s = 0; s < GGML_MAX_SRC; s++)
            count += node->src[s] ? 1 + (node->src[s]->view_src != NULL) : 0;
    }
    return count;
}

static parts divide(const struct ggml_cgraph *graph)
{
    const size_t tensors = count_tensors(graph), nodes = (size_t)graph->n_nodes;
    parts p = {.slots = 2, .hashes = 2 * nodes + 1};
    while (p.slots < 2 * tensors)
        p.slots *= 2;
    p.bytes = (sizeof *graph + 63) / 64 * 64;
    p.nodes = take(&p.bytes, nodes, sizeof(struct ggml_tensor *));
    p.used = take(&p.bytes, ggml_bitset_size(p.hashes), sizeof(ggml_bitset_t));
    p.pairs = take(&p.bytes, p.slots, sizeof(pair));
    p.counts = take(&p.bytes, p.hashes, sizeof(int32_t));
    p.keys = take(&p.bytes, p.hashes, sizeof(struct ggml_tensor *));
    p.copies = take(&p.bytes, tensors, sizeof(struct ggml_tensor));
    return p;
}

/* The tensor's copy; one that is new refers to no operands yet. */
static struct ggml_tensor *copy_of(copier *c, const struct ggml_tensor *tensor)
{
    size_t at = ((uintptr_t)tensor >> 4) * 11 & c->mask;
    while (c->pairs[at].tensor && c->pairs[at].tensor != tensor)
        at = (at + 1) & c->mask;
    if (!c->pairs[at].tensor) {
        struct ggml_tensor *const copy = &c->copies[c->count++];
        *copy = *tensor;
        memset(copy->src, 0, sizeof copy->src);
        c->pairs[at] = (pair){tensor, copy};
    }
    return c->pairs[at].copy;
}

/* A tensor that a node reads or lies in, with the tensor in which it lies itself. */
static struct ggml_tensor *copy_operand(copier *c, const struct ggml_tensor *tensor)
{
    struct ggml_tensor *const copy = copy_of(c, tensor);
    if (tensor->view_src)
        copy->view_src = copy_of(c, tensor->view_src);
    return copy;
}

/* Enters a node's copy, and how many nodes use it, which kernels ask before they fuse nodes. */
static void enter_node(struct ggml_cgraph *out, const struct ggml_cgraph *graph, const struct ggml_tensor *node,
                       struct ggml_tensor *copy)
{
    const size_t at = ggml_hash_insert(&out->visited_hash_set, copy);
    const struct ggml_hash_set *const set = &graph->visited_hash_set;
    const size_t was = set->size > 0 ? ggml_hash_find(set, node) : GGML_HASHSET_FULL;
    if (at == GGML_HASHSET_ALREADY_EXISTS)
        return;
    out->use_counts[at] = was != GGML_HASHSET_FULL && ggml_bitset_get(set->used, was) ? graph->use_counts[was] : 0;
}

struct ggml_cgraph *tsr_ggml_snapshot(const struct ggml_cgraph *graph)
{
    const parts p = divide(graph);
    char *const memory = aligned_alloc(64, p.bytes);
    if (!memory)
        return NULL;
    struct ggml_cgraph *const out = (struct ggml_cgraph *)memory;
    copier c = {(pair *)(memory + p.pairs), p.slots - 1, (struct ggml_tensor *)(memory + p.copies), 0};
    *out = (struct ggml_cgraph){.size = graph->n_nodes, .n_nodes = graph->n_nodes, .order = graph->order};
    out->nodes = (struct ggml_tensor **)(memory + p.nodes);
    out->use_counts = (int32_t *)(memory + p.counts);
    out->visited_hash_set =
        (struct ggml_hash_set){p.hashes, (ggml_bitset_t *)(memory + p.used), (struct ggml_tensor **)(memory + p.keys)};
    memset(memory + p.used, 0, ggml_bitset_size(p.hashes) * sizeof(ggml_bitset_t));
    memset(c.pairs, 0, p.slots * sizeof(pair));
    for (int i = 0; i < graph->n_nodes; i++)
        out->nodes[i] = copy_of(&c, graph->nodes[i]);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct ggml_tensor *const node = graph->nodes[i];
        for (int s = 0; s < GGML_MAX_SRC; s++)
            out->nodes[i]->src[s] = node->src[s] ? copy_operand(&c, node->src[s]) : NULL;
        out->nodes[i]->view_src = node->view_src ? copy_of(&c, node->view_src) : NULL;
        enter_node(out, graph, node, out->nodes[i]);
    }
    return out;
}
