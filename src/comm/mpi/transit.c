#include "comm/mpi/transit.h"

#include "comm/mpi/error.h"
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

static tsr_status post(const tsr_mpi_handle *handle, tsr_mpi_transit *transit, tsr_mpi_way way, void *memory, size_t bytes, bool receives)
{
    const int peer = handle->names[transit->message->peer], tag = tag_of(handle, way);
    const MPI_Comm comm = handle->world->comm;
    MPI_Request *request = &transit->requests[way];
    if (receives)
        return tsr_mpi_check(MPI_Irecv(memory, (int)bytes, MPI_BYTE, peer, tag, comm, request), "MPI_Irecv");
    return tsr_mpi_check(MPI_Isend(memory, (int)bytes, MPI_BYTE, peer, tag, comm, request), "MPI_Isend");
}

static size_t next_piece(const tsr_mpi_transit *transit)
{
    const size_t left = transit->message->bytes - transit->done;
    return left < transit->piece ? left : transit->piece;
}

static tsr_status post_piece(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    char *data = (char *)transit->message->data + transit->done;
    return post(handle, transit, TSR_MPI_DATA, data, next_piece(transit), transit->receives);
}

static tsr_status await_letter(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    return post(handle, transit, TSR_MPI_LETTER, transit->letter, LETTER_HEAD + TSR_MPI_SHORT, true);
}

static tsr_status await_token(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    return post(handle, transit, TSR_MPI_TOKEN, &transit->token, sizeof transit->token, true);
}

static tsr_status send_token(const tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->token = (tsr_mpi_token){(uint32_t)handle->group, transit->number, transit->message->bytes, transit->piece};
    return post(handle, transit, TSR_MPI_TOKEN, &transit->token, sizeof transit->token, false);
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
    TSR_TRY(post(handle, transit, TSR_MPI_LETTER, letter, LETTER_HEAD + inside, false));
    return is_long(message->bytes) ? await_token(handle, transit) : TSR_OK;
}

/* The memory is posted before the token that tells of it. */
static tsr_status ask(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    int *busy = &handle->exchange.busy[transit->message->peer];
    if (*busy)
        return TSR_OK;
    *busy = 1;
    transit->asked = true;
    TSR_TRY(post_piece(handle, transit));
    return send_token(handle, transit);
}

static tsr_status begin_receive(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->number = handle->counts[1][transit->message->peer]++;
    transit->piece = (size_t)handle->world->options.chunk_bytes;
    TSR_TRY(await_letter(handle, transit));
    return is_long(transit->message->bytes) ? ask(handle, transit) : TSR_OK;
}

tsr_status tsr_mpi_transit_begin(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    transit->course = TSR_MPI_TRAVELS;
    return transit->receives ? begin_receive(handle, transit) : begin_send(handle, transit);
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

/* The sender lets go of nothing: it knows by the token, or has sent everything in its letter. So the memory that was posted was matched
 * by nobody, and MPI_Wait() is local. */
static tsr_status refuse(tsr_mpi_handle *handle, tsr_mpi_transit *transit, size_t sent)
{
    tsr_mpi_transit_note_length(handle, transit, sent);
    transit->done = transit->message->bytes;
    if (!transit->asked && is_long(sent))
        return send_token(handle, transit);
    if (transit->requests[TSR_MPI_DATA] == MPI_REQUEST_NULL)
        return TSR_OK;
    TSR_TRY(tsr_mpi_check(MPI_Cancel(&transit->requests[TSR_MPI_DATA]), "MPI_Cancel"));
    return tsr_mpi_check(MPI_Wait(&transit->requests[TSR_MPI_DATA], MPI_STATUS_IGNORE), "MPI_Wait");
}

static tsr_status read_letter(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    const tsr_mpi_letter *letter = transit->letter;
    const tsr_message *message = transit->message;
    if (letter->group != (uint32_t)handle->group)
        return await_letter(handle, transit);
    if (letter->bytes != message->bytes)
        return refuse(handle, transit, (size_t)letter->bytes);
    if (is_long(message->bytes))
        return TSR_OK;
    if (message->bytes > 0)
        memcpy(message->data, letter->text, message->bytes);
    transit->done = message->bytes;
    return TSR_OK;
}

/* Numbers go round. */
static bool is_left_over(const tsr_mpi_handle *handle, const tsr_mpi_transit *transit)
{
    const tsr_mpi_token *token = &transit->token;
    return token->group != (uint32_t)handle->group || (int32_t)(token->number - transit->number) < 0;
}

static tsr_status read_token(tsr_mpi_handle *handle, tsr_mpi_transit *transit)
{
    if (is_left_over(handle, transit))
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

static tsr_status arrive(tsr_mpi_handle *handle, tsr_mpi_transit *transit, tsr_mpi_way way)
{
    if (way == TSR_MPI_DATA)
        return go_on(handle, transit);
    if (way == TSR_MPI_LETTER && transit->receives)
        return read_letter(handle, transit);
    return way == TSR_MPI_TOKEN && !transit->receives ? read_token(handle, transit) : TSR_OK;
}

/* One by one: errors of calls for several requests are no communicator's, and end the program where MPI's own handler of errors does. */
static tsr_status test(tsr_mpi_handle *handle, tsr_mpi_transit *transit, tsr_mpi_way way, bool *some)
{
    int done = 0;
    if (transit->requests[way] == MPI_REQUEST_NULL)
        return TSR_OK;
    TSR_TRY(tsr_mpi_check(MPI_Test(&transit->requests[way], &done, MPI_STATUS_IGNORE), transit->receives ? "MPI_Irecv" : "MPI_Isend"));
    if (!done)
        return TSR_OK;
    *some = true;
    return arrive(handle, transit, way);
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
    if (transit->receives && !transit->asked && transit->done < transit->message->bytes && is_long(transit->message->bytes))
        TSR_TRY(ask(handle, transit));
    if (!has_ended(transit))
        return TSR_OK;
    if (transit->asked)
        handle->exchange.busy[transit->message->peer] = 0;
    transit->course = TSR_MPI_IS_OVER;
    return TSR_OK;
}

/* What a rank receives: a sender its token, a receiver all else. */
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
        /* What failed is over too. */
        if (transit->requests[way] != MPI_REQUEST_NULL && MPI_Test(&transit->requests[way], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            transit->requests[way] = MPI_REQUEST_NULL;
        else
            quiet = quiet && done;
    }
    return quiet;
}
