#include "base/hash.h"

uint64_t tsr_hash_text(uint64_t hash, const char *text)
{
    /* NULL hashes to another value than "", which is the word 0 alone. */
    if (!text)
        return tsr_hash_word(hash, UINT64_MAX);
    for (; *text; text++)
        hash = tsr_hash_word(hash, (unsigned char)*text);
    return tsr_hash_word(hash, 0);
}
