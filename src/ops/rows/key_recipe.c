#include "ops/rows/key_recipe.h"

#include <string.h>

/* Where `generator` of a key has what: the generator in 4 bits, then 4 bits each for the other
 * two, and TSR_RANDOM_RUN. */
#define BITS       15
#define NUMBER_AT  4
#define FOLDED_AT  8
#define NARROW_MAX UINT64_C(0xffffffff)

bool tsr_key_recipe_unpack(const tsr_random_key *key, tsr_key_recipe *out)
{
    const unsigned bits = (unsigned)key->generator;
    if (!(bits & TSR_RANDOM_RUN))
        return false;
    *out = (tsr_key_recipe){.generator = (tsr_random_generator)(bits & BITS),
                            .number = (int)(bits >> NUMBER_AT & BITS),
                            .fold_count = (int)(bits >> FOLDED_AT & BITS)};
    for (int i = 0; i < out->fold_count && i < TSR_KEY_FOLDS; i++)
        out->folds[i] = out->fold_count <= 2 ? key->words[i] : key->words[i / 2] >> 32 * (i % 2) & NARROW_MAX;
    return true;
}

tsr_random_key tsr_key_recipe_pack(const tsr_key_recipe *recipe)
{
    const unsigned bits = (unsigned)recipe->generator | (unsigned)recipe->number << NUMBER_AT |
                          (unsigned)recipe->fold_count << FOLDED_AT | TSR_RANDOM_RUN;
    tsr_random_key key = {(tsr_random_generator)bits, {0}};
    for (int i = 0; i < recipe->fold_count && i < TSR_KEY_FOLDS; i++) {
        if (recipe->fold_count <= 2)
            key.words[i] = recipe->folds[i];
        else
            key.words[i / 2] |= recipe->folds[i] << 32 * (i % 2);
    }
    return key;
}

/* True if a key has room for the numbers: two of any size, or four of 32 bits. */
static bool fits(const tsr_key_recipe *recipe)
{
    bool fit = recipe->fold_count >= 0 && recipe->fold_count <= TSR_KEY_FOLDS;
    for (int i = 0; fit && recipe->fold_count > 2 && i < recipe->fold_count; i++)
        fit = recipe->folds[i] <= NARROW_MAX;
    return fit;
}

void tsr_key_recipe_fold(tsr_key_recipe *recipe, uint64_t data)
{
    if (recipe->fold_count < TSR_KEY_FOLDS)
        recipe->folds[recipe->fold_count] = data;
    recipe->fold_count++;
    if (fits(recipe))
        return;
    recipe->fold_count = TSR_KEY_FOLDS + 1;
    memset(recipe->folds, 0, sizeof recipe->folds);
}

tsr_attribute tsr_key_recipe_to_attribute(const tsr_key_recipe *recipe)
{
    tsr_attribute key = {.name = "key",
                         .kind = TSR_ATTRIBUTE_INTS,
                         .count = TSR_KEY_RECIPE_NUMBERS,
                         .list = {recipe->number, recipe->fold_count}};
    for (int i = 0; i < TSR_KEY_FOLDS; i++)
        key.list[2 + i] = (int64_t)recipe->folds[i];
    return key;
}

int tsr_key_recipe_find_place(size_t count, const tsr_attribute *attributes)
{
    for (size_t i = 0; i + 1 < count && attributes[i].name && attributes[i + 1].name; i++) {
        const tsr_attribute *const generator = &attributes[i], *const key = &attributes[i + 1];
        if (generator->kind == TSR_ATTRIBUTE_WORD && key->kind == TSR_ATTRIBUTE_INTS &&
            strcmp(generator->name, "generator") == 0 && strcmp(generator->words, "threefry|philox") == 0 &&
            strcmp(key->name, "key") == 0)
            return (int)i + 1;
    }
    return -1;
}

bool tsr_key_recipe_from_attributes(const tsr_attribute *attributes, int place, tsr_key_recipe *out)
{
    const tsr_attribute *const key = &attributes[place];
    bool is_one = key->count == TSR_KEY_RECIPE_NUMBERS && key->list[0] >= 0 && key->list[0] < TSR_RUN_KEYS &&
                  key->list[1] >= 0 && key->list[1] <= TSR_KEY_FOLDS;
    if (!is_one)
        return false;
    *out = (tsr_key_recipe){.generator = attributes[place - 1].integer == 1 ? TSR_RANDOM_PHILOX : TSR_RANDOM_THREEFRY,
                            .number = (int)key->list[0],
                            .fold_count = (int)key->list[1]};
    for (int i = 0; i < TSR_KEY_FOLDS; i++) {
        out->folds[i] = (uint64_t)key->list[2 + i];
        is_one &= i < out->fold_count || !out->folds[i];
    }
    return is_one && fits(out);
}
