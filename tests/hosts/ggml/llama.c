/*
 * llama.cpp with a model on its CPU backend, with flash attention or without (plain), or split
 * over the library's devices: prints the logits of each token of a prompt, then the tokens that
 * follow it, and how often tensors were added.
 *
 * usage: test-ggml-llama MODEL.gguf plain|cpu|tensor|layer DEVICES COUNT TOKEN..
 */
#include <ggml-backend-impl.h>
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 16, CONTEXT = 512 };

typedef void *find_function(ggml_backend_reg_t reg, const char *name);

/* The registry's own function, and how often the library has added tensors. */
static find_function *original;
static ggml_backend_comm_allreduce_tensor_t allreduce;
static long sums;

static bool count_sum(void *comm, struct ggml_tensor **tensors)
{
    const bool done = allreduce(comm, tensors);
    sums += done;
    return done;
}

static void *find(ggml_backend_reg_t reg, const char *name)
{
    const ggml_backend_comm_allreduce_tensor_t counted = count_sum;
    void *found = original(reg, name);
    if (strcmp(name, "ggml_backend_comm_allreduce_tensor") == 0) {
        memcpy(&allreduce, &found, sizeof found);
        memcpy(&found, &counted, sizeof found);
    }
    return found;
}

static void log_errors(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR)
        (void)fputs(text, stderr);
}

static struct llama_model *load_model(const char *path, const char *way, int count)
{
    ggml_backend_dev_t devices[MOST_DEVICES + 1] = {NULL};
    struct llama_model_params params = llama_model_default_params();
    (void)setenv("TSR_GGML_DEVICES", "16", 0);
    const ggml_backend_reg_t reg = ggml_backend_load(GGML_TESSERA);
    if (!reg)
        return NULL;
    original = reg->iface.get_proc_address;
    reg->iface.get_proc_address = find;
    const int split = strcmp(way, "tensor") == 0 || strcmp(way, "layer") == 0;
    for (int d = 0; split && d < count; d++)
        devices[d] = ggml_backend_reg_dev_get(reg, (size_t)d);
    params.devices = devices;
    params.n_gpu_layers = split ? 999 : 0;
    params.split_mode = strcmp(way, "tensor") == 0 ? LLAMA_SPLIT_MODE_TENSOR : LLAMA_SPLIT_MODE_LAYER;
    return llama_model_load_from_file(path, params);
}

/* Computes tokens that follow those before; the logits of each are there afterwards. */
static void decode(struct llama_context *context, const llama_token *tokens, int count, int before)
{
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int i = 0; i < count; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = before + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0)
        exit(1);
    llama_batch_free(batch);
}

static llama_token likeliest(const float *logits, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static void run(struct llama_context *context, int words, llama_token *tokens, int count, int more)
{
    decode(context, tokens, count, 0);
    for (int i = 0; i < count; i++) {
        printf("logits");
        for (int word = 0; word < words; word++)
            printf(" %.9g", (double)llama_get_logits_ith(context, i)[word]);
        printf("\n");
    }
    llama_token next = likeliest(llama_get_logits_ith(context, count - 1), words);
    printf("tokens");
    for (int i = 0; i < more; i++) {
        printf(" %d", next);
        decode(context, &next, 1, count + i);
        next = likeliest(llama_get_logits_ith(context, 0), words);
    }
    printf("\nsums %ld\n", sums);
}

int main(int argc, char **argv)
{
    llama_token tokens[CONTEXT];
    const int count = argc - 5;
    if (count < 1 || count > CONTEXT / 2)
        return 2;
    for (int i = 0; i < count; i++)
        tokens[i] = atoi(argv[5 + i]);
    llama_log_set(log_errors, NULL);
    llama_backend_init();
    struct llama_model *const model = load_model(argv[1], argv[2], atoi(argv[3]));
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = CONTEXT;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type =
        strcmp(argv[2], "plain") == 0 ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    struct llama_context *const context = model ? llama_init_from_model(model, params) : NULL;
    if (!context)
        return 1;
    run(context, llama_vocab_n_tokens(llama_model_get_vocab(model)), tokens, count, atoi(argv[4]));
    llama_free(context);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
