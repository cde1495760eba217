#include "ops/eager/typed/typed.h"

#include <tessera/indexing.h>

/* The three functions of an op that reads `table` where `ids` say. */
#define READ(name, table, ids, settings, attributes)                                                                   \
    tsr_status tsr_##name(const tsr_dtensor *table, const tsr_dtensor *ids settings, tsr_dtensor **out)                \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row_by(#name, table), attributes, OPERANDS(table, ids), out);               \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *table, const tsr_dtensor *ids settings, tsr_dtensor *out)          \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row_by(#name, table), attributes, OPERANDS(table, ids), &out); \
    }                                                                                                                  \
    tsr_status tsr_##name##_backward(const tsr_dtensor *table, const tsr_dtensor *ids settings,                        \
                                     const tsr_dtensor *dout, tsr_dtensor **d##table)                                  \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row_by(#name, table), attributes, OPERANDS(table, ids),    \
                                  dout, WANTED(d##table, NULL));                                                       \
    }

READ(embedding, weight, ids, NO_SETTING, NO_ATTRIBUTES)
READ(index_select, x, index, DIM_SETTING, DIM)
READ(gather, x, index, DIM_SETTING, DIM)

tsr_status tsr_scatter_add(const tsr_dtensor *x, const tsr_dtensor *index, const tsr_dtensor *source, int dim,
                           tsr_dtensor **out)
{
    return tsr_eager_run("tsr_scatter_add", row_by("scatter_add", x), DIM, OPERANDS(x, index, source), out);
}

tsr_status tsr_scatter_add_into(const tsr_dtensor *x, const tsr_dtensor *index, const tsr_dtensor *source, int dim,
                                tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_scatter_add_into", row_by("scatter_add", x), DIM, OPERANDS(x, index, source), &out);
}

tsr_status tsr_scatter_add_backward(const tsr_dtensor *x, const tsr_dtensor *index, const tsr_dtensor *source, int dim,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dsource)
{
    return tsr_eager_backward("tsr_scatter_add_backward", row_by("scatter_add", x), DIM, OPERANDS(x, index, source),
                              dout, WANTED(dx, NULL, dsource));
}

tsr_status tsr_one_hot(const tsr_dtensor *ids, int64_t classes, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_one_hot", row_by("one_hot", ids), CLASSES, OPERANDS(ids), out);
}

tsr_status tsr_one_hot_into(const tsr_dtensor *ids, int64_t classes, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_one_hot_into", row_by("one_hot", ids), CLASSES, OPERANDS(ids), &out);
}

tsr_status tsr_bincount(const tsr_dtensor *ids, int64_t length, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_bincount", row_by("bincount", ids), COUNTS, OPERANDS(ids), out);
}

tsr_status tsr_bincount_into(const tsr_dtensor *ids, int64_t length, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_bincount_into", row_by("bincount", ids), COUNTS, OPERANDS(ids), &out);
}
