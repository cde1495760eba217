/** Numbers that look random and are functions of their arguments alone, so that all ranks draw the
 * same, however many there are. */
#ifndef ROWS_CHANCE_H
#define ROWS_CHANCE_H

#include <stdint.h>

/** 64 bits that depend on both numbers (the last step of SplitMix64). */
static inline uint64_t chance_mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 1) * 0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/** A whole number from 0 to below `count`, which is at most 2^32, of such bits. */
static inline int64_t chance_below(uint64_t bits, int64_t count)
{
    return (int64_t)((bits >> 32) * (uint64_t)count >> 32);
}

/** A number from 0 to below 1 of such bits. */
static inline double chance_part(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
