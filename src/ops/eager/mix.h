/** Hashes of cases, for caches and for telling calls apart. */
#ifndef TSR_OPS_EAGER_MIX_H
#define TSR_OPS_EAGER_MIX_H

#include <tessera/ops.h>

#include <string.h>

static inline uint64_t tsr_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static inline uint64_t tsr_mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = tsr_mix(hash, (unsigned char)*text);
    return hash;
}

/** The values of all attributes of a case; of words, their letters. */
static inline uint64_t tsr_mix_attributes(uint64_t hash, const tsr_attribute *attributes)
{
    for (const tsr_attribute *a = attributes; a->name; a++) {
        uint64_t bits;
        memcpy(&bits, &a->number, sizeof bits);
        hash = tsr_mix(tsr_mix(tsr_mix(hash, (uint64_t)a->integer), bits), (uint64_t)a->count);
        hash = a->kind == TSR_ATTRIBUTE_TEXT ? tsr_mix_text(hash, a->words) : hash;
        for (int i = 0; i < a->count; i++)
            hash = tsr_mix(hash, (uint64_t)a->list[i]);
    }
    return hash;
}

#endif
