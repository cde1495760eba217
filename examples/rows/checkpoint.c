#include "checkpoint.h"

#include <tessera/comm.h>
#include <tessera/safetensors.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 2 + 2 * MODEL_WEIGHTS, TEXT_BYTES = 160 };

/* The tensors of a checkpoint, by their names in the file. */
static void list_tensors(const table *t, const model *m, tsr_safetensors_target list[TENSORS])
{
    static const char *const names[] = {"layer.0", "layer.1"}, *const sums[] = {"layer.0.sum", "layer.1.sum"};
    list[0] = (tsr_safetensors_target){"table", t->rows};
    list[1] = (tsr_safetensors_target){"table.sum", tsr_sparse_optimizer_state(t->optimizer, 0, "sum")};
    for (int i = 0; i < MODEL_WEIGHTS; i++) {
        list[2 + 2 * i] = (tsr_safetensors_target){names[i], m->weights[i]};
        list[3 + 2 * i] = (tsr_safetensors_target){sums[i], m->sums[i]};
    }
}

static void describe(const graph *g, char text[TEXT_BYTES])
{
    snprintf(text, TEXT_BYTES, "nodes=%lld communities=%lld degree=%lld noise=%.17g seed=%llu", (long long)g->nodes,
             (long long)g->communities, (long long)g->degree, g->noise, (unsigned long long)g->seed);
}

tsr_status checkpoint_save(const char *path, const graph *g, const table *t, const model *m, int64_t epoch)
{
    char made[TEXT_BYTES], after[32];
    tsr_safetensors_target list[TENSORS];
    tsr_safetensors_tensor tensors[TENSORS];
    const tsr_safetensors_text metadata[] = {{"graph", made}, {"epoch", after}};
    const tsr_safetensors_write_options options = {sizeof options, 2, metadata};
    describe(g, made);
    snprintf(after, sizeof after, "%lld", (long long)epoch);
    list_tensors(t, m, list);
    for (int i = 0; i < TENSORS; i++)
        tensors[i] = (tsr_safetensors_tensor){list[i].name, list[i].x, TSR_DTYPE_NONE};
    return tsr_safetensors_write(path, TENSORS, tensors, &options);
}

/* What the file says of itself. */
static tsr_status read_metadata(const char *path, const graph *g, int64_t *epoch)
{
    char wanted[TEXT_BYTES];
    tsr_safetensors *file;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_safetensors_open(path, &file));
    const char *const made = tsr_safetensors_metadata(file, "graph");
    const char *const after = tsr_safetensors_metadata(file, "epoch");
    describe(g, wanted);
    if (!made || !after)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: it is not a checkpoint of this program", path);
    else if (strcmp(made, wanted) != 0)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: it is of another graph: %.200s; the options give %s", path,
                                made, wanted);
    else
        *epoch = strtoll(after, NULL, 10);
    tsr_safetensors_destroy(file);
    return status;
}

tsr_status checkpoint_load(const char *path, const graph *g, const table *t, const model *m, int64_t *epoch)
{
    tsr_safetensors_target list[TENSORS];
    list_tensors(t, m, list);
    TSR_TRY(tsr_comm_share_status(m->comm, "checkpoint_load", read_metadata(path, g, epoch)));
    return tsr_safetensors_restore(path, TENSORS, list);
}
