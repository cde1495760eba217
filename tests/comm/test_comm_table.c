/* Operation tables of communicators: which are refused, with which words, and the ownership of
 * `self`. */
#include "comm_suite.h"
#include "message_engine.h"

#include <stdint.h>
#include <stdio.h>

typedef void any_entry(void);

/* A table with its own copies of all sub-tables, for tests to change. */
typedef struct tables {
    tsr_comm_table table;
    tsr_comm_direct direct;
    tsr_comm_messages messages;
    tsr_comm_memory memory;
    tsr_comm_collectives collectives;
    tsr_comm_nodes nodes;
} tables;

/* An entry, by its offset in `tables`. */
typedef struct entry {
    const char *name;
    size_t offset;
} entry;

#define ENTRY(field)                                                                                                   \
    {                                                                                                                  \
#field, offsetof(tables, field)                                                                                \
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

static void no_return(void *self)
{
    (void)self;
}

static int one_node(void *self, int rank)
{
    (void)self;
    (void)rank;
    return 0;
}

static void fill(tables *t)
{
    *t = (tables){
        .table = message_engine_table,
        .direct = {sizeof t->direct, nowhere, do_nothing, do_nothing, do_nothing, NULL, NULL},
        .messages = message_engine_messages,
        .memory = {sizeof t->memory, no_memory, no_free, no_return, NULL},
        .collectives = {.size = sizeof t->collectives},
        .nodes = {sizeof t->nodes, one_node, 0},
    };
    t->messages.start = message_engine_messages.exchange;
    t->messages.finish = do_nothing;
    t->table.direct = &t->direct;
    t->table.messages = &t->messages;
    t->table.memory = &t->memory;
    t->table.collectives = &t->collectives;
    t->table.nodes = &t->nodes;
}

/* Entries of `table` itself are named without a prefix. */
static void a_table_without_a_required_entry_is_refused_by_its_name(void **state)
{
    (void)state;
    static const entry required[] = {
        ENTRY(table.name),      ENTRY(table.rank),        ENTRY(table.ranks),      ENTRY(table.abort),
        ENTRY(table.destroy),   ENTRY(direct.slot),       ENTRY(direct.meet),      ENTRY(direct.arrive),
        ENTRY(direct.await),    ENTRY(messages.exchange), ENTRY(messages.barrier), ENTRY(messages.start),
        ENTRY(messages.finish), ENTRY(memory.alloc),      ENTRY(memory.free),      ENTRY(memory.leave),
        ENTRY(nodes.node_of),
    };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        any_entry *none = NULL;
        tables t;
        char name[64];
        fill(&t);
        memcpy((char *)&t + required[i].offset, &none, sizeof none);
        snprintf(name, sizeof name, "`%s`",
                 strncmp(required[i].name, "table.", 6) ? required[i].name : required[i].name + 6);
        assert_refused(&t.table, name);
    }
}

static int shares_all(void *self, const void *memory, size_t bytes)
{
    (void)self;
    (void)memory;
    (void)bytes;
    return 1;
}

static void ranks_reach_memory_or_send(void **state)
{
    (void)state;
    tables t;
    fill(&t);
    t.table.messages = NULL;
    t.memory.shares = shares_all;
    assert_refused(&t.table, "`messages`");
    t.memory.shares = NULL;
    t.table.direct = NULL;
    assert_refused(&t.table, "`direct or messages`");
}

static void a_smaller_table_is_refused_by_its_name(void **state)
{
    (void)state;
    static const entry sizes[] = {ENTRY(table.size),  ENTRY(direct.size),      ENTRY(messages.size),
                                  ENTRY(memory.size), ENTRY(collectives.size), ENTRY(nodes.size)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tables t;
        char words[64];
        fill(&t);
        size_t *size = (size_t *)((char *)&t + sizes[i].offset);
        --*size;
        snprintf(words, sizeof words, "%s%s is %zu, but", strncmp(sizes[i].name, "table.", 6) ? "table." : "",
                 sizes[i].name, *size);
        assert_refused(&t.table, words);
    }
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

/* An engine that counts its calls of leave, destroy and free. */
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
    const tsr_comm_memory memory = {sizeof memory, no_memory, count_free, count_leave, NULL};
    table.memory = &memory;
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

static void no_table_and_a_wrong_rank_are_refused(void **state)
{
    (void)state;
    assert_refused(NULL, "table is NULL");
    tsr_comm_table table = message_engine_table;
    table.rank = wrong_rank;
    table.ranks = wrong_rank;
    assert_refused(&table, "rank 7 of 7");
}

/* Larger tables, of newer headers, are accepted and copied; the communicator owns `self` from then
 * on. */
static void a_communicator_owns_its_self(void **state)
{
    (void)state;
    struct {
        tsr_comm_table table;
        any_entry *newer;
    } larger = {message_engine_table, NULL};
    struct {
        tsr_comm_messages messages;
        any_entry *newer;
    } larger_messages = {message_engine_messages, NULL};
    larger.table.size = sizeof larger;
    larger.table.messages = &larger_messages.messages;
    larger_messages.messages.size = sizeof larger_messages;
    tsr_comm *inner, *comm;
    void *self;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &inner), TSR_OK);
    assert_int_equal(message_engine_self(inner, &self), TSR_OK);
    assert_int_equal(tsr_comm_create_from_table(NULL, &larger.table, self, &comm), TSR_OK);
    memset(&larger, 0, sizeof larger);
    memset(&larger_messages, 0, sizeof larger_messages);
    assert_string_equal(tsr_comm_engine(comm), "messages");
    assert_int_equal(suite_check_usable(comm), TSR_OK);
    tsr_comm_destroy(comm);
}

/* The name in the table that tell_table() gives to groups, and how many `self` end_and_count()
 * destroyed. */
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

/* An engine of rank 1 of 2, whose peer has left. */
static int second(void *self)
{
    (void)self;
    return 1;
}

static int two(void *self)
{
    (void)self;
    return 2;
}

static tsr_status say_gone(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                           size_t receive_count, tsr_device device, tsr_stream stream)
{
    (void)self, (void)sends, (void)send_count, (void)receives, (void)receive_count, (void)device, (void)stream;
    return tsr_status_set(TSR_ERROR_PEER, "rank 0 has gone");
}

/* A rank that failed by itself reports its own failure, also if its peers left before they heard of
 * it. */
static void a_rank_keeps_its_own_failure_when_its_peers_have_gone(void **state)
{
    (void)state;
    tsr_comm_table table = message_engine_table;
    tsr_comm_messages messages = message_engine_messages;
    messages.exchange = say_gone;
    table.messages = &messages;
    table.memory = NULL;
    table.collectives = NULL;
    table.nodes = NULL;
    table.rank = second;
    table.ranks = two;
    table.destroy = no_return;
    tsr_comm *comm;
    float value = 1.0f, sum;
    int self = 0;
    assert_int_equal(tsr_comm_create_from_table(NULL, &table, &self, &comm), TSR_OK);
    assert_int_equal(tsr_comm_all_reduce(comm, &value, &sum, 1, TSR_F32, TSR_SUM, tsr_device_host(), NULL),
                     TSR_ERROR_PEER);
    assert_string_equal(tsr_status_message(), "rank 0 has gone");
    assert_int_equal(tsr_comm_all_reduce(comm, &value, &sum, -1, TSR_F32, TSR_SUM, tsr_device_host(), NULL),
                     TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "-1"));
    tsr_comm_destroy(comm);
}

static void a_lent_communicator_is_not_split(void **state)
{
    (void)state;
    tsr_comm_table lent = message_engine_table;
    lent.split = NULL;
    tsr_comm *inner, *comm, *untouched = NULL;
    void *self;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &inner), TSR_OK);
    assert_int_equal(message_engine_self(inner, &self), TSR_OK);
    assert_int_equal(tsr_comm_create_from_table(NULL, &lent, self, &comm), TSR_OK);
    assert_int_equal(tsr_comm_split(comm, 0, 0, &untouched), TSR_ERROR_UNSUPPORTED);
    assert_null(untouched);
    tsr_comm_destroy(comm);
}

/* A direct engine of one rank, whose barriers can be made to fail. */
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
    const tsr_comm_direct direct = {.size = sizeof direct,
                                    .slot = only_slot,
                                    .meet = meet_unless_broken,
                                    .arrive = halves ? arrive_unless_broken : NULL,
                                    .await = halves ? await_unless_broken : NULL};
    table.direct = &direct;
    table.rank = rank_zero;
    table.ranks = one_rank;
    table.abort = table.destroy = leave_alone;
    tsr_comm *comm;
    assert_int_equal(tsr_comm_create_from_table(NULL, &table, self, &comm), TSR_OK);
    return comm;
}

/* A slow peer may still read what the last successful call published, while later calls of this
 * rank fail. */
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
        assert_int_equal(
            tsr_comm_all_reduce(comm, values, sums, 1 + call % 2, TSR_F32, TSR_SUM, tsr_device_host(), NULL),
            TSR_ERROR_PEER);
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

/* With halves of the engine each arrival has its await; once broken, nothing is published or
 * arrives. */
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
        cmocka_unit_test(a_table_without_a_required_entry_is_refused_by_its_name),
        cmocka_unit_test(ranks_reach_memory_or_send),
        cmocka_unit_test(a_smaller_table_is_refused_by_its_name),
        cmocka_unit_test(an_engine_that_gives_memory_is_left_at_once_and_destroyed_with_the_last_reference),
        cmocka_unit_test(no_table_and_a_wrong_rank_are_refused),
        cmocka_unit_test(a_communicator_owns_its_self),
        cmocka_unit_test(a_group_has_the_table_that_its_engine_tells),
        cmocka_unit_test(a_rank_keeps_its_own_failure_when_its_peers_have_gone),
        cmocka_unit_test(a_lent_communicator_is_not_split),
        cmocka_unit_test(a_broken_communicator_publishes_nothing),
        cmocka_unit_test(halves_of_a_broken_communicator_publish_nothing),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
