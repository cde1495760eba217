/* Fuzzes equations of einsum: refused with a sentence, or the results have layouts. */
#include "fuzz.h"

#include <tessera/ops.h>

#define OPERANDS 3

static tsr_layout *make(const tsr_mesh *mesh, int ndim)
{
    static const int64_t shape[] = {2, 3, 2, 3, 2, 3};
    tsr_placement placement = tsr_replicate();
    tsr_layout *layout;
    FUZZ_REQUIRE(tsr_layout_create(mesh, &placement, ndim, shape, TSR_F32, &layout) == TSR_OK);
    return layout;
}

/* The first byte says how many dims the operands have. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *const text = fuzz_text(data + 1, size - 1);
    const tsr_op *op;
    tsr_mesh *mesh;
    tsr_layout *operands[TSR_OP_MOST_OPERANDS] = {NULL}, *results[TSR_OP_MOST_RESULTS] = {NULL};
    FUZZ_REQUIRE(tsr_op_find(NULL, "einsum", &op) == TSR_OK);
    FUZZ_REQUIRE(tsr_mesh_parse(NULL, NULL, "2", &mesh) == TSR_OK);
    for (int i = 0, dims = data[0]; i < OPERANDS; i++, dims /= 6)
        operands[i] = i == 0 || dims % 6 ? make(mesh, dims % 6) : NULL;
    const tsr_attribute equation = tsr_attribute_text("equation", text);
    const tsr_status status = tsr_op_propagate(op, 1, &equation, (const tsr_layout *const *)operands, results);
    FUZZ_REQUIRE(status == TSR_OK ? results[0] != NULL : tsr_status_message()[0] != '\0');
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_layout_destroy(results[i]);
    for (int i = 0; i < OPERANDS; i++)
        tsr_layout_destroy(operands[i]);
    tsr_mesh_destroy(mesh);
    free(text);
    return 0;
}
