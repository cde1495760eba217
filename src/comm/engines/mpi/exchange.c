#include "comm/engines/mpi/exchange.h"

#include "base/checked.h"
#include "comm/engines/mpi/calls/error.h"
#include "comm/engines/mpi/loss.h"
#include "comm/engines/mpi/notice.h"
#include "comm/engines/mpi/transit.h"
#include "comm/engines/mpi/world.h"

#include <tessera/sys/log.h>
#include <tessera/sys/memory.h>

#include <stdio.h>
#include <string.h>

/* A sentence names at most this many peers. */
#define LATE_NAMED 4

/* After QUICK_LOOKS polls a waiting rank checks every QUESTION_MS whether its mates live, and shows
 * them for which rank it waits. */
#define QUESTION_MS 200
#define QUICK_LOOKS 256

/* Messages that a rank sent before it left arrive within this time after its departure is known. */
#define LAST_WORDS_MS 500

/* Once an exchange is given up, transfers that both sides have begun, by MPI or out of trays, have
 * this long in all to end. A peer that takes longer is stopped, dead or cut off, or has given up
 * before this rank's data came. */
#define SETTLE_MS 2000

/* Places the arrays in `block` and returns their bytes; `block` NULL: only counts. */
static size_t place_arrays(tsr_mpi_exchange *e, char *block, size_t capacity, int ranks)
{
    size_t used = tsr_round_up(sizeof *e->memory, TSR_LINE);
    e->transits = block ? (tsr_mpi_transit *)(block + used) : NULL;
    used += tsr_round_up(capacity * sizeof *e->transits, TSR_LINE);
    e->rows = block ? (tsr_message *)(block + used) : NULL;
    used += tsr_round_up((size_t)ranks * sizeof *e->rows, TSR_LINE);
    int **const numbers[] = {&e->turns[0], &e->turns[1]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = block ? (int *)(block + used) : NULL;
        used += tsr_round_up((size_t)ranks * sizeof **numbers[i], TSR_LINE);
    }
    e->letters = block ? (tsr_mpi_letter *)(block + used) : NULL;
    return used + capacity * sizeof *e->letters;
}

tsr_status tsr_mpi_exchange_reserve(tsr_mpi_handle *handle, size_t count)
{
    tsr_mpi_exchange *e = &handle->exchange, measured;
    if (count <= e->capacity)
        return TSR_OK;
    void *memory;
    TSR_TRY(tsr_allocate(handle->world->context, place_arrays(&measured, NULL, count, handle->ranks), &memory));
    tsr_release(handle->world->context, e->memory);
    place_arrays(e, memory, count, handle->ranks);
    e->memory = memory;
    e->capacity = count;
    return TSR_OK;
}

void tsr_mpi_exchange_free(tsr_mpi_handle *handle)
{
    tsr_release(handle->context, handle->exchange.memory);
}

static void end_transit(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->course = TSR_MPI_IS_OVER;
    handle->exchange.under_way--;
}

static tsr_mpi_delivery lay(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    return tsr_mpi_trays_lay(&handle->trays, transit->message->peer, transit->message->data, transit->message->bytes);
}

static tsr_mpi_delivery take_from_tray(tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    const tsr_message *message = transit->message;
    size_t sent = 0;
    const tsr_mpi_delivery delivery =
        tsr_mpi_trays_take(&handle->trays, message->peer, message->data, message->bytes, &sent);
    if (delivery == TSR_MPI_THROUGH && sent != message->bytes)
        tsr_mpi_transit_note_length(handle, transit, sent);
    return delivery;
}

/* Tries to pass the message through the sender's tray. Ranks of different nodes have no tray. */
static tsr_mpi_delivery deliver_by_tray(tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    if (!tsr_mpi_trays_reach(&handle->trays, transit->message->peer))
        return TSR_MPI_BY_MPI;
    return transit->receives ? take_from_tray(handle, transit) : lay(handle, transit);
}

static tsr_status check_mate(const tsr_mpi_handle *handle, int mate)
{
    if (!tsr_mpi_trays_is_gone(&handle->trays, mate))
        return TSR_OK;
    char name[64];
    return tsr_status_set(TSR_ERROR_PEER, "%s could not make the communicator, so it is broken",
                          tsr_mpi_name(handle, mate, name));
}

static tsr_status say_given_up(const tsr_mpi_handle *handle, int mate)
{
    char name[64];
    return tsr_status_set(TSR_ERROR_PEER, "%s has given up what it sends, so this communicator is broken",
                          tsr_mpi_name(handle, mate, name));
}

/* Begins a message if those before it to (from) its peer have begun and the tray is ready. Then
 * `*some` becomes true. */
static tsr_status begin_transit(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some)
{
    int *turn = &handle->exchange.turns[transit->receives][transit->message->peer];
    if (transit->turn != *turn)
        return TSR_OK;
    const tsr_mpi_delivery delivery = deliver_by_tray(handle, transit);
    if (delivery == TSR_MPI_NOT_YET)
        return check_mate(handle, transit->message->peer);
    ++*turn;
    *some = true;
    if (delivery == TSR_MPI_BY_MPI)
        return tsr_mpi_transit_begin(handle, transit);
    if (delivery == TSR_MPI_LIES)
        transit->course = TSR_MPI_LAID;
    else if (delivery == TSR_MPI_THROUGH)
        end_transit(handle, transit);
    else
        return say_given_up(handle, transit->message->peer);
    return TSR_OK;
}

static tsr_status note_taken(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some)
{
    if (!tsr_mpi_trays_is_empty(&handle->trays, transit->message->peer))
        return check_mate(handle, transit->message->peer);
    end_transit(handle, transit);
    *some = true;
    return TSR_OK;
}

static void list_transits(tsr_mpi_handle *handle, const tsr_message *messages, size_t count, bool receives)
{
    tsr_mpi_exchange *e = &handle->exchange;
    int *turns = e->turns[receives];
    for (size_t i = 0; i < count; i++)
        turns[messages[i].peer] = 0;
    for (size_t i = 0; i < count; i++, e->count++) {
        tsr_mpi_transit *transit = &e->transits[e->count];
        *transit = (tsr_mpi_transit){.message = &messages[i], .receives = receives, .turn = turns[messages[i].peer]++};
        transit->letter = &e->letters[e->count];
        for (int way = 0; way < TSR_MPI_WAYS; way++)
            transit->requests[way] = MPI_REQUEST_NULL;
    }
    for (size_t i = 0; i < count; i++)
        turns[messages[i].peer] = 0;
    e->under_way += count;
}

/* The first message whose peer is above this rank. Lists are sorted by peer where order matters for
 * speed, so ranks that begin there begin with different peers. */
static size_t first_of(const tsr_mpi_handle *handle, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (handle->exchange.transits[i].message->peer > handle->rank)
            return i;
    return begin;
}

static tsr_status begin_range(tsr_mpi_handle *handle, size_t begin, size_t end)
{
    const size_t count = end - begin, first = count ? first_of(handle, begin, end) : begin;
    for (size_t i = 0; i < count; i++) {
        const size_t at = first + i < end ? first + i : first + i - count;
        bool some;
        TSR_TRY(begin_transit(handle, &handle->exchange.transits[at], &some));
    }
    return TSR_OK;
}

static tsr_status check_device(tsr_device device)
{
    if (!device.driver)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "mpi: this engine moves host memory alone; ranks with GPUs are NCCL's");
}

static tsr_status begin_all(tsr_mpi_handle *handle, const tsr_message *sends, size_t send_count,
                            const tsr_message *receives, size_t receive_count)
{
    tsr_mpi_exchange *e = &handle->exchange;
    TSR_TRY(tsr_mpi_exchange_reserve(handle, send_count + receive_count));
    list_transits(handle, receives, receive_count, true);
    list_transits(handle, sends, send_count, false);
    TSR_TRY(begin_range(handle, 0, receive_count));
    return begin_range(handle, receive_count, e->count);
}

/* If an exchange cannot begin, messages that peers have sent would be taken for those of a later
 * exchange, so the communicator breaks. */
static tsr_status start_exchange(tsr_mpi_handle *handle, const tsr_message *sends, size_t send_count,
                                 const tsr_message *receives, size_t receive_count, tsr_device device)
{
    tsr_mpi_exchange *e = &handle->exchange;
    TSR_TRY(check_device(device));
    TSR_TRY(tsr_mpi_check_whole(handle));
    e->count = e->under_way = 0;
    e->mismatch = TSR_OK;
    if (e->shown)
        tsr_mpi_trays_show_awaited(&handle->trays, -1);
    e->shown = false;
    const tsr_status status = begin_all(handle, sends, send_count, receives, receive_count);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_mpi_exchange_drop(handle);
    return tsr_mpi_break(handle, status);
}

static bool is_quiet(tsr_mpi_exchange *e)
{
    bool quiet = true;
    for (size_t i = 0; i < e->count; i++)
        quiet = tsr_mpi_transit_is_quiet(&e->transits[i], false) && quiet;
    return quiet;
}

/* Keeps the exchange's memory in the world's list, because MPI still uses some of it: letters that
 * no peer has received, say. */
static void bury_exchange(tsr_mpi_handle *handle)
{
    tsr_mpi_exchange *e = &handle->exchange;
    tsr_mpi_grave *grave = e->memory;
    *grave = (tsr_mpi_grave){handle->world->graves, e->transits, e->count};
    handle->world->graves = grave;
    e->memory = NULL;
    e->capacity = 0;
}

/* True if no mate copies, or will copy, what this rank has laid, and MPI no longer uses memory of
 * the caller. */
static bool is_settled(tsr_mpi_handle *handle)
{
    bool settled = true;
    for (size_t i = 0; i < handle->exchange.count; i++) {
        tsr_mpi_transit *transit = &handle->exchange.transits[i];
        const bool laid = transit->course == TSR_MPI_LAID;
        settled = (laid ? tsr_mpi_trays_withdraw(&handle->trays, transit->message->peer)
                        : tsr_mpi_transit_is_quiet(transit, true)) &&
                  settled;
    }
    return settled;
}

/*
 * Cancels receives, which MPI does at once unless they were matched, and withdraws messages from
 * trays unless a mate is copying them. Memory of the caller that was matched belongs to a transfer
 * for which both sides are there (transit.h), so it ends soon, whichever of them gives up: both
 * poll until their transfers have ended. One exception: if a receiver gives up between its token
 * and the data, it takes its memory back. Then the sender waits in vain, since no receive will ever
 * match its data: a broken group keeps its tags. Whatever else has not ended by the deadline is
 * between this rank and a rank that is stopped, dead or cut off.
 */
static void take_back(tsr_mpi_handle *handle)
{
    tsr_mpi_exchange *e = &handle->exchange;
    const tsr_deadline deadline = tsr_deadline_in(SETTLE_MS);
    for (size_t i = 0; i < e->count; i++)
        tsr_mpi_transit_cancel(&e->transits[i]);
    for (int look = 0; !is_settled(handle) && !tsr_deadline_passed(deadline); look++)
        tsr_pause(look);
    if (!is_quiet(e))
        bury_exchange(handle);
}

void tsr_mpi_exchange_drop(tsr_mpi_handle *handle)
{
    tsr_mpi_exchange *e = &handle->exchange;
    take_back(handle);
    e->count = e->under_way = 0;
    e->started = false;
}

bool tsr_mpi_exchange_dig(tsr_mpi_world *world)
{
    for (tsr_mpi_grave **link = &world->graves; *link;) {
        tsr_mpi_grave *grave = *link;
        tsr_mpi_exchange e = {.transits = grave->transits, .count = grave->count};
        if (is_quiet(&e)) {
            *link = grave->next;
            tsr_release(world->context, grave);
        } else {
            link = &grave->next;
        }
    }
    return !world->graves;
}

static tsr_status look_at(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some)
{
    if (transit->course == TSR_MPI_WAITS)
        return begin_transit(handle, transit, some);
    if (transit->course == TSR_MPI_LAID)
        return note_taken(handle, transit, some);
    if (transit->course != TSR_MPI_TRAVELS)
        return TSR_OK;
    TSR_TRY(tsr_mpi_transit_look(handle, transit, some));
    handle->exchange.under_way -= transit->course == TSR_MPI_IS_OVER;
    return TSR_OK;
}

/* Goes on with every message. `*some` becomes true if any of them has got further. */
static tsr_status look_at_transits(tsr_mpi_handle *handle, bool *some)
{
    *some = false;
    for (size_t i = 0; i < handle->exchange.count; i++)
        TSR_TRY(look_at(handle, &handle->exchange.transits[i], some));
    return TSR_OK;
}

/* The next peer, from message `*at` on, with a message that is not over; -1: none. Each peer is
 * found once, in the order of the lists. */
static int next_late(const tsr_mpi_exchange *e, size_t *at)
{
    for (; *at < e->count; ++*at) {
        const int peer = e->transits[*at].message->peer;
        bool named = e->transits[*at].course == TSR_MPI_IS_OVER;
        for (size_t i = 0; i < *at && !named; i++)
            named = e->transits[i].course != TSR_MPI_IS_OVER && e->transits[i].message->peer == peer;
        if (!named) {
            ++*at;
            return peer;
        }
    }
    return -1;
}

/* Follows, from `peer` on, which rank each mate shows that it waits for: the last of this chain is
 * the one that has not come. */
static int find_last(const tsr_mpi_handle *handle, int peer)
{
    for (int steps = 0; steps < handle->ranks && tsr_mpi_trays_reach(&handle->trays, peer); steps++) {
        const int next = tsr_mpi_trays_awaited_by(&handle->trays, peer);
        if (next < 0 || next == handle->rank || next == peer)
            break;
        peer = next;
    }
    return peer;
}

/* Names the ranks that have not come: "rank 1, rank 2 (rank 5 of all) and 7 more". */
static const char *name_late(const tsr_mpi_handle *handle, char words[TSR_MPI_WORDS])
{
    char name[64];
    size_t at = 0, used = 0;
    int late = 0, named[LATE_NAMED];
    words[0] = '\0';
    for (int peer = next_late(&handle->exchange, &at); peer >= 0; peer = next_late(&handle->exchange, &at)) {
        const int last = find_last(handle, peer);
        bool known = false;
        for (int i = 0; i < late && i < LATE_NAMED; i++)
            known = known || named[i] == last;
        if (known)
            continue;
        if (late < LATE_NAMED) {
            used += (size_t)snprintf(words + used, TSR_MPI_WORDS - used, "%s%s", late ? ", " : "",
                                     tsr_mpi_name(handle, last, name));
            named[late] = last;
        }
        late++;
    }
    if (late > LATE_NAMED)
        snprintf(words + used, TSR_MPI_WORDS - used, " and %d more", late - LATE_NAMED);
    return late > 0 ? words : "a rank";
}

static tsr_status say_late(const tsr_mpi_handle *handle)
{
    char words[TSR_MPI_WORDS];
    tsr_mpi_world_note_loss(handle->world);
    return tsr_status_set(TSR_ERROR_PEER, "%s did not come within %lld ms, so this communicator is broken",
                          name_late(handle, words), (long long)handle->world->options.timeout_ms);
}

/* TSR_ERROR_PEER if the process of a mate has ended without having left. */
static tsr_status check_lives(const tsr_mpi_handle *handle)
{
    char name[64];
    for (int r = 0; r < handle->ranks; r++) {
        if (r == handle->rank || !tsr_mpi_trays_reach(&handle->trays, r) || tsr_mpi_trays_has_left(&handle->trays, r))
            continue;
        const tsr_mpi_resident *const resident =
            tsr_mpi_resident_find(tsr_mpi_node_residents(handle->world->node), handle->names[r]);
        if (!resident || tsr_mpi_resident_life(resident) != TSR_MPI_DEAD || tsr_mpi_trays_has_left(&handle->trays, r))
            continue;
        tsr_mpi_world_note_loss(handle->world);
        return tsr_status_set(TSR_ERROR_PEER, "the process of %s has ended, so this communicator is broken",
                              tsr_mpi_name(handle, r, name));
    }
    return TSR_OK;
}

/* The state of a wait; it begins anew whenever a message gets further. */
typedef struct patience {
    tsr_deadline deadline, last_words, question;
    tsr_lateness late; /* begins at the first ask_mates() */
    int looks;
} patience;

static patience begin_waiting(const tsr_mpi_handle *handle)
{
    return (patience){.deadline = tsr_deadline_in(handle->world->options.timeout_ms)};
}

static bool is_left(const tsr_mpi_handle *handle)
{
    return (handle->gated && tsr_mpi_gate_is_broken(&handle->gate)) || tsr_mpi_notice_gone(handle) >= 0;
}

static tsr_status say_left(tsr_mpi_handle *handle)
{
    const int gone = tsr_mpi_notice_gone(handle);
    if (gone < 0)
        return tsr_mpi_gate_say_broken(&handle->gate);
    const int all = handle->names[gone];
    if (gone == all)
        return tsr_status_set(TSR_ERROR_PEER, "rank %d has returned, so this communicator is broken", gone);
    return tsr_status_set(TSR_ERROR_PEER, "rank %d (rank %d of all) has returned, so this communicator is broken", gone,
                          all);
}

/* Tells the log for which ranks this one waits, if it is time; shows it to mates; checks that they
 * live. */
static tsr_status ask_mates(tsr_mpi_handle *handle, patience *p)
{
    char words[TSR_MPI_WORDS];
    size_t at = 0;
    p->question = tsr_deadline_in(QUESTION_MS);
    if (p->late.seconds == 0)
        p->late = tsr_lateness_begin();
    if (tsr_lateness_is_due(&p->late))
        tsr_lateness_tell(&p->late, &handle->late, name_late(handle, words));
    if (!handle->trays.node)
        return TSR_OK;
    tsr_mpi_trays_show_awaited(&handle->trays, next_late(&handle->exchange, &at));
    handle->exchange.shown = true;
    return check_lives(handle);
}

/* Between two polls. Messages that a rank sent before it left may still be on their way when its
 * departure is known, so the wait goes on for LAST_WORDS_MS. */
static tsr_status be_patient(tsr_mpi_handle *handle, patience *p)
{
    tsr_mpi_notice_hear(handle->world);
    TSR_TRY(tsr_mpi_check_whole(handle));
    if (tsr_deadline_passed(p->deadline))
        return say_late(handle);
    if (p->looks > QUICK_LOOKS && tsr_deadline_passed(p->question))
        TSR_TRY(ask_mates(handle, p));
    if (p->last_words == 0 && is_left(handle))
        p->last_words = tsr_deadline_in(LAST_WORDS_MS);
    if (p->last_words != 0 && tsr_deadline_passed(p->last_words))
        return say_left(handle);
    tsr_pause(p->looks++);
    return TSR_OK;
}

static tsr_status wait_for_all(tsr_mpi_handle *handle)
{
    patience p = begin_waiting(handle);
    while (handle->exchange.under_way > 0) {
        bool some;
        TSR_TRY(look_at_transits(handle, &some));
        if (some)
            p = begin_waiting(handle);
        else
            TSR_TRY(be_patient(handle, &p));
    }
    return TSR_OK;
}

static tsr_status finish_exchange(tsr_mpi_handle *handle)
{
    const tsr_status status = wait_for_all(handle);
    if (status != TSR_OK) {
        tsr_mpi_exchange_drop(handle);
        return tsr_mpi_break(handle, status);
    }
    const tsr_mpi_exchange *e = &handle->exchange;
    return e->mismatch == TSR_OK ? TSR_OK : tsr_status_set(e->mismatch, "%s", e->words);
}

tsr_status tsr_mpi_exchange_all(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                size_t receive_count, tsr_device device, tsr_stream stream)
{
    (void)stream;
    TSR_TRY(start_exchange(self, sends, send_count, receives, receive_count, device));
    return finish_exchange(self);
}

tsr_status tsr_mpi_exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                  size_t receive_count, tsr_device device, tsr_stream stream)
{
    tsr_mpi_handle *handle = self;
    (void)stream;
    TSR_TRY(start_exchange(handle, sends, send_count, receives, receive_count, device));
    handle->exchange.started = true;
    return TSR_OK;
}

tsr_status tsr_mpi_exchange_finish(void *self)
{
    tsr_mpi_handle *handle = self;
    handle->exchange.started = false;
    return finish_exchange(handle);
}

/* Sends each rank's row, `bytes` bytes, to rank 0. */
static tsr_status gather_rows(tsr_mpi_handle *handle, char *rows, size_t bytes)
{
    tsr_message *messages = handle->exchange.rows;
    if (handle->rank > 0) {
        messages[0] = (tsr_message){0, rows + (size_t)handle->rank * bytes, bytes};
        return tsr_mpi_exchange_all(handle, messages, 1, NULL, 0, tsr_device_host(), NULL);
    }
    for (int r = 1; r < handle->ranks; r++)
        messages[r - 1] = (tsr_message){r, rows + (size_t)r * bytes, bytes};
    return tsr_mpi_exchange_all(handle, NULL, 0, messages, (size_t)handle->ranks - 1, tsr_device_host(), NULL);
}

static tsr_status spread_rows(tsr_mpi_handle *handle, char *rows, size_t bytes)
{
    tsr_message *messages = handle->exchange.rows;
    for (int r = 1; r < handle->ranks; r++)
        messages[r - 1] = (tsr_message){handle->rank == 0 ? r : 0, rows, bytes};
    if (handle->rank > 0)
        return tsr_mpi_exchange_all(handle, NULL, 0, messages, 1, tsr_device_host(), NULL);
    return tsr_mpi_exchange_all(handle, messages, (size_t)handle->ranks - 1, NULL, 0, tsr_device_host(), NULL);
}

tsr_status tsr_mpi_gather_and_spread(tsr_mpi_handle *handle, void *rows, size_t row_bytes)
{
    TSR_TRY(gather_rows(handle, rows, row_bytes));
    return spread_rows(handle, rows, (size_t)handle->ranks * row_bytes);
}

/* Rank 0 answers only after it has received a message from every rank. */
tsr_status tsr_mpi_barrier(void *self)
{
    char nothing = 0;
    return tsr_mpi_gather_and_spread(self, &nothing, 0);
}
