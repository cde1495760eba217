/** Attributes of cases that outlive their calls: equality, and copies of their texts. */
#ifndef TSR_OPS_EAGER_ATTRIBUTES_H
#define TSR_OPS_EAGER_ATTRIBUTES_H

#include <tessera/ops.h>

#include <string.h>

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

/** The bytes of all texts, each with its end. */
static inline size_t tsr_attributes_text_bytes(const tsr_attribute *attributes)
{
    size_t bytes = 0;
    for (const tsr_attribute *a = attributes; a->name; a++)
        bytes += a->kind == TSR_ATTRIBUTE_TEXT ? strlen(a->words) + 1 : 0;
    return bytes;
}

/** Copies all texts into `room`, which has their bytes. The attributes name the copies then. */
static inline void tsr_attributes_keep_texts(tsr_attribute *attributes, char *room)
{
    for (tsr_attribute *a = attributes; a->name; a++) {
        if (a->kind != TSR_ATTRIBUTE_TEXT)
            continue;
        a->words = strcpy(room, a->words);
        room += strlen(room) + 1;
    }
}

#endif
