/* bench ops: how long calls of ops take, next to plain copies, into results that exist. */
#include "bench/check/elements.h"
#include "bench/ops/cases.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "place/place.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD };

/* Elements of a result that are compared on each rank. */
enum { CHECKED = 64 };

/* What is measured. */
typedef struct job {
    ops_bench_case c;
    int pass;
    place *place;
    tsr_mesh *mesh; /* abstract */
    int ranks;
    bench_settings settings;
    tsr_bench_result result; /* of the last case */
    int64_t bytes;           /* that must be read and written once, on all ranks */
    const tool_arguments *given;
    tensor_shape shape; /* of --shape; ndim 0 without */
    bool begun;         /* a line was printed */
} job;

/* One rank's side. */
typedef struct side {
    const job *j;
    const tsr_op *op;
    int attribute_count;
    tsr_mesh *mesh;
    ops_bench_shapes shapes;
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS], *results[TSR_OP_MOST_RESULTS], *dout, *gradients[TSR_OP_MOST_OPERANDS];
} side;

static tsr_status make_layout(const side *s, const ops_bench_operand *o, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const int ndim = tsr_mesh_ndim(s->mesh);
    for (int k = 0; k < ndim; k++)
        placements[k] = k + 1 == ndim && o->cut >= 0 ? tsr_shard(o->cut) : tsr_replicate();
    return tsr_layout_create(s->mesh, placements, o->ndim, o->shape, o->dtype, out);
}

/* What an operand is filled with: one number, ids below `below`, or values where that is 0. */
typedef struct filling {
    int operand;
    int64_t below;
    bool is_even;
    double number;
} filling;

static double value_at(const void *arg, int64_t index)
{
    const filling *const f = arg;
    if (f->is_even)
        return f->number;
    return f->below ? (double)ops_bench_id(index, f->below) : ops_bench_value(f->operand, index);
}

static tsr_status make_operand(side *s, int operand)
{
    const ops_bench_operand *const o = &s->j->c.operands[operand];
    tsr_layout *layout;
    s->shapes.ndim[operand] = o->ndim;
    memcpy(s->shapes.shape[operand], o->shape, sizeof o->shape);
    TSR_TRY(make_layout(s, o, &layout));
    tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &s->operands[operand]);
    tsr_layout_destroy(layout);
    if (status == TSR_OK)
        status = elements_fill(s->operands[operand], value_at, &(filling){operand, o->below, o->is_even, o->number});
    return status;
}

static tsr_status forward(tsr_comm *comm, void *arg)
{
    side *const s = arg;
    (void)comm;
    return tsr_op_call_into(s->op, (size_t)s->attribute_count, s->j->c.attributes,
                            (const tsr_dtensor *const *)s->operands, s->results);
}

static void drop_gradients(side *s)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        tsr_dtensor_destroy(s->gradients[i]);
        s->gradients[i] = NULL;
    }
}

/* Gradients are new each time, as the calls make them. */
static tsr_status backward(tsr_comm *comm, void *arg)
{
    side *const s = arg;
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL};
    (void)comm;
    drop_gradients(s);
    for (int i = 0; i < s->j->c.operand_count; i++)
        wanted[i] = s->j->c.operands[i].below ? NULL : &s->gradients[i];
    return tsr_op_backward(s->op, (size_t)s->attribute_count, s->j->c.attributes,
                           (const tsr_dtensor *const *)s->operands, s->dout, wanted);
}

/* A local element that is checked: the i-th of CHECKED, spread over all, or over the last rows of
 * the last dim but one. */
static int64_t checked_element(const int64_t *shape, int ndim, int64_t count, int64_t i, int last_rows)
{
    const int64_t at = count < CHECKED ? i % count : i * (count - 1) / (CHECKED - 1);
    if (last_rows == 0 || shape[ndim - 2] <= last_rows)
        return at;
    const int64_t whole = shape[ndim - 2] * shape[ndim - 1], last = last_rows * shape[ndim - 1];
    return at / whole * whole + whole - last + at % last;
}

/* Compares a few elements of the result (operand -1) or of a gradient with the plain loop. */
static tsr_status check_tensor(const side *s, const tsr_dtensor *x, int operand, int64_t *wrong)
{
    const ops_bench_case *const c = &s->j->c;
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS], count;
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < CHECKED && count > 0; i++) {
        const int64_t at = checked_element(shape, local.ndim, count, i, operand < 0 ? 0 : c->last_rows);
        const int64_t global = element_index(layout, shape, offset, at);
        const double wanted = operand < 0 ? c->oracle(&s->shapes, global) : c->gradient(&s->shapes, operand, global);
        const double found = ((const float *)local.data)[at], scale = fabs(wanted) > 1 ? fabs(wanted) : 1;
        *wrong += !(fabs(found - wanted) <= c->tolerance * scale);
    }
    return TSR_OK;
}

static tsr_status check(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const side *const s = arg;
    (void)comm;
    if (s->j->pass == FORWARD)
        return check_tensor(s, s->results[0], -1, wrong);
    for (int i = 0; i < s->j->c.operand_count; i++) {
        if (s->gradients[i])
            TSR_TRY(check_tensor(s, s->gradients[i], i, wrong));
    }
    return TSR_OK;
}

static tsr_status add_bytes(const tsr_dtensor *x, int64_t *bytes)
{
    size_t own = 0;
    if (x)
        TSR_TRY(tsr_layout_local_bytes(tsr_dtensor_layout(x), NULL, &own));
    *bytes += (int64_t)own;
    return TSR_OK;
}

/* The bytes that this rank's pass must read and write once. */
static tsr_status count_bytes(const side *s, int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < s->j->c.operand_count; i++) {
        TSR_TRY(add_bytes(s->operands[i], bytes));
        TSR_TRY(add_bytes(s->gradients[i], bytes));
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS && s->j->pass == FORWARD; i++)
        TSR_TRY(add_bytes(s->results[i], bytes));
    return add_bytes(s->dout, bytes);
}

static tsr_status make_gradient(side *s)
{
    tsr_layout *layout;
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(s->results[0]), &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &s->dout);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    TSR_TRY(elements_fill(s->dout, value_at, &(filling){.operand = BENCH_OPERANDS}));
    return backward(NULL, s);
}

/* The results of an update are its operands but the gradient, which is the second. */
static tsr_status take_places(side *s)
{
    tsr_op_info info;
    tsr_op_describe(s->op, &info);
    for (int i = 0; info.results[i]; i++) {
        s->results[i] = s->operands[i ? i + 1 : 0];
        tsr_dtensor_retain(s->results[i]);
    }
    return TSR_OK;
}

static tsr_status prepare(side *s)
{
    while (s->j->c.attributes[s->attribute_count].name)
        s->attribute_count++;
    TSR_TRY(tsr_op_find(NULL, s->j->c.op, &s->op));
    for (int i = 0; i < s->j->c.operand_count; i++)
        TSR_TRY(make_operand(s, i));
    TSR_TRY(s->j->c.updates ? take_places(s)
                            : tsr_op_call(s->op, (size_t)s->attribute_count, s->j->c.attributes,
                                          (const tsr_dtensor *const *)s->operands, s->results));
    return s->j->pass == BACKWARD ? make_gradient(s) : TSR_OK;
}

static tsr_status measure(job *j, side *s, tsr_comm *comm)
{
    int64_t bytes;
    tsr_bench_result result;
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(count_bytes(s, &bytes));
    const bool is_forward = j->pass == FORWARD;
    const tsr_bench_subject subject = {
        .call = is_forward ? forward : backward, .check = check, .arg = s, .bytes = (size_t)bytes / 2};
    tsr_bench_options options = bench_options(&j->settings, j->place, rank);
    options.no_copy = bytes < 1 << 20;
    TSR_TRY(tsr_bench_call(comm, &subject, &options, &result));
    TSR_TRY(tsr_comm_all_reduce(comm, &bytes, &bytes, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    if (bench_keeps(j->place, rank)) {
        j->result = result;
        j->bytes = bytes;
    }
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    side s = {.j = j};
    char *const text = mesh_text(j->mesh);
    tsr_status status = text ? tsr_mesh_parse(comm, NULL, text, &s.mesh)
                             : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a mesh");
    free(text);
    TSR_TRY(status);
    status = prepare(&s);
    if (status == TSR_OK)
        status = measure(j, &s, comm);
    drop_gradients(&s);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_dtensor_destroy(s.operands[i]);
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(s.results[i]);
    tsr_dtensor_destroy(s.dout);
    tsr_mesh_destroy(s.mesh);
    return status;
}

static double flops_of(const job *j)
{
    return ops_bench_flops(&j->c, j->pass == BACKWARD);
}

/* The rate at which bytes are read and written, and its share of the best plain copy's, which reads
 * and writes each byte of its payload. */
static double bandwidth_of(const job *j)
{
    return (double)j->bytes / j->result.seconds.median;
}

static double share_of_peak(const job *j)
{
    return j->result.peak_bandwidth > 0 ? bandwidth_of(j) / (2 * j->result.peak_bandwidth) : 0;
}

static json_t *row_to_json(const job *j)
{
    json_t *shapes = json_array();
    for (int i = 0; i < j->c.operand_count; i++)
        shapes = json_with_item(shapes, sizes_to_json(j->c.operands[i].shape, j->c.operands[i].ndim));
    json_t *const of_peak = share_of_peak(j) > 0 ? json_real(share_of_peak(j)) : json_null();
    return json_pack("{ss ss ss sI so ss ss so sI sf so sf so sI}", "bench", "ops", "op", j->c.op, "case", j->c.name,
                     "ranks", (json_int_t)j->ranks, "shapes", shapes, "dtype", "f32", "pass",
                     j->pass == FORWARD ? "forward" : "backward", "seconds", spread_to_json(j->result.seconds), "bytes",
                     (json_int_t)j->bytes, "bandwidth", bandwidth_of(j), "of_peak", of_peak, "flops", flops_of(j),
                     "wrong", j->settings.checks ? json_integer(j->result.wrong) : json_null(), "calls",
                     (json_int_t)j->result.calls);
}

static void say_names(void)
{
    say("#%-16s %9s %6s %14s %12s %10s %8s %10s %7s %7s\n", " op", "pass", "ranks", "bytes", "time", "rate", "of_peak",
        "products", "#wrong", "noise");
    say("#%-16s %9s %6s %14s %12s %10s %8s %10s %7s %7s\n", "", "", "", "(B)", "(us)", "(GB/s)", "", "(GFLOP/s)", "",
        "(%)");
}

static void say_row(const job *j)
{
    char wrong[24] = "N/A", of_peak[24] = "N/A";
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)j->result.wrong);
    if (share_of_peak(j) > 0)
        snprintf(of_peak, sizeof of_peak, "%.3f", share_of_peak(j));
    if (!j->begun)
        say_names();
    say(" %-16s %9s %6d %14lld %12.2f %10.2f %8s %10.1f %7s %7.1f\n", j->c.name,
        j->pass == FORWARD ? "forward" : "backward", j->ranks, (long long)j->bytes, 1e6 * j->result.seconds.median,
        bandwidth_of(j) / 1e9, of_peak, 1e-9 * flops_of(j) / j->result.seconds.median, wrong,
        100 * spread_noise(j->result.seconds));
}

static int measure_pass(job *j, int pass)
{
    j->pass = pass;
    int status = bench_on_ranks(&j->settings, EXIT_DONE, j->place, j->ranks, run_rank, j);
    if (status != EXIT_DONE)
        return status;
    if (j->given->value[OPT_JSON])
        status = print_json(row_to_json(j));
    else
        say_row(j);
    j->begun = true;
    if (status == EXIT_DONE && j->settings.checks && j->result.wrong > 0)
        status = complain(EXIT_REFUSED, "%s, %s: %lld elements are wrong", j->c.name,
                          pass == FORWARD ? "forward" : "backward", (long long)j->result.wrong);
    return status;
}

static bool is_named(const ops_bench_case *c, const char *name)
{
    return strcmp(name, c->op) == 0 || strcmp(name, c->name) == 0;
}

/* With --shape, cases that differ in their shapes alone are one. */
static bool is_chosen(const job *j, const ops_bench_case *c)
{
    bool named = j->given->operand_count == 0;
    for (int i = 0; i < j->given->operand_count; i++)
        named |= is_named(c, j->given->operand[i]);
    if (!named || j->shape.ndim == 0)
        return named;
    const bool again = c != ops_bench_cases && strcmp(c[-1].name, c->name) == 0;
    return !again && ops_bench_fits(c, j->shape.ndim);
}

/* Complains of a name without a case, or whose cases do not take the sizes of --shape. */
static int check_name(const job *j, const char *name)
{
    bool known = false, fits = j->shape.ndim == 0;
    for (const ops_bench_case *c = ops_bench_cases; c->op; c++) {
        known |= is_named(c, name);
        fits |= is_named(c, name) && ops_bench_fits(c, j->shape.ndim);
    }
    if (!known)
        return complain(EXIT_USAGE, "bench ops has no case of %s; without names it measures all", name);
    if (!fits)
        return complain(EXIT_USAGE, "--shape %s does not fit %s; tessera help bench ops says which sizes cases have",
                        j->given->value[OPT_SHAPE], name);
    return EXIT_DONE;
}

static int measure_case(job *j, const ops_bench_case *c)
{
    j->c = *c;
    if (j->shape.ndim > 0)
        ops_bench_reshape(&j->c, j->shape.ndim, j->shape.size);
    int status = measure_pass(j, FORWARD);
    if (status == EXIT_DONE && c->gradient)
        status = measure_pass(j, BACKWARD);
    return status;
}

static int measure_all(job *j)
{
    int status = EXIT_DONE;
    for (int i = 0; i < j->given->operand_count && status == EXIT_DONE; i++)
        status = check_name(j, j->given->operand[i]);
    for (const ops_bench_case *c = ops_bench_cases; c->op && status == EXIT_DONE; c++)
        status = is_chosen(j, c) ? measure_case(j, c) : EXIT_DONE;
    return status == EXIT_DONE ? finish_stdout() : status;
}

/* A --shape of no sizes, or of a size 0, has nothing to time. */
static int read_shape(const char *text, tensor_shape *out)
{
    if (!text)
        return EXIT_DONE;
    int status = parse_shape(text, out);
    for (int d = 0; d < out->ndim && status == EXIT_DONE; d++)
        if (out->size[d] == 0)
            status = complain(EXIT_USAGE, "--shape %s has no elements: give sizes from 1", text);
    if (status == EXIT_DONE && out->ndim == 0)
        status = complain(EXIT_USAGE, "--shape %s has no sizes: give some, like 4096x16384", text);
    return status;
}

static int run_bench(const tool_arguments *given)
{
    job j = {.given = given, .settings = {.iterations = 9, .warm_ups = 1, .loop_seconds = 2e-4, .checks = true}};
    int status = bench_settings_read(given, &j.settings);
    if (status == EXIT_DONE)
        status = read_shape(given->value[OPT_SHAPE], &j.shape);
    if (status == EXIT_DONE)
        status = parse_mesh(given->value[OPT_MESH] ? given->value[OPT_MESH] : "1", &j.mesh);
    if (status == EXIT_DONE)
        status = place_open(given, &j.place);
    if (status == EXIT_DONE)
        status = place_count_ranks(j.place, j.mesh, NULL, &j.ranks);
    if (status == EXIT_DONE)
        status = measure_all(&j);
    place_close(j.place);
    tsr_mesh_destroy(j.mesh);
    return status;
}

const tool_command bench_ops_command = {
    .name = "bench ops",
    .summary = "how long calls of ops take",
    .details =
        "Times ops of f32 on the sizes of models, into results that exist: ops on elements and rows of 4096 x 16384, "
        "an add of 64 bytes, causal attention of 8 heads of 64 and 1024 and 4096 tokens, attention of one query to "
        "16384 "
        "keys, a loss of 1024 x 50257, whose classes the last mesh dim cuts (of the others it cuts rows or heads), and "
        "updates of optimizers, in place, of 1024 x 16384. "
        "Backward passes make new gradients.\n\n"
        "--shape replaces the sizes: any for elements, two or more for rows, heads x tokens x dim for causal "
        "attention, rows x classes for the loss. Without names it measures the cases that it fits.\n\n"
        "Times are those of the slowest rank from barrier to barrier, medians. bytes is what must be read and written "
        "once; of_peak is that rate over the rate at which the best plain copy reads and writes, in the same turns. "
        "Elements of results and of gradients are compared with a plain loop in f64.\n\nA name is that of an op, or of "
        "one "
        "case of it, like 'gelu tanh'. Without names all cases are measured.",
    .examples = "  tessera bench ops\n"
                "  tessera bench ops softmax attention --mesh 2\n"
                "  tessera bench ops softmax --shape 512x4096 --json\n",
    .operands = "[NAME ..]",
    .optional_operands = 64,
    .takes =
        TAKES(MESH) | TAKES(SHAPE) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) | TAKES(JSON),
    .defaults = {{OPT_MESH, "1"}, {OPT_ITERATIONS, "9"}, {OPT_WARM_UP, "1"}},
    .run = run_bench,
};
