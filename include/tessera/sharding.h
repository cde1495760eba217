/**
 * @file
 * Layouts as other frameworks write them: XLA's HLO shardings, Shardy's and MLIR's attributes,
 * JAX's PartitionSpec, PyTorch's placements, OneFlow's SBP and TensorFlow's DTensor layouts.
 *
 * A text is read for a mesh and a tensor's shape, since hardly any format carries both. Texts that
 * say the same give equal layouts, in whichever format they are, and are printed in one form. What
 * a format cannot say is refused in a sentence. None of these calls communicates; any thread.
 */
#ifndef TESSERA_SHARDING_H
#define TESSERA_SHARDING_H

#include <tessera/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Formats of text. Devices in a text are the mesh's ranks; axes are its dims, by name. */
typedef enum tsr_sharding_format {
    TSR_SHARDING_TESSERA = 0, /**< "tessera": placements, `S(0),R` */
    TSR_SHARDING_HLO1,        /**< "hlo1": `{devices=[2,2]0,2,1,3}` */
    TSR_SHARDING_HLO,         /**< "hlo": version 2, `{devices=[2,2]<=[2,2]T(1,0)}` */
    TSR_SHARDING_HLO3,        /**< "hlo3": `{mesh['a'=2,'b'=2], [{'a'}, {}]}` */
    TSR_SHARDING_SDY,         /**< "sdy": `#sdy.sharding<@mesh, [{"a"}, {}]>` */
    TSR_SHARDING_JAX,         /**< "jax": `PartitionSpec('a', None)` */
    TSR_SHARDING_TORCH,       /**< "torch": `(Shard(dim=0), Replicate())` */
    TSR_SHARDING_SBP,         /**< "sbp": `(oneflow.sbp.split(dim=0), oneflow.sbp.broadcast)` */
    TSR_SHARDING_TF,          /**< "tf": `sharding_specs:a,unsharded, mesh:|a=2,b=2|*CPU` */
    TSR_SHARDING_MLIR,        /**< "mlir": `shard.sharding @mesh split_axes = [[0]] : ..` */
    TSR_SHARDING_END          /**< the number of formats */
} tsr_sharding_format;

/** The name of a format, as `tessera convert` takes it; "unknown" for another number. */
TSR_API const char *tsr_sharding_format_name(tsr_sharding_format format);

/** The format of that name. TSR_ERROR_ARGUMENT: there is none; the sentence lists the names. */
TSR_API tsr_status tsr_sharding_format_parse(const char *name, tsr_sharding_format *out);

/**
 * Reads a text of `format` as the layout of a tensor of `ndim` dims over `mesh`, which is retained.
 * The caller owns `*out`.
 *
 * XLA, Shardy and JAX cut a tensor dim of length L by all of its axes at once, into chunks of
 * ceil(L / parts). Where the cuts one by one would fall elsewhere, the placements have `unit=`, and
 * OneFlow's `balanced`. A tensor on one device (`maximal`) is cut by `sizes=`, and by `unit=`
 * where that device's coordinate is 0. Marks for propagation (`?`, `p1`, `shard_as`, `reduced=`)
 * say nothing of where elements lie, and are read over.
 *
 * Errors: TSR_ERROR_ARGUMENT for a text that does not parse or does not suit the mesh or the shape;
 * the sentence quotes it and points at the character. TSR_ERROR_UNSUPPORTED for what placements on
 * this mesh cannot say, such as `manual`, part of an axis, or devices in another order; the
 * sentence says what would work.
 */
TSR_API tsr_status tsr_sharding_parse(tsr_sharding_format format, const char *text,
                                      const tsr_mesh *mesh, int ndim, const int64_t *shape,
                                      tsr_dtype dtype, tsr_layout **out);

/**
 * Prints a layout in `format`, like snprintf(): at most `capacity` bytes with the NUL, and
 * `*length` gets the length of the whole text. tsr_sharding_parse() reads it as a layout in which
 * each rank owns the same elements.
 *
 * TSR_ERROR_UNSUPPORTED: the format cannot say it: a Partial that is not a sum, cuts that the
 * format does not make, axes without names; the sentence names the mesh dim or the tensor dim.
 * TSR_ERROR_ARGUMENT also: a rank has more intervals than tsr_context_options.plan_entries. On an
 * error `*length` is left alone.
 */
TSR_API tsr_status tsr_sharding_print(const tsr_layout *layout, tsr_sharding_format format,
                                      char *text, size_t capacity, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
