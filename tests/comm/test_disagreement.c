/*
 * Ranks whose calls differ: every rank gets TSR_ERROR_ARGUMENT with one sentence, which names the
 * lowest rank that differs from rank 0 and quotes both calls, and the communicator stays usable.
 */
#include "comm_suite.h"

#include <stdio.h>
#include <string.h>

enum { MOST_RANKS = 5, SENTENCE = 1024, BUFFER = 64 };

/* One call with fixed arguments. */
typedef tsr_status small_call(tsr_comm *comm);

static double buffers[MOST_RANKS][2][BUFFER];

static double *send_of(tsr_comm *comm)
{
    return buffers[tsr_comm_rank(comm)][0];
}

static double *receive_of(tsr_comm *comm)
{
    return buffers[tsr_comm_rank(comm)][1];
}

static tsr_status sum_three(tsr_comm *comm)
{
    return tsr_comm_all_reduce(comm, send_of(comm), receive_of(comm), 3, TSR_F32, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status sum_four(tsr_comm *comm)
{
    return tsr_comm_all_reduce(comm, send_of(comm), receive_of(comm), 4, TSR_F32, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status sum_three_integers(tsr_comm *comm)
{
    return tsr_comm_all_reduce(comm, send_of(comm), receive_of(comm), 3, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status largest_three(tsr_comm *comm)
{
    return tsr_comm_all_reduce(comm, send_of(comm), receive_of(comm), 3, TSR_F32, TSR_MAX, tsr_device_host(), NULL);
}

static tsr_status gather_three(tsr_comm *comm)
{
    return tsr_comm_all_gather(comm, send_of(comm), receive_of(comm), 3, NULL, TSR_F32, tsr_device_host(), NULL);
}

static tsr_status gather_by_counts(tsr_comm *comm)
{
    static const int64_t counts[MOST_RANKS] = {3, 3, 3, 3, 3};
    return tsr_comm_all_gather(comm, send_of(comm), receive_of(comm), 0, counts, TSR_F32, tsr_device_host(), NULL);
}

static tsr_status gather_by_other_counts(tsr_comm *comm)
{
    static const int64_t counts[MOST_RANKS] = {3, 2, 3, 3, 3};
    return tsr_comm_all_gather(comm, send_of(comm), receive_of(comm), 0, counts, TSR_F32, tsr_device_host(), NULL);
}

static tsr_status broadcast_from_first(tsr_comm *comm)
{
    return tsr_comm_broadcast(comm, receive_of(comm), 3, TSR_F32, 0, tsr_device_host(), NULL);
}

static tsr_status broadcast_from_second(tsr_comm *comm)
{
    return tsr_comm_broadcast(comm, receive_of(comm), 3, TSR_F32, 1, tsr_device_host(), NULL);
}

static tsr_status scatter_from_first(tsr_comm *comm)
{
    return tsr_comm_scatter(comm, send_of(comm), receive_of(comm), 3, NULL, TSR_F32, 0, tsr_device_host(), NULL);
}

static tsr_status swap_three(tsr_comm *comm)
{
    return tsr_comm_all_to_all(comm, send_of(comm), receive_of(comm), 3, NULL, NULL, TSR_F32, tsr_device_host(), NULL);
}

static tsr_status meet_all(tsr_comm *comm)
{
    return tsr_comm_barrier(comm);
}

static tsr_status split_in_two(tsr_comm *comm)
{
    tsr_comm *part = NULL;
    const tsr_status status = tsr_comm_split(comm, tsr_comm_rank(comm) % 2, 0, &part);
    tsr_comm_destroy(part);
    return status;
}

static tsr_status exchange_nothing(tsr_comm *comm)
{
    return tsr_comm_exchange(comm, NULL, 0, NULL, 0, tsr_device_host(), NULL);
}

static tsr_status exchange_in_halves(tsr_comm *comm)
{
    TSR_TRY(tsr_comm_exchange_start(comm, NULL, 0, NULL, 0, tsr_device_host(), NULL));
    return tsr_comm_exchange_finish(comm);
}

/* Engines that notice the difference: all that agree before they send, or direct ones alone, since
 * ranks do not agree before an exchange of messages. */
typedef enum noticed { BY_ALL, BY_DIRECT } noticed;

typedef struct dispute {
    small_call *usual, *odd;
    const char *usual_words, *odd_words; /* the calls in words; NULL if a message engine's own calls differ */
    noticed by;
} dispute;

static const dispute disputes[] = {
    {sum_three, sum_four, "all_reduce of 3 f32, op sum, on host", "all_reduce of 4 f32, op sum, on host", BY_ALL},
    {sum_three, sum_three_integers, "all_reduce of 3 f32", "all_reduce of 3 i32", BY_ALL},
    {sum_three, largest_three, "op sum", "op max", BY_ALL},
    {sum_three, gather_three, "all_reduce of 3 f32", "all_gather of 3 f32, on host", BY_ALL},
    {gather_three, swap_three, "all_gather of 3 f32", "all_to_all of 3 f32", BY_ALL},
    {gather_by_counts, gather_by_other_counts, "all_gather of 3,3", "all_gather of 3,2", BY_ALL},
    {gather_three, gather_by_counts, "all_gather of 3 f32", "all_gather of 3,3", BY_ALL},
    {broadcast_from_first, broadcast_from_second, "root 0", "root 1", BY_ALL},
    {broadcast_from_first, scatter_from_first, "broadcast of 3 f32, root 0, on host",
     "scatter of 3 f32, root 0, on host", BY_ALL},
    {split_in_two, sum_three, "split", "all_reduce of 3 f32", BY_ALL},
    {meet_all, sum_three, "barrier", "all_reduce of 3 f32", BY_ALL},
    {exchange_nothing, meet_all, "exchange", "barrier", BY_DIRECT},
    {exchange_nothing, gather_three, "exchange", "all_gather", BY_DIRECT},
    {exchange_in_halves, meet_all, "exchange", "barrier", BY_DIRECT},
    {gather_three, exchange_in_halves, "all_gather", "exchange", BY_DIRECT},
};
#define DISPUTES ((int)(sizeof disputes / sizeof *disputes))

typedef struct trial {
    const dispute *dispute;
    int odd; /* the rank that differs */
    char sentences[MOST_RANKS][SENTENCE];
} trial;

/* Keeps this rank's sentence, and checks that all ranks have one sentence. */
static tsr_status check_same_sentence(tsr_comm *comm, trial *t)
{
    char *const own = t->sentences[tsr_comm_rank(comm)];
    snprintf(own, SENTENCE, "%s", tsr_status_message());
    if (suite_engine->apart)
        TSR_TRY(tsr_comm_all_gather(comm, own, t->sentences, SENTENCE, NULL, TSR_U8, tsr_device_host(), NULL));
    TSR_TRY(suite_check_usable(comm));
    for (int r = 0; r < tsr_comm_size(comm); r++)
        if (strcmp(t->sentences[r], t->sentences[0]) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank 0 says \"%s\", rank %d says \"%s\"", t->sentences[0], r,
                                  t->sentences[r]);
    return tsr_comm_barrier(comm);
}

/* Checks the sentence "ranks disagree: rank 0 calls (words of rank 0), but rank k calls (words of
 * rank k)". */
static tsr_status check_words(const trial *t)
{
    const dispute *d = t->dispute;
    const char *first = t->odd == 0 ? d->odd_words : d->usual_words,
               *second = t->odd == 0 ? d->usual_words : d->odd_words;
    char sentence[SENTENCE], but[32];
    snprintf(sentence, sizeof sentence, "%s", t->sentences[0]);
    snprintf(but, sizeof but, ", but rank %d calls ", t->odd > 0 ? t->odd : 1);
    char *rest = strstr(sentence, but);
    CHECK(rest && strncmp(sentence, "ranks disagree: rank 0 calls ", 29) == 0);
    *rest = '\0';
    if (!first || (strstr(sentence, first) && strstr(rest + 1, second)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "odd rank %d: \"%s\" does not say \"%s\" and \"%s\"", t->odd,
                          t->sentences[0], first, second);
}

static tsr_status dispute_once(tsr_comm *comm, void *arg)
{
    trial *t = arg;
    const tsr_status status = tsr_comm_rank(comm) == t->odd ? t->dispute->odd(comm) : t->dispute->usual(comm);
    CHECK_ERROR(status, TSR_ERROR_ARGUMENT, "rank");
    TSR_TRY(check_same_sentence(comm, t));
    return check_words(t);
}

static bool is_noticed(const dispute *d)
{
    return d->by == BY_ALL || suite_engine->direct;
}

static void every_rank_names_the_lowest_that_differs_and_goes_on(void **state)
{
    (void)state;
    for (int i = 0; i < DISPUTES; i++)
        for (int n = 2; n <= MOST_RANKS && is_noticed(&disputes[i]); n++)
            for (int odd = 0; odd < n; odd++) {
                trial t = {.dispute = &disputes[i], .odd = odd};
                suite_run(n, dispute_once, &t);
            }
}

/* Ranks 1 and 3 differ from the others and from each other: rank 1 is named. */
static tsr_status dispute_twice(tsr_comm *comm, void *arg)
{
    static small_call *const calls[] = {sum_three, sum_four, sum_three, largest_three};
    trial *t = arg;
    CHECK_ERROR(calls[tsr_comm_rank(comm)](comm), TSR_ERROR_ARGUMENT, "but rank 1 calls all_reduce of 4");
    return check_same_sentence(comm, t);
}

static void of_several_that_differ_the_lowest_is_named(void **state)
{
    (void)state;
    trial t = {0};
    suite_run(4, dispute_twice, &t);
}

/* Rank 1 skips the first of three calls, and so is one call ahead until its last. */
static tsr_status skip_one(tsr_comm *comm, void *arg)
{
    (void)arg;
    const bool skips = tsr_comm_rank(comm) == 1;
    CHECK_ERROR(skips ? gather_three(comm) : sum_three(comm), TSR_ERROR_ARGUMENT, "rank 1 calls all_gather");
    CHECK_ERROR(skips ? sum_four(comm) : gather_three(comm), TSR_ERROR_ARGUMENT, "rank 1 calls all_reduce of 4");
    return skips ? TSR_OK : tsr_comm_barrier(comm) == TSR_ERROR_PEER ? TSR_OK : TSR_ERROR_INTERNAL;
}

static void another_order_of_calls_is_a_disagreement(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= 3; n++)
        suite_run(n, skip_one, NULL);
}

typedef struct message_fault {
    size_t sent, expected;       /* bytes of the message from 0 to the last rank */
    bool not_sent, not_expected; /* rank 0 sends, or the last rank expects, no message */
    const char *words;
} message_fault;

static const message_fault message_faults[] = {
    {16, 12, false, false, "rank 0 sends 16 bytes to rank %d, which expects 12"},
    {4, 8, false, false, "rank 0 sends 4 bytes to rank %d, which expects 8"},
    {0, 8, true, false, "rank %d expects 8 bytes from rank 0, which sends 0 more"},
    {8, 0, false, true, "rank 0 sends 8 bytes to rank %d, which expects 0 more"},
};

typedef struct message_trial {
    trial trial;
    const message_fault *fault;
    suite_exchange *exchange;
} message_trial;

static tsr_status exchange_wrongly(tsr_comm *comm, void *arg)
{
    message_trial *t = arg;
    const message_fault *fault = t->fault;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    const tsr_message send = {last, send_of(comm), fault->sent}, receive = {0, receive_of(comm), fault->expected};
    char words[128];
    snprintf(words, sizeof words, fault->words, last);
    CHECK_ERROR(t->exchange(comm, &send, rank == 0 && !fault->not_sent, &receive, rank == last && !fault->not_expected),
                TSR_ERROR_ARGUMENT, words);
    return check_same_sentence(comm, &t->trial);
}

static void messages_that_do_not_fit_name_both_ranks_and_sizes_on_all(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    NEEDS_ONE_PROCESS();
    for (size_t i = 0; i < sizeof message_faults / sizeof *message_faults; i++)
        for (int n = 2; n <= 4; n++)
            for (int way = 0; way < EXCHANGES; way++) {
                message_trial t = {.fault = &message_faults[i], .exchange = suite_exchanges[way]};
                suite_run(n, exchange_wrongly, &t);
            }
}

/* Ranks send 1, 2 and 1 elements to ranks 0, 1 and 2, and expect matching numbers, except that rank
 * 2 expects 4 from rank 1. */
static tsr_status swap_wrongly(tsr_comm *comm, void *arg)
{
    static const int64_t sends[3] = {1, 2, 1}, receives[3][3] = {{1, 1, 1}, {2, 2, 2}, {1, 4, 1}};
    const char *words = "tsr_comm_all_to_all: rank 1 sends 1 elements to rank 2, which expects 4";
    CHECK_ERROR(tsr_comm_all_to_all(comm, send_of(comm), receive_of(comm), 0, sends, receives[tsr_comm_rank(comm)],
                                    TSR_F64, tsr_device_host(), NULL),
                TSR_ERROR_ARGUMENT, words);
    return check_same_sentence(comm, arg);
}

static void counts_of_an_all_to_all_that_do_not_fit_are_named_on_all(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    NEEDS_ONE_PROCESS();
    trial t = {0};
    suite_run(3, swap_wrongly, &t);
}

typedef tsr_status placed_call(tsr_comm *comm, tsr_device device, tsr_stream stream);

static tsr_status gather_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_all_gather(comm, send_of(comm), receive_of(comm), 3, NULL, TSR_F32, device, stream);
}

static tsr_status reduce_scatter_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_reduce_scatter(comm, send_of(comm), receive_of(comm), 3, NULL, TSR_F32, TSR_SUM, device, stream);
}

static tsr_status sum_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_all_reduce(comm, send_of(comm), receive_of(comm), 3, TSR_F32, TSR_SUM, device, stream);
}

static tsr_status swap_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_all_to_all(comm, send_of(comm), receive_of(comm), 3, NULL, NULL, TSR_F32, device, stream);
}

static tsr_status broadcast_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_broadcast(comm, receive_of(comm), 3, TSR_F32, 0, device, stream);
}

static tsr_status scatter_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_scatter(comm, send_of(comm), receive_of(comm), 3, NULL, TSR_F32, 0, device, stream);
}

static tsr_status gather_to_root_placed(tsr_comm *comm, tsr_device device, tsr_stream stream)
{
    return tsr_comm_gather(comm, send_of(comm), receive_of(comm), 3, NULL, TSR_F32, 0, device, stream);
}

static placed_call *const placed_calls[] = {gather_placed,    reduce_scatter_placed, sum_placed,           swap_placed,
                                            broadcast_placed, scatter_placed,        gather_to_root_placed};

static const tsr_device third_host = {NULL, 3};

/* The last rank alone passes a device that only looks like the host; the others get an error, and
 * the next call works. */
static tsr_status misplace_collectives(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int last = tsr_comm_size(comm) - 1;
    const bool odd = tsr_comm_rank(comm) == last;
    for (size_t i = 0; i < sizeof placed_calls / sizeof *placed_calls; i++) {
        CHECK_ERROR(placed_calls[i](comm, odd ? third_host : tsr_device_host(), NULL),
                    odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, ": device is host:3, but there is one host");
        CHECK_ERROR(placed_calls[i](comm, tsr_device_host(), odd ? &buffers : NULL),
                    odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, ": stream is 0x");
        TSR_TRY(placed_calls[i](comm, tsr_device_host(), NULL));
    }
    return TSR_OK;
}

/* All ranks pass the wrong device, since peers do not learn of it in an exchange by messages.
 * Without messages any device is accepted. */
static tsr_status misplace_exchanges(tsr_comm *comm, void *arg)
{
    const int n = tsr_comm_size(comm), rank = tsr_comm_rank(comm);
    const tsr_message send = {(rank + 1) % n, send_of(comm), 8}, receive = {(rank + n - 1) % n, receive_of(comm), 8};
    (void)arg;
    CHECK_ERROR(tsr_comm_exchange(comm, &send, 1, &receive, 1, third_host, NULL), TSR_ERROR_ARGUMENT,
                "tsr_comm_exchange: device is host:3");
    CHECK_ERROR(tsr_comm_exchange(comm, &send, 1, &receive, 1, tsr_device_host(), &buffers), TSR_ERROR_ARGUMENT,
                "tsr_comm_exchange: stream is");
    const tsr_status started = tsr_comm_exchange_start(comm, &send, 1, &receive, 1, tsr_device_host(), &buffers);
    CHECK_ERROR(started == TSR_OK ? tsr_comm_exchange_finish(comm) : started, TSR_ERROR_ARGUMENT,
                "tsr_comm_exchange_start: stream is");
    TSR_TRY(tsr_comm_exchange(comm, NULL, 0, NULL, 0, tsr_device_host(), &buffers));
    if (strcmp(tsr_comm_engine(comm), "mpi") == 0)
        CHECK_ERROR(tsr_comm_wait(comm, &buffers, 5), TSR_ERROR_ARGUMENT, "tsr_comm_wait: stream is");
    return tsr_comm_barrier(comm);
}

static void what_only_looks_like_the_host_is_refused_by_name(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= 4; n++) {
        suite_run(n, misplace_collectives, NULL);
        suite_run(n, misplace_exchanges, NULL);
    }
}

/* A call with a bad argument or, if `bad` is false, with the peers' argument. */
typedef tsr_status spoilt_call(tsr_comm *comm, bool bad);

static const int64_t even_counts[MOST_RANKS] = {1, 1, 1, 1, 1}, negative_counts[MOST_RANKS] = {1, -1, 1, 1, 1};

static tsr_status sum_of_no_dtype(tsr_comm *comm, bool bad)
{
    return tsr_comm_all_reduce(comm, send_of(comm), receive_of(comm), 3, bad ? (tsr_dtype)99 : TSR_F32, TSR_SUM,
                               tsr_device_host(), NULL);
}

static tsr_status reduce_by_no_op(tsr_comm *comm, bool bad)
{
    return tsr_comm_reduce_scatter(comm, send_of(comm), receive_of(comm), 1, NULL, TSR_I32, bad ? TSR_AVG : TSR_SUM,
                                   tsr_device_host(), NULL);
}

static tsr_status gather_negative(tsr_comm *comm, bool bad)
{
    return tsr_comm_all_gather(comm, send_of(comm), receive_of(comm), bad ? -3 : 3, NULL, TSR_F32, tsr_device_host(),
                               NULL);
}

static tsr_status gather_too_many(tsr_comm *comm, bool bad)
{
    return tsr_comm_all_gather(comm, send_of(comm), receive_of(comm), bad ? INT64_MAX / 2 + 1 : 3, NULL, TSR_F32,
                               tsr_device_host(), NULL);
}

static tsr_status swap_negative(tsr_comm *comm, bool bad)
{
    return tsr_comm_all_to_all(comm, send_of(comm), receive_of(comm), 0, bad ? negative_counts : even_counts,
                               even_counts, TSR_F32, tsr_device_host(), NULL);
}

static tsr_status swap_with_receives_alone(tsr_comm *comm, bool bad)
{
    return tsr_comm_all_to_all(comm, send_of(comm), receive_of(comm), 1, bad ? NULL : even_counts, even_counts, TSR_F32,
                               tsr_device_host(), NULL);
}

static tsr_status swap_with_sends_alone(tsr_comm *comm, bool bad)
{
    return tsr_comm_all_to_all(comm, send_of(comm), receive_of(comm), 1, even_counts, bad ? NULL : even_counts, TSR_F32,
                               tsr_device_host(), NULL);
}

static tsr_status broadcast_from_nobody(tsr_comm *comm, bool bad)
{
    return tsr_comm_broadcast(comm, receive_of(comm), 3, TSR_F32, bad ? 99 : 0, tsr_device_host(), NULL);
}

static tsr_status scatter_negative(tsr_comm *comm, bool bad)
{
    return tsr_comm_scatter(comm, send_of(comm), receive_of(comm), 0, bad ? negative_counts : even_counts, TSR_F32, 0,
                            tsr_device_host(), NULL);
}

static tsr_status gather_at_nobody(tsr_comm *comm, bool bad)
{
    return tsr_comm_gather(comm, send_of(comm), receive_of(comm), 1, NULL, TSR_F32, bad ? -1 : 0, tsr_device_host(),
                           NULL);
}

static tsr_status split_into_nothing(tsr_comm *comm, bool bad)
{
    tsr_comm *part = NULL;
    const tsr_status status = tsr_comm_split(comm, 0, 0, bad ? NULL : &part);
    tsr_comm_destroy(part);
    return status;
}

static tsr_status alloc_into_nothing(tsr_comm *comm, bool bad)
{
    void *memory = NULL;
    const tsr_status status = tsr_comm_alloc(comm, 64, bad ? NULL : &memory);
    tsr_comm_free(comm, memory, 64);
    return status;
}

typedef struct spoilt {
    spoilt_call *call;
    const char *words;
} spoilt;

static const spoilt spoilt_calls[] = {
    {sum_of_no_dtype, "tsr_comm_all_reduce: dtype is 99, which is not a dtype"},
    {reduce_by_no_op, "tsr_comm_reduce_scatter: op is avg"},
    {gather_negative, "tsr_comm_all_gather: count is -3; it must be 0 or more"},
    {gather_too_many, "tsr_comm_all_gather: counts sum up to more than 2^63 - 1 elements"},
    {swap_negative, "tsr_comm_all_to_all: send_counts[1] is -1; counts are 0 or more"},
    {swap_with_receives_alone, "tsr_comm_all_to_all: send_counts is NULL; give both counts or neither"},
    {swap_with_sends_alone, "tsr_comm_all_to_all: receive_counts is NULL; give both counts or neither"},
    {broadcast_from_nobody, "tsr_comm_broadcast: root is 99; the ranks are 0 to "},
    {scatter_negative, "tsr_comm_scatter: counts[1] is -1; counts are 0 or more"},
    {gather_at_nobody, "tsr_comm_gather: root is -1; the ranks are 0 to "},
    {split_into_nothing, "tsr_comm_split: out is NULL"},
    {alloc_into_nothing, "tsr_comm_alloc: out is NULL"},
};

/* Checks calls in which rank `*arg` gives a bad argument. */
static tsr_status spoil(tsr_comm *comm, void *arg)
{
    const int victim = *(const int *)arg;
    const bool bad = tsr_comm_rank(comm) == victim;
    for (size_t i = 0; i < sizeof spoilt_calls / sizeof *spoilt_calls; i++) {
        char words[SENTENCE];
        snprintf(words, sizeof words, bad ? "%s%s" : "rank %s failed: %s",
                 bad      ? ""
                 : victim ? "1"
                          : "0",
                 spoilt_calls[i].words);
        const tsr_status status = spoilt_calls[i].call(comm, bad);
        if (spoilt_calls[i].call == split_into_nothing && status == TSR_ERROR_UNSUPPORTED)
            continue; /* a lent communicator cannot be split */
        CHECK_ERROR(status, bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, words);
        TSR_TRY(suite_check_usable(comm));
    }
    return TSR_OK;
}

static void an_argument_that_is_bad_on_one_rank_is_told_to_all(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++)
        for (int victim = 0; victim < 2; victim++)
            suite_run(n, spoil, &victim);
}

/* Rank `arg` fails in code that is not the library's: first without a sentence, after a call that
 * failed for another reason, then with one. */
static tsr_status share(tsr_comm *comm, void *arg)
{
    const int victim = *(const int *)arg;
    const bool bad = tsr_comm_rank(comm) == victim;
    char words[SENTENCE];
    CHECK_ERROR(tsr_comm_share_status(NULL, "load", TSR_OK), TSR_ERROR_ARGUMENT, "load: comm is NULL");
    snprintf(words, sizeof words, "rank %d failed: returned io without a sentence", victim);
    CHECK_ERROR(tsr_comm_share_status(comm, "load", bad ? TSR_ERROR_IO : TSR_OK), bad ? TSR_ERROR_IO : TSR_ERROR_PEER,
                bad ? "returned io without a sentence" : words);
    snprintf(words, sizeof words, "rank %d failed: page 3 is torn", victim);
    const tsr_status torn = bad ? tsr_status_set(TSR_ERROR_IO, "page 3 is torn") : TSR_OK;
    CHECK_ERROR(tsr_comm_share_status(comm, NULL, torn), bad ? TSR_ERROR_IO : TSR_ERROR_PEER,
                bad ? "page 3 is torn" : words);
    CHECK_ERROR(tsr_comm_share_status(comm, tsr_comm_rank(comm) == 0 ? "load" : "store", TSR_OK), TSR_ERROR_ARGUMENT,
                "rank 0 calls load, but rank 1 calls store");
    TSR_TRY(tsr_comm_share_status(comm, "load", TSR_OK));
    return suite_check_usable(comm);
}

static void a_failure_of_the_callers_code_is_told_to_all(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++)
        for (int victim = 0; victim < n; victim++)
            suite_run(n, share, &victim);
}

int suite_disagreement(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_names_the_lowest_that_differs_and_goes_on),
        cmocka_unit_test(of_several_that_differ_the_lowest_is_named),
        cmocka_unit_test(another_order_of_calls_is_a_disagreement),
        cmocka_unit_test(messages_that_do_not_fit_name_both_ranks_and_sizes_on_all),
        cmocka_unit_test(counts_of_an_all_to_all_that_do_not_fit_are_named_on_all),
        cmocka_unit_test(what_only_looks_like_the_host_is_refused_by_name),
        cmocka_unit_test(an_argument_that_is_bad_on_one_rank_is_told_to_all),
        cmocka_unit_test(a_failure_of_the_callers_code_is_told_to_all),
    };
    return cmocka_run_group_tests_name("disagreement", tests, NULL, NULL);
}
