/* Rows that change layouts and nothing else. */
#include "ops/kernels/pointwise.h"
#include "ops/rows/gradient_layouts.h"
#include "ops/rows/rows.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Numbers for the lists of sizes and blocks of placements. */
#define NUMBERS 1024

static tsr_status check_any(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

/* Operands are a gradient and the layout that it shall have. */
static tsr_status check_pair(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    if (!tsr_op_are_on_one_mesh(tsr_layout_mesh(c->operands[0]), tsr_layout_mesh(c->operands[1])))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s and %s are on different meshes", c->caller,
                              c->op->operands[0], c->op->operands[1]);
    if (tsr_layout_ndim(c->operands[0]) == tsr_layout_ndim(c->operands[1]))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but %s has %d", c->caller, c->op->operands[0],
                          tsr_layout_ndim(c->operands[0]), c->op->operands[1], tsr_layout_ndim(c->operands[1]));
}

/* The placements of the attribute's text, whose lists lie in the text of the case's op: so they are
 * read once more where they are needed. */
static tsr_status move_to_text(const tsr_op_case *c, tsr_placement *placements)
{
    static const char *const hint = "as one placement for each mesh dim, S(0),R";
    int64_t numbers[NUMBERS];
    tsr_layout *parsed;
    int count = 0;
    const char *const text = c->attributes[0].words ? c->attributes[0].words : "";
    const tsr_mesh *const mesh = tsr_layout_mesh(c->operands[0]);
    TSR_TRY(tsr_placements_parse(text, placements, TSR_MAX_DIMS, &count, numbers, NUMBERS, NULL));
    for (int k = 0; k < count; k++) {
        if (placements[k].sizes || placements[k].blocks)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: placements \"%.200s\" have a list, which this op does not take; use "
                                  "tsr_redistribute()",
                                  c->caller, text);
    }
    if (count != tsr_mesh_ndim(mesh))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: placements are \"%.200s\", but must be %s", c->caller, text,
                              hint);
    TSR_TRY(tsr_layout_with(c->operands[0], placements, &parsed));
    tsr_layout_destroy(parsed);
    return TSR_OK;
}

static tsr_status move_to_replicate(const tsr_op_case *c, tsr_placement *placements)
{
    tsr_op_reduced(c->operands[0], placements);
    return TSR_OK;
}

static unsigned vary_on_all(const tsr_op_case *c)
{
    (void)c;
    return ~0u;
}

/* Where the terms that are added belong to ranks that go on as one, or each on its own. */
static unsigned vary_on_terms(const tsr_op_case *c)
{
    unsigned terms = 0;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(c->operands[0])); k++)
        terms |= tsr_layout_placements(c->operands[0])[k].kind == TSR_PARTIAL ? 1u << k : 0;
    return c->attributes[0].integer == 1 ? terms : 0;
}

static tsr_status move_to_second(const tsr_op_case *c, tsr_placement *placements)
{
    const tsr_layout *const like = c->operands[1];
    memcpy(placements, tsr_layout_placements(like), (size_t)tsr_mesh_ndim(tsr_layout_mesh(like)) * sizeof *placements);
    return TSR_OK;
}

#define GRADIENT .attributes = {{.name = "gradient", .kind = TSR_ATTRIBUTE_WORD, .words = "replicate|partial"}}

const tsr_op tsr_rows_layouts[] = {
    {.name = "redistribute",
     .rule = "... -> ...",
     .operands = {"x"},
     .results = {"out"},
     .attributes = {{.name = "placements", .kind = TSR_ATTRIBUTE_TEXT}},
     .check = check_any,
     .moves_to = move_to_text,
     .gradients = {"place_like(dout, like x)"}},
    {.name = "all_reduce",
     .rule = "... -> ...",
     .operands = {"x"},
     .results = {"out"},
     GRADIENT,
     .check = check_any,
     .moves_to = move_to_replicate,
     .gradients = {"place_like(dout, like x)"},
     .varies = vary_on_terms},
    {.name = "vary",
     .rule = "... -> ... | linear {0} | monotone {0}",
     .operands = {"x"},
     .results = {"out"},
     .check = check_any,
     .host = tsr_pointwise_cast,
     .code = TSR_POINTWISE_COPY,
     .gradients = {"place_like(dout, like x)"},
     .passes = true,
     .varies = vary_on_all},
    /* Rows of which gradients are made. */
    {.name = "place_like",
     .rule = "..., ... -> ...",
     .operands = {"dout", "like"},
     .results = {"out"},
     .check = check_pair,
     .moves_to = move_to_second},
    {.name = NULL},
};
