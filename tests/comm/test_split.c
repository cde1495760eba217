/* Communicators split from others: their members and order, nested and side by side. */
#include "comm_suite.h"

#include <stdio.h>

enum { MOST_RANKS = 8 };

/* The rank in its group, and the group's size, that a rule of colors and keys gives to `rank`. */
typedef struct seat {
    int rank, size;
} seat;

typedef struct rule {
    const char *name;
    int (*color)(int rank);
    int (*key)(int rank);
} rule;

static int zero(int rank)
{
    (void)rank;
    return 0;
}

static int parity(int rank)
{
    return rank % 2;
}

static int alone(int rank)
{
    return 1000 + rank;
}

static int none_of_three(int rank)
{
    return rank % 3 == 0 ? -1 - rank : rank % 3;
}

static int falling(int rank)
{
    return -rank;
}

static int halved(int rank)
{
    return rank / 2;
}

static int largest(int rank)
{
    return rank % 2 ? INT32_MAX : INT32_MIN;
}

static const rule rules[] = {
    {"all", zero, zero},
    {"all, falling", zero, falling},
    {"parity", parity, zero},
    {"parity, falling", parity, falling},
    {"alone", alone, falling},
    {"without every third", none_of_three, zero},
    {"extreme keys", zero, largest},
    {"pairs", halved, falling},
};
#define RULES ((int)(sizeof rules / sizeof *rules))

static seat expect(const rule *by, int rank, int ranks)
{
    seat own = {0, 0};
    for (int r = 0; r < ranks; r++) {
        if (by->color(r) != by->color(rank))
            continue;
        own.size++;
        own.rank += by->key(r) < by->key(rank) || (by->key(r) == by->key(rank) && r < rank);
    }
    return own;
}

static tsr_status check_group(tsr_comm *comm, const rule *by, tsr_comm *group)
{
    const int rank = tsr_comm_rank(comm);
    if (by->color(rank) < 0) {
        CHECK(!group);
        return TSR_OK;
    }
    const seat own = expect(by, rank, tsr_comm_size(comm));
    CHECK(group && tsr_comm_rank(group) == own.rank && tsr_comm_size(group) == own.size);
    CHECK(strcmp(tsr_comm_engine(group), tsr_comm_engine(comm)) == 0 &&
          tsr_comm_context(group) == tsr_comm_context(comm));
    int32_t mine = rank, all[MOST_RANKS];
    TSR_TRY(tsr_comm_all_gather(group, &mine, all, 1, NULL, TSR_I32, tsr_device_host(), NULL));
    for (int r = 0; r < own.size; r++)
        CHECK(by->color(all[r]) == by->color(rank) && expect(by, all[r], tsr_comm_size(comm)).rank == r);
    return TSR_OK;
}

static tsr_status split_by_rules(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    tsr_comm *groups[RULES];
    for (int i = 0; i < RULES; i++) {
        TSR_TRY(tsr_comm_split(comm, rules[i].color(rank), rules[i].key(rank), &groups[i]));
        TSR_TRY(check_group(comm, &rules[i], groups[i]));
    }
    TSR_TRY(suite_check_usable(comm));
    for (int i = 0; i < RULES; i++)
        tsr_comm_destroy(groups[i]);
    return TSR_OK;
}

static void groups_have_the_ranks_of_a_color_by_key_then_rank(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, split_by_rules, NULL);
}

/* The world rank of a group's rank `rank`; -1: the group has no such rank. */
static int member_of(const rule *by, int like, int rank, int ranks)
{
    for (int r = 0; r < ranks; r++)
        if (by->color(r) == by->color(like) && expect(by, r, ranks).rank == rank)
            return r;
    return -1;
}

/* Whether two rules put `rank` into groups of the same ranks in the same order. */
static bool agree_on(const rule *a, const rule *b, int rank, int ranks)
{
    bool same = true;
    for (int r = 0; r < ranks; r++)
        same = same && member_of(a, rank, r, ranks) == member_of(b, rank, r, ranks);
    return same;
}

static tsr_status compare_groups(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), ranks = tsr_comm_size(comm);
    tsr_comm *groups[RULES];
    for (int i = 0; i < RULES; i++)
        TSR_TRY(tsr_comm_split(comm, rules[i].color(rank), rules[i].key(rank), &groups[i]));
    for (int i = 0; i < RULES; i++) {
        for (int j = 0; j < RULES; j++) {
            const bool both = groups[i] && groups[j];
            const int wanted = both ? agree_on(&rules[i], &rules[j], rank, ranks) : groups[i] == groups[j];
            CHECK(tsr_comm_congruent(groups[i], groups[j]) == wanted);
        }
        CHECK(tsr_comm_congruent(comm, groups[i]) == (groups[i] && agree_on(&rules[0], &rules[i], rank, ranks)));
    }
    for (int i = 0; i < RULES; i++)
        tsr_comm_destroy(groups[i]);
    return TSR_OK;
}

static void congruent_is_what_has_the_same_ranks_in_the_same_order(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++)
        suite_run(n, compare_groups, NULL);
}

/* Splits into halves until one rank is left, then uses the communicators in reverse order. */
static tsr_status split_down(tsr_comm *comm, void *arg)
{
    const int size = tsr_comm_size(comm), rank = tsr_comm_rank(comm);
    if (size == 1)
        return TSR_OK;
    tsr_comm *half;
    TSR_TRY(tsr_comm_split(comm, rank < size / 2, rank, &half));
    tsr_status status = split_down(half, arg);
    if (status == TSR_OK)
        status = suite_check_usable(half);
    tsr_comm_destroy(half);
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void groups_split_again(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, split_down, NULL);
}

/* Even ranks make many calls while odd ranks make few: groups do not wait for each other. */
static tsr_status go_at_own_pace(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, rank % 2, 0, &group));
    tsr_status status = TSR_OK;
    for (int i = 0; i < (rank % 2 ? 3 : 200) && status == TSR_OK; i++)
        status = suite_check_usable(group);
    tsr_comm_destroy(group);
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void groups_do_not_wait_for_one_another(void **state)
{
    (void)state;
    suite_run(5, go_at_own_pace, NULL);
}

static tsr_status use_memory(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    const size_t bytes = (size_t)rank * 1000;
    void *memory = NULL;
    TSR_TRY(tsr_comm_alloc(comm, bytes, &memory));
    CHECK(memory && (uintptr_t)memory % 64 == 0);
    memset(memory, rank, bytes);
    TSR_TRY(suite_check_usable(comm));
    tsr_comm_free(comm, memory, bytes);
    const tsr_status wanted = rank == 1 ? TSR_ERROR_MEMORY : TSR_ERROR_PEER;
    void *untouched = &memory;
    CHECK_ERROR(tsr_comm_alloc(comm, rank == 1 ? SIZE_MAX : 64, &untouched), wanted,
                rank == 1 ? "memory" : "rank 1 failed");
    CHECK(untouched == &memory);
    return suite_check_usable(comm);
}

static void memory_is_had_by_all_or_by_none(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++)
        suite_run(n, use_memory, NULL);
}

/* Of a communicator, a child and a grandchild the elder ones end first; some ranks are late about
 * it. */
static tsr_status outlive_elders(tsr_comm *comm, void *arg)
{
    const bool first_too = *(const bool *)arg;
    tsr_comm *elder, *child, *grandchild, *late;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &elder));
    TSR_TRY(tsr_comm_split(elder, 0, -tsr_comm_rank(comm), &child));
    TSR_TRY(tsr_comm_split(child, 0, 0, &grandchild));
    if (tsr_comm_rank(comm) % 2)
        suite_sleep(20);
    tsr_comm_destroy(elder);
    if (first_too)
        tsr_comm_destroy(comm);
    TSR_TRY(suite_check_usable(child));
    TSR_TRY(suite_check_usable(grandchild));
    CHECK(tsr_comm_congruent(child, grandchild));
    tsr_comm_destroy(child);
    TSR_TRY(suite_check_usable(grandchild));
    TSR_TRY(tsr_comm_split(grandchild, 0, 0, &late));
    tsr_comm_destroy(grandchild);
    const tsr_status status = suite_check_usable(late);
    tsr_comm_destroy(late);
    return status;
}

static void a_communicator_outlives_those_that_it_was_split_off(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++)
        for (int first_too = 0; first_too < 2; first_too++) {
            bool both = first_too;
            suite_run(n, outlive_elders, &both);
        }
}

int suite_split(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_have_the_ranks_of_a_color_by_key_then_rank),
        cmocka_unit_test(congruent_is_what_has_the_same_ranks_in_the_same_order),
        cmocka_unit_test(groups_split_again),
        cmocka_unit_test(groups_do_not_wait_for_one_another),
        cmocka_unit_test(memory_is_had_by_all_or_by_none),
        cmocka_unit_test(a_communicator_outlives_those_that_it_was_split_off),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
