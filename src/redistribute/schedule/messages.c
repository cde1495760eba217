#include "redistribute/schedule/messages.h"

#include "base/memory/memory.h"
#include "base/sort.h"

#include <tessera/sys/status.h>

/* Bytes that size rounds where there is no cap: a round carries `round` at most, unless its largest
 * message would then be shorter than `message`. */
typedef struct round_size {
    size_t round, message;
} round_size;

/* On a host a round stays in the caches while it is packed, sent and unpacked. */
static const round_size host_rounds = {(size_t)512 * 1024, (size_t)64 * 1024};
/* A device starts a round in some tens of microseconds, by kernels one after the other; in that
 * time a link of 400 GB/s moves 10 MB or so. */
static const round_size device_rounds = {(size_t)64 << 20, (size_t)8 << 20};

static tsr_status append_parcel(const tsr_plan *plan, tsr_mail *mail, const tsr_parcel *parcel)
{
    if (parcel->peer == plan->options.rank)
        return TSR_OK;
    void *memory = mail->at;
    const tsr_status status = tsr_reserve(plan->context, &memory, &mail->capacity, mail->count + 1, sizeof *parcel);
    mail->at = memory;
    TSR_TRY(status);
    mail->at[mail->count++] = *parcel;
    return TSR_OK;
}

static tsr_status add_transfers(const tsr_plan *plan, tsr_mail *mail, size_t item, const tsr_transfers *transfers)
{
    TSR_TRY(tsr_meter_take(plan->items[item].meter, (int64_t)transfers->count));
    for (size_t i = 0; i < transfers->count; i++) {
        const tsr_transfer *t = &transfers->at[i];
        const tsr_parcel parcel = {t->peer, item, t->first_box, t->box_count, t->elements, TSR_NO_TERM};
        TSR_TRY(append_parcel(plan, mail, &parcel));
    }
    return TSR_OK;
}

static tsr_status add_terms(const tsr_plan *plan, tsr_mail *mail, size_t at)
{
    const tsr_item *item = &plan->items[at];
    TSR_TRY(tsr_meter_take_times(item->meter, (int64_t)item->reduction_count, item->problem.terms));
    for (size_t i = 0; i < item->reduction_count; i++) {
        const tsr_reduction *r = &item->reductions[i];
        for (size_t term = r->first_term; term < r->first_term + (size_t)item->problem.terms; term++) {
            const tsr_parcel parcel = {item->contributors[term], at, r->first_box, r->box_count, r->elements, term};
            TSR_TRY(append_parcel(plan, mail, &parcel));
        }
    }
    return TSR_OK;
}

/* By peer; within a message by item, then as both sides found them. */
static int by_peer(const void *a, const void *b, const void *rank)
{
    const tsr_parcel *x = a, *y = b;
    const int order = tsr_peer_order(x->peer, y->peer, *(const int64_t *)rank);
    if (order != 0)
        return order;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return x->first_box < y->first_box ? -1 : x->first_box > y->first_box;
}

static void count_messages(const tsr_plan *plan, tsr_mail *mail)
{
    tsr_sort_array(mail->at, mail->count, sizeof *mail->at, by_peer, &plan->options.rank);
    for (size_t i = 0; i < mail->count; i++)
        mail->messages += i == 0 || mail->at[i].peer != mail->at[i - 1].peer;
}

static tsr_status find_terms(tsr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        void *memory;
        TSR_TRY(tsr_allocate_array(plan->context, plan->items[i].contributor_count, sizeof(size_t), &memory));
        size_t *parcels = plan->items[i].term_parcels = memory;
        for (size_t term = 0; term < plan->items[i].contributor_count; term++)
            parcels[term] = TSR_NO_TERM;
    }
    const tsr_mail *mail = &plan->in[0];
    for (size_t i = 0; i < mail->count; i++)
        if (mail->at[i].term != TSR_NO_TERM)
            plan->items[mail->at[i].item].term_parcels[mail->at[i].term] = i;
    return TSR_OK;
}

static tsr_status list_parcels(tsr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        TSR_TRY(add_transfers(plan, &plan->out[0], i, &plan->items[i].sends));
        TSR_TRY(add_transfers(plan, &plan->out[1], i, &plan->items[i].gives));
        TSR_TRY(add_transfers(plan, &plan->in[0], i, &plan->items[i].moves));
        TSR_TRY(add_terms(plan, &plan->in[0], i));
        TSR_TRY(add_transfers(plan, &plan->in[1], i, &plan->items[i].given));
        TSR_TRY(add_transfers(plan, &plan->out[2], i, &plan->items[i].relays));
        TSR_TRY(add_transfers(plan, &plan->in[2], i, &plan->items[i].relayed));
    }
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        count_messages(plan, &plan->out[phase]);
        count_messages(plan, &plan->in[phase]);
    }
    return find_terms(plan);
}

/* Bytes of a round: of all its messages, and of the largest message. */
typedef struct staging {
    size_t bytes, largest;
} staging;

/* Upper bound for any round: it carries no more than the rounded-up share of each parcel. */
static staging stage_mail(const tsr_plan *plan, const tsr_mail *mail, int64_t rounds)
{
    staging s = {0};
    for (size_t i = 0; i < mail->count;) {
        size_t message = 0;
        const int64_t peer = mail->at[i].peer;
        for (; i < mail->count && mail->at[i].peer == peer; i++) {
            const int64_t elements = mail->at[i].elements;
            message += tsr_mail_bytes(&plan->items[mail->at[i].item], elements / rounds + (elements % rounds != 0));
        }
        s.largest = message > s.largest ? message : s.largest;
        s.bytes += tsr_mail_line(message);
    }
    return s;
}

/* What the mail of all phases takes at most. With several rounds it is twice a round's bytes, for
 * the next round is packed while the last one travels. From two rounds on, more rounds never take
 * more. */
static staging stage(const tsr_plan *plan, int64_t rounds)
{
    staging most = {0};
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        const staging out = stage_mail(plan, &plan->out[phase], rounds),
                      in = stage_mail(plan, &plan->in[phase], rounds);
        const size_t bytes = (out.bytes + in.bytes) * (rounds > 1 ? 2 : 1),
                     largest = out.largest > in.largest ? out.largest : in.largest;
        most.bytes = bytes > most.bytes ? bytes : most.bytes;
        most.largest = largest > most.largest ? largest : most.largest;
    }
    return most;
}

/* The largest useful number of rounds, with one element of each parcel in a round; no larger than
 * arithmetic on rounds has room for. */
static int64_t most_rounds(const tsr_plan *plan)
{
    int64_t most = 2;
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        for (size_t i = 0; i < plan->out[phase].count; i++)
            most = plan->out[phase].at[i].elements > most ? plan->out[phase].at[i].elements : most;
        for (size_t i = 0; i < plan->in[phase].count; i++)
            most = plan->in[phase].at[i].elements > most ? plan->in[phase].at[i].elements : most;
    }
    return most < INT32_MAX ? most : INT32_MAX;
}

/* The fewest rounds, at least two, whose staging fits in `cap`; `most` if none does. */
static int64_t fewest_rounds(const tsr_plan *plan, size_t cap, int64_t most)
{
    int64_t low = 2, high = most;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (stage(plan, middle).bytes <= cap)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t free_rounds(const tsr_plan *plan, staging whole)
{
    const round_size most = plan->streams ? device_rounds : host_rounds;
    const size_t rounds = (whole.bytes + most.round - 1) / most.round, limit = whole.largest / most.message;
    return rounds < 2 || limit < 2 ? 1 : (int64_t)(rounds < limit ? rounds : limit);
}

static tsr_status keep_cap(tsr_plan *plan, size_t cap)
{
    plan->rounds = fewest_rounds(plan, cap, most_rounds(plan));
    plan->workspace_bytes = stage(plan, plan->rounds).bytes;
    if (plan->workspace_bytes <= cap)
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "tsr_plan_options.max_workspace is %zu, but rank %lld needs at least %zu bytes to send one element of each "
        "transfer at a time: give that, or no cap",
        cap, (long long)plan->options.rank, plan->workspace_bytes);
}

/* Sets rounds and workspace. Peers may need more rounds than this rank: its workspace is enough for
 * every larger number of rounds. */
static tsr_status measure_rounds(tsr_plan *plan)
{
    const size_t cap = plan->options.max_workspace;
    const staging whole = stage(plan, 1);
    plan->rounds = free_rounds(plan, whole);
    plan->workspace_bytes = stage(plan, plan->rounds > 1 ? plan->rounds : 2).bytes;
    if (plan->rounds == 1 && plan->workspace_bytes < whole.bytes)
        plan->workspace_bytes = whole.bytes;
    return cap == 0 || plan->workspace_bytes <= cap ? TSR_OK : keep_cap(plan, cap);
}

tsr_status tsr_mail_build(tsr_plan *plan)
{
    TSR_TRY(list_parcels(plan));
    return measure_rounds(plan);
}

void tsr_mail_free(tsr_plan *plan)
{
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        tsr_release(plan->context, plan->out[phase].at);
        tsr_release(plan->context, plan->in[phase].at);
    }
}
