#include "ops/kernels/random/generators.h"

#include <tessera/random.h>

tsr_random_key tsr_random_key_threefry(uint64_t seed)
{
    return (tsr_random_key){TSR_RANDOM_THREEFRY, {seed >> 32, (uint32_t)seed}};
}

tsr_random_key tsr_random_key_philox(uint64_t seed, uint64_t offset)
{
    return (tsr_random_key){TSR_RANDOM_PHILOX, {seed, offset}};
}

tsr_random_key tsr_random_key_split(tsr_random_key key, uint64_t index)
{
    if (key.generator == TSR_RANDOM_THREEFRY) {
        const uint64_t words = tsr_threefry((uint32_t)key.words[0], (uint32_t)key.words[1], index);
        return (tsr_random_key){TSR_RANDOM_THREEFRY, {words >> 32, (uint32_t)words}};
    }
    if (key.generator != TSR_RANDOM_PHILOX)
        return key;
    uint64_t first, second;
    tsr_philox(key.words[0], key.words[1] + index, &first, &second);
    return (tsr_random_key){TSR_RANDOM_PHILOX, {first >> 32 | first << 32, second >> 32 | second << 32}};
}

tsr_random_key tsr_random_key_fold_in(tsr_random_key key, uint64_t data)
{
    return tsr_random_key_split(key, data);
}
