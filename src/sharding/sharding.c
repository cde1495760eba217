/* The public calls, over a table of formats. */
#include "sharding/formats/hlo_read.h"
#include "sharding/formats/hlo_write.h"
#include "sharding/formats/jax.h"
#include "sharding/formats/mlir.h"
#include "sharding/formats/named_read.h"
#include "sharding/formats/named_write.h"
#include "sharding/formats/sbp.h"
#include "sharding/formats/tf.h"
#include "sharding/formats/torch.h"

#include <tessera/sharding.h>
#include <tessera/sys/status.h>

#include <string.h>

typedef struct format_row {
    const char *name;
    tsr_sharding_reader *read; /* NULL for our own text */
    tsr_sharding_writer *write;
} format_row;

static const format_row formats[TSR_SHARDING_END] = {
    [TSR_SHARDING_TESSERA] = {"tessera", NULL, NULL},
    [TSR_SHARDING_HLO1] = {"hlo1", tsr_read_hlo, tsr_write_hlo1},
    [TSR_SHARDING_HLO] = {"hlo", tsr_read_hlo, tsr_write_hlo},
    [TSR_SHARDING_HLO3] = {"hlo3", tsr_read_hlo3, tsr_write_hlo3},
    [TSR_SHARDING_SDY] = {"sdy", tsr_read_sdy, tsr_write_sdy},
    [TSR_SHARDING_JAX] = {"jax", tsr_read_jax, tsr_write_jax},
    [TSR_SHARDING_TORCH] = {"torch", tsr_read_torch, tsr_write_torch},
    [TSR_SHARDING_SBP] = {"sbp", tsr_read_sbp, tsr_write_sbp},
    [TSR_SHARDING_TF] = {"tf", tsr_read_tf, tsr_write_tf},
    [TSR_SHARDING_MLIR] = {"mlir", tsr_read_mlir, tsr_write_mlir},
};

static bool is_format(tsr_sharding_format format)
{
    return (unsigned)format < TSR_SHARDING_END;
}

const char *tsr_sharding_format_name(tsr_sharding_format format)
{
    return is_format(format) ? formats[format].name : "unknown";
}

tsr_status tsr_sharding_format_parse(const char *name, tsr_sharding_format *out)
{
    if (!name || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_sharding_format_parse: %s is NULL", name ? "out" : "name");
    for (int f = 0; f < TSR_SHARDING_END; f++)
        if (strcmp(formats[f].name, name) == 0) {
            *out = (tsr_sharding_format)f;
            return TSR_OK;
        }
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "there is no sharding format \"%s\": there are tessera, hlo1, hlo, hlo3, sdy, jax, torch, sbp, "
        "tf and mlir",
        name);
}

static tsr_status refuse_format(const char *call, tsr_sharding_format format)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: format %d is none: they go from 0 to %d", call, (int)format,
                          TSR_SHARDING_END - 1);
}

tsr_status tsr_sharding_parse(tsr_sharding_format format, const char *text, const tsr_mesh *mesh, int ndim,
                              const int64_t *shape, tsr_dtype dtype, tsr_layout **out)
{
    const char *const call = "tsr_sharding_parse";
    if (!is_format(format))
        return refuse_format(call, format);
    if (!text || !mesh || !out || (!shape && ndim > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call,
                              !text   ? "text"
                              : !mesh ? "mesh"
                              : !out  ? "out"
                                      : "shape");
    if (!formats[format].read)
        return tsr_layout_parse(mesh, text, ndim, shape, dtype, out);
    tsr_layout *whole; /* checks the shape and the dtype before a reader computes with them */
    tsr_placement same[TSR_MAX_DIMS];
    for (int m = 0; m < TSR_MAX_DIMS; m++)
        same[m] = tsr_replicate();
    TSR_TRY(tsr_layout_create(mesh, same, ndim, shape, dtype, &whole));
    tsr_layout_destroy(whole);
    tsr_scan scan = {"sharding", text, 0};
    return formats[format].read(&scan, &(tsr_sharding_case){mesh, ndim, shape, dtype}, out);
}

tsr_status tsr_sharding_print(const tsr_layout *layout, tsr_sharding_format format, char *text, size_t capacity,
                              size_t *length)
{
    const char *const call = "tsr_sharding_print";
    tsr_text out = {text, capacity, 0};
    if (!is_format(format))
        return refuse_format(call, format);
    if (!layout || !length || (!text && capacity > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call,
                              !layout   ? "layout"
                              : !length ? "length"
                                        : "text, though capacity is not 0");
    tsr_status status = TSR_OK;
    if (formats[format].write)
        status = formats[format].write(layout, &out);
    else
        out.length = tsr_layout_print(layout, text, capacity);
    if (status == TSR_OK)
        *length = out.length;
    else if (capacity > 0)
        text[0] = '\0';
    return status;
}
