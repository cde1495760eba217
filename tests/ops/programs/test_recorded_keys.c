/* Recording of keys that runs give: what is folded in, attributes, errors. */
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A program on an abstract mesh, with an input. */
typedef struct sheet {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_value x;
} sheet;

static void open(sheet *s)
{
    assert_int_equal(tsr_context_create(NULL, &s->context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, s->context, "2", &s->mesh), TSR_OK);
    assert_int_equal(tsr_program_create(s->context, &s->p), TSR_OK);
    s->x = tsr_input(s->p, "x", s->mesh, TSR_F32, 2, (const int64_t[]){5, 6}, "S(0)");
}

/* Expects the program's error, if `sentence` is not NULL. */
static void close(sheet *s, const char *sentence)
{
    const char *told;
    assert_int_equal(tsr_program_status(s->p, &told) == TSR_OK, !sentence);
    if (sentence)
        assert_string_equal(told, sentence);
    tsr_program_destroy(s->p);
    tsr_mesh_destroy(s->mesh);
    tsr_context_destroy(s->context);
}

static void names_and_numbers_of_keys_are_checked(void **state)
{
    sheet s;
    char name[8];
    (void)state;
    open(&s);
    (void)tsr_run_key(s.p, "a", TSR_RANDOM_PHILOX);
    assert_int_equal(tsr_run_key(s.p, "a", TSR_RANDOM_PHILOX).generator, 0);
    assert_int_equal(tsr_run_key(s.p, "b", TSR_RANDOM_PHILOX).generator, 0); /* the first error stays */
    close(&s, "tsr_run_key: the program has a key \"a\" already");
    open(&s);
    (void)tsr_run_key(s.p, NULL, TSR_RANDOM_PHILOX);
    close(&s, "tsr_run_key: name is NULL");
    open(&s);
    (void)tsr_run_key(s.p, "a", TSR_RANDOM_RUN);
    close(&s, "tsr_run_key: generator is 65536, but must be TSR_RANDOM_THREEFRY or TSR_RANDOM_PHILOX");
    open(&s);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "k%d", i);
        (void)tsr_run_key(s.p, name, TSR_RANDOM_THREEFRY);
    }
    close(&s, "tsr_run_key: a program has at most 8 keys; derive others from them by tsr_random_key_fold_in()");
    assert_int_equal(tsr_run_key(NULL, "a", TSR_RANDOM_PHILOX).generator, 0);
}

/* Folds numbers into a run's key, and uses it. */
static void use_folded(sheet *s, int count, const uint64_t *numbers)
{
    open(s);
    tsr_random_key key = tsr_run_key(s->p, "k", TSR_RANDOM_THREEFRY);
    for (int i = 0; i < count; i++)
        key = tsr_random_key_fold_in(key, numbers[i]);
    (void)tsr_op_dropout(s->p, s->x, 0.5, &key);
}

static void a_key_has_room_for_some_numbers(void **state)
{
    sheet s;
    const uint64_t wide = UINT64_C(1) << 32;
    static const char sentence[] =
        "op 0, dropout: too much is folded into key: one of tsr_run_key() takes two numbers of "
        "any size, or 4 below 2^32; fold in fewer, or make another key by tsr_run_key()";
    (void)state;
    use_folded(&s, 2, (const uint64_t[]){wide, UINT64_MAX});
    close(&s, NULL);
    use_folded(&s, 4, (const uint64_t[]){wide - 1, 0, 0, wide - 1});
    close(&s, NULL);
    use_folded(&s, 3, (const uint64_t[]){1, wide, 0});
    close(&s, sentence);
    use_folded(&s, 3, (const uint64_t[]){1, 2, wide});
    close(&s, sentence);
    use_folded(&s, 5, (const uint64_t[]){0, 0, 0, 0, 0});
    close(&s, sentence);
    use_folded(&s, 9, (const uint64_t[]){wide, 0, 0, 0, 0, 0, 0, 0, 0});
    close(&s, sentence);
}

static void a_key_means_something_in_its_own_program(void **state)
{
    sheet s, other;
    static const char sentence[] =
        "op 0, dropout: key stands for one that runs give, but not of this program; make it by "
        "tsr_run_key() of the program, and fold at most 4 numbers into it";
    (void)state;
    open(&other);
    const tsr_random_key key = tsr_run_key(other.p, "k", TSR_RANDOM_THREEFRY);
    close(&other, NULL);
    open(&s);
    (void)tsr_op_dropout(s.p, s.x, 0.5, &key);
    close(&s, sentence);
    open(&s);
    (void)tsr_run_key(s.p, "k", TSR_RANDOM_PHILOX); /* of another generator */
    (void)tsr_op_dropout(s.p, s.x, 0.5, &key);
    close(&s, sentence);
}

/* By name, and lists that no key is. */
static void attributes_say_keys(void **state)
{
    static const int64_t lists[][6] = {{1, 0, 0, 0, 0, 0},  {-1, 0, 0, 0, 0, 0}, {0, 5, 0, 0, 0, 0},
                                       {0, -1, 0, 0, 0, 0}, {0, 1, 0, 1, 0, 0},  {0, 3, 1, 1, INT64_C(1) << 32, 0}};
    sheet s;
    tsr_random_key key;
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        open(&s);
        key = tsr_run_key(s.p, "k", TSR_RANDOM_THREEFRY);
        const tsr_attribute wrong = tsr_attribute_ints("key", 6, lists[i]);
        assert_int_equal(tsr_program_apply(s.p, "dropout", 1, &wrong, &s.x, NULL), TSR_NONE);
        close(&s, "op 0, dropout: key stands for one that runs give, but not of this program; make it by tsr_run_key() "
                  "of the program, and fold at most 4 numbers into it");
    }
    open(&s);
    (void)tsr_run_key(s.p, "k", TSR_RANDOM_THREEFRY);
    key = tsr_random_key_fold_in(tsr_run_key(s.p, "l", TSR_RANDOM_PHILOX), 7);
    tsr_attribute attributes[] = {tsr_random_key_generator(&key), tsr_random_key_words(&key)};
    assert_int_equal(tsr_program_apply(s.p, "dropout", 2, attributes, &s.x, NULL), tsr_op_dropout(s.p, s.x, 0.5, &key));
    key = tsr_random_key_philox(3, 4);
    attributes[0] = tsr_random_key_generator(&key);
    attributes[1] = tsr_random_key_words(&key);
    assert_int_equal(tsr_program_apply(s.p, "dropout", 2, attributes, &s.x, NULL), tsr_op_dropout(s.p, s.x, 0.5, &key));
    attributes[1] = tsr_random_key_words(NULL);
    assert_int_equal(tsr_program_apply(s.p, "dropout", 2, attributes, &s.x, NULL), TSR_NONE);
    close(&s, "op 2, dropout: the list of attribute key is NULL, but has 2 numbers");
    open(&s);
    key = (tsr_random_key){0};
    attributes[0] = tsr_random_key_generator(&key);
    assert_int_equal(tsr_program_apply(s.p, "dropout", 1, attributes, &s.x, NULL), TSR_NONE);
    close(&s, "op 0, dropout: attribute generator is \"\", but must be one of threefry|philox");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_of_keys_are_checked),
        cmocka_unit_test(a_key_has_room_for_some_numbers),
        cmocka_unit_test(a_key_means_something_in_its_own_program),
        cmocka_unit_test(attributes_say_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
