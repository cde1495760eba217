/* Tests of a layer's plans, on the same tensors as the calls without plans. */
#include "layers.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The number of times that each execution is enqueued, one after the other. */
enum { TIMES = 2 };

typedef struct run {
    tsr_comm *comm;
    const layer *l;
    const layer_reference *r;
    const layer_tensors *t;
    tsr_device device;
    tsr_stream stream;
} run;

/* Waits for a stream, so that what was written on it can be read on another, where streams are not
 * ordered. */
static tsr_status settle(const run *c, tsr_stream stream)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(c->device.driver, &self);
    return table->stream_synchronize ? table->stream_synchronize(self, c->device.index, stream) : TSR_OK;
}

/* The local tensor of a dtensor, or NULL where there is none. */
static const tsr_tensor *local_of(const tsr_dtensor *tensor, tsr_tensor *out)
{
    if (!tensor)
        return NULL;
    *out = tsr_dtensor_to_local(tensor);
    return out;
}

static tsr_status execute_forward(const run *c, const tsr_linear_plan *plan, const tsr_dtensor *y,
                                  const layer_memory *workspace)
{
    tsr_tensor x, w, b, out;
    const tsr_tensor *const operands[] = {local_of(c->t->x, &x), local_of(c->t->w, &w), local_of(c->t->b, &b),
                                          local_of(y, &out)};
    TSR_TRY(settle(c, NULL));
    for (int i = 0; i < TIMES; i++)
        TSR_TRY(tsr_linear_plan_execute(plan, operands[0], operands[1], operands[2], operands[3], workspace->data,
                                        tsr_linear_plan_workspace_bytes(plan), c->stream));
    return settle(c, c->stream);
}

static tsr_status check_forward(const run *c, const tsr_layout *y_layout)
{
    tsr_linear_plan *plan = NULL;
    tsr_dtensor *y = NULL;
    layer_memory workspace = {0};
    const tsr_layout *b = c->t->b ? tsr_dtensor_layout(c->t->b) : NULL;
    tsr_status status = tsr_linear_plan_create_on(tsr_dtensor_layout(c->t->x), tsr_dtensor_layout(c->t->w), b, y_layout,
                                                  c->device, &plan);
    if (status == TSR_OK)
        status = tsr_dtensor_create(tsr_linear_plan_result(plan), c->device, &y);
    if (status == TSR_OK)
        status = layer_memory_create(c->device, tsr_linear_plan_workspace_bytes(plan), &workspace);
    if (status == TSR_OK)
        status = execute_forward(c, plan, y, &workspace);
    status = status == TSR_OK ? layer_expect(c->l, "planned y", y, c->r->y) : layer_failed(c->l, "a planned forward");
    layer_memory_destroy(&workspace);
    tsr_dtensor_destroy(y);
    tsr_linear_plan_destroy(plan);
    return status;
}

/* the number of results of a backward: dx, dw and db */
enum { RESULTS = 3 };

typedef struct backward {
    tsr_linear_backward_plan *plan;
    tsr_dtensor *dy, *results[RESULTS];
    layer_memory dy_memory, workspace;
} backward;

static tsr_status execute_backward(const run *c, const backward *b)
{
    tsr_tensor x, w, dy, out[RESULTS];
    const tsr_tensor *results[RESULTS];
    for (int i = 0; i < RESULTS; i++)
        results[i] = local_of(b->results[i], &out[i]);
    TSR_TRY(settle(c, NULL));
    for (int i = 0; i < TIMES; i++)
        TSR_TRY(tsr_linear_backward_plan_execute(b->plan, results[1] ? local_of(c->t->x, &x) : NULL,
                                                 results[0] ? local_of(c->t->w, &w) : NULL, local_of(b->dy, &dy),
                                                 results[0], results[1], results[2], b->workspace.data,
                                                 tsr_linear_backward_plan_workspace_bytes(b->plan), c->stream));
    return settle(c, c->stream);
}

/* Creates the plan and the tensors of a backward whose results have `layouts`. */
static tsr_status make_backward(const run *c, const tsr_layout *dy, const tsr_layout *const *layouts, backward *out)
{
    int64_t shape[TSR_MAX_DIMS];
    const int ndim = layer_y_shape(c->l, shape);
    const tsr_layout *b = c->t->b ? tsr_dtensor_layout(c->t->b) : NULL;
    TSR_TRY(tsr_linear_backward_plan_create(tsr_dtensor_layout(c->t->x), tsr_dtensor_layout(c->t->w), b, dy, layouts[0],
                                            layouts[1], layouts[2], c->device, &out->plan));
    TSR_TRY(layer_distribute(c->l, c->t->mesh, c->r->dy, ndim, shape,
                             tsr_layout_placements(tsr_linear_backward_plan_source(out->plan)), &out->dy_memory,
                             &out->dy));
    for (int i = 0; i < RESULTS; i++) {
        if (layouts[i])
            TSR_TRY(tsr_dtensor_create(layouts[i], c->device, &out->results[i]));
    }
    return layer_memory_create(c->device, tsr_linear_backward_plan_accumulate_bytes(out->plan), &out->workspace);
}

/* One more execution, which adds to all gradients but dw. */
static tsr_status accumulate(const run *c, const backward *b)
{
    tsr_tensor x, w, dy, out[RESULTS];
    const tsr_tensor *results[RESULTS];
    for (int i = 0; i < RESULTS; i++)
        results[i] = local_of(b->results[i], &out[i]);
    TSR_TRY(tsr_linear_backward_plan_accumulate(
        b->plan, TSR_ADD_DX | TSR_ADD_DB, results[1] ? local_of(c->t->x, &x) : NULL,
        results[0] ? local_of(c->t->w, &w) : NULL, local_of(b->dy, &dy), results[0], results[1], results[2],
        b->workspace.data, tsr_linear_backward_plan_accumulate_bytes(b->plan), c->stream));
    return settle(c, c->stream);
}

/* dw is as the reference says, dx and db are `factor` times that. */
static tsr_status check_results(const run *c, const backward *b, double factor)
{
    static const char *const names[RESULTS] = {"planned dx", "planned dw", "planned db"};
    const double *const values[RESULTS] = {c->r->dx, c->r->dw, c->r->db};
    for (int i = 0; i < RESULTS; i++) {
        if (b->results[i])
            TSR_TRY(layer_expect_times(c->l, names[i], b->results[i], values[i], i == 1 ? 1 : factor));
    }
    return TSR_OK;
}

static tsr_status check_backward(const run *c, const tsr_layout *dy, const tsr_layout *const *layouts)
{
    backward b = {0};
    tsr_status status = make_backward(c, dy, layouts, &b);
    if (status == TSR_OK)
        status = execute_backward(c, &b);
    status = status == TSR_OK ? check_results(c, &b, 1) : layer_failed(c->l, "a planned backward");
    if (status == TSR_OK)
        status = accumulate(c, &b);
    if (status == TSR_OK)
        status = check_results(c, &b, 2);
    layer_memory_destroy(&b.workspace);
    for (int i = 0; i < RESULTS; i++)
        tsr_dtensor_destroy(b.results[i]);
    tsr_dtensor_destroy(b.dy);
    layer_memory_destroy(&b.dy_memory);
    tsr_linear_backward_plan_destroy(b.plan);
    return status;
}

/* Checks all gradients with dy in its own layout and with a dy that has to move, then one gradient
 * alone. */
static tsr_status check_backwards(const run *c, const tsr_layout *scattered, const tsr_layout *const *layouts,
                                  int alone)
{
    const tsr_layout *one[RESULTS] = {0};
    one[alone] = layouts[alone];
    TSR_TRY(check_backward(c, NULL, layouts));
    TSR_TRY(check_backward(c, scattered, layouts));
    return one[alone] ? check_backward(c, scattered, one) : TSR_OK;
}

static tsr_status check_with(const run *c, const tsr_layout *own, const tsr_layout *replicated,
                             const tsr_layout *scattered)
{
    const tsr_dtensor *const operands[RESULTS] = {c->t->x, c->t->w, c->t->b};
    tsr_layout *layouts[RESULTS] = {0};
    tsr_status status = check_forward(c, NULL);
    if (status == TSR_OK)
        status = check_forward(c, replicated);
    if (status == TSR_OK)
        status = check_forward(c, scattered);
    for (int i = 0; i < RESULTS && status == TSR_OK; i++)
        status = operands[i] ? tsr_layout_gradient(tsr_dtensor_layout(operands[i]), &layouts[i]) : TSR_OK;
    if (status == TSR_OK)
        status = check_backwards(c, scattered, (const tsr_layout *const *)layouts, tsr_layout_ndim(own) % RESULTS);
    for (int i = 0; i < RESULTS; i++)
        tsr_layout_destroy(layouts[i]);
    return status;
}

tsr_status layer_check_plans(tsr_comm *comm, const layer *l, const layer_reference *reference,
                             const layer_tensors *tensors, const tsr_layout *own)
{
    const run c = {
        comm, l, reference, tensors, layer_device(l, comm), l->streams ? l->streams[tsr_comm_rank(comm)] : NULL};
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *replicated, *scattered = NULL;
    layer_wanted(own, true, false, placements);
    TSR_TRY(tsr_layout_with(own, placements, &replicated));
    layer_wanted(own, false, true, placements);
    tsr_status status = tsr_layout_with(own, placements, &scattered);
    if (status == TSR_OK)
        status = check_with(&c, own, replicated, scattered);
    tsr_layout_destroy(scattered);
    tsr_layout_destroy(replicated);
    return status;
}
