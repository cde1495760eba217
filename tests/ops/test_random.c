/* Random numbers: those of jax.random and torch.func._random (tests/golden/random.txt), under any
 * layout; errors. */
#include "layers.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINE 2048

/* A line of the golden file: elements of a tensor of `count` from `first` on. */
typedef struct slice {
    char op[16], dtype[8], a[32], b[32];
    tsr_random_key key;
    int64_t count, first;
    int length;
    uint64_t bits[32];
} slice;

static tsr_status expect(bool holds, const char *what)
{
    return holds ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s", what);
}

static tsr_random_generator generator_of(const char *name)
{
    return strcmp(name, "philox") == 0 ? TSR_RANDOM_PHILOX : TSR_RANDOM_THREEFRY;
}

static tsr_status check_split(const char *line)
{
    char name[16];
    uint64_t from[2], index, to[2];
    if (sscanf(line, "split %15s %ju %ju %ju %ju %ju", name, &from[0], &from[1], &index, &to[0], &to[1]) != 6)
        return tsr_status_set(TSR_ERROR_INTERNAL, "cannot read %s", line);
    const tsr_random_key key = {generator_of(name), {from[0], from[1]}};
    const tsr_random_key split = tsr_random_key_split(key, index), folded = tsr_random_key_fold_in(key, index);
    return expect(split.words[0] == to[0] && split.words[1] == to[1] && split.generator == key.generator &&
                      folded.words[0] == to[0] && folded.words[1] == to[1],
                  line);
}

static tsr_status read_slice(const char *line, slice *out)
{
    char name[16];
    int used;
    if (sscanf(line, "%15s %ju %ju %15s %7s %31s %31s %jd %jd%n", name, &out->key.words[0], &out->key.words[1], out->op,
               out->dtype, out->a, out->b, &out->count, &out->first, &used) != 9)
        return tsr_status_set(TSR_ERROR_INTERNAL, "cannot read %s", line);
    out->key.generator = generator_of(name);
    char *end = (char *)line + used;
    for (out->length = 0; *end == ' '; out->length++)
        out->bits[out->length] = strtoull(end, &end, 16);
    return TSR_OK;
}

static tsr_status make_slice(const slice *s, const tsr_layout *layout, tsr_dtensor **out)
{
    const double a = strtod(s->a, NULL), b = strtod(s->b, NULL);
    if (strcmp(s->op, "bits") == 0)
        return tsr_bits(layout, &s->key, out);
    if (strcmp(s->op, "uniform") == 0)
        return tsr_uniform(layout, &s->key, a, b, out);
    if (strcmp(s->op, "normal") == 0)
        return tsr_normal(layout, &s->key, a, b, out);
    if (strcmp(s->op, "randint") == 0)
        return tsr_randint(layout, &s->key, (int64_t)a, (int64_t)b, out);
    return tsr_bernoulli(layout, &s->key, a, out);
}

/* Units in the last place between two numbers of as many bits. */
static double distance(const void *x, uint64_t bits, tsr_dtype dtype)
{
    if (dtype == TSR_F32) {
        const uint32_t narrow = (uint32_t)bits;
        float ours, theirs;
        memcpy(&ours, x, sizeof ours);
        memcpy(&theirs, &narrow, sizeof theirs);
        return fabs((double)ours - (double)theirs) / (double)(nextafterf(fabsf(theirs), INFINITY) - fabsf(theirs));
    }
    double ours, theirs;
    memcpy(&ours, x, sizeof ours);
    memcpy(&theirs, &bits, sizeof theirs);
    return fabs(ours - theirs) / (fabs(theirs) > 1 ? nextafter(fabs(theirs), INFINITY) - fabs(theirs) : 0x1p-52);
}

static bool is_same(const slice *s, const void *x, uint64_t bits, tsr_dtype dtype)
{
    uint64_t ours = 0;
    memcpy(&ours, x, tsr_dtype_bytes(dtype));
    /* jax.random's normal numbers of f64 have errors of up to 30 units of their own. */
    if (strcmp(s->op, "normal") == 0)
        return distance(x, bits, dtype) <= (dtype == TSR_F64 && s->key.generator == TSR_RANDOM_THREEFRY ? 32 : 4);
    return ours == bits;
}

/* Filling a dtensor gives what making one does. */
static tsr_status check_into(const slice *s, const tsr_dtensor *made)
{
    const double a = strtod(s->a, NULL), b = strtod(s->b, NULL);
    tsr_dtensor *filled;
    TSR_TRY(tsr_dtensor_like(made, &filled));
    if (strcmp(s->op, "bits") == 0)
        TSR_TRY(tsr_bits_into(&s->key, filled));
    else if (strcmp(s->op, "uniform") == 0)
        TSR_TRY(tsr_uniform_into(&s->key, a, b, filled));
    else if (strcmp(s->op, "normal") == 0)
        TSR_TRY(tsr_normal_into(&s->key, a, b, filled));
    else if (strcmp(s->op, "randint") == 0)
        TSR_TRY(tsr_randint_into(&s->key, (int64_t)a, (int64_t)b, filled));
    else
        TSR_TRY(tsr_bernoulli_into(&s->key, a, filled));
    const tsr_tensor ours = tsr_dtensor_to_local(filled), theirs = tsr_dtensor_to_local(made);
    const size_t bytes = (size_t)ours.shape[0] * tsr_dtype_bytes(ours.dtype);
    const bool same = bytes == 0 || memcmp(ours.data, theirs.data, bytes) == 0;
    tsr_dtensor_destroy(filled);
    return expect(same, "what is filled is what is made");
}

static tsr_status check_slice(const tsr_mesh *mesh, const char *line, int number)
{
    static const char *const placements[] = {"S(0)", "R", "S(0;unit=5)", "S(0;interleave=3)", "S(0;balanced)"};
    slice s = {.length = 0};
    tsr_dtype dtype;
    tsr_layout *layout;
    tsr_dtensor *made, *whole;
    TSR_TRY(read_slice(line, &s));
    TSR_TRY(tsr_dtype_parse(s.dtype, &dtype));
    TSR_TRY(tsr_layout_parse(mesh, placements[number % 5], 1, &s.count, dtype, &layout));
    TSR_TRY(make_slice(&s, layout, &made));
    TSR_TRY(expect(tsr_layout_equal(tsr_dtensor_layout(made), layout), "the layout is another"));
    TSR_TRY(check_into(&s, made));
    TSR_TRY(tsr_full_tensor(made, &whole));
    const char *const data = tsr_dtensor_to_local(whole).data;
    const size_t bytes = tsr_dtype_bytes(dtype);
    tsr_status status = TSR_OK;
    for (int i = 0; i < s.length && status == TSR_OK; i++) {
        if (!is_same(&s, data + ((size_t)s.first + (size_t)i) * bytes, s.bits[i], dtype))
            status = tsr_status_set(TSR_ERROR_INTERNAL, "line %d, element %d: %.60s", number + 1, i, line);
    }
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(made);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status check_golden(tsr_comm *comm, void *arg)
{
    char line[LINE];
    tsr_mesh *mesh;
    tsr_status status = TSR_OK;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    FILE *const file = fopen(GOLDEN_DIR "/random.txt", "r");
    TSR_TRY(expect(file != NULL, "no golden file"));
    int number = 0;
    for (; status == TSR_OK && fgets(line, sizeof line, file); number++)
        status = strncmp(line, "split", 5) == 0 ? check_split(line) : check_slice(mesh, line, number);
    fclose(file);
    tsr_mesh_destroy(mesh);
    return status == TSR_OK ? expect(number == 192, "lines are missing") : status;
}

static void numbers_are_those_of_peers(void **state)
{
    (void)state;
    layers_run(3, check_golden, NULL);
}

static tsr_status check_layouts(tsr_comm *comm, void *arg)
{
    static const char *const cuts[] = {"S(0),S(1)", "S(1),S(1)", "S(2),R", "S(1;interleave=2),S(0;unit=2)", "R,R"};
    static const int64_t shape[] = {5, 6, 7};
    const tsr_random_key key = tsr_random_key_philox(5, 0);
    float reference[210];
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x3", &mesh));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        tsr_layout *layout;
        tsr_dtensor *x, *whole;
        TSR_TRY(tsr_layout_parse(mesh, cuts[i], 3, shape, TSR_F32, &layout));
        TSR_TRY(tsr_normal(layout, &key, 1, 2, &x));
        TSR_TRY(tsr_full_tensor(x, &whole));
        const void *const data = tsr_dtensor_to_local(whole).data;
        if (i == 0)
            memcpy(reference, data, sizeof reference);
        TSR_TRY(expect(memcmp(reference, data, sizeof reference) == 0, cuts[i]));
        tsr_dtensor_destroy(whole);
        tsr_dtensor_destroy(x);
        tsr_layout_destroy(layout);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void layouts_change_no_bit(void **state)
{
    (void)state;
    layers_run(6, check_layouts, NULL);
}

/* The kernels of all sets of instructions that this processor runs. */
static tsr_status check_sets(tsr_comm *comm, void *arg)
{
    static const char *const sets[] = {"portable", "avx2", "avx512"};
    static const int64_t shape[] = {4099};
    double reference[4][4099];
    (void)arg;
    for (size_t i = 0; i < 3; i++) {
        tsr_context *context;
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        options.kernels = sets[i];
        if (tsr_context_create(&options, &context) != TSR_OK)
            continue;
        tsr_mesh *mesh;
        tsr_layout *layout;
        TSR_TRY(tsr_mesh_parse(comm, context, "1", &mesh));
        TSR_TRY(tsr_layout_parse(mesh, "R", 1, shape, TSR_F64, &layout));
        for (int which = 0; which < 4; which++) {
            tsr_dtensor *x;
            const tsr_random_key key = which & 1 ? tsr_random_key_philox(9, 1) : tsr_random_key_threefry(9);
            if (which < 2)
                TSR_TRY(tsr_normal(layout, &key, 0, 1, &x));
            else
                TSR_TRY(tsr_uniform(layout, &key, -1, 3, &x));
            const void *const data = tsr_dtensor_to_local(x).data;
            if (i == 0)
                memcpy(reference[which], data, sizeof reference[which]);
            TSR_TRY(expect(memcmp(reference[which], data, sizeof reference[which]) == 0, sets[i]));
            tsr_dtensor_destroy(x);
        }
        tsr_layout_destroy(layout);
        tsr_mesh_destroy(mesh);
        tsr_context_destroy(context);
    }
    return TSR_OK;
}

static void instructions_change_no_bit(void **state)
{
    (void)state;
    layers_run(1, check_sets, NULL);
}

/* Mean and mean square of what an initializer makes. */
static void measure(const tsr_dtensor *x, double *mean, double *square, double *largest)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const float *const data = local.data;
    const int64_t count = local.shape[0] * local.shape[1];
    *mean = *square = *largest = 0;
    for (int64_t i = 0; i < count; i++) {
        *mean += (double)data[i] / (double)count;
        *square += (double)data[i] * (double)data[i] / (double)count;
        *largest = fmax(*largest, fabs((double)data[i]));
    }
}

static tsr_status check_moments(const tsr_dtensor *x, const char *what, double deviation, double bound)
{
    double mean, square, largest;
    measure(x, &mean, &square, &largest);
    return expect(fabs(mean) < 0.02 * deviation && fabs(sqrt(square) - deviation) < 0.01 * deviation &&
                      largest <= bound && largest > 2 * 0.86 * deviation * (bound < 1.8 * deviation ? 0.99 : 1) * 0.99,
                  what);
}

static tsr_status check_initializers(tsr_comm *comm, void *arg)
{
    static const int64_t shape[] = {300, 200};
    const tsr_random_key key = tsr_random_key_threefry(3);
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x[5];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_xavier_uniform(layout, &key, 1, 200, 300, &x[0]));
    TSR_TRY(check_moments(x[0], "xavier uniform", sqrt(2.0 / 500), sqrt(6.0 / 500) * (1 + 1e-7)));
    TSR_TRY(tsr_xavier_normal(layout, &key, 2, 200, 300, &x[1]));
    TSR_TRY(check_moments(x[1], "xavier normal", 2 * sqrt(2.0 / 500), 1));
    TSR_TRY(tsr_kaiming_uniform(layout, &key, sqrt(2), 200, &x[2]));
    TSR_TRY(check_moments(x[2], "kaiming uniform", sqrt(2.0 / 200), sqrt(6.0 / 200) * (1 + 1e-7)));
    TSR_TRY(tsr_kaiming_normal(layout, &key, 1, 200, &x[3]));
    TSR_TRY(check_moments(x[3], "kaiming normal", sqrt(1.0 / 200), 1));
    /* Of a normal number cut off at 2 the deviation is 0.8796. */
    TSR_TRY(tsr_truncated_normal(layout, &key, 0, 1, -2, 2, &x[4]));
    TSR_TRY(check_moments(x[4], "truncated normal", 0.87962566, 2));
    TSR_TRY(tsr_truncated_normal_into(&key, 0, 1, -2, 2, x[3]));
    TSR_TRY(expect(memcmp(tsr_dtensor_to_local(x[3]).data, tsr_dtensor_to_local(x[4]).data, 240000) == 0, "into"));
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(x[i]);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void initializers_have_their_deviations(void **state)
{
    (void)state;
    layers_run(1, check_initializers, NULL);
}

static tsr_status check_dropout(tsr_comm *comm, void *arg)
{
    static const int64_t shape[] = {1001};
    const tsr_random_key key = tsr_random_key_threefry(11), other = tsr_random_key_fold_in(key, 1);
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x, *y, *dx, *mask, *second;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_F64, &layout));
    TSR_TRY(tsr_uniform(layout, &other, 1, 2, &x));
    TSR_TRY(tsr_dropout(x, 0.25, &key, &y));
    TSR_TRY(tsr_dropout_backward(x, 0.25, &key, x, &dx));
    TSR_TRY(tsr_dropout(x, 0.25, &other, &second));
    const int64_t count = tsr_dtensor_to_local(x).shape[0];
    tsr_layout_destroy(layout);
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_BOOL, &layout));
    TSR_TRY(tsr_bernoulli(layout, &key, 0.75, &mask));
    const double *const from = tsr_dtensor_to_local(x).data, *const to = tsr_dtensor_to_local(y).data;
    const double *const back = tsr_dtensor_to_local(dx).data, *const others = tsr_dtensor_to_local(second).data;
    const uint8_t *const kept = tsr_dtensor_to_local(mask).data;
    int64_t differ = 0;
    for (int64_t i = 0; i < count; i++) {
        TSR_TRY(expect(to[i] == (kept[i] ? from[i] / 0.75 : 0) && back[i] == to[i], "dropout"));
        differ += to[i] != others[i];
    }
    TSR_TRY(expect(differ > count / 4, "another key has another mask"));
    TSR_TRY(tsr_dropout_into(x, 0.25, &key, x));
    TSR_TRY(expect(memcmp(from, to, (size_t)count * sizeof *from) == 0, "in place"));
    TSR_TRY(tsr_dropout_into(y, 1, &key, y));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(expect(to[i] == 0, "all are dropped"));
    tsr_dtensor *const all[] = {x, y, dx, mask, second};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void dropout_has_its_mask_again(void **state)
{
    (void)state;
    layers_run(2, check_dropout, NULL);
}

static tsr_status expect_refusal(tsr_status status, const char *sentence)
{
    if (status == TSR_ERROR_ARGUMENT && strstr(tsr_status_message(), sentence))
        return TSR_OK;
    char got[512];
    snprintf(got, sizeof got, "%s", tsr_status_message());
    return tsr_status_set(TSR_ERROR_INTERNAL, "\"%s\" instead of \"%s\"", got, sentence);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    static const int64_t shape[] = {4};
    const tsr_random_key key = tsr_random_key_threefry(1), none = {0};
    tsr_mesh *mesh;
    tsr_layout *terms, *floats, *integers;
    tsr_dtensor *x = NULL, *y;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "P", 1, shape, TSR_F32, &terms));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_F32, &floats));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_I32, &integers));
    TSR_TRY(expect_refusal(tsr_uniform(terms, &key, 0, 1, &x),
                           "tsr_uniform: layout is Partial(sum) on mesh dim 0, but random numbers are values and not "
                           "terms; take Replicate there"));
    TSR_TRY(expect_refusal(tsr_uniform(integers, &key, 0, 1, &x),
                           "tsr_uniform: like is i32, but uniform takes f64, f32, f16, bf16"));
    TSR_TRY(expect_refusal(tsr_normal(floats, &key, 0, -1, &x), "tsr_normal: std is -1, but must be 0 or more"));
    TSR_TRY(expect_refusal(tsr_uniform(floats, &key, 1, 1, &x), "high is 1, but must be finite and above low"));
    TSR_TRY(expect_refusal(tsr_uniform(floats, &key, NAN, 1, &x), "low is nan, but must be finite"));
    TSR_TRY(expect_refusal(tsr_uniform(floats, NULL, 0, 1, &x), "tsr_uniform: key is NULL"));
    TSR_TRY(expect_refusal(tsr_uniform(NULL, &key, 0, 1, &x), "tsr_uniform: layout is NULL"));
    TSR_TRY(expect_refusal(tsr_bits(integers, &none, &x), "tsr_bits: key has generator 0; make it by"));
    TSR_TRY(expect_refusal(tsr_bits_into(&key, NULL), "tsr_bits_into: out is NULL"));
    TSR_TRY(expect_refusal(tsr_randint(integers, &key, 3, 3, &x), "high is 3, but must be above low, 3"));
    TSR_TRY(expect_refusal(tsr_randint(integers, &key, 0, INT64_C(1) << 40, &x), "i32 lacks integers; use i64"));
    TSR_TRY(expect_refusal(tsr_kaiming_normal(floats, &key, 1, 0, &x), "fan is 0, but must be above 0"));
    TSR_TRY(expect_refusal(tsr_xavier_normal(floats, &key, 0, 1, 1, &x), "gain is 0, but must be above 0"));
    TSR_TRY(expect_refusal(tsr_truncated_normal(floats, &key, 0, 0, -1, 1, &x), "std is 0, but must be above 0"));
    TSR_TRY(tsr_uniform(floats, &key, 0, 1, &y));
    TSR_TRY(expect_refusal(tsr_dropout(y, 1.5, &key, &x), "tsr_dropout: p is 1.5, but must be a probability"));
    TSR_TRY(expect_refusal(tsr_dropout(y, 0.5, &none, &x), "tsr_dropout: key has generator 0"));
    TSR_TRY(expect_refusal(tsr_randint_into(&key, 0, 5, y), "tsr_randint_into: like is f32, but randint takes i64"));
    TSR_TRY(expect(!x, "a failure sets no output"));
    tsr_dtensor_destroy(y);
    tsr_layout_destroy(terms);
    tsr_layout_destroy(floats);
    tsr_layout_destroy(integers);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_peers),         cmocka_unit_test(layouts_change_no_bit),
        cmocka_unit_test(instructions_change_no_bit),         cmocka_unit_test(dropout_has_its_mask_again),
        cmocka_unit_test(initializers_have_their_deviations), cmocka_unit_test(wrong_arguments_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
