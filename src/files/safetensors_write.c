#include "files/header_text.h"
#include "files/shared_file.h"

#include <tessera/safetensors.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

#define CALL "tsr_safetensors_write"

/* A file that this rank is about to write. */
typedef struct writing {
    tsr_comm *comm;
    size_t count;
    tsr_safetensors_tensor *tensors; /* in the order of the file, their dtypes settled */
    tsr_header_tensor *places;       /* of each tensor */
    tsr_header_text header;
} writing;

static tsr_comm *comm_of(const tsr_dtensor *x)
{
    return tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x)));
}

/* The communicator of the first tensor; NULL: there is no tensor. */
static tsr_comm *first_comm(size_t count, const tsr_safetensors_tensor *tensors)
{
    for (size_t i = 0; tensors && i < count; i++)
        if (tensors[i].x)
            return comm_of(tensors[i].x);
    return NULL;
}

static tsr_status lack(void)
{
    return tsr_status_set(TSR_ERROR_MEMORY, CALL ": there is no memory for the header");
}

static tsr_status prepare(const tsr_safetensors_tensor *tensors, const tsr_safetensors_write_options *given, writing *w)
{
    tsr_safetensors_write_options options = TSR_SAFETENSORS_WRITE_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(CALL, given, &options, sizeof options));
    w->tensors = malloc(w->count * sizeof *w->tensors);
    w->places = malloc(w->count * sizeof *w->places);
    if (!w->tensors || !w->places)
        return lack();
    memcpy(w->tensors, tensors, w->count * sizeof *w->tensors);
    for (size_t i = 0; i < w->count; i++)
        TSR_TRY(tsr_header_check(CALL, w->comm, i, &w->tensors[i]));
    qsort(w->tensors, w->count, sizeof *w->tensors, tsr_header_order);
    for (size_t i = 0; i < w->count; i++) {
        const tsr_safetensors_tensor *const t = &w->tensors[i];
        const tsr_layout *const layout = tsr_dtensor_layout(t->x);
        w->places[i] = (tsr_header_tensor){t->name, t->dtype, tsr_layout_ndim(layout), tsr_layout_shape(layout), 0};
    }
    return tsr_header_print(CALL, w->count, w->places, options.metadata_count, options.metadata, &w->header);
}

static int64_t fingerprint(const char *path, const writing *w)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < w->header.bytes; i++)
        hash = (hash ^ (unsigned char)w->header.text[i]) * UINT64_C(0x100000001b3);
    for (; path && *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    return (int64_t)hash;
}

/* Collective: refuses, on every rank, headers that differ. */
static tsr_status compare(const char *path, const writing *w)
{
    const int64_t hash = fingerprint(path, w);
    int64_t least[2] = {hash, ~hash};
    TSR_TRY(tsr_comm_all_reduce(w->comm, least, least, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    if (least[0] == ~least[1])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, CALL
                          ": ranks give different paths, names, shapes, dtypes or metadata; all must give the same");
}

static tsr_status write_file(const tsr_shared_call *call, const char *path, const writing *w)
{
    tsr_shared_file file;
    TSR_TRY(tsr_shared_file_begin(call, TSR_OK, path, w->header.text, w->header.bytes, &file));
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < w->count && status == TSR_OK; i++)
        status = tsr_dtensor_write_as(w->tensors[i].x, file.path, (int64_t)w->header.bytes + w->places[i].offset,
                                      w->tensors[i].dtype, NULL);
    return tsr_shared_file_end(call, status, &file);
}

tsr_status tsr_safetensors_write(const char *path, size_t count, const tsr_safetensors_tensor *tensors,
                                 const tsr_safetensors_write_options *options)
{
    writing w = {.comm = first_comm(count, tensors), .count = count};
    if (!w.comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": there is no tensor: %s",
                              !tensors     ? "tensors is NULL"
                              : count == 0 ? "count is 0"
                                           : "every x is NULL");
    const tsr_shared_call call = {CALL, w.comm};
    tsr_status status = tsr_comm_share_status(w.comm, CALL, prepare(tensors, options, &w));
    if (status == TSR_OK)
        status = compare(path, &w);
    if (status == TSR_OK)
        status = write_file(&call, path, &w);
    free(w.tensors);
    free(w.places);
    free(w.header.text);
    return status;
}
