/* Guesses at misspelled words; and other spellings of any text, in memory of just its size. */
#include "cli/guess.h"
#include "cli/spelling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *nearest(const char *word)
{
    static const char *const names[] = {"layout", "plan", "info", "reduce", "reduce-to-all"};
    guess g = {.word = word};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        guess_try(&g, names[i]);
    return g.name;
}

static void a_word_near_a_name_is_guessed(void **state)
{
    (void)state;
    assert_string_equal(nearest("layout"), "layout");
    assert_string_equal(nearest("LayOut"), "layout");
    assert_string_equal(nearest("layuot"), "layout");
    assert_string_equal(nearest("lyout"), "layout");
    assert_string_equal(nearest("llayouts"), "layout");
    assert_string_equal(nearest("pln"), "plan");
    assert_string_equal(nearest("reduc"), "reduce");
    assert_string_equal(nearest("reduce-to-al"), "reduce-to-all");
}

static void a_word_far_from_all_names_is_not(void **state)
{
    (void)state;
    static const char *const words[] = {"",   "x",     "lay",
                                        "pl", "bench", "redistribute-to-all-of-them-and-more-than-that"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_null(nearest(words[i]));
}

static void a_guess_is_said_or_nothing_is(void **state)
{
    (void)state;
    char text[GUESS_TEXT];
    guess g = {.word = "engin"};
    assert_string_equal(guess_say(&g, "--", text), "");
    guess_try(&g, "engine");
    assert_int_equal(g.distance, 1);
    assert_string_equal(guess_say(&g, "--", text), " (did you mean '--engine'?)");
    assert_string_equal(guess_dtype("flaot32"), "f32");
    assert_string_equal(guess_dtype("bf61"), "bf16");
    assert_null(guess_dtype("q3"));
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* A text of up to 12 random pieces, with nothing behind its end, which a sanitizer watches. */
static char *random_text(uint64_t *state)
{
    static const char *const pieces[] = {"Shard(",    "_StridedShard(",
                                         "Replicate", "Partial",
                                         "_Partial",  "(",
                                         ")",         "[",
                                         "]",         ",",
                                         " ",         "\t",
                                         "sf=",       "split_factor=",
                                         "dim=",      "reduce_op=",
                                         "'",         "\"",
                                         "max",       "product",
                                         "sum",       "0",
                                         "12",        "-1",
                                         "x",         "=",
                                         "@",         "dp",
                                         "torch.",    "torch.Size",
                                         "float32",   "half",
                                         "R",         "S(0)",
                                         "P",         ";unit=2",
                                         "scalar"};
    char text[256] = "";
    for (uint64_t left = next_random(state) % 13; left > 0; left--)
        strcat(text, pieces[next_random(state) % (sizeof pieces / sizeof *pieces)]);
    return strdup(text);
}

static void no_text_becomes_longer(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int i = 0; i < 200000; i++) {
        char *const text = random_text(&random);
        assert_non_null(text);
        const size_t length = strlen(text);
        if (i % 5 == 0)
            spell_placements(text);
        else if (i % 5 == 1)
            spell_dtypes(text);
        else if (i % 5 == 2)
            spell_mesh(text);
        else
            spell_shape(text, i % 5 == 3);
        assert_true(strlen(text) <= length);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_near_a_name_is_guessed),
        cmocka_unit_test(a_word_far_from_all_names_is_not),
        cmocka_unit_test(a_guess_is_said_or_nothing_is),
        cmocka_unit_test(no_text_becomes_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
