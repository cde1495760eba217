#include "weights.h"

#include "checkpoint.h"
#include "random.h"
#include "step.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <string.h>

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), of_end = strlen(end);
    return length >= of_end && strcmp(name + length - of_end, end) == 0;
}

bool train_is_weight(const char *name)
{
    return ends_with(name, ".weight") || ends_with(name, ".bias") || ends_with(name, ".gate_up_proj") ||
           ends_with(name, ".down_proj");
}

bool train_has_terms(const char *name)
{
    return ends_with(name, TRAIN_TERMS);
}

static tsr_status make_filled(const tsr_layout *layout, double value, tsr_dtensor **out)
{
    tsr_dtensor *made;
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    const tsr_status status = tsr_dtensor_fill(made, value, NULL);
    if (status == TSR_OK)
        *out = made;
    else
        tsr_dtensor_destroy(made);
    return status;
}

tsr_status train_weights_make(const tsr_safetensors *checkpoint, uint64_t seed, const char *name,
                              const tsr_layout *layout, const int64_t *shape, tsr_dtensor **out)
{
    int64_t bytes = 0;
    if (!train_is_weight(name))
        return make_filled(layout, 0, out);
    if (checkpoint && shape)
        return llama_checkpoint_read_flat(checkpoint, name, 2, shape, layout, out);
    if (checkpoint)
        return llama_checkpoint_read(checkpoint, name, layout, &bytes, out);
    if (tsr_layout_ndim(layout) == 1 && !shape)
        return make_filled(layout, ends_with(name, ".bias") ? 0 : 1, out);
    const tsr_random_key key = tsr_random_key_philox(llama_random_stream(seed, name), 0);
    return tsr_normal(layout, &key, 0, 0.02, out);
}
