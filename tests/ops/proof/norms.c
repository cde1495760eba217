#include "proof.h"

/* Operands of one shape, and one of their dims. */
static void along_dim(draw *d, proof *p)
{
    whole full;
    draw_full(d, &full);
    proof_attribute(p, "dim")->integer = draw_below(d, full.ndim + 1) - 1;
    const tsr_dtype dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    for (int i = 0; i < p->operand_count; i++) {
        set_shape(&p->operands[i], full.ndim, full.shape);
        p->operands[i].dtype = dtype;
        draw_values(d, &p->operands[i]);
    }
}

const proof_case proof_norms[] = {
    {"softmax", along_dim},
    {"log_softmax", along_dim},
    {"softmax_gradient", along_dim},
    {"log_softmax_gradient", along_dim},
    {NULL},
};
