#include "bench/run/halvings.h"

/* Lower bound of the ranks of the smallest mesh. */
#define LEAST_RANKS 16

/* Halves the longest even dim, the last of equal ones; false if no dim is even. */
static bool halve(int64_t *shape, int ndim)
{
    int longest = -1;
    for (int d = 0; d < ndim; d++)
        if (shape[d] % 2 == 0 && (longest < 0 || shape[d] >= shape[longest]))
            longest = d;
    if (longest < 0)
        return false;
    shape[longest] /= 2;
    return true;
}

static int read_shape(const tsr_mesh *mesh, int64_t shape[TSR_MAX_DIMS])
{
    const int ndim = tsr_mesh_ndim(mesh);
    for (int d = 0; d < ndim; d++)
        shape[d] = tsr_mesh_size(mesh, d);
    return ndim;
}

int halvings_count(const tsr_mesh *mesh)
{
    int64_t shape[TSR_MAX_DIMS], ranks = tsr_mesh_count(mesh);
    const int ndim = read_shape(mesh, shape);
    int times = 0;
    for (; ranks / 2 >= LEAST_RANKS && halve(shape, ndim); times++)
        ranks /= 2;
    return times;
}

void halvings_choose(const tool_arguments *given, const tsr_mesh *mesh, int times, char text[SHAPE_TEXT_BYTES],
                     tool_arguments *out)
{
    int64_t shape[TSR_MAX_DIMS];
    *out = *given;
    if (times == 0)
        return;
    const int ndim = read_shape(mesh, shape);
    for (int i = 0; i < times; i++)
        halve(shape, ndim);
    print_shape(ndim, shape, text);
    out->value[OPT_MESH] = text;
}
