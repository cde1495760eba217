#include "trials.h"

#include "layers.h"
#include "wholes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A training on one rank, while it runs. */
typedef struct training {
    const trial *t;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    void *workspace;
    tsr_dtensor *bound[24];
} training;

double trial_weight(int parameter, int64_t i)
{
    return support_draw(1000 * parameter + i) / 8;
}

double trial_gradient(int parameter, int step, int64_t i)
{
    return support_draw(100000 * step + 1000 * parameter + i + 50) / 4;
}

static int64_t count_elements(const trial_parameter *of)
{
    int64_t count = 1;
    for (int dim = 0; dim < of->ndim; dim++)
        count *= of->shape[dim];
    return count;
}

/* The parameter as it is kept. */
static trial_parameter flatten(const trial_parameter *of)
{
    trial_parameter made = *of;
    if (of->is_view) {
        made.ndim = 1;
        made.shape[0] = count_elements(of);
    }
    return made;
}

/* Distributes values that all ranks have, rounded to one dtype and then to another. */
static tsr_status make(const tsr_mesh *mesh, const char *placements, tsr_dtype first, tsr_dtype dtype, int ndim,
                       const int64_t *shape, const double *values, tsr_dtensor **out)
{
    tsr_dtensor *wide, *rounded;
    char whole[32] = "R";
    for (int k = 1; k < tsr_mesh_ndim(mesh); k++)
        strcat(whole, ",R");
    TSR_TRY(support_make(mesh, whole, first, ndim, shape, values, &wide));
    TSR_TRY(tsr_cast(wide, dtype, &rounded));
    const tsr_status status = tsr_redistribute_to(rounded, placements, out);
    tsr_dtensor_destroy(wide);
    tsr_dtensor_destroy(rounded);
    return status;
}

static tsr_status record(const training *r)
{
    const trial *const t = r->t;
    tsr_program *const p = r->p;
    tsr_value w[TRIAL_PARAMETERS], g[TRIAL_PARAMETERS], finite = TSR_NONE, norm = TSR_NONE;
    const char *placements[TRIAL_PARAMETERS];
    tsr_optimizer_view views[TRIAL_PARAMETERS] = {{0}};
    tsr_optimizer_options options = t->options;
    for (int i = 0; i < t->count; i++) {
        const trial_parameter flat = flatten(&t->parameters[i]), *const of = &flat;
        char name[8];
        tsr_layout *layout;
        TSR_TRY(tsr_layout_parse(r->mesh, of->placements, of->ndim, of->shape, t->dtype, &layout));
        snprintf(name, sizeof name, "w%d", i);
        w[i] = tsr_state(p, name, layout);
        tsr_layout_destroy(layout);
        snprintf(name, sizeof name, "g%d", i);
        g[i] = tsr_input(p, name, r->mesh, t->dtype, of->ndim, of->shape, of->gradient);
        placements[i] = of->states;
        views[i].ndim = of->is_view ? t->parameters[i].ndim : 0;
        memcpy(views[i].shape, t->parameters[i].shape, sizeof t->parameters[i].shape);
    }
    const tsr_value rate = tsr_input(p, "rate", r->mesh, TSR_F64, 0, NULL, NULL);
    const tsr_value step = tsr_input(p, "step", r->mesh, TSR_I64, 0, NULL, NULL);
    options.placements = placements;
    options.views = views;
    if (t->max_norm > 0 || t->scale > 0)
        tsr_optimizer_reduce(p, (size_t)t->count, w, g, &options);
    if (t->scale > 0)
        tsr_optimizer_unscale(p, (size_t)t->count, g, tsr_input(p, "scale", r->mesh, TSR_F64, 0, NULL, NULL), &finite);
    if (t->max_norm > 0)
        tsr_optimizer_clip(p, (size_t)t->count, g, t->max_norm, &norm);
    tsr_optimizer_update(p, (size_t)t->count, w, g, rate, step, finite, &options);
    tsr_output(p, "norm", t->max_norm > 0 ? norm : rate, NULL);
    if (t->scale > 0)
        tsr_output(p, "finite", finite, NULL);
    return tsr_program_status(p, NULL);
}

static void fill_weight(const trial *t, int parameter, double *values)
{
    const int64_t count = count_elements(&t->parameters[parameter]);
    for (int64_t i = 0; i < count; i++)
        values[i] = t->weights[parameter] ? t->weights[parameter][i] : trial_weight(parameter, i);
}

/* Weights, masters included, as they are at first; other states are 0. */
static tsr_status bind(training *r)
{
    for (size_t i = 0; i < tsr_executable_binding_count(r->x); i++) {
        tsr_executable_binding b;
        double values[TRIAL_ROOM] = {0};
        char placements[128];
        TSR_TRY(tsr_executable_binding_at(r->x, i, &b));
        if (!strchr(b.name, '.') || strstr(b.name, ".master"))
            fill_weight(r->t, b.name[1] - '0', values);
        tsr_layout_print(b.layout, placements, sizeof placements);
        TSR_TRY(make(r->mesh, placements, r->t->dtype, tsr_layout_dtype(b.layout), tsr_layout_ndim(b.layout),
                     tsr_layout_shape(b.layout), values, &r->bound[i]));
        TSR_TRY(tsr_executable_bind(r->x, b.name, r->bound[i]));
    }
    return TSR_OK;
}

static tsr_status make_gradient(const training *r, int parameter, int step, tsr_dtensor **out)
{
    const trial *const t = r->t;
    const trial_parameter flat = flatten(&t->parameters[parameter]), *const of = &flat;
    double values[TRIAL_ROOM];
    const int64_t count = count_elements(of);
    for (int64_t i = 0; i < count; i++)
        values[i] = (t->gradients[parameter] ? t->gradients[parameter][(step - 1) * count + i]
                                             : trial_gradient(parameter, step, i)) *
                    (t->scale > 0 ? t->scale : 1);
    if (step == t->spoilt && parameter == t->count - 1)
        values[count - 1] = INFINITY;
    return make(r->mesh, of->gradient, t->dtype, t->dtype, of->ndim, of->shape, values, out);
}

static tsr_status run_step(const training *r, int step, trial_result *out)
{
    tsr_dtensor *g[TRIAL_PARAMETERS];
    tsr_tensor inputs[TRIAL_PARAMETERS + 3];
    double rate = r->t->rate, scale = r->t->scale, norm;
    int64_t number = step - (r->t->spoilt && r->t->spoilt < step);
    bool finite = true;
    int count = r->t->count;
    for (int i = 0; i < count; i++) {
        TSR_TRY(make_gradient(r, i, step, &g[i]));
        inputs[i] = tsr_dtensor_to_local(g[i]);
    }
    inputs[count++] = tsr_tensor_contiguous(&rate, TSR_F64, 0, NULL);
    inputs[count++] = tsr_tensor_contiguous(&number, TSR_I64, 0, NULL);
    inputs[count++] = tsr_tensor_contiguous(&scale, TSR_F64, 0, NULL);
    const tsr_tensor outputs[] = {tsr_tensor_contiguous(&norm, TSR_F64, 0, NULL),
                                  tsr_tensor_contiguous(&finite, TSR_BOOL, 0, NULL)};
    TSR_TRY(
        tsr_executable_run(r->x, r->comm, inputs, outputs, r->workspace, tsr_executable_workspace_bytes(r->x), NULL));
    for (int i = 0; i < r->t->count; i++)
        tsr_dtensor_destroy(g[i]);
    out->norms[step - 1] = norm;
    out->finite[step - 1] = finite;
    return TSR_OK;
}

/* Reads all parameters and states, and frees them. */
static tsr_status collect(training *r, trial_result *out)
{
    int at = 0;
    out->count = (int)tsr_executable_binding_count(r->x);
    for (int i = 0; i < out->count; i++) {
        tsr_executable_binding b;
        TSR_TRY(tsr_executable_binding_at(r->x, (size_t)i, &b));
        snprintf(out->names[i], sizeof out->names[i], "%s", b.name);
        out->sizes[i] = 1;
        for (int dim = 0; dim < tsr_layout_ndim(b.layout); dim++)
            out->sizes[i] *= (int)tsr_layout_shape(b.layout)[dim];
        EXPECT(at + out->sizes[i] <= TRIAL_ROOM, "there is no room for \"%s\"", b.name);
        out->first[i] = at;
        TSR_TRY(support_read(r->bound[i], out->room + at));
        at += out->sizes[i];
        tsr_dtensor_destroy(r->bound[i]);
    }
    return TSR_OK;
}

tsr_status trial_run(tsr_comm *comm, const trial *t, trial_result *out)
{
    training r = {.t = t, .comm = comm};
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &r.mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(r.mesh), &r.p));
    TSR_TRY(record(&r));
    TSR_TRY(tsr_compile(r.p, NULL, &r.x));
    tsr_program_destroy(r.p);
    TSR_TRY(bind(&r));
    TSR_TRY(tsr_executable_prepare(r.x, comm));
    r.workspace = aligned_alloc(64, (tsr_executable_workspace_bytes(r.x) + 127) / 64 * 64);
    for (int step = 1; step <= t->steps; step++)
        TSR_TRY(run_step(&r, step, out));
    free(r.workspace);
    TSR_TRY(collect(&r, out));
    tsr_executable_destroy(r.x);
    tsr_mesh_destroy(r.mesh);
    return TSR_OK;
}

typedef struct trial_threads {
    const trial *t;
    trial_result *out;
} trial_threads;

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    static _Thread_local trial_result own;
    const trial_threads *const a = arg;
    return trial_run(comm, a->t, tsr_comm_rank(comm) == 0 ? a->out : &own);
}

void trial_run_threads(const trial *t, trial_result *out)
{
    trial_threads a = {t, out};
    layers_run(support_count_ranks(t->mesh), run_rank, &a);
}

const double *trial_find(const trial_result *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->names[i], name) == 0)
            return r->room + r->first[i];
    fail_msg("there is no \"%s\"", name);
    return NULL;
}

void trial_expect_same(const trial_result *got, const trial_result *wanted)
{
    assert_int_equal(got->count, wanted->count);
    for (int i = 0; i < got->count; i++) {
        assert_string_equal(got->names[i], wanted->names[i]);
        for (int j = 0; j < got->sizes[i]; j++) {
            const double *const x = got->room + got->first[i] + j, *const y = wanted->room + wanted->first[i] + j;
            if (memcmp(x, y, sizeof *x) != 0)
                fail_msg("%s: element %d is %.17g instead of %.17g", got->names[i], j, *x, *y);
        }
    }
}
