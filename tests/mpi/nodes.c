#include "nodes.h"

#include <mpi.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Exports MPI functions for the library to find; the headers of some MPI implementations do not. */
#define SEEN __attribute__((visibility("default")))

static int first_node, turns; /* the pretended nodes: ranks from `first_node` on are a second node, or ranks take
                                 `turns` nodes in turn; one of the two is 0 */
static int tag_bound, receives_left, barriers_left, delay_ms, freed;
static bool delay_begun;
static size_t sent[2]; /* bytes sent to other nodes, and within a node */

void nodes_pretend(int first)
{
    first_node = first;
    turns = 0;
}

void nodes_pretend_turns(int nodes)
{
    first_node = 0;
    turns = nodes;
}

void nodes_count(size_t *inside, size_t *between)
{
    *inside = sent[1];
    *between = sent[0];
    sent[0] = sent[1] = 0;
}

void nodes_bound_tags(int bound)
{
    tag_bound = bound;
}

void nodes_fail_receive(int nth)
{
    receives_left = nth;
}

void nodes_delay_barrier(int nth, bool begun, int milliseconds)
{
    barriers_left = nth;
    delay_begun = begun;
    delay_ms = milliseconds;
}

int nodes_count_freed(void)
{
    const int count = freed;
    freed = 0;
    return count;
}

static int node_of(int rank)
{
    return turns > 0 ? rank % turns : rank >= first_node;
}

SEEN int MPI_Get_processor_name(char *name, int *length)
{
    int rank;
    const int result = PMPI_Get_processor_name(name, length);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (first_node > 0 || turns > 0)
        *length = snprintf(name, MPI_MAX_PROCESSOR_NAME, "node %d", node_of(rank));
    return result;
}

SEEN int MPI_Comm_free(MPI_Comm *comm)
{
    freed++;
    return PMPI_Comm_free(comm);
}

SEEN int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (first_node > 0 || turns > 0)
        sent[node_of(rank) == node_of(peer)] += (size_t)count;
    return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

SEEN int MPI_Irecv(void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (receives_left > 0 && --receives_left == 0)
        return MPI_ERR_OTHER;
    return PMPI_Irecv(data, count, type, peer, tag, comm, request);
}

SEEN int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    const bool late = barriers_left > 0 && --barriers_left == 0;
    const struct timespec time = {delay_ms / 1000, delay_ms % 1000 * 1000000L};
    if (late && !delay_begun)
        nanosleep(&time, NULL);
    const int result = PMPI_Ibarrier(comm, request);
    if (late && delay_begun)
        nanosleep(&time, NULL);
    return result;
}

SEEN int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *found)
{
    const int result = PMPI_Comm_get_attr(comm, key, value, found);
    int *const bound = &tag_bound;
    if (key == MPI_TAG_UB && tag_bound > 0)
        memcpy(value, &bound, sizeof bound);
    return result;
}
