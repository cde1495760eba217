/* A program outside the tree that links libtessera-files: two rank threads write a tensor, and read
 * it again. */
#include <tessera/npy.h>
#include <tessera/safetensors.h>
#include <tessera/tessera.h>

#include <stdio.h>

#define PATH "tessera-install-files.tmp"

static tsr_status write_columns(tsr_comm *comm, void *arg)
{
    const int64_t shape[2] = {4, 4};
    float values[16] = {1, 2, 3};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_status status = tsr_mesh_parse(comm, NULL, "2", &mesh);
    (void)arg;
    if (status == TSR_OK)
        status = tsr_distribute(&global, mesh, "S(1)", &x);
    if (status == TSR_OK)
        status = tsr_npy_write(x, PATH, TSR_DTYPE_NONE);
    if (status == TSR_OK)
        status = tsr_npy_distribute(PATH, mesh, "S(0)", &y);
    if (status == TSR_OK) {
        const tsr_safetensors_text version = {"by", tsr_version()};
        const tsr_safetensors_tensor tensor = {"y", y, TSR_DTYPE_NONE};
        tsr_safetensors_write_options options = TSR_SAFETENSORS_WRITE_OPTIONS_INIT;
        options.metadata_count = 1;
        options.metadata = &version;
        status = tsr_safetensors_write(PATH, 1, &tensor, &options);
    }
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return status;
}

int main(void)
{
    tsr_safetensors *file = NULL;
    tsr_status status = tsr_threads_run(2, write_columns, NULL, NULL);
    if (status == TSR_OK)
        status = tsr_safetensors_open(PATH, &file);
    remove(PATH);
    if (status != TSR_OK) {
        fprintf(stderr, "%s: %s\n", tsr_status_name(status), tsr_status_message());
        return 1;
    }
    const tsr_safetensors_entry *const y = tsr_safetensors_get(file, 0);
    printf("a safetensors file, tessera %s: %dx%d %s\n", tsr_safetensors_metadata(file, "by"), (int)y->shape[0],
           (int)y->shape[1], tsr_dtype_name(y->dtype));
    tsr_safetensors_destroy(file);
    return 0;
}
