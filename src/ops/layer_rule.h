/**
 * The rules of linear layers, forward and backward, for layouts: which operands fit, and the
 * layout that they give. All is pure and depends on the layouts alone, so every rank comes to the
 * same result. Sentences begin with `caller`.
 */
#ifndef TSR_OPS_LAYER_RULE_H
#define TSR_OPS_LAYER_RULE_H

#include <tessera/layout.h>

#include <stdbool.h>

/** y's layout by the rule of linear; `b` may be NULL. The caller owns `*y`. Its dtype is that of the
 * operands, or f32 for a mixture of f32, f16 and bf16. TSR_ERROR_ARGUMENT: meshes, dtypes, numbers
 * of dims or sizes do not match, or the placements do not fit; the sentence names a layout that
 * fits. */
tsr_status tsr_layer_rule_y(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                            tsr_layout **y);

/** The layout of the gradient of x, w or b, for `which` 0, 1 or 2, of that dtype. `other` is w, x or
 * NULL. The caller owns `*out`. Errors are those of tsr_layer_rule_y(). */
tsr_status tsr_layer_rule_gradient(const char *caller, int which, const tsr_layout *dy, const tsr_layout *other,
                                   tsr_dtype dtype, tsr_layout **out);

/** Room for the name of a mesh dim; longer names are cut. */
#define TSR_LAYER_MESH_DIM_TEXT 32

/** Writes what errors call a mesh dim, its name or else its index, and returns `text`. */
const char *tsr_layer_name_mesh_dim(const tsr_mesh *mesh, int dim, char text[TSR_LAYER_MESH_DIM_TEXT]);

/** Room for the text of any shape. */
#define TSR_LAYER_SHAPE_TEXT 192

/** Writes the shape of a layout's tensor, "31x3" or "scalar", and returns `text`. */
const char *tsr_layer_print_shape(const tsr_layout *layout, char text[TSR_LAYER_SHAPE_TEXT]);

/** True if the tensors of both layouts have the same shape. */
bool tsr_layer_same_shape(const tsr_layout *a, const tsr_layout *b);

/** True if the meshes are over one communicator, or one of them is abstract. */
bool tsr_layer_is_of_one_comm(const tsr_mesh *a, const tsr_mesh *b);

/** TSR_ERROR_ARGUMENT: the operands `first` and `other` are not on equal meshes over one
 * communicator. The sentence begins with `caller` and names both operands. */
tsr_status tsr_layer_check_mesh(const char *caller, const char *first_name, const tsr_layout *first, const char *name,
                               const tsr_layout *other);

/** tsr_layer_check_mesh(); the meshes must also have the same dims, those of size 1 included, so
 * that both layouts have as many placements. */
tsr_status tsr_layer_check_mesh_dims(const char *caller, const char *first_name, const tsr_layout *first,
                                    const char *name, const tsr_layout *other);

#endif
