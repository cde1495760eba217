#include "text.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool llama_is_text(const llama_config *config)
{
    return config->vocab_size == 256;
}

static tsr_status allocate(size_t count, llama_tokens *out)
{
    int64_t *const ids = calloc(count + 1, sizeof *ids);
    if (!ids)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a prompt of %zu tokens", count);
    *out = (llama_tokens){ids, (int64_t)count};
    return TSR_OK;
}

tsr_status llama_tokens_from_text(const llama_config *config, const char *text, llama_tokens *out)
{
    if (!llama_is_text(config))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "--prompt is text, whose bytes are tokens where vocab_size is 256; here it is %lld: use --prompt-ids",
            (long long)config->vocab_size);
    if (text[0] == '\0')
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--prompt is empty: a model needs at least one token to begin with");
    TSR_TRY(allocate(strlen(text), out));
    for (int64_t i = 0; i < out->count; i++)
        out->ids[i] = (unsigned char)text[i];
    return TSR_OK;
}

tsr_status llama_tokens_copy(const llama_tokens *tokens, llama_tokens *out)
{
    TSR_TRY(allocate((size_t)tokens->count, out));
    memcpy(out->ids, tokens->ids, (size_t)tokens->count * sizeof *out->ids);
    return TSR_OK;
}

/* Parses one number of the list with the spaces around it; returns the end, or NULL if there is no
 * number. */
static const char *parse_id(const char *at, int64_t *id)
{
    while (isspace((unsigned char)*at))
        at++;
    if (!isdigit((unsigned char)*at))
        return NULL;
    char *end;
    errno = 0;
    *id = strtoll(at, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    return errno == 0 ? end : NULL;
}

static tsr_status parse_ids(const char *list, llama_tokens *out)
{
    const char *at = list;
    for (out->count = 0;; at++) {
        const char *const end = parse_id(at, &out->ids[out->count]);
        if (!end || (*end != ',' && *end != '\0'))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "--prompt-ids: at \"%.40s\" a token number is expected, as in 1,2,3", at);
        out->count++;
        at = end;
        if (*at == '\0')
            return TSR_OK;
    }
}

tsr_status llama_tokens_parse(const char *list, llama_tokens *out)
{
    llama_tokens tokens;
    TSR_TRY(allocate(strlen(list), &tokens));
    const tsr_status status = parse_ids(list, &tokens);
    if (status == TSR_OK)
        *out = tokens;
    else
        free(tokens.ids);
    return status;
}

tsr_status llama_tokens_check(const llama_config *config, const llama_tokens *tokens)
{
    for (int64_t i = 0; i < tokens->count; i++)
        if (tokens->ids[i] < 0 || tokens->ids[i] >= config->vocab_size)
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "--prompt-ids: token %lld, number %lld of the prompt, is not in 0 to %lld (vocab_size is %lld)",
                (long long)tokens->ids[i], (long long)i + 1, (long long)config->vocab_size - 1,
                (long long)config->vocab_size);
    return TSR_OK;
}

tsr_status llama_tokens_default(const llama_config *config, llama_tokens *out)
{
    TSR_TRY(allocate(1, out));
    if (config->begin_token >= 0)
        out->ids[0] = config->begin_token;
    else if (llama_is_text(config))
        out->ids[0] = '\n';
    return TSR_OK;
}

tsr_status llama_tokens_prompt(const llama_config *config, const char *text, const llama_tokens *ids, llama_tokens *out)
{
    if (text)
        return llama_tokens_from_text(config, text, out);
    if (!ids->ids)
        return llama_tokens_default(config, out);
    TSR_TRY(llama_tokens_check(config, ids));
    return llama_tokens_copy(ids, out);
}

/* The bytes that may follow a first byte of UTF-8 (Unicode Standard, table 3-7): their number, -1
 * for an invalid first byte, and the range of the first of them. */
typedef struct lead {
    int following;
    unsigned char least, most;
} lead;

static lead lead_of(unsigned char byte)
{
    if (byte >= 0xc2 && byte <= 0xdf)
        return (lead){1, 0x80, 0xbf};
    if (byte >= 0xe0 && byte <= 0xef)
        return (lead){2, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf};
    if (byte >= 0xf0 && byte <= 0xf4)
        return (lead){3, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf};
    return (lead){byte < 0x80 ? 0 : -1, 0, 0};
}

/* The number of tokens from `at` on that make one character (`*whole` true), or only its valid
 * beginning (false). */
static int64_t measure(const int64_t *at, int64_t count, bool *whole)
{
    lead expected = lead_of((unsigned char)at[0]);
    int64_t length = 1;
    while (length <= expected.following && length < count && at[length] >= expected.least &&
           at[length] <= expected.most) {
        length++;
        expected.least = 0x80;
        expected.most = 0xbf;
    }
    *whole = length == expected.following + 1;
    return length;
}

size_t llama_tokens_to_utf8(const int64_t *ids, int64_t count, char *out)
{
    size_t written = 0;
    for (int64_t i = 0; i < count;) {
        bool whole;
        const int64_t length = measure(ids + i, count - i, &whole);
        if (whole) {
            for (int64_t k = 0; k < length; k++)
                out[written++] = (char)ids[i + k];
        } else {
            memcpy(out + written, "\xef\xbf\xbd", 3);
            written += 3;
        }
        i += length;
    }
    return written;
}
