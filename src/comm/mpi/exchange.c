#include "comm/mpi/exchange.h"

#include "comm/mpi/error.h"
#include <stdio.h>
#include <string.h>
#include <tessera/sys/memory.h>

/* Peers that a sentence has room for. */
#define LATE_NAMED 4

/* After this, what a rank that has left had sent would have come. */
#define LAST_WORDS_MS 500

/* Lays the arrays into `block` (NULL: only counts) and returns their bytes; what needs most alignment comes first. */
static size_t place(tsr_mpi_exchange *e, char *block, size_t capacity, int ranks)
{
    size_t used = 0;
    e->transits = (tsr_mpi_transit *)block;
    used += capacity * sizeof *e->transits;
    e->requests = block ? (MPI_Request *)(block + used) : NULL;
    used += (capacity * sizeof *e->requests + 15) & ~(size_t)15;
    e->rows = block ? (tsr_message *)(block + used) : NULL;
    used += (size_t)ranks * sizeof *e->rows;
    for (int way = 0; way < 2; way++) {
        e->turns[way] = block ? (int *)(block + used) : NULL;
        used += (size_t)ranks * sizeof *e->turns[way];
    }
    return used;
}

tsr_status tsr_mpi_exchange_reserve(tsr_mpi_handle *handle, size_t count)
{
    tsr_mpi_exchange *e = &handle->exchange, measured;
    if (count <= e->capacity)
        return TSR_OK;
    void *memory;
    TSR_TRY(tsr_allocate(handle->world->context, place(&measured, NULL, count, handle->ranks), &memory));
    tsr_release(handle->world->context, e->memory);
    place(e, memory, count, handle->ranks);
    e->memory = memory;
    e->capacity = count;
    return TSR_OK;
}

void tsr_mpi_exchange_free(tsr_mpi_handle *handle)
{
    tsr_release(handle->world->context, handle->exchange.memory);
}

static size_t piece_of(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    const size_t left = transit->message->bytes - transit->done, most = (size_t)handle->world->options.chunk_bytes;
    return left < most ? left : most;
}

static int tag_of(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    return handle->group % handle->world->groups * TSR_MPI_TAGS + transit->turn;
}

/* The next piece of a message, by MPI. */
static tsr_status post(tsr_mpi_handle *handle, size_t at)
{
    tsr_mpi_transit *transit = &handle->exchange.transits[at];
    const tsr_message *message = transit->message;
    MPI_Request *request = &handle->exchange.requests[at];
    char *data = message->data ? (char *)message->data + transit->done : NULL;
    const int bytes = (int)piece_of(handle, transit), peer = handle->names[message->peer], tag = tag_of(handle, transit);
    const MPI_Comm comm = handle->world->comm;
    transit->course = TSR_MPI_TRAVELS;
    if (transit->receives)
        return tsr_mpi_check(MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, comm, request), "MPI_Irecv");
    return tsr_mpi_check(MPI_Isend(data, bytes, MPI_BYTE, peer, tag, comm, request), "MPI_Isend");
}

static void end_transit(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->course = TSR_MPI_IS_OVER;
    handle->exchange.under_way--;
}

/* The first fault of what arrived; the others go on, so that the ranks stay together. */
static void note_mismatch(tsr_mpi_handle *handle, const tsr_mpi_transit *transit, const char *sent)
{
    tsr_mpi_exchange *e = &handle->exchange;
    if (e->mismatch != TSR_OK)
        return;
    e->mismatch = TSR_ERROR_ARGUMENT;
    snprintf(e->words, sizeof e->words, "tsr_comm_exchange: rank %d sends %s bytes to rank %d, which expects %zu", transit->message->peer,
             sent, handle->rank, transit->message->bytes);
}

static void note_length(tsr_mpi_handle *handle, const tsr_mpi_transit *transit, size_t bytes)
{
    char sent[32];
    snprintf(sent, sizeof sent, "%zu", bytes);
    note_mismatch(handle, transit, sent);
}

static tsr_mpi_delivery lay(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    return tsr_mpi_trays_lay(&handle->trays, transit->message->peer, transit->message->data, transit->message->bytes);
}

static tsr_mpi_delivery take_from_tray(tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    const tsr_message *message = transit->message;
    size_t sent = 0;
    const tsr_mpi_delivery delivery = tsr_mpi_trays_take(&handle->trays, message->peer, message->data, message->bytes, &sent);
    if (delivery == TSR_MPI_THROUGH && sent != message->bytes)
        note_length(handle, transit, sent);
    return delivery;
}

/* A message to or from a mate goes as its sender's tray says, after those before it. `*some`: it has. */
static tsr_status begin_transit(tsr_mpi_handle *handle, size_t at, bool *some)
{
    tsr_mpi_transit *transit = &handle->exchange.transits[at];
    int *turn = &handle->exchange.turns[transit->receives][transit->message->peer];
    if (transit->turn != *turn)
        return TSR_OK;
    const tsr_mpi_delivery delivery = transit->receives ? take_from_tray(handle, transit) : lay(handle, transit);
    if (delivery == TSR_MPI_NOT_YET)
        return TSR_OK;
    ++*turn;
    *some = true;
    if (delivery == TSR_MPI_BY_MPI)
        return post(handle, at);
    if (delivery == TSR_MPI_LIES)
        transit->course = TSR_MPI_LAID;
    else if (delivery == TSR_MPI_THROUGH)
        end_transit(handle, transit);
    else
        return tsr_status_set(TSR_ERROR_PEER, "rank %d has given up what it sends, so this communicator is broken", transit->message->peer);
    return TSR_OK;
}

static void note_taken(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some)
{
    if (!tsr_mpi_trays_is_empty(&handle->trays, transit->message->peer))
        return;
    end_transit(handle, transit);
    *some = true;
}

static tsr_status list(tsr_mpi_handle *handle, const tsr_message *messages, size_t count, bool receives)
{
    tsr_mpi_exchange *e = &handle->exchange;
    int *turns = e->turns[receives];
    for (size_t i = 0; i < count; i++)
        turns[messages[i].peer] = 0;
    for (size_t i = 0; i < count; i++) {
        const int turn = turns[messages[i].peer]++;
        if (turn >= TSR_MPI_TAGS)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED, "mpi: more than %d messages between ranks %d and %d in one exchange", TSR_MPI_TAGS,
                                  handle->rank, messages[i].peer);
        e->transits[e->count] = (tsr_mpi_transit){.message = &messages[i], .turn = turn, .receives = receives};
        e->requests[e->count++] = MPI_REQUEST_NULL;
    }
    for (size_t i = 0; i < count; i++)
        turns[messages[i].peer] = 0;
    return TSR_OK;
}

/* The first message to a rank above this one: lists are sorted by peer where order matters for speed, so that ranks begin with different
 * peers. */
static size_t first_of(const tsr_mpi_handle *handle, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (handle->exchange.transits[i].message->peer > handle->rank)
            return i;
    return begin;
}

static tsr_status post_range(tsr_mpi_handle *handle, size_t begin, size_t end)
{
    const size_t count = end - begin, first = count ? first_of(handle, begin, end) : begin;
    for (size_t i = 0; i < count; i++) {
        const size_t at = first + i < end ? first + i : first + i - count;
        bool some;
        handle->exchange.under_way++;
        if (tsr_mpi_trays_reach(&handle->trays, handle->exchange.transits[at].message->peer))
            TSR_TRY(begin_transit(handle, at, &some));
        else
            TSR_TRY(post(handle, at));
    }
    return TSR_OK;
}

static tsr_status check_device(tsr_device device)
{
    if (!device.driver)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "mpi: this engine moves host memory alone; ranks with GPUs are NCCL's");
}

static tsr_status post_all(tsr_mpi_handle *handle, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                           size_t receive_count)
{
    tsr_mpi_exchange *e = &handle->exchange;
    TSR_TRY(tsr_mpi_exchange_reserve(handle, send_count + receive_count));
    TSR_TRY(list(handle, receives, receive_count, true));
    TSR_TRY(list(handle, sends, send_count, false));
    TSR_TRY(post_range(handle, 0, receive_count));
    return post_range(handle, receive_count, e->count);
}

/* What peers have sent to a rank that cannot take it would pass for what they send next: its communicator is broken. */
static tsr_status start(tsr_mpi_handle *handle, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                        size_t receive_count, tsr_device device)
{
    tsr_mpi_exchange *e = &handle->exchange;
    TSR_TRY(check_device(device));
    TSR_TRY(tsr_mpi_check_whole(handle));
    e->count = e->under_way = 0;
    e->mismatch = TSR_OK;
    const tsr_status status = post_all(handle, sends, send_count, receives, receive_count);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_mpi_exchange_drop(handle);
    return tsr_mpi_break(handle, status);
}

void tsr_mpi_exchange_drop(tsr_mpi_handle *handle)
{
    tsr_mpi_exchange *e = &handle->exchange;
    for (size_t i = 0; i < e->count; i++) {
        if (e->transits[i].course == TSR_MPI_LAID)
            tsr_mpi_trays_withdraw(&handle->trays, e->transits[i].message->peer);
        if (e->requests[i] == MPI_REQUEST_NULL)
            continue;
        if (e->transits[i].receives)
            MPI_Cancel(&e->requests[i]);
        MPI_Request_free(&e->requests[i]);
    }
    e->count = e->under_way = 0;
    e->started = false;
}

/* True if the piece is as long as it should be. */
static bool fits(tsr_mpi_handle *handle, const tsr_mpi_transit *transit, const MPI_Status *outcome, size_t wanted)
{
    int bytes = 0;
    if (MPI_Get_count(outcome, MPI_BYTE, &bytes) == MPI_SUCCESS && (size_t)bytes == wanted)
        return true;
    note_length(handle, transit, transit->done + (size_t)bytes);
    return false;
}

/* One piece is through, or not: `result` is its own. */
static tsr_status take(tsr_mpi_handle *handle, size_t at, int result, const MPI_Status *outcome)
{
    tsr_mpi_transit *transit = &handle->exchange.transits[at];
    const size_t piece = piece_of(handle, transit);
    int class = MPI_SUCCESS;
    bool over = false;
    if (result != MPI_SUCCESS) {
        MPI_Error_class(result, &class);
        if (class != MPI_ERR_TRUNCATE || !transit->receives)
            return tsr_mpi_check(result, transit->receives ? "MPI_Irecv" : "MPI_Isend");
        note_mismatch(handle, transit, "more");
        over = true;
    } else if (transit->receives) {
        over = !fits(handle, transit, outcome, piece);
    }
    transit->done += piece;
    if (!over && transit->done < transit->message->bytes)
        return post(handle, at);
    end_transit(handle, transit);
    return TSR_OK;
}

/* One by one: errors of calls for several requests are no communicator's, and end the program where MPI's own handler of errors does. */
static tsr_status test(tsr_mpi_handle *handle, size_t at, bool *some)
{
    MPI_Status outcome;
    int done = 0;
    const int result = MPI_Test(&handle->exchange.requests[at], &done, &outcome);
    if (!done && result == MPI_SUCCESS)
        return TSR_OK;
    *some = true;
    return take(handle, at, result, &outcome);
}

static tsr_status look_at(tsr_mpi_handle *handle, size_t at, bool *some)
{
    tsr_mpi_transit *transit = &handle->exchange.transits[at];
    if (transit->course == TSR_MPI_WAITS)
        return begin_transit(handle, at, some);
    if (transit->course == TSR_MPI_TRAVELS)
        return test(handle, at, some);
    if (transit->course == TSR_MPI_LAID)
        note_taken(handle, transit, some);
    return TSR_OK;
}

/* What has come by now; `*some`: anything has. */
static tsr_status look(tsr_mpi_handle *handle, bool *some)
{
    *some = false;
    for (size_t i = 0; i < handle->exchange.count; i++)
        TSR_TRY(look_at(handle, i, some));
    return TSR_OK;
}

/* A peer of which something is still missing, from `*at` on; -1: none. Each is named once, in the order of the lists. */
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

static tsr_status say_late(const tsr_mpi_handle *handle)
{
    char words[TSR_MPI_WORDS] = "";
    size_t at = 0, used = 0;
    int late = 0;
    for (int peer = next_late(&handle->exchange, &at); peer >= 0; peer = next_late(&handle->exchange, &at), late++)
        if (late < LATE_NAMED)
            used += (size_t)snprintf(words + used, sizeof words - used, "%srank %d", late ? ", " : "", peer);
    if (late > LATE_NAMED)
        snprintf(words + used, sizeof words - used, " and %d more", late - LATE_NAMED);
    return tsr_status_set(TSR_ERROR_PEER, "%s did not come within %lld ms, so this communicator is broken", late > 0 ? words : "a rank",
                          (long long)handle->world->options.timeout_ms);
}

/* How long a wait has gone on without anything that came. */
typedef struct patience {
    tsr_deadline deadline, last_words;
    int looks;
} patience;

static patience begin_waiting(const tsr_mpi_handle *handle)
{
    return (patience){tsr_deadline_in(handle->world->options.timeout_ms), 0, 0};
}

/* Between two looks. What a node's rank sent before it left is on its way yet when its peers learn that it is gone. */
static tsr_status be_patient(tsr_mpi_handle *handle, patience *p)
{
    TSR_TRY(tsr_mpi_check_whole(handle));
    if (tsr_deadline_passed(p->deadline))
        return say_late(handle);
    if (handle->gated && tsr_mpi_gate_is_broken(&handle->gate)) {
        if (p->last_words == 0)
            p->last_words = tsr_deadline_in(LAST_WORDS_MS);
        else if (tsr_deadline_passed(p->last_words))
            return tsr_mpi_gate_say_broken(&handle->gate);
    }
    tsr_pause(p->looks++);
    return TSR_OK;
}

static tsr_status wait_in_peace(tsr_mpi_handle *handle)
{
    patience p = begin_waiting(handle);
    while (handle->exchange.under_way > 0) {
        bool some;
        TSR_TRY(look(handle, &some));
        if (some)
            p = begin_waiting(handle);
        else
            TSR_TRY(be_patient(handle, &p));
    }
    return TSR_OK;
}

/* MPICH takes what goes wrong with requests to the error handler of MPI_COMM_WORLD, whose default ends the program. */
static tsr_status wait_for_all(tsr_mpi_handle *handle)
{
    MPI_Errhandler theirs;
    TSR_TRY(tsr_mpi_check(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &theirs), "MPI_Comm_get_errhandler"));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const tsr_status status = wait_in_peace(handle);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, theirs);
    MPI_Errhandler_free(&theirs);
    return status;
}

static tsr_status finish(tsr_mpi_handle *handle)
{
    const tsr_status status = wait_for_all(handle);
    if (status != TSR_OK) {
        tsr_mpi_exchange_drop(handle);
        return tsr_mpi_break(handle, status);
    }
    const tsr_mpi_exchange *e = &handle->exchange;
    return e->mismatch == TSR_OK ? TSR_OK : tsr_status_set(e->mismatch, "%s", e->words);
}

tsr_status tsr_mpi_exchange_all(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives, size_t receive_count,
                                tsr_device device, tsr_stream stream)
{
    (void)stream;
    TSR_TRY(start(self, sends, send_count, receives, receive_count, device));
    return finish(self);
}

tsr_status tsr_mpi_exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                  size_t receive_count, tsr_device device, tsr_stream stream)
{
    tsr_mpi_handle *handle = self;
    (void)stream;
    TSR_TRY(start(handle, sends, send_count, receives, receive_count, device));
    handle->exchange.started = true;
    return TSR_OK;
}

tsr_status tsr_mpi_exchange_finish(void *self)
{
    tsr_mpi_handle *handle = self;
    handle->exchange.started = false;
    return finish(handle);
}

/* `bytes` of every rank to rank 0, in the rows of `rows`. */
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

/* Nobody is told that all came before all did. */
tsr_status tsr_mpi_barrier(void *self)
{
    char nothing = 0;
    return tsr_mpi_gather_and_spread(self, &nothing, 0);
}
