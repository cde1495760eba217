#include "comm/groups/group.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "comm/collectives/collectives.h"
#include "comm/core/agree.h"
#include "comm/core/arrays.h"
#include "comm/core/traits.h"
#include "comm/groups/split.h"

#include <string.h>

#define WORDS 256

/* Rank `odd`, a member of the set that rank `base` brought, brought a different set or
 * fingerprint. */
typedef struct mismatch {
    int base, odd;
} mismatch;

uint64_t tsr_rank_set_hash(tsr_rank_set set)
{
    uint64_t hash = tsr_hash_word(TSR_HASH_SEED, (uint64_t)set.count);
    for (int i = 0; i < set.count; i++)
        hash = tsr_hash_word(hash, (uint64_t)set.ranks[i]);
    return hash ? hash : 1;
}

/* The entry with this hash, or NULL. No set has the hash 0, which is that of the whole communicator
 * until it is prepared. */
static tsr_group_entry *find_entry(tsr_comm *comm, uint64_t hash)
{
    if (hash == comm->whole.hash)
        return &comm->whole;
    for (tsr_group_entry *entry = comm->groups; entry; entry = entry->next)
        if (entry->hash == hash)
            return entry;
    return NULL;
}

const tsr_group *tsr_group_find(const tsr_comm *comm, uint64_t hash)
{
    const tsr_group_entry *entry = find_entry((tsr_comm *)comm, hash);
    return entry ? &entry->group : NULL;
}

const tsr_group *tsr_group_whole(const tsr_comm *comm)
{
    return comm->whole.hash ? &comm->whole.group : NULL;
}

/* The index of this rank in its set; -1: it is not there. */
static int find_own(const tsr_comm *comm, tsr_rank_set set)
{
    for (int i = 0; i < set.count; i++)
        if (set.ranks[i] == comm->rank)
            return i;
    return -1;
}

/* A rank that is listed twice needs no check: fewer ranks bring the set than it has members. */
static tsr_status check_set(const tsr_comm *comm, tsr_rank_set set)
{
    for (int i = 0; i < set.count; i++)
        if (set.ranks[i] < 0 || set.ranks[i] >= comm->size)
            return tsr_status_set(TSR_ERROR_INTERNAL, "group: ranks[%d] is %d, not a rank of 0 to %d", i, set.ranks[i],
                                  comm->size - 1);
    return set.count == 0 || find_own(comm, set) >= 0
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_INTERNAL, "group: rank %d is not in its own set", comm->rank);
}

/* True for all ranks of the communicator in their own order. */
static bool is_whole(const tsr_comm *comm, tsr_rank_set set)
{
    if (set.count != comm->size)
        return false;
    for (int i = 0; i < set.count; i++)
        if (set.ranks[i] != i)
            return false;
    return true;
}

static bool has_ranks(const tsr_comm *comm, const tsr_group_entry *entry, tsr_rank_set set)
{
    const tsr_group *group = &entry->group;
    if (!group->ranks)
        return is_whole(comm, set);
    return group->count == set.count && memcmp(group->ranks, set.ranks, (size_t)set.count * sizeof *set.ranks) == 0;
}

static tsr_status check_hash(tsr_comm *comm, tsr_rank_set set)
{
    const tsr_group_entry *entry = find_entry(comm, tsr_rank_set_hash(set));
    if (!entry || has_ranks(comm, entry, set))
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED,
        "group: this set of %d ranks has the hash of another of %d ranks, which this communicator knows already; "
        "use a communicator of its own for one of them (tsr_comm_split)",
        set.count, entry->group.count);
}

/* An operation in flight uses the slot, which prepare may have to change. */
static tsr_status check_finished(tsr_comm *comm, tsr_rank_set set)
{
    const tsr_group_entry *entry = set.count > 0 ? find_entry(comm, tsr_rank_set_hash(set)) : NULL;
    if (!entry || !tsr_group_is_busy(&entry->group))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_STATE,
                          "prepare: what was started over these %d ranks is not finished: call tsr_plan_finish() first",
                          set.count);
}

/* Its slot, all 0, stands for the slot of a group that is not made yet. */
static const tsr_group unmade;

static bool is_lacking(const tsr_group_request *request, const tsr_group_entry *entry)
{
    return request->keeper && request->keeper->lacks(entry ? entry->group.slot : unmade.slot, request->wanted);
}

static tsr_group_record record_of(tsr_comm *comm, const tsr_group_request *request)
{
    const int count = request->set.count;
    const uint64_t hash = tsr_rank_set_hash(request->set);
    const tsr_group_entry *entry = count > 0 ? find_entry(comm, hash) : NULL;
    return (tsr_group_record){
        .hash = hash,
        .fingerprint = count > 0 ? request->fingerprint : 0,
        .rounds = request->rounds,
        .count = count,
        .missing = count > 0 && !entry && !is_whole(comm, request->set),
        .growing = count > 0 && is_lacking(request, entry),
        .odd = -1,
    };
}

/* Fills comm->records with the records of all ranks; `mine` is this rank's. */
static tsr_status share_records(tsr_comm *comm, tsr_group_record mine)
{
    return tsr_gather_bytes(comm, &mine, comm->records, sizeof mine);
}

/* The lowest member of this rank's set that brought a different set or fingerprint, or -1. */
static int find_odd(const tsr_comm *comm, tsr_rank_set set, const tsr_group_record *mine)
{
    for (int i = 0; i < set.count; i++) {
        const tsr_group_record *theirs = &comm->records[set.ranks[i]];
        if (theirs->hash != mine->hash || theirs->count != mine->count || theirs->fingerprint != mine->fingerprint)
            return set.ranks[i];
    }
    return -1;
}

static int order(const tsr_group_record *x, const tsr_group_record *y)
{
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->fingerprint != y->fingerprint)
        return x->fingerprint < y->fingerprint ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

static int by_record(const void *a, const void *b, const void *records)
{
    const tsr_group_record *at = records;
    return order(&at[*(const size_t *)a], &at[*(const size_t *)b]);
}

/* Sets are consistent if and only if each is brought, with one fingerprint, by as many ranks as it
 * has members: a rank always is in its own set. All ranks see the same records, so all come to the
 * same answer. Sorting makes equal records adjacent. */
static bool is_consistent(tsr_comm *comm)
{
    const tsr_group_record *records = comm->records;
    size_t *ranks = comm->cursors;
    const size_t size = (size_t)comm->size;
    for (size_t r = 0; r < size; r++)
        ranks[r] = r;
    tsr_sort_array(ranks, size, sizeof *ranks, by_record, records);
    for (size_t begin = 0, end; begin < size; begin = end) {
        const tsr_group_record *first = &records[ranks[begin]];
        for (end = begin + 1; end < size && order(first, &records[ranks[end]]) == 0;)
            end++;
        if (first->count > 0 && end - begin != (size_t)first->count)
            return false;
    }
    return true;
}

/* The mismatch that the lowest rank found; all ranks report this one. */
static mismatch first_mismatch(const tsr_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (comm->records[r].odd >= 0)
            return (mismatch){r, comm->records[r].odd};
    return (mismatch){0, 0};
}

static tsr_status explain_mismatch(tsr_comm *comm, const tsr_group_request *request, tsr_group_record mine)
{
    char words[2][WORDS] = {"", ""};
    mine.odd = find_odd(comm, request->set, &mine);
    TSR_TRY(share_records(comm, mine));
    const mismatch found = first_mismatch(comm);
    request->describe(request->arg, words[comm->rank == found.odd], WORDS);
    TSR_TRY(tsr_broadcast_bytes(comm, words[0], WORDS, found.base));
    TSR_TRY(tsr_broadcast_bytes(comm, words[1], WORDS, found.odd));
    return tsr_disagreement(tsr_comm_name(comm, found.base), words[0], tsr_comm_name(comm, found.odd), words[1]);
}

static bool anybody(const tsr_comm *comm, bool (*holds)(const tsr_group_record *record))
{
    for (int r = 0; r < comm->size; r++)
        if (holds(&comm->records[r]))
            return true;
    return false;
}

static bool is_missing(const tsr_group_record *record)
{
    return record->missing;
}

static bool is_growing(const tsr_group_record *record)
{
    return record->growing;
}

/* True if a member of this rank's set does not hold the group. */
static bool set_is_missing(const tsr_comm *comm, tsr_rank_set set)
{
    for (int i = 0; i < set.count; i++)
        if (comm->records[set.ranks[i]].missing)
            return true;
    return false;
}

/* Makes an entry and its lists in one block: `set.count` ranks, as many names, then one position
 * per rank of `comm`. Its communicator is not set. */
static tsr_status make_entry(const tsr_comm *comm, tsr_rank_set set, uint64_t hash, tsr_group_entry **out)
{
    const size_t lists = (2 * (size_t)set.count + (size_t)comm->size) * sizeof(int);
    tsr_group_entry *entry;
    TSR_TRY(tsr_allocate_zeroed(comm->context, sizeof *entry + lists, (void **)&entry));
    int *ranks = (int *)(entry + 1), *names = ranks + set.count, *position = names + set.count;
    memcpy(ranks, set.ranks, (size_t)set.count * sizeof *ranks);
    for (int r = 0; r < comm->size; r++)
        position[r] = -1;
    for (int i = 0; i < set.count; i++) {
        names[i] = tsr_comm_name(comm, ranks[i]);
        position[ranks[i]] = i;
    }
    entry->hash = hash;
    entry->names = names;
    entry->group = (tsr_group){.ranks = ranks, .position = position, .count = set.count, .choices = comm->choices};
    *out = entry;
    return TSR_OK;
}

/* Stores what was made. If this rank held the group already, its lists stay, so that pointers to
 * them stay valid, and it takes the new communicator. */
static void install(tsr_comm *comm, tsr_group_entry *entry, tsr_group_entry *held, tsr_group *grown)
{
    tsr_group_entry *kept = held ? held : entry;
    if (held && entry) {
        tsr_comm_destroy(held->group.comm);
        held->group.comm = entry->group.comm;
        held->group.comm->names = held->names;
        entry->group.comm = NULL;
        tsr_group_free(comm, entry);
    } else if (entry) {
        entry->group.comm->names = entry->names;
        entry->next = comm->groups;
        comm->groups = entry;
    }
    if (grown->keeper) {
        kept->group.keeper = grown->keeper;
        grown->keeper->take(comm, kept->group.slot, grown->slot);
    }
}

/* Makes what the slot of a group lacks, in the slot of `grown`. */
static tsr_status grow_slot(tsr_comm *comm, const tsr_group_request *request, const tsr_group_entry *held,
                            tsr_group *grown)
{
    grown->keeper = request->keeper;
    return grown->keeper->make(comm, held ? held->group.slot : unmade.slot, request->wanted, grown->slot);
}

/* Makes what is missing, on every rank or on none. */
static tsr_status make_groups(tsr_comm *comm, const tsr_group_request *request, const tsr_group_record *mine)
{
    const tsr_rank_set set = request->set;
    const bool missing = anybody(comm, is_missing);
    if (missing && !tsr_comm_can_split(comm))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "prepare: some of the %d ranks need a communicator of their own, but this one of \"%s\" "
                              "is lent and may not "
                              "be split: let all of its ranks take part",
                              comm->size, comm->engine.table.name);
    const bool make = set_is_missing(comm, set);
    tsr_group_entry *entry = NULL, *held = is_whole(comm, set) ? &comm->whole
                                           : set.count > 0     ? find_entry(comm, mine->hash)
                                                               : NULL;
    tsr_comm *made = NULL;
    tsr_group grown = {.keeper = NULL};
    tsr_status local = make ? make_entry(comm, set, mine->hash, &entry) : TSR_OK;
    if (local == TSR_OK && mine->growing)
        local = grow_slot(comm, request, held, &grown);
    tsr_status status = tsr_comm_agree(comm, TSR_HASH_SEED, local, request->describe, request->arg);
    if (status == TSR_OK && missing)
        status = tsr_comm_split_group(comm, make ? set.ranks[0] : -1, find_own(comm, set), &made);
    if (status != TSR_OK) {
        tsr_group_free(comm, entry);
        tsr_group_release_slot(comm, &grown);
        return status;
    }
    if (entry)
        entry->group.comm = made;
    install(comm, entry, held, &grown);
    return TSR_OK;
}

/* The largest `rounds` in the records of the set's ranks; 0 for an empty set. */
static int64_t most_rounds(const tsr_comm *comm, tsr_rank_set set)
{
    int64_t most = 0;
    for (int i = 0; i < set.count; i++)
        most = tsr_max_i64(most, comm->records[set.ranks[i]].rounds);
    return most;
}

/* Compares the sets of all ranks; `*mine` becomes this rank's record. */
static tsr_status compare_sets(tsr_comm *comm, const tsr_group_request *request, tsr_group_record *mine)
{
    *mine = record_of(comm, request);
    TSR_TRY(share_records(comm, *mine));
    return is_consistent(comm) ? TSR_OK : explain_mismatch(comm, request, *mine);
}

/* Makes what the groups of all ranks lack. */
static tsr_status prepare_group(tsr_comm *comm, const tsr_group_request *request, tsr_group_answer *out)
{
    const tsr_rank_set set = request->set;
    tsr_group_record mine;
    TSR_TRY(compare_sets(comm, request, &mine));
    const int64_t rounds = most_rounds(comm, set);
    if (anybody(comm, is_missing) || anybody(comm, is_growing))
        TSR_TRY(make_groups(comm, request, &mine));
    if (is_whole(comm, set))
        comm->whole.hash = mine.hash;
    *out = (tsr_group_answer){set.count > 0 ? tsr_group_find(comm, mine.hash) : NULL, rounds};
    return TSR_OK;
}

/* Afterwards all ranks are known to have comm->records and comm->cursors. `local` is this rank's
 * status so far. */
static tsr_status begin_comparison(tsr_comm *comm, const tsr_group_request *request, const char *name, tsr_status local)
{
    if (local == TSR_OK)
        local = tsr_cursors_reserve(comm);
    if (local == TSR_OK)
        local = tsr_records_create(comm);
    return tsr_comm_agree(comm, tsr_hash_text(TSR_HASH_SEED, name), local, request->describe, request->arg);
}

tsr_status tsr_group_prepare(tsr_comm *comm, const tsr_group_request *request, tsr_group_answer *out)
{
    const tsr_rank_set set = request->set;
    tsr_status local = request->local;
    if (local == TSR_OK)
        local = check_set(comm, set);
    if (local == TSR_OK)
        local = check_hash(comm, set);
    if (local == TSR_OK)
        local = check_finished(comm, set);
    tsr_status status = begin_comparison(comm, request, "prepare", local);
    if (status == TSR_OK)
        status = prepare_group(comm, request, out);
    tsr_records_destroy(comm);
    return status;
}

tsr_status tsr_group_compare(tsr_comm *comm, const tsr_group_request *request)
{
    tsr_group_record mine;
    const tsr_status local = request->local == TSR_OK ? check_set(comm, request->set) : request->local;
    tsr_status status = begin_comparison(comm, request, "compare", local);
    if (status == TSR_OK)
        status = compare_sets(comm, request, &mine);
    tsr_records_destroy(comm);
    return status;
}
