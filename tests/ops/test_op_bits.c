/* The bits of ops' results: narrow floats are rounded once, and all sets of instructions agree. */
#include "layers.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 4096

static tsr_status expect(bool held, const char *name, double x, double got, double wanted)
{
    return held ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s of %.17g is %.17g, not %.17g", name, x, got, wanted);
}

/* Every code of f16 and bf16 goes to f32 and back unchanged, NaNs aside, and strided rows of ops
 * give what contiguous ones do. */
static tsr_status check_narrow(tsr_comm *comm, void *arg)
{
    static uint16_t codes[65536], result[65536];
    static const int64_t count = 65536;
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint16_t)i;
    for (int narrow = 0; narrow < 2; narrow++) {
        const tsr_dtype dtype = narrow ? TSR_BF16 : TSR_F16;
        const tsr_tensor global = tsr_tensor_contiguous(codes, dtype, 1, &count);
        const uint16_t infinity = narrow ? 0x7f80 : 0x7c00;
        tsr_dtensor *x, *wide, *back;
        TSR_TRY(tsr_distribute(&global, mesh, "R", &x));
        TSR_TRY(tsr_cast(x, TSR_F32, &wide));
        TSR_TRY(tsr_cast(wide, dtype, &back));
        memcpy(result, tsr_dtensor_to_local(back).data, sizeof result);
        for (int64_t i = 0; i < count; i++) {
            const bool nan = (i & 0x7fff) > infinity;
            TSR_TRY(expect(nan ? (result[i] & 0x7fff) > infinity : result[i] == i, "a code", (double)i, result[i],
                           (double)i));
        }
        tsr_dtensor_destroy(x);
        tsr_dtensor_destroy(wide);
        tsr_dtensor_destroy(back);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void narrow_codes_come_back(void **state)
{
    (void)state;
    layers_run(1, check_narrow, NULL);
}

static tsr_status check_rounding(tsr_comm *comm, void *arg)
{
    /* Halves between two f16 go to the even one; 65520 is the first number that overflows. */
    static const int64_t count = 8;
    float values[] = {2049, 2051, 65519, 65520, 0x1p-25F, 0x1.8p-24F, -0x1p-24F, 1.00048828125F};
    static const uint16_t wanted[] = {0x6800, 0x6802, 0x7bff, 0x7c00, 0, 2, 0x8001, 0x3c00};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 1, &count);
    tsr_mesh *mesh;
    tsr_dtensor *x, *narrow;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_distribute(&global, mesh, "R", &x));
    TSR_TRY(tsr_cast(x, TSR_F16, &narrow));
    for (int64_t i = 0; i < count; i++) {
        const uint16_t got = ((const uint16_t *)tsr_dtensor_to_local(narrow).data)[i];
        TSR_TRY(expect(got == wanted[i], "f16", (double)values[i], got, wanted[i]));
    }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(narrow);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void narrow_results_are_rounded_to_even(void **state)
{
    (void)state;
    layers_run(1, check_rounding, NULL);
}

/* Results of all ops with one operand, as bits; the bits of NaNs are not told. */
typedef struct bits {
    size_t count;
    uint32_t words[128 * COUNT];
} bits;

static tsr_status collect_bits(const tsr_dtensor *x, bits *all)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    if (local.dtype != TSR_F32)
        return TSR_OK;
    for (int64_t i = 0; i < local.shape[0]; i++) {
        const float value = ((const float *)local.data)[i];
        uint32_t word;
        memcpy(&word, &value, sizeof word);
        if (all->count == sizeof all->words / sizeof all->words[0])
            return tsr_status_set(TSR_ERROR_INTERNAL, "there is no room for more results");
        all->words[all->count++] = value == value ? word : 0;
    }
    return TSR_OK;
}

/* False for ops that want operands of other dtypes or shapes, such as ids. */
static bool takes_floats(const tsr_op *op, const tsr_layout *x)
{
    tsr_layout *results[TSR_OP_MOST_RESULTS];
    if (tsr_op_propagate(op, 0, NULL, (const tsr_layout *const[]){x, x, x, x, x, x, x, x}, results) != TSR_OK)
        return false;
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_layout_destroy(results[i]);
    return true;
}

static tsr_status compute_bits(tsr_comm *comm, void *arg)
{
    static const int64_t count = COUNT - 5;
    float values[COUNT];
    tsr_mesh *mesh;
    tsr_dtensor *x;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t word = i * UINT32_C(2654435769);
        memcpy(&values[i], &word, sizeof word);
    }
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 1, &count);
    TSR_TRY(tsr_distribute(&global, mesh, "R", &x));
    for (size_t i = 0; tsr_op_get(NULL, i); i++) {
        const tsr_op *const op = tsr_op_get(NULL, i);
        tsr_op_info info;
        tsr_op_describe(op, &info);
        const bool sums = info.attributes[0].name && info.attributes[0].kind == TSR_ATTRIBUTE_INTS;
        tsr_dtensor *out[TSR_OP_MOST_RESULTS];
        if (sums || strcmp(info.operands[0], "condition") == 0 || !takes_floats(op, tsr_dtensor_layout(x)))
            continue;
        TSR_TRY(tsr_op_call(op, 0, NULL, (const tsr_dtensor *const[]){x, x, x, x, x, x, x, x}, out));
        TSR_TRY(collect_bits(out[0], arg));
        for (int result = 0; info.results[result]; result++)
            tsr_dtensor_destroy(out[result]);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void instruction_sets_give_the_same_bits(void **state)
{
    static bits all[3];
    (void)state;
    layers_run_sets(compute_bits, all, sizeof all[0]);
    assert_true(all[0].count > 20 * (COUNT - 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_codes_come_back),
        cmocka_unit_test(narrow_results_are_rounded_to_even),
        cmocka_unit_test(instruction_sets_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
