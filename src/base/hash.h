/** Fingerprints that ranks compare: FNV-1a over 64-bit words, with a shift after each word that
 * brings high bits down. Not for hostile input. */
#ifndef TSR_BASE_HASH_H
#define TSR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TSR_HASH_SEED UINT64_C(0xcbf29ce484222325)

static inline uint64_t tsr_hash_word(uint64_t hash, uint64_t word)
{
    hash ^= word;
    hash *= UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

/** Hashes the characters of `text` and its end; `text` may be NULL. */
uint64_t tsr_hash_text(uint64_t hash, const char *text);

static inline uint64_t tsr_hash_words(uint64_t hash, const int64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = tsr_hash_word(hash, (uint64_t)words[i]);
    return hash;
}

#endif
