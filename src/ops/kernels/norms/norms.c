#include "ops/kernels/norms/norms.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/functions.h"
#include "ops/kernels/norms/norm_rows.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/reduce.h"

#include <string.h>

/* The most rows that go through a loop at once, and the elements of rows that are not direct. */
#define ROWS     256
#define ELEMENTS 8192
/* Rows of which exponentials are kept beside the result, in bytes that stay in the cache. */
#define SCRATCH (INT64_C(256) << 10)
/* Results of at least so many bytes bypass the cache. */
#define STREAMED (INT64_C(8) << 20)
#define LINE     64

/* What a tensor of a call has. */
typedef enum role {
    NONE,
    ELEMENT, /* all dims */
    ROW,     /* one element for each row */
    SHARED   /* the dims along rows */
} role;

/* Inputs and outputs of an op; `x` is an input with all dims. */
typedef struct signature {
    role inputs[3], outputs[3];
    int x;
} signature;

static const signature signatures[TSR_NORM_END] = {
    [TSR_NORM_SOFTMAX] = {{ELEMENT}, {ELEMENT}, 0},
    [TSR_NORM_LOG_SOFTMAX] = {{ELEMENT}, {ELEMENT}, 0},
    [TSR_NORM_LOGSUMEXP] = {{ELEMENT}, {ROW}, 0},
    [TSR_NORM_SOFTMAX_GRADIENT] = {{ELEMENT, ELEMENT}, {ELEMENT}, 0},
    [TSR_NORM_LOG_SOFTMAX_GRADIENT] = {{ELEMENT, ELEMENT}, {ELEMENT}, 0},
    [TSR_NORM_RMS] = {{ELEMENT, SHARED}, {ELEMENT}, 0},
    [TSR_NORM_RMS_GRADIENT] = {{ELEMENT, ELEMENT, SHARED}, {ELEMENT, SHARED}, 0},
    [TSR_NORM_LAYER] = {{ELEMENT, SHARED, SHARED}, {ELEMENT}, 0},
    [TSR_NORM_LAYER_GRADIENT] = {{ELEMENT, ELEMENT, SHARED}, {ELEMENT, SHARED, SHARED}, 0},
    [TSR_NORM_ONE] = {{ELEMENT}, {ROW}, 0},
    [TSR_NORM_TWO] = {{ELEMENT}, {ROW}, 0},
    [TSR_NORM_LARGEST] = {{ELEMENT}, {ROW}, 0},
    [TSR_NORM_ONE_GRADIENT] = {{ROW, ELEMENT, ROW}, {ELEMENT}, 1},
    [TSR_NORM_TWO_GRADIENT] = {{ROW, ELEMENT, ROW}, {ELEMENT}, 1},
    [TSR_NORM_LARGEST_GRADIENT] = {{ROW, ELEMENT, ROW}, {ELEMENT}, 1},
};

static const tsr_norm_kernels *const sets[] = TSR_KERNEL_SETS(tsr_norm_kernels);

/* A call that runs. Views of the walk are the inputs, in order, then the outputs; -1: there is
 * none. */
typedef struct running {
    const tsr_kernel_call *call;
    const signature *roles;
    tsr_norm_code code;
    int statistics; /* of a row */
    tsr_norm_walk walk;
    int input_view[3], output_view[3];
    int64_t batch; /* the most rows at once */
    char *arrays[TSR_NORM_VIEWS];
    void *exponentials; /* of two bands of softmax */
    void *shared[2];    /* weight, bias */
    double *sums[2];    /* gradients of weight and bias */
    void *rounded;      /* one of them, in the dtype of the computation */
    bool streams;
} running;

int tsr_softmax_dim(const tsr_attribute *dim, int ndim)
{
    const int64_t named = dim->integer == -1 ? ndim - 1 : dim->integer;
    return named >= 0 && named < ndim ? (int)named : -1;
}

int tsr_norm_power(double power)
{
    return power == 1 ? 0 : power == 2 ? 1 : power == (double)INFINITY ? 2 : -1;
}

static tsr_norm_loop *find_loop(const char *name, tsr_norm_code code, tsr_dtype computed)
{
    return sets[tsr_kernel_set(name)]->loops[code][computed];
}

/* True for rms_norm, layer_norm and their gradients. */
static bool is_norm(tsr_norm_code code)
{
    return code >= TSR_NORM_RMS && code <= TSR_NORM_LAYER_GRADIENT;
}

/* Marks the dims along rows. */
static void mark(const running *run, bool marked[TSR_MAX_DIMS])
{
    const tsr_attribute *const attributes = run->call->attributes;
    const int ndim = run->call->inputs[run->roles->x].ndim;
    if (run->code >= TSR_NORM_ONE || run->code == TSR_NORM_LOGSUMEXP) {
        tsr_reduce_mark(attributes[0].count, attributes[0].list, ndim, marked);
        return;
    }
    const bool norm = is_norm(run->code);
    const int dim = norm ? 0 : tsr_softmax_dim(&attributes[0], ndim);
    for (int i = 0; i < ndim; i++)
        marked[i] = norm ? i >= ndim - attributes[1].integer : i == dim;
}

static int add_view(running *run, const tsr_tensor *tensor, role is, const bool *marked)
{
    if (is == NONE || tensor->ndim < 0)
        return -1;
    tsr_norm_walk_add(&run->walk, tensor, marked, run->call->inputs[run->roles->x].ndim, is != SHARED, is != ROW);
    return run->walk.view_count - 1;
}

static void begin(const tsr_kernel_call *call, running *run)
{
    bool marked[TSR_MAX_DIMS];
    *run = (running){.call = call, .code = (tsr_norm_code)call->code};
    if (run->code >= TSR_NORM_ONE)
        run->code = (tsr_norm_code)(call->code + tsr_norm_power(call->attributes[2].number));
    run->roles = &signatures[run->code];
    run->statistics = tsr_norm_statistics(run->code);
    mark(run, marked);
    tsr_norm_walk_begin(&call->inputs[run->roles->x], marked, tsr_pointwise_kernels_for(call->kernels), &run->walk);
    for (int i = 0; i < 3; i++)
        run->input_view[i] =
            i < call->input_count ? add_view(run, &call->inputs[i], run->roles->inputs[i], marked) : -1;
    for (int i = 0; i < 3; i++)
        run->output_view[i] =
            i < call->output_count ? add_view(run, &call->outputs[i], run->roles->outputs[i], marked) : -1;
    tsr_norm_walk_join(&run->walk);
    const int64_t fit = run->walk.length > 0 ? ELEMENTS / run->walk.length : ROWS;
    run->batch = fit < 1 ? 1 : fit < ROWS ? fit : ROWS;
}

/* Takes bytes of the workspace, whole lines; with `memory` NULL it only counts. */
static void *take(char *memory, int64_t *used, int64_t bytes)
{
    char *const at = memory ? memory + *used : NULL;
    *used += (bytes + LINE - 1) / LINE * LINE;
    return at;
}

/* Divides the workspace; returns its bytes. */
static int64_t divide(running *run, char *memory)
{
    const tsr_norm_walk *const walk = &run->walk;
    const int64_t row_bytes = walk->length * walk->computed_bytes;
    int64_t used = 0;
    bool direct = true;
    for (int i = 0; i < 3; i++) {
        const int views[] = {run->input_view[i], run->output_view[i]};
        const role roles[] = {run->roles->inputs[i], run->roles->outputs[i]};
        for (int j = 0; j < 2; j++) {
            if (views[j] < 0 || roles[j] != ELEMENT || walk->views[views[j]].direct)
                continue;
            run->arrays[views[j]] = take(memory, &used, run->batch * row_bytes);
            direct = false;
        }
    }
    run->batch = direct ? ROWS : run->batch;
    if (run->code == TSR_NORM_SOFTMAX && row_bytes <= SCRATCH)
        run->exponentials = take(memory, &used, 2 * tsr_norm_band(row_bytes) * row_bytes);
    for (int i = 0; i < 2 && is_norm(run->code); i++)
        run->shared[i] = take(memory, &used, row_bytes);
    for (int i = 0; i < 2; i++) {
        if (run->roles->outputs[i + 1] == SHARED)
            run->sums[i] = take(memory, &used, walk->length * (int64_t)sizeof(double));
    }
    if (run->roles->outputs[1] == SHARED)
        run->rounded = take(memory, &used, row_bytes);
    return used;
}

/* Fills an array of the computation's dtype. */
static void fill(const tsr_norm_walk *walk, void *array, double value)
{
    for (int64_t i = 0; i < walk->length; i++) {
        if (walk->computed == TSR_F64)
            ((double *)array)[i] = value;
        else
            ((float *)array)[i] = (float)value;
    }
}

/* Makes a shared input an array; one that is left out is `missing`. */
static void read_shared(running *run, int input, void **array, double missing)
{
    const tsr_norm_walk *const walk = &run->walk;
    const int view = run->input_view[input];
    if (view < 0)
        fill(walk, *array, missing);
    else if (walk->views[view].direct)
        *array = walk->views[view].data;
    else
        tsr_norm_read(walk, view, walk->views[view].data, *array);
}

/* Reads weight and bias, and begins the sums over rows. A bias of -0 changes nothing. */
static void prepare(running *run)
{
    if (is_norm(run->code)) {
        const int weight = run->roles->inputs[1] == SHARED ? 1 : 2;
        read_shared(run, weight, &run->shared[0], 1);
        if (run->code == TSR_NORM_LAYER)
            read_shared(run, weight + 1, &run->shared[1], -0.0);
    }
    for (int i = 0; i < 2 && run->sums[i]; i++)
        memset(run->sums[i], 0, (size_t)run->walk.length * sizeof(double));
}

/* e^(a - largest), where a may be as infinite as the largest. */
static double weigh(double a, double largest)
{
    return a == largest ? 1 : tsr_f64_exp(a - largest);
}

/* Merges statistics of softmax. */
static void merge_exponentials(double *into, const double *from)
{
    const double largest = from[0] > into[0] ? from[0] : into[0];
    into[1] = into[1] * weigh(into[0], largest) + from[1] * weigh(from[0], largest);
    into[0] = largest;
}

static void merge(tsr_norm_code code, int count, double *into, const double *from)
{
    if (code <= TSR_NORM_LOGSUMEXP)
        merge_exponentials(into, from);
    else if (code == TSR_NORM_LAYER || code == TSR_NORM_LAYER_GRADIENT)
        tsr_norm_merge_deviations(into, from, count);
    else if (code == TSR_NORM_LARGEST)
        into[0] = from[0] > into[0] || from[0] != from[0] ? from[0] : into[0];
    else
        for (int i = 0; i < count; i++)
            into[i] += from[i];
}

/* Merges the records of rows, in the order of coordinates. */
static void merge_records(const running *run, int64_t first, int64_t rows, double *statistics)
{
    const tsr_kernel_call *const call = run->call;
    const int count = run->statistics;
    memcpy(statistics, (const double *)call->records + first * count, (size_t)(rows * count) * sizeof *statistics);
    for (int i = 1; i < call->record_count; i++) {
        const double *const from =
            (const double *)((const char *)call->records + i * call->record_stride) + first * count;
        for (int64_t row = 0; row < rows; row++)
            merge(run->code, count, statistics + row * count, from + row * count);
    }
}

/* Reads one element for each row. */
static void read_given(const running *run, int input, const char *at, int64_t rows, double *to)
{
    const tsr_norm_walk *const walk = &run->walk;
    double array[ROWS];
    walk->kernels->gather[walk->memory](at, array, rows,
                                        walk->views[run->input_view[input]].across[walk->across_count - 1]);
    walk->kernels->convert[walk->computed][TSR_F64]((const void *const[]){array, NULL, NULL}, to, rows, 0);
}

/* Writes the result of each row, which its statistics are. */
static void write_given(const running *run, const double *statistics, int64_t rows, char *at)
{
    const tsr_norm_walk *const walk = &run->walk;
    double values[ROWS], array[ROWS];
    for (int64_t row = 0; row < rows; row++) {
        const double *const own = statistics + row * run->statistics;
        values[row] = run->code == TSR_NORM_LOGSUMEXP ? own[0] + tsr_f64_log(own[1])
                      : run->code == TSR_NORM_TWO     ? sqrt(own[0])
                                                      : own[0];
    }
    walk->kernels->convert[TSR_F64][walk->computed]((const void *const[]){values, NULL, NULL}, array, rows, 0);
    walk->kernels->scatter[walk->memory](array, at, rows,
                                         walk->views[run->output_view[0]].across[walk->across_count - 1]);
}

/* The rows of a view, for a loop: where they lie, or read into its array. */
static char *find_rows(const running *run, int view, char *at, int64_t rows, bool reads, int64_t *step)
{
    const tsr_norm_walk *const walk = &run->walk;
    const int64_t across = walk->views[view].across[walk->across_count - 1];
    *step = walk->views[view].direct ? across : walk->length;
    if (walk->views[view].direct)
        return at;
    for (int64_t row = 0; reads && row < rows; row++)
        tsr_norm_read(walk, view, at + row * across * walk->bytes,
                      run->arrays[view] + row * walk->length * walk->computed_bytes);
    return run->arrays[view];
}

static void write_rows(const running *run, char *at, int64_t rows)
{
    const tsr_norm_walk *const walk = &run->walk;
    const int view = run->output_view[0];
    for (int64_t row = 0; row < rows && !walk->views[view].direct; row++)
        tsr_norm_write(walk, view, run->arrays[view] + row * walk->length * walk->computed_bytes,
                       at + row * walk->views[view].across[walk->across_count - 1] * walk->bytes);
}

/* The number of elements of a whole row of a norm: in all shards. */
static double count_norm(const tsr_kernel_call *call)
{
    const tsr_layout *const x = call->layouts[0];
    const int ndim = tsr_layout_ndim(x);
    double count = 1;
    for (int i = 0; i < call->attributes[1].integer; i++)
        count *= (double)tsr_layout_shape(x)[ndim - 1 - i];
    return count;
}

/* Runs at most ROWS rows, from row `first` on, that are at `at` in the views. */
static void run_rows(const running *run, tsr_norm_loop *loop, int64_t first, int64_t rows, char *const *at)
{
    double merged[ROWS * TSR_NORM_STATISTICS], given[2][ROWS];
    const tsr_kernel_call *const call = run->call;
    const int stage = call->stage, out = run->output_view[0];
    const bool last = stage != 0, by_row = run->roles->outputs[0] == ROW;
    tsr_norm_rows r = {.rows = rows,
                       .length = run->walk.length,
                       .measures = stage <= 0,
                       .makes = last && !by_row,
                       .streams = run->streams,
                       .weight = run->shared[0],
                       .bias = run->shared[1],
                       .exponentials = run->exponentials,
                       .statistics = last ? merged : (double *)call->record + first * run->statistics,
                       .given = {given[0], given[1]},
                       .sums = {run->sums[0], run->sums[1]}};
    r.epsilon = is_norm(run->code) ? call->attributes[0].number : 0;
    r.count = is_norm(run->code) ? count_norm(call) : 1;
    for (int i = 0, elements = 0, rowwise = 0; i < 3; i++) {
        const int view = run->input_view[i];
        if (view >= 0 && run->roles->inputs[i] == ELEMENT) {
            r.in[elements] = find_rows(run, view, at[view], rows, true, &r.in_step[elements]);
            elements++;
        }
        if (view >= 0 && run->roles->inputs[i] == ROW)
            read_given(run, i, at[view], rows, given[rowwise++]);
    }
    if (r.makes)
        r.out = find_rows(run, out, at[out], rows, false, &r.out_step);
    if (stage > 0)
        merge_records(run, first, rows, merged);
    if (stage <= 0 || r.makes)
        loop(&r);
    if (r.makes)
        write_rows(run, at[out], rows);
    else if (last)
        write_given(run, merged, rows, at[out]);
}

/* True if this rank's sums over rows count: those that do not depend on weight are the whole sums,
 * which one rank alone adds where weight is a Partial sum. */
static bool counts(const tsr_kernel_call *call)
{
    const tsr_layout *const weight = call->layouts[2];
    bool first = true;
    for (int k = 0; weight && k < tsr_mesh_ndim(tsr_layout_mesh(weight)); k++) {
        const tsr_placement *const at = &tsr_layout_placements(weight)[k];
        first = first && (at->kind != TSR_PARTIAL || at->op != TSR_SUM || call->coordinate[k] == 0);
    }
    return first;
}

/* Writes the gradients of weight and bias. */
static void write_sums(const running *run)
{
    const tsr_norm_walk *const walk = &run->walk;
    const bool counted = run->sums[0] && counts(run->call);
    for (int i = 0; i < 2 && run->sums[i]; i++) {
        const int view = run->output_view[i + 1];
        for (int64_t k = 0; !counted && k < walk->length; k++)
            run->sums[i][k] = -0.0;
        walk->kernels->convert[TSR_F64][walk->computed]((const void *const[]){run->sums[i], NULL, NULL}, run->rounded,
                                                        walk->length, 0);
        tsr_norm_write(walk, view, run->rounded, walk->views[view].data);
    }
}

/* Runs all rows: those of the last dim across rows together, as many as fit. */
static void run_all(const running *run, tsr_norm_loop *loop)
{
    const tsr_norm_walk *const walk = &run->walk;
    const int last = walk->across_count - 1;
    int64_t index[TSR_MAX_DIMS] = {0}, first = 0;
    char *at[TSR_NORM_VIEWS], *batch[TSR_NORM_VIEWS];
    for (int i = 0; i < walk->view_count; i++)
        at[i] = walk->views[i].data;
    do {
        for (int64_t done = 0; done < walk->across[last];) {
            const int64_t rows = walk->across[last] - done < run->batch ? walk->across[last] - done : run->batch;
            for (int i = 0; i < walk->view_count; i++)
                batch[i] = at[i] + done * walk->views[i].across[last] * walk->bytes;
            run_rows(run, loop, first, rows, batch);
            done += rows;
            first += rows;
        }
    } while (tsr_norm_walk_advance(walk, index, at));
}

/* Describes a norm of tensors without gaps, in the dtype of the computation, whose results stay in
 * the cache: loops take them as they lie, and a walk would take longer than a row. False: it is
 * another op. */
static bool describe_plain(const tsr_kernel_call *call, tsr_norm_rows *out)
{
    const tsr_tensor *const x = &call->inputs[0], *const y = &call->outputs[0];
    const int shared = call->code == TSR_NORM_LAYER ? 2 : 1, along = (int)call->attributes[1].integer;
    if ((call->code != TSR_NORM_RMS && call->code != TSR_NORM_LAYER) || call->stage != TSR_STAGE_WHOLE ||
        tsr_pointwise_computes_in(x->dtype) != x->dtype || !tsr_tensor_is_contiguous(x) || !tsr_tensor_is_contiguous(y))
        return false;
    for (int i = 1; i <= shared; i++) {
        if (call->inputs[i].ndim != along || !tsr_tensor_is_contiguous(&call->inputs[i]))
            return false;
    }
    out->rows = out->length = 1;
    for (int dim = 0; dim < x->ndim; dim++)
        *(dim < x->ndim - along ? &out->rows : &out->length) *= x->shape[dim];
    out->in[0] = x->data;
    out->out = y->data;
    out->in_step[0] = out->out_step = out->length;
    out->weight = call->inputs[1].data;
    out->bias = shared == 2 ? call->inputs[2].data : NULL;
    return out->rows > 0 && out->rows <= ROWS && out->length > 0 &&
           out->rows * out->length * (int64_t)sizeof(double) < STREAMED;
}

static void run_plain(const tsr_kernel_call *call, tsr_norm_rows *r)
{
    double statistics[ROWS * TSR_NORM_STATISTICS];
    r->measures = r->makes = true;
    r->statistics = statistics;
    r->epsilon = call->attributes[0].number;
    r->count = count_norm(call);
    find_loop(call->kernels, (tsr_norm_code)call->code, call->inputs[0].dtype)(r);
}

tsr_status tsr_norm_run(const tsr_kernel_call *call)
{
    running run;
    tsr_norm_rows plain = {.rows = 0};
    if (describe_plain(call, &plain)) {
        run_plain(call, &plain);
        return TSR_OK;
    }
    begin(call, &run);
    divide(&run, call->workspace);
    prepare(&run);
    const int out = run.output_view[0];
    const tsr_norm_view *const view = &run.walk.views[out];
    const int64_t step = view->across[run.walk.across_count - 1] * run.walk.bytes;
    run.streams = run.roles->outputs[0] == ELEMENT && view->direct &&
                  run.walk.rows * run.walk.length * run.walk.bytes >= STREAMED && step % LINE == 0 &&
                  (uintptr_t)view->data % LINE == 0;
    tsr_norm_loop *const loop = find_loop(call->kernels, run.code, run.walk.computed);
    if (run.walk.rows > 0)
        run_all(&run, loop);
    if (call->stage != 0)
        write_sums(&run);
    return TSR_OK;
}

int64_t tsr_norm_record_bytes(const tsr_kernel_call *call)
{
    running run;
    begin(call, &run);
    return run.walk.rows * run.statistics * (int64_t)sizeof(double);
}

int64_t tsr_norm_workspace_bytes(const tsr_kernel_call *call)
{
    running run;
    begin(call, &run);
    return divide(&run, NULL);
}
