#include "sharding/form/device_grid.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "mesh/mesh.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* A device, and its place in the grid. */
typedef struct placed {
    int64_t device, place;
} placed;

/* The grid with its devices' places, and what changes along each axis of the mesh. */
typedef struct matching {
    const tsr_device_grid *grid;
    tsr_sharding_form *form;
    const placed *placed;           /* the devices, ascending */
    int64_t strides[TSR_GRID_MOST]; /* of the grid */
    int along[TSR_MAX_DIMS];        /* by mesh dim: the dim of the grid that it cuts; -1: none */
    int64_t stride[TSR_MAX_DIMS];   /* by mesh dim: of its step along that dim */
} matching;

int64_t tsr_device_grid_count(const int64_t *shape, int count)
{
    int64_t product = 1;
    for (int d = 0; d < count; d++)
        if (!tsr_multiply(product, shape[d], &product) || product > INT_MAX)
            return -1;
    return product;
}

tsr_status tsr_device_grid_check(const tsr_device_grid *grid, const tsr_mesh *mesh)
{
    if (grid->count == tsr_mesh_count(mesh))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the text has %lld devices, but the mesh has %lld ranks",
                          (long long)grid->count, (long long)tsr_mesh_count(mesh));
}

void tsr_device_grid_list(int ndim, const int64_t *shape, const int *order, int64_t *device)
{
    int64_t strides[TSR_GRID_MOST], at[TSR_GRID_MOST] = {0}, stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= shape[d];
    }
    for (int64_t i = 0; i < stride; i++) {
        device[i] = 0;
        for (int d = 0; d < ndim; d++)
            device[i] += at[d] * strides[order ? order[d] : d];
        for (int d = ndim - 1; d >= 0 && ++at[d] == shape[order ? order[d] : d]; d--)
            at[d] = 0;
    }
}

static int64_t index_along(const matching *m, int64_t place, int dim)
{
    return place / m->strides[dim] % m->grid->shape[dim];
}

/* True for dims of the grid in whose tiles ranks hold different things. */
static bool matters(const tsr_device_grid *grid, int dim)
{
    return dim < grid->tensor_dims || dim == grid->summed;
}

static int by_device(const void *a, const void *b)
{
    const int64_t x = ((const placed *)a)->device, y = ((const placed *)b)->device;
    return (x > y) - (x < y);
}

static tsr_status place_of(const matching *m, const int64_t *coordinate, int64_t *place)
{
    const placed wanted = {tsr_mesh_rank(m->form->mesh, coordinate), 0};
    const placed *const found = bsearch(&wanted, m->placed, (size_t)m->grid->count, sizeof wanted, by_device);
    if (!found)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the text's devices do not have rank %lld, which the mesh has",
                              (long long)wanted.device);
    *place = found->place;
    return TSR_OK;
}

static tsr_status refuse_grid(const matching *m)
{
    char shape[128] = "";
    int length = 0;
    for (int d = 0; d < m->grid->ndim; d++)
        if (m->grid->shape[d] > 1)
            length += snprintf(shape + length, sizeof shape - (size_t)length, "%s%lld", length ? "x" : "",
                               (long long)m->grid->shape[d]);
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "the text's devices lie otherwise than the axes of the mesh: give a mesh whose axes, in some "
                          "order, are %s, and whose ranks are in the text's order",
                          shape);
}

/* What changes by one step along a mesh dim from coordinate 0. */
static tsr_status look_along(matching *m, int mesh_dim)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, place = 0;
    m->along[mesh_dim] = -1;
    if (tsr_mesh_size(m->form->mesh, mesh_dim) == 1)
        return TSR_OK;
    coordinate[mesh_dim] = 1;
    TSR_TRY(place_of(m, coordinate, &place));
    for (int d = 0; d < m->grid->ndim; d++) {
        const int64_t index = index_along(m, place, d);
        if (!matters(m->grid, d) || index == 0)
            continue;
        if (m->along[mesh_dim] >= 0)
            return refuse_grid(m);
        m->along[mesh_dim] = d;
        m->stride[mesh_dim] = index;
    }
    return TSR_OK;
}

/* True if the mesh dims that were found give every rank its tile. */
static tsr_status check_all(const matching *m)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    const int ndim = tsr_mesh_ndim(m->form->mesh);
    do {
        int64_t place = 0, expected[TSR_GRID_MOST] = {0};
        TSR_TRY(place_of(m, coordinate, &place));
        for (int k = 0; k < ndim; k++)
            if (m->along[k] >= 0)
                expected[m->along[k]] += coordinate[k] * m->stride[k];
        for (int k = 0; k < m->grid->ndim; k++)
            if (matters(m->grid, k) && index_along(m, place, k) != expected[k])
                return refuse_grid(m);
    } while (tsr_grid_next(tsr_mesh_grid(m->form->mesh), coordinate));
    return TSR_OK;
}

/* Adds the mesh dims that cut along `dim` of the grid, those with longer strides first. */
static void add_axes(matching *m, int dim, tsr_axis_list *list)
{
    const int ndim = tsr_mesh_ndim(m->form->mesh);
    for (int64_t limit = INT64_MAX;;) {
        int longest = -1;
        for (int k = 0; k < ndim; k++)
            if (m->along[k] == dim && m->stride[k] < limit && (longest < 0 || m->stride[k] > m->stride[longest]))
                longest = k;
        if (longest < 0)
            return;
        tsr_form_add(m->form, list, longest);
        limit = m->stride[longest];
    }
}

static tsr_status match(matching *m)
{
    int64_t stride = 1, place = 0, coordinate[TSR_MAX_DIMS] = {0};
    for (int d = m->grid->ndim - 1; d >= 0; d--) {
        m->strides[d] = stride;
        stride *= m->grid->shape[d];
    }
    TSR_TRY(place_of(m, coordinate, &place));
    for (int k = 0; k < tsr_mesh_ndim(m->form->mesh); k++)
        TSR_TRY(look_along(m, k));
    TSR_TRY(check_all(m));
    for (int d = 0; d < m->grid->ndim; d++)
        if (matters(m->grid, d))
            add_axes(m, d, d == m->grid->summed ? &m->form->summed : &m->form->cuts[d]);
    return TSR_OK;
}

static tsr_status find_places(const tsr_device_grid *grid, placed *at)
{
    for (int64_t i = 0; i < grid->count; i++)
        at[i] = (placed){grid->device[i], i};
    qsort(at, (size_t)grid->count, sizeof *at, by_device);
    for (int64_t i = 1; i < grid->count; i++)
        if (at[i].device == at[i - 1].device)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "the text lists device %lld twice", (long long)at[i].device);
    return TSR_OK;
}

tsr_status tsr_device_grid_match(const tsr_device_grid *grid, tsr_sharding_form *form)
{
    tsr_context *const context = tsr_mesh_context(form->mesh);
    placed *at;
    TSR_TRY(tsr_allocate(context, (size_t)grid->count * sizeof *at, (void **)&at));
    tsr_status status = find_places(grid, at);
    if (status == TSR_OK)
        status = match(&(matching){.grid = grid, .form = form, .placed = at});
    tsr_release(context, at);
    return status;
}
