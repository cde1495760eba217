/** A Llama on this rank: its program, compiled, with the rank's part of weights and caches. */
#ifndef LLAMA_MODEL_H
#define LLAMA_MODEL_H

#include "weights.h"

typedef struct llama_model {
    tsr_comm *comm;             /**< borrowed */
    const llama_config *config; /**< borrowed */
    llama_layouts layouts;
    tsr_executable *executable;
    int64_t capacity; /**< in positions */
    llama_loaded loaded;
    int64_t *positions, *wanted; /**< (capacity) */
    float *logits;               /**< (logit_rows, vocab_size) of the last run */
    int64_t logit_rows;
    void *workspace;
    size_t workspace_bytes;
} llama_model;

/** Collective: loads a model with room for `capacity` positions, cut by `plan`, or as layouts.h
 * says where that is NULL. */
tsr_status llama_model_create(tsr_comm *comm, const llama_config *config, const llama_source *source,
                              const tsr_parallel_rules *plan, int64_t capacity, llama_model **out);
void llama_model_destroy(llama_model *model);

/** Collective: what llama_speaker asks for, of a llama_model. Earlier positions are read from the
 * cache, and these are added to it. `*logits` is of f32. */
tsr_status llama_model_run(void *model, const int64_t *tokens, int64_t rows, int64_t first, int64_t logit_rows,
                           tsr_tensor *logits);

/** Bytes that this rank receives from other ranks in a run of as many tokens as in the last. */
int64_t llama_model_bytes_received(const llama_model *model);

#endif
