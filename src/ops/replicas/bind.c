/* What replicas are given for several calls. */
#include "ops/programs/executable.h"
#include "ops/replicas/describe.h"
#include "ops/replicas/threads.h"

#include <tessera/sys/status.h>

#include <string.h>

#define CALL "tsr_replicas_bind"

static tsr_status check_gradient(const tsr_replica_parameter *parameter, const tsr_tensor *gradient)
{
    const int ndim = tsr_layout_ndim(parameter->layout);
    int64_t count;
    TSR_TRY(tsr_tensor_count(gradient, &count));
    if (parameter->output < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": the program has no output \"d.%.200s\" to add to gradient; record it by "
                                   "tsr_gradients() and tsr_output(), or give NULL",
                              parameter->name);
    if (gradient->ndim != ndim || (ndim && memcmp(gradient->shape, tsr_layout_shape(parameter->layout),
                                                  (size_t)ndim * sizeof gradient->shape[0]) != 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": gradient has another shape than \"%.200s\"", parameter->name);
    if (!tsr_replicas_add_dtype(gradient->dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": gradient of \"%.200s\" is %s, but must be f64, f32, f16 or bf16", parameter->name,
                              tsr_dtype_name(gradient->dtype));
    if (gradient->device.driver || !tsr_tensor_is_contiguous(gradient) || (!gradient->data && count))
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": gradient of \"%.200s\" %s", parameter->name,
                              gradient->device.driver ? "lies on a device, but must lie on the host"
                              : gradient->data        ? "has strides, but must be contiguous"
                                                      : "has no data");
    return TSR_OK;
}

/* The layout of a parameter on a rank's own mesh, which is like the program's. */
static tsr_status make_layout(const tsr_replica *replica, const tsr_layout *layout, tsr_layout **out)
{
    const tsr_mesh *const like = tsr_layout_mesh(layout);
    const char *names[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];
    tsr_mesh *mesh;
    for (int dim = 0; dim < tsr_mesh_ndim(like); dim++) {
        names[dim] = tsr_mesh_name(like, dim);
        shape[dim] = 1;
    }
    TSR_TRY(tsr_mesh_create(replica->comm, tsr_mesh_ndim(like), shape, names[0] ? names : NULL, NULL, &mesh));
    const tsr_status status = tsr_layout_create(mesh, tsr_layout_placements(layout), tsr_layout_ndim(layout),
                                                tsr_layout_shape(layout), tsr_layout_dtype(layout), out);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Gives one rank a parameter's value, where it lies. */
static tsr_status bind_value(const tsr_replica *replica, const tsr_replica_parameter *parameter,
                             const tsr_tensor *value)
{
    tsr_layout *layout;
    tsr_dtensor *tensor;
    TSR_TRY(make_layout(replica, parameter->layout, &layout));
    tsr_status status = tsr_dtensor_from_local(value, layout, NULL, &tensor);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    status = tsr_executable_bind(replica->executable, parameter->name, tensor);
    tsr_dtensor_destroy(tensor);
    return status;
}

static tsr_status bind(tsr_replicas *r, const char *name, const tsr_tensor *value, const tsr_tensor *gradient)
{
    size_t at = 0;
    if (!name || !value)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is NULL", name ? "value" : "name");
    while (at < r->parameter_count && strcmp(r->parameters[at].name, name) != 0)
        at++;
    if (at == r->parameter_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": the program has no parameter \"%.200s\"", name);
    tsr_replica_parameter *const parameter = &r->parameters[at];
    if (gradient)
        TSR_TRY(check_gradient(parameter, gradient));
    for (int i = 0; i < r->ranks; i++)
        TSR_TRY(bind_value(&r->replicas[i], parameter, value));
    parameter->gradient = gradient ? *gradient : (tsr_tensor){0};
    return TSR_OK;
}

tsr_status tsr_replicas_bind(tsr_replicas *replicas, const char *name, const tsr_tensor *value,
                             const tsr_tensor *gradient)
{
    TSR_TRY(tsr_replicas_enter(replicas, CALL));
    return tsr_replicas_exit(replicas, bind(replicas, name, value, gradient));
}

/* Takes the shapes of outputs without rows, which other lengths may change. */
static void take_shapes(tsr_replicas *r)
{
    for (size_t i = 0; i < r->output_count; i++) {
        tsr_replica_port *const port = &r->outputs[i];
        const tsr_layout *const layout = tsr_executable_output_layout(r->replicas[0].executable, i);
        if (port->multiple)
            continue;
        port->own = tsr_tensor_contiguous(NULL, port->own.dtype, port->own.ndim, tsr_layout_shape(layout));
        (void)tsr_tensor_count(&port->own, &port->count);
    }
}

/* Sets a length on all ranks, or on none. */
static tsr_status set_length(tsr_replicas *r, const char *name, int64_t length)
{
    if (name && strcmp(name, r->rows) == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_replicas_set_length: \"%.64s\" counts rows, which follow from the inputs", name);
    const tsr_executable *const first = r->replicas[0].executable;
    int64_t before = 0;
    for (size_t i = 0; name && i < first->length_count; i++)
        if (strcmp(first->lengths[i].name, name) == 0)
            before = first->length[i];
    for (int i = 0; i < r->ranks; i++) {
        tsr_kept_sentence kept;
        const tsr_status status = tsr_executable_set_length(r->replicas[i].executable, name, length);
        if (status == TSR_OK)
            continue;
        tsr_status_keep(&kept);
        while (i-- > 0)
            (void)tsr_executable_set_length(r->replicas[i].executable, name, before);
        return tsr_status_restore(&kept, status);
    }
    take_shapes(r);
    return TSR_OK;
}

tsr_status tsr_replicas_set_length(tsr_replicas *replicas, const char *name, int64_t length)
{
    TSR_TRY(tsr_replicas_enter(replicas, "tsr_replicas_set_length"));
    return tsr_replicas_exit(replicas, set_length(replicas, name, length));
}

static tsr_status set_key(tsr_replicas *r, const char *name, const tsr_random_key *key)
{
    size_t at = 0;
    TSR_TRY(tsr_executable_set_key(r->replicas[0].executable, name, key));
    while (strcmp(r->key_names[at], name) != 0)
        at++;
    r->keys[at] = *key;
    r->has_key[at] = true;
    return TSR_OK;
}

tsr_status tsr_replicas_set_key(tsr_replicas *replicas, const char *name, const tsr_random_key *key)
{
    TSR_TRY(tsr_replicas_enter(replicas, "tsr_replicas_set_key"));
    return tsr_replicas_exit(replicas, set_key(replicas, name, key));
}
