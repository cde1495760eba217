/** One rank's end of a communicator over MPI. engine.h explains the words. */
#ifndef TSR_COMM_ENGINES_MPI_HANDLE_H
#define TSR_COMM_ENGINES_MPI_HANDLE_H

#include "comm/core/clock.h"
#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/node/gate.h"
#include "comm/engines/mpi/node/tray.h"
#include "comm/engines/mpi/world.h"

#include <mpi.h>

#include <tessera/mpi.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

/** Bytes of a sentence about messages. */
#define TSR_MPI_WORDS 256

typedef enum tsr_mpi_course {
    TSR_MPI_WAITS,   /**< until the messages before it have begun, and its tray, if it has one, is free (a send) or full
                        (a receive) */
    TSR_MPI_LAID,    /**< it is in a tray, until the mate has taken it */
    TSR_MPI_TRAVELS, /**< it is under way by MPI (transit.h) */
    TSR_MPI_IS_OVER
} tsr_mpi_course;

/** The kinds of MPI messages that make up one message; each kind has a tag. */
typedef enum tsr_mpi_way { TSR_MPI_LETTER, TSR_MPI_TOKEN, TSR_MPI_DATA, TSR_MPI_WAYS } tsr_mpi_way;

typedef struct tsr_mpi_letter {
    uint32_t group, number; /**< `number`: as in tsr_mpi_transit */
    uint64_t bytes;         /**< of the whole message */
    char text[TSR_MPI_SHORT];
} tsr_mpi_letter;

typedef struct tsr_mpi_token {
    uint32_t group, number;
    uint64_t bytes, piece; /**< the length that the receiver expects, and that of a piece */
} tsr_mpi_token;

/** The state of one message. By MPI one piece is under way at a time. */
typedef struct tsr_mpi_transit {
    const tsr_message *message;
    tsr_mpi_letter *letter;
    MPI_Request requests[TSR_MPI_WAYS];
    tsr_mpi_token token;
    size_t done, piece; /**< bytes that have arrived or left, and bytes of a piece */
    int turn;           /**< its number among the messages to (from) this peer in this exchange */
    uint32_t number;    /**< its number among those by MPI to (from) this peer since the group was made */
    bool receives;
    bool needs_token; /**< the sender's or the receiver's length, as far as known, is that of a long message */
    bool asked;       /**< its token is posted: by a receiver for sending, by a sender for receiving */
    tsr_mpi_course course;
} tsr_mpi_transit;

/** The start of an exchange's memory. If an exchange is given up while MPI uses some of its memory,
 * this links it into the world's list, until MPI is done. */
struct tsr_mpi_grave {
    struct tsr_mpi_grave *next;
    tsr_mpi_transit *transits;
    size_t count;
};

/** The state of an exchange. `transits` and `letters` have `capacity` elements: receives, then
 * sends. */
typedef struct tsr_mpi_exchange {
    size_t capacity, count, under_way;
    tsr_mpi_transit *transits;
    tsr_mpi_letter *letters;
    int *turns[2];     /**< one per rank: how many of this exchange's messages to [0] and from [1] it have begun */
    tsr_message *rows; /**< one per rank, for tsr_mpi_gather_and_spread() */
    tsr_mpi_grave *memory;
    tsr_status mismatch; /**< a failure if the lengths of a message differ; its sentence is `words` */
    char words[TSR_MPI_WORDS];
    bool started;
    bool shown; /**< the desk shows mates for which rank this one waits */
} tsr_mpi_exchange;

/** What a rank brings to a split. */
typedef struct tsr_mpi_post {
    int32_t color, key, next_group, able;
    tsr_mpi_seat *seat; /**< of its new handle; NULL without a node */
    tsr_mpi_desk *desk; /**< of its new handle; NULL without a node */
} tsr_mpi_post;

typedef struct tsr_mpi_handle {
    tsr_mpi_world *world;
    tsr_context *context; /**< the world's; retained only once the handle has left the world */
    tsr_mpi_node *node;   /**< allocates shared memory; NULL: there is none; retained as `context` is */
    tsr_late_hook late;
    bool left;           /**< it has left the world, which may be freed: it only serves to give back memory */
    int group;           /**< its number: the same on all its ranks, and of no other group that any of them is in */
    int slot;            /**< which set of tags it uses; below 0: none yet */
    int *names;          /**< one per rank: its rank in the world */
    uint32_t *counts[2]; /**< one per rank: how many messages by MPI to [0] and from [1] it have begun */
    uint32_t *over[2]; /**< one per rank: how many of `counts` are over: all, but for an exchange in flight or a broken
                          handle */
    tsr_mpi_post *posts; /**< one per rank, used during a split, as `steps` is */
    int32_t *steps;
    int rank, ranks;
    tsr_mpi_exchange exchange;
    bool broken;
    tsr_kept_sentence why; /**< the sentence of what broke it */
    bool gated;            /**< all its ranks are on this node, and meet at `gate` */
    tsr_mpi_gate gate;
    tsr_mpi_trays trays; /**< mailboxes for messages between ranks of this node */
} tsr_mpi_handle;

/** Makes a world. On success it takes over `comm` and `*first`, which becomes NULL; on failure both
 * stay the caller's. `node` is retained. Not collective. */
tsr_status tsr_mpi_world_create(tsr_context *context, MPI_Comm comm, const tsr_mpi_options *options, tsr_mpi_node *node,
                                int **first, tsr_mpi_world **out);

/** From now on calls of the handle wait for peers at most `timeout_ms`. No group split off it may
 * be in use. */
void tsr_mpi_handle_hurry(tsr_mpi_handle *handle, int64_t timeout_ms);

/** Keeps the world until tsr_mpi_world_leave(), as a handle does. */
void tsr_mpi_world_hold(tsr_mpi_world *world);

/** Gives back one hold; the last one destroys the world. */
void tsr_mpi_world_leave(tsr_mpi_world *world);

/** Destroys a world without handles. Freeing its MPI communicator is collective, but other ranks
 * are waited for only briefly. */
void tsr_mpi_world_destroy(tsr_mpi_world *world);

/** Makes a handle that knows no peers yet, with a seat and a desk of its own, and room for `ranks`
 * ranks. tsr_mpi_handle_destroy() undoes it. */
tsr_status tsr_mpi_handle_create(tsr_mpi_world *world, int ranks, tsr_mpi_handle **out);

/** Destroys a handle that knows no peers but may be known to peers: those on its node find it
 * gone. */
void tsr_mpi_handle_abandon(tsr_mpi_handle *handle);

/** This rank's return from the communicator; the last handle destroys the world. Afterwards the
 * handle only serves to give back memory, until tsr_mpi_handle_destroy(). */
void tsr_mpi_handle_leave(tsr_mpi_handle *handle);

/** Frees the handle, after tsr_mpi_handle_leave() if that has not been called. */
void tsr_mpi_handle_destroy(tsr_mpi_handle *handle);

#endif
