/** Keys that stand for those that runs of a program give. */
#ifndef TSR_OPS_ROWS_KEY_RECIPE_H
#define TSR_OPS_ROWS_KEY_RECIPE_H

#include <tessera/ops.h>
#include <tessera/random.h>

#include <stdbool.h>

/** The most keys that runs of a program give. */
#define TSR_RUN_KEYS 8

/** The most numbers that are folded into one. */
#define TSR_KEY_FOLDS 4

/** The numbers of the attribute "key" that says a recipe; that of a key itself has 2. */
#define TSR_KEY_RECIPE_NUMBERS (2 + TSR_KEY_FOLDS)

/** How a key is made in each run. */
typedef struct tsr_key_recipe {
    tsr_random_generator generator;
    int number;                    /**< which of the program's keys the run gives */
    int fold_count;                /**< TSR_KEY_FOLDS + 1: more was folded in than a key has room for */
    uint64_t folds[TSR_KEY_FOLDS]; /**< are folded into it, one after the other; zeros behind them */
} tsr_key_recipe;

/** True if a key stands for one that runs give: `*out` is its recipe. */
bool tsr_key_recipe_unpack(const tsr_random_key *key, tsr_key_recipe *out);

/** The key that stands for it. */
tsr_random_key tsr_key_recipe_pack(const tsr_key_recipe *recipe);

/** Folds one more number in. */
void tsr_key_recipe_fold(tsr_key_recipe *recipe, uint64_t data);

/** The recipe as the attribute "key". */
tsr_attribute tsr_key_recipe_to_attribute(const tsr_key_recipe *recipe);

/** The place of a key among an op's attributes, `count` or fewer: a list called "key" behind a word
 * called "generator", of "threefry|philox". -1: they have none. */
int tsr_key_recipe_find_place(size_t count, const tsr_attribute *attributes);

/** True if the key at `place` is a recipe, which becomes `*out`, and a key has room for it. */
bool tsr_key_recipe_from_attributes(const tsr_attribute *attributes, int place, tsr_key_recipe *out);

#endif
