#include "device_running.h"

#include "wholes.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const tsr_tensor *t)
{
    int64_t count = 0;
    if (t->ndim < 0 || tsr_tensor_count(t, &count) != TSR_OK)
        return 0;
    return (size_t)count * tsr_dtype_bytes(t->dtype);
}

/* Copies a shard without gaps between the host and `device`, and waits. */
static tsr_status copy(const device_run *r, tsr_device device, void *dst, const void *src, size_t bytes,
                       tsr_copy_kind kind)
{
    if (bytes == 0)
        return TSR_OK;
    if (!device.driver) {
        memcpy(dst, src, bytes);
        return TSR_OK;
    }
    TSR_TRY(r->table->copy(r->self, r->device.index, dst, src, bytes, kind, NULL));
    return r->table->stream_synchronize ? r->table->stream_synchronize(r->self, r->device.index, NULL) : TSR_OK;
}

/* Makes the dtensor of a name on the device that takes it. */
static tsr_status make_named(device_run *r, const tsr_mesh *mesh, const tsr_layout *layout, int seed, int64_t limit,
                             tsr_device device, tsr_dtensor **out)
{
    tsr_dtensor *host;
    TSR_TRY(whole_make(layout, mesh, seed, limit, &host));
    if (!device.driver) {
        *out = host;
        return TSR_OK;
    }
    tsr_status status = tsr_dtensor_create(tsr_dtensor_layout(host), device, out);
    if (status == TSR_OK) {
        const tsr_tensor from = tsr_dtensor_to_local(host), to = tsr_dtensor_to_local(*out);
        status = copy(r, device, to.data, from.data, bytes_of(&from), TSR_COPY_FROM_HOST);
    }
    tsr_dtensor_destroy(host);
    return status;
}

static tsr_status give(device_run *r, const tsr_program *program, const tsr_mesh *mesh, int64_t limit)
{
    int seed = 0;
    size_t input = 0;
    for (tsr_value v = 0; tsr_value_layout(program, v); v++) {
        const char *const name = tsr_value_name(program, v);
        const char *const wanted = tsr_executable_input_name(r->x, input);
        if (!name)
            continue;
        const bool is_input = wanted && strcmp(wanted, name) == 0;
        const tsr_device device = is_input ? tsr_executable_input_device(r->x, input) : r->device;
        tsr_dtensor **const made = &r->named[seed++];
        TSR_TRY(make_named(r, mesh, tsr_value_layout(program, v), seed, limit, device, made));
        if (is_input)
            r->inputs[input++] = tsr_dtensor_to_local(*made);
        else
            TSR_TRY(tsr_executable_bind(r->x, name, *made));
    }
    for (size_t i = 0; i < tsr_executable_output_count(r->x); i++) {
        TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(r->x, i), r->device, &r->made[i]));
        r->outputs[i] = tsr_dtensor_to_local(r->made[i]);
    }
    return TSR_OK;
}

tsr_status device_run_open(tsr_comm *comm, const tsr_mesh *mesh, const device_case *c, const device_running *on,
                           device_run *out)
{
    tsr_program *program;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    *out = (device_run){.on = on, .comm = comm};
    if (on)
        out->device = (tsr_device){on->driver, tsr_comm_rank(comm) % on->devices};
    out->table = tsr_device_driver_table(out->device.driver, &out->self);
    if (out->table->stream_create && on)
        TSR_TRY(out->table->stream_create(out->self, out->device.index, &out->stream));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &program));
    c->record(program, mesh, c->arg);
    options.device = out->device;
    tsr_status status = tsr_compile(program, &options, &out->x);
    if (status == TSR_OK)
        status = give(out, program, mesh, c->limit);
    tsr_program_destroy(program);
    return status;
}

tsr_status device_run_prepare(device_run *r)
{
    TSR_TRY(tsr_executable_prepare(r->x, r->comm));
    r->bytes = tsr_executable_workspace_bytes(r->x);
    if (r->on)
        return r->table->alloc(r->self, r->device.index, r->bytes + 64, NULL, &r->workspace);
    r->workspace = aligned_alloc(64, r->bytes + 64);
    return TSR_OK;
}

/* Makes a tensor in the same memory of the local shape of a layout. */
static tsr_status reshape(const device_run *r, const tsr_layout *layout, tsr_tensor *t)
{
    int64_t shape[TSR_MAX_DIMS], coordinate[TSR_MAX_DIMS];
    int inside;
    const tsr_device device = t->device;
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(layout), tsr_comm_rank(r->comm), coordinate, &inside));
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, NULL));
    *t = tsr_tensor_contiguous(t->data, t->dtype, t->ndim, shape);
    t->device = device;
    return TSR_OK;
}

tsr_status device_run_set_length(device_run *r, const char *name, int64_t length)
{
    TSR_TRY(tsr_executable_set_length(r->x, name, length));
    for (size_t i = 0; i < tsr_executable_input_count(r->x); i++)
        TSR_TRY(reshape(r, tsr_executable_input_layout(r->x, i), &r->inputs[i]));
    for (size_t i = 0; i < tsr_executable_output_count(r->x); i++)
        TSR_TRY(reshape(r, tsr_executable_output_layout(r->x, i), &r->outputs[i]));
    return tsr_executable_workspace_bytes(r->x) <= r->bytes ? TSR_OK
                                                            : tsr_status_set(TSR_ERROR_INTERNAL, "workspace grew");
}

tsr_status device_run_enqueue(device_run *r)
{
    return tsr_executable_run(r->x, r->comm, r->inputs, r->outputs, r->workspace, r->bytes, r->stream);
}

tsr_status device_run_finish(const device_run *r)
{
    return r->stream ? r->table->stream_synchronize(r->self, r->device.index, r->stream) : TSR_OK;
}

void device_run_close(device_run *r)
{
    for (int i = 0; i < DEVICE_RUN_MOST; i++) {
        tsr_dtensor_destroy(r->named[i]);
        tsr_dtensor_destroy(r->made[i]);
    }
    tsr_executable_destroy(r->x);
    if (!r->on)
        free(r->workspace);
    else if (r->workspace)
        r->table->free(r->self, r->device.index, r->workspace, r->bytes + 64, NULL);
    if (r->stream)
        r->table->stream_destroy(r->self, r->device.index, r->stream);
}

static tsr_status compare(const device_case *c, const char *name, const device_run *a, tsr_tensor got,
                          const device_run *b, tsr_tensor wanted)
{
    static _Thread_local unsigned char bytes[2][1 << 14];
    const size_t count = bytes_of(&got);
    EXPECT(count == bytes_of(&wanted) && count <= sizeof bytes[0], "%s: %s has %zu bytes", c->name, name, count);
    TSR_TRY(copy(a, got.device, bytes[0], got.data, count, TSR_COPY_TO_HOST));
    TSR_TRY(copy(b, wanted.device, bytes[1], wanted.data, count, TSR_COPY_TO_HOST));
    for (size_t i = 0; i < count; i++)
        EXPECT(bytes[0][i] == bytes[1][i], "%s: byte %zu of %s is %02x instead of %02x", c->name, i, name, bytes[0][i],
               bytes[1][i]);
    return TSR_OK;
}

tsr_status device_run_compare(const device_case *c, const device_run *a, const device_run *b)
{
    const size_t count = tsr_executable_output_count(a->x);
    for (size_t i = 0; i < count; i++)
        TSR_TRY(compare(c, tsr_executable_output_name(a->x, i), a, a->outputs[i], b, b->outputs[i]));
    for (int i = 0; i < DEVICE_RUN_MOST && a->named[i]; i++)
        TSR_TRY(compare(c, "a parameter or state", a, tsr_dtensor_to_local(a->named[i]), b,
                        tsr_dtensor_to_local(b->named[i])));
    return TSR_OK;
}

static tsr_status run_twice(device_run *r)
{
    TSR_TRY(device_run_enqueue(r));
    const int64_t before = r->on && r->on->held_up ? r->on->held_up() : 0;
    TSR_TRY(device_run_enqueue(r));
    const int64_t after = r->on && r->on->held_up ? r->on->held_up() : 0;
    EXPECT(before == after, "a run allocated or waited");
    return device_run_finish(r);
}

tsr_status device_check(tsr_comm *comm, const char *text, const device_case *c, const device_running *on)
{
    tsr_mesh *mesh;
    device_run runs[2] = {{.on = NULL}, {.on = NULL}};
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    for (int i = 0; i < 2 && status == TSR_OK; i++) {
        status = device_run_open(comm, mesh, c, i ? on : NULL, &runs[i]);
        if (status == TSR_OK)
            status = device_run_prepare(&runs[i]);
        if (status == TSR_OK)
            status = run_twice(&runs[i]);
    }
    if (status == TSR_OK)
        status = device_run_compare(c, &runs[1], &runs[0]);
    else
        status = tsr_status_set(status, "%s: %.900s", c->name, tsr_status_message());
    device_run_close(&runs[0]);
    device_run_close(&runs[1]);
    tsr_mesh_destroy(mesh);
    return status;
}
