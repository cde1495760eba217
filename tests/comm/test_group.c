/* Groups within a communicator: made once, found again by their ranks, also groups of all ranks and
 * of none. */
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "comm/core/object.h"
#include "comm/core/traits.h"
#include "comm/groups/group.h"
#include "comm_suite.h"

#include <tessera/mesh_comm.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 6 };

static void describe(const void *arg, char *text, size_t capacity)
{
    snprintf(text, capacity, "prepare of %s", (const char *)arg);
}

/* The contents of a slot in these tests. */
typedef struct shelf {
    void *memory;
    size_t bytes;
} shelf;

static const shelf *shelf_of(const tsr_group *group)
{
    return tsr_group_slot(group);
}

static bool lacks(const void *slot, const void *wanted)
{
    return *(const size_t *)wanted > ((const shelf *)slot)->bytes;
}

static tsr_status make(tsr_comm *comm, const void *slot, const void *wanted, void *made)
{
    shelf *grown = made;
    (void)comm;
    CHECK(lacks(slot, wanted) && !grown->memory);
    grown->bytes = *(const size_t *)wanted;
    grown->memory = malloc(grown->bytes);
    return grown->memory ? TSR_OK : TSR_ERROR_MEMORY;
}

static void release(tsr_comm *comm, void *slot)
{
    (void)comm;
    free(((const shelf *)slot)->memory);
}

static void take(tsr_comm *comm, void *slot, void *made)
{
    release(comm, slot);
    memcpy(slot, made, sizeof(shelf));
}

static bool is_busy(const void *slot)
{
    (void)slot;
    return false;
}

static const tsr_group_keeper keeper = {lacks, make, take, release, is_busy};

static tsr_status prepare(tsr_comm *comm, tsr_rank_set set, size_t scratch, uint64_t fingerprint, const char *words,
                          const tsr_group **out)
{
    const tsr_group_request request = {.set = set,
                                       .keeper = &keeper,
                                       .wanted = &scratch,
                                       .fingerprint = fingerprint,
                                       .describe = describe,
                                       .arg = words};
    tsr_group_answer answer;
    TSR_TRY(tsr_group_prepare(comm, &request, &answer));
    *out = answer.group;
    return TSR_OK;
}

/* The ranks of the communicator that are equal to `rank` modulo `step`. */
static tsr_rank_set every(int step, int rank, int size, int *ranks)
{
    tsr_rank_set set = {ranks, 0};
    for (int r = rank % step; r < size; r += step)
        ranks[set.count++] = r;
    return set;
}

static tsr_status check_members(tsr_comm *comm, const tsr_group *group, tsr_rank_set set)
{
    CHECK(group && group->count == set.count && tsr_comm_size(group->comm) == set.count);
    for (int i = 0; i < set.count; i++)
        CHECK(group->ranks ? group->ranks[i] == set.ranks[i] && group->position[set.ranks[i]] == i : set.ranks[i] == i);
    for (int r = 0, found = 0; r < tsr_comm_size(comm); r++) {
        const bool inside = found < set.count && set.ranks[found] == r;
        CHECK(inside || group->position[r] == -1);
        found += inside;
    }
    CHECK(tsr_comm_rank(group->comm) == (group->position ? group->position[tsr_comm_rank(comm)] : tsr_comm_rank(comm)));
    CHECK(tsr_group_find(comm, tsr_rank_set_hash(set)) == group);
    return suite_check_usable(group->comm);
}

static tsr_status make_and_find(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    for (int step = 1; step <= size; step++) {
        int ranks[MOST_RANKS];
        const tsr_rank_set set = every(step, rank, size, ranks);
        const tsr_group *group = NULL, *again = NULL;
        /* A set of one rank may be that of a smaller step, whose group is then found; the other
         * ranks make new groups. */
        const tsr_group *before = tsr_group_find(comm, tsr_rank_set_hash(set));
        CHECK(!before || set.count == 1);
        TSR_TRY(prepare(comm, set, 0, 5, "first", &group));
        CHECK(!before || group == before);
        TSR_TRY(check_members(comm, group, set));
        CHECK((group->comm == comm) == (step == 1));
        const tsr_comm *made = group->comm;
        TSR_TRY(prepare(comm, set, 0, 6, "second", &again));
        CHECK(again == group && group->comm == made);
    }
    return suite_check_usable(comm);
}

static void a_group_is_made_once_and_found_by_its_ranks(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, make_and_find, NULL);
}

/* Rank 0 is in no set, and only the last rank asks for scratch memory. */
static tsr_status grow_scratch(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    static const int others[MOST_RANKS] = {1, 2, 3, 4, 5, 6};
    const tsr_rank_set set = {rank > 0 ? others : NULL, rank > 0 ? size - 1 : 0};
    static const size_t wanted[] = {0, 100, 10, 5000};
    size_t most = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const tsr_group *group = NULL;
        const size_t bytes = rank == size - 1 ? wanted[i] : 0;
        most = bytes > most ? bytes : most;
        TSR_TRY(prepare(comm, set, bytes, 1, "scratch", &group));
        CHECK((!group) == (rank == 0));
        if (!group)
            continue;
        CHECK(shelf_of(group)->bytes >= most && (most == 0 || shelf_of(group)->memory));
        if (most > 0)
            memset(shelf_of(group)->memory, 1, most);
    }
    return TSR_OK;
}

static void scratch_grows_and_an_empty_set_takes_part(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++)
        suite_run(n, grow_scratch, NULL);
}

static tsr_status bring_other_fingerprint(tsr_comm *comm, void *arg)
{
    const int odd = *(const int *)arg, rank = tsr_comm_rank(comm);
    int ranks[MOST_RANKS];
    const tsr_rank_set set = every(2, rank, 5, ranks);
    const tsr_group *group = NULL;
    char base[64], other[64];
    snprintf(base, sizeof base, "rank %d calls prepare of %s, but", odd % 2, odd < 2 ? "other" : "usual");
    snprintf(other, sizeof other, "but rank %d calls prepare of %s", odd < 2 ? odd + 2 : odd,
             odd < 2 ? "usual" : "other");
    const tsr_status status = prepare(comm, set, 0, rank == odd ? 2 : 1, rank == odd ? "other" : "usual", &group);
    CHECK_ERROR(status, TSR_ERROR_ARGUMENT, base);
    CHECK(strstr(tsr_status_message(), other) && !group);
    TSR_TRY(suite_check_usable(comm));
    TSR_TRY(prepare(comm, set, 0, 1, "usual", &group));
    return check_members(comm, group, set);
}

static void other_fingerprints_in_a_set_are_named_on_all_ranks(void **state)
{
    (void)state;
    for (int odd = 0; odd < 5; odd++)
        suite_run(5, bring_other_fingerprint, &odd);
}

/* Rank 0 passes the set {0, 1}, ranks 1 and 2 the set {1, 2}. */
static tsr_status bring_other_set(tsr_comm *comm, void *arg)
{
    (void)arg;
    static const int first[] = {0, 1}, second[] = {1, 2};
    const tsr_rank_set set = {tsr_comm_rank(comm) == 0 ? first : second, 2};
    const tsr_group *group = NULL;
    CHECK_ERROR(prepare(comm, set, 0, 1, tsr_comm_rank(comm) == 0 ? "a" : "b", &group), TSR_ERROR_ARGUMENT,
                "rank 0 calls prepare of a, but rank 1 calls prepare of b");
    return suite_check_usable(comm);
}

static void sets_that_overlap_are_refused(void **state)
{
    (void)state;
    suite_run(3, bring_other_set, NULL);
}

static tsr_status fail_one(tsr_comm *comm, void *arg)
{
    const int victim = *(const int *)arg, rank = tsr_comm_rank(comm);
    int ranks[MOST_RANKS];
    const tsr_rank_set set = every(2, rank, tsr_comm_size(comm), ranks);
    const tsr_group *group = NULL;
    char words[64];
    snprintf(words, sizeof words, "rank %d failed: no plan", victim);
    const tsr_status local = rank == victim ? tsr_status_set(TSR_ERROR_MEMORY, "no plan") : TSR_OK;
    const tsr_group_request request = {.set = set, .fingerprint = 1, .local = local, .describe = describe, .arg = "it"};
    tsr_group_answer answer;
    CHECK_ERROR(tsr_group_prepare(comm, &request, &answer), rank == victim ? TSR_ERROR_MEMORY : TSR_ERROR_PEER,
                rank == victim ? "no plan" : words);
    CHECK(!group && !tsr_group_find(comm, tsr_rank_set_hash(set)));
    const tsr_status scratch = prepare(comm, set, rank == victim ? SIZE_MAX : 0, 1, "it", &group);
    CHECK(scratch == (rank == victim ? TSR_ERROR_MEMORY : TSR_ERROR_PEER));
    CHECK(!group && !tsr_group_find(comm, tsr_rank_set_hash(set)));
    TSR_TRY(prepare(comm, set, 0, 1, "it", &group));
    return check_members(comm, group, set);
}

static void a_failure_of_one_rank_leaves_no_group_anywhere(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++)
        for (int victim = 0; victim < n; victim++)
            suite_run(n, fail_one, &victim);
}

/* In every prepare the numbers of the group's own ranks count, not those of other ranks, whether
 * the group exists or not. */
static tsr_status ask_for_rounds(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int ranks[MOST_RANKS];
    const tsr_rank_set set = every(2, rank, size, ranks), none = {NULL, 0};
    for (int64_t big = 0; big < 2 * size; big++) {
        const bool left_out = big % 3 == 2 && rank % 2 == 1;
        const tsr_group_request request = {.set = left_out ? none : set,
                                           .rounds = rank == big % size ? 100 + big : rank,
                                           .describe = describe,
                                           .arg = "rounds"};
        tsr_group_answer answer = {0};
        TSR_TRY(tsr_group_prepare(comm, &request, &answer));
        CHECK(left_out == !answer.group);
        const int64_t most = rank % 2 == big % size % 2 ? 100 + big : set.ranks[set.count - 1];
        CHECK(answer.rounds == (left_out ? 0 : most));
    }
    return TSR_OK;
}

static void all_ranks_of_a_set_learn_its_largest_number_of_rounds(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++)
        suite_run(n, ask_for_rounds, NULL);
}

/* Begins a call at once or, with `halves`, in halves, which is the same for peers. */
static tsr_status begin(tsr_comm *comm, const tsr_call *mine, bool halves)
{
    if (!halves)
        return tsr_call_begin(comm, mine, describe, "phases");
    TSR_TRY(tsr_call_start(comm, mine));
    CHECK(!tsr_call_buffer(comm));
    return tsr_call_join(comm, mine, describe, "phases");
}

/* What a call publishes is visible to all ranks until its end, over any number of phases, and at
 * any pace of the ranks. */
static tsr_status go_in_phases(tsr_comm *comm, void *arg)
{
    const uintptr_t without_arrive = *(const uintptr_t *)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    if (!tsr_comm_is_direct(comm))
        return tsr_comm_agree(comm, 3, TSR_OK, describe, "phases");
    if (without_arrive >> rank & 1)
        comm->engine.direct.arrive = comm->engine.direct.await = NULL;
    for (uintptr_t round = 1; round <= 200; round++) {
        const tsr_call mine = {.fingerprint = round, .src = (const void *)(round * 16 + (uintptr_t)rank)};
        TSR_TRY(begin(comm, &mine, (round >> rank) % 2));
        for (uintptr_t phase = 0; phase < round % 4; phase++)
            TSR_TRY(tsr_call_middle(comm, TSR_OK));
        for (int r = 0; r < size; r++)
            CHECK(tsr_call_of(comm, r)->src == (const void *)(round * 16 + (uintptr_t)r));
        const bool fails = round % 5 == 0 && (uintptr_t)rank == round % (uintptr_t)size;
        const tsr_status local = fails ? tsr_status_set(TSR_ERROR_IO, "round %d", (int)round) : TSR_OK;
        const tsr_status status = round % 2 ? tsr_call_end(comm, local) : tsr_call_middle(comm, local);
        CHECK(status == (round % 5 ? TSR_OK : fails ? TSR_ERROR_IO : TSR_ERROR_PEER));
        if (round % 2 == 0 && status == TSR_OK)
            TSR_TRY(tsr_call_end(comm, TSR_OK));
    }
    return TSR_OK;
}

static void calls_of_several_phases_keep_in_step(void **state)
{
    (void)state;
    uintptr_t without_arrive[] = {0, 5, 15};
    for (int n = 1; n <= 4; n++)
        for (size_t i = 0; i < sizeof without_arrive / sizeof *without_arrive; i++)
            suite_run(n, go_in_phases, &without_arrive[i]);
}

/* Disagreement and the victim's failure are reported by join, in the words of the start. */
static tsr_status join_wrongly(tsr_comm *comm, void *arg)
{
    const int victim = *(const int *)arg, rank = tsr_comm_rank(comm);
    if (!tsr_comm_is_direct(comm))
        return TSR_OK;
    const tsr_call other = {.fingerprint = rank == victim};
    TSR_TRY(tsr_call_start(comm, &other));
    CHECK_ERROR(tsr_call_start(comm, &other), TSR_ERROR_STATE, "has started a call");
    CHECK_ERROR(tsr_call_join(comm, &other, describe, rank == victim ? "b" : "a"), TSR_ERROR_ARGUMENT,
                victim ? "rank 0 calls prepare of a, but rank"
                       : "rank 0 calls prepare of b, but rank 1 calls prepare of a");
    CHECK_ERROR(tsr_call_join(comm, &other, describe, "a"), TSR_ERROR_STATE, "has started no call");
    char words[64];
    snprintf(words, sizeof words, "rank %d failed: no luck", victim);
    const tsr_call failed = {.status = rank == victim ? tsr_status_set(TSR_ERROR_DEVICE, "no luck") : TSR_OK};
    TSR_TRY(tsr_call_start(comm, &failed));
    tsr_status_set(TSR_ERROR_IO, "something else");
    CHECK_ERROR(tsr_call_join(comm, &failed, describe, "a"), rank == victim ? TSR_ERROR_DEVICE : TSR_ERROR_PEER,
                rank == victim ? "no luck" : words);
    return suite_check_usable(comm);
}

static void what_is_wrong_with_a_started_call_comes_from_its_join(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++)
        for (int victim = 0; victim < n; victim++)
            suite_run(n, join_wrongly, &victim);
}

/* A group of all ranks needs no split; a smaller group is refused on every rank, and nothing is
 * broken. */
static tsr_status prepare_lent(tsr_comm *comm, void *arg)
{
    (void)arg;
    int ranks[MOST_RANKS];
    const tsr_group *group = NULL;
    comm->engine.table.split = NULL;
    const tsr_rank_set all = every(1, 0, tsr_comm_size(comm), ranks);
    TSR_TRY(prepare(comm, all, 64, 5, "all", &group));
    CHECK(group->comm == comm && shelf_of(group)->bytes >= 64);
    const tsr_group *const whole = group;
    const tsr_rank_set half = every(2, tsr_comm_rank(comm), tsr_comm_size(comm), ranks);
    CHECK_ERROR(prepare(comm, half, 0, 5, "half", &group), TSR_ERROR_UNSUPPORTED, "is lent and may not be split");
    CHECK(group == whole);
    return suite_check_usable(comm);
}

static void a_lent_communicator_serves_all_its_ranks_and_no_fewer(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++)
        suite_run(n, prepare_lent, NULL);
}

/* The ranks of a set in falling order; of all ranks too, which then are another group than the
 * communicator itself. */
static tsr_status make_falling(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    for (int step = 1; step <= 2; step++) {
        int ranks[MOST_RANKS], falling[MOST_RANKS];
        const tsr_rank_set rising = every(step, rank, size, ranks);
        const tsr_rank_set set = {falling, rising.count};
        const tsr_group *up = NULL, *down = NULL, *again = NULL;
        for (int i = 0; i < set.count; i++)
            falling[i] = ranks[set.count - 1 - i];
        TSR_TRY(prepare(comm, set, 64, 5, "falling", &down));
        TSR_TRY(prepare(comm, rising, 0, 5, "rising", &up));
        TSR_TRY(prepare(comm, set, 0, 5, "again", &again));
        CHECK(again == down && (set.count == 1) == (up == down) && tsr_comm_size(down->comm) == set.count);
        CHECK(set.count == 1 || (down->comm != comm && shelf_of(down)->bytes >= 64 && shelf_of(up)->bytes == 0));
        for (int i = 0; i < set.count; i++)
            CHECK((size == 1 || down->ranks[i] == falling[i]) && tsr_group_position(down, falling[i]) == i);
        CHECK(tsr_comm_rank(down->comm) == tsr_group_position(down, rank));
        TSR_TRY(suite_check_usable(down->comm));
    }
    return TSR_OK;
}

static void the_order_of_a_set_is_that_of_its_group(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, make_falling, NULL);
}

/* Sets are compared as in prepare, but no group is made. */
static tsr_status compare_only(tsr_comm *comm, void *arg)
{
    (void)arg;
    int ranks[MOST_RANKS];
    const tsr_rank_set set = every(2, tsr_comm_rank(comm), tsr_comm_size(comm), ranks);
    tsr_group_request request = {.set = set, .fingerprint = 5, .describe = describe, .arg = "pairs"};
    TSR_TRY(tsr_group_compare(comm, &request));
    CHECK(!tsr_group_find(comm, tsr_rank_set_hash(set)));
    request.fingerprint += tsr_comm_rank(comm) == 2;
    request.arg = tsr_comm_rank(comm) == 2 ? "others" : "pairs";
    CHECK_ERROR(tsr_group_compare(comm, &request), TSR_ERROR_ARGUMENT,
                "rank 0 calls prepare of pairs, but rank 2 calls prepare of others");
    return suite_check_usable(comm);
}

static void sets_can_be_compared_without_groups(void **state)
{
    (void)state;
    for (int n = 3; n <= MOST_RANKS; n++)
        suite_run(n, compare_only, NULL);
}

/* A mesh over a communicator that may not be split. */
static tsr_status use_lent_mesh(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh, *sub = NULL;
    int64_t sum = 1;
    comm->engine.table.split = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "a=2,b=2", &mesh));
    CHECK_ERROR(tsr_mesh_split(mesh, "a", &sub), TSR_ERROR_UNSUPPORTED, "tsr_mesh_split: the mesh's communicator of");
    CHECK_ERROR(tsr_mesh_all_reduce_i64(mesh, "a", &sum, TSR_SUM), TSR_ERROR_UNSUPPORTED, "lent and may not be split");
    TSR_TRY(tsr_mesh_all_reduce_i64(mesh, NULL, &sum, TSR_SUM));
    CHECK(!sub && sum == 4);
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void along_all_dims_a_lent_communicator_serves(void **state)
{
    (void)state;
    suite_run(4, use_lent_mesh, NULL);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_made_once_and_found_by_its_ranks),
        cmocka_unit_test(scratch_grows_and_an_empty_set_takes_part),
        cmocka_unit_test(other_fingerprints_in_a_set_are_named_on_all_ranks),
        cmocka_unit_test(sets_that_overlap_are_refused),
        cmocka_unit_test(a_failure_of_one_rank_leaves_no_group_anywhere),
        cmocka_unit_test(calls_of_several_phases_keep_in_step),
        cmocka_unit_test(what_is_wrong_with_a_started_call_comes_from_its_join),
        cmocka_unit_test(a_lent_communicator_serves_all_its_ranks_and_no_fewer),
        cmocka_unit_test(the_order_of_a_set_is_that_of_its_group),
        cmocka_unit_test(sets_can_be_compared_without_groups),
        cmocka_unit_test(along_all_dims_a_lent_communicator_serves),
        cmocka_unit_test(all_ranks_of_a_set_learn_its_largest_number_of_rounds),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
