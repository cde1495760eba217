/* The least bytes that a redistribution must move, and the bytes that each rank sends. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* A flag for each (position, global element): the rank at the position holds the element. */
static bool *holders_of(const oracle_layout *layout)
{
    const int64_t positions = oracle_mesh_count(&layout->mesh), elements = oracle_count(layout);
    bool *held = calloc((size_t)(positions * elements) + 1, sizeof *held);
    for (int64_t p = 0; p < positions; p++)
        oracle_mark(layout, layout->mesh.ranks[p], held + p * elements);
    return held;
}

/* A number for the combination of a position's coordinates in the Partial dims that stay. */
static int64_t kept_key(const oracle_move *move, const oracle_mesh *mesh, int64_t position)
{
    int64_t coordinate[TSR_MAX_DIMS], key = 0;
    oracle_mesh_coordinate(mesh, position, coordinate);
    for (int m = 0; m < mesh->ndim; m++)
        if (move->same_mesh && move->kept[m])
            key = key * mesh->shape[m] + coordinate[m];
    return key;
}

typedef struct census {
    const oracle_move *move;
    bool *src_held, *dst_held;
    int64_t src_key[ORACLE_MAX_RANKS], dst_key[ORACLE_MAX_RANKS];
    bool dst_fill[ORACLE_MAX_RANKS];        /* the position holds the identity, not the value */
    int64_t src_position[ORACLE_MAX_RANKS]; /* source position of the rank at each destination position; -1 if it has
                                               none */
    int64_t elements, keys;
} census;

static void census_make(const oracle_move *move, census *out)
{
    *out = (census){.move = move, .elements = oracle_count(&move->src), .keys = 1};
    out->src_held = holders_of(&move->src);
    out->dst_held = holders_of(&move->dst);
    for (int64_t p = 0; p < oracle_mesh_count(&move->src.mesh); p++)
        out->src_key[p] = kept_key(move, &move->src.mesh, p);
    for (int64_t p = 0; p < oracle_mesh_count(&move->dst.mesh); p++) {
        int64_t coordinate[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&move->dst.mesh, p, coordinate);
        out->dst_key[p] = kept_key(move, &move->dst.mesh, p);
        out->dst_fill[p] = oracle_filled_by(move, coordinate) != NULL;
        out->src_position[p] = oracle_mesh_position(&move->src.mesh, move->dst.mesh.ranks[p]);
    }
    for (int m = 0; m < move->src.mesh.ndim; m++)
        out->keys *= move->kept[m] ? move->src.mesh.shape[m] : 1;
}

/* How often all ranks together must at least receive one global element (its value or terms), for
 * one combination of kept coordinates. Adds the receipts of each rank to `per_rank`, unless
 * NULL. */
static int64_t least_for(const census *c, int64_t key, int64_t element, int64_t *per_rank)
{
    const int64_t positions = oracle_mesh_count(&c->move->dst.mesh);
    int64_t owners = 0, both = 0;
    for (int64_t p = 0; p < positions; p++) {
        if (c->dst_key[p] != key || c->dst_fill[p] || !c->dst_held[p * c->elements + element])
            continue;
        const int64_t s = c->src_position[p];
        const bool has = s >= 0 && c->src_key[s] == key && c->src_held[s * c->elements + element];
        owners++;
        both += has;
        if (per_rank && !has)
            per_rank[c->move->dst.mesh.ranks[p]]++;
    }
    return c->move->reduced_terms > 1 ? c->move->reduced_terms + owners - 1 - (both > 0) : owners - both;
}

bool oracle_lower_bound(const oracle_move *move, int64_t ranks, int64_t *total, int64_t *per_rank)
{
    const int64_t bytes = (int64_t)oracle_bytes(move->src.dtype);
    bool exact = !move->shortcut && move->reduced_terms == 1;
    for (int m = 0; m < move->dst.mesh.ndim; m++)
        exact = exact && (move->dst.placements[m].kind != TSR_PARTIAL || (move->same_mesh && move->kept[m]));
    if (per_rank)
        memset(per_rank, 0, (size_t)ranks * sizeof *per_rank);
    *total = 0;
    if (move->shortcut)
        return exact;
    census c;
    census_make(move, &c);
    for (int64_t key = 0; key < c.keys; key++)
        for (int64_t g = 0; g < c.elements; g++)
            *total += bytes * least_for(&c, key, g, exact ? per_rank : NULL);
    for (int64_t r = 0; exact && per_rank && r < ranks; r++)
        per_rank[r] *= bytes;
    free(c.src_held);
    free(c.dst_held);
    return exact;
}

/* Writes the positions of the replicas of the piece at position `p`, in row-major order; returns
 * their number, or 0 if `p` is not the first of them. */
static int64_t replicas_of(const oracle_layout *layout, int64_t p, int64_t *replicas)
{
    int64_t count = 0;
    for (int64_t q = 0; q < oracle_mesh_count(&layout->mesh); q++)
        if (oracle_are_replicas(layout, p, q))
            replicas[count++] = q;
    return replicas[0] == p ? count : 0;
}

/* The number of elements of the piece at source position `p` that destination position `q`
 * needs. */
static int64_t wanted_of(const census *c, int64_t p, int64_t q)
{
    int64_t wanted = 0;
    if (c->dst_fill[q] || c->dst_key[q] != c->src_key[p])
        return 0;
    for (int64_t g = 0; g < c->elements; g++)
        wanted += c->src_held[p * c->elements + g] && c->dst_held[q * c->elements + g];
    return wanted;
}

static void serve_piece(const census *c, const int64_t *replicas, int64_t count, int64_t bytes, int64_t *sent)
{
    const oracle_move *move = c->move;
    int64_t turn = 0;
    for (int64_t q = 0; q < oracle_mesh_count(&move->dst.mesh); q++) {
        const int64_t wanted = wanted_of(c, replicas[0], q);
        bool owner = false;
        for (int64_t r = 0; r < count; r++)
            owner = owner || replicas[r] == c->src_position[q];
        if (wanted == 0 || (owner && move->same_mesh))
            continue;
        if (!owner)
            sent[move->src.mesh.ranks[replicas[turn % count]]] += wanted * bytes;
        turn++;
    }
}

bool oracle_sent(const oracle_move *move, int64_t ranks, int64_t *sent)
{
    memset(sent, 0, (size_t)ranks * sizeof *sent);
    if (move->shortcut || move->reduced_terms > 1)
        return move->shortcut;
    census c;
    census_make(move, &c);
    for (int64_t p = 0; p < oracle_mesh_count(&move->src.mesh); p++) {
        int64_t replicas[ORACLE_MAX_RANKS];
        const int64_t count = replicas_of(&move->src, p, replicas);
        if (count > 0)
            serve_piece(&c, replicas, count, (int64_t)oracle_bytes(move->src.dtype), sent);
    }
    free(c.src_held);
    free(c.dst_held);
    return true;
}
