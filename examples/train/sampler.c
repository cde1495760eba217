#include "sampler.h"

#include "random.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

enum { TOKENS, POSITIONS, INPUTS };

struct train_sampler {
    const train_trainer *trainer; /* borrowed */
    const llama_request *request; /* borrowed */
    tsr_executable *executable;
    void *workspace;
    size_t workspace_bytes;
    tsr_dtensor *inputs[INPUTS];
    int64_t *tokens; /* so far, in the one window that there is */
    int64_t length;  /* of it */
    void *logits;    /* of one token */
};

static tsr_dtype logits_dtype(const train_sampler *s)
{
    return tsr_layout_dtype(tsr_executable_output_layout(s->executable, 0));
}

static tsr_status compile(train_sampler *s)
{
    tsr_program *p;
    const train_plan *const plan = s->trainer->plan;
    const train_model model = {
        .config = plan->config, .layouts = &s->trainer->layouts, .batch = 1, .length = s->length, .dtype = plan->dtype};
    TSR_TRY(tsr_program_create(tsr_comm_context(s->trainer->comm), &p));
    tsr_status status = train_state_logits(&model, p);
    if (status == TSR_OK)
        status = tsr_compile(p, NULL, &s->executable);
    tsr_program_destroy(p);
    return status;
}

static tsr_status fill(train_sampler *s)
{
    tsr_comm *const comm = s->trainer->comm;
    TSR_TRY(compile(s));
    TSR_TRY(train_trainer_bind(s->trainer, s->executable));
    TSR_TRY(tsr_executable_prepare(s->executable, comm));
    s->workspace_bytes = tsr_executable_workspace_bytes(s->executable);
    TSR_TRY(tsr_comm_alloc(comm, s->workspace_bytes, &s->workspace));
    for (size_t i = 0; i < INPUTS; i++)
        TSR_TRY(tsr_dtensor_create(tsr_executable_input_layout(s->executable, i), tsr_device_host(), &s->inputs[i]));
    s->tokens = calloc((size_t)s->length, sizeof *s->tokens);
    s->logits = calloc((size_t)s->trainer->plan->config->vocab_size, tsr_dtype_bytes(logits_dtype(s)));
    return s->tokens && s->logits ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "no memory for a sample");
}

tsr_status train_sampler_create(const train_trainer *trainer, const llama_request *request, train_sampler **out)
{
    train_sampler *const s = calloc(1, sizeof *s);
    if (!s)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a sampler");
    s->trainer = trainer;
    s->request = request;
    s->length = llama_request_positions(request);
    const tsr_status status = fill(s);
    if (status == TSR_OK)
        *out = s;
    else
        train_sampler_destroy(s);
    return status;
}

void train_sampler_destroy(train_sampler *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < INPUTS; i++)
        tsr_dtensor_destroy(s->inputs[i]);
    if (s->workspace)
        tsr_comm_free(s->trainer->comm, s->workspace, s->workspace_bytes);
    tsr_executable_destroy(s->executable);
    free(s->tokens);
    free(s->logits);
    free(s);
}

/* Writes this rank's part of the window and of its positions. */
static tsr_status load(const train_sampler *s)
{
    int64_t shape[TSR_MAX_DIMS], first[TSR_MAX_DIMS];
    int64_t *const tokens = tsr_dtensor_to_local(s->inputs[TOKENS]).data;
    int64_t *const positions = tsr_dtensor_to_local(s->inputs[POSITIONS]).data;
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(s->inputs[TOKENS]), NULL, shape, first));
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        tokens[i] = s->tokens[first[1] + i];
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(s->inputs[POSITIONS]), NULL, shape, first));
    for (int64_t i = 0; i < shape[0]; i++)
        positions[i] = first[0] + i;
    return TSR_OK;
}

/* What llama_speaker asks for. There is no cache: the window is read again for each token, and what
 * lies behind the last token changes nothing before it. */
static tsr_status speak(void *of, const int64_t *tokens, int64_t rows, int64_t first, int64_t logit_rows,
                        tsr_tensor *logits)
{
    train_sampler *const s = of;
    const int64_t one = 1, last = first + rows - 1, vocabulary = s->trainer->plan->config->vocab_size;
    int64_t wanted[] = {last};
    const int64_t whole[] = {1, 1, vocabulary}, shape[] = {logit_rows, vocabulary};
    for (int64_t i = 0; i < rows; i++)
        s->tokens[first + i] = tokens[i];
    TSR_TRY(load(s));
    const tsr_tensor inputs[] = {tsr_dtensor_to_local(s->inputs[TOKENS]), tsr_dtensor_to_local(s->inputs[POSITIONS]),
                                 tsr_tensor_contiguous(wanted, TSR_I64, 1, &one)};
    const tsr_tensor output = tsr_tensor_contiguous(s->logits, logits_dtype(s), 3, whole);
    TSR_TRY(
        tsr_executable_run(s->executable, s->trainer->comm, inputs, &output, s->workspace, s->workspace_bytes, NULL));
    *logits = tsr_tensor_contiguous(s->logits, logits_dtype(s), 2, shape);
    return TSR_OK;
}

tsr_status train_sampler_generate(train_sampler *s, int64_t step, llama_generation *out)
{
    llama_request request = *s->request;
    const llama_speaker speaker = {s->trainer->comm, s->trainer->plan->config, speak, s};
    request.sampling.stream = llama_random_bits(request.sampling.stream, (uint64_t)step);
    return llama_generate(&speaker, &request, out);
}
