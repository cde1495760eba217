#include "tensor/rows/messages/row_mail.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Bytes of a beginning beside the counts: with the count of one table they come to 512 bytes, with
 * 63 local rows; or, where rows travel too, to 4096. */
#define NAMES_ROOM 504
#define ROWS_ROOM  4088

/* True if requests hold rows, too. */
static bool brings_rows(const tsr_row_mail *mail)
{
    return !mail->call->gathers && !mail->call->batch;
}

tsr_status tsr_row_mail_open(tsr_row_mail *mail, const tsr_row_call *call)
{
    const size_t tables = call->count, ranks = (size_t)call->group->count, counts = ranks * tables;
    void *memory;
    *mail =
        (tsr_row_mail){.call = call, .comm = call->group->comm, .ranks = call->group->count, .tables = (int64_t)tables};
    TSR_TRY(tsr_row_room_take(call->rooms, TSR_ROOM_COUNTS, 1,
                              (2 * counts + 6 * ranks) * sizeof(int64_t) +
                                  tables * (sizeof(tsr_row_unique) + sizeof(tsr_row_segment)),
                              &memory));
    mail->sent = memory;
    mail->received = mail->sent + counts;
    mail->sent_bytes = mail->received + counts;
    mail->received_bytes = mail->sent_bytes + ranks;
    mail->requests.begins = mail->received_bytes + ranks;
    mail->requests.bytes = mail->requests.begins + ranks;
    mail->asked.begins = mail->requests.bytes + ranks;
    mail->asked.bytes = mail->asked.begins + ranks;
    mail->unique = (tsr_row_unique *)(mail->asked.bytes + ranks);
    mail->packed = (tsr_row_segment *)(mail->unique + tables);
    mail->first_bytes =
        (int64_t)tsr_round_up(tables * sizeof(int64_t) + (brings_rows(mail) ? ROWS_ROOM : NAMES_ROOM), TSR_ALIGNMENT);
    return TSR_OK;
}

bool tsr_row_mail_combines(const tsr_row_mail *mail, int64_t i)
{
    const tsr_row_call *const call = mail->call;
    return !call->gathers && tsr_row_op_groups(call->op, call->requests[i].table->layout->dtype);
}

/* True if the rows that a rank names for table `i` are those of mail->unique. */
static bool unites(const tsr_row_mail *mail, int64_t i)
{
    return mail->call->gathers || tsr_row_mail_combines(mail, i);
}

/* The rows that this rank names of table `i`, by row part. */
static const int64_t *starts_of(const tsr_row_mail *mail, int64_t i)
{
    return unites(mail, i) ? mail->unique[i].starts : mail->call->requests[i].starts;
}

static const int64_t *locals_of(const tsr_row_mail *mail, int64_t i)
{
    return unites(mail, i) ? mail->unique[i].locals : mail->call->requests[i].locals;
}

bool tsr_row_mail_concerns(const tsr_row_mail *mail, int64_t rank, int64_t i)
{
    const tsr_row_table *const table = mail->call->requests[i].table;
    return !mail->call->gathers || table->ranks[rank].replica == table->replicas.own;
}

bool tsr_row_mail_sends_whole(const tsr_row_mail *mail)
{
    return mail->call->step && mail->call->step->needs_whole;
}

int64_t tsr_row_mail_row_bytes(const tsr_row_mail *mail, int64_t rank, int64_t i)
{
    const tsr_row_table *const table = mail->call->requests[i].table;
    const int64_t part = table->parts[table->ranks[rank].columns].width;
    return (tsr_row_mail_sends_whole(mail) ? table->width : part) * (int64_t)table->element_bytes;
}

static void count_rows(const tsr_row_mail *mail)
{
    for (int64_t rank = 0; rank < mail->ranks; rank++)
        for (int64_t i = 0; i < mail->tables; i++) {
            const int64_t *const starts = starts_of(mail, i) + mail->call->requests[i].table->ranks[rank].rows;
            tsr_row_mail_counts(mail, mail->sent, rank)[i] =
                tsr_row_mail_concerns(mail, rank, i) && !(mail->call->gathers && tsr_row_mail_is_near(mail, rank))
                    ? starts[1] - starts[0]
                    : 0;
        }
}

static tsr_status sort_requests(const tsr_row_mail *mail)
{
    for (int64_t i = 0; i < mail->tables; i++) {
        tsr_row_request *const request = &mail->call->requests[i];
        TSR_TRY(tsr_row_request_sort(request));
        if (unites(mail, i))
            TSR_TRY(tsr_row_request_find_unique(request, &mail->unique[i]));
        else if (mail->call->op == TSR_ROWS_ASSIGN)
            TSR_TRY(tsr_row_request_keep_last(request));
    }
    return TSR_OK;
}

/* Adds the bytes of `count` rows, rounded up so that any dtype may begin behind them. False: they
 * overflow. */
static bool add_rows(int64_t count, int64_t row_bytes, int64_t *bytes)
{
    int64_t rows;
    if (!tsr_multiply(count, row_bytes, &rows) || rows > INT64_MAX - (int64_t)TSR_ALIGNMENT)
        return false;
    return tsr_add_sizes(*bytes, (int64_t)tsr_round_up((size_t)rows, TSR_ALIGNMENT), bytes);
}

/* Bytes of the contents that `counts` rows of each table come to; `owner`: the rank whose column
 * part they have. */
static bool contents_bytes(const tsr_row_mail *mail, const int64_t *counts, int64_t owner, int64_t *out)
{
    *out = 0;
    for (int64_t i = 0; i < mail->tables; i++)
        if (!add_rows(counts[i], tsr_row_mail_row_bytes(mail, owner, i), out))
            return false;
    return true;
}

/* Bytes of a request with these counts. */
static bool request_bytes(const tsr_row_mail *mail, const int64_t *counts, int64_t owner, int64_t *out)
{
    int64_t names = mail->tables, rows = 0;
    for (int64_t i = 0; i < mail->tables; i++)
        if (!tsr_add_sizes(names, counts[i], &names))
            return false;
    if (!tsr_multiply(names, (int64_t)sizeof(int64_t), out))
        return false;
    if (brings_rows(mail)) {
        if (!contents_bytes(mail, counts, owner, &rows) || *out > INT64_MAX - (int64_t)TSR_ALIGNMENT)
            return false;
        *out = (int64_t)tsr_round_up((size_t)*out, TSR_ALIGNMENT);
    }
    return tsr_add_sizes(*out, rows, out);
}

bool tsr_row_mail_request_bytes(const tsr_row_mail *mail, int64_t rank, int64_t *out)
{
    return request_bytes(mail, tsr_row_mail_counts(mail, mail->sent, rank), rank, out);
}

/* Bytes of a request that ranks near one another exchange: the counts of an update. */
static int64_t near_bytes(const tsr_row_mail *mail)
{
    return mail->call->gathers ? 0 : mail->tables * (int64_t)sizeof(int64_t);
}

static tsr_status refuse_bytes(const tsr_row_mail *mail)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: the messages have more than 2^63 - 1 bytes", mail->call->name);
}

/* Finds where requests lie. `owner`: the rank whose column part their rows have; -1: that to which
 * each goes. `*total`: the bytes of all. */
static tsr_status lay_requests(const tsr_row_mail *mail, const tsr_parts *parts, int64_t *counts, int64_t owner,
                               int64_t *total)
{
    *total = 0;
    for (int64_t rank = 0; rank < mail->ranks; rank++) {
        int64_t *const bytes = &parts->bytes[rank];
        parts->begins[rank] = *total;
        if (tsr_row_mail_is_near(mail, rank))
            *bytes = near_bytes(mail);
        else if (request_bytes(mail, tsr_row_mail_counts(mail, counts, rank), owner < 0 ? rank : owner, bytes))
            *bytes = tsr_max_i64(*bytes, mail->first_bytes);
        else
            return refuse_bytes(mail);
        if (!add_rows(*bytes, 1, total))
            return refuse_bytes(mail);
    }
    return TSR_OK;
}

tsr_status tsr_row_mail_count(tsr_row_mail *mail)
{
    int64_t total;
    count_rows(mail);
    return lay_requests(mail, &mail->requests, mail->sent, -1, &total);
}

tsr_status tsr_row_mail_sort(tsr_row_mail *mail)
{
    int64_t total;
    void *memory;
    TSR_TRY(sort_requests(mail));
    count_rows(mail);
    TSR_TRY(lay_requests(mail, &mail->requests, mail->sent, -1, &total));
    TSR_TRY(tsr_row_room_take(mail->call->rooms, TSR_ROOM_SENT, (size_t)total, 1, &mail->requests.memory));
    return tsr_row_room_take(mail->call->rooms, TSR_ROOM_BEGINNINGS, (size_t)mail->ranks, (size_t)mail->first_bytes,
                             &memory);
}

/* Where rows begin behind names that end at `end`. */
static char *rows_behind(char *request, const int64_t *end)
{
    return request + tsr_round_up((size_t)((const char *)end - request), TSR_ALIGNMENT);
}

static char *own_request(const tsr_row_mail *mail, int64_t rank)
{
    return (char *)mail->requests.memory + mail->requests.begins[rank];
}

void tsr_row_mail_write_counts(const tsr_row_mail *mail, int64_t rank)
{
    memcpy(own_request(mail, rank), tsr_row_mail_counts(mail, mail->sent, rank), (size_t)mail->requests.bytes[rank]);
}

char *tsr_row_mail_write_names(const tsr_row_mail *mail, int64_t rank, char *request)
{
    request = request ? request : own_request(mail, rank);
    const int64_t *const counts = tsr_row_mail_counts(mail, mail->sent, rank);
    int64_t *to = (int64_t *)(void *)request;
    memcpy(to, counts, (size_t)mail->tables * sizeof *to);
    to += mail->tables;
    for (int64_t i = 0; i < mail->tables; i++) {
        if (counts[i] > 0)
            memcpy(to, locals_of(mail, i) + starts_of(mail, i)[mail->call->requests[i].table->ranks[rank].rows],
                   (size_t)counts[i] * sizeof *to);
        to += counts[i];
    }
    return rows_behind(request, to);
}

/* The requests of peers as far as their beginnings. */
static void expect_beginnings(tsr_row_mail *mail)
{
    mail->asked.memory = mail->call->rooms->memory[TSR_ROOM_BEGINNINGS];
    for (int64_t rank = 0; rank < mail->ranks; rank++) {
        mail->asked.begins[rank] = rank * mail->first_bytes;
        mail->asked.bytes[rank] = tsr_row_mail_is_near(mail, rank) ? near_bytes(mail) : mail->first_bytes;
    }
}

tsr_status tsr_row_mail_exchange_beginnings(tsr_row_mail *mail)
{
    expect_beginnings(mail);
    TSR_TRY(tsr_parts_exchange_range(mail->comm, &mail->requests, &mail->asked, 0, mail->first_bytes));
    for (int64_t rank = 0; rank < mail->ranks; rank++) {
        int64_t *const counts = tsr_row_mail_counts(mail, mail->received, rank);
        memset(counts, 0, (size_t)mail->tables * sizeof *counts);
        if (mail->asked.bytes[rank] > 0)
            memcpy(counts, tsr_row_mail_asked(mail, rank), (size_t)mail->tables * sizeof *counts);
    }
    return TSR_OK;
}

static bool exceeds_beginnings(const tsr_row_mail *mail, const tsr_parts *parts)
{
    for (int64_t rank = 0; rank < mail->ranks; rank++)
        if (parts->bytes[rank] > mail->first_bytes)
            return true;
    return false;
}

bool tsr_row_mail_has_rest(const tsr_row_mail *mail)
{
    return exceeds_beginnings(mail, &mail->requests);
}

/* Requests stay among the beginnings if these are all. */
tsr_status tsr_row_mail_expect(tsr_row_mail *mail)
{
    const char *const beginnings = mail->asked.memory;
    int64_t total;
    TSR_TRY(lay_requests(mail, &mail->asked, mail->received, tsr_comm_rank(mail->comm), &total));
    if (!exceeds_beginnings(mail, &mail->asked)) {
        expect_beginnings(mail);
        return TSR_OK;
    }
    TSR_TRY(tsr_row_room_take(mail->call->rooms, TSR_ROOM_ASKED, (size_t)total, 1, &mail->asked.memory));
    for (int64_t rank = 0; rank < mail->ranks; rank++)
        memcpy((char *)mail->asked.memory + mail->asked.begins[rank], beginnings + rank * mail->first_bytes,
               (size_t)tsr_min_i64(mail->asked.bytes[rank], mail->first_bytes));
    return TSR_OK;
}

tsr_status tsr_row_mail_exchange_rest(const tsr_row_mail *mail)
{
    return tsr_parts_exchange_range(mail->comm, &mail->requests, &mail->asked, mail->first_bytes, INT64_MAX);
}

char *tsr_row_mail_asked(const tsr_row_mail *mail, int64_t rank)
{
    return (char *)mail->asked.memory + mail->asked.begins[rank];
}

const int64_t *tsr_row_mail_names(const tsr_row_mail *mail, int64_t rank, char *request, char **rows)
{
    const int64_t *const counts = tsr_row_mail_counts(mail, mail->received, rank);
    const int64_t *const names = (const int64_t *)(const void *)request + mail->tables;
    const int64_t *end = names;
    for (int64_t i = 0; i < mail->tables; i++)
        end += counts[i];
    *rows = rows_behind(request, end);
    return names;
}

tsr_status tsr_row_mail_size_contents(const tsr_row_mail *mail)
{
    const int64_t own = tsr_comm_rank(mail->comm);
    const bool answers = mail->call->gathers, on_device = mail->call->batch;
    int64_t sent = 0, received = 0;
    void *memory;
    for (int64_t rank = 0; rank < mail->ranks; rank++) {
        const int64_t *const named = tsr_row_mail_counts(mail, mail->sent, rank), *const asked = tsr_row_mail_counts(
                                                                                      mail, mail->received, rank);
        if (!contents_bytes(mail, answers ? asked : named, answers ? own : rank, &mail->sent_bytes[rank]) ||
            !contents_bytes(mail, answers ? named : asked, answers ? rank : own, &mail->received_bytes[rank]) ||
            !tsr_add_sizes(sent, mail->sent_bytes[rank], &sent) ||
            !tsr_add_sizes(received, mail->received_bytes[rank], &received))
            return refuse_bytes(mail);
    }
    TSR_TRY(tsr_row_room_take(mail->call->rooms, on_device ? TSR_ROOM_DEVICE_SENT : TSR_ROOM_ANSWERED, (size_t)sent, 1,
                              &memory));
    return tsr_row_room_take(mail->call->rooms, on_device ? TSR_ROOM_DEVICE_RECEIVED : TSR_ROOM_RECEIVED,
                             (size_t)received, 1, &memory);
}

char *tsr_row_mail_contents_sent(const tsr_row_mail *mail)
{
    return mail->call->rooms->memory[mail->call->batch ? TSR_ROOM_DEVICE_SENT : TSR_ROOM_ANSWERED];
}

char *tsr_row_mail_contents_received(const tsr_row_mail *mail)
{
    return mail->call->rooms->memory[mail->call->batch ? TSR_ROOM_DEVICE_RECEIVED : TSR_ROOM_RECEIVED];
}

tsr_status tsr_row_mail_exchange_contents(const tsr_row_mail *mail)
{
    return tsr_parts_exchange(mail->comm, tsr_row_mail_contents_sent(mail), mail->sent_bytes,
                              tsr_row_mail_contents_received(mail), mail->received_bytes,
                              mail->call->batch ? mail->call->batch->device : tsr_device_host());
}
