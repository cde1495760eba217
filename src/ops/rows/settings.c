#include "ops/rows/settings.h"

#include "ops/rows/key_recipe.h"

#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

/* The words of the attribute reduction, by tsr_loss_reduction. */
static const char *const reductions[] = {"mean", "sum", "none"};

/* The words of attributes of experts, by the enums of mixture.h. */
static const char *const activations[] = {"silu", "gelu", "gelu_tanh", "relu"};
static const char *const overflows[] = {"fail", "drop"};
static const char *const beyonds[] = {"fail", "zero", "identity"};

#define LENGTH_OF(list) (sizeof list / sizeof list[0])

tsr_status tsr_settings_attention(const char *caller, const tsr_attention_options *given, tsr_attention_options *out)
{
    *out = (tsr_attention_options)TSR_ATTENTION_OPTIONS_INIT;
    return tsr_options_read(caller, given, out, sizeof *out);
}

tsr_status tsr_settings_rope(const char *caller, const tsr_rope_options *given, tsr_rope_options *out)
{
    *out = (tsr_rope_options)TSR_ROPE_OPTIONS_INIT;
    return tsr_options_read(caller, given, out, sizeof *out);
}

tsr_status tsr_settings_loss(const char *caller, const tsr_cross_entropy_options *given, tsr_cross_entropy_options *out)
{
    *out = (tsr_cross_entropy_options)TSR_CROSS_ENTROPY_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(caller, given, out, sizeof *out));
    if ((unsigned)out->reduction >= sizeof reductions / sizeof reductions[0])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: reduction is %d, but must be a tsr_loss_reduction", caller,
                              (int)out->reduction);
    return TSR_OK;
}

const char *tsr_settings_reduction(tsr_loss_reduction reduction)
{
    return reductions[reduction];
}

tsr_status tsr_settings_experts(const char *caller, const tsr_expert_mlp_options *given, tsr_expert_mlp_options *out)
{
    *out = (tsr_expert_mlp_options)TSR_EXPERT_MLP_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(caller, given, out, sizeof *out));
    if ((unsigned)out->activation >= LENGTH_OF(activations))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: activation is %d, but must be a tsr_expert_mlp_activation",
                              caller, (int)out->activation);
    if ((unsigned)out->overflow >= LENGTH_OF(overflows))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: overflow is %d, but must be a tsr_expert_mlp_overflow", caller,
                              (int)out->overflow);
    if ((unsigned)out->beyond >= LENGTH_OF(beyonds))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: beyond is %d, but must be a tsr_expert_mlp_beyond", caller,
                              (int)out->beyond);
    return TSR_OK;
}

const char *tsr_settings_activation(tsr_expert_mlp_activation activation)
{
    return activations[activation];
}

const char *tsr_settings_overflow(tsr_expert_mlp_overflow overflow)
{
    return overflows[overflow];
}

const char *tsr_settings_beyond(tsr_expert_mlp_beyond beyond)
{
    return beyonds[beyond];
}

tsr_status tsr_settings_check_key(const char *caller, const tsr_random_key *key)
{
    tsr_key_recipe recipe;
    if (!key)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: key is NULL", caller);
    if (key->generator == TSR_RANDOM_THREEFRY || key->generator == TSR_RANDOM_PHILOX)
        return TSR_OK;
    if (tsr_key_recipe_unpack(key, &recipe))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: key is of tsr_run_key() and stands for one that runs of a program give; give a key "
                              "that is one, such as tsr_random_key_threefry(seed)",
                              caller);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: key has generator %d; make it by tsr_random_key_threefry() or tsr_random_key_philox()",
                          caller, (int)key->generator);
}

tsr_status tsr_settings_check_recorded_key(const char *caller, const tsr_random_key *key)
{
    tsr_key_recipe recipe;
    if (!key || !tsr_key_recipe_unpack(key, &recipe))
        return tsr_settings_check_key(caller, key);
    if (recipe.fold_count <= TSR_KEY_FOLDS)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: too much is folded into key: one of tsr_run_key() takes two numbers of any size, or %d "
                          "below 2^32; fold in fewer, or make another key by tsr_run_key()",
                          caller, TSR_KEY_FOLDS);
}

tsr_status tsr_settings_check_not_partial(const char *caller, const char *name, const tsr_layout *layout)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        const tsr_placement *const p = &tsr_layout_placements(layout)[k];
        if (p->kind == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: %s is Partial(%s) on mesh dim %d, but random numbers are values and not terms; "
                                  "take Replicate there",
                                  caller, name, tsr_reduce_op_name(p->op), k);
    }
    return TSR_OK;
}

tsr_status tsr_settings_check_sizes(const char *caller, const tsr_layout *layout, int *dim, int count,
                                    const int64_t *sizes)
{
    const int ndim = tsr_layout_ndim(layout);
    int64_t left;
    if (!sizes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: sizes is NULL", caller);
    if (*dim < -1 || *dim >= ndim || ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim is %d, but x has %d dims, of which -1 is the last", caller,
                              *dim, ndim);
    *dim = *dim == -1 ? ndim - 1 : *dim;
    left = tsr_layout_shape(layout)[*dim];
    bool fit = count >= 1;
    for (int i = 0; i < count && fit; i++) {
        fit = sizes[i] >= 0 && sizes[i] <= left;
        left -= fit ? sizes[i] : 0;
    }
    return fit && left == 0
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: sizes must be 0 or more and sum to %lld, the size of dim %d",
                                caller, (long long)tsr_layout_shape(layout)[*dim], *dim);
}

tsr_status tsr_settings_check_count(const char *caller, int count, int most, const char *name, const void *list)
{
    if (!list)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, name);
    if (count < 1 || count > most)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: count is %d, but must be 1 to %d", caller, count, most);
    return TSR_OK;
}
