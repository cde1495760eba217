/* Layouts as other frameworks write them: quoted texts of each format, what is refused, and seeded
 * layouts that are printed and read back. */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"

#include <tessera/sharding.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tsr_mesh *mesh_of(const char *text)
{
    tsr_mesh *mesh = NULL;
    expect_ok(tsr_mesh_parse(NULL, NULL, text, &mesh));
    return mesh;
}

static tsr_status parse(tsr_sharding_format format, const char *mesh_text, const char *shape_text, const char *text,
                        tsr_layout **out)
{
    int64_t shape[TSR_MAX_DIMS];
    tsr_mesh *const mesh = mesh_of(mesh_text);
    const int ndim = shape_of(shape_text, shape);
    const tsr_status status = tsr_sharding_parse(format, text, mesh, ndim, shape, TSR_F32, out);
    tsr_mesh_destroy(mesh);
    return status;
}

static void expect_text(const tsr_layout *layout, tsr_sharding_format format, const char *wanted)
{
    char text[1024];
    size_t length;
    expect_ok(tsr_sharding_print(layout, format, text, sizeof text, &length));
    assert_string_equal(text, wanted);
    assert_int_equal(length, strlen(wanted));
}

typedef struct quoted {
    tsr_sharding_format format;
    const char *mesh, *shape, *text;
    const char *placements;
    const char *printed; /* NULL: as `text` */
} quoted;

/* HLO texts are those of XLA's parser tests and of JAX; TensorFlow's, OneFlow's and MLIR's are from
 * their documentation and tests. */
static const quoted texts[] = {
    {TSR_SHARDING_TESSERA, "2x2", "9x6", "S(0),S(1)", "S(0),S(1)", NULL},
    {TSR_SHARDING_HLO1, "2x2", "4x4", "{replicated}", "R,R", NULL},
    {TSR_SHARDING_HLO1, "2x2", "4x4", "{devices=[2,2]0,1,2,3}", "S(0),S(1)", NULL},
    {TSR_SHARDING_HLO1, "2x2", "4x4", "{devices=[2,2]0,2,1,3}", "S(1),S(0)", NULL},
    {TSR_SHARDING_HLO1, "2x2@[3,1,0,2]", "4x4", "{devices=[2,2]3,1,0,2}", "S(0),S(1)", NULL},
    {TSR_SHARDING_HLO1, "2x2@8", "4x4", "{devices=[4,1]8,9,10,11}", "S(0),S(0)", NULL},
    {TSR_SHARDING_HLO1, "2x2", "4x4", "{devices=[1,2,2]0,2,1,3 last_tile_dim_replicate}", "R,S(1)", NULL},
    {TSR_SHARDING_HLO, "2x4", "8x8", "{devices=[2,4]<=[8]}", "S(0),S(1)", NULL},
    {TSR_SHARDING_HLO, "2x4", "8x8", "{devices=[4,2]<=[2,4]T(1,0)}", "S(1),S(0)", NULL},
    {TSR_SHARDING_HLO, "2x4", "8x8", "{devices=[8,1]<=[2,4]T(1,0)}", "S(0)[1],S(0)[0]", NULL},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[2,2]<=[2,2]T(0,1)}", "S(0),S(1)", "{devices=[2,2]<=[4]}"},
    {TSR_SHARDING_HLO, "2x4", "8x8", "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", "R,S(1)", NULL},
    {TSR_SHARDING_HLO, "2x4", "8x8", "{devices=[2,1,4]<=[8] last_tile_dims={unreduced}}", "S(0),P", NULL},
    {TSR_SHARDING_HLO, "2x2x2", "8x8", "{devices=[2,1,2,2]<=[8] last_tile_dims={unreduced, replicated}}", "S(0),P,R",
     NULL},
    {TSR_SHARDING_HLO, "2x2x2", "8x8", "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, unreduced}}", "S(0),R,P",
     "{devices=[2,1,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={unreduced, replicated}}"},
    {TSR_SHARDING_HLO, "2x2", "4", "{unreduced}", "P,P", NULL},
    {TSR_SHARDING_HLO, "4", "9", "{devices=[4]<=[4]}", "S(0)", NULL},
    {TSR_SHARDING_HLO, "2x2", "9", "{devices=[4]<=[4]}", "S(0;unit=6),S(0;unit=3)", NULL},
    {TSR_SHARDING_HLO, "2x2", "1", "{devices=[4]<=[4]}", "S(0),S(0)", NULL},
    {TSR_SHARDING_HLO, "4", "8x8", "{maximal device=2}", "S(0;sizes=0,0,8,0)", NULL},
    {TSR_SHARDING_HLO, "2x2", "4", "sharding={devices=[2,2]<=[4] last_tile_dim_replicate metadata={op_name=\"x\"}}",
     "S(0),R", "{devices=[2,2]<=[4] last_tile_dim_replicate}"},
    {TSR_SHARDING_HLO, "2x2", "4", "{devices=[4]<=[4] shard_as 7 metadata={{op_name=\"a}\\\"\"} {}}}", "S(0),S(0)",
     "{devices=[4]<=[4]}"},
    {TSR_SHARDING_HLO, "2x2", "4", "{replicated shard_like 0}", "R,R", "{replicated}"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], [{'a'}, {}], unreduced={'b'}}", "S(0),P", NULL},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], [{'b':(1)2, 'b':(2)2}, {'a', ?}], replicated={}}",
     "S(1),S(0)", "{mesh['a'=2,'b'=4], [{'b'}, {'a'}]}"},
    {TSR_SHARDING_HLO3, "a=2,b=2@[0,2,1,3]", "8x8", "{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}]}",
     "S(0),R", "{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{'a'}, {}]}"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh[], replicated}", "R,R", "{mesh['a'=2,'b'=4], [{}, {}]}"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], unreduced, metadata={{op_name=\"f\"}}}", "P,P",
     "{mesh['a'=2,'b'=4], [{}, {}], unreduced={'a', 'b'}}"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], [], replicated={'a'}, unreduced={'b'}}", "R,P",
     "{mesh['a'=2,'b'=4], [{}, {}], unreduced={'b'}}"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{replicated, metadata={{op_name=\"f\"}}}", "R", "{mesh['a'=2], [{}]}"},
    {TSR_SHARDING_HLO3, "a=4", "8", "{maximal_mesh[device_id=3]}", "S(0;sizes=0,0,0,8)", NULL},
    {TSR_SHARDING_HLO3, "a=4", "8", "{maximal device=3}", "S(0;sizes=0,0,0,8)", "{maximal_mesh[device_id=3]}"},
    {TSR_SHARDING_SDY, "x=2,y=4", "8x8", "#sdy.sharding<@mesh, [{\"x\"}, {\"y\", ?}]>", "S(0),S(1)",
     "#sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>"},
    {TSR_SHARDING_SDY, "x=2,y=4,z=2", "8x8",
     "#sdy.sharding<@mesh, [{\"x\"}p1, {}], replicated={\"y\"}, unreduced={\"z\"}>", "S(0),R,P",
     "#sdy.sharding<@mesh, [{\"x\"}, {}], unreduced={\"z\"}>"},
    {TSR_SHARDING_SDY, "a=2,b=2@[0,2,1,3]", "8",
     "#sdy.sharding<mesh<[\"a\"=2, \"b\"=2], device_ids=[0, 2, 1, 3]>, [{\"b\", \"a\"}]>", "S(0)[1],S(0)[0]", NULL},
    {TSR_SHARDING_SDY, "a=6", "8x8", "#sdy.sharding<mesh<[], device_ids=[5]>, []>", "S(0;sizes=0,0,0,0,0,8)", NULL},
    {TSR_SHARDING_SDY, "a=6", "8x8", "#sdy.sharding<mesh<[]>, [{}, {}]>", "R", "#sdy.sharding<@mesh, [{}, {}]>"},
    {TSR_SHARDING_SDY, "a=2", "scalar", "#sdy.sharding<@mesh, []>", "R", NULL},
    {TSR_SHARDING_JAX, "x=2,y=4", "8x8x8", "PartitionSpec('x', None, 'y')", "S(0),S(2)", NULL},
    {TSR_SHARDING_JAX, "x=2,y=4", "8x8", "P(('y', 'x'), None)", "S(0)[1],S(0)[0]", "PartitionSpec(('y', 'x'))"},
    {TSR_SHARDING_JAX, "x=2,y=4", "8x8", "jax.P(\"x\", unreduced=frozenset({'y'}))", "S(0),P",
     "PartitionSpec('x', unreduced={'y'})"},
    {TSR_SHARDING_JAX, "x=2,y=4", "8x8", "PartitionSpec()", "R,R", NULL},
    {TSR_SHARDING_TORCH, "2x4", "9x6", "[Shard(dim=0), Replicate()]", "S(0),R", "(Shard(dim=0), Replicate())"},
    {TSR_SHARDING_TORCH, "2", "9x6", "(Shard(-1),)", "S(1)", "(Shard(dim=1),)"},
    {TSR_SHARDING_TORCH, "2x2", "9", "(Partial(reduce_op='max'), Partial(max))", "P(max),P(max)",
     "(Partial(max), Partial(max))"},
    {TSR_SHARDING_TORCH, "2x2", "8", "(_StridedShard(dim=0, sf=2), Shard(dim=0))", "S(0)[1],S(0)[0]", NULL},
    {TSR_SHARDING_TORCH, "2x3x2", "24x2", "(_StridedShard(dim=0, sf=2), _StridedShard(dim=0, sf=2), Shard(dim=0))",
     "S(0)[1],S(0)[2],S(0)[0]", NULL},
    {TSR_SHARDING_TORCH, "2x3x2", "24x2", "(_StridedShard(dim=0, sf=6), _StridedShard(dim=0, sf=2), Shard(dim=0))",
     "S(0)[2],S(0)[1],S(0)[0]", NULL},
    {TSR_SHARDING_TORCH, "2x2", "8", "(_StridedShard(dim=0, sf=4), Shard(dim=0))", "S(0;interleave=4),S(0)", NULL},
    {TSR_SHARDING_TORCH, "2x2", "8", "(_StridedShard(dim=0, sf=2), Replicate())", "S(0;interleave=2),R", NULL},
    {TSR_SHARDING_TORCH, "4x2", "9", "(_StridedShard(dim=0, sf=2), Shard(dim=0))", "S(0;interleave=2),S(0)", NULL},
    {TSR_SHARDING_SBP, "2x4", "9x6", "(oneflow.sbp.broadcast, oneflow.sbp.split(dim=0))", "R,S(0;balanced)", NULL},
    {TSR_SHARDING_SBP, "2x4", "7x6", "(oneflow.sbp.broadcast, oneflow.sbp.split(dim=0))", "R,S(0)", NULL},
    {TSR_SHARDING_SBP, "2x2", "9", "(oneflow.sbp.split(dim=0), oneflow.sbp.split(dim=0))", "S(0),S(0)", NULL},
    {TSR_SHARDING_SBP, "2x3", "8", "(oneflow.sbp.split(dim=0), oneflow.sbp.split(dim=0))",
     "S(0;balanced),S(0;balanced)", NULL},
    {TSR_SHARDING_SBP, "2", "8", "flow.sbp.split(axis=0)", "S(0)", "(oneflow.sbp.split(dim=0),)"},
    {TSR_SHARDING_SBP, "2x2", "8", "P,B", "P,R", "(oneflow.sbp.partial_sum, oneflow.sbp.broadcast)"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4", "sharding_specs:x,unsharded, mesh:|x=2,y=2|*CPU", "S(0),R",
     "sharding_specs:x,unsharded, mesh:|x=2,y=2|*CPU"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4",
     "sharding_specs:unsharded,y, mesh:TPU|x=2,y=2|0,1,2,3|0,1,2,3|/job:localhost/task:0/device:TPU:0", "R,S(1)",
     "sharding_specs:unsharded,y, mesh:|x=2,y=2|*CPU"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4", "sharding_specs:x,unsharded mesh:|x=2,y=2|*CPU", "S(0),R",
     "sharding_specs:x,unsharded, mesh:|x=2,y=2|*CPU"},
    {TSR_SHARDING_TF, "x=2,unsharded_y=2", "4x4", "sharding_specs:unsharded_y,x", "S(1),S(0)",
     "sharding_specs:unsharded_y,x, mesh:|x=2,unsharded_y=2|*CPU"},
    {TSR_SHARDING_TF, "x=2", "scalar", "sharding_specs: mesh:|x=2|*CPU", "R", NULL},
    {TSR_SHARDING_MLIR, "2x4", "8x8", "shard.sharding @grid0 split_axes = [[0], [1]] : !shard.sharding", "S(0),S(1)",
     "shard.sharding @mesh split_axes = [[0], [1]] : !shard.sharding"},
    {TSR_SHARDING_MLIR, "4", "8x16",
     "%s = mesh.sharding @mesh_1d_4 split_axes = [[0]] sharded_dims_sizes = [1, 3, 3, 1] : !mesh.sharding",
     "S(0;sizes=1,3,3,1)",
     "shard.sharding @mesh split_axes = [[0], []] sharded_dims_offsets = [0, 1, 4, 7, 8] : !shard.sharding"},
    {TSR_SHARDING_MLIR, "2x4", "9x6",
     "shard.sharding @mesh split_axes = [[0], [1]] sharded_dims_offsets = [0, 5, 9, 0, 2, 4, 6, 6] : !shard.sharding",
     "S(0),S(1)", NULL},
    {TSR_SHARDING_MLIR, "1x2", "8x8",
     "shard.sharding @g split_axes = [[0], [1]] sharded_dims_offsets = [0, 8, 0, 3, 8] : !shard.sharding",
     "R,S(1;sizes=3,5)",
     "shard.sharding @mesh split_axes = [[], [1]] sharded_dims_offsets = [0, 3, 8] : !shard.sharding"},
    {TSR_SHARDING_MLIR, "4", "8x16",
     "shard.sharding @grid_1d_4 split_axes = [[0]] sharded_dims_offsets = [0, 1, 4, 7, 8] : !shard.sharding",
     "S(0;sizes=1,3,3,1)",
     "shard.sharding @mesh split_axes = [[0], []] sharded_dims_offsets = [0, 1, 4, 7, 8] : !shard.sharding"},
};

/* What a rank owns, as text: a rank that owns nothing of one dim owns nothing at all. Returns the
 * length. */
static size_t tell_rank(const tsr_layout *layout, const int64_t *coordinate, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, ";");
    for (int d = 0; d < tsr_layout_ndim(layout); d++) {
        tsr_interval at[64];
        size_t count;
        expect_ok(tsr_layout_intervals(layout, coordinate, d, at, 64, &count));
        assert_true(count <= 64 && used + 128 + 42 * count < capacity);
        if (count == 0)
            return (size_t)snprintf(text, capacity, ";none");
        used += (size_t)snprintf(text + used, capacity - used, " d%d", d);
        for (size_t i = 0; i < count; i++)
            used += (size_t)snprintf(text + used, capacity - used, "[%lld,%lld)", (long long)at[i].begin,
                                     (long long)at[i].end);
    }
    return used;
}

/* What every rank owns, as text. */
static void tell_owned(const tsr_layout *layout, char *text, size_t capacity)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    size_t used = 0;
    text[0] = '\0';
    for (int m = 0; m >= 0;) {
        used += tell_rank(layout, coordinate, text + used, capacity - used);
        for (m = tsr_mesh_ndim(mesh) - 1; m >= 0 && ++coordinate[m] == tsr_mesh_size(mesh, m); m--)
            coordinate[m] = 0;
    }
    for (int m = 0; m < tsr_mesh_ndim(mesh); m++)
        if (tsr_layout_placements(layout)[m].kind == TSR_PARTIAL && tsr_mesh_size(mesh, m) > 1)
            used += (size_t)snprintf(text + used, capacity - used, " terms along %d", m);
}

static void expect_same(const tsr_layout *a, const tsr_layout *b)
{
    static char of_a[1 << 18], of_b[1 << 18];
    tell_owned(a, of_a, sizeof of_a);
    tell_owned(b, of_b, sizeof of_b);
    assert_string_equal(of_a, of_b);
}

static void quoted_texts_are_read_and_printed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const quoted *const q = &texts[i];
        tsr_layout *layout = NULL, *placed = layout_of(q->mesh, q->shape, q->placements);
        test_case("%s \"%s\" on %s", tsr_sharding_format_name(q->format), q->text, q->mesh);
        expect_ok(parse(q->format, q->mesh, q->shape, q->text, &layout));
        expect_same(layout, placed);
        expect_text(layout, TSR_SHARDING_TESSERA, q->placements);
        expect_text(layout, q->format, q->printed ? q->printed : q->text);
        tsr_layout_destroy(layout);
        tsr_layout_destroy(placed);
    }
}

typedef struct mistake {
    tsr_sharding_format format;
    const char *mesh, *shape, *text;
    tsr_status status;
    const char *part;
} mistake;

static const mistake mistakes[] = {
    {TSR_SHARDING_HLO, "2x2", "4x4", "{manual}", TSR_ERROR_UNSUPPORTED, "leaves open what the ranks hold"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{unknown shard_as 0}", TSR_ERROR_UNSUPPORTED, "leaves open"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{replicated metadata={a=\"}\"}", TSR_ERROR_ARGUMENT, "found the end"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[2,1,2]<=[4] last_tile_dims={manual}}", TSR_ERROR_UNSUPPORTED, "manual"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{{replicated}, {replicated}}", TSR_ERROR_UNSUPPORTED, "tuple"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[2,2]<=[4]", TSR_ERROR_ARGUMENT, "expected \"}\", found the end"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[2,2]<=[5]}", TSR_ERROR_ARGUMENT, "another number of devices"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[2,2]<=[2,2]T(0,0)}", TSR_ERROR_ARGUMENT, "one twice"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[2,2]<=[2,2]T(0)}", TSR_ERROR_ARGUMENT, "not as long"},
    {TSR_SHARDING_HLO, "2x2", "4", "{devices=[2,2]<=[4]}", TSR_ERROR_ARGUMENT, "a tensor of 2 dims"},
    {TSR_SHARDING_HLO, "2x4", "4x4", "{devices=[2,2]<=[4]}", TSR_ERROR_ARGUMENT, "has 4 devices, but the mesh has 8"},
    {TSR_SHARDING_HLO, "2x2", "4", "{devices=[2147483647]<=[2147483647]}", TSR_ERROR_ARGUMENT,
     "has 2147483647 devices, but the mesh has 4"},
    {TSR_SHARDING_HLO1, "2x2", "4x4", "{devices=[2,2]0,1,2,2}", TSR_ERROR_ARGUMENT, "device 2 twice"},
    {TSR_SHARDING_HLO1, "2x2", "4x4", "{devices=[2,2]0,1,2,7}", TSR_ERROR_ARGUMENT, "do not have rank 3"},
    {TSR_SHARDING_HLO1, "4", "4", "{devices=[4]1,0,2,3}", TSR_ERROR_UNSUPPORTED, "in the text's order"},
    {TSR_SHARDING_HLO, "4", "4x4", "{devices=[2,2]<=[4]}", TSR_ERROR_UNSUPPORTED, "are 2x2"},
    {TSR_SHARDING_HLO, "4", "4x4", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", TSR_ERROR_UNSUPPORTED, "2x2"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{devices=[99999999,99999999]<=[4]}", TSR_ERROR_ARGUMENT, "from 1 to"},
    {TSR_SHARDING_HLO, "2x2", "4x4", "{maximal device=4}", TSR_ERROR_ARGUMENT, "device 4, which the mesh"},
    {TSR_SHARDING_HLO, "2x2", "scalar", "{maximal device=1}", TSR_ERROR_UNSUPPORTED, "on device 1 alone"},
    {TSR_SHARDING_HLO, "2x2", "8", "{maximal device=3}", TSR_ERROR_UNSUPPORTED, "flatten the mesh"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], [{'b':(2)2}, {}]}", TSR_ERROR_UNSUPPORTED,
     "part of an axis"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], [{'b':(1)2}, {'b':(2)2}]}", TSR_ERROR_UNSUPPORTED,
     "part of an axis"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'b'=4], [{'b':(1)3}, {}]}", TSR_ERROR_ARGUMENT, "be divided"},
    {TSR_SHARDING_HLO3, "a=2,b=4", "8x8", "{mesh['a'=2,'c'=4], [{}, {}]}", TSR_ERROR_ARGUMENT, "has other axes"},
    {TSR_SHARDING_HLO3, "a=2,b=2", "8x8", "{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{}, {}]}", TSR_ERROR_ARGUMENT,
     "in another order"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{mesh['a'=2], [{}], manual={'a'}}", TSR_ERROR_UNSUPPORTED, "leaves open"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{mesh['a'=2], unreduced, unreduced={'a'}}", TSR_ERROR_ARGUMENT, "there before"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{mesh['a'=2], manual}", TSR_ERROR_UNSUPPORTED, "leaves open"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{mesh['a'=2], [{}], replicated={'a'}, unreduced={'a'}}", TSR_ERROR_ARGUMENT,
     "there before"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{mesh[], [{'a'}]}", TSR_ERROR_ARGUMENT, "has no axis of this name"},
    {TSR_SHARDING_HLO3, "a=2", "8", "{[{'a'}]}", TSR_ERROR_ARGUMENT, "expected mesh[..], maximal"},
    {TSR_SHARDING_SDY, "a=2", "8", "#sdy.sharding<mesh<[], device_ids=[1]>, [{\"a\"}]>", TSR_ERROR_ARGUMENT,
     "has no axis of this name"},
    {TSR_SHARDING_SDY, "a=2", "8", "#sdy.sharding<@mesh, []>", TSR_ERROR_ARGUMENT, "has more dims"},
    {TSR_SHARDING_SDY, "a=2,b=4", "8x8", "#sdy.sharding<@mesh, [{\"c\"}, {}]>", TSR_ERROR_ARGUMENT,
     "its dims are a, b"},
    {TSR_SHARDING_SDY, "2x4", "8x8", "#sdy.sharding<@mesh, [{\"c\"}, {}]>", TSR_ERROR_UNSUPPORTED, "have no names"},
    {TSR_SHARDING_SDY, "a=2", "8x8", "#sdy.sharding<@mesh, [{\"a\"}]>", TSR_ERROR_ARGUMENT, "has more dims"},
    {TSR_SHARDING_SDY, "a=2", "8", "#sdy.sharding<@mesh, [{\"a\"}, {}]>", TSR_ERROR_ARGUMENT, "as many dims"},
    {TSR_SHARDING_SDY, "a=2", "8x8", "#sdy.sharding<@mesh, [{\"a\"}, {\"a\"}]>", TSR_ERROR_ARGUMENT, "there before"},
    {TSR_SHARDING_SDY, "a=2", "8", "#sdy.sharding<@mesh, [{\"a}]>", TSR_ERROR_ARGUMENT, "does not end"},
    {TSR_SHARDING_JAX, "a=2", "8", "PartitionSpec(PartitionSpec.UNCONSTRAINED)", TSR_ERROR_UNSUPPORTED, "leaves open"},
    {TSR_SHARDING_JAX, "2", "8", "PartitionSpec('a')", TSR_ERROR_UNSUPPORTED, "have no names"},
    {TSR_SHARDING_TF, "2", "8", "sharding_specs:a", TSR_ERROR_UNSUPPORTED, "have no names"},
    {TSR_SHARDING_JAX, "a=2", "8", "PartitionSpec('a', 'a')", TSR_ERROR_ARGUMENT, "as many dims"},
    {TSR_SHARDING_JAX, "a=2", "8", "Shard(0)", TSR_ERROR_ARGUMENT, "expected PartitionSpec("},
    {TSR_SHARDING_TORCH, "2x2", "8", "(Shard(0),)", TSR_ERROR_ARGUMENT, "has 1 words, but the mesh has 2 dims"},
    {TSR_SHARDING_TORCH, "2", "8", "(Shard(0), Shard(0))", TSR_ERROR_ARGUMENT, "more than 1 words"},
    {TSR_SHARDING_TORCH, "2", "8", "(Shard(1),)", TSR_ERROR_ARGUMENT, "the tensor has 1 dims"},
    {TSR_SHARDING_TORCH, "2", "8", "(_MaskPartial(),)", TSR_ERROR_UNSUPPORTED, "reduce them first"},
    {TSR_SHARDING_TORCH, "2", "8", "(MaskP(sum, (8,), 0),)", TSR_ERROR_UNSUPPORTED, "masked terms"},
    {TSR_SHARDING_TORCH, "2", "8", "(_NormPartial(2),)", TSR_ERROR_UNSUPPORTED, "terms of a norm"},
    {TSR_SHARDING_TORCH, "2", "8", "(Partial(median),)", TSR_ERROR_ARGUMENT, "expected sum, avg"},
    {TSR_SHARDING_SBP, "2", "8", "(Replicate(),)", TSR_ERROR_ARGUMENT, "expected split(dim), broadcast"},
    {TSR_SHARDING_TF, "x=2,y=2", "5x4", "sharding_specs:x,unsharded, mesh:|x=2,y=2|*CPU", TSR_ERROR_UNSUPPORTED,
     "length 5 for 2 parts"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4", "sharding_specs:x, mesh:|x=2,y=2|*CPU", TSR_ERROR_ARGUMENT, "has more dims"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4", "sharding_specs:x", TSR_ERROR_ARGUMENT, "has more dims"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4", "sharding_specs:x y", TSR_ERROR_ARGUMENT, "expected a comma, or mesh:"},
    {TSR_SHARDING_TF, "x=2,y=2", "4", "sharding_specs:x, mesh:", TSR_ERROR_ARGUMENT, "found the end"},
    {TSR_SHARDING_TF, "x=2,y=2", "4x4", "sharding_specs:x,x, mesh:|x=2,y=2|*CPU", TSR_ERROR_ARGUMENT, "there before"},
    {TSR_SHARDING_TF, "x=2,y=2", "4", "sharding_specs:x, mesh:|y=2,x=2|*CPU", TSR_ERROR_ARGUMENT, "has other axes"},
    {TSR_SHARDING_TF, "x=2", "4", "sharding_specs:x, mesh:|x=2|1,0|1,0|", TSR_ERROR_ARGUMENT, "in another order"},
    {TSR_SHARDING_MLIR, "4", "9", "shard.sharding @g split_axes = [[0]]", TSR_ERROR_UNSUPPORTED,
     "sharded_dims_offsets"},
    {TSR_SHARDING_MLIR, "4", "8", "shard.sharding @g split_axes = [[1]]", TSR_ERROR_ARGUMENT, "as many dims"},
    {TSR_SHARDING_MLIR, "4", "8", "shard.sharding @g split_axes = [[0]] halo_sizes = [1, 1]", TSR_ERROR_UNSUPPORTED,
     "halos"},
    {TSR_SHARDING_MLIR, "2", "8", "shard.sharding @g split_axes = [[0]] sharded_dims_offsets = [0, 9, 8]",
     TSR_ERROR_ARGUMENT, "beyond 8"},
    {TSR_SHARDING_MLIR, "5", "2305843009213693951",
     "mesh.sharding @g split_axes = [[0]] sharded_dims_sizes = [2305843009213693951, 2305843009213693951, "
     "2305843009213693951, 2305843009213693951, 2305843009213693951]",
     TSR_ERROR_ARGUMENT, "do not sum"},
    {TSR_SHARDING_MLIR, "2", "8",
     "mesh.sharding @g split_axes = [[0]] sharded_dims_sizes = [3, 5] sharded_dims_offsets = [0, 3, 8]",
     TSR_ERROR_ARGUMENT, "offsets or sizes before"},
    {TSR_SHARDING_MLIR, "2", "8", "shard.sharding @g split_axes = [[0]] sharded_dims_offsets = [0, %c3, 8]",
     TSR_ERROR_UNSUPPORTED, "at run time"},
    {TSR_SHARDING_MLIR, "2x2", "8", "shard.sharding @g split_axes = [[0, 1]] sharded_dims_offsets = [0, 1, 2, 3, 8]",
     TSR_ERROR_UNSUPPORTED, "several axes"},
    {TSR_SHARDING_END, "2", "8", "R", TSR_ERROR_ARGUMENT, "format 10 is none"},
};

static void mistakes_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const mistake *const m = &mistakes[i];
        tsr_layout *layout = NULL;
        test_case("%s \"%s\" on %s", tsr_sharding_format_name(m->format), m->text, m->mesh);
        expect_error(parse(m->format, m->mesh, m->shape, m->text, &layout), m->status, m->part);
        assert_null(layout);
    }
}

typedef struct unsaid {
    const char *mesh, *shape, *placements;
    tsr_sharding_format format;
    const char *part;
} unsaid;

static const unsaid unsaids[] = {
    {"a=2", "8", "P(max)", TSR_SHARDING_HLO, "HLO has no word for P(max), which mesh dim 0 has"},
    {"a=2", "8", "P(avg)", TSR_SHARDING_SDY, "Shardy has no word for P(avg)"},
    {"a=2", "8", "P", TSR_SHARDING_TF, "TensorFlow has no word for P(sum)"},
    {"a=2", "8", "P", TSR_SHARDING_MLIR, "MLIR has no word for P(sum)"},
    {"a=2", "8", "P(max)", TSR_SHARDING_TF, "TensorFlow has no word for P(max), which mesh dim 0 has"},
    {"a=2", "8", "P(max)", TSR_SHARDING_MLIR, "MLIR has no word for P(max), which mesh dim 0 has"},
    {"a=2", "8", "S(0;interleave=2)", TSR_SHARDING_JAX, "how tensor dim 0 is cut"},
    {"a=2", "9x8", "S(1;sizes=3,5)", TSR_SHARDING_HLO1, "how tensor dim 1 is cut"},
    {"a=2,b=2", "9", "S(0),S(0)", TSR_SHARDING_SDY, "by all axes at once"},
    {"a=2", "9", "S(0;sizes=4,5)", TSR_SHARDING_TORCH, "PyTorch has no word"},
    {"a=4", "9", "S(0)", TSR_SHARDING_SBP, "differ by at most one"},
    {"a=2,b=2", "8", "S(0)[1],S(0)[0]", TSR_SHARDING_SBP, "no word for the order"},
    {"a=2,b=2", "8", "S(0),S(0)", TSR_SHARDING_TF, "by one axis"},
    {"a=2", "9", "S(0)", TSR_SHARDING_TF, "only evenly"},
    {"unsharded=2", "8", "S(0)", TSR_SHARDING_TF, "give mesh dim 0 another name"},
    {"a=2", "8", "S(0;interleave=2)", TSR_SHARDING_MLIR, "MLIR has no word"},
    {"2", "8", "S(0)", TSR_SHARDING_JAX, "have no names"},
    {"2", "8", "S(0)", TSR_SHARDING_HLO3, "have no names"},
    {"2", "8", "S(0)", TSR_SHARDING_TF, "have no names"},
};

static void what_a_format_cannot_say_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unsaids / sizeof *unsaids; i++) {
        const unsaid *const u = &unsaids[i];
        char text[256] = "left";
        size_t length = 77;
        tsr_layout *const layout = layout_of(u->mesh, u->shape, u->placements);
        test_case("%s on %s in %s", u->placements, u->mesh, tsr_sharding_format_name(u->format));
        expect_error(tsr_sharding_print(layout, u->format, text, sizeof text, &length), TSR_ERROR_UNSUPPORTED, u->part);
        if (u->format == TSR_SHARDING_TF || u->format == TSR_SHARDING_MLIR)
            assert_null(strstr(tsr_status_message(), "it knows sums"));
        assert_string_equal(text, "");
        assert_int_equal(length, 77);
        tsr_layout_destroy(layout);
    }
}

/* A seeded layout on a mesh with names; NULL: its placements do not suit it. */
static tsr_layout *seeded_layout(uint64_t number, char *mesh_text, size_t capacity)
{
    oracle_random random = {.state = test_seed() * 104729 + number};
    oracle_numbers numbers = {.count = 0};
    oracle_layout layout = {.dtype = TSR_F32};
    char placements[4096];
    size_t used = 0;
    layout.mesh = oracle_random_mesh(&random, 4, 4, 16);
    oracle_random_shape(&random, 3, 12, &layout);
    oracle_random_placements(&random, &layout, &numbers);
    oracle_print_placements(layout.placements, layout.mesh.ndim, placements, sizeof placements);
    for (int m = 0; m < layout.mesh.ndim; m++)
        used += (size_t)snprintf(mesh_text + used, capacity - used, "%s%c=%lld", m ? "," : "", 'a' + m,
                                 (long long)layout.mesh.shape[m]);
    tsr_mesh *const mesh = mesh_of(mesh_text);
    tsr_layout *made = NULL;
    (void)tsr_layout_parse(mesh, placements, layout.ndim, layout.shape, TSR_F32, &made);
    tsr_mesh_destroy(mesh);
    return made;
}

/* Prints and reads back in each format that can say the layout; counts them in `said`. */
static void convert_there_and_back(const tsr_layout *layout, int *said)
{
    for (int f = 0; f < TSR_SHARDING_END; f++) {
        char text[4096], again[4096];
        size_t length, at;
        tsr_layout *back = NULL;
        const tsr_status status = tsr_sharding_print(layout, (tsr_sharding_format)f, text, sizeof text, &length);
        if (status != TSR_OK) {
            assert_int_equal(status, TSR_ERROR_UNSUPPORTED);
            continue;
        }
        said[f]++;
        test_case("%s: %s", tsr_sharding_format_name((tsr_sharding_format)f), text);
        expect_ok(tsr_sharding_parse((tsr_sharding_format)f, text, tsr_layout_mesh(layout), tsr_layout_ndim(layout),
                                     tsr_layout_shape(layout), TSR_F32, &back));
        expect_same(layout, back);
        expect_ok(tsr_sharding_print(back, (tsr_sharding_format)f, again, sizeof again, &at));
        /* What one rank alone holds may be chunks too, as of length 1, which are printed first. */
        if (!strstr(text, "maximal") && !strstr(text, "mesh<[]"))
            assert_string_equal(text, again);
        tsr_layout_destroy(back);
    }
}

static void seeded_layouts_come_back(void **state)
{
    (void)state;
    int said[TSR_SHARDING_END] = {0};
    for (uint64_t n = 0; n < 3000; n++) {
        char mesh_text[256];
        tsr_layout *const layout = seeded_layout(n, mesh_text, sizeof mesh_text);
        if (layout)
            convert_there_and_back(layout, said);
        tsr_layout_destroy(layout);
    }
    for (int f = 0; f < TSR_SHARDING_END; f++) {
        test_case("%s said %d of 3000", tsr_sharding_format_name((tsr_sharding_format)f), said[f]);
        assert_true(said[f] > 300);
    }
}

typedef struct conversion {
    tsr_context *context;
    tsr_sharding_format format;
    const char *text;
} conversion;

static tsr_status convert(void *arg)
{
    const conversion *const c = arg;
    const int64_t shape[] = {9, 8};
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    char text[256];
    size_t length;
    tsr_status status = tsr_mesh_parse(NULL, c->context, "a=2,b=2@[0,2,1,3]", &mesh);
    if (status == TSR_OK)
        status = tsr_sharding_parse(c->format, c->text, mesh, 2, shape, TSR_F32, &layout);
    if (status == TSR_OK)
        status = tsr_sharding_print(layout, c->format, text, sizeof text, &length);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

/* The chunks of all axes together are longer than any number. */
static void longest_dims_are_cut(void **state)
{
    static const struct {
        int64_t length;
        const char *placements;
    } cases[] = {{INT64_MAX, "S(0),S(0)"},
                 {INT64_MAX - 1, "S(0;unit=4611686018427387904),S(0;unit=2305843009213693952)"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_layout *layout = NULL;
        tsr_mesh *const mesh = mesh_of("2x2");
        expect_ok(
            tsr_sharding_parse(TSR_SHARDING_HLO, "{devices=[4]<=[4]}", mesh, 1, &cases[i].length, TSR_I8, &layout));
        expect_text(layout, TSR_SHARDING_TESSERA, cases[i].placements);
        expect_text(layout, TSR_SHARDING_HLO, "{devices=[4]<=[4]}");
        tsr_layout_destroy(layout);
        tsr_mesh_destroy(mesh);
    }
}

static void no_memory_leaves_nothing(void **state)
{
    static const conversion conversions[] = {
        {NULL, TSR_SHARDING_HLO1, "{devices=[2,2]0,1,2,3}"},
        {NULL, TSR_SHARDING_HLO, "{maximal device=3}"},
        {NULL, TSR_SHARDING_SDY, "#sdy.sharding<mesh<[\"a\"=2, \"b\"=2], device_ids=[0,2,1,3]>, [{\"b\"}, {}]>"},
        {NULL, TSR_SHARDING_TORCH, "(Shard(0), Shard(1))"},
        {NULL, TSR_SHARDING_TORCH, "(_StridedShard(1, sf=2), Shard(1))"},
        {NULL, TSR_SHARDING_MLIR, "shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 3, 8]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++) {
        counted_memory memory = {0};
        conversion c = conversions[i];
        test_case("%s", c.text);
        c.context = counted_context(&memory);
        assert_true(fail_each_allocation(&memory, convert, &c) > 0);
        tsr_context_destroy(c.context);
    }
}

static void formats_have_names(void **state)
{
    (void)state;
    tsr_sharding_format format = TSR_SHARDING_END;
    for (int f = 0; f < TSR_SHARDING_END; f++) {
        expect_ok(tsr_sharding_format_parse(tsr_sharding_format_name((tsr_sharding_format)f), &format));
        assert_int_equal(format, f);
    }
    assert_string_equal(tsr_sharding_format_name(TSR_SHARDING_END), "unknown");
    expect_error(tsr_sharding_format_parse("hlo4", &format), TSR_ERROR_ARGUMENT, "hlo1, hlo, hlo3");
    expect_error(tsr_sharding_format_parse(NULL, &format), TSR_ERROR_ARGUMENT, "name is NULL");
    expect_error(tsr_sharding_parse(TSR_SHARDING_HLO, NULL, NULL, 0, NULL, TSR_F32, NULL), TSR_ERROR_ARGUMENT,
                 "text is NULL");
    expect_error(tsr_sharding_print(NULL, TSR_SHARDING_HLO, NULL, 0, NULL), TSR_ERROR_ARGUMENT, "layout is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoted_texts_are_read_and_printed),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(what_a_format_cannot_say_is_refused),
        cmocka_unit_test(seeded_layouts_come_back),
        cmocka_unit_test(longest_dims_are_cut),
        cmocka_unit_test(no_memory_leaves_nothing),
        cmocka_unit_test(formats_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
