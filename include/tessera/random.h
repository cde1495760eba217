/**
 * @file
 * Random numbers that are functions of a key and of each element's index in the whole tensor: a
 * tensor has the same bits under any layout, on any number of ranks, and is made without
 * communication. jax.random and torch.func._random, whose numbers these are.
 *
 * @par Keys
 * A key names a generator and a stream. It is a plain value, and no call changes it: the same key
 * gives the same numbers again, so each tensor wants a key of its own, made by
 * tsr_random_key_split() or tsr_random_key_fold_in().
 *
 * @par Generators
 * Threefry is jax.random's with jax_threefry_partitionable, Philox torch.func._random's. Bits,
 * integers, and uniform numbers of f32 and f64 are theirs bit for bit; so are those of f16 and bf16
 * from 0 to 1. Normal numbers of f32 are within 4 units in the last place of theirs; those of f64
 * within 4 units of the larger of the number and 1, but for those that jax.random itself has wrong
 * in the last 5 bits.
 *
 * @par Layouts
 * tsr_X() makes a dtensor of `layout` on the host, which the caller owns; tsr_X_into() fills one
 * that exists. Any cut will do. TSR_ERROR_ARGUMENT: the layout is Partial, as random numbers are
 * values and not terms; a dtype that the function does not make; the key is NULL or has no
 * generator. A call meets no other rank. One thread at a time for a mesh, as for all ops; keys on
 * any thread.
 */
#ifndef TESSERA_RANDOM_H
#define TESSERA_RANDOM_H

#include <tessera/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How random bits are made. */
typedef enum tsr_random_generator {
    TSR_RANDOM_THREEFRY = 1, /**< Threefry-2x32, 20 rounds */
    TSR_RANDOM_PHILOX,       /**< Philox-4x32, 10 rounds */
    TSR_RANDOM_RUN = 1 << 16 /**< beside one of them: runs of a program give the key
                                  (tsr_run_key()) */
} tsr_random_generator;

/** A generator and its stream. A plain value. */
typedef struct tsr_random_key {
    tsr_random_generator generator;
    uint64_t words[2]; /**< of Threefry two numbers of 32 bits; of Philox seed and offset */
} tsr_random_key;

/** The key of jax.random.key(seed). Pure. */
TSR_API tsr_random_key tsr_random_key_threefry(uint64_t seed);

/** The key of torch.func._random.key(seed), `offset` groups of 4 words behind its begin (0). Pure.
 */
TSR_API tsr_random_key tsr_random_key_philox(uint64_t seed, uint64_t offset);

/** Key number `index` of those into which `key` splits, split(key, n)[index] for any n above it. A
 * key of no generator stays as it is; one of tsr_run_key() notes the number. Pure. */
TSR_API tsr_random_key tsr_random_key_split(tsr_random_key key, uint64_t index);

/** A key made of a key and a number, such as that of a layer or a step: fold_in(key, data). A key
 * of no generator stays as it is; one of tsr_run_key() notes the number. Pure. */
TSR_API tsr_random_key tsr_random_key_fold_in(tsr_random_key key, uint64_t data);

/** @{ */
/** A key as the attributes "generator" and "key" of an op, for calls by row and for
 * tsr_program_apply(), which alone takes a key of tsr_run_key(). Calls refuse what comes of NULL or
 * of a key without generator. Rows of a program's own (sys/ops.h) take keys if they have the same
 * attributes: a word of "threefry|philox", and behind it a list of 2 numbers. Pure. */
TSR_API tsr_attribute tsr_random_key_generator(const tsr_random_key *key);
TSR_API tsr_attribute tsr_random_key_words(const tsr_random_key *key);
/** @} */

/** @{ */
/** Floats: uniform numbers from `low` to below `high`, both finite. */
TSR_API tsr_status tsr_uniform(const tsr_layout *layout, const tsr_random_key *key, double low,
                               double high, tsr_dtensor **out);
TSR_API tsr_status tsr_uniform_into(const tsr_random_key *key, double low, double high,
                                    tsr_dtensor *out);
/** @} */

/** @{ */
/** Floats: normal numbers times `std` (0 or more) plus `mean`. f16 and bf16 are computed as f32 and
 * rounded once. */
TSR_API tsr_status tsr_normal(const tsr_layout *layout, const tsr_random_key *key, double mean,
                              double std, tsr_dtensor **out);
TSR_API tsr_status tsr_normal_into(const tsr_random_key *key, double mean, double std,
                                   tsr_dtensor *out);
/** @} */

/** @{ */
/** Floats: normal numbers of `mean` and `std` (above 0), of which only those from `low` to `high`
 * occur, by the inverse of the distribution, for both generators. */
TSR_API tsr_status tsr_truncated_normal(const tsr_layout *layout, const tsr_random_key *key,
                                        double mean, double std, double low, double high,
                                        tsr_dtensor **out);
TSR_API tsr_status tsr_truncated_normal_into(const tsr_random_key *key, double mean, double std,
                                             double low, double high, tsr_dtensor *out);
/** @} */

/** @{ */
/** Bools: 1 with probability `p`, where a uniform f32 is below it. */
TSR_API tsr_status tsr_bernoulli(const tsr_layout *layout, const tsr_random_key *key, double p,
                                 tsr_dtensor **out);
TSR_API tsr_status tsr_bernoulli_into(const tsr_random_key *key, double p, tsr_dtensor *out);
/** @} */

/** @{ */
/** i64, i32, u64, u32: random bits. */
TSR_API tsr_status tsr_bits(const tsr_layout *layout, const tsr_random_key *key, tsr_dtensor **out);
TSR_API tsr_status tsr_bits_into(const tsr_random_key *key, tsr_dtensor *out);
/** @} */

/** @{ */
/** i64, i32: integers from `low` to below `high`. They are remainders, of bits by Philox and of
 * twice as many bits by Threefry; so where high - low is no power of two, low ones are a little
 * more frequent, by at most (high - low) / 2^32 in i32 by Philox. */
TSR_API tsr_status tsr_randint(const tsr_layout *layout, const tsr_random_key *key, int64_t low,
                               int64_t high, tsr_dtensor **out);
TSR_API tsr_status tsr_randint_into(const tsr_random_key *key, int64_t low, int64_t high,
                                    tsr_dtensor *out);
/** @} */

/** @{ */
/** Floats: 0 with probability `p`, else x / (1 - p). An element is kept where a uniform f32 of its
 * index is below 1 - p, whatever x's layout is; a Partial sum passes. The backward takes the same
 * key and p, computes the same mask again, and keeps nothing between the calls. */
TSR_API tsr_status tsr_dropout(const tsr_dtensor *x, double p, const tsr_random_key *key,
                               tsr_dtensor **out);
TSR_API tsr_status tsr_dropout_into(const tsr_dtensor *x, double p, const tsr_random_key *key,
                                    tsr_dtensor *out);
TSR_API tsr_status tsr_dropout_backward(const tsr_dtensor *x, double p, const tsr_random_key *key,
                                        const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Initial weights after Glorot and Bengio (xavier) and after He et al. (kaiming). `fan_in` and
 * `fan_out` are the numbers of inputs and outputs of the whole layer, `fan` either of them, each
 * above 0; `gain` is 1 for linear layers and sqrt(2) in front of ReLU. Uniform numbers lie within
 * gain sqrt(6 / (fan_in + fan_out)), or gain sqrt(3 / fan), of 0; normal ones have the standard
 * deviation gain sqrt(2 / (fan_in + fan_out)), or gain / sqrt(fan). */
TSR_API tsr_status tsr_xavier_uniform(const tsr_layout *layout, const tsr_random_key *key,
                                      double gain, int64_t fan_in, int64_t fan_out,
                                      tsr_dtensor **out);
TSR_API tsr_status tsr_xavier_normal(const tsr_layout *layout, const tsr_random_key *key,
                                     double gain, int64_t fan_in, int64_t fan_out,
                                     tsr_dtensor **out);
TSR_API tsr_status tsr_kaiming_uniform(const tsr_layout *layout, const tsr_random_key *key,
                                       double gain, int64_t fan, tsr_dtensor **out);
TSR_API tsr_status tsr_kaiming_normal(const tsr_layout *layout, const tsr_random_key *key,
                                      double gain, int64_t fan, tsr_dtensor **out);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
