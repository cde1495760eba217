/** One rank's end of a communicator over MPI. */
#ifndef TSR_COMM_ENGINES_MPI_HANDLE_H
#define TSR_COMM_ENGINES_MPI_HANDLE_H

#include "comm/core/clock.h"
#include <mpi.h>
#include <stdatomic.h>
#include <tessera/mpi.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/node/gate.h"
#include "comm/engines/mpi/node/tray.h"
#include "comm/engines/mpi/world.h"

/** Room for what a call says of its messages. */
#define TSR_MPI_WORDS 256

typedef enum tsr_mpi_course {
    TSR_MPI_WAITS,   /**< to be laid into a tray, or for its sender to do that; or for those before it */
    TSR_MPI_LAID,    /**< until it is taken */
    TSR_MPI_TRAVELS, /**< by MPI: see transit.h */
    TSR_MPI_IS_OVER
} tsr_mpi_course;

/** What a message by MPI consists of. */
typedef enum tsr_mpi_way { TSR_MPI_LETTER, TSR_MPI_TOKEN, TSR_MPI_DATA, TSR_MPI_WAYS } tsr_mpi_way;

typedef struct tsr_mpi_letter {
    uint32_t group, number; /**< which message to that peer it is */
    uint64_t bytes;         /**< of the message */
    char text[TSR_MPI_SHORT];
} tsr_mpi_letter;

typedef struct tsr_mpi_token {
    uint32_t group, number;
    uint64_t bytes, piece; /**< that the receiver expects, and so many at a time */
} tsr_mpi_token;

/** A message on its way. By MPI one piece is under way at a time. */
typedef struct tsr_mpi_transit {
    const tsr_message *message;
    tsr_mpi_letter *letter;
    MPI_Request requests[TSR_MPI_WAYS];
    tsr_mpi_token token;
    size_t done, piece; /**< bytes that have arrived or left, and of a piece */
    int turn;           /**< which of the messages to (from) this peer it is, in this exchange */
    uint32_t number;    /**< likewise, of those by MPI since the group was made */
    bool receives;
    bool needs_token; /**< one of its two lengths, as far as they are known, is a long one's */
    bool asked;       /**< its token is posted: a receiver's to be sent, a sender's to come */
    tsr_mpi_course course;
} tsr_mpi_transit;

/** Begins the memory of an exchange. One that was given up while MPI had some of it is kept until MPI is done. */
struct tsr_mpi_grave {
    struct tsr_mpi_grave *next;
    tsr_mpi_transit *transits;
    size_t count;
};

/** The arrays of an exchange. `transits` and `letters` have `capacity` elements, sends after receives. */
typedef struct tsr_mpi_exchange {
    size_t capacity, count, under_way;
    tsr_mpi_transit *transits;
    tsr_mpi_letter *letters;
    int *turns[2];     /**< one a rank: messages to [0] or from [1] it that have begun */
    tsr_message *rows; /**< one a rank, for tsr_mpi_gather_and_spread() */
    tsr_mpi_grave *memory;
    tsr_status mismatch; /**< of a message that did not fit; its words are `words` */
    char words[TSR_MPI_WORDS];
    bool started;
    bool shown; /**< mates see whom this rank waits for */
} tsr_mpi_exchange;

/** What a rank shows to the others while a communicator is split. */
typedef struct tsr_mpi_post {
    int32_t color, key, next_group, able;
    tsr_mpi_seat *seat; /**< of its new handle; NULL without a node */
    tsr_mpi_desk *desk; /**< likewise; NULL without a node */
} tsr_mpi_post;

typedef struct tsr_mpi_handle {
    tsr_mpi_world *world;
    tsr_context *context; /**< the world's; retained once the handle has left it, as is: */
    tsr_mpi_node *node;   /**< whose memory is given out; NULL: none is shared */
    tsr_late_hook late;
    bool left;           /**< the world, which may be gone: only memory is given back any more */
    int group;           /**< its number, the same on all its ranks, and no other group's on any of them */
    int slot;            /**< which tags are its own; below 0: none yet */
    int *names;          /**< its ranks in the world */
    uint32_t *counts[2]; /**< one a rank: messages to [0] and from [1] it by MPI that have begun */
    uint32_t *over[2];   /**< likewise, those that are over; as many unless an exchange is under way, or the handle is broken */
    tsr_mpi_post *posts; /**< one a rank, while it is split; so are `steps` */
    int32_t *steps;
    int rank, ranks;
    tsr_mpi_exchange exchange;
    bool broken;
    tsr_kept_sentence why; /**< it is */
    bool gated;            /**< all its ranks share this node, and meet at the gate */
    tsr_mpi_gate gate;
    tsr_mpi_trays trays; /**< by which ranks of this node send to one another */
} tsr_mpi_handle;

/** Takes over `comm` and `*first`, which becomes NULL, on success alone. `node` is retained. Not collective. */
tsr_status tsr_mpi_world_create(tsr_context *context, MPI_Comm comm, const tsr_mpi_options *options, tsr_mpi_node *node, int **first,
                                tsr_mpi_world **out);

/** Calls of the handle, of which no group is in use, wait for peers no longer than that from now on. */
void tsr_mpi_handle_hurry(tsr_mpi_handle *handle, int64_t timeout_ms);

/** Keeps the world as a handle does, until tsr_mpi_world_leave(). */
void tsr_mpi_world_hold(tsr_mpi_world *world);

/** One handle less; the last one takes the world along. */
void tsr_mpi_world_leave(tsr_mpi_world *world);

/** Of a world without handles; collective in what it takes to end a communicator of MPI's, but it does not wait long for others. */
void tsr_mpi_world_destroy(tsr_mpi_world *world);

/** A handle without peers yet: its own seat, and room for `ranks` names. tsr_mpi_handle_destroy() undoes it. */
tsr_status tsr_mpi_handle_create(tsr_mpi_world *world, int ranks, tsr_mpi_handle **out);

/** Destroys one without peers that peers may know: those who share memory with it learn that it is gone. */
void tsr_mpi_handle_abandon(tsr_mpi_handle *handle);

/** This rank's return: the last handle takes the world along. What remains serves memory until tsr_mpi_handle_destroy(). */
void tsr_mpi_handle_leave(tsr_mpi_handle *handle);

/** Leaves first if need be. */
void tsr_mpi_handle_destroy(tsr_mpi_handle *handle);

#endif
