#include "random.h"

uint64_t llama_random_stream(uint64_t seed, const char *name)
{
    uint64_t stream = seed;
    for (const char *c = name; *c != '\0'; c++)
        stream = llama_random_bits(stream, (unsigned char)*c);
    return llama_random_bits(stream, 0);
}
