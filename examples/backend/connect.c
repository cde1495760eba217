/* Makes the connections of ranks: the first ones by paths in a directory, those of groups over
 * existing connections. */
#include "wire.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static tsr_status path_of(const char *directory, int rank, struct sockaddr_un *path)
{
    *path = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((size_t)snprintf(path->sun_path, sizeof path->sun_path, "%s/%d", directory, rank) >= sizeof path->sun_path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "sockets: the path of directory \"%s\" is too long for a socket",
                              directory);
    return TSR_OK;
}

static tsr_status listen_at(const wire *w, const struct sockaddr_un *path, int *out)
{
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        return wire_fail("the socket", w->rank);
    if (bind(made, (const struct sockaddr *)path, sizeof *path) < 0 || listen(made, w->ranks) < 0) {
        const tsr_status status = wire_fail(path->sun_path, w->rank);
        close(made);
        return status;
    }
    *out = made;
    return TSR_OK;
}

/* Retries until `peer` listens: until then its path is missing or refuses connections. */
static tsr_status connect_to(const wire *w, int peer, const struct sockaddr_un *path, int made)
{
    const struct timespec pause = {0, 1000000};
    for (int64_t waited = 0; connect(made, (const struct sockaddr *)path, sizeof *path) < 0; waited++) {
        if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
            return wire_fail("connecting to the socket", peer);
        if (w->timeout_ms > 0 && waited >= w->timeout_ms)
            return tsr_status_set(TSR_ERROR_PEER, "sockets: rank %d did not come within %lld ms", peer,
                                  (long long)w->timeout_ms);
        nanosleep(&pause, NULL);
    }
    if (send(made, &w->rank, sizeof w->rank, MSG_NOSIGNAL) != sizeof w->rank)
        return wire_fail("sending to the socket", peer);
    return TSR_OK;
}

static tsr_status connect_lower(const wire *w, const char *directory)
{
    for (int r = 0; r < w->rank; r++) {
        struct sockaddr_un path;
        TSR_TRY(path_of(directory, r, &path));
        w->sockets[r] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (w->sockets[r] < 0)
            return wire_fail("the socket", r);
        TSR_TRY(connect_to(w, r, &path, w->sockets[r]));
    }
    return TSR_OK;
}

/* Accepts one connection, whose first bytes are the peer's rank. Meanwhile sockets[own rank] is the
 * listening socket. */
static tsr_status accept_one(const wire *w)
{
    int peer = -1;
    TSR_TRY(wire_wait(w, w->rank, POLLIN));
    const int made = accept(w->sockets[w->rank], NULL, NULL);
    if (made < 0)
        return wire_fail("accepting at the socket", w->rank);
    if (recv(made, &peer, sizeof peer, MSG_WAITALL) != sizeof peer || peer <= w->rank || peer >= w->ranks ||
        w->sockets[peer] >= 0) {
        close(made);
        return tsr_status_set(TSR_ERROR_IO, "sockets: a connection to rank %d of %d does not come from another rank",
                              w->rank, w->ranks);
    }
    w->sockets[peer] = made;
    return TSR_OK;
}

tsr_status wire_connect(wire *w, const char *directory)
{
    struct sockaddr_un own;
    TSR_TRY(path_of(directory, w->rank, &own));
    TSR_TRY(listen_at(w, &own, &w->sockets[w->rank]));
    tsr_status status = connect_lower(w, directory);
    for (int r = w->rank + 1; r < w->ranks && status == TSR_OK; r++)
        status = accept_one(w);
    close(w->sockets[w->rank]);
    w->sockets[w->rank] = -1;
    unlink(own.sun_path);
    return status;
}

/* A message of one byte, with room for the descriptor that travels with it. */
typedef union ancillary {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} ancillary;

static struct msghdr byte_with(struct iovec *byte, ancillary *descriptor)
{
    return (struct msghdr){
        .msg_iov = byte, .msg_iovlen = 1, .msg_control = descriptor->bytes, .msg_controllen = sizeof descriptor->bytes};
}

static tsr_status send_descriptor(const wire *w, int peer, int descriptor)
{
    char nothing = 0;
    struct iovec byte = {&nothing, 1};
    ancillary space;
    memset(&space, 0, sizeof space);
    struct msghdr message = byte_with(&byte, &space);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    TSR_TRY(wire_wait(w, peer, POLLOUT));
    return sendmsg(w->sockets[peer], &message, MSG_NOSIGNAL) == 1 ? TSR_OK : wire_fail("sending to the socket", peer);
}

tsr_status wire_give(const wire *w, int peer, int *kept)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return wire_fail("a pair of sockets", peer);
    const tsr_status status = send_descriptor(w, peer, ends[1]);
    close(ends[1]);
    *kept = ends[0];
    return status;
}

tsr_status wire_take(const wire *w, int peer, int *taken)
{
    char nothing;
    struct iovec byte = {&nothing, 1};
    ancillary space;
    memset(&space, 0, sizeof space);
    struct msghdr message = byte_with(&byte, &space);
    TSR_TRY(wire_wait(w, peer, POLLIN));
    const ssize_t received = recvmsg(w->sockets[peer], &message, MSG_CMSG_CLOEXEC);
    if (received == 0)
        errno = EPIPE;
    if (received <= 0)
        return wire_fail("receiving from the socket", peer);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return tsr_status_set(TSR_ERROR_IO, "sockets: rank %d sent no socket", peer);
    memcpy(taken, CMSG_DATA(header), sizeof *taken);
    return TSR_OK;
}
