#include "hosts/tvm/layouts.h"

#include "hosts/tvm/object.h"

#include <tessera/sharding.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

static void destroy_layout(void *content)
{
    tsr_layout_destroy(content);
}

static tsr_status read_format(tsr_tvm_call *call, int32_t index, tsr_sharding_format *out)
{
    const char *name;
    *out = TSR_SHARDING_TESSERA;
    if (!tsr_tvm_given(call, index))
        return TSR_OK;
    TSR_TRY(tsr_tvm_text(call, index, "format", &name));
    return tsr_sharding_format_parse(name, out);
}

tsr_status tsr_tvm_layout(tsr_tvm_call *call)
{
    const char *mesh_text, *text;
    int64_t shape[TSR_MAX_DIMS];
    int ndim = 0;
    tsr_dtype dtype;
    tsr_sharding_format format;
    tsr_mesh *mesh;
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_tvm_text(call, 0, "mesh", &mesh_text));
    TSR_TRY(tsr_tvm_sizes(call, 1, "shape", &ndim, shape));
    TSR_TRY(tsr_tvm_dtype(call, 2, "dtype", &dtype));
    TSR_TRY(tsr_tvm_text(call, 3, "text", &text));
    TSR_TRY(read_format(call, 4, &format));
    TSR_TRY(tsr_mesh_parse(NULL, NULL, mesh_text, &mesh));
    const tsr_status status = tsr_sharding_parse(format, text, mesh, ndim, shape, dtype, &layout);
    tsr_mesh_destroy(mesh);
    return status == TSR_OK ? tsr_tvm_return_object(call, TSR_TVM_LAYOUT, layout, destroy_layout) : status;
}

static tsr_status read_layout(tsr_tvm_call *call, tsr_layout **out)
{
    void *content;
    TSR_TRY(tsr_tvm_object(call, 0, "layout", TSR_TVM_LAYOUT, &content));
    *out = content;
    return TSR_OK;
}

tsr_status tsr_tvm_print_layout(tsr_tvm_call *call)
{
    tsr_layout *layout;
    tsr_sharding_format format;
    size_t length;
    TSR_TRY(read_layout(call, &layout));
    TSR_TRY(read_format(call, 1, &format));
    TSR_TRY(tsr_sharding_print(layout, format, NULL, 0, &length));
    char *const text = malloc(length + 1);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for %zu bytes of text", call->name, length + 1);
    tsr_status status = tsr_sharding_print(layout, format, text, length + 1, &length);
    if (status == TSR_OK)
        status = tsr_tvm_return_text(call, text);
    free(text);
    return status;
}

/* Shape and offset of a rank's part. */
static tsr_status read_local(tsr_tvm_call *call, int *ndim, int64_t *shape, int64_t *offset)
{
    tsr_layout *layout;
    int64_t rank, coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(read_layout(call, &layout));
    TSR_TRY(tsr_tvm_integer(call, 1, "rank", &rank));
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(layout), rank, coordinate, &inside));
    if (!inside)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank %lld is not in the layout's mesh", call->name,
                              (long long)rank);
    *ndim = tsr_layout_ndim(layout);
    return tsr_layout_local(layout, coordinate, shape, offset);
}

tsr_status tsr_tvm_local_shape(tsr_tvm_call *call)
{
    int ndim = 0;
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(read_local(call, &ndim, shape, NULL));
    return tsr_tvm_return_sizes(call, ndim, shape);
}

tsr_status tsr_tvm_local_offset(tsr_tvm_call *call)
{
    int ndim = 0;
    int64_t offset[TSR_MAX_DIMS];
    TSR_TRY(read_local(call, &ndim, NULL, offset));
    return tsr_tvm_return_sizes(call, ndim, offset);
}
