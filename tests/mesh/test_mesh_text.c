#include "counted_memory.h"
#include "mesh_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void texts_print_as_they_are_written_without_spaces_and_defaults(void **state)
{
    (void)state;
    const char *const texts[][2] = {
        {"8", "8"},
        {"2x4", "2x4"},
        {"1x1x1x1x1x1x1x1", "1x1x1x1x1x1x1x1"},
        {"tp=4", "tp=4"},
        {"dp=2,tp=4", "dp=2,tp=4"},
        {"dp=2 ,  tp=4", "dp=2,tp=4"},
        {"_x9=2,X=3", "_x9=2,X=3"},
        {"2x4@8", "2x4@8"},
        {"2x4@0", "2x4"},
        {"dp=2,tp=4@8", "dp=2,tp=4@8"},
        {"2x2@[3,1,0,2]", "2x2@[3,1,0,2]"},
        {"2x2@[3 , 1,0, 2]", "2x2@[3,1,0,2]"},
        {"2x2@[0,1,2,3]", "2x2"},
        {"2x2@[4,5,6,7]", "2x2@4"},
        {"2x2@[0,2,1,3]", "2x2@[0,2,1,3]"},
        {"1@[5]", "1@5"},
        {"02x3", "2x3"},
        {"2147483647", "2147483647"},
        {"1@2147483646", "1@2147483646"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tsr_mesh *mesh = parsed(texts[i][0]);
        assert_string_equal(text_of(mesh), texts[i][1]);
        tsr_mesh_destroy(mesh);
    }
}

static void every_random_mesh_survives_printing_and_parsing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        random_state random = {seed};
        const mesh_model model = random_model(&random, 300);
        tsr_mesh *mesh = mesh_of(&model, NULL, NULL, seed % 2);
        const char *text = text_of(mesh);
        tsr_mesh *again = parsed(text);
        assert_mesh_is(again, &model, 300, seed);
        assert_true(tsr_mesh_equal(mesh, again));
        if (strcmp(text_of(again), text) != 0)
            fail_msg("seed %llu: %s printed as %s", (unsigned long long)seed, text, text_of(again));
        for (int d = 0; d < model.ndim; d++)
            assert_int_equal(tsr_mesh_name(again, d) ? tsr_mesh_name(again, d)[0] : 0, seed % 2 ? 'a' + d : 0);
        tsr_mesh_destroy(mesh);
        tsr_mesh_destroy(again);
    }
}

static void printing_never_overruns_and_returns_the_whole_length(void **state)
{
    (void)state;
    tsr_mesh *mesh = parsed("dp=2,tp=2@[3,1,0,2]");
    const char whole[] = "dp=2,tp=2@[3,1,0,2]";
    assert_int_equal(tsr_mesh_print(mesh, NULL, 0), strlen(whole));
    for (size_t capacity = 1; capacity < 24; capacity++) {
        char buffer[32];
        memset(buffer, '#', sizeof buffer);
        assert_int_equal(tsr_mesh_print(mesh, buffer, capacity), strlen(whole));
        assert_int_equal(strlen(buffer), capacity - 1 < strlen(whole) ? capacity - 1 : strlen(whole));
        assert_memory_equal(buffer, whole, strlen(buffer));
        assert_int_equal(buffer[capacity], '#');
    }
    tsr_mesh_destroy(mesh);
}

static void check_refusal(tsr_comm *comm, const char *text, size_t character, const char *says)
{
    tsr_mesh *mesh = NULL;
    char expected[256];
    snprintf(expected, sizeof expected, "mesh \"%s\", character %zu: %s", text, character, says);
    const tsr_status status = tsr_mesh_parse(comm, NULL, text, &mesh);
    if (status != TSR_ERROR_ARGUMENT || mesh || strncmp(tsr_status_message(), expected, strlen(expected)) != 0)
        fail_msg("%s for \"%s\":\n  \"%s\" does not begin with\n  \"%s\"", tsr_status_name(status), text,
                 tsr_status_message(), expected);
}

static void errors_point_at_the_character_that_is_wrong(void **state)
{
    (void)state;
    const struct {
        const char *text;
        size_t character; /* counted from 1 */
        const char *says;
    } cases[] = {
        {"", 1, "expected a name (letters, digits and _, no digit first), found the end"},
        {" 2x4", 1, "expected a name (letters, digits and _, no digit first), found \" \""},
        {"x4", 3, "expected \"=\", found the end"},
        {"2x", 3, "expected a number of ranks (1 to 2147483647), found the end"},
        {"2xx4", 3, "expected a number of ranks (1 to 2147483647), found \"x\""},
        {"2x-4", 3, "expected a number of ranks (1 to 2147483647), found \"-\""},
        {"2x0", 3, "expected a number of ranks (1 to 2147483647), found \"0\""},
        {"2 x4", 2, "expected \"x\", \"@\" or the end, found \" \""},
        {"2,4", 2, "expected \"x\", \"@\" or the end, found \",\""},
        {"2X4", 2, "expected \"x\", \"@\" or the end, found \"X\""},
        {"2x4 ", 4, "expected \"x\", \"@\" or the end, found \" \""},
        {"99999999999999999999x2", 1, "expected a number of ranks (1 to 2147483647), found a number beyond 2147483647"},
        {"2147483648", 1, "expected a number of ranks (1 to 2147483647), found a number beyond 2147483647"},
        {"65536x65536", 7, "up to here the mesh has ranks up to 4294967295, but only 0 to 2147483646 are possible"},
        {"1x1x1x1x1x1x1x1x1", 17, "this dim is one too many for a mesh"},
        {"dp", 3, "expected \"=\", found the end"},
        {"dp=", 4, "expected a number of ranks (1 to 2147483647), found the end"},
        {"dp=2x4", 5, "expected \",\", \"@\" or the end, found \"x\""},
        {"dp=2,4", 6, "expected a name (letters, digits and _, no digit first), found \"4\""},
        {"dp=2,", 6, "expected a name (letters, digits and _, no digit first), found the end"},
        {"d-p=2", 2, "expected \"=\", found \"-\""},
        {"dp =2", 3, "expected \"=\", found \" \""},
        {"dp=2,tp=2,dp=2", 11, "this name was used before"},
        {"d\xc3\xa9=2", 2, "expected \"=\", found byte 0xc3"},
        {"2@", 3, "expected a rank (0 to 2147483646), found the end"},
        {"2@x", 3, "expected a rank (0 to 2147483646), found \"x\""},
        {"2@-1", 3, "expected a rank (0 to 2147483646), found \"-\""},
        {"2@2147483646", 3, "up to here the mesh has ranks up to 2147483647, but only 0 to 2147483646 are possible"},
        {"2@8x", 4, "expected the end, found \"x\""},
        {"2@8@9", 4, "expected the end, found \"@\""},
        {"2@[", 4, "expected a rank (0 to 2147483646), found the end"},
        {"2@[]", 4, "expected a rank (0 to 2147483646), found \"]\""},
        {"2@[1]", 5, "expected \",\" (a list has 2 ranks), found \"]\""},
        {"2@[1,2,3]", 7, "expected \"]\", found \",\""},
        {"2@[1,2", 7, "expected \"]\", found the end"},
        {"2@[1 2]", 5, "expected \",\" (a list has 2 ranks), found \" \""},
        {"2@[1,2]x", 8, "expected the end, found \"x\""},
        {"2@[1,-2]", 6, "expected a rank (0 to 2147483646), found \"-\""},
        {"4@[7,3 , 5,3]", 12, "this rank was listed before"},
        {"2147483647@[0,1]", 16, "expected \",\" (a list has 2147483647 ranks), found \"]\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refusal(NULL, cases[i].text, cases[i].character, cases[i].says);
}

static void a_communicator_bounds_the_ranks(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_comm comm = {1, 6, context};
    check_refusal(&comm, "2x4", 3, "up to here the mesh has ranks up to 7, but only 0 to 5 are possible");
    check_refusal(&comm, "4@3", 3, "up to here the mesh has ranks up to 6, but only 0 to 5 are possible");
    check_refusal(&comm, "2@[1,6]", 6, "expected a rank (0 to 5), found a number beyond 5");
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_parse(&comm, NULL, "2x2@2", &mesh), TSR_OK);
    assert_ptr_equal(tsr_mesh_comm(mesh), &comm);
    assert_ptr_equal(tsr_mesh_context(mesh), context);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void random_text_is_parsed_or_refused_but_never_harms(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789x=,@[] ab_-";
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    int understood = 0;
    for (uint64_t seed = 0; seed < 50000; seed++) {
        random_state random = {seed};
        char text[16];
        const size_t length = random_below(&random, sizeof text);
        for (size_t i = 0; i < length; i++)
            text[i] = alphabet[random_below(&random, sizeof alphabet - 1)];
        text[length] = '\0';
        tsr_mesh *mesh = NULL;
        const tsr_status status = tsr_mesh_parse(NULL, context, text, &mesh);
        if (status != TSR_OK && (status != TSR_ERROR_ARGUMENT || mesh))
            fail_msg("seed %llu, \"%s\": %s", (unsigned long long)seed, text, tsr_status_name(status));
        understood += status == TSR_OK;
        tsr_mesh_destroy(mesh);
    }
    assert_true(understood > 0);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void null_is_refused(void **state)
{
    (void)state;
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, NULL, &mesh), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", NULL), TSR_ERROR_ARGUMENT);
    assert_null(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_print_as_they_are_written_without_spaces_and_defaults),
        cmocka_unit_test(every_random_mesh_survives_printing_and_parsing),
        cmocka_unit_test(printing_never_overruns_and_returns_the_whole_length),
        cmocka_unit_test(errors_point_at_the_character_that_is_wrong),
        cmocka_unit_test(a_communicator_bounds_the_ranks),
        cmocka_unit_test(random_text_is_parsed_or_refused_but_never_harms),
        cmocka_unit_test(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
