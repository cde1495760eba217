/* The text of pictures: escapes, line breaks, and what fits. */
#include "draw/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The page of one drawing; the caller frees it. */
static char *page(svg *s, const char *title)
{
    char *text;
    size_t bytes;
    svg_end(s, 100, 50, title, &text, &bytes);
    assert_non_null(text);
    assert_int_equal(strlen(text), bytes);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void markup_in_text_is_escaped(void **state)
{
    (void)state;
    svg s;
    svg_begin(&s);
    svg_text(&s, 1, 2, (svg_style){10, "start", 90, 0}, "<a> & \"b\"");
    svg_box(&s, (svg_rect){0, 0, 1, 1}, SVG_NONE, "#000000", "x<y");
    char *const text = page(&s, "1 < 2");
    assert_has(text, ">&lt;a&gt; &amp; &quot;b&quot;</text>");
    assert_has(text, "<title>x&lt;y</title>");
    assert_has(text, "<title>1 &lt; 2</title>");
    free(text);
}

static void bytes_that_are_no_ascii_become_question_marks(void **state)
{
    (void)state;
    svg s;
    svg_begin(&s);
    svg_text(&s, 1, 2, (svg_style){10, "start", 90, 0},
             "a\001b\xff"
             "c\n");
    char *const text = page(&s, "");
    assert_has(text, ">a?b?c?</text>");
    free(text);
}

static void text_is_cut_to_its_width(void **state)
{
    (void)state;
    svg s;
    svg_begin(&s);
    svg_text(&s, 0, 10, (svg_style){10, "start", svg_text_width(10, 6), 0}, "abcdef");
    svg_text(&s, 0, 10, (svg_style){10, "start", svg_text_width(10, 6), 0}, "ghijklm");
    char *const text = page(&s, "");
    assert_has(text, ">abcdef</text>");
    assert_has(text, ">ghij..</text>");
    free(text);
}

static void words_are_broken_at_spaces_and_after_plus(void **state)
{
    (void)state;
    const svg_rect narrow = {0, 0, svg_text_width(10, 4) + 4, 100};
    svg s;
    svg_begin(&s);
    assert_true(svg_words(&s, narrow, 10, "10 11 2+33"));
    char *const text = page(&s, "");
    assert_has(text, ">10</text>");
    assert_has(text, ">11</text>");
    assert_has(text, ">2+33</text>");
    free(text);
}

static void words_that_do_not_fit_are_not_drawn(void **state)
{
    (void)state;
    svg s;
    svg_begin(&s);
    assert_false(svg_words(&s, (svg_rect){0, 0, 12, 100}, 10, "100"));
    assert_false(svg_words(&s, (svg_rect){0, 0, 100, 12}, 10, "100"));
    assert_false(svg_upward_words(&s, (svg_rect){0, 0, 12, 100}, 10, "100"));
    assert_false(svg_upward_words(&s, (svg_rect){0, 0, 100, 12}, 10, "100"));
    assert_true(svg_upward_words(&s, (svg_rect){0, 0, 13, 100}, 10, "100"));
    char *const text = page(&s, "");
    assert_null(strstr(text, "<text x=\"50"));
    assert_has(text, "rotate(-90");
    free(text);
}

static void a_paragraph_grows_by_a_line_where_one_is_full(void **state)
{
    (void)state;
    svg s;
    svg_begin(&s);
    const double one = svg_paragraph(&s, 0, 0, 90, 10, "one line"),
                 two = svg_paragraph(&s, 0, 0, svg_text_width(10, 5), 10, "three lines here");
    free(page(&s, ""));
    assert_true(two > 2 * one && one > 10);
}

/* No two of the first 64 are equal, and black text can be read on each. */
static void colours_are_pale_and_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < 64; i++) {
        const svg_colour colour = svg_colour_of(i);
        unsigned red, green, blue;
        assert_int_equal(sscanf(colour.text, "#%2x%2x%2x", &red, &green, &blue), 3);
        assert_true(red + green + blue > 3 * 96);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(colour.text, svg_colour_of(j).text);
    }
}

static void shades_darken_with_their_share(void **state)
{
    (void)state;
    assert_true(strcmp(svg_shade(0).text, svg_shade(0.5).text) > 0);
    assert_true(strcmp(svg_shade(0.5).text, svg_shade(1).text) > 0);
    assert_string_equal(svg_shade(1).text, svg_shade(7).text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_in_text_is_escaped),
        cmocka_unit_test(bytes_that_are_no_ascii_become_question_marks),
        cmocka_unit_test(text_is_cut_to_its_width),
        cmocka_unit_test(words_are_broken_at_spaces_and_after_plus),
        cmocka_unit_test(words_that_do_not_fit_are_not_drawn),
        cmocka_unit_test(a_paragraph_grows_by_a_line_where_one_is_full),
        cmocka_unit_test(colours_are_pale_and_differ),
        cmocka_unit_test(shades_darken_with_their_share),
    };
    return cmocka_run_group_tests_name("svg text", tests, NULL, NULL);
}
