#include "wire.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

tsr_status wire_create(int rank, int ranks, int64_t timeout_ms, wire **out)
{
    const size_t n = (size_t)ranks;
    wire *w = calloc(1, sizeof *w);
    if (!w)
        return tsr_status_set(TSR_ERROR_MEMORY, "sockets: there is no memory for a communicator");
    *w = (wire){.rank = rank, .ranks = ranks, .timeout_ms = timeout_ms};
    w->sockets = malloc(n * sizeof *w->sockets);
    w->sends = calloc(n, sizeof *w->sends);
    w->receives = calloc(n, sizeof *w->receives);
    w->polls = calloc(n, sizeof *w->polls);
    for (size_t r = 0; w->sockets && r < n; r++)
        w->sockets[r] = -1;
    if (!w->sockets || !w->sends || !w->receives || !w->polls) {
        wire_destroy(w);
        return tsr_status_set(TSR_ERROR_MEMORY, "sockets: there is no memory for a communicator of %d ranks", ranks);
    }
    *out = w;
    return TSR_OK;
}

void wire_destroy(wire *w)
{
    for (int r = 0; w->sockets && r < w->ranks; r++)
        if (w->sockets[r] >= 0)
            close(w->sockets[r]);
    free(w->sockets);
    free(w->sends);
    free(w->receives);
    free(w->polls);
    free(w);
}

void wire_shut(const wire *w)
{
    for (int r = 0; r < w->ranks; r++)
        if (w->sockets[r] >= 0)
            shutdown(w->sockets[r], SHUT_RDWR);
}

tsr_status wire_break(wire *w, tsr_status status)
{
    w->broken = true;
    wire_shut(w);
    return status;
}

tsr_status wire_fail(const char *what, int peer)
{
    if (errno == EPIPE || errno == ECONNRESET)
        return tsr_status_set(TSR_ERROR_PEER, "sockets: rank %d has returned or aborted", peer);
    return tsr_status_set(TSR_ERROR_IO, "sockets: %s of rank %d: %s", what, peer, strerror(errno));
}

static int poll_timeout(const wire *w)
{
    return w->timeout_ms == 0 ? -1 : w->timeout_ms > INT_MAX ? INT_MAX : (int)w->timeout_ms;
}

static tsr_status poll_some(const wire *w, struct pollfd *polls, int count, int peer)
{
    int ready;
    do
        ready = poll(polls, (nfds_t)count, poll_timeout(w));
    while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return wire_fail("the socket", peer);
    if (ready == 0)
        return tsr_status_set(TSR_ERROR_PEER, "sockets: rank %d did not come within %lld ms", peer,
                              (long long)w->timeout_ms);
    return TSR_OK;
}

tsr_status wire_wait(const wire *w, int peer, short events)
{
    struct pollfd one = {w->sockets[peer], events, 0};
    return poll_some(w, &one, 1, peer);
}

/* The message that is being transferred in this direction; NULL when all are done. */
static const tsr_message *current(lane *l, int peer)
{
    while (l->at < l->end && l->at->peer != peer)
        l->at++;
    return l->at < l->end ? l->at : NULL;
}

/* The untransferred rest of the message's length, or after that of its data. */
static char *rest_of(lane *l, const tsr_message *m, size_t *bytes)
{
    if (l->done < sizeof l->length) {
        *bytes = sizeof l->length - l->done;
        return (char *)&l->length + l->done;
    }
    *bytes = m->bytes - (l->done - sizeof l->length);
    return (char *)m->data + (l->done - sizeof l->length);
}

static void advance(lane *l, size_t bytes)
{
    l->done += bytes;
    if (l->done < sizeof l->length + l->at->bytes)
        return;
    l->done = 0;
    l->at++;
}

/* Sends as much as the socket takes without waiting. */
static tsr_status send_some(const wire *w, int peer)
{
    lane *l = &w->sends[peer];
    for (const tsr_message *m = current(l, peer); m; m = current(l, peer)) {
        size_t bytes;
        l->length = m->bytes;
        const char *from = rest_of(l, m, &bytes);
        const ssize_t sent = send(w->sockets[peer], from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return TSR_OK;
        if (sent < 0)
            return wire_fail("sending to the socket", peer);
        advance(l, (size_t)sent);
    }
    return TSR_OK;
}

/* Receives as much as has arrived. */
static tsr_status receive_some(const wire *w, int peer)
{
    lane *l = &w->receives[peer];
    for (const tsr_message *m = current(l, peer); m; m = current(l, peer)) {
        size_t bytes;
        char *to = rest_of(l, m, &bytes);
        const ssize_t received = recv(w->sockets[peer], to, bytes, MSG_DONTWAIT);
        if (received < 0 && (errno == EAGAIN || errno == EINTR))
            return TSR_OK;
        if (received == 0)
            errno = EPIPE;
        if (received <= 0)
            return wire_fail("receiving from the socket", peer);
        if (l->done + (size_t)received == sizeof l->length && l->length != m->bytes)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "sockets: rank %d sends %llu bytes to rank %d, which expects %zu",
                                  peer, (unsigned long long)l->length, w->rank, m->bytes);
        advance(l, (size_t)received);
    }
    return TSR_OK;
}

/* Lists the sockets to poll in `w->polls`; `*peer` is the last rank among them. Returns false when
 * all messages are done. */
static bool list_waits(const wire *w, int *count, int *peer)
{
    *count = 0;
    for (int r = 0; r < w->ranks; r++) {
        const short events =
            (short)((current(&w->sends[r], r) ? POLLOUT : 0) | (current(&w->receives[r], r) ? POLLIN : 0));
        if (!events)
            continue;
        w->polls[(*count)++] = (struct pollfd){w->sockets[r], events, 0};
        *peer = r;
    }
    return *count > 0;
}

static tsr_status go_on(wire *w)
{
    int count, peer;
    do {
        for (int r = 0; r < w->ranks; r++) {
            TSR_TRY(send_some(w, r));
            TSR_TRY(receive_some(w, r));
        }
        if (!list_waits(w, &count, &peer))
            return TSR_OK;
    } while (poll_some(w, w->polls, count, peer) == TSR_OK);
    return TSR_ERROR_PEER;
}

tsr_status wire_exchange(wire *w, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                         size_t receive_count)
{
    if (w->broken)
        return tsr_status_set(TSR_ERROR_PEER, "sockets: rank %d has failed in an earlier call, or another rank has",
                              w->rank);
    for (int r = 0; r < w->ranks; r++) {
        w->sends[r] = (lane){.at = sends, .end = send_count > 0 ? sends + send_count : sends};
        w->receives[r] = (lane){.at = receives, .end = receive_count > 0 ? receives + receive_count : receives};
    }
    const tsr_status status = go_on(w);
    return status == TSR_OK ? TSR_OK : wire_break(w, status);
}
