/* Lengths and keys that runs give: numbers of shapes and attributes that stand for them. */
#include "ops/programs/lengths.h"

#include "ops/programs/program.h"
#include "ops/rows/key_recipe.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The number that stands for length 0; those for the others follow it. */
#define FIRST INT64_MIN

int tsr_program_length_of(const tsr_program *program, int64_t number)
{
    return number < FIRST + (int64_t)program->length_count ? (int)(number - FIRST) : -1;
}

static void put_words(tsr_attribute *key, uint64_t first, uint64_t second)
{
    key->count = 2;
    key->list[0] = (int64_t)first;
    key->list[1] = (int64_t)second;
}

int tsr_program_key_of(const tsr_attribute *attributes)
{
    tsr_key_recipe recipe;
    const int place = tsr_key_recipe_find_place(TSR_OP_MOST_ATTRIBUTES, attributes);
    return place >= 0 && tsr_key_recipe_from_attributes(attributes, place, &recipe) ? recipe.number : -1;
}

void tsr_program_resolve_key(tsr_random_key key, tsr_attribute *attributes)
{
    tsr_key_recipe recipe;
    const int place = tsr_key_recipe_find_place(TSR_OP_MOST_ATTRIBUTES, attributes);
    if (!tsr_key_recipe_from_attributes(attributes, place, &recipe))
        return;
    for (int i = 0; i < recipe.fold_count; i++)
        key = tsr_random_key_fold_in(key, recipe.folds[i]);
    put_words(&attributes[place], key.words[0], key.words[1]);
}

tsr_status tsr_program_check_key(const tsr_program *program, const char *caller, const tsr_attribute *attributes)
{
    tsr_key_recipe recipe;
    const int place = tsr_key_recipe_find_place(TSR_OP_MOST_ATTRIBUTES, attributes);
    if (place < 0 || attributes[place].count != TSR_KEY_RECIPE_NUMBERS)
        return TSR_OK;
    if (tsr_key_recipe_from_attributes(attributes, place, &recipe) && recipe.number < (int)program->key_count &&
        recipe.generator == program->keys[recipe.number].generator)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: key stands for one that runs give, but not of this program; make it by tsr_run_key() of "
                          "the program, and fold at most %d numbers into it",
                          caller, TSR_KEY_FOLDS);
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
    tsr_key_recipe recipe;
    const int key = tsr_key_recipe_find_place(count, attributes);
    if (key >= 0 && tsr_key_recipe_from_attributes(attributes, key, &recipe))
        put_words(&attributes[key], 0, 0);
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

static tsr_status check_run_key(const tsr_program *program, const char *name, tsr_random_generator generator)
{
    if (!name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_run_key: name is NULL");
    if (generator != TSR_RANDOM_THREEFRY && generator != TSR_RANDOM_PHILOX)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_run_key: generator is %d, but must be TSR_RANDOM_THREEFRY or TSR_RANDOM_PHILOX",
                              (int)generator);
    if (program->key_count == TSR_RUN_KEYS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "tsr_run_key: a program has at most %d keys; derive others from them by "
                              "tsr_random_key_fold_in()",
                              TSR_RUN_KEYS);
    for (size_t i = 0; i < program->key_count; i++)
        if (strcmp(program->keys[i].name, name) == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_run_key: the program has a key \"%.64s\" already", name);
    return TSR_OK;
}

tsr_random_key tsr_run_key(tsr_program *program, const char *name, tsr_random_generator generator)
{
    if (!tsr_program_records(program))
        return (tsr_random_key){0};
    tsr_program_key *const made = &program->keys[program->key_count];
    tsr_status status = check_run_key(program, name, generator);
    if (status == TSR_OK)
        status = tsr_program_copy_text(program->context, name, &made->name);
    if (status != TSR_OK) {
        (void)tsr_program_fail(program, status);
        return (tsr_random_key){0};
    }
    made->generator = generator;
    return tsr_key_recipe_pack(&(tsr_key_recipe){.generator = generator, .number = (int)program->key_count++});
}
