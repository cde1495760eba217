/* Functions that record ops: each gives the value that tsr_program_apply() gives by the op's name
 * with the same attributes; and their errors. */
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A program with values of some dtypes and shapes. */
typedef struct fixture {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_value x, y, integers, other, mask, mask2, ids, row, rows3, square, vector, terms, batch;
} fixture;

static tsr_value input(const fixture *f, const char *name, tsr_dtype dtype, int ndim, int64_t a, int64_t b, int64_t c,
                       const char *placements)
{
    const int64_t shape[] = {a, b, c};
    const tsr_value value = tsr_input(f->p, name, f->mesh, dtype, ndim, shape, placements);
    assert_int_not_equal(value, TSR_NONE);
    return value;
}

static void open(fixture *f)
{
    const int64_t shape = 2;
    assert_int_equal(tsr_context_create(NULL, &f->context), TSR_OK);
    assert_int_equal(tsr_mesh_create_abstract(f->context, 1, &shape, NULL, NULL, &f->mesh), TSR_OK);
    assert_int_equal(tsr_program_create(f->context, &f->p), TSR_OK);
    f->x = input(f, "x", TSR_F32, 2, 4, 6, 0, "R");
    f->y = input(f, "y", TSR_F32, 2, 4, 6, 0, "R");
    f->integers = input(f, "integers", TSR_I64, 2, 4, 6, 0, "R");
    f->other = input(f, "other", TSR_I64, 2, 4, 6, 0, "R");
    f->mask = input(f, "mask", TSR_BOOL, 2, 4, 6, 0, "R");
    f->mask2 = input(f, "mask2", TSR_BOOL, 2, 4, 6, 0, "R");
    f->ids = input(f, "ids", TSR_I64, 1, 4, 0, 0, "R");
    f->row = input(f, "row", TSR_F32, 1, 6, 0, 0, "R");
    f->rows3 = input(f, "rows3", TSR_F32, 2, 1, 6, 0, "R");
    f->square = input(f, "square", TSR_F32, 2, 6, 6, 0, "R");
    f->vector = input(f, "vector", TSR_F32, 1, 6, 0, 0, "R");
    f->terms = input(f, "terms", TSR_F32, 2, 4, 6, 0, "P");
    f->batch = input(f, "batch", TSR_F32, 3, 2, 4, 6, "R");
}

static void close(fixture *f)
{
    tsr_program_destroy(f->p);
    tsr_mesh_destroy(f->mesh);
    tsr_context_destroy(f->context);
}

/* Compares with the op by its name; attributes end in one without a name. */
static void expect(const fixture *f, tsr_value made, int result, const char *op, const tsr_value *operands,
                   const tsr_attribute *attributes)
{
    size_t count = 0;
    tsr_value all[TSR_OP_MOST_OPERANDS], results[TSR_OP_MOST_RESULTS];
    const char *sentence;
    for (int i = 0, ended = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        ended = ended || operands[i] == -2;
        all[i] = ended ? TSR_NONE : operands[i];
    }
    while (attributes[count].name)
        count++;
    if (made == TSR_NONE) {
        assert_int_not_equal(tsr_program_status(f->p, &sentence), TSR_OK);
        fail_msg("%s: %s", op, sentence);
    }
    tsr_program_apply(f->p, op, count, attributes, all, results);
    if (made != results[result])
        fail_msg("%s gave value %d, and by its name value %d", op, (int)made, (int)results[result]);
}

#define LIST(...)                    ((const tsr_value[]){__VA_ARGS__, -2})
#define SAME(value, op, a)           expect(&f, value, 0, op, a, (const tsr_attribute[]){{.name = NULL}})
#define SAME_WITH(value, op, a, ...) expect(&f, value, 0, op, a, (const tsr_attribute[]){__VA_ARGS__, {.name = NULL}})

static void elements_are_recorded(void **state)
{
    fixture f;
    (void)state;
    open(&f);
#define ONE(name, op) SAME(name(f.p, f.x), op, LIST(f.x))
#define TWO(name, op) SAME(name(f.p, f.x, f.y), op, LIST(f.x, f.y))
    TWO(tsr_op_add, "add");
    TWO(tsr_op_sub, "sub");
    TWO(tsr_op_mul, "mul");
    TWO(tsr_op_div, "div");
    TWO(tsr_op_maximum, "maximum");
    TWO(tsr_op_minimum, "minimum");
    TWO(tsr_op_pow, "pow");
    TWO(tsr_op_silu_mul, "silu_mul");
    TWO(tsr_op_eq, "eq");
    TWO(tsr_op_ne, "ne");
    TWO(tsr_op_lt, "lt");
    TWO(tsr_op_le, "le");
    TWO(tsr_op_gt, "gt");
    TWO(tsr_op_ge, "ge");
    ONE(tsr_op_neg, "neg");
    ONE(tsr_op_abs, "abs");
    ONE(tsr_op_exp, "exp");
    ONE(tsr_op_ln, "log");
    ONE(tsr_op_sqrt, "sqrt");
    ONE(tsr_op_rsqrt, "rsqrt");
    ONE(tsr_op_tanh, "tanh");
    ONE(tsr_op_sigmoid, "sigmoid");
    ONE(tsr_op_silu, "silu");
    ONE(tsr_op_relu, "relu");
    ONE(tsr_op_reciprocal, "reciprocal");
    ONE(tsr_op_square, "square");
    ONE(tsr_op_expm1, "expm1");
    ONE(tsr_op_log1p, "log1p");
    ONE(tsr_op_softplus, "softplus");
    ONE(tsr_op_sin, "sin");
    ONE(tsr_op_cos, "cos");
    ONE(tsr_op_erf, "erf");
    ONE(tsr_op_sign, "sign");
    ONE(tsr_op_floor, "floor");
    ONE(tsr_op_ceil, "ceil");
    ONE(tsr_op_round, "round");
    ONE(tsr_op_isnan, "isnan");
    ONE(tsr_op_isinf, "isinf");
    ONE(tsr_op_isfinite, "isfinite");
    SAME(tsr_op_floor_divide(f.p, f.integers, f.other), "floor_divide", LIST(f.integers, f.other));
    SAME(tsr_op_remainder(f.p, f.integers, f.other), "remainder", LIST(f.integers, f.other));
    SAME(tsr_op_logical_and(f.p, f.mask, f.mask2), "logical_and", LIST(f.mask, f.mask2));
    SAME(tsr_op_logical_or(f.p, f.mask, f.mask2), "logical_or", LIST(f.mask, f.mask2));
    SAME(tsr_op_logical_not(f.p, f.mask), "logical_not", LIST(f.mask));
    SAME(tsr_op_where(f.p, f.mask, f.x, f.y), "where", LIST(f.mask, f.x, f.y));
    SAME_WITH(tsr_op_gelu(f.p, f.x, 1), "gelu", LIST(f.x), tsr_attribute_word("approximate", "tanh"));
    SAME(tsr_op_gelu(f.p, f.x, 0), "gelu", LIST(f.x));
    SAME_WITH(tsr_op_scale(f.p, f.x, 3), "scale", LIST(f.x), tsr_attribute_float("factor", 3));
    SAME_WITH(tsr_op_cast(f.p, f.x, TSR_F64), "cast", LIST(f.x), tsr_attribute_dtype("dtype", TSR_F64));
    SAME_WITH(tsr_op_clamp(f.p, f.x, -1, 2), "clamp", LIST(f.x), tsr_attribute_float("max", 2),
              tsr_attribute_float("min", -1));
    SAME_WITH(tsr_op_leaky_relu(f.p, f.x, 0.5), "leaky_relu", LIST(f.x), tsr_attribute_float("slope", 0.5));
    SAME_WITH(tsr_op_elu(f.p, f.x, 0.5), "elu", LIST(f.x), tsr_attribute_float("alpha", 0.5));
    SAME_WITH(tsr_op_masked_fill(f.p, f.x, f.mask, 7), "masked_fill", LIST(f.x, f.mask),
              tsr_attribute_float("value", 7));
    close(&f);
}

static void reductions_and_norms_are_recorded(void **state)
{
    fixture f;
    const int64_t dims[] = {1};
    const tsr_attribute of = tsr_attribute_ints("dim", 1, dims), keep = tsr_attribute_int("keep", 1),
                        first = tsr_attribute_int("dim", 0), epsilon = tsr_attribute_float("epsilon", 0.5);
    (void)state;
    open(&f);
#define OVER(name, op, x) SAME_WITH(name(f.p, x, 1, dims, 1), op, LIST(x), of, keep)
    OVER(tsr_op_sum, "sum", f.x);
    OVER(tsr_op_mean, "mean", f.x);
    OVER(tsr_op_max, "max", f.x);
    OVER(tsr_op_min, "min", f.x);
    OVER(tsr_op_prod, "prod", f.x);
    OVER(tsr_op_logsumexp, "logsumexp", f.x);
    OVER(tsr_op_any, "any", f.mask);
    OVER(tsr_op_all, "all", f.mask);
    SAME(tsr_op_sum(f.p, f.x, 0, NULL, 0), "sum", LIST(f.x));
    SAME_WITH(tsr_op_var(f.p, f.x, 1, dims, 1, 0), "var", LIST(f.x), of, keep, tsr_attribute_float("correction", 0));
    SAME_WITH(tsr_op_std(f.p, f.x, 1, dims, 1, 0), "std", LIST(f.x), of, keep, tsr_attribute_float("correction", 0));
    SAME_WITH(tsr_op_norm(f.p, f.x, 1, 1, dims, 1), "norm", LIST(f.x), of, keep, tsr_attribute_float("p", 1));
    SAME_WITH(tsr_op_argmax(f.p, f.x, 0), "argmax", LIST(f.x), first);
    SAME_WITH(tsr_op_argmin(f.p, f.x, 0), "argmin", LIST(f.x), first);
    SAME_WITH(tsr_op_softmax(f.p, f.x, 0), "softmax", LIST(f.x), first);
    SAME_WITH(tsr_op_log_softmax(f.p, f.x, 0), "log_softmax", LIST(f.x), first);
    SAME_WITH(tsr_op_rms_norm(f.p, f.x, TSR_NONE, 0.5), "rms_norm", LIST(f.x), epsilon);
    SAME_WITH(tsr_op_layer_norm(f.p, f.x, f.row, f.vector, 0.5), "layer_norm", LIST(f.x, f.row, f.vector), epsilon);
    close(&f);
}

static void products_are_recorded(void **state)
{
    fixture f;
    const int64_t shape[] = {4, 64};
    (void)state;
    open(&f);
    SAME(tsr_op_matmul(f.p, f.x, f.square), "matmul", LIST(f.x, f.square));
    SAME(tsr_op_linear(f.p, f.x, f.square, TSR_NONE), "linear", LIST(f.x, f.square));
    SAME(tsr_op_linear(f.p, f.x, f.square, f.row), "linear", LIST(f.x, f.square, f.row));
    const tsr_value sizes = input(&f, "sizes", TSR_I64, 1, 2, 0, 0, "R"), w = input(&f, "w", TSR_F32, 3, 2, 6, 3, "R");
    SAME(tsr_op_grouped_matmul(f.p, f.x, w, sizes), "grouped_matmul", LIST(f.x, w, sizes));
    const tsr_value wide = tsr_input(f.p, "wide", f.mesh, TSR_F32, 2, shape, NULL),
                    narrow = input(&f, "narrow", TSR_I8, 2, 5, 64, 0, "R"),
                    scales = input(&f, "scales", TSR_F32, 2, 5, 2, 0, "R");
    SAME(tsr_op_linear_q8(f.p, wide, narrow, scales, TSR_NONE), "linear_q8", LIST(wide, narrow, scales));
    SAME_WITH(tsr_op_einsum(f.p, "ab,cb->ac", 2, LIST(f.x, f.y)), "einsum", LIST(f.x, f.y),
              tsr_attribute_text("equation", "ab,cb->ac"));
    close(&f);
}

static void transformers_are_recorded(void **state)
{
    fixture f;
    tsr_attention_options attention = TSR_ATTENTION_OPTIONS_INIT;
    tsr_rope_options rope = TSR_ROPE_OPTIONS_INIT;
    tsr_cross_entropy_options loss = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    const tsr_attribute sum = tsr_attribute_word("reduction", "sum");
    (void)state;
    open(&f);
    attention.causal = 1;
    attention.window = 3;
    rope.base = 500;
    loss.reduction = TSR_LOSS_SUM;
    SAME(tsr_op_attention(f.p, f.batch, f.batch, f.batch, TSR_NONE, NULL), "attention",
         LIST(f.batch, f.batch, f.batch));
    SAME_WITH(tsr_op_attention(f.p, f.batch, f.batch, f.batch, TSR_NONE, &attention), "attention",
              LIST(f.batch, f.batch, f.batch), tsr_attribute_int("causal", 1), tsr_attribute_int("window", 3));
    const tsr_value positions = input(&f, "positions", TSR_I64, 1, 2, 0, 0, "R");
    SAME_WITH(tsr_op_rope(f.p, f.batch, positions, &rope), "rope", LIST(f.batch, positions),
              tsr_attribute_float("base", 500));
    SAME_WITH(tsr_op_cross_entropy(f.p, f.x, f.ids, &loss), "cross_entropy", LIST(f.x, f.ids), sum);
    SAME(tsr_op_linear_cross_entropy(f.p, f.x, f.square, f.ids, NULL), "linear_cross_entropy",
         LIST(f.x, f.square, f.ids));
    close(&f);
}

static void mixtures_are_recorded(void **state)
{
    fixture f;
    tsr_expert_mlp_options options = TSR_EXPERT_MLP_OPTIONS_INIT;
    (void)state;
    open(&f);
    options.activation = TSR_EXPERT_MLP_GELU;
    options.capacity = 3;
    options.overflow = TSR_EXPERT_MLP_DROP;
    options.beyond = TSR_EXPERT_MLP_ZERO;
    const tsr_value chosen = input(&f, "chosen", TSR_I64, 2, 4, 2, 0, "R"),
                    gate_up = input(&f, "gate_up", TSR_F32, 3, 3, 10, 6, "R"),
                    down = input(&f, "down", TSR_F32, 3, 3, 7, 5, "R"),
                    weights = input(&f, "weights", TSR_F32, 2, 4, 2, 0, "R");
    const tsr_value y = tsr_op_experts(f.p, f.x, chosen, gate_up, down, NULL);
    SAME(y, "experts", LIST(f.x, chosen, gate_up, down));
    SAME_WITH(tsr_op_experts(f.p, f.x, chosen, gate_up, down, &options), "experts", LIST(f.x, chosen, gate_up, down),
              tsr_attribute_word("activation", "gelu"), tsr_attribute_int("capacity", 3),
              tsr_attribute_word("overflow", "drop"), tsr_attribute_word("beyond", "zero"));
    SAME(tsr_op_combine(f.p, y, weights), "combine", LIST(y, weights));
    close(&f);
}

static void rows_by_id_are_recorded(void **state)
{
    fixture f;
    tsr_value indices, positions;
    const tsr_attribute first = tsr_attribute_int("dim", 0), descending = tsr_attribute_int("descending", 1);
    (void)state;
    open(&f);
    SAME(tsr_op_embedding(f.p, f.x, f.ids), "embedding", LIST(f.x, f.ids));
    SAME_WITH(tsr_op_index_select(f.p, f.x, f.ids, 0), "index_select", LIST(f.x, f.ids), first);
    SAME_WITH(tsr_op_gather(f.p, f.x, f.integers, 0), "gather", LIST(f.x, f.integers), first);
    SAME_WITH(tsr_op_scatter_add(f.p, f.x, f.integers, f.y, 0), "scatter_add", LIST(f.x, f.integers, f.y), first);
    SAME_WITH(tsr_op_one_hot(f.p, f.ids, 9), "one_hot", LIST(f.ids), tsr_attribute_int("classes", 9));
    SAME_WITH(tsr_op_bincount(f.p, f.ids, 9), "bincount", LIST(f.ids), tsr_attribute_int("length", 9));
    SAME_WITH(tsr_op_sort(f.p, f.x, 0, 1, &indices), "sort", LIST(f.x), first, descending);
    const tsr_attribute sorted[] = {first, descending, {.name = NULL}},
                        top[] = {first, tsr_attribute_int("k", 2), {.name = NULL}};
    expect(&f, indices, 1, "sort", LIST(f.x), sorted);
    expect(&f, tsr_op_argsort(f.p, f.x, 0, 1), 1, "sort", LIST(f.x), sorted);
    expect(&f, tsr_op_topk(f.p, f.x, 2, 0, &positions), 0, "topk", LIST(f.x), top);
    expect(&f, positions, 1, "topk", LIST(f.x), top);
    assert_int_not_equal(tsr_op_topk(f.p, f.x, 2, 0, NULL), TSR_NONE);
    SAME_WITH(tsr_op_cumsum(f.p, f.x, 0), "cumsum", LIST(f.x), first);
    close(&f);
}

static void views_are_recorded(void **state)
{
    fixture f;
    const int64_t flat[] = {24}, order[] = {1, 0}, many[] = {5, 6}, first[] = {0}, sizes[] = {1, 3};
    const tsr_attribute dim = tsr_attribute_int("dim", 0);
    tsr_value parts[2];
    (void)state;
    open(&f);
    SAME_WITH(tsr_op_reshape(f.p, f.x, 1, flat), "reshape", LIST(f.x), tsr_attribute_ints("shape", 1, flat));
    SAME_WITH(tsr_op_transpose(f.p, f.x, 0, 1), "transpose", LIST(f.x), tsr_attribute_int("dim0", 0),
              tsr_attribute_int("dim1", 1));
    SAME_WITH(tsr_op_permute(f.p, f.x, 2, order), "permute", LIST(f.x), tsr_attribute_ints("dims", 2, order));
    SAME_WITH(tsr_op_expand(f.p, f.rows3, 2, many), "expand", LIST(f.rows3), tsr_attribute_ints("shape", 2, many));
    SAME_WITH(tsr_op_squeeze(f.p, f.rows3, 1, first), "squeeze", LIST(f.rows3), tsr_attribute_ints("dim", 1, first));
    SAME_WITH(tsr_op_unsqueeze(f.p, f.x, 0), "unsqueeze", LIST(f.x), dim);
    SAME_WITH(tsr_op_slice(f.p, f.x, 0, 1, 4, 2), "slice", LIST(f.x), dim, tsr_attribute_int("start", 1),
              tsr_attribute_int("end", 4), tsr_attribute_int("step", 2));
    SAME_WITH(tsr_op_narrow(f.p, f.x, 0, 1, 2), "narrow", LIST(f.x), dim, tsr_attribute_int("start", 1),
              tsr_attribute_int("length", 2));
    SAME_WITH(tsr_op_pad(f.p, f.x, 0, 1, 2, 7), "pad", LIST(f.x), dim, tsr_attribute_int("before", 1),
              tsr_attribute_int("after", 2), tsr_attribute_float("value", 7));
    SAME_WITH(tsr_op_flip(f.p, f.x, 1, first), "flip", LIST(f.x), tsr_attribute_ints("dim", 1, first));
    SAME_WITH(tsr_op_roll(f.p, f.x, 0, 2), "roll", LIST(f.x), dim, tsr_attribute_int("shift", 2));
    SAME_WITH(tsr_op_tril(f.p, f.x, 1), "tril", LIST(f.x), tsr_attribute_int("diagonal", 1));
    SAME_WITH(tsr_op_triu(f.p, f.x, 1), "triu", LIST(f.x), tsr_attribute_int("diagonal", 1));
    SAME_WITH(tsr_op_concat(f.p, 2, LIST(f.x, f.y), 0), "concat", LIST(f.x, f.y), dim);
    const tsr_value a = tsr_op_unsqueeze(f.p, f.x, 0), b = tsr_op_unsqueeze(f.p, f.y, 0);
    SAME_WITH(tsr_op_stack(f.p, 2, LIST(f.x, f.y), 0), "concat", LIST(a, b), dim);
    tsr_op_split(f.p, f.x, 0, 2, sizes, parts);
    assert_int_equal(parts[0], tsr_op_narrow(f.p, f.x, 0, 0, 1));
    assert_int_equal(parts[1], tsr_op_narrow(f.p, f.x, 0, 1, 3));
    close(&f);
}

static void random_numbers_are_recorded(void **state)
{
    fixture f;
    const tsr_random_key key = tsr_random_key_philox(5, 6);
    const int64_t words[] = {5, 6};
    const tsr_attribute generator = tsr_attribute_word("generator", "philox"), of = tsr_attribute_ints("key", 2, words);
    (void)state;
    open(&f);
    SAME_WITH(tsr_op_dropout(f.p, f.x, 0.25, &key), "dropout", LIST(f.x), generator, of,
              tsr_attribute_float("p", 0.25));
    /* Those that fill have an operand that nobody reads: the same call gives the same value. */
    const tsr_layout *const floats = tsr_value_layout(f.p, f.x), *const integers = tsr_value_layout(f.p, f.integers),
                            *const bools = tsr_value_layout(f.p, f.mask);
#define TWICE(call, like)                                                                                              \
    do {                                                                                                               \
        const tsr_value first = call;                                                                                  \
        assert_int_not_equal(first, TSR_NONE);                                                                         \
        assert_int_equal(call, first);                                                                                 \
        assert_true(tsr_layout_equal(tsr_value_layout(f.p, first), like));                                             \
    } while (0)
    TWICE(tsr_op_uniform(f.p, floats, &key, -1, 1), floats);
    TWICE(tsr_op_normal(f.p, floats, &key, 0, 2), floats);
    TWICE(tsr_op_truncated_normal(f.p, floats, &key, 0, 1, -2, 2), floats);
    TWICE(tsr_op_bernoulli(f.p, bools, &key, 0.5), bools);
    TWICE(tsr_op_bits(f.p, integers, &key), integers);
    TWICE(tsr_op_randint(f.p, integers, &key, 0, 9), integers);
    assert_int_not_equal(tsr_op_uniform(f.p, floats, &key, 0, 1), tsr_op_uniform(f.p, floats, &key, 0, 2));
    close(&f);
}

static void layouts_are_recorded(void **state)
{
    fixture f;
    char text[64];
    (void)state;
    open(&f);
    SAME_WITH(tsr_op_redistribute(f.p, f.x, "S(0)"), "redistribute", LIST(f.x),
              tsr_attribute_text("placements", "S(0)"));
    const tsr_value listed = tsr_op_redistribute(f.p, f.x, "S(0;sizes=1,3)");
    tsr_layout_print(tsr_value_layout(f.p, listed), text, sizeof text);
    assert_string_equal(text, "S(0;sizes=1,3)");
    assert_int_equal(tsr_op_to_mesh(f.p, f.x, tsr_value_layout(f.p, listed)), listed);
    assert_int_equal(tsr_op_redistribute(f.p, f.x, "R"), f.x);
    SAME(tsr_op_all_reduce(f.p, f.terms, 0), "all_reduce", LIST(f.terms));
    SAME(tsr_op_vary(f.p, f.x), "vary", LIST(f.x));
    assert_int_equal(tsr_value_varying(f.p, f.x), 0);
    assert_int_equal(tsr_value_varying(f.p, tsr_op_vary(f.p, f.x)), 1);
    /* Of a state, what is stored. */
    const tsr_value cache = tsr_state(f.p, "cache", tsr_value_layout(f.p, f.x));
    tsr_op_store(f.p, cache, f.x, TSR_NONE);
    SAME_WITH(tsr_op_redistribute(f.p, cache, "S(1)"), "redistribute", LIST(cache),
              tsr_attribute_text("placements", "S(1)"));
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    close(&f);
}

/* What a call that is refused leaves. */
static void expect_refusal(fixture *f, tsr_value made, const char *sentence)
{
    const char *kept;
    assert_int_equal(made, TSR_NONE);
    assert_int_not_equal(tsr_program_status(f->p, &kept), TSR_OK);
    assert_string_equal(kept, sentence);
    /* It sticks: later calls do nothing. */
    assert_int_equal(tsr_op_neg(f->p, f->x), TSR_NONE);
    close(f);
    open(f);
}

static void errors_name_the_place(void **state)
{
    fixture f;
    tsr_value parts[2] = {7, 7};
    const int64_t sizes[] = {1, 2};
    tsr_cross_entropy_options loss = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    const tsr_random_key none = {0};
    (void)state;
    open(&f);
    loss.reduction = (tsr_loss_reduction)9;
    assert_int_equal(tsr_op_neg(NULL, 0), TSR_NONE);
    assert_int_equal(tsr_op_concat(NULL, 1, LIST(0), 0), TSR_NONE);
    tsr_op_neg(f.p, f.x);
    expect_refusal(&f, tsr_op_add(f.p, f.x, 99), "op 1, add: y is value 99, which is not one of the program's");
    expect_refusal(&f, tsr_op_concat(f.p, 9, LIST(f.x), 0), "op 0, concat: count is 9, but must be 1 to 8");
    expect_refusal(&f, tsr_op_stack(f.p, 1, NULL, 0), "op 0, stack: x is NULL");
    expect_refusal(&f, tsr_op_einsum(f.p, "a", 0, LIST(f.x)), "op 0, einsum: count is 0, but must be 1 to 4");
    expect_refusal(&f, tsr_op_redistribute(f.p, 99, "R"), "op 0, redistribute: x is not one of the program's values");
    expect_refusal(&f, tsr_op_redistribute(f.p, f.x, NULL), "op 0, redistribute: placements is NULL");
    expect_refusal(&f, tsr_op_cross_entropy(f.p, f.x, f.ids, &loss),
                   "op 0, cross_entropy: reduction is 9, but must be a tsr_loss_reduction");
    expect_refusal(&f, tsr_op_dropout(f.p, f.x, 0.5, NULL), "op 0, dropout: key is NULL");
    expect_refusal(&f, tsr_op_bits(f.p, tsr_value_layout(f.p, f.integers), &none),
                   "op 0, bits: key has generator 0; make it by tsr_random_key_threefry() or "
                   "tsr_random_key_philox()");
    expect_refusal(&f, tsr_op_uniform(f.p, NULL, &none, 0, 1), "op 0, uniform: layout is NULL");
    tsr_op_split(f.p, f.x, 0, 2, sizes, parts);
    assert_int_equal(parts[1], TSR_NONE);
    expect_refusal(&f, parts[0], "op 0, split: sizes must be 0 or more and sum to 4, the size of dim 0");
    close(&f);
}

/* The gradient by `value` of the sum of y. */
static tsr_value differentiate(const fixture *f, tsr_value y, tsr_value value)
{
    tsr_value made = TSR_NONE;
    const tsr_value whole = tsr_op_all_reduce(f->p, y, 0);
    tsr_gradients(f->p, tsr_op_all_reduce(f->p, tsr_op_sum(f->p, whole, 0, NULL, 0), 0), 1, &value, &made);
    return made;
}

static void gradients_refuse_terms(void **state)
{
    fixture f;
    (void)state;
    open(&f);
    const tsr_value w = input(&f, "w", TSR_F32, 2, 3, 6, 0, "S(0)");
    expect_refusal(
        &f, differentiate(&f, tsr_op_linear(f.p, f.x, w, TSR_NONE), f.x),
        "tsr_gradients: op 0, linear leaves terms of the gradient by \"x\", \"P\", which is invariant: every "
        "rank needs the sum; give the op tsr_op_vary(program, \"x\") instead, whose backward adds the "
        "terms");
    const tsr_value weight = input(&f, "weight", TSR_F32, 1, 6, 0, 0, "P");
    expect_refusal(&f, differentiate(&f, tsr_op_rms_norm(f.p, f.x, weight, 1), weight),
                   "tsr_gradients: op 0, rms_norm leaves terms of the gradient by \"weight\", \"P\", which is Partial "
                   "itself: every rank needs the sum; give the op tsr_op_all_reduce(program, \"weight\", 1) instead, "
                   "whose backward adds the terms");
    const tsr_value again = input(&f, "weight", TSR_F32, 1, 6, 0, 0, "P");
    const tsr_value made = differentiate(&f, tsr_op_rms_norm(f.p, f.x, tsr_op_all_reduce(f.p, again, 1), 1), again);
    assert_int_equal(tsr_layout_placements(tsr_value_layout(f.p, made))[0].kind, TSR_REPLICATE);
    close(&f);
}

/* Cuts with other names, where each rank has the same elements, are no reason to move: under the
 * policy forbid gradients and outputs have them. */
static void cuts_of_one_meaning_need_no_policy(void **state)
{
    fixture f;
    char text[64];
    (void)state;
    open(&f);
    const tsr_value x = input(&f, "cut", TSR_F32, 2, 4, 6, 0, "S(0;balanced)");
    const tsr_value made = differentiate(&f, tsr_op_square(f.p, x), x);
    tsr_layout_print(tsr_value_layout(f.p, made), text, sizeof text);
    assert_string_equal(text, "S(0;balanced)");
    tsr_output(f.p, "square", tsr_op_square(f.p, x), "S(0;unit=2)");
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    tsr_output(f.p, "whole", tsr_op_square(f.p, x), "R");
    assert_int_not_equal(tsr_program_status(f.p, NULL), TSR_OK);
    close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_recorded),  cmocka_unit_test(reductions_and_norms_are_recorded),
        cmocka_unit_test(products_are_recorded),  cmocka_unit_test(transformers_are_recorded),
        cmocka_unit_test(mixtures_are_recorded),  cmocka_unit_test(rows_by_id_are_recorded),
        cmocka_unit_test(views_are_recorded),     cmocka_unit_test(random_numbers_are_recorded),
        cmocka_unit_test(layouts_are_recorded),   cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(gradients_refuse_terms), cmocka_unit_test(cuts_of_one_meaning_need_no_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
