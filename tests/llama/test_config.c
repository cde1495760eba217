/* Which config.json is understood, and how others are refused. */
#include "config.h"
#include "rope.h"

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
    expect_refused("{\"model_type\": \"mistral\", " SIZES "}", TSR_ERROR_UNSUPPORTED, "mistral");
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

/* Llama 3.1's own numbers: theta 500000, head_dim 128, factor 8, 1 and 4 over 8192 positions. */
static void llama3_keeps_fast_pairs_and_slows_down_slow_ones(void **state)
{
    (void)state;
    const llama_rope_config scaled = {LLAMA_ROPE_LLAMA3, 500000, 8, 1, 4, 8192}, plain = {.theta = 500000};
    float with[64], without[64];
    llama_rope_frequencies(&scaled, 128, with);
    llama_rope_frequencies(&plain, 128, without);
    int blended = 0;
    for (int i = 0; i < 64; i++) {
        const double wave = 2 * acos(-1.0) / without[i];
        if (wave < 8192.0 / 4)
            assert_true(with[i] == without[i]);
        else if (wave > 8192.0)
            assert_true(fabsf(with[i] * 8 - without[i]) <= 1e-6f * without[i]);
        else
            blended += with[i] < without[i] && with[i] * 8 > without[i];
    }
    /* 2 pi 500000^(i/64) passes 2048 between pairs 28 and 29, and 8192 between 34 and 35. */
    assert_int_equal(blended, 6);
}

static void linear_scaling_divides_every_frequency(void **state)
{
    (void)state;
    const llama_rope_config scaled = {.type = LLAMA_ROPE_LINEAR, .theta = 10000, .factor = 4}, plain = {.theta = 10000};
    float with[16], without[16];
    llama_rope_frequencies(&scaled, 32, with);
    llama_rope_frequencies(&plain, 32, without);
    for (int i = 0; i < 16; i++)
        assert_true(with[i] == without[i] / 4);
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
        cmocka_unit_test(llama3_keeps_fast_pairs_and_slows_down_slow_ones),
        cmocka_unit_test(linear_scaling_divides_every_frequency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
