#include "comm/engines/mpi/transit.h"

#include "comm/engines/mpi/calls/error.h"
#include "comm/engines/mpi/loss.h"
#include "comm/engines/mpi/world.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LETTER_HEAD offsetof(tsr_mpi_letter, text)

static bool is_long(size_t bytes)
{
    return bytes > TSR_MPI_SHORT;
}

static int tag_of(const tsr_mpi_handle *handle, tsr_mpi_way way)
{
    return handle->slot * TSR_MPI_TAGS + (int)way;
}

/* tsr_mpi_check() with a sentence that names the peer. */
static tsr_status check_with_peer(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit, int result,
                                  const char *call)
{
    char name[64];
    const tsr_status status = tsr_mpi_check(result, call);
    if (status == TSR_OK)
        return TSR_OK;
    return tsr_status_set(status, "%s: %s", tsr_mpi_name(handle, transit->message->peer, name), tsr_status_message());
}

static tsr_status post_request(const tsr_mpi_handle *handle, tsr_mpi_transit *transit, tsr_mpi_way way, void *memory,
                               size_t bytes, bool receives)
{
    const int peer = handle->names[transit->message->peer], tag = tag_of(handle, way);
    const MPI_Comm comm = handle->world->comm;
    MPI_Request *request = &transit->requests[way];
    if (receives)
        return check_with_peer(handle, transit, MPI_Irecv(memory, (int)bytes, MPI_BYTE, peer, tag, comm, request),
                               "MPI_Irecv");
    return check_with_peer(handle, transit, MPI_Isend(memory, (int)bytes, MPI_BYTE, peer, tag, comm, request),
                           "MPI_Isend");
}

static size_t next_piece(const tsr_mpi_transit *transit)
{
    const size_t left = transit->message->bytes - transit->done;
    return left < transit->piece ? left : transit->piece;
}

static tsr_status post_piece(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    char *data = (char *)transit->message->data + transit->done;
    return post_request(handle, transit, TSR_MPI_DATA, data, next_piece(transit), transit->receives);
}

static tsr_status await_letter(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    return post_request(handle, transit, TSR_MPI_LETTER, transit->letter, LETTER_HEAD + TSR_MPI_SHORT, true);
}

static tsr_status await_token(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    return post_request(handle, transit, TSR_MPI_TOKEN, &transit->token, sizeof transit->token, true);
}

static tsr_status send_token(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->token = (tsr_mpi_token){(uint32_t)handle->group, transit->number, transit->message->bytes, transit->piece};
    return post_request(handle, transit, TSR_MPI_TOKEN, &transit->token, sizeof transit->token, false);
}

static tsr_status begin_send(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    const tsr_message *message = transit->message;
    tsr_mpi_letter *letter = transit->letter;
    const size_t inside = is_long(message->bytes) ? 0 : message->bytes;
    transit->number = handle->counts[0][message->peer]++;
    transit->done = inside;
    letter->group = (uint32_t)handle->group;
    letter->number = transit->number;
    letter->bytes = message->bytes;
    if (inside > 0)
        memcpy(letter->text, message->data, inside);
    return post_request(handle, transit, TSR_MPI_LETTER, letter, LETTER_HEAD + inside, false);
}

static tsr_status begin_receive(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->number = handle->counts[1][transit->message->peer]++;
    transit->piece = (size_t)handle->world->options.chunk_bytes;
    return await_letter(handle, transit);
}

static bool has_turn(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    return handle->over[transit->receives][transit->message->peer] == transit->number;
}

/* Posts the token when it is this message's turn. A receiver posts its memory first, unless the
 * message was refused. */
static tsr_status take_turn(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    if (!transit->needs_token || transit->asked || !has_turn(handle, transit))
        return TSR_OK;
    transit->asked = true;
    if (!transit->receives)
        return await_token(handle, transit);
    if (transit->done < transit->message->bytes)
        TSR_TRY(post_piece(handle, transit));
    return send_token(handle, transit);
}

tsr_status tsr_mpi_transit_begin(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->course = TSR_MPI_TRAVELS;
    transit->needs_token = is_long(transit->message->bytes);
    TSR_TRY(transit->receives ? begin_receive(handle, transit) : begin_send(handle, transit));
    return take_turn(handle, transit);
}

void tsr_mpi_transit_note_length(tsr_mpi_handle *handle, const tsr_mpi_transit *transit, size_t bytes)
{
    tsr_mpi_exchange *e = &handle->exchange;
    char sender[64], receiver[64];
    if (e->mismatch != TSR_OK)
        return;
    e->mismatch = TSR_ERROR_ARGUMENT;
    snprintf(e->words, sizeof e->words, "tsr_comm_exchange: %s sends %zu bytes to %s, which expects %zu",
             tsr_mpi_name(handle, transit->message->peer, sender), bytes, tsr_mpi_name(handle, handle->rank, receiver),
             transit->message->bytes);
}

/* Ends a receive whose letter has another length. The sender sends no data: it learns the
 * receiver's length from the token, which is sent all the same, or has sent the whole message in
 * its letter. So no send has matched the memory that was posted here, and MPI_Wait() waits for no
 * peer. */
static tsr_status refuse_letter(tsr_mpi_handle *handle, tsr_mpi_transit *transit, size_t sent)
{
    tsr_mpi_transit_note_length(handle, transit, sent);
    transit->done = transit->message->bytes;
    transit->needs_token = is_long(sent);
    if (transit->requests[TSR_MPI_DATA] == MPI_REQUEST_NULL)
        return TSR_OK;
    TSR_TRY(tsr_mpi_check(MPI_Cancel(&transit->requests[TSR_MPI_DATA]), "MPI_Cancel"));
    return tsr_mpi_check(MPI_Wait(&transit->requests[TSR_MPI_DATA], MPI_STATUS_IGNORE), "MPI_Wait");
}

/* The receive from the same peer that the letter is for, by its number; NULL: there is none. */
static tsr_mpi_transit *find_addressee(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    const uint32_t number = transit->letter->number;
    if (number == transit->number)
        return transit;
    for (size_t i = 0; i < handle->exchange.count; i++) {
        tsr_mpi_transit *other = &handle->exchange.transits[i];
        if (other->receives && other->course == TSR_MPI_TRAVELS && other->number == number &&
            other->message->peer == transit->message->peer)
            return other;
    }
    return NULL;
}

/* `a` has received the letter for `b`: it gives the letter to `b` and takes over the receive that
 * `b` has posted. */
static void swap_letters(tsr_mpi_transit *a, tsr_mpi_transit *b)
{
    tsr_mpi_letter *const letter = a->letter;
    const MPI_Request request = a->requests[TSR_MPI_LETTER];
    a->letter = b->letter;
    a->requests[TSR_MPI_LETTER] = b->requests[TSR_MPI_LETTER];
    b->letter = letter;
    b->requests[TSR_MPI_LETTER] = request;
}

static tsr_status read_own_letter(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    const tsr_mpi_letter *letter = transit->letter;
    const tsr_message *message = transit->message;
    if (letter->bytes != message->bytes)
        return refuse_letter(handle, transit, (size_t)letter->bytes);
    if (is_long(message->bytes))
        return TSR_OK;
    if (message->bytes > 0)
        memcpy(message->data, letter->text, message->bytes);
    transit->done = message->bytes;
    return TSR_OK;
}

/* If the letter is left over from another group, or for no message here, it is dropped and its
 * receive is posted again. */
static tsr_status read_letter(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    tsr_mpi_transit *const addressee =
        transit->letter->group == (uint32_t)handle->group ? find_addressee(handle, transit) : NULL;
    if (!addressee)
        return await_letter(handle, transit);
    if (addressee != transit)
        swap_letters(transit, addressee);
    return read_own_letter(handle, addressee);
}

static tsr_status read_token(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    if (transit->token.group != (uint32_t)handle->group || transit->token.number != transit->number)
        return await_token(handle, transit);
    if (transit->token.bytes != transit->message->bytes) {
        transit->done = transit->message->bytes;
        return TSR_OK;
    }
    transit->piece = (size_t)transit->token.piece;
    return post_piece(handle, transit);
}

static tsr_status go_on(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->done += next_piece(transit);
    return transit->done < transit->message->bytes ? post_piece(handle, transit) : TSR_OK;
}

static tsr_status take_arrival(tsr_mpi_handle *handle, tsr_mpi_transit *transit, tsr_mpi_way way)
{
    if (way == TSR_MPI_DATA)
        return go_on(handle, transit);
    if (way == TSR_MPI_LETTER && transit->receives)
        return read_letter(handle, transit);
    return way == TSR_MPI_TOKEN && !transit->receives ? read_token(handle, transit) : TSR_OK;
}

/* Tests one request. MPI does not report errors of calls for several requests to a communicator's
 * error handler, so the default handler could end the program. */
static tsr_status test(tsr_mpi_handle *handle, tsr_mpi_transit *transit, tsr_mpi_way way, bool *some)
{
    int done = 0;
    if (transit->requests[way] == MPI_REQUEST_NULL)
        return TSR_OK;
    const int result = MPI_Test(&transit->requests[way], &done, MPI_STATUS_IGNORE);
    TSR_TRY(check_with_peer(handle, transit, result, transit->receives ? "MPI_Irecv" : "MPI_Isend"));
    if (!done)
        return TSR_OK;
    *some = true;
    return take_arrival(handle, transit, way);
}

static bool has_ended(const tsr_mpi_transit *transit)
{
    for (int way = 0; way < TSR_MPI_WAYS; way++)
        if (transit->requests[way] != MPI_REQUEST_NULL)
            return false;
    return transit->done == transit->message->bytes;
}

tsr_status tsr_mpi_transit_look(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some)
{
    for (int way = 0; way < TSR_MPI_WAYS; way++)
        TSR_TRY(test(handle, transit, (tsr_mpi_way)way, some));
    TSR_TRY(take_turn(handle, transit));
    if (!has_turn(handle, transit) || !has_ended(transit))
        return TSR_OK;
    handle->over[transit->receives][transit->message->peer]++;
    transit->course = TSR_MPI_IS_OVER;
    return TSR_OK;
}

/* True if this rank receives this kind of message: a sender receives its token, a receiver all
 * else. */
static bool is_receive(const tsr_mpi_transit *transit, int way)
{
    return transit->receives == (way != TSR_MPI_TOKEN);
}

void tsr_mpi_transit_cancel(tsr_mpi_transit *transit)
{
    for (int way = 0; way < TSR_MPI_WAYS; way++)
        if (transit->requests[way] != MPI_REQUEST_NULL && is_receive(transit, way))
            MPI_Cancel(&transit->requests[way]);
}

bool tsr_mpi_transit_is_quiet(tsr_mpi_transit *transit, bool data)
{
    bool quiet = true;
    for (int way = data ? TSR_MPI_DATA : 0; way < TSR_MPI_WAYS; way++) {
        int done = 1;
        /* A request that failed is over, too. */
        if (transit->requests[way] != MPI_REQUEST_NULL &&
            MPI_Test(&transit->requests[way], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            transit->requests[way] = MPI_REQUEST_NULL;
        else
            quiet = quiet && done;
    }
    return quiet;
}
