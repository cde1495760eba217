/* Operation tables of communicators: what is refused, by which name, and who owns `self`. */
#include "comm_suite.h"

#include "message_engine.h"
#include <stdint.h>

typedef void any_entry(void);

/* An entry of a table, by its place. */
typedef struct entry {
    const char *name;
    size_t offset;
} entry;

#define ENTRY(field)                                                                                                                       \
    {                                                                                                                                      \
#field, offsetof(tsr_comm_table, field)                                                                                            \
    }

static void *nowhere(void *self, int rank)
{
    (void)rank;
    return self;
}

static tsr_status do_nothing(void *self)
{
    (void)self;
    return TSR_OK;
}

static tsr_status no_memory(void *self, size_t bytes, void **out)
{
    (void)self;
    (void)bytes;
    (void)out;
    return TSR_ERROR_MEMORY;
}

static void no_free(void *self, void *memory, size_t bytes)
{
    (void)self;
    (void)memory;
    (void)bytes;
}

static int wrong_rank(void *self)
{
    (void)self;
    return 7;
}

static void assert_refused(const tsr_comm_table *table, const char *part)
{
    tsr_comm *untouched = NULL;
    int self = 0;
    assert_int_equal(tsr_comm_create_from_table(NULL, table, &self, &untouched), TSR_ERROR_ARGUMENT);
    assert_null(untouched);
    if (!strstr(tsr_status_message(), part))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), part);
}

static void refuse_without(const tsr_comm_table *whole, const entry *missing)
{
    tsr_comm_table table = *whole;
    any_entry *none = NULL;
    char name[32] = "`";
    memcpy((char *)&table + missing->offset, &none, sizeof none);
    strcat(strcat(name, missing->name), "`");
    assert_refused(&table, name);
}

static void a_message_engine_without_a_required_entry_is_refused_by_its_name(void **state)
{
    (void)state;
    static const entry required[] = {ENTRY(name),     ENTRY(rank),    ENTRY(ranks), ENTRY(split),
                                     ENTRY(exchange), ENTRY(barrier), ENTRY(abort), ENTRY(destroy)};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        refuse_without(&message_engine_table, &required[i]);
}

static void a_direct_engine_needs_slot_and_meet(void **state)
{
    (void)state;
    static const entry required[] = {ENTRY(slot), ENTRY(meet), ENTRY(split)};
    tsr_comm_table direct = message_engine_table;
    direct.capabilities = TSR_COMM_DIRECT;
    direct.slot = nowhere;
    direct.meet = do_nothing;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        refuse_without(&direct, &required[i]);
}

static void memory_entries_come_together(void **state)
{
    (void)state;
    tsr_comm_table table = message_engine_table;
    table.alloc = no_memory;
    assert_refused(&table, "`free`");
    table = message_engine_table;
    table.free = no_free;
    assert_refused(&table, "`alloc`");
}

static void a_smaller_table_and_a_wrong_rank_are_refused(void **state)
{
    (void)state;
    tsr_comm_table table = message_engine_table;
    table.size--;
    assert_refused(&table, "table.size is");
    assert_refused(NULL, "table is NULL");
    table = message_engine_table;
    table.rank = wrong_rank;
    table.ranks = wrong_rank;
    assert_refused(&table, "rank 7 of 7");
}

/* A larger table, of newer headers, is taken; `self` is the communicator's from then on. */
static void a_communicator_owns_its_self(void **state)
{
    (void)state;
    struct {
        tsr_comm_table table;
        any_entry *newer;
    } larger = {message_engine_table, NULL};
    larger.table.size = sizeof larger;
    tsr_comm *inner, *comm;
    void *self;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &inner), TSR_OK);
    assert_int_equal(message_engine_self(inner, &self), TSR_OK);
    assert_int_equal(tsr_comm_create_from_table(NULL, &larger.table, self, &comm), TSR_OK);
    assert_string_equal(tsr_comm_engine(comm), "messages");
    assert_int_equal(suite_check_usable(comm), TSR_OK);
    tsr_comm_destroy(comm);
}

static void a_lent_communicator_is_not_split(void **state)
{
    (void)state;
    tsr_comm_table lent = message_engine_table;
    lent.capabilities = TSR_COMM_NO_SPLIT;
    tsr_comm *inner, *comm, *untouched = NULL;
    void *self;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &inner), TSR_OK);
    assert_int_equal(message_engine_self(inner, &self), TSR_OK);
    assert_int_equal(tsr_comm_create_from_table(NULL, &lent, self, &comm), TSR_OK);
    assert_int_equal(tsr_comm_split(comm, 0, 0, &untouched), TSR_ERROR_UNSUPPORTED);
    assert_null(untouched);
    tsr_comm_destroy(comm);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_engine_without_a_required_entry_is_refused_by_its_name),
        cmocka_unit_test(a_direct_engine_needs_slot_and_meet),
        cmocka_unit_test(memory_entries_come_together),
        cmocka_unit_test(a_smaller_table_and_a_wrong_rank_are_refused),
        cmocka_unit_test(a_communicator_owns_its_self),
        cmocka_unit_test(a_lent_communicator_is_not_split),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
