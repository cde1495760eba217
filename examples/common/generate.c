#include "generate.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

double llama_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t llama_request_positions(const llama_request *request)
{
    return request->prompt_count + (request->tokens > 0 ? request->tokens - 1 : 0);
}

tsr_status llama_request_limit(const llama_config *config, int64_t prompt_count, int64_t asked, int64_t *out)
{
    const int64_t room = config->max_positions - prompt_count, usual = room < 128 ? room : 128;
    if (room < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the prompt has %lld tokens, but max_position_embeddings is %lld",
                              (long long)prompt_count, (long long)config->max_positions);
    if (asked > room)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "--tokens %lld: after a prompt of %lld, max_position_embeddings, %lld, leaves room for %lld",
            (long long)asked, (long long)prompt_count, (long long)config->max_positions, (long long)room);
    *out = asked >= 0 ? asked : usual;
    return TSR_OK;
}

/* Chooses the next token from the last of the logits. Returns false when the text is complete. */
static bool take(const llama_speaker *speaker, const llama_request *request, const tsr_tensor *logits,
                 llama_generation *generation)
{
    const int64_t vocabulary = speaker->config->vocab_size;
    const size_t before = (size_t)((logits->shape[0] - 1) * vocabulary) * tsr_dtype_bytes(logits->dtype);
    const tsr_tensor last = tsr_tensor_contiguous((char *)logits->data + before, logits->dtype, 1, &vocabulary);
    if (generation->count == request->tokens)
        return false;
    const int64_t token = llama_choose(&request->sampling, &last, (uint64_t)generation->count);
    generation->ids[generation->count++] = token;
    if (request->on_token && tsr_comm_rank(speaker->comm) == 0)
        request->on_token(request->user, token);
    return generation->count < request->tokens && !llama_config_ends(speaker->config, token);
}

static tsr_status keep_logits(const llama_speaker *speaker, const llama_request *request, const tsr_tensor *logits,
                              llama_generation *generation)
{
    const size_t elements = (size_t)(request->prompt_count * speaker->config->vocab_size);
    const size_t bytes = elements * tsr_dtype_bytes(logits->dtype);
    if (!request->all_logits || tsr_comm_rank(speaker->comm) != 0)
        return TSR_OK;
    generation->logits = malloc(bytes);
    if (!generation->logits)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the %zu bytes of the prompt's logits", bytes);
    memcpy(generation->logits, logits->data, bytes);
    return TSR_OK;
}

/* Runs all tokens of the prompt at once; `*going` says whether to generate more. */
static tsr_status run_prompt(const llama_speaker *speaker, const llama_request *request, llama_generation *generation,
                             bool *going)
{
    const int64_t logit_rows = request->all_logits ? request->prompt_count : 1;
    tsr_tensor logits;
    TSR_TRY(tsr_comm_barrier(speaker->comm));
    const double start = llama_seconds();
    TSR_TRY(speaker->run(speaker->model, request->prompt, request->prompt_count, 0, logit_rows, &logits));
    *going = take(speaker, request, &logits, generation);
    generation->prompt_seconds = llama_seconds() - start;
    return keep_logits(speaker, request, &logits, generation);
}

static tsr_status run_decode(const llama_speaker *speaker, const llama_request *request, llama_generation *generation,
                             bool going)
{
    tsr_tensor logits;
    tsr_status status = tsr_comm_barrier(speaker->comm);
    const double start = llama_seconds();
    while (status == TSR_OK && going) {
        const int64_t position = request->prompt_count + generation->count - 1;
        status = speaker->run(speaker->model, &generation->ids[generation->count - 1], 1, position, 1, &logits);
        if (status == TSR_OK)
            going = take(speaker, request, &logits, generation);
    }
    generation->decode_seconds = llama_seconds() - start;
    return status;
}

tsr_status llama_generate(const llama_speaker *speaker, const llama_request *request, llama_generation *out)
{
    llama_generation generation = {.ids = malloc((size_t)(request->tokens + 1) * sizeof(int64_t))};
    if (!generation.ids)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %lld tokens", (long long)request->tokens);
    bool going = false;
    tsr_status status = run_prompt(speaker, request, &generation, &going);
    if (status == TSR_OK)
        status = run_decode(speaker, request, &generation, going);
    if (status == TSR_OK)
        *out = generation;
    else
        llama_generation_finish(&generation);
    return status;
}

void llama_generation_finish(llama_generation *generation)
{
    free(generation->ids);
    free(generation->logits);
    *generation = (llama_generation){0};
}
