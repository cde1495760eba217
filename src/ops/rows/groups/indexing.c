#include "ops/kernels/indexing/indexing.h"

#include "ops/kernels/indexing/counting.h"
#include "ops/rows/groups/indexing_checks.h"
#include "ops/rows/rows.h"

/* What rows that index a table share. */
#define INDEXES(row_code, kernel)                                                                                      \
    .results = {"out"}, .check = tsr_check_indexing, .host = kernel, .code = row_code,                                 \
    .workspace_bytes = tsr_indexing_workspace_bytes

/* The dim that is indexed. */
#define DIM .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INT, .integer = -1}}

const tsr_op tsr_rows_indexing[] = {
    {.name = "embedding",
     .rule = "v d, ... -> ... d | v sum positional | linear {0}",
     .operands = {"weight", "ids"},
     INDEXES(TSR_EMBEDDING, tsr_indexing_read_slices),
     .gradients = {"embedding_gradient(dout, like weight, ids)"}},
    {.name = "index_select",
     .rule = "... v ..., n -> ... n ... | v sum positional | linear {0}",
     .operands = {"x", "index"},
     DIM,
     .rule_of = tsr_rule_of_slices,
     INDEXES(TSR_INDEX_SELECT, tsr_indexing_read_slices),
     .gradients = {"index_select_gradient(dout, like x, index)"}},
    {.name = "gather",
     .rule = "... v ..., ... n ... -> ... n ... | v sum positional | linear {0}",
     .operands = {"x", "index"},
     DIM,
     .rule_of = tsr_rule_of_elements,
     INDEXES(TSR_GATHER, tsr_indexing_read_elements),
     .gradients = {"gather_gradient(dout, like x, index)"}},
    {.name = "scatter_add",
     .rule = "... v ..., ... n ..., ... n ... -> ... v ... | n whole | v positional | linear {0 2}",
     .operands = {"x", "index", "source"},
     DIM,
     .rule_of = tsr_rule_of_elements,
     INDEXES(TSR_SCATTER_ADD, tsr_indexing_add_elements),
     .gradients = {"dout", NULL, "gather(dout, index)"}},
    {.name = "one_hot",
     .rule = "... -> ... c | c whole",
     .operands = {"ids"},
     .results = {"out"},
     .attributes = {{.name = "classes", .kind = TSR_ATTRIBUTE_INT, .integer = 1}},
     .check = tsr_check_counting,
     .shape_of = tsr_shape_of_counting,
     .host = tsr_counting_mark},
    {.name = "bincount",
     .rule = "... -> c | ... sum | c whole",
     .operands = {"ids"},
     .results = {"out"},
     .attributes = {{.name = "length", .kind = TSR_ATTRIBUTE_INT, .integer = 1}},
     .check = tsr_check_counting,
     .shape_of = tsr_shape_of_counting,
     .host = tsr_counting_count},
    /* Rows of which gradients are made. */
    {.name = "embedding_gradient",
     .rule = "... d, v d, ... -> v d | ... sum | v positional | linear {0}",
     .operands = {"dout", "weight", "ids"},
     INDEXES(TSR_EMBEDDING_GRADIENT, tsr_indexing_add_slices)},
    {.name = "index_select_gradient",
     .rule = "... n ..., ... v ..., n -> ... v ... | n sum | v positional | linear {0}",
     .operands = {"dout", "x", "index"},
     DIM,
     .rule_of = tsr_rule_of_slices,
     INDEXES(TSR_INDEX_SELECT_GRADIENT, tsr_indexing_add_slices)},
    {.name = "gather_gradient",
     .rule = "... n ..., ... v ..., ... n ... -> ... v ... | n sum | v positional | linear {0}",
     .operands = {"dout", "x", "index"},
     DIM,
     .rule_of = tsr_rule_of_elements,
     INDEXES(TSR_GATHER_GRADIENT, tsr_indexing_add_elements)},
    {.name = NULL},
};
