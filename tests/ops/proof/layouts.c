#include "proof.h"

#include <string.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_F32, TSR_I32};

static void any(draw *d, proof *p)
{
    whole full;
    draw_full(d, &full);
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    for (int i = 0; i < p->operand_count; i++) {
        set_shape(&p->operands[i], full.ndim, full.shape);
        p->operands[i].dtype = dtype;
        draw_values(d, &p->operands[i]);
    }
}

/* Placements that every tensor can have; a line for what others need would be a proof of moves. */
static void to_replicate(draw *d, proof *p)
{
    static const char *const texts[] = {"", "R", "R,R", "R,R,R"};
    any(d, p);
    const int ndim = tsr_mesh_ndim(p->mesh);
    *proof_attribute(p, "placements") = tsr_attribute_text("placements", texts[ndim]);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_layouts[] = {
    {"redistribute", to_replicate, EXACT},
    {"all_reduce", any, EXACT},
    {"vary", any, EXACT, .strict = STRICT_MEANING},
    {"place_like", any, EXACT, .strict = STRICT_LIKE},
    {NULL},
};
