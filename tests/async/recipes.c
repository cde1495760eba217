#include "recipes.h"

#include "oracle_random.h"
#include "support.h"

void recipe_check(const recipe *r)
{
    if (r->check)
        r->check(r->machine);
}

/* A profile in which links inside a node cost nothing, so that plans share within a node wherever
 * they can. */
static const tsr_cost_profile quick_inside = {{0.0, 1e15}, {1e-3, 1e3}};

static void random_pair(oracle_random *random, const recipe *r, oracle_layout *src, oracle_layout *dst,
                        oracle_numbers *numbers)
{
    src->dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 4, r->elements, src);
    src->mesh = oracle_random_mesh(random, r->mesh_ndim, r->world, r->world);
    *dst = *src;
    if (r->two_meshes)
        dst->mesh = oracle_random_mesh(random, r->mesh_ndim, r->world, r->world);
    oracle_random_placements(random, src, numbers);
    oracle_random_placements(random, dst, numbers);
}

static void add_others(oracle_random *random, const recipe *r, sweep_case *out)
{
    static sweep_pair others[SWEEP_TENSORS - 1];
    out->others = others;
    for (out->more = 0; out->more < r->batch - 1; out->more++) {
        others[out->more] = (sweep_pair){.numbers.count = 0};
        random_pair(random, r, &others[out->more].src, &others[out->more].dst, &others[out->more].numbers);
        if (r->two_meshes)
            continue;
        others[out->more].src.mesh = others[out->more].dst.mesh = out->src.mesh;
        others[out->more].numbers.count = 0;
        oracle_random_placements(random, &others[out->more].src, &others[out->more].numbers);
        oracle_random_placements(random, &others[out->more].dst, &others[out->more].numbers);
    }
}

bool recipe_random(void *arg, int64_t number, sweep_case *out)
{
    static const sweep_cap caps[] = {CAP_LEAST, CAP_SOME};
    const recipe *r = arg;
    recipe_check(r);
    const uint64_t seed = test_seed() * UINT64_C(1000000007) + (uint64_t)number + (uint64_t)r->world * 1000003;
    oracle_random random = {.state = seed};
    random_pair(&random, r, &out->src, &out->dst, &out->numbers);
    out->seed = seed;
    out->mode = oracle_random_below(&random, 3) == 0 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = !r->two_meshes && r->nodes.ranks_per_node == 0 && oracle_random_below(&random, 3) == 0 ? WAY_DTENSORS
                                                                                                      : WAY_PLAN;
    out->strided = oracle_random_below(&random, 2) == 0;
    out->halves = oracle_random_below(&random, 3) == 0;
    const int64_t cap = oracle_random_below(&random, 8);
    out->cap = cap < 2 && out->way == WAY_PLAN ? caps[cap] : CAP_NONE;
    out->no_split = oracle_random_below(&random, 5) == 0;
    out->nodes = r->nodes;
    out->profile = r->nodes.ranks_per_node > 0 ? &quick_inside : NULL;
    add_others(&random, r, out);
    if (r->two_meshes && out->more == 0 && r->nodes.ranks_per_node == 0 && oracle_random_below(&random, 3) == 0) {
        out->way = WAY_DTENSORS;
        out->cap = CAP_NONE;
    }
    return true;
}

bool recipe_pair(void *arg, int64_t number, sweep_case *out)
{
    static const int64_t lengths[] = {0, 1, 3, 5, 8, 13};
    const recipe *r = arg;
    oracle_layout layout = {.mesh = r->mesh, .ndim = 2, .shape = {lengths[number % 5 + 1], lengths[number / 5 % 6]}};
    recipe_check(r);
    layout.dtype = (tsr_dtype)(1 + number % (TSR_DTYPE_END - 1));
    const tsr_reduce_op op = layout.dtype == TSR_BOOL ? TSR_MAX : TSR_SUM; /* since bool has no sum */
    const tsr_placement kinds[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1), tsr_partial(op)};
    out->src = out->dst = layout;
    int64_t pair = number;
    for (int m = 0; m < r->mesh.ndim; m++, pair /= 16) {
        out->src.placements[m] = kinds[pair % 4];
        out->dst.placements[m] = kinds[pair / 4 % 4];
    }
    out->seed = (uint64_t)number + test_seed();
    out->mode = number / 3 % 3 == 1 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = number % 3 == 2 ? WAY_DTENSORS : WAY_PLAN;
    out->strided = number % 7 == 3;
    out->halves = number % 5 == 3;
    return true;
}
