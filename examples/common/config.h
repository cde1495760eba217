/** The configuration of a Llama, Mistral, Qwen3, Mixtral or Qwen3-MoE, from a Hugging Face
 * config.json. Pure: text in, numbers out. */
#ifndef LLAMA_CONFIG_H
#define LLAMA_CONFIG_H

#include <tessera/attention.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum llama_rope_type { LLAMA_ROPE_DEFAULT, LLAMA_ROPE_LINEAR, LLAMA_ROPE_LLAMA3 } llama_rope_type;

/** Parameters of rotary positions. Fields below `theta` are set only for the types named. */
typedef struct llama_rope_config {
    llama_rope_type type;
    double theta;
    double factor;                                      /**< linear, llama3 */
    double low_frequency_factor, high_frequency_factor; /**< llama3 */
    double original_positions;                          /**< llama3 */
} llama_rope_config;

#define LLAMA_MAX_END_TOKENS 32
#define LLAMA_MAX_LAYERS     (1 << 16)

/** The experts of a layer, of whose results each token gets a weighted sum of a few. */
typedef struct llama_mixture_config {
    int64_t experts;                      /**< 0: no layer has them, and nothing else here is set */
    int64_t chosen;                       /**< how many a token goes to */
    int64_t size;                         /**< inner features of an expert */
    bool normed;                          /**< a token's weights are divided by their sum */
    double balance;                       /**< by how much the router's loss counts in training; 0: not */
    bool jitters;                         /**< training multiplies what routers read by random numbers */
    bool mixed;                           /**< models of this kind may have dense layers, too */
    uint8_t layers[LLAMA_MAX_LAYERS / 8]; /**< which layers have experts in place of an MLP, a bit each */
} llama_mixture_config;

typedef struct llama_config {
    int64_t vocab_size, hidden_size, intermediate_size, layers;
    int64_t heads;    /**< query heads */
    int64_t kv_heads; /**< key/value heads; divides heads */
    int64_t head_dim;
    int64_t max_positions;
    double norm_epsilon;
    bool has_plan;        /**< config.json says how weights are cut, in base_model_tp_plan */
    bool tied_embeddings; /**< the output weight is the embedding */
    bool attention_bias, mlp_bias;
    bool has_head_norms; /**< Qwen3: queries and keys are normed, head by head */
    int64_t window;      /**< positions that a layer with a sliding window sees; 0: no layer has one */
    uint8_t sliding[LLAMA_MAX_LAYERS / 8]; /**< which layers have it, a bit each */
    llama_mixture_config mixture;
    llama_rope_config rope;
    int64_t begin_token; /**< -1: none */
    int64_t end_tokens[LLAMA_MAX_END_TOKENS];
    size_t end_token_count;
} llama_config;

/**
 * Reads `length` bytes of JSON, which error sentences call `name`. TSR_ERROR_ARGUMENT: not JSON, or
 * a field is missing, of the wrong type or out of range. TSR_ERROR_UNSUPPORTED: the model is none
 * of those above, has quantized weights, or has a rope type or activation that this program does
 * not know.
 */
tsr_status llama_config_parse(const char *name, const char *text, size_t length, llama_config *out);

/** llama_config_parse() of a file. TSR_ERROR_IO: it cannot be read. */
tsr_status llama_config_load(const char *path, llama_config *out);

/** Positions that a layer sees, its own included; 0: all before it. */
int64_t llama_config_window(const llama_config *config, int64_t layer);

/** True if a layer has experts in place of an MLP. */
bool llama_config_has_experts(const llama_config *config, int64_t layer);

/** How queries and keys are turned to their positions. */
tsr_rope_options llama_config_rope(const llama_config *config);

/** True if `token` ends the text. */
bool llama_config_ends(const llama_config *config, int64_t token);

#endif
