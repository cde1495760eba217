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
    table.alloc = no_memory;
    assert_refused(&table, "`leave`");
}

static int rank_zero(void *self)
{
    (void)self;
    return 0;
}

static int one_rank(void *self)
{
    (void)self;
    return 1;
}

/* An engine that counts how often it is left and destroyed. */
typedef struct counting {
    int left, destroyed, freed;
} counting;

static void count_leave(void *self)
{
    ((counting *)self)->left++;
}

static void count_destroy(void *self)
{
    ((counting *)self)->destroyed++;
}

static void count_free(void *self, void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    ((counting *)self)->freed++;
}

static void an_engine_that_gives_memory_is_left_at_once_and_destroyed_with_the_last_reference(void **state)
{
    (void)state;
    counting counts = {0};
    tsr_comm *comm = NULL;
    tsr_comm_table table = message_engine_table;
    table.rank = rank_zero;
    table.ranks = one_rank;
    table.alloc = no_memory;
    table.free = count_free;
    table.leave = count_leave;
    table.destroy = count_destroy;
    assert_int_equal(tsr_comm_create_from_table(NULL, &table, &counts, &comm), TSR_OK);
    tsr_comm_retain(comm);
    tsr_comm_destroy(comm);
    assert_int_equal(counts.left, 1);
    assert_int_equal(counts.destroyed, 0);
    tsr_comm_free(comm, &counts, 1);
    assert_int_equal(counts.freed, 1);
    tsr_comm_release(comm);
    assert_int_equal(counts.left, 1);
    assert_int_equal(counts.destroyed, 1);
}

static void halves_come_together(void **state)
{
    (void)state;
    tsr_comm_table table = message_engine_table;
    table.exchange_start = table.exchange;
    assert_refused(&table, "`exchange_finish`");
    table = message_engine_table;
    table.exchange_finish = do_nothing;
    assert_refused(&table, "`exchange_start`");
    table = message_engine_table;
    table.arrive = do_nothing;
    assert_refused(&table, "`await`");
    table = message_engine_table;
    table.await = do_nothing;
    assert_refused(&table, "`arrive`");
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

/* What the groups of an engine with tables of their own are told, and how many of their `self` were destroyed by the parent's. */
static const char *told_name;
static int ended;

static void tell_table(void *self, tsr_comm_table *out)
{
    (void)self;
    *out = message_engine_table;
    out->name = told_name;
}

static void end_and_count(void *self)
{
    ended++;
    message_engine_table.destroy(self);
}

static void a_group_has_the_table_that_its_engine_tells(void **state)
{
    (void)state;
    tsr_comm_table table = message_engine_table;
    table.tell_table = tell_table;
    table.destroy = end_and_count;
    tsr_comm *inner, *comm, *group = NULL;
    void *self;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &inner), TSR_OK);
    assert_int_equal(message_engine_self(inner, &self), TSR_OK);
    assert_int_equal(tsr_comm_create_from_table(NULL, &table, self, &comm), TSR_OK);
    told_name = NULL;
    assert_int_equal(tsr_comm_split(comm, 0, 0, &group), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "lacks the required entry `name`"));
    assert_null(group);
    assert_int_equal(ended, 1);
    told_name = "others";
    assert_int_equal(tsr_comm_split(comm, 0, 0, &group), TSR_OK);
    assert_string_equal(tsr_comm_engine(group), "others");
    assert_int_equal(suite_check_usable(group), TSR_OK);
    tsr_comm_destroy(group);
    assert_int_equal(ended, 1);
    tsr_comm_destroy(comm);
    assert_int_equal(ended, 2);
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

/* A direct engine of one rank whose meetings can be made to fail. */
typedef struct lonely {
    _Alignas(64) char slot[TSR_COMM_SLOT_BYTES];
    bool broken;
    int arrivals, awaits;
} lonely;

static void *only_slot(void *self, int rank)
{
    (void)rank;
    return ((lonely *)self)->slot;
}

static tsr_status meet_unless_broken(void *self)
{
    return ((const lonely *)self)->broken ? tsr_status_set(TSR_ERROR_PEER, "it is broken") : TSR_OK;
}

static tsr_status arrive_unless_broken(void *self)
{
    ((lonely *)self)->arrivals++;
    return meet_unless_broken(self);
}

static tsr_status await_unless_broken(void *self)
{
    ((lonely *)self)->awaits++;
    return meet_unless_broken(self);
}

static void leave_alone(void *self)
{
    (void)self;
}

static tsr_comm *make_lonely(lonely *self, bool halves)
{
    tsr_comm_table table = message_engine_table;
    table.capabilities = TSR_COMM_DIRECT;
    table.slot = only_slot;
    table.meet = meet_unless_broken;
    table.rank = rank_zero;
    table.ranks = one_rank;
    table.abort = table.destroy = leave_alone;
    table.arrive = halves ? arrive_unless_broken : NULL;
    table.await = halves ? await_unless_broken : NULL;
    tsr_comm *comm;
    assert_int_equal(tsr_comm_create_from_table(NULL, &table, self, &comm), TSR_OK);
    return comm;
}

/* A peer that is slow may still read what the last call that met published, while this rank's calls fail one after the other. */
static void a_broken_communicator_publishes_nothing(void **state)
{
    (void)state;
    static lonely self;
    static char before[TSR_COMM_SLOT_BYTES];
    tsr_comm *comm = make_lonely(&self, false);
    float values[2] = {1.0f, 2.0f}, sums[2];
    assert_int_equal(tsr_comm_all_reduce(comm, values, sums, 2, TSR_F32, TSR_SUM, tsr_device_host(), NULL), TSR_OK);
    self.broken = true;
    assert_int_equal(tsr_comm_barrier(comm), TSR_ERROR_PEER);
    memcpy(before, self.slot, sizeof before);
    for (int call = 0; call < 3; call++) {
        assert_int_equal(tsr_comm_all_reduce(comm, values, sums, 1 + call % 2, TSR_F32, TSR_SUM, tsr_device_host(), NULL), TSR_ERROR_PEER);
        assert_string_equal(tsr_status_message(), "it is broken");
        assert_memory_equal(self.slot, before, sizeof before);
    }
    tsr_comm_destroy(comm);
}

static tsr_status start_nothing(tsr_comm *comm)
{
    return tsr_comm_exchange_start(comm, NULL, 0, NULL, 0, tsr_device_host(), NULL);
}

static void break_in_halves(lonely *self, tsr_comm *comm, bool on_arrival)
{
    static char before[TSR_COMM_SLOT_BYTES];
    self->broken = on_arrival;
    assert_int_equal(start_nothing(comm), TSR_OK);
    self->broken = true;
    assert_int_equal(tsr_comm_exchange_finish(comm), TSR_ERROR_PEER);
    memcpy(before, self->slot, sizeof before);
    const int arrivals = self->arrivals;
    for (int call = 0; call < 3; call++) {
        assert_int_equal(start_nothing(comm), TSR_OK);
        assert_memory_equal(self->slot, before, sizeof before);
        assert_int_equal(tsr_comm_exchange_finish(comm), TSR_ERROR_PEER);
        assert_string_equal(tsr_status_message(), "it is broken");
        assert_memory_equal(self->slot, before, sizeof before);
        assert_int_equal(tsr_comm_exchange_finish(comm), TSR_ERROR_STATE);
    }
    assert_int_equal(self->arrivals, arrivals);
}

/* With an engine's halves each arrival has its await, and nothing meets; once broken, nothing is published or arrives. */
static void halves_of_a_broken_communicator_publish_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        lonely self = {.broken = false};
        const bool halves = way % 2, on_arrival = way / 2;
        tsr_comm *comm = make_lonely(&self, halves);
        assert_int_equal(start_nothing(comm), TSR_OK);
        assert_int_equal(self.arrivals, halves);
        assert_int_equal(self.awaits, 0);
        assert_int_equal(tsr_comm_exchange_finish(comm), TSR_OK);
        assert_int_equal(self.awaits, halves);
        break_in_halves(&self, comm, on_arrival);
        assert_int_equal(self.awaits, !halves ? 0 : on_arrival ? 1 : 2);
        tsr_comm_destroy(comm);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_engine_without_a_required_entry_is_refused_by_its_name),
        cmocka_unit_test(a_direct_engine_needs_slot_and_meet),
        cmocka_unit_test(memory_entries_come_together),
        cmocka_unit_test(an_engine_that_gives_memory_is_left_at_once_and_destroyed_with_the_last_reference),
        cmocka_unit_test(halves_come_together),
        cmocka_unit_test(a_smaller_table_and_a_wrong_rank_are_refused),
        cmocka_unit_test(a_communicator_owns_its_self),
        cmocka_unit_test(a_group_has_the_table_that_its_engine_tells),
        cmocka_unit_test(a_lent_communicator_is_not_split),
        cmocka_unit_test(a_broken_communicator_publishes_nothing),
        cmocka_unit_test(halves_of_a_broken_communicator_publish_nothing),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
