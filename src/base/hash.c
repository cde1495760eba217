#include "base/hash.h"

uint64_t tsr_hash_text(uint64_t hash, const char *text)
{
    /* NULL and "" differ: the first has no terminating word. */
    if (!text)
        return tsr_hash_word(hash, UINT64_MAX);
    for (; *text; text++)
        hash = tsr_hash_word(hash, (unsigned char)*text);
    return tsr_hash_word(hash, 0);
}
