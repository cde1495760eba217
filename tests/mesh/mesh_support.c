#include "mesh_support.h"

#include "mesh/mesh.h"

#include <tessera/sys/comm.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

int tsr_comm_rank(const tsr_comm *comm)
{
    return comm->rank;
}

int tsr_comm_size(const tsr_comm *comm)
{
    return comm->size;
}

int tsr_comm_congruent(const tsr_comm *a, const tsr_comm *b)
{
    return a == b;
}

tsr_comm *tsr_comm_retain(tsr_comm *comm)
{
    return comm;
}

void tsr_comm_release(tsr_comm *comm)
{
    (void)comm;
}

void tsr_comm_destroy(tsr_comm *comm)
{
    comm->destroyed++;
}

tsr_context *tsr_comm_context(const tsr_comm *comm)
{
    return comm->context;
}

int tsr_comm_node_of(const tsr_comm *comm, int rank)
{
    return comm->node ? comm->node[rank] : -1;
}

uint64_t random_below(random_state *random, uint64_t bound)
{
    uint64_t z = random->at += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % bound;
}

bool next_coordinate(const mesh_model *model, int64_t *coordinate)
{
    for (int d = model->ndim - 1; d >= 0; d--) {
        if (++coordinate[d] < model->shape[d])
            return true;
        coordinate[d] = 0;
    }
    return false;
}

static void number(mesh_model *model, int64_t first)
{
    for (int64_t i = 0; i < model->count; i++)
        model->ranks[i] = first + i;
}

/* Numbers positions along the dims in a random order, some dims backwards. */
static void exchange_dims(mesh_model *model, random_state *random, int64_t first)
{
    int64_t strides[TSR_MAX_DIMS], stride = 1, coordinate[TSR_MAX_DIMS] = {0}, reversed[TSR_MAX_DIMS];
    int order[TSR_MAX_DIMS];
    for (int d = 0; d < model->ndim; d++) {
        const int at = (int)random_below(random, (uint64_t)d + 1);
        order[d] = order[at];
        order[at] = d;
        reversed[d] = (int64_t)random_below(random, 2);
    }
    for (int i = 0; i < model->ndim; i++) {
        strides[order[i]] = stride;
        stride *= model->shape[order[i]];
    }
    int64_t listed = 0;
    do {
        int64_t rank = first;
        for (int d = 0; d < model->ndim; d++)
            rank += strides[d] * (reversed[d] ? model->shape[d] - 1 - coordinate[d] : coordinate[d]);
        model->ranks[listed++] = rank;
    } while (next_coordinate(model, coordinate));
}

/* Draws distinct ranks from the whole world, by a partial Fisher-Yates shuffle. */
static void shuffle(mesh_model *model, random_state *random, int64_t world)
{
    int64_t all[1024];
    assert_true(world <= 1024);
    for (int64_t i = 0; i < world; i++)
        all[i] = i;
    for (int64_t i = 0; i < model->count; i++) {
        const int64_t at = i + (int64_t)random_below(random, (uint64_t)(world - i));
        model->ranks[i] = all[at];
        all[at] = all[i];
    }
}

mesh_model random_model(random_state *random, int64_t world)
{
    mesh_model drawn = {.ndim = 1 + (int)random_below(random, 4), .count = 1};
    for (int d = 0; d < drawn.ndim; d++)
        drawn.count *= drawn.shape[d] = 1 + (int64_t)random_below(random, 4);
    const int64_t first = (int64_t)random_below(random, (uint64_t)(world - drawn.count + 1));
    switch (random_below(random, 4)) {
    case 0:
        number(&drawn, 0);
        break;
    case 1:
        number(&drawn, first);
        break;
    case 2:
        exchange_dims(&drawn, random, first);
        break;
    default:
        shuffle(&drawn, random, world);
    }
    return drawn;
}

tsr_mesh *mesh_of(const mesh_model *model, tsr_context *context, tsr_comm *comm, bool named)
{
    static const char *const names[TSR_MAX_DIMS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    tsr_mesh *mesh = NULL;
    const tsr_status status =
        comm ? tsr_mesh_create(comm, model->ndim, model->shape, named ? names : NULL, model->ranks, &mesh)
             : tsr_mesh_create_abstract(context, model->ndim, model->shape, named ? names : NULL, model->ranks, &mesh);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return mesh;
}

const char *text_of(const tsr_mesh *mesh)
{
    static char buffers[4][4096];
    static int turn;
    turn = (turn + 1) % 4;
    assert_true(tsr_mesh_print(mesh, buffers[turn], sizeof buffers[turn]) < sizeof buffers[turn]);
    return buffers[turn];
}

tsr_mesh *parsed(const char *text)
{
    tsr_mesh *mesh = NULL;
    if (tsr_mesh_parse(NULL, NULL, text, &mesh) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return mesh;
}

static void assert_shape_is(const tsr_mesh *mesh, const mesh_model *model, uint64_t seed)
{
    bool same = tsr_mesh_ndim(mesh) == model->ndim && tsr_mesh_count(mesh) == model->count;
    for (int d = 0; same && d < model->ndim; d++)
        same = tsr_mesh_size(mesh, d) == model->shape[d] && tsr_mesh_shape(mesh)[d] == model->shape[d];
    if (!same)
        fail_msg("seed %llu, mesh %s: another shape was expected", (unsigned long long)seed, text_of(mesh));
}

void assert_mesh_is(const tsr_mesh *mesh, const mesh_model *model, int64_t world, uint64_t seed)
{
    assert_shape_is(mesh, model, seed);
    int64_t coordinate[TSR_MAX_DIMS] = {0}, found[TSR_MAX_DIMS], rank = -1, at = 0, inside_count = 0;
    int inside = 0;
    do {
        assert_int_equal(tsr_mesh_rank_at(mesh, coordinate, &rank), TSR_OK);
        assert_int_equal(tsr_mesh_coordinate_of(mesh, rank, found, &inside), TSR_OK);
        if (rank != model->ranks[at] || !inside || memcmp(coordinate, found, (size_t)model->ndim * sizeof *found) != 0)
            fail_msg("seed %llu, mesh %s: position %lld has rank %lld, not %lld, or is not found back",
                     (unsigned long long)seed, text_of(mesh), (long long)at, (long long)rank,
                     (long long)model->ranks[at]);
        at++;
    } while (next_coordinate(model, coordinate));
    for (int64_t i = -1; i <= world; i++) {
        assert_int_equal(tsr_mesh_coordinate_of(mesh, i, found, &inside), TSR_OK);
        inside_count += inside;
    }
    if (inside_count != model->count)
        fail_msg("seed %llu, mesh %s: %lld ranks are inside", (unsigned long long)seed, text_of(mesh),
                 (long long)inside_count);
}
