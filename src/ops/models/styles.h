/** Styles of plans by name. */
#ifndef TSR_OPS_MODELS_STYLES_H
#define TSR_OPS_MODELS_STYLES_H

#include <tessera/parallel_plan.h>

/** The most characters of a pattern, with the prefix, and of a style. */
#define TSR_PLAN_TEXT 255

/** Which dim of a parameter a style cuts. */
typedef enum tsr_style_cut {
    TSR_STYLE_WHOLE = 0, /**< none */
    TSR_STYLE_OUT,       /**< the dim before the last, or the only one: rows of a linear weight, and its bias */
    TSR_STYLE_IN,        /**< the last dim, but not of a bias: columns of a linear weight */
    TSR_STYLE_FIRST,     /**< dim 0 */
    TSR_STYLE_SECOND     /**< dim 1 */
} tsr_style_cut;

/** A style. */
typedef struct tsr_style {
    const char *name;
    tsr_style_cut cut;
    const char *modifiers; /**< of its cut, such as ";interleave=2" */
    tsr_parallel_input input;
    tsr_parallel_output output;
    bool varies; /**< each rank has a term of the gradient of Replicate parameters */
} tsr_style;

/** A rule's style, read. */
typedef struct tsr_style_text {
    const tsr_style *style; /**< NULL: placements */
    const char *modifiers;  /**< with a style: behind its name, "" or ";..", in the text */
} tsr_style_text;

/** Reads a rule's style; `rule` is borrowed, and its text pointed into. */
tsr_status tsr_style_read(const tsr_parallel_rule *rule, tsr_style_text *out);

#endif
