/** Hashes of cases and equality of their attributes, for caches and for telling calls apart. */
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

/** Whether two lists of attributes of one op have the same values. */
static inline bool tsr_attributes_are_equal(const tsr_attribute *a, const tsr_attribute *b)
{
    for (; a->name; a++, b++) {
        if (a->integer != b->integer || memcmp(&a->number, &b->number, sizeof a->number) != 0 || a->count != b->count ||
            (a->count > 0 && memcmp(a->list, b->list, (size_t)a->count * sizeof a->list[0]) != 0) ||
            (a->kind == TSR_ATTRIBUTE_TEXT && strcmp(a->words, b->words) != 0))
            return false;
    }
    return true;
}

#endif
