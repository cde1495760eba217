#include "layers.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tsr_dtype own_or(tsr_dtype own, tsr_dtype other)
{
    return own ? own : other;
}

tsr_dtype layer_y_dtype(const layer *l)
{
    const tsr_dtype w = own_or(l->w_dtype, l->dtype), b = l->b ? own_or(l->b_dtype, l->dtype) : l->dtype;
    return w == l->dtype && b == l->dtype ? l->dtype : TSR_F32;
}

const char *layer_print(const layer *l, char *text)
{
    size_t length = (size_t)snprintf(text, LAYER_TEXT, "mesh %s x %s ", l->mesh, tsr_dtype_name(l->dtype));
    if (l->w_dtype || l->b_dtype)
        length += (size_t)snprintf(text + length, LAYER_TEXT - length, "(w %s, b %s) ",
                                   tsr_dtype_name(own_or(l->w_dtype, l->dtype)),
                                   tsr_dtype_name(own_or(l->b_dtype, l->dtype)));
    for (int dim = 0; dim < l->x_ndim; dim++)
        length +=
            (size_t)snprintf(text + length, LAYER_TEXT - length, "%s%lld", dim ? "x" : "", (long long)l->x_shape[dim]);
    snprintf(text + length, LAYER_TEXT - length, " %s w %lldx%lld %s b %s gap %d", l->x, (long long)l->out,
             (long long)l->x_shape[l->x_ndim - 1], l->w, l->b ? l->b : "none", l->gap);
    return text;
}

tsr_status layer_failed(const layer *l, const char *what)
{
    char text[LAYER_TEXT], sentence[512];
    snprintf(sentence, sizeof sentence, "%s", tsr_status_message());
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s: %s", what, layer_print(l, text), sentence);
}

/* An integer from -3 to 3, by a multiplicative hash of the index. */
static double small_integer(int64_t index, uint64_t seed)
{
    const uint64_t mixed = ((uint64_t)index + seed * UINT64_C(1000003)) * UINT64_C(0x9e3779b97f4a7c15);
    return (double)((mixed >> 40) % 7) - 3;
}

static double *integers(int64_t count, uint64_t seed)
{
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; values && i < count; i++)
        values[i] = small_integer(i, seed);
    return values;
}

/* y (m,o) = x (m,k) w^T (k,o) + b; dx = dy w; dw = dy^T x; db = sums of dy's columns; all by plain
 * loops. */
static void compute_reference(layer_reference *r)
{
    for (int64_t i = 0; i < r->rows * r->out; i++) {
        const int64_t row = i / r->out, o = i % r->out;
        r->y[i] = r->b ? r->b[o] : 0;
        for (int64_t k = 0; k < r->in; k++)
            r->y[i] += r->x[row * r->in + k] * r->w[o * r->in + k];
    }
    for (int64_t i = 0; i < r->rows * r->in; i++) {
        r->dx[i] = 0;
        for (int64_t o = 0; o < r->out; o++)
            r->dx[i] += r->dy[i / r->in * r->out + o] * r->w[o * r->in + i % r->in];
    }
    for (int64_t i = 0; i < r->out * r->in; i++) {
        r->dw[i] = 0;
        for (int64_t row = 0; row < r->rows; row++)
            r->dw[i] += r->dy[row * r->out + i / r->in] * r->x[row * r->in + i % r->in];
    }
    for (int64_t o = 0; o < r->out; o++) {
        r->db[o] = 0;
        for (int64_t row = 0; row < r->rows; row++)
            r->db[o] += r->dy[row * r->out + o];
    }
}

tsr_status layer_reference_create(const layer *l, layer_reference *out)
{
    layer_reference r = {.rows = 1, .in = l->x_shape[l->x_ndim - 1], .out = l->out};
    for (int dim = 0; dim < l->x_ndim - 1; dim++)
        r.rows *= l->x_shape[dim];
    r.x = integers(r.rows * r.in, 1);
    r.w = integers(r.out * r.in, 2);
    r.b = l->b ? integers(r.out, 3) : NULL;
    r.dy = integers(r.rows * r.out, 4);
    r.y = integers(r.rows * r.out, 0);
    r.dx = integers(r.rows * r.in, 0);
    r.dw = integers(r.out * r.in, 0);
    r.db = integers(r.out, 0);
    *out = r;
    if (!r.x || !r.w || (l->b && !r.b) || !r.dy || !r.y || !r.dx || !r.dw || !r.db)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the reference");
    compute_reference(out);
    return TSR_OK;
}

void layer_reference_destroy(layer_reference *r)
{
    double *const arrays[] = {r->x, r->w, r->b, r->dy, r->y, r->dx, r->dw, r->db};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
}

double layer_get(const tsr_tensor *t, int64_t i)
{
    void *self;
    double value = 0;
    const char *at = (const char *)t->data + (size_t)i * tsr_dtype_bytes(t->dtype);
    tsr_device_driver_table(NULL, &self)->convert(self, 0, &value, TSR_F64, at, t->dtype, 1, NULL);
    return value;
}

static void set(const tsr_tensor *t, int64_t i, double value)
{
    void *self;
    char *at = (char *)t->data + (size_t)i * tsr_dtype_bytes(t->dtype);
    tsr_device_driver_table(NULL, &self)->convert(self, 0, at, t->dtype, &value, TSR_F64, 1, NULL);
}

int64_t layer_offset(const tsr_tensor *t, int64_t i)
{
    int64_t offset = 0;
    for (int dim = t->ndim - 1; dim >= 0; dim--) {
        offset += i % t->shape[dim] * t->strides[dim];
        i /= t->shape[dim];
    }
    return offset;
}

tsr_device layer_device(const layer *l, const tsr_comm *comm)
{
    return l->driver ? (tsr_device){l->driver, tsr_comm_rank(comm) % l->devices} : tsr_device_host();
}

static const tsr_device_table *table_of(tsr_device device, void **self)
{
    return tsr_device_driver_table(device.driver, self);
}

tsr_status layer_memory_create(tsr_device device, size_t bytes, layer_memory *out)
{
    void *self, *data;
    TSR_TRY(table_of(device, &self)->alloc(self, device.index, bytes + 1, NULL, &data));
    *out = (layer_memory){data, bytes + 1, device};
    return TSR_OK;
}

void layer_memory_destroy(layer_memory *memory)
{
    void *self;
    if (memory->data)
        table_of(memory->device, &self)->free(self, memory->device.index, memory->data, memory->bytes, NULL);
}

/* The number of elements from the tensor's first to its last in memory, gaps included. */
static size_t extent_of(const tsr_tensor *t)
{
    size_t last = 0;
    for (int dim = 0; dim < t->ndim; dim++) {
        if (t->shape[dim] == 0)
            return 0;
        last += (size_t)((t->shape[dim] - 1) * t->strides[dim]);
    }
    return last + 1;
}

/* Replaces a dtensor by one whose local tensor lies in `memory` on the host, with the layer's
 * strides. */
static tsr_status spread(const layer *l, layer_memory *memory, tsr_dtensor **tensor)
{
    const tsr_tensor from = tsr_dtensor_to_local(*tensor);
    tsr_tensor to = from;
    int64_t stride = l->gap ? l->gap : 1, count;
    for (int dim = to.ndim - 1; dim >= 0; dim--) {
        to.strides[dim] = stride;
        stride = stride * to.shape[dim] + (l->gap ? 1 : 0);
    }
    TSR_TRY(tsr_tensor_count(&from, &count));
    TSR_TRY(layer_memory_create(tsr_device_host(), extent_of(&to) * tsr_dtype_bytes(to.dtype), memory));
    to.data = memory->data;
    memset(to.data, 0, memory->bytes);
    for (int64_t i = 0; i < count; i++)
        set(&to, layer_offset(&to, i), layer_get(&from, i));
    tsr_dtensor *strided;
    TSR_TRY(tsr_dtensor_from_local(&to, tsr_dtensor_layout(*tensor), NULL, &strided));
    tsr_dtensor_destroy(*tensor);
    *tensor = strided;
    return TSR_OK;
}

/* Replaces a dtensor by one whose local tensor has the same bytes on this rank's device. */
static tsr_status upload(const layer *l, layer_memory *memory, tsr_dtensor **tensor)
{
    if (!l->driver)
        return TSR_OK;
    void *self;
    tsr_dtensor *there;
    layer_memory uploaded;
    tsr_tensor t = tsr_dtensor_to_local(*tensor);
    const tsr_device device = layer_device(l, tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(*tensor))));
    const tsr_device_table *table = table_of(device, &self);
    const size_t bytes = extent_of(&t) * tsr_dtype_bytes(t.dtype);
    TSR_TRY(layer_memory_create(device, bytes, &uploaded));
    TSR_TRY(table->copy(self, device.index, uploaded.data, t.data, bytes, TSR_COPY_FROM_HOST, NULL));
    TSR_TRY(table->stream_synchronize(self, device.index, NULL));
    t.data = uploaded.data;
    t.device = device;
    TSR_TRY(tsr_dtensor_from_local(&t, tsr_dtensor_layout(*tensor), NULL, &there));
    tsr_dtensor_destroy(*tensor);
    layer_memory_destroy(memory);
    *tensor = there;
    *memory = uploaded;
    return TSR_OK;
}

/* Distributes `values` to dtensors on the host, with the layer's gaps. */
static tsr_status distribute(const layer *l, tsr_dtype dtype, const tsr_mesh *mesh, const double *values, int ndim,
                             const int64_t *shape, const tsr_placement *placements, layer_memory *memory,
                             tsr_dtensor **out)
{
    int64_t count = 1;
    for (int dim = 0; dim < ndim; dim++)
        count *= shape[dim];
    void *data = malloc((size_t)(count + 1) * sizeof(double));
    if (!data)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a global tensor");
    const tsr_tensor global = tsr_tensor_contiguous(data, dtype, ndim, shape);
    for (int64_t i = 0; i < count; i++)
        set(&global, i, values[i]);
    const tsr_status status = tsr_distribute_tensor(&global, mesh, placements, NULL, out);
    free(data);
    return status == TSR_OK && l->gap ? spread(l, memory, out) : status;
}

tsr_status layer_distribute(const layer *l, const tsr_mesh *mesh, const double *values, int ndim, const int64_t *shape,
                            const tsr_placement *placements, layer_memory *memory, tsr_dtensor **out)
{
    TSR_TRY(distribute(l, layer_y_dtype(l), mesh, values, ndim, shape, placements, memory, out));
    return upload(l, memory, out);
}

/* Adds values at coordinate 0 of the first Partial dim and subtracts them at coordinate 1, which
 * leaves the sum and the mean as they are. */
static tsr_status disguise_partial(const tsr_mesh *mesh, const tsr_placement *placements, const tsr_dtensor *tensor)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(mesh, coordinate, &inside));
    int dim = 0;
    while (dim < tsr_mesh_ndim(mesh) && (placements[dim].kind != TSR_PARTIAL || tsr_mesh_size(mesh, dim) == 1))
        dim++;
    if (!inside || dim == tsr_mesh_ndim(mesh) || coordinate[dim] > 1)
        return TSR_OK;
    const tsr_tensor local = tsr_dtensor_to_local(tensor);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        set(&local, layer_offset(&local, i),
            layer_get(&local, layer_offset(&local, i)) + (coordinate[dim] == 0 ? 1 : -1) * (double)(i % 3 + 1));
    return TSR_OK;
}

static tsr_status create_operand(const layer *l, tsr_dtype dtype, const tsr_mesh *mesh, const char *text,
                                 const double *values, int ndim, const int64_t *shape, layer_memory *memory,
                                 tsr_dtensor **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t numbers[LAYER_TEXT];
    int count;
    TSR_TRY(tsr_placements_parse(text, placements, TSR_MAX_DIMS, &count, numbers, LAYER_TEXT, NULL));
    TSR_TRY(distribute(l, dtype, mesh, values, ndim, shape, placements, memory, out));
    TSR_TRY(disguise_partial(mesh, placements, *out));
    return upload(l, memory, out);
}

static tsr_status create_operands(const layer *l, const layer_reference *r, layer_tensors *out)
{
    const int64_t w_shape[] = {l->out, r->in};
    TSR_TRY(create_operand(l, l->dtype, out->mesh, l->x, r->x, l->x_ndim, l->x_shape, &out->memory[0], &out->x));
    TSR_TRY(
        create_operand(l, own_or(l->w_dtype, l->dtype), out->mesh, l->w, r->w, 2, w_shape, &out->memory[1], &out->w));
    return l->b ? create_operand(l, own_or(l->b_dtype, l->dtype), out->mesh, l->b, r->b, 1, w_shape, &out->memory[2],
                                 &out->b)
                : TSR_OK;
}

tsr_status layer_tensors_create(tsr_comm *comm, const layer *l, const layer_reference *reference, layer_tensors *out)
{
    layer_tensors tensors = {0};
    tsr_status status = tsr_mesh_parse(comm, NULL, l->mesh, &tensors.mesh);
    if (status == TSR_OK)
        status = create_operands(l, reference, &tensors);
    if (status == TSR_OK)
        *out = tensors;
    else
        layer_tensors_destroy(&tensors);
    return status == TSR_OK ? TSR_OK : layer_failed(l, "operands");
}

void layer_tensors_destroy(layer_tensors *tensors)
{
    tsr_dtensor_destroy(tensors->b);
    tsr_dtensor_destroy(tensors->w);
    tsr_dtensor_destroy(tensors->x);
    tsr_mesh_destroy(tensors->mesh);
    for (int i = 0; i < 3; i++)
        layer_memory_destroy(&tensors->memory[i]);
}

int layer_y_shape(const layer *l, int64_t *shape)
{
    memcpy(shape, l->x_shape, sizeof l->x_shape);
    shape[l->x_ndim - 1] = l->out;
    return l->x_ndim;
}

/* Copies a tensor to one on the host, whose memory is `*memory`; a tensor on the host is used as it
 * is. */
static tsr_status download(const tsr_tensor *t, layer_memory *memory, tsr_tensor *out)
{
    void *self;
    const tsr_device_table *table = table_of(t->device, &self);
    const size_t bytes = extent_of(t) * tsr_dtype_bytes(t->dtype);
    *out = *t;
    if (!t->device.driver)
        return TSR_OK;
    TSR_TRY(layer_memory_create(tsr_device_host(), bytes, memory));
    out->data = memory->data;
    out->device = tsr_device_host();
    TSR_TRY(table->copy(self, t->device.index, out->data, t->data, bytes, TSR_COPY_TO_HOST, NULL));
    return table->stream_synchronize(self, t->device.index, NULL);
}

static tsr_status compare(const layer *l, const char *what, const tsr_tensor *given, const double *values,
                          double factor)
{
    char text[LAYER_TEXT];
    int64_t count;
    TSR_TRY(tsr_tensor_count(given, &count));
    for (int64_t i = 0; i < count; i++) {
        if (layer_get(given, i) != factor * values[i])
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s: element %lld is %g, not %g", what,
                                  layer_print(l, text), (long long)i, layer_get(given, i), factor * values[i]);
    }
    return TSR_OK;
}

tsr_status layer_expect_times(const layer *l, const char *what, const tsr_dtensor *tensor, const double *values,
                              double factor)
{
    tsr_dtensor *full;
    layer_memory memory = {0};
    tsr_tensor given;
    if (tsr_full_tensor(tensor, &full) != TSR_OK)
        return layer_failed(l, what);
    const tsr_tensor local = tsr_dtensor_to_local(full);
    tsr_status status = download(&local, &memory, &given);
    if (status == TSR_OK)
        status = compare(l, what, &given, values, factor);
    layer_memory_destroy(&memory);
    tsr_dtensor_destroy(full);
    return status;
}

tsr_status layer_expect(const layer *l, const char *what, const tsr_dtensor *tensor, const double *values)
{
    return layer_expect_times(l, what, tensor, values, 1);
}

static tsr_status expect_layout(const layer *l, const char *what, const tsr_layout *given,
                                const tsr_placement *placements)
{
    tsr_layout *wanted;
    TSR_TRY(tsr_layout_with(given, placements, &wanted));
    const int equal = tsr_layout_equal(given, wanted);
    char now[LAYER_TEXT], then[LAYER_TEXT], text[LAYER_TEXT];
    tsr_layout_print(given, now, sizeof now);
    tsr_layout_print(wanted, then, sizeof then);
    tsr_layout_destroy(wanted);
    return equal ? TSR_OK
                 : tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s: the layout is %s, not %s", what, layer_print(l, text),
                                  now, then);
}

void layer_wanted(const tsr_layout *own, bool replicated, bool scattered, tsr_placement *out)
{
    bool scatter = scattered;
    for (int dim = 0; dim < tsr_mesh_ndim(tsr_layout_mesh(own)); dim++) {
        const tsr_placement *p = &tsr_layout_placements(own)[dim];
        out[dim] = p->kind == TSR_PARTIAL || replicated ? tsr_replicate() : *p;
        if (p->kind == TSR_PARTIAL && scatter) {
            out[dim] = tsr_shard(0);
            scatter = false;
        }
    }
}

static tsr_status check_forward_into(const layer *l, const layer_reference *r, const layer_tensors *t, const char *what,
                                     const tsr_placement *placements)
{
    tsr_dtensor *y;
    if (tsr_linear(t->x, t->w, t->b, placements, &y) != TSR_OK)
        return layer_failed(l, what);
    tsr_status status = placements ? expect_layout(l, what, tsr_dtensor_layout(y), placements) : TSR_OK;
    if (status == TSR_OK)
        status = layer_expect(l, what, y, r->y);
    tsr_dtensor_destroy(y);
    return status;
}

static tsr_status check_forward(const layer *l, const layer_reference *r, const layer_tensors *t, const tsr_layout *own)
{
    tsr_placement placements[TSR_MAX_DIMS];
    TSR_TRY(check_forward_into(l, r, t, "y", NULL));
    layer_wanted(own, true, false, placements);
    TSR_TRY(check_forward_into(l, r, t, "y replicated", placements));
    layer_wanted(own, false, true, placements);
    return check_forward_into(l, r, t, "y scattered", placements);
}

/* The placements in which the rules leave dx, dw and db: Partial where a dim that is summed over is
 * cut, or where the other operand is Partial. */
static void own_placements(const layer_tensors *t, const tsr_layout *own, tsr_placement *dx, tsr_placement *dw,
                           tsr_placement *db)
{
    const int last = tsr_layout_ndim(own) - 1;
    for (int dim = 0; dim < tsr_mesh_ndim(t->mesh); dim++) {
        const tsr_placement *x = &tsr_layout_placements(tsr_dtensor_layout(t->x))[dim];
        const tsr_placement *w = &tsr_layout_placements(tsr_dtensor_layout(t->w))[dim];
        const tsr_placement *y = &tsr_layout_placements(own)[dim];
        const bool cuts_batch = x->kind == TSR_SHARD && x->dim < last, cuts_out = w->kind == TSR_SHARD && w->dim == 0;
        dx[dim] = w->kind == TSR_PARTIAL ? *w
                  : cuts_out             ? tsr_partial(TSR_SUM)
                  : x->kind == TSR_SHARD ? *x
                                         : tsr_replicate();
        dw[dim] = x->kind == TSR_PARTIAL ? *x
                  : cuts_batch           ? tsr_partial(TSR_SUM)
                  : w->kind == TSR_SHARD ? *w
                                         : tsr_replicate();
        db[dim] = cuts_batch ? tsr_partial(TSR_SUM) : tsr_replicate();
        if (cuts_out) {
            db[dim] = *y;
            db[dim].dim = 0;
        }
    }
}

/* Adds the gradients of another backward to dw and db, and overwrites dx. */
static tsr_status check_accumulated(const layer *l, const layer_reference *r, const layer_tensors *t,
                                    const tsr_dtensor *dy, tsr_dtensor *dx, tsr_dtensor *dw, tsr_dtensor *db)
{
    if (tsr_linear_backward_into(t->x, t->w, t->b, dy, TSR_ADD_DW | TSR_ADD_DB, dx, dw, db) != TSR_OK)
        return layer_failed(l, "gradients into others");
    TSR_TRY(layer_expect(l, "dx again", dx, r->dx));
    TSR_TRY(layer_expect_times(l, "dw twice", dw, r->dw, 2));
    return db ? layer_expect_times(l, "db twice", db, r->db, 2) : TSR_OK;
}

static tsr_status check_gradients(const layer *l, const layer_reference *r, const layer_tensors *t,
                                  const tsr_dtensor *dy, const tsr_placement *dx_placements,
                                  const tsr_placement *dw_placements, const tsr_placement *db_placements)
{
    tsr_dtensor *dx, *dw, *db = NULL;
    if (tsr_linear_backward(t->x, t->w, t->b, dy, dx_placements, dw_placements, db_placements, &dx, &dw,
                            t->b ? &db : NULL) != TSR_OK)
        return layer_failed(l, dx_placements ? "gradients as the rule leaves them" : "gradients");
    tsr_status status = dx_placements ? expect_layout(l, "dx", tsr_dtensor_layout(dx), dx_placements) : TSR_OK;
    if (status == TSR_OK && dw_placements)
        status = expect_layout(l, "dw", tsr_dtensor_layout(dw), dw_placements);
    if (status == TSR_OK && db && db_placements)
        status = expect_layout(l, "db", tsr_dtensor_layout(db), db_placements);
    if (status == TSR_OK)
        status = layer_expect(l, "dx", dx, r->dx);
    if (status == TSR_OK)
        status = layer_expect(l, "dw", dw, r->dw);
    if (status == TSR_OK && db)
        status = layer_expect(l, "db", db, r->db);
    if (status == TSR_OK)
        status = check_accumulated(l, r, t, dy, dx, dw, db);
    tsr_dtensor_destroy(db);
    tsr_dtensor_destroy(dw);
    tsr_dtensor_destroy(dx);
    return status;
}

static tsr_status check_default_layouts(const layer *l, const layer_tensors *t, const tsr_dtensor *dy)
{
    tsr_dtensor *dx, *dw;
    tsr_layout *x_gradient, *w_gradient;
    TSR_TRY(tsr_linear_backward(t->x, t->w, t->b, dy, NULL, NULL, NULL, &dx, &dw, NULL));
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(t->x), &x_gradient));
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(t->w), &w_gradient));
    tsr_status status = expect_layout(l, "dx by default", tsr_dtensor_layout(dx), tsr_layout_placements(x_gradient));
    if (status == TSR_OK)
        status = expect_layout(l, "dw by default", tsr_dtensor_layout(dw), tsr_layout_placements(w_gradient));
    tsr_layout_destroy(w_gradient);
    tsr_layout_destroy(x_gradient);
    tsr_dtensor_destroy(dw);
    tsr_dtensor_destroy(dx);
    return status;
}

static tsr_status check_backward(const layer *l, const layer_reference *r, const layer_tensors *t,
                                 const tsr_layout *own)
{
    tsr_placement dx[TSR_MAX_DIMS], dw[TSR_MAX_DIMS], db[TSR_MAX_DIMS], wanted[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];
    const int ndim = layer_y_shape(l, shape);
    own_placements(t, own, dx, dw, db);
    for (int scattered = 0; scattered < 2; scattered++) {
        tsr_dtensor *dy;
        layer_memory memory = {0};
        layer_wanted(own, false, scattered, wanted);
        TSR_TRY(layer_distribute(l, t->mesh, r->dy, ndim, shape, wanted, &memory, &dy));
        tsr_status status = check_gradients(l, r, t, dy, NULL, NULL, NULL);
        if (status == TSR_OK)
            status = check_gradients(l, r, t, dy, dx, dw, db);
        if (status == TSR_OK)
            status = check_default_layouts(l, t, dy);
        tsr_dtensor_destroy(dy);
        layer_memory_destroy(&memory);
        TSR_TRY(status);
    }
    return TSR_OK;
}

tsr_status layer_check(tsr_comm *comm, const layer *l)
{
    layer_reference reference;
    layer_tensors tensors;
    tsr_layout *own;
    tsr_status status = layer_reference_create(l, &reference);
    if (status != TSR_OK)
        goto destroy_reference;
    status = layer_tensors_create(comm, l, &reference, &tensors);
    if (status != TSR_OK)
        goto destroy_reference;
    status = tsr_linear_propagate(tsr_dtensor_layout(tensors.x), tsr_dtensor_layout(tensors.w),
                                  tensors.b ? tsr_dtensor_layout(tensors.b) : NULL, &own);
    if (status != TSR_OK) {
        status = layer_failed(l, "propagation");
        goto destroy_tensors;
    }
    status = check_forward(l, &reference, &tensors, own);
    if (status == TSR_OK)
        status = check_backward(l, &reference, &tensors, own);
    if (status == TSR_OK)
        status = layer_check_plans(comm, l, &reference, &tensors, own);
    tsr_layout_destroy(own);
destroy_tensors:
    layer_tensors_destroy(&tensors);
destroy_reference:
    layer_reference_destroy(&reference);
    return status;
}

void layers_run(int nranks, tsr_rank_main *main, void *arg)
{
    const tsr_status status = tsr_threads_run(nranks, main, arg, NULL);
    if (status != TSR_OK)
        fail_msg("on %d ranks: %s: %s", nranks, tsr_status_name(status), tsr_status_message());
}
