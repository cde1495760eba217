/* Fuzzes reading of config.json: input is refused with a message, or gives a model whose numbers
 * agree with each other. */
#include "config.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = fuzz_copy(data, size);
    llama_config config;
    if (llama_config_parse("config.json", (const char *)text, size, &config) == TSR_OK) {
        FUZZ_REQUIRE(config.vocab_size > 0 && config.hidden_size > 0 && config.intermediate_size > 0 &&
                     config.layers > 0);
        FUZZ_REQUIRE(config.heads > 0 && config.kv_heads > 0 && config.heads % config.kv_heads == 0 &&
                     config.head_dim > 0);
        FUZZ_REQUIRE(config.end_token_count <= LLAMA_MAX_END_TOKENS);
        for (size_t i = 0; i < config.end_token_count; i++)
            FUZZ_REQUIRE(llama_config_ends(&config, config.end_tokens[i]));
    } else {
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    }
    free(text);
    return 0;
}
