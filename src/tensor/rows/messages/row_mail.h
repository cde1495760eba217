/**
 * The messages of a call by id.
 *
 * Each rank sends each rank a *request*: the numbers of rows that it names, of each table; the
 * local rows, table after table; and, of an update on the host, the rows themselves, of each table
 * from a multiple of TSR_ALIGNMENT on. A request has a beginning of fixed size, which all ranks
 * exchange first. Its counts say how long the request is, so that the rest of longer ones, if there
 * are any, takes one more exchange.
 *
 * *Contents* are messages of rows alone: the answers to a gather, and what updates bring to tables
 * on devices. Ranks know their sizes from the counts.
 */
#ifndef TSR_TENSOR_ROWS_MESSAGES_ROW_MAIL_H
#define TSR_TENSOR_ROWS_MESSAGES_ROW_MAIL_H

#include "base/checked.h"
#include "comm/collectives/parts.h"
#include "tensor/rows/row_call.h"

/** A call, with what this rank sends and receives. Arrays of counts have an element for each
 * position of the group and table: position * tables + table. */
typedef struct tsr_row_mail {
    const tsr_row_call *call;
    tsr_comm *comm;
    const tsr_group *near; /**< ranks of this node, with which it exchanges no contents (mail_near.h); NULL: none */
    int64_t ranks, tables;
    int64_t *sent, *received;             /**< rows that each rank names to another */
    int64_t *sent_bytes, *received_bytes; /**< of contents; one a rank */
    int64_t first_bytes;                  /**< of the beginning of each request */
    tsr_parts requests, asked; /**< requests of this rank, and of its peers, with their beginnings at least */
    tsr_row_unique *unique;    /**< rows that are named once; one a table */
    tsr_row_segment *packed;   /**< of an update: a row's elements in messages; one a table */
} tsr_row_mail;

/** Takes the memory of all that the struct points to. */
tsr_status tsr_row_mail_open(tsr_row_mail *mail, const tsr_row_call *call);

/** The counts of `rank` in `sent` or `received`; one a table. */
static inline int64_t *tsr_row_mail_counts(const tsr_row_mail *mail, int64_t *counts, int64_t rank)
{
    return counts + rank * mail->tables;
}

/** True if equal rows of a rank for table `i` become one before they are sent. */
bool tsr_row_mail_combines(const tsr_row_mail *mail, int64_t i);

/** True if `rank` is near. */
static inline bool tsr_row_mail_is_near(const tsr_row_mail *mail, int64_t rank)
{
    return mail->near && tsr_group_position(mail->near, rank) >= 0;
}

/** Sorts the requests, counts what they send, and takes memory for them as if no rank were near.
 * Does not communicate. */
tsr_status tsr_row_mail_sort(tsr_row_mail *mail);

/** Counts anew what requests send, after `near` has changed. Takes no memory. */
tsr_status tsr_row_mail_count(tsr_row_mail *mail);

/** Bytes of the request to `rank`, wherever it lies. False: they overflow. */
bool tsr_row_mail_request_bytes(const tsr_row_mail *mail, int64_t rank, int64_t *out);

/** Writes the counts of the request to `rank`, where they are sent. */
void tsr_row_mail_write_counts(const tsr_row_mail *mail, int64_t rank);

/** Writes the counts and local rows of the request to `rank`; NULL: where it is sent. Returns where
 * its rows begin. */
char *tsr_row_mail_write_names(const tsr_row_mail *mail, int64_t rank, char *request);

/** Collective: exchanges the beginnings of requests, and reads the counts. */
tsr_status tsr_row_mail_exchange_beginnings(tsr_row_mail *mail);

/** Finds the sizes of peers' requests, and takes memory for those that are longer than their
 * beginnings. Does not communicate. */
tsr_status tsr_row_mail_expect(tsr_row_mail *mail);

/** True if requests of this rank are longer than their beginnings. */
bool tsr_row_mail_has_rest(const tsr_row_mail *mail);

/** Collective: exchanges what is behind the beginnings. */
tsr_status tsr_row_mail_exchange_rest(const tsr_row_mail *mail);

/** The request of `rank`, which is not near. */
char *tsr_row_mail_asked(const tsr_row_mail *mail, int64_t rank);

/** Finds the local rows of table 0 in a request of `rank`; those of other tables follow without
 * gaps. `*rows`: where its rows begin. */
const int64_t *tsr_row_mail_names(const tsr_row_mail *mail, int64_t rank, char *request, char **rows);

/** True if messages hold whole rows, also where a rank has a part of their columns. */
bool tsr_row_mail_sends_whole(const tsr_row_mail *mail);

/** True if this rank names rows of table `i` to `rank`: all replicas change theirs, but a gather
 * reads one, the own. */
bool tsr_row_mail_concerns(const tsr_row_mail *mail, int64_t rank, int64_t i);

/** Bytes of a row in messages to or from `rank`: of its column part. */
int64_t tsr_row_mail_row_bytes(const tsr_row_mail *mail, int64_t rank, int64_t i);

/** Sets the bytes of contents, and takes memory for them: TSR_ROOM_ANSWERED and TSR_ROOM_RECEIVED,
 * or TSR_ROOM_DEVICE_SENT and TSR_ROOM_DEVICE_RECEIVED. */
tsr_status tsr_row_mail_size_contents(const tsr_row_mail *mail);

/** The memory of contents that are sent, and that are received. */
char *tsr_row_mail_contents_sent(const tsr_row_mail *mail);
char *tsr_row_mail_contents_received(const tsr_row_mail *mail);

/** Collective: exchanges contents. */
tsr_status tsr_row_mail_exchange_contents(const tsr_row_mail *mail);

/** The rest of a message: `count` rows lie at the returned place. */
static inline char *tsr_row_mail_next(char **at, int64_t count, int64_t row_bytes)
{
    char *const rows = *at;
    *at += tsr_round_up((size_t)(count * row_bytes), TSR_ALIGNMENT);
    return rows;
}

#endif
