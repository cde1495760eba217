/* A program outside the tree, built with what was installed: a mesh, a layout, and a redistribution
 * on two rank threads. */
#include <tessera/tessera.h>

#include <stdio.h>
#include <string.h>

static tsr_status move_columns_to_rows(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t ranks = tsr_comm_size(comm), shape[2] = {4, 4};
    float values[16];
    for (int i = 0; i < 16; i++)
        values[i] = (float)i;
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    const tsr_placement columns = tsr_shard(1), rows = tsr_shard(0);

    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_status status = tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh);
    if (status == TSR_OK)
        status = tsr_distribute_tensor(&global, mesh, &columns, NULL, &x);
    if (status == TSR_OK)
        status = tsr_redistribute(x, &rows, &y);
    if (status == TSR_OK) {
        const tsr_tensor local = tsr_dtensor_to_local(y);
        if (local.shape[0] != 2 || memcmp(local.data, values + 8 * tsr_comm_rank(comm), 8 * sizeof(float)) != 0)
            status = TSR_ERROR_INTERNAL;
    }
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return status;
}

int main(void)
{
    const tsr_status status = tsr_threads_run(2, move_columns_to_rows, NULL, NULL);
    if (status != TSR_OK) {
        fprintf(stderr, "%s: %s\n", tsr_status_name(status), tsr_status_message());
        return 1;
    }
    printf("tessera %s\n", tsr_version());
    return 0;
}
