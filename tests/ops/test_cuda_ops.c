/* Ops on GPUs if the machine has any, else on emulated ones, which run the kernels' bodies: rows
 * that have kernels there give what they give on the host, from the same shards. */
#include "gpus.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 2, ROWS = 7, MOST = 300 };

/* How operands lie. */
typedef enum way { PLAIN, REPEATED, TRANSPOSED, WAY_END } way;

typedef struct trial {
    const tsr_device_table *table;
    void *self;
    const tsr_op *op;
    const tsr_op_info *info;
    int64_t length;
    tsr_dtype dtype;
    way way;
    tsr_mesh *mesh;
    tsr_device device;
} trial;

/* Rows in which nothing is rounded differently: device and host agree exactly. */
static const char *const exact[] = {
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "share_max",
    "share_min",
    "neg",
    "abs",
    "sign",
    "sqrt",
    "rsqrt",
    "tanh_gradient",
    "relu",
    "relu_gradient",
    "sigmoid_gradient",
    "scale",
    "where",
    "keep",
    "drop",
    "cast",
    "vary",
    "clamp",
    "clamp_gradient",
    "masked_fill",
    "reciprocal",
    "square",
    "floor",
    "ceil",
    "round",
    "log1p_gradient",
    "leaky_relu",
    "leaky_relu_gradient",
    "floor_divide",
    "remainder",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isnan",
    "isinf",
    "isfinite",
    "logical_and",
    "logical_or",
    "logical_not",
    "sgd_update",
    "momentum_update",
    "adamw_update",
    "lion_update",
    "bias_correction",
};

/* Rows of functions: each side is within a few units in the last place. */
static const char *const close[] = {
    "exp",
    "log",
    "tanh",
    "sigmoid",
    "silu",
    "silu_gradient",
    "silu_mul",
    "gelu",
    "gelu_gradient",
    "pow",
    "pow_gradient",
    "pow_exponent_gradient",
    "expm1",
    "log1p",
    "softplus",
    "elu",
    "elu_gradient",
    "softmax",
    "log_softmax",
    "softmax_gradient",
    "log_softmax_gradient",
    "rms_norm",
    "rms_norm_gradient",
    "layer_norm",
    "layer_norm_gradient",
};

#define COUNT(array) (sizeof array / sizeof *array)

static bool is_among(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* What a result may differ by, relative to the larger of 1 and itself: 32 units of the last place.
 * Sums have 300 terms at most, which the host adds in f64 by fours of f32. Rounding once more to a
 * narrow type moves a result to a neighbour. */
static double tolerance(const trial *t, tsr_dtype dtype)
{
    if (is_among(exact, COUNT(exact), t->info->name))
        return 0;
    return dtype == TSR_F64 ? 0x1p-47 : dtype == TSR_F32 ? 0x1p-18 : dtype == TSR_F16 ? 0x1p-9 : 0x1p-6;
}

/* Numbers between -3 and 3, among them zeros of both signs, infinities and NaN for the functions of
 * one element. */
static double number(const trial *t, int64_t i, int operand)
{
    static const double special[] = {0.0, -0.0, 1, -1, 2, INFINITY, -INFINITY, NAN};
    const double drawn =
        (double)((uint64_t)(i + 1 + 1000 * operand) * UINT64_C(0x9e3779b97f4a7c15) >> 40) * 0x1.8p-22 - 3;
    const size_t most = t->info->operands[1] || is_among(close + 17, COUNT(close) - 17, t->info->name) ? 5 : 8;
    return i % 3 == 0 && (size_t)(i / 3) < most ? special[i / 3] : drawn;
}

static bool is_condition(const char *name)
{
    return strcmp(name, "condition") == 0 || strcmp(name, "mask") == 0;
}

/* True if the op is an update of an optimizer. */
static bool is_update(const trial *t)
{
    return strstr(t->info->name, "_update") != NULL;
}

static bool is_flag(const char *name)
{
    return strcmp(name, "first") == 0 || strcmp(name, "finite") == 0;
}

/* True if an operand has no dims. */
static bool is_scalar(const char *name)
{
    return strcmp(name, "kept") == 0 || strcmp(name, "rate") == 0 || strcmp(name, "root") == 0 || is_flag(name);
}

static tsr_dtype find_dtype(const trial *t, int operand)
{
    const char *const name = t->info->operands[operand];
    if (is_condition(name) || is_flag(name))
        return TSR_BOOL;
    return is_update(t) && operand > 1 && t->dtype != TSR_F64 ? TSR_F32 : t->dtype;
}

static bool is_row(const trial *t, int operand)
{
    const char *const name = t->info->operands[operand];
    if (is_update(t))
        return is_scalar(name);
    return strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0 ||
           (t->way == REPEATED && operand > 0 && strcmp(name, "out") != 0 && !strstr(t->info->name, "_norm"));
}

/* An operand on the host, before it is transposed. */
static tsr_status make_operand(const trial *t, int operand, tsr_dtensor **out)
{
    static double values[RANKS][ROWS * MOST];
    double *const own = values[tsr_comm_rank(tsr_mesh_comm(t->mesh))];
    const bool row = is_row(t, operand), turned = t->way == TRANSPOSED && !row;
    const int64_t shape[] = {turned ? t->length : ROWS, turned ? ROWS : t->length};
    tsr_dtensor *wide;
    for (int64_t i = 0; i < ROWS * t->length; i++)
        own[i] = number(t, i, operand);
    if (is_scalar(t->info->operands[operand]))
        own[0] = is_flag(t->info->operands[operand]) ? (operand + (int)t->way) % 2 : (double)t->length + 0.25;
    const int ndim = is_scalar(t->info->operands[operand]) ? 0 : row ? 1 : 2;
    const tsr_tensor global = tsr_tensor_contiguous(own, TSR_F64, ndim, row ? shape + 1 : shape);
    TSR_TRY(tsr_distribute(&global, t->mesh, row ? "R" : turned ? "S(1)" : "S(0)", &wide));
    const tsr_status status = tsr_cast(wide, find_dtype(t, operand), out);
    tsr_dtensor_destroy(wide);
    return status;
}

static tsr_status copy(const trial *t, const tsr_dtensor *from, const tsr_dtensor *to, tsr_copy_kind kind)
{
    const tsr_tensor src = tsr_dtensor_to_local(from), dst = tsr_dtensor_to_local(to);
    size_t bytes = tsr_dtype_bytes(src.dtype);
    for (int dim = 0; dim < src.ndim; dim++)
        bytes *= (size_t)src.shape[dim];
    TSR_TRY(t->table->copy(t->self, t->device.index, dst.data, src.data, bytes, kind, NULL));
    return t->table->stream_synchronize(t->self, t->device.index, NULL);
}

static tsr_status to_device(const trial *t, const tsr_dtensor *x, tsr_dtensor **out)
{
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(x), t->device, out));
    return copy(t, x, *out, TSR_COPY_FROM_HOST);
}

static tsr_status turn(const trial *t, int operand, tsr_dtensor **x)
{
    tsr_dtensor *turned;
    if (t->way != TRANSPOSED || is_row(t, operand))
        return TSR_OK;
    TSR_TRY(tsr_transpose(*x, 0, 1, &turned));
    tsr_dtensor_destroy(*x);
    *x = turned;
    return TSR_OK;
}

/* Compares this rank's elements, both in f64. */
static tsr_status compare_values(const trial *t, const char *result, tsr_dtype dtype, const tsr_dtensor *device,
                                 const tsr_dtensor *host)
{
    const tsr_tensor a = tsr_dtensor_to_local(device), b = tsr_dtensor_to_local(host);
    const double *const got = a.data, *const wanted = b.data, most = tolerance(t, dtype);
    int64_t count = 1;
    for (int dim = 0; dim < a.ndim; dim++)
        count *= a.shape[dim];
    for (int64_t i = 0; i < count; i++) {
        const double x = got[i], y = wanted[i], size = fabs(y) > 1 ? fabs(y) : 1;
        const bool same_zero = most > 0 || x != 0 || signbit(x) == signbit(y);
        if ((x == y && same_zero) || (x != x && y != y) || fabs(x - y) <= most * size)
            continue;
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s, %s, way %d, length %d, element %lld: %.17g, not %.17g",
                              t->info->name, tsr_dtype_name(t->dtype), result, t->way, (int)t->length, (long long)i, x,
                              y);
    }
    return TSR_OK;
}

static tsr_status compare(const trial *t, const char *result, const tsr_dtensor *device, const tsr_dtensor *host)
{
    tsr_dtensor *brought = NULL, *a = NULL, *b = NULL;
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(device), tsr_device_host(), &brought));
    tsr_status status = copy(t, device, brought, TSR_COPY_TO_HOST);
    if (status == TSR_OK)
        status = tsr_cast(brought, TSR_F64, &a);
    if (status == TSR_OK)
        status = tsr_cast(host, TSR_F64, &b);
    if (status == TSR_OK)
        status = compare_values(t, result, tsr_layout_dtype(tsr_dtensor_layout(host)), a, b);
    tsr_dtensor_destroy(brought);
    tsr_dtensor_destroy(a);
    tsr_dtensor_destroy(b);
    return status;
}

typedef struct operands {
    tsr_dtensor *host[TSR_OP_MOST_OPERANDS], *device[TSR_OP_MOST_OPERANDS];
    tsr_dtensor *host_results[TSR_OP_MOST_RESULTS], *device_results[TSR_OP_MOST_RESULTS];
} operands;

static void operands_clear(operands *all)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        tsr_dtensor_destroy(all->host[i]);
        tsr_dtensor_destroy(all->device[i]);
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        tsr_dtensor_destroy(all->host_results[i]);
        tsr_dtensor_destroy(all->device_results[i]);
    }
}

static tsr_status make_operands(const trial *t, operands *all)
{
    for (int i = 0; t->info->operands[i]; i++) {
        TSR_TRY(make_operand(t, i, &all->host[i]));
        TSR_TRY(to_device(t, all->host[i], &all->device[i]));
        TSR_TRY(turn(t, i, &all->host[i]));
        TSR_TRY(turn(t, i, &all->device[i]));
    }
    return TSR_OK;
}

static tsr_status run_both(const trial *t, operands *all, int *compared)
{
    const tsr_attribute momentum[] = {tsr_attribute_float("momentum", 0.9), tsr_attribute_float("dampening", 0.1),
                                      tsr_attribute_float("weight_decay", 0.2), tsr_attribute_int("nesterov", 1),
                                      tsr_attribute_int("maximize", 1)};
    const size_t count = strcmp(t->info->name, "momentum_update") == 0 ? COUNT(momentum) : 0;
    TSR_TRY(make_operands(t, all));
    if (tsr_op_call(t->op, count, momentum, (const tsr_dtensor *const *)all->host, all->host_results) != TSR_OK)
        return TSR_OK; /* the row does not take this dtype */
    TSR_TRY(tsr_op_call(t->op, count, momentum, (const tsr_dtensor *const *)all->device, all->device_results));
    for (int i = 0; t->info->results[i]; i++)
        TSR_TRY(compare(t, t->info->results[i], all->device_results[i], all->host_results[i]));
    ++*compared;
    return TSR_OK;
}

static tsr_status run_row(trial *t, const char *name)
{
    static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16, TSR_I64, TSR_I32, TSR_BOOL};
    static const int64_t lengths[] = {5, 1, MOST};
    tsr_op_info info;
    int compared = 0;
    TSR_TRY(tsr_op_find(NULL, name, &t->op));
    tsr_op_describe(t->op, &info);
    t->info = &info;
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        for (int how = PLAIN; how < WAY_END; how++) {
            operands all = {{NULL}, {NULL}, {NULL}, {NULL}};
            t->dtype = dtypes[i];
            t->way = (way)how;
            t->length = lengths[(i + (size_t)how) % COUNT(lengths)];
            const tsr_status status = run_both(t, &all, &compared);
            operands_clear(&all);
            TSR_TRY(status);
        }
    }
    return compared > 0 ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s was never compared", name);
}

static tsr_status begin(tsr_comm *comm, const gpus *g, trial *t)
{
    memset(t, 0, sizeof *t);
    t->table = tsr_device_driver_table(g->driver, &t->self);
    t->length = 5;
    t->dtype = TSR_F32;
    t->device = (tsr_device){g->driver, tsr_comm_rank(comm) % g->count};
    return tsr_mesh_create(comm, 1, (const int64_t[]){RANKS}, NULL, NULL, &t->mesh);
}

static tsr_status run_rows(tsr_comm *comm, void *arg)
{
    trial t;
    tsr_status status = begin(comm, arg, &t);
    for (size_t i = 0; i < COUNT(exact) && status == TSR_OK; i++)
        status = run_row(&t, exact[i]);
    for (size_t i = 0; i < COUNT(close) && status == TSR_OK; i++)
        status = run_row(&t, close[i]);
    tsr_mesh_destroy(t.mesh);
    return status;
}

static void run_ranks(tsr_rank_main *body)
{
    gpus g;
    gpus_open(&g);
    if (tsr_threads_run(RANKS, body, &g, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_device_driver_destroy(g.driver);
}

static void rows_give_what_the_host_gives(void **state)
{
    (void)state;
    run_ranks(run_rows);
}

/* Checks that a call failed as it should. */
static tsr_status expect(tsr_status status, tsr_status wanted, const char *words)
{
    if (status == wanted && strstr(tsr_status_message(), words))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s, not %s with \"%s\": %s", tsr_status_name(status),
                          tsr_status_name(wanted), words, status == TSR_OK ? "" : tsr_status_message());
}

static tsr_status refuse(const operands *all, tsr_dtensor *turned)
{
    tsr_dtensor *y;
    TSR_TRY(expect(tsr_sum(all->device[0], 1, (const int64_t[]){1}, 0, &y), TSR_ERROR_UNSUPPORTED,
                   "device \"cuda\" has no kernel of sum"));
    TSR_TRY(expect(tsr_softmax(turned, 1, &y), TSR_ERROR_UNSUPPORTED, "redistribute the operand"));
    return expect(tsr_add(all->device[0], all->host[0], &y), TSR_ERROR_ARGUMENT, "lies on another device than x");
}

static tsr_status refuse_rows(tsr_comm *comm, void *arg)
{
    trial t;
    tsr_op_info info;
    operands all = {{NULL}, {NULL}, {NULL}, {NULL}};
    tsr_dtensor *turned = NULL;
    TSR_TRY(begin(comm, arg, &t));
    tsr_status status = tsr_op_find(NULL, "exp", &t.op);
    tsr_op_describe(t.op, &info);
    t.info = &info;
    if (status == TSR_OK)
        status = make_operands(&t, &all);
    if (status == TSR_OK)
        status = tsr_transpose(all.device[0], 0, 1, &turned);
    if (status == TSR_OK)
        status = refuse(&all, turned);
    tsr_dtensor_destroy(turned);
    operands_clear(&all);
    tsr_mesh_destroy(t.mesh);
    return status;
}

/* Moves an operand to another cut by the row, on both. */
static tsr_status move_both(const trial *t, operands *all)
{
    const tsr_attribute to = tsr_attribute_text("placements", "S(1)");
    TSR_TRY(make_operands(t, all));
    TSR_TRY(tsr_op_call(t->op, 1, &to, (const tsr_dtensor *const *)all->host, all->host_results));
    TSR_TRY(tsr_op_call(t->op, 1, &to, (const tsr_dtensor *const *)all->device, all->device_results));
    return compare(t, "out", all->device_results[0], all->host_results[0]);
}

static tsr_status move_rows(tsr_comm *comm, void *arg)
{
    trial t;
    tsr_op_info info;
    operands all = {{NULL}, {NULL}, {NULL}, {NULL}};
    TSR_TRY(begin(comm, arg, &t));
    tsr_status status = tsr_op_find(NULL, "redistribute", &t.op);
    tsr_op_describe(t.op, &info);
    t.info = &info;
    t.dtype = TSR_F64;
    if (status == TSR_OK)
        status = move_both(&t, &all);
    operands_clear(&all);
    tsr_mesh_destroy(t.mesh);
    return status;
}

static void a_redistribution_is_a_row_on_the_device_too(void **state)
{
    (void)state;
    run_ranks(move_rows);
}

static void calls_that_the_device_cannot_run_are_refused_by_op_and_device(void **state)
{
    (void)state;
    run_ranks(refuse_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_give_what_the_host_gives),
        cmocka_unit_test(a_redistribution_is_a_row_on_the_device_too),
        cmocka_unit_test(calls_that_the_device_cannot_run_are_refused_by_op_and_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
