#include "ops/kernels/random/generators.h"
#include "ops/rows/key_recipe.h"

#include <tessera/random.h>

tsr_random_key tsr_random_key_threefry(uint64_t seed)
{
    return (tsr_random_key){TSR_RANDOM_THREEFRY, {seed >> 32, (uint32_t)seed}};
}

tsr_random_key tsr_random_key_philox(uint64_t seed, uint64_t offset)
{
    return (tsr_random_key){TSR_RANDOM_PHILOX, {seed, offset}};
}

/* Notes a number that is folded into a key when a run gives that. */
static tsr_random_key fold_later(tsr_random_key key, uint64_t data)
{
    tsr_key_recipe recipe;
    if (!tsr_key_recipe_unpack(&key, &recipe))
        return key;
    tsr_key_recipe_fold(&recipe, data);
    return tsr_key_recipe_pack(&recipe);
}

tsr_random_key tsr_random_key_split(tsr_random_key key, uint64_t index)
{
    if (key.generator == TSR_RANDOM_THREEFRY) {
        const uint64_t words = tsr_threefry((uint32_t)key.words[0], (uint32_t)key.words[1], index);
        return (tsr_random_key){TSR_RANDOM_THREEFRY, {words >> 32, (uint32_t)words}};
    }
    if (key.generator != TSR_RANDOM_PHILOX)
        return fold_later(key, index);
    uint64_t first, second;
    tsr_philox(key.words[0], key.words[1] + index, &first, &second);
    return (tsr_random_key){TSR_RANDOM_PHILOX, {first >> 32 | first << 32, second >> 32 | second << 32}};
}

tsr_random_key tsr_random_key_fold_in(tsr_random_key key, uint64_t data)
{
    return tsr_random_key_split(key, data);
}

tsr_attribute tsr_random_key_generator(const tsr_random_key *key)
{
    static const char *const words[] = {[TSR_RANDOM_THREEFRY] = "threefry", [TSR_RANDOM_PHILOX] = "philox"};
    tsr_key_recipe recipe;
    tsr_random_generator generator = key ? key->generator : TSR_RANDOM_THREEFRY;
    if (key && tsr_key_recipe_unpack(key, &recipe))
        generator = recipe.generator;
    const bool is_one = generator == TSR_RANDOM_THREEFRY || generator == TSR_RANDOM_PHILOX;
    return tsr_attribute_word("generator", is_one ? words[generator] : "");
}

tsr_attribute tsr_random_key_words(const tsr_random_key *key)
{
    tsr_key_recipe recipe;
    if (!key)
        return tsr_attribute_ints("key", 2, NULL);
    if (tsr_key_recipe_unpack(key, &recipe))
        return tsr_key_recipe_to_attribute(&recipe);
    return tsr_attribute_ints("key", 2, (const int64_t[]){(int64_t)key->words[0], (int64_t)key->words[1]});
}
