#include "checkpoint.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 160

/* What a tensor is called in the files of models that transformers does not save under its own
 * names: one tensor, or for each expert the tensors whose names have the number in place of `*`. */
typedef struct alias {
    const char *end; /* of the program's name */
    int count;       /* number of `parts` */
    const char *parts[2];
} alias;

static const alias aliases[] = {
    {"mlp.experts.gate_up_proj", 2, {"mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"}},
    {"mlp.experts.down_proj", 1, {"mlp.experts.*.down_proj.weight"}},
    {"mlp.experts.gate_up_proj", 2, {"block_sparse_moe.experts.*.w1.weight", "block_sparse_moe.experts.*.w3.weight"}},
    {"mlp.experts.down_proj", 1, {"block_sparse_moe.experts.*.w2.weight"}},
    {"mlp.gate.weight", 1, {"block_sparse_moe.gate.weight"}},
};

/* "512x192" */
static void print_shape(int ndim, const int64_t *shape, char text[TSR_MAX_DIMS * 21])
{
    const size_t capacity = TSR_MAX_DIMS * 21;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < ndim && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld", i > 0 ? "x" : "", (long long)shape[i]);
}

static tsr_status check_dtype(const tsr_safetensors_entry *entry)
{
    if (entry->dtype != TSR_F32 && entry->dtype != TSR_F16 && entry->dtype != TSR_BF16)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: tensor %s is of dtype %s; this program reads f32, f16 and bf16", entry->path,
                              entry->name, tsr_dtype_name(entry->dtype));
    return TSR_OK;
}

static tsr_status check_entry(const tsr_safetensors_entry *entry, int ndim, const int64_t *shape)
{
    if (entry->ndim != ndim || memcmp(entry->shape, shape, (size_t)ndim * sizeof shape[0]) != 0) {
        char found[TSR_MAX_DIMS * 21], wanted[TSR_MAX_DIMS * 21];
        print_shape(entry->ndim, entry->shape, found);
        print_shape(ndim, shape, wanted);
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %s has shape (%s), but config.json asks for (%s)",
                              entry->path, entry->name, found, wanted);
    }
    return check_dtype(entry);
}

static tsr_status read_one(const tsr_safetensors *checkpoint, const char *name, const tsr_layout *layout,
                           int64_t *bytes_read, tsr_dtensor **out)
{
    const tsr_safetensors_entry *const entry = tsr_safetensors_find(checkpoint, name);
    if (entry)
        TSR_TRY(check_entry(entry, tsr_layout_ndim(layout), tsr_layout_shape(layout)));
    return tsr_safetensors_distribute(checkpoint, name, layout, bytes_read, out);
}

/* The tensor of a part of expert `expert`, or, if the part has no `*`, the tensor; NULL: none. */
static const tsr_safetensors_entry *find_part(const tsr_safetensors *checkpoint, const char *part, int64_t expert)
{
    char name[NAME_BYTES + 24];
    const char *const star = strchr(part, '*');
    if (!star)
        return tsr_safetensors_find(checkpoint, part);
    snprintf(name, sizeof name, "%.*s%lld%s", (int)(star - part), part, (long long)expert, star + 1);
    return tsr_safetensors_find(checkpoint, name);
}

/* The parts of an expert are alike, so that none has rows of another one. */
static tsr_status read_experts(const tsr_safetensors *checkpoint, int count, char patterns[2][NAME_BYTES],
                               const tsr_layout *layout, int64_t *bytes_read, tsr_dtensor **out)
{
    const char *const all[] = {patterns[0], patterns[1]};
    const int64_t *const stacked = tsr_layout_shape(layout), shape[] = {stacked[1] / count, stacked[2]};
    for (int64_t expert = 0; expert < stacked[0]; expert++)
        for (int part = 0; part < count; part++) {
            const tsr_safetensors_entry *const entry = find_part(checkpoint, patterns[part], expert);
            if (entry)
                TSR_TRY(check_entry(entry, 2, shape));
        }
    return tsr_safetensors_distribute_stacked(checkpoint, (size_t)count, all, layout, bytes_read, out);
}

/* The alias under which the file has the tensor, whose parts' names are written; NULL: none. */
static const alias *find_alias(const tsr_safetensors *checkpoint, const char *name, char parts[2][NAME_BYTES])
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        const alias *const a = &aliases[i];
        const size_t end = strlen(a->end);
        if (length <= end || strcmp(name + length - end, a->end) != 0 || name[length - end - 1] != '.')
            continue;
        for (int part = 0; part < a->count; part++)
            snprintf(parts[part], NAME_BYTES, "%.*s%s", (int)(length - end), name, a->parts[part]);
        if (find_part(checkpoint, parts[0], 0))
            return a;
    }
    return NULL;
}

tsr_status llama_checkpoint_read(const tsr_safetensors *checkpoint, const char *name, const tsr_layout *layout,
                                 int64_t *bytes_read, tsr_dtensor **out)
{
    char parts[2][NAME_BYTES];
    int64_t bytes = 0;
    const alias *const a = tsr_safetensors_find(checkpoint, name) ? NULL : find_alias(checkpoint, name, parts);
    if (!a)
        TSR_TRY(read_one(checkpoint, name, layout, &bytes, out));
    else if (!strchr(a->parts[0], '*'))
        TSR_TRY(read_one(checkpoint, parts[0], layout, &bytes, out));
    else
        TSR_TRY(read_experts(checkpoint, a->count, parts, layout, &bytes, out));
    *bytes_read += bytes;
    return TSR_OK;
}

tsr_status llama_checkpoint_read_flat(const tsr_safetensors *checkpoint, const char *name, int ndim,
                                      const int64_t *shape, const tsr_layout *layout, tsr_dtensor **out)
{
    char parts[2][NAME_BYTES];
    const tsr_safetensors_entry *entry = tsr_safetensors_find(checkpoint, name);
    const alias *const a = entry ? NULL : find_alias(checkpoint, name, parts);
    if (a && !strchr(a->parts[0], '*'))
        entry = tsr_safetensors_find(checkpoint, parts[0]);
    if (!entry)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the checkpoint has no tensor %s", name);
    TSR_TRY(check_entry(entry, ndim, shape));
    return tsr_distribute_file(entry->path, entry->offset, entry->dtype, layout, NULL, out);
}
