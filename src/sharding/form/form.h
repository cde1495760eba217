/** What most formats say of a tensor: which axes (mesh dims) cut each of its dims, and which hold
 * terms of a sum. Pure. */
#ifndef TSR_SHARDING_FORM_FORM_H
#define TSR_SHARDING_FORM_FORM_H

#include <tessera/layout.h>

#include <stdbool.h>

/** A list of mesh dims. For cuts: the outermost first. */
typedef struct tsr_axis_list {
    int count;
    int at[TSR_MAX_DIMS];
} tsr_axis_list;

typedef struct tsr_sharding_form {
    const tsr_mesh *mesh; /**< borrowed, as is `shape` */
    int ndim;
    const int64_t *shape;
    tsr_axis_list cuts[TSR_MAX_DIMS]; /**< by tensor dim */
    tsr_axis_list summed;             /**< mesh dims that hold terms of a sum */
    int64_t owner;                    /**< the one rank that holds all; -1: there is none */
} tsr_sharding_form;

/** How a format cuts a tensor dim by several axes. */
typedef enum tsr_cut_rule {
    TSR_CUT_AT_ONCE = 0, /**< into chunks of ceil(L / parts), parts of all axes together */
    TSR_CUT_IN_TURN,     /**< by one axis after the other, each into chunks */
    TSR_CUT_BALANCED,    /**< by one axis after the other, each into parts that differ by one */
} tsr_cut_rule;

void tsr_form_init(tsr_sharding_form *form, const tsr_mesh *mesh, int ndim, const int64_t *shape);

/** Adds a mesh dim to a list; mesh dims of size 1 are left out. */
void tsr_form_add(const tsr_sharding_form *form, tsr_axis_list *list, int mesh_dim);

/** The parts into which the axes of `list` cut. */
int64_t tsr_form_parts(const tsr_sharding_form *form, const tsr_axis_list *list);

/** The layout of a form. TSR_ERROR_UNSUPPORTED: a scalar on one rank of several. */
tsr_status tsr_form_layout(const tsr_sharding_form *form, tsr_cut_rule rule, tsr_dtype dtype, tsr_layout **out);

/**
 * The form of a layout, by a rule under which it has the same elements on each rank. `format` names
 * the format in errors. TSR_ERROR_UNSUPPORTED: a Partial that is not a sum; cuts that do not follow
 * the rule.
 */
tsr_status tsr_form_of(const tsr_layout *layout, tsr_cut_rule rule, const char *format, tsr_sharding_form *form);

/** TSR_ERROR_UNSUPPORTED if a mesh dim holds terms, for a format that has no word for any. */
tsr_status tsr_form_refuse_terms(const tsr_layout *layout, const char *format);

/** The form of a layout without looking where its cuts fall. Errors as for tsr_form_of(). */
tsr_status tsr_form_of_axes(const tsr_layout *layout, const char *format, tsr_sharding_form *form);

#endif
