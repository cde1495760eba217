#include "proof.h"

#include <string.h>

static bool is_named(const proof *p, int operand, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(p->info.operands[operand], *names) == 0)
            return true;
    return false;
}

/* Draws numbers, the betas of which are seldom those of a mean, and flags. */
static void draw_attributes(draw *d, proof *p)
{
    for (int i = 0; i < p->attribute_count; i++) {
        tsr_attribute *const a = &p->attributes[i];
        if (a->kind == TSR_ATTRIBUTE_INT)
            a->integer = draw_below(d, 2);
        else
            a->number = (const double[]){0, 0.25, 0.75}[draw_below(d, 3)];
    }
}

/* A weight, its gradient and its states alike, and numbers and flags without dims. */
static void update(draw *d, proof *p)
{
    static const char *const numbers[] = {"kept", "rate", "root", NULL}, *const flags[] = {"first", "finite", NULL},
                             *const squares[] = {"exp_avg_sq", NULL};
    whole full;
    const tsr_dtype dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    draw_attributes(d, p);
    draw_full(d, &full);
    for (int i = 0; i < p->operand_count; i++) {
        whole *const w = &p->operands[i];
        const bool is_flag = is_named(p, i, flags), is_number = is_named(p, i, numbers);
        set_shape(w, is_flag || is_number ? 0 : full.ndim, full.shape);
        w->dtype = is_flag ? TSR_BOOL : dtype;
        if (is_number || is_named(p, i, squares))
            draw_positive(d, w);
        else
            draw_values(d, w);
        if (is_flag && draw_below(d, 2))
            w->dtype = TSR_DTYPE_NONE;
    }
}

static void correction(draw *d, proof *p)
{
    whole *const w = &p->operands[0];
    p->attributes[0].number = draw_below(d, 2) ? 0.5 : 0.25;
    draw_full(d, w);
    w->dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    draw_values(d, w);
}

#define WITHOUT_GRADIENTS .exact = true, .constants = 0xff, .strict = STRICT_VALUES

const proof_case proof_updates[] = {
    {"sgd_update", update, WITHOUT_GRADIENTS},
    {"momentum_update", update, WITHOUT_GRADIENTS, .draws = 9},
    {"adamw_update", update, WITHOUT_GRADIENTS, .draws = 9},
    {"lion_update", update, WITHOUT_GRADIENTS, .draws = 9},
    {"bias_correction", correction, WITHOUT_GRADIENTS, .draws = 6},
    {NULL},
};
