/* Lengths that runs give: numbers of shapes and attributes that stand for them. */
#include "ops/programs/lengths.h"

#include "ops/programs/program.h"
#include "ops/rows/settings.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The number that stands for length 0; those for the others follow it. */
#define FIRST INT64_MIN

int tsr_program_length_of(const tsr_program *program, int64_t number)
{
    return number < FIRST + (int64_t)program->length_count ? (int)(number - FIRST) : -1;
}

static unsigned resolve(size_t count, const int64_t *lengths, int64_t *number)
{
    if (*number >= FIRST + (int64_t)count)
        return 0;
    const int64_t length = *number - FIRST;
    *number = lengths[length];
    return 1U << length;
}

unsigned tsr_program_resolve(size_t length_count, const int64_t *lengths, tsr_attribute *attributes, size_t count)
{
    unsigned found = 0;
    const int key = tsr_settings_find_key(attributes);
    for (size_t i = 0; i < count; i++) {
        tsr_attribute *const a = &attributes[i];
        if ((int)i == key)
            continue; /* the words of a key are any numbers */
        if (a->kind == TSR_ATTRIBUTE_INT)
            found |= resolve(length_count, lengths, &a->integer);
        for (int j = 0; a->kind == TSR_ATTRIBUTE_INTS && j < a->count; j++)
            found |= resolve(length_count, lengths, &a->list[j]);
    }
    return found;
}

void tsr_program_resolve_largest(const tsr_program *program, tsr_attribute *attributes, size_t count)
{
    int64_t lengths[TSR_LENGTHS];
    for (size_t i = 0; i < program->length_count; i++)
        lengths[i] = program->lengths[i].maximum;
    tsr_program_resolve(program->length_count, lengths, attributes, count);
}

int64_t tsr_length(tsr_program *program, const char *name, int64_t maximum)
{
    if (!tsr_program_records(program))
        return 1;
    tsr_status status = TSR_OK;
    if (!name || maximum < 1)
        status =
            tsr_status_set(TSR_ERROR_ARGUMENT,
                           name ? "tsr_length: maximum is %lld, but must be 1 or more" : "tsr_length: name is NULL",
                           (long long)maximum);
    else if (program->length_count == TSR_LENGTHS)
        status = tsr_status_set(TSR_ERROR_UNSUPPORTED, "tsr_length: a program has at most %d lengths", TSR_LENGTHS);
    for (size_t i = 0; i < program->length_count && status == TSR_OK; i++)
        if (strcmp(program->lengths[i].name, name) == 0)
            status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_length: the program has a length \"%.64s\" already", name);
    tsr_program_length *const made = &program->lengths[program->length_count];
    if (status == TSR_OK)
        status = tsr_program_copy_text(program->context, name, &made->name);
    if (status != TSR_OK) {
        (void)tsr_program_fail(program, status);
        return 1;
    }
    made->maximum = maximum;
    return FIRST + (int64_t)program->length_count++;
}
