/* Which config.json is understood, and how others are refused. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SIZES                                                                                                          \
    "\"vocab_size\": 96, \"hidden_size\": 48, \"intermediate_size\": 80, \"num_hidden_layers\": 2, "                   \
    "\"num_attention_heads\": 6"

#define LLAMA "{\"model_type\": \"llama\", " SIZES

static tsr_status parse(const char *text, llama_config *out)
{
    return llama_config_parse("config.json", text, strlen(text), out);
}

static void expect_refused(const char *text, tsr_status status, const char *said)
{
    llama_config config = {.layers = 77};
    print_message("%s\n", text);
    assert_int_equal(parse(text, &config), status);
    assert_int_equal(config.layers, 77);
    if (!strstr(tsr_status_message(), said))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), said);
}

static void what_is_not_said_has_the_defaults_of_transformers(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(parse(LLAMA "}", &config), TSR_OK);
    assert_int_equal(config.kv_heads, 6);
    assert_int_equal(config.head_dim, 8);
    assert_int_equal(config.max_positions, 2048);
    assert_true(config.norm_epsilon == 1e-6);
    assert_true(config.rope.theta == 10000);
    assert_int_equal(config.rope.type, LLAMA_ROPE_DEFAULT);
    assert_false(config.tied_embeddings || config.attention_bias || config.mlp_bias);
    assert_int_equal(config.begin_token, -1);
    assert_int_equal(config.end_token_count, 0);
}

static void null_means_not_said(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(
        parse(LLAMA
              ", \"num_key_value_heads\": null, \"head_dim\": null, \"rope_scaling\": null, \"rope_parameters\": null, "
              "\"eos_token_id\": null, \"bos_token_id\": null, \"quantization_config\": null}",
              &config),
        TSR_OK);
    assert_int_equal(config.kv_heads, 6);
    assert_int_equal(config.head_dim, 8);
}

static void head_dim_may_differ_from_hidden_over_heads(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(parse(LLAMA ", \"head_dim\": 10, \"num_key_value_heads\": 2}", &config), TSR_OK);
    assert_int_equal(config.head_dim, 10);
    assert_int_equal(config.kv_heads, 2);
}

static void rope_theta_inside_wins_over_the_one_at_the_top(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(parse(LLAMA ", \"rope_theta\": 500000.0}", &config), TSR_OK);
    assert_true(config.rope.theta == 500000);
    assert_int_equal(parse(LLAMA
                           ", \"rope_theta\": 5, \"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"default\"}}",
                           &config),
                     TSR_OK);
    assert_true(config.rope.theta == 7);
    assert_int_equal(
        parse(LLAMA ", \"rope_theta\": 5, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}}", &config), TSR_OK);
    assert_true(config.rope.theta == 5 && config.rope.factor == 4);
    assert_int_equal(config.rope.type, LLAMA_ROPE_LINEAR);
}

static void end_tokens_are_a_number_or_a_list(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(parse(LLAMA ", \"eos_token_id\": 2}", &config), TSR_OK);
    assert_true(llama_config_ends(&config, 2) && !llama_config_ends(&config, 3));
    assert_int_equal(parse(LLAMA ", \"eos_token_id\": [5, 7]}", &config), TSR_OK);
    assert_true(llama_config_ends(&config, 5) && llama_config_ends(&config, 7) && !llama_config_ends(&config, 2));
}

static void other_models_are_refused(void **state)
{
    (void)state;
    expect_refused("{\"model_type\": \"gemma\", " SIZES "}", TSR_ERROR_UNSUPPORTED, "gemma");
    expect_refused("{" SIZES "}", TSR_ERROR_ARGUMENT, "model_type");
    expect_refused(LLAMA ", \"hidden_act\": \"gelu\"}", TSR_ERROR_UNSUPPORTED, "gelu");
    expect_refused(LLAMA ", \"quantization_config\": {\"bits\": 4}}", TSR_ERROR_UNSUPPORTED, "quantization_config");
    expect_refused(LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}}", TSR_ERROR_UNSUPPORTED,
                   "yarn");
    expect_refused(LLAMA ", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4}}", TSR_ERROR_UNSUPPORTED,
                   "dynamic");
    expect_refused(LLAMA ", \"partial_rotary_factor\": 0.5}", TSR_ERROR_UNSUPPORTED, "partial_rotary_factor");
    expect_refused(LLAMA ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1}}}", TSR_ERROR_UNSUPPORTED,
                   "full_attention");
}

static void text_that_is_no_configuration_is_refused(void **state)
{
    (void)state;
    expect_refused("", TSR_ERROR_ARGUMENT, "config.json");
    expect_refused("[]", TSR_ERROR_ARGUMENT, "object");
    expect_refused("{\"model_type\": \"llama\"", TSR_ERROR_ARGUMENT, "line 1");
    expect_refused("{\"model_type\": \"llama\", \"model_type\": \"llama\"}", TSR_ERROR_ARGUMENT, "duplicate");
    expect_refused("{\"model_type\": \"llama\"}", TSR_ERROR_ARGUMENT, "vocab_size");
    expect_refused("{\"model_type\": 1}", TSR_ERROR_ARGUMENT, "model_type");
}

static void fields_of_the_wrong_type_or_size_are_named(void **state)
{
    (void)state;
    static const char *const fields[][2] = {
        {"num_key_value_heads", "0"},
        {"num_key_value_heads", "4"},
        {"num_key_value_heads", "\"2\""},
        {"num_key_value_heads", "2.0"},
        {"head_dim", "-2"},
        {"head_dim", "7"},
        {"head_dim", "4611686018427387904"},
        {"rms_norm_eps", "0"},
        {"rms_norm_eps", "\"x\""},
        {"rope_theta", "-1"},
        {"rope_theta", "[1]"},
        {"tie_word_embeddings", "1"},
        {"attention_bias", "\"no\""},
        {"mlp_bias", "0"},
        {"max_position_embeddings", "0"},
        {"eos_token_id", "\"a\""},
        {"eos_token_id", "[1, null]"},
        {"bos_token_id", "96"},
        {"rope_scaling", "[]"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, LLAMA ", \"%s\": %s}", fields[i][0], fields[i][1]);
        expect_refused(text, TSR_ERROR_ARGUMENT, fields[i][0]);
    }
}

static void scaling_that_lacks_a_number_is_refused(void **state)
{
    (void)state;
    expect_refused(LLAMA ", \"rope_scaling\": {\"type\": \"linear\"}}", TSR_ERROR_ARGUMENT, "factor");
    expect_refused(LLAMA ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8}}", TSR_ERROR_ARGUMENT,
                   "low_freq_factor");
    expect_refused(LLAMA ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
                         "\"high_freq_factor\": 4, "
                         "\"original_max_position_embeddings\": 64}}",
                   TSR_ERROR_ARGUMENT, "high_freq_factor");
}

/* Layers that see a window, as bits from layer 0 on. */
static unsigned list_windows(const llama_config *config)
{
    unsigned found = 0;
    for (int64_t i = 0; i < config->layers; i++)
        found |= llama_config_window(config, i) == config->window && config->window ? 1u << i : 0;
    return found;
}

static void mistral_slides_in_every_layer(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(parse("{\"model_type\": \"mistral\", " SIZES ", \"sliding_window\": 5}", &config), TSR_OK);
    assert_true(!config.has_head_norms && config.window == 5);
    assert_int_equal(list_windows(&config), (1u << config.layers) - 1);
    assert_int_equal(parse("{\"model_type\": \"mistral\", " SIZES ", \"sliding_window\": null}", &config), TSR_OK);
    assert_int_equal(list_windows(&config), 0);
    expect_refused("{\"model_type\": \"mistral\", " SIZES ", \"sliding_window\": 0}", TSR_ERROR_ARGUMENT,
                   "sliding_window");
}

static void qwen3_norms_heads_and_slides_where_it_says(void **state)
{
    (void)state;
    llama_config config;
    const char *const qwen = "{\"model_type\": \"qwen3\", " SIZES ", \"sliding_window\": 7%s}";
    char text[512];
    snprintf(text, sizeof text, qwen, "");
    assert_int_equal(parse(text, &config), TSR_OK);
    assert_true(config.has_head_norms);
    assert_int_equal(list_windows(&config), 0);
    snprintf(text, sizeof text, qwen, ", \"use_sliding_window\": true, \"max_window_layers\": 1");
    assert_int_equal(parse(text, &config), TSR_OK);
    assert_int_equal(list_windows(&config), (1u << config.layers) - 2);
    snprintf(text, sizeof text, qwen,
             ", \"use_sliding_window\": true, \"layer_types\": [\"sliding_attention\", \"full_attention\"]");
    assert_int_equal(parse(text, &config), TSR_OK);
    assert_int_equal(list_windows(&config), 1);
    snprintf(text, sizeof text, qwen, ", \"use_sliding_window\": true, \"layer_types\": [\"chunked\", \"x\"]");
    expect_refused(text, TSR_ERROR_UNSUPPORTED, "layer_types[0] is \"chunked\"");
    snprintf(text, sizeof text, qwen, ", \"use_sliding_window\": true, \"layer_types\": [\"full_attention\"]");
    expect_refused(text, TSR_ERROR_ARGUMENT, "layer_types must be a list");
}

/* Layers that have experts, as bits from layer 0 on. */
static unsigned list_experts(const llama_config *config)
{
    unsigned found = 0;
    for (int64_t i = 0; i < config->layers; i++)
        found |= llama_config_has_experts(config, i) ? 1u << i : 0;
    return found;
}

#define MIXTRAL "{\"model_type\": \"mixtral\", " SIZES ", \"num_local_experts\": 5, \"num_experts_per_tok\": 2"

static void mixtral_has_experts_in_every_layer(void **state)
{
    (void)state;
    llama_config config;
    assert_int_equal(parse(MIXTRAL ", \"sliding_window\": 4, \"router_jitter_noise\": 0.0}", &config), TSR_OK);
    assert_true(config.mixture.experts == 5 && config.mixture.chosen == 2 && config.mixture.size == 80);
    assert_true(config.mixture.normed && !config.has_head_norms && config.window == 4);
    assert_int_equal(list_experts(&config), (1u << config.layers) - 1);
    assert_int_equal(list_windows(&config), (1u << config.layers) - 1);
    assert_true(config.mixture.balance == 0 && !config.mixture.jitters);
    assert_int_equal(parse(MIXTRAL ", \"router_aux_loss_coef\": 0.02, \"router_jitter_noise\": 0.1}", &config), TSR_OK);
    assert_true(config.mixture.balance == 0 && config.mixture.jitters);
    assert_int_equal(parse(MIXTRAL ", \"output_router_logits\": true, \"router_aux_loss_coef\": 0.02}", &config),
                     TSR_OK);
    assert_true(config.mixture.balance == 0.02);
    assert_int_equal(parse(MIXTRAL ", \"output_router_logits\": true}", &config), TSR_OK);
    assert_true(config.mixture.balance == 0.001);
    assert_int_equal(parse(MIXTRAL ", \"output_router_logits\": true, \"router_aux_loss_coef\": 0}", &config), TSR_OK);
    assert_true(config.mixture.balance == 0);
    expect_refused(MIXTRAL ", \"router_aux_loss_coef\": -1}", TSR_ERROR_ARGUMENT, "router_aux_loss_coef");
    expect_refused("{\"model_type\": \"mixtral\", " SIZES "}", TSR_ERROR_ARGUMENT, "num_experts");
    expect_refused("{\"model_type\": \"mixtral\", " SIZES ", \"num_local_experts\": 5}", TSR_ERROR_ARGUMENT,
                   "num_experts_per_tok");
    expect_refused("{\"model_type\": \"mixtral\", " SIZES ", \"num_local_experts\": 5, \"num_experts_per_tok\": 6}",
                   TSR_ERROR_ARGUMENT, "num_experts_per_tok must be a whole number from 1 to 5");
    expect_refused(MIXTRAL ", \"mlp_bias\": true}", TSR_ERROR_UNSUPPORTED, "mlp_bias");
}

#define QWEN3_MOE                                                                                                      \
    "{\"model_type\": \"qwen3_moe\", \"vocab_size\": 96, \"hidden_size\": 48, \"intermediate_size\": 80, "             \
    "\"num_attention_heads\": 6, \"num_hidden_layers\": 6, \"moe_intermediate_size\": 24, "                            \
    "\"num_experts_per_tok\": 3"

static void qwen3_moe_has_experts_in_the_layers_that_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        unsigned layers;
        bool normed;
    } cases[] = {
        {", \"num_experts\": 8", 63, false},
        {", \"num_local_experts\": 8, \"norm_topk_prob\": true, \"mlp_only_layers\": null", 63, true},
        {", \"num_experts\": 8, \"decoder_sparse_step\": 2", 42, false},
        {", \"num_experts\": 8, \"decoder_sparse_step\": 7", 0, false},
        {", \"num_experts\": 8, \"decoder_sparse_step\": 3, \"mlp_only_layers\": [0, 5]", 4, false},
        {", \"num_experts\": 0", 0, false},
    };
    static const char *const fields[][2] = {
        {"mlp_only_layers", "3"},       {"mlp_only_layers", "[6]"},   {"mlp_only_layers", "[-1]"},
        {"mlp_only_layers", "[\"1\"]"}, {"decoder_sparse_step", "0"}, {"norm_topk_prob", "1"},
    };
    llama_config config;
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, QWEN3_MOE "%s}", cases[i].more);
        print_message("%s\n", text);
        assert_int_equal(parse(text, &config), TSR_OK);
        assert_int_equal(list_experts(&config), cases[i].layers);
        assert_true(config.has_head_norms && config.mixture.normed == cases[i].normed);
        assert_true(config.mixture.experts == 0 || (config.mixture.chosen == 3 && config.mixture.size == 24));
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        snprintf(text, sizeof text, QWEN3_MOE ", \"num_experts\": 8, \"%s\": %s}", fields[i][0], fields[i][1]);
        expect_refused(text, TSR_ERROR_ARGUMENT, fields[i][0]);
    }
    snprintf(text, sizeof text,
             QWEN3_MOE ", \"num_experts\": 8, \"use_sliding_window\": true, \"sliding_window\": 3, "
                       "\"max_window_layers\": 4}");
    assert_int_equal(parse(text, &config), TSR_OK);
    assert_int_equal(list_windows(&config), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_said_has_the_defaults_of_transformers),
        cmocka_unit_test(null_means_not_said),
        cmocka_unit_test(head_dim_may_differ_from_hidden_over_heads),
        cmocka_unit_test(rope_theta_inside_wins_over_the_one_at_the_top),
        cmocka_unit_test(end_tokens_are_a_number_or_a_list),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(text_that_is_no_configuration_is_refused),
        cmocka_unit_test(fields_of_the_wrong_type_or_size_are_named),
        cmocka_unit_test(scaling_that_lacks_a_number_is_refused),
        cmocka_unit_test(mistral_slides_in_every_layer),
        cmocka_unit_test(qwen3_norms_heads_and_slides_where_it_says),
        cmocka_unit_test(mixtral_has_experts_in_every_layer),
        cmocka_unit_test(qwen3_moe_has_experts_in_the_layers_that_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
