/*
 * backend [RANKS]: a program whose ranks are processes, over the communicator of sockets.h. It cuts
 * a tensor along rows, moves it to columns, and runs a linear layer whose weight is cut.
 */
#include "sockets.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 4, COLUMNS = 3, OUTPUTS = 8, TIMEOUT_MS = 60000 };

/* The objects of one rank, in the order in which it makes them. */
typedef struct things {
    tsr_mesh *mesh;
    tsr_dtensor *rows, *columns, *weight, *part, *y;
} things;

static void destroy(things *t)
{
    tsr_dtensor_destroy(t->y);
    tsr_dtensor_destroy(t->part);
    tsr_dtensor_destroy(t->weight);
    tsr_dtensor_destroy(t->columns);
    tsr_dtensor_destroy(t->rows);
    tsr_mesh_destroy(t->mesh);
}

static tsr_status compute(tsr_comm *comm, things *t)
{
    const int64_t ranks = tsr_comm_size(comm), x_shape[2] = {ROWS, COLUMNS}, weight_shape[2] = {OUTPUTS, COLUMNS};
    float values[OUTPUTS * COLUMNS];
    for (int i = 0; i < OUTPUTS * COLUMNS; i++)
        values[i] = (float)i;
    const tsr_tensor x = tsr_tensor_contiguous(values, TSR_F32, 2, x_shape);
    const tsr_tensor weight = tsr_tensor_contiguous(values, TSR_F32, 2, weight_shape);
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &t->mesh));
    TSR_TRY(tsr_distribute(&x, t->mesh, "S(0)", &t->rows));
    TSR_TRY(tsr_redistribute_to(t->rows, "S(1)", &t->columns));
    TSR_TRY(tsr_distribute(&weight, t->mesh, "S(1)", &t->weight));
    TSR_TRY(tsr_linear(t->columns, t->weight, NULL, NULL, &t->part)); /* row-parallel: sums of each rank's columns, P */
    return tsr_full_tensor(t->part, &t->y);
}

static void print_last_row(const tsr_dtensor *y, int ranks)
{
    const tsr_tensor local = tsr_dtensor_to_local(y);
    const float *row = (const float *)local.data + (ROWS - 1) * OUTPUTS;
    printf("%d ranks, the last row:", ranks);
    for (int i = 0; i < OUTPUTS; i++)
        printf(" %g", row[i]);
    printf("\n");
}

static int run_rank(const char *directory, int rank, int ranks)
{
    things t = {NULL};
    tsr_comm *comm = NULL;
    tsr_status status = sockets_create(directory, rank, ranks, TIMEOUT_MS, &comm);
    if (status == TSR_OK)
        status = compute(comm, &t);
    if (status != TSR_OK)
        fprintf(stderr, "rank %d: %s: %s\n", rank, tsr_status_name(status), tsr_status_message());
    else if (rank == 0)
        print_last_row(t.y, ranks);
    destroy(&t);
    tsr_comm_destroy(comm);
    return status != TSR_OK;
}

static int start(const char *directory, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        const pid_t child = fork();
        if (child == 0)
            exit(run_rank(directory, r, ranks));
        if (child < 0) {
            perror("fork");
            return 1;
        }
    }
    return 0;
}

int main(int count, char **arguments)
{
    char directory[] = "/tmp/tessera-backend-XXXXXX";
    const int ranks = count > 1 ? atoi(arguments[1]) : 3;
    int result, failed;
    if (ranks < 1 || !mkdtemp(directory)) {
        fprintf(stderr, "usage: backend [RANKS]; ranks meet in a directory of /tmp\n");
        return 2;
    }
    failed = start(directory, ranks);
    while (wait(&result) > 0)
        failed |= result != 0;
    rmdir(directory);
    return failed;
}
