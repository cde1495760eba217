/* Forms: layouts that values share, so that a change of a length makes few layouts. */
#include "ops/programs/forms.h"

#include "ops/programs/executable.h"
#include "ops/rules/alike.h"
#include "ops/rules/propagate.h"

#include <limits.h>
#include <string.h>

/* The local tensor of a form's layout. */
static tsr_status describe(const tsr_form *f, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS];
    *out = (tsr_tensor){.ndim = -1};
    if (!f->inside)
        return TSR_OK;
    TSR_TRY(tsr_layout_local(f->layout, f->coordinate, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(f->layout), tsr_layout_ndim(f->layout), shape);
    return TSR_OK;
}

static bool is_same(const tsr_form *f, const tsr_layout *layout, const int64_t factor[TSR_MAX_DIMS][TSR_LENGTHS])
{
    return memcmp(f->factor, factor, sizeof f->factor) == 0 && tsr_op_are_layouts_equal(f->largest, layout);
}

static tsr_status make_form(const tsr_executable *x, tsr_form *f)
{
    int inside;
    for (int dim = 0; dim < tsr_layout_ndim(f->largest); dim++) {
        f->base[dim] = tsr_layout_shape(f->largest)[dim];
        for (size_t i = 0; i < x->length_count; i++) {
            f->base[dim] -= f->factor[dim][i] * x->lengths[i].maximum;
            f->lengths |= f->factor[dim][i] != 0 ? 1U << i : 0;
        }
    }
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(f->largest), x->rank, f->coordinate, &inside));
    f->inside = inside;
    if (inside)
        TSR_TRY(tsr_layout_local_bytes(f->largest, f->coordinate, &f->bytes));
    return describe(f, &f->local);
}

tsr_status tsr_executable_add_form(tsr_executable *x, const tsr_layout *layout,
                                   const int64_t factor[TSR_MAX_DIMS][TSR_LENGTHS], int *out)
{
    void *items = x->forms;
    for (size_t i = 0; i < x->form_count; i++) {
        if (is_same(&x->forms[i], layout, factor)) {
            *out = (int)i;
            return TSR_OK;
        }
    }
    TSR_TRY(tsr_program_grow(x->context, sizeof *x->forms, x->form_count, &x->form_room, &items));
    x->forms = items;
    tsr_form *const f = &x->forms[x->form_count];
    *f = (tsr_form){.largest = tsr_layout_retain((tsr_layout *)layout),
                    .layout = tsr_layout_retain((tsr_layout *)layout)};
    memcpy(f->factor, factor, sizeof f->factor);
    *out = (int)x->form_count++;
    return make_form(x, f);
}

static tsr_status update(const tsr_executable *x, tsr_form *f)
{
    int64_t shape[TSR_MAX_DIMS];
    tsr_layout *made;
    for (int dim = 0; dim < tsr_layout_ndim(f->largest); dim++) {
        shape[dim] = f->base[dim];
        for (size_t i = 0; i < x->length_count; i++)
            shape[dim] += f->factor[dim][i] * x->length[i];
    }
    TSR_TRY(tsr_layout_create(tsr_layout_mesh(f->largest), tsr_layout_placements(f->largest),
                              tsr_layout_ndim(f->largest), shape, tsr_layout_dtype(f->largest), &made));
    if (f->before)
        tsr_layout_destroy(f->layout);
    else
        f->before = f->layout;
    f->layout = made;
    return describe(f, &f->local);
}

tsr_status tsr_executable_update_forms(tsr_executable *x, int at)
{
    for (size_t i = 0; i < x->form_count; i++)
        if (x->forms[i].lengths & (at < 0 ? UINT_MAX : 1U << at))
            TSR_TRY(update(x, &x->forms[i]));
    return TSR_OK;
}

void tsr_executable_settle_forms(tsr_executable *x, bool back)
{
    for (size_t i = 0; i < x->form_count; i++) {
        tsr_form *const f = &x->forms[i];
        if (!f->before)
            continue;
        tsr_layout_destroy(back ? f->layout : f->before);
        f->layout = back ? f->before : f->layout;
        f->before = NULL;
        (void)describe(f, &f->local); /* of a layout that was described before */
    }
    /* Ranks that fail before their steps are linked meet by these layouts. */
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        for (int j = 0; step->exchanged && j < step->operand_count; j++)
            step->layouts[j] = step->operands[j] >= 0 ? tsr_form_of(x, step->operands[j])->layout : NULL;
        for (int j = 0; step->exchanged && j < step->result_count; j++)
            step->result_layouts[j] = tsr_form_of(x, step->results[j])->layout;
    }
}

/* The cuts of a tensor's dim, as cuts of a tensor of one dim. */
static void take_cuts(const tsr_layout *layout, int dim, tsr_placement *cuts)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        cuts[k] = tsr_layout_placements(layout)[k];
        if (cuts[k].kind != TSR_SHARD || cuts[k].dim != dim)
            cuts[k] = tsr_replicate();
        cuts[k].dim = 0;
    }
}

tsr_status tsr_program_compare(const tsr_layout *a, const tsr_layout *b, bool *alike)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(a);
    *alike = tsr_op_are_on_one_mesh(mesh, tsr_layout_mesh(b));
    for (int k = 0; *alike && k < tsr_mesh_ndim(mesh); k++) {
        const tsr_placement *const x = &tsr_layout_placements(a)[k], *const y = &tsr_layout_placements(b)[k];
        *alike = tsr_mesh_size(mesh, k) == 1 || (x->kind == y->kind && (x->kind != TSR_PARTIAL || x->op == y->op));
    }
    for (int dim = 0; *alike && dim < tsr_layout_ndim(a); dim++) {
        tsr_placement ours[TSR_MAX_DIMS], theirs[TSR_MAX_DIMS];
        take_cuts(a, dim, ours);
        take_cuts(b, dim, theirs);
        TSR_TRY(tsr_cuts_alike(mesh, tsr_layout_shape(a)[dim], ours, theirs, alike));
    }
    return TSR_OK;
}
