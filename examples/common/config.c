#include "config.h"

#include "file.h"
#include "json.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <string.h>

/* Larger than the sizes of any model, and small enough that no product of three sizes overflows,
 * nor one of two sizes and twice the experts. */
#define SIZE_LIMIT   (INT64_C(1) << 20)
#define TOKEN_LIMIT  (INT64_C(1) << 31)
#define EXPERT_LIMIT (INT64_C(1) << 16)

/* The object to read from, and its name in error sentences. */
typedef struct source {
    const char *name;
    json_t *object;
} source;

/* True if the field is absent or null. */
static bool missing(source from, const char *key)
{
    const json_t *const value = json_object_get(from.object, key);
    return !value || json_is_null(value);
}

static tsr_status read_integer(source from, const char *key, int64_t least, int64_t most, int64_t *out)
{
    const json_t *const value = json_object_get(from.object, key);
    if (!value)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no %s", from.name, key);
    if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s must be a whole number from %lld to %lld", from.name, key,
                              (long long)least, (long long)most);
    *out = json_integer_value(value);
    return TSR_OK;
}

static tsr_status read_size(source from, const char *key, int64_t *out)
{
    return read_integer(from, key, 1, SIZE_LIMIT, out);
}

/* Reads a positive, finite number. */
static tsr_status read_number(source from, const char *key, double *out)
{
    const json_t *const value = json_object_get(from.object, key);
    if (!value)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no %s", from.name, key);
    if (!json_is_number(value) || !isfinite(json_number_value(value)) || json_number_value(value) <= 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s must be a number above 0", from.name, key);
    *out = json_number_value(value);
    return TSR_OK;
}

static tsr_status read_bool(source from, const char *key, bool *out)
{
    if (missing(from, key)) {
        *out = false;
        return TSR_OK;
    }
    const json_t *const value = json_object_get(from.object, key);
    if (!json_is_boolean(value))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s must be true or false", from.name, key);
    *out = json_is_true(value);
    return TSR_OK;
}

/* Refuses every value of `key` but `wanted`, the only one that this program supports. */
static tsr_status expect_text(source from, const char *key, const char *wanted)
{
    const json_t *const value = json_object_get(from.object, key);
    if (!json_is_string(value))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s must be text; this program runs \"%s\"", from.name, key,
                              wanted);
    if (strcmp(json_string_value(value), wanted) != 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s is \"%.80s\"; this program runs \"%s\" only", from.name,
                              key, json_string_value(value), wanted);
    return TSR_OK;
}

static tsr_status read_sizes(source from, llama_config *config)
{
    TSR_TRY(read_integer(from, "vocab_size", 1, TOKEN_LIMIT, &config->vocab_size));
    TSR_TRY(read_size(from, "hidden_size", &config->hidden_size));
    TSR_TRY(read_size(from, "intermediate_size", &config->intermediate_size));
    TSR_TRY(read_integer(from, "num_hidden_layers", 1, LLAMA_MAX_LAYERS, &config->layers));
    TSR_TRY(read_size(from, "num_attention_heads", &config->heads));
    config->kv_heads = config->heads;
    if (!missing(from, "num_key_value_heads"))
        TSR_TRY(read_size(from, "num_key_value_heads", &config->kv_heads));
    config->max_positions = 2048;
    if (!missing(from, "max_position_embeddings"))
        TSR_TRY(read_integer(from, "max_position_embeddings", 1, TOKEN_LIMIT, &config->max_positions));
    config->norm_epsilon = 1e-6;
    return missing(from, "rms_norm_eps") ? TSR_OK : read_number(from, "rms_norm_eps", &config->norm_epsilon);
}

static tsr_status read_heads(source from, llama_config *config)
{
    if (config->heads % config->kv_heads != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: num_attention_heads, %lld, must be a multiple of num_key_value_heads, %lld",
                              from.name, (long long)config->heads, (long long)config->kv_heads);
    if (!missing(from, "head_dim"))
        TSR_TRY(read_size(from, "head_dim", &config->head_dim));
    else if (config->hidden_size % config->heads == 0)
        config->head_dim = config->hidden_size / config->heads;
    else
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: hidden_size, %lld, must be a multiple of num_attention_heads, %lld, or head_dim be given", from.name,
            (long long)config->hidden_size, (long long)config->heads);
    if (config->head_dim % 2 != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: head_dim, %lld, must be even: rotary positions turn pairs",
                              from.name, (long long)config->head_dim);
    return TSR_OK;
}

/* Reads the end tokens: a number, a list of numbers, or absent. */
static tsr_status read_end_tokens(source from, llama_config *config)
{
    const json_t *const value = json_object_get(from.object, "eos_token_id");
    if (missing(from, "eos_token_id"))
        return TSR_OK;
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    if (count > LLAMA_MAX_END_TOKENS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: eos_token_id has %zu tokens; at most %d are supported",
                              from.name, count, LLAMA_MAX_END_TOKENS);
    for (size_t i = 0; i < count; i++) {
        const json_t *const token = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_integer(token))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: eos_token_id must be a whole number or a list of them",
                                  from.name);
        config->end_tokens[i] = json_integer_value(token);
    }
    config->end_token_count = count;
    return TSR_OK;
}

static tsr_status read_tokens(source from, llama_config *config)
{
    config->begin_token = -1;
    if (!missing(from, "bos_token_id"))
        TSR_TRY(read_integer(from, "bos_token_id", -1, TOKEN_LIMIT, &config->begin_token));
    if (config->begin_token >= config->vocab_size)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: bos_token_id is %lld, but vocab_size is %lld", from.name,
                              (long long)config->begin_token, (long long)config->vocab_size);
    return read_end_tokens(from, config);
}

static tsr_status read_llama3(source from, llama_rope_config *rope)
{
    rope->type = LLAMA_ROPE_LLAMA3;
    TSR_TRY(read_number(from, "factor", &rope->factor));
    TSR_TRY(read_number(from, "low_freq_factor", &rope->low_frequency_factor));
    TSR_TRY(read_number(from, "high_freq_factor", &rope->high_frequency_factor));
    TSR_TRY(read_number(from, "original_max_position_embeddings", &rope->original_positions));
    if (rope->high_frequency_factor <= rope->low_frequency_factor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: high_freq_factor, %g, must be above low_freq_factor, %g",
                              from.name, rope->high_frequency_factor, rope->low_frequency_factor);
    return TSR_OK;
}

/* Reads the type from rope_parameters (transformers 5) or rope_scaling (earlier), where its key is
 * rope_type, or type in the oldest files. */
static tsr_status read_rope_type(source from, llama_rope_config *rope)
{
    const char *const key = missing(from, "rope_type") ? "type" : "rope_type";
    if (missing(from, key))
        return TSR_OK;
    const json_t *const value = json_object_get(from.object, key);
    const char *const type = json_is_string(value) ? json_string_value(value) : "";
    if (strcmp(type, "default") == 0)
        return TSR_OK;
    if (strcmp(type, "llama3") == 0)
        return read_llama3(from, rope);
    if (strcmp(type, "linear") != 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: %s is \"%.80s\"; this program knows default, linear and llama3", from.name, key,
                              type);
    rope->type = LLAMA_ROPE_LINEAR;
    return read_number(from, "factor", &rope->factor);
}

static tsr_status read_whole_rotary(source from)
{
    double part = 1;
    if (!missing(from, "partial_rotary_factor"))
        TSR_TRY(read_number(from, "partial_rotary_factor", &part));
    if (part != 1)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: partial_rotary_factor is %g; this program turns whole heads only (1)", from.name,
                              part);
    return TSR_OK;
}

static tsr_status read_rope_object(source from, const char *key, llama_rope_config *rope)
{
    if (missing(from, key))
        return TSR_OK;
    const source inner = {from.name, json_object_get(from.object, key)};
    if (!json_is_object(inner.object))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s must be an object", from.name, key);
    const char *field;
    json_t *value;
    json_object_foreach(inner.object, field, value) if (json_is_object(value)) return tsr_status_set(
        TSR_ERROR_UNSUPPORTED, "%s: %s holds one object a kind of layer (\"%.80s\"); a Llama has one for all",
        from.name, key, field);
    if (!missing(inner, "rope_theta"))
        TSR_TRY(read_number(inner, "rope_theta", &rope->theta));
    TSR_TRY(read_whole_rotary(inner));
    return read_rope_type(inner, rope);
}

static tsr_status read_rope(source from, llama_rope_config *rope)
{
    rope->type = LLAMA_ROPE_DEFAULT;
    rope->theta = 10000;
    if (!missing(from, "rope_theta"))
        TSR_TRY(read_number(from, "rope_theta", &rope->theta));
    TSR_TRY(read_whole_rotary(from));
    return read_rope_object(from, missing(from, "rope_parameters") ? "rope_scaling" : "rope_parameters", rope);
}

tsr_rope_options llama_config_rope(const llama_config *config)
{
    const llama_rope_config *const from = &config->rope;
    tsr_rope_options options = TSR_ROPE_OPTIONS_INIT;
    options.base = from->theta;
    if (from->type != LLAMA_ROPE_DEFAULT)
        options.factor = from->factor;
    if (from->type == LLAMA_ROPE_LLAMA3) {
        options.low_freq_factor = from->low_frequency_factor;
        options.high_freq_factor = from->high_frequency_factor;
        options.original_max_position = (int64_t)from->original_positions;
    }
    return options;
}

/* What kinds of models differ in. */
typedef struct kind {
    const char *type;
    bool has_head_norms;
    enum { WINDOW_NONE, WINDOW_ALWAYS, WINDOW_IF_USED, WINDOW_IF_USED_FROM } window;
    tsr_status (*read_mixture)(source from, llama_config *config); /* NULL: there are no experts */
} kind;

/* Reads which layers have a sliding window from layer_types. */
static tsr_status read_layer_types(source from, llama_config *config)
{
    const json_t *const types = json_object_get(from.object, "layer_types");
    if (!json_is_array(types) || (int64_t)json_array_size(types) != config->layers)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: layer_types must be a list of num_hidden_layers, %lld, texts",
                              from.name, (long long)config->layers);
    for (int64_t i = 0; i < config->layers; i++) {
        const char *const type = json_string_value(json_array_get(types, (size_t)i));
        const bool slides = type && strcmp(type, "sliding_attention") == 0;
        if (!slides && (!type || strcmp(type, "full_attention") != 0))
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: layer_types[%lld] is \"%.80s\"; this program runs full_attention and "
                                  "sliding_attention",
                                  from.name, (long long)i, type ? type : "");
        config->sliding[i / 8] |= (uint8_t)(slides << i % 8);
    }
    return TSR_OK;
}

/* Reads the sliding window: Mistral's and Mixtral's layers all have it, those of Qwen3 and
 * Qwen3-MoE if use_sliding_window says so, Qwen3's from max_window_layers on; layer_types, where it
 * is there, says which. */
static tsr_status read_window(source from, const kind *k, llama_config *config)
{
    bool used = k->window == WINDOW_ALWAYS;
    int64_t first = 0;
    if (k->window == WINDOW_IF_USED || k->window == WINDOW_IF_USED_FROM)
        TSR_TRY(read_bool(from, "use_sliding_window", &used));
    if (missing(from, "sliding_window") || !used)
        return TSR_OK;
    TSR_TRY(read_integer(from, "sliding_window", 1, TOKEN_LIMIT, &config->window));
    if (!missing(from, "layer_types"))
        return read_layer_types(from, config);
    if (k->window == WINDOW_IF_USED_FROM && !missing(from, "max_window_layers"))
        TSR_TRY(read_integer(from, "max_window_layers", 0, LLAMA_MAX_LAYERS, &first));
    for (int64_t i = first; i < config->layers; i++)
        config->sliding[i / 8] |= (uint8_t)(1 << i % 8);
    return TSR_OK;
}

int64_t llama_config_window(const llama_config *config, int64_t layer)
{
    return config->sliding[layer / 8] >> layer % 8 & 1 ? config->window : 0;
}

/* Reads how many experts there are, which old and new files call by two names, and how many a token
 * goes to. */
static tsr_status read_experts(source from, int64_t least, llama_mixture_config *mixture)
{
    const char *const key = missing(from, "num_local_experts") ? "num_experts" : "num_local_experts";
    TSR_TRY(read_integer(from, key, least, EXPERT_LIMIT, &mixture->experts));
    return mixture->experts == 0 ? TSR_OK
                                 : read_integer(from, "num_experts_per_tok", 1, mixture->experts, &mixture->chosen);
}

static void add_sparse_layer(llama_config *config, int64_t layer)
{
    config->mixture.layers[layer / 8] |= (uint8_t)(1 << layer % 8);
}

/* All layers have experts, of the size that dense layers would have. */
static tsr_status read_mixtral(source from, llama_config *config)
{
    llama_mixture_config *const mixture = &config->mixture;
    TSR_TRY(read_experts(from, 1, mixture));
    mixture->size = config->intermediate_size;
    mixture->normed = true;
    for (int64_t i = 0; i < config->layers; i++)
        add_sparse_layer(config, i);
    return TSR_OK;
}

/* Takes experts from the layers that mlp_only_layers lists. */
static tsr_status read_dense_layers(source from, llama_config *config)
{
    const json_t *const list = json_object_get(from.object, "mlp_only_layers");
    if (missing(from, "mlp_only_layers"))
        return TSR_OK;
    if (!json_is_array(list))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: mlp_only_layers must be a list of layers", from.name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const value = json_array_get(list, i);
        const json_int_t layer = json_is_integer(value) ? json_integer_value(value) : -1;
        if (layer < 0 || layer >= config->layers)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: mlp_only_layers[%zu] must be a layer from 0 to %lld",
                                  from.name, i, (long long)config->layers - 1);
        config->mixture.layers[layer / 8] &= (uint8_t) ~(1 << layer % 8);
    }
    return TSR_OK;
}

/* Each layer whose number, from 1 on, is a multiple of decoder_sparse_step has experts, but for
 * those that mlp_only_layers lists. */
static tsr_status read_qwen3_moe(source from, llama_config *config)
{
    int64_t step = 1;
    llama_mixture_config *const mixture = &config->mixture;
    TSR_TRY(read_experts(from, 0, mixture));
    if (mixture->experts == 0)
        return TSR_OK;
    mixture->mixed = true;
    TSR_TRY(read_size(from, "moe_intermediate_size", &mixture->size));
    TSR_TRY(read_bool(from, "norm_topk_prob", &mixture->normed));
    if (!missing(from, "decoder_sparse_step"))
        TSR_TRY(read_integer(from, "decoder_sparse_step", 1, LLAMA_MAX_LAYERS, &step));
    for (int64_t i = step - 1; i < config->layers; i += step)
        add_sparse_layer(config, i);
    return read_dense_layers(from, config);
}

bool llama_config_has_experts(const llama_config *config, int64_t layer)
{
    return config->mixture.layers[layer / 8] >> layer % 8 & 1;
}

static const kind kinds[] = {
    {"llama", false, WINDOW_NONE, NULL},
    {"mistral", false, WINDOW_ALWAYS, NULL},
    {"qwen3", true, WINDOW_IF_USED_FROM, NULL},
    {"mixtral", false, WINDOW_ALWAYS, read_mixtral},
    {"qwen3_moe", true, WINDOW_IF_USED, read_qwen3_moe},
};

static tsr_status read_kind(source from, const kind **out)
{
    const json_t *const value = json_object_get(from.object, "model_type");
    const char *const type = json_string_value(value);
    if (!type)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: model_type must be text, such as \"llama\"", from.name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type, kinds[i].type) == 0) {
            *out = &kinds[i];
            return TSR_OK;
        }
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: model_type is \"%.80s\"; this program runs llama, mistral, qwen3, mixtral and qwen3_moe",
                          from.name, type);
}

/* Reads a number of at least 0 that may be missing. */
static tsr_status read_part(source from, const char *key, double *out)
{
    const json_t *const value = json_object_get(from.object, key);
    return missing(from, key) || (json_is_number(value) && json_number_value(value) == 0) ? TSR_OK
                                                                                          : read_number(from, key, out);
}

/* Reads what routers do in training alone: by how much the loss that balances experts counts,
 * which transformers adds where output_router_logits is set, and whether there is noise. */
static tsr_status read_training(source from, llama_mixture_config *mixture)
{
    bool asked = false;
    double coefficient = missing(from, "router_aux_loss_coef") ? 0.001 : 0, jitter = 0;
    TSR_TRY(read_bool(from, "output_router_logits", &asked));
    TSR_TRY(read_part(from, "router_aux_loss_coef", &coefficient));
    TSR_TRY(read_part(from, "router_jitter_noise", &jitter));
    mixture->balance = asked && mixture->experts > 0 ? coefficient : 0;
    mixture->jitters = jitter > 0;
    return TSR_OK;
}

static tsr_status read_mixture(source from, const kind *k, llama_config *config)
{
    if (!k->read_mixture)
        return TSR_OK;
    if (config->mlp_bias)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: mlp_bias is true; a %s has no biases in its experts",
                              from.name, k->type);
    TSR_TRY(k->read_mixture(from, config));
    return read_training(from, &config->mixture);
}

static tsr_status read_config(source from, llama_config *config)
{
    const kind *k = NULL;
    TSR_TRY(read_kind(from, &k));
    if (!missing(from, "quantization_config"))
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s: there is a quantization_config; this program runs f32, f16 and bf16 weights, not quantized ones",
            from.name);
    if (!missing(from, "hidden_act"))
        TSR_TRY(expect_text(from, "hidden_act", "silu"));
    TSR_TRY(read_sizes(from, config));
    TSR_TRY(read_heads(from, config));
    TSR_TRY(read_bool(from, "tie_word_embeddings", &config->tied_embeddings));
    TSR_TRY(read_bool(from, "attention_bias", &config->attention_bias));
    TSR_TRY(read_bool(from, "mlp_bias", &config->mlp_bias));
    TSR_TRY(read_tokens(from, config));
    config->has_plan = !missing(from, "base_model_tp_plan");
    config->has_head_norms = k->has_head_norms;
    TSR_TRY(read_window(from, k, config));
    TSR_TRY(read_mixture(from, k, config));
    return read_rope(from, &config->rope);
}

tsr_status llama_config_parse(const char *name, const char *text, size_t length, llama_config *out)
{
    json_error_t error;
    json_t *const root = llama_json_load(text, length, &error);
    if (!root)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: line %d: %s", name, error.line, error.text);
    llama_config config = {0};
    const tsr_status status = json_is_object(root)
                                  ? read_config((source){name, root}, &config)
                                  : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a JSON object is expected", name);
    json_decref(root);
    if (status == TSR_OK)
        *out = config;
    return status;
}

tsr_status llama_config_load(const char *path, llama_config *out)
{
    llama_file file;
    TSR_TRY(llama_file_read_description(path, &file));
    const tsr_status status = llama_config_parse(path, file.data, file.bytes, out);
    llama_file_finish(&file);
    return status;
}

bool llama_config_ends(const llama_config *config, int64_t token)
{
    for (size_t i = 0; i < config->end_token_count; i++)
        if (config->end_tokens[i] == token)
            return true;
    return false;
}
