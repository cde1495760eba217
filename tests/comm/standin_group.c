#include "standin_comm.h"

#include <stdlib.h>
#include <string.h>

/* The depth of this thread's open groups, and the ops in them. */
static _Thread_local int depth;
static _Thread_local standin_op *grouped, **grouped_last;

static bool is_message(const standin_op *op)
{
    return op->kind == STANDIN_SEND || op->kind == STANDIN_RECV;
}

size_t standin_type_bytes(ncclDataType_t type)
{
    static const size_t bytes[ncclNumTypes] = {
        [ncclInt8] = 1,    [ncclUint8] = 1,    [ncclInt32] = 4,      [ncclUint32] = 4,
        [ncclInt64] = 8,   [ncclUint64] = 8,   [ncclFloat16] = 2,    [ncclFloat32] = 4,
        [ncclFloat64] = 8, [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1};
    return (unsigned)type < ncclNumTypes ? bytes[type] : 0;
}

static void free_ops(standin_kernel *kernel)
{
    while (kernel->ops) {
        standin_op *op = kernel->ops;
        kernel->ops = op->next;
        free(op);
    }
}

static void add_running(standin_kernel *kernel)
{
    standin_kernel **at = &standin.running[kernel->comm->device];
    while (*at)
        at = &(*at)->later;
    *at = kernel;
    kernel->comm->running++;
}

static void end_running(standin_kernel *kernel)
{
    standin_kernel **at = &standin.running[kernel->comm->device];
    while (*at != kernel)
        at = &(*at)->later;
    *at = kernel->later;
    kernel->comm->running--;
}

void standin_free_kernel(standin_kernel *kernel)
{
    end_running(kernel);
    free_ops(kernel);
    free(kernel);
}

static void drop_kernel(standin_work *work)
{
    free_ops((standin_kernel *)work);
}

static bool step_kernel(standin_work *work);

/* Clones a kernel, for the launch of a graph. */
static standin_work *clone_kernel(const standin_work *work)
{
    const standin_kernel *kernel = (const standin_kernel *)work;
    standin_kernel *clone = calloc(1, sizeof *clone);
    clone->work = (standin_work){.step = step_kernel, .clone = clone_kernel, .drop = drop_kernel};
    clone->comm = kernel->comm;
    standin_op **to = &clone->ops;
    for (const standin_op *op = kernel->ops; op; op = op->next, clone->left++) {
        *to = malloc(sizeof **to);
        **to = *op;
        (*to)->next = (*to)->later = NULL;
        (*to)->kernel = clone;
        to = &(*to)->next;
    }
    if (clone->comm->gone)
        standin_complain("a graph is launched whose communicator is gone");
    add_running(clone);
    return &clone->work;
}

static void finish_op(standin_op *op)
{
    op->kernel->left--;
}

static standin_op **tail_of(standin_op **queue)
{
    while (*queue)
        queue = &(*queue)->later;
    return queue;
}

static standin_op *pop(standin_op **queue)
{
    standin_op *op = *queue;
    *queue = op->later;
    return op;
}

/* Delivers messages between two ranks: the k-th send meets the k-th receive. */
static void deliver(standin_clique *clique, int from, int to)
{
    standin_op **sends = &clique->sends[from * clique->ranks + to],
               **receives = &clique->receives[from * clique->ranks + to];
    while (*sends && *receives) {
        standin_op *send = pop(sends), *receive = pop(receives);
        if (send->count != receive->count || send->type != receive->type)
            standin_complain("ncclSend of %zu of type %d from rank %d meets ncclRecv of %zu of type %d on rank %d",
                             send->count, (int)send->type, from, receive->count, (int)receive->type, to);
        else
            memcpy(receive->receive, send->send, send->count * standin_type_bytes(send->type));
        finish_op(send);
        finish_op(receive);
    }
}

static standin_round *round_of(standin_clique *clique, int64_t number)
{
    for (standin_round *round = clique->rounds; round; round = round->next)
        if (round->number == number)
            return round;
    standin_round *round = calloc(1, sizeof *round);
    *round = (standin_round){
        .next = clique->rounds, .number = number, .ops = calloc((size_t)clique->ranks, sizeof *round->ops)};
    clique->rounds = round;
    return round;
}

static void end_round(standin_clique *clique, standin_round *round)
{
    standin_round **at = &clique->rounds;
    while (*at != round)
        at = &(*at)->next;
    *at = round->next;
    free(round->ops);
    free(round);
}

static bool ops_agree(const standin_op *a, const standin_op *b)
{
    const bool reduces = a->kind == STANDIN_REDUCE_SCATTER || a->kind == STANDIN_ALL_REDUCE;
    return a->kind == b->kind && a->count == b->count && a->type == b->type && (!reduces || a->op == b->op) &&
           (a->kind != STANDIN_BROADCAST || a->peer == b->peer);
}

static void come_to_round(standin_op *op)
{
    standin_clique *clique = op->comm->clique;
    standin_round *round = round_of(clique, clique->collectives[op->comm->rank]++);
    round->ops[op->comm->rank] = op;
    if (++round->came < clique->ranks)
        return;
    bool agree = true;
    for (int r = 1; r < clique->ranks; r++)
        if (!ops_agree(round->ops[0], round->ops[r]) && agree) {
            standin_complain("collective %lld: rank 0 and rank %d call different things", (long long)round->number, r);
            agree = false;
        }
    if (agree)
        standin_compute(clique, round->ops);
    for (int r = 0; r < clique->ranks; r++)
        finish_op(round->ops[r]);
    end_round(clique, round);
}

/* Begins a kernel: from now on peers' ops can meet its ops. */
static void begin_kernel(standin_kernel *kernel)
{
    ncclComm_t comm = kernel->comm;
    standin_clique *clique = comm->clique;
    if (kernel != standin.running[comm->device])
        standin_complain("a kernel of device %d begins before one is done that was issued earlier: nothing orders them",
                         comm->device);
    kernel->begun = true;
    standin.kernels++;
    for (standin_op *op = kernel->ops; op; op = op->next) {
        const int pair =
            op->kind == STANDIN_SEND ? comm->rank * clique->ranks + op->peer : op->peer * clique->ranks + comm->rank;
        if (!is_message(op)) {
            come_to_round(op);
            continue;
        }
        *tail_of(op->kind == STANDIN_SEND ? &clique->sends[pair] : &clique->receives[pair]) = op;
        deliver(clique, pair / clique->ranks, pair % clique->ranks);
    }
}

static bool step_kernel(standin_work *work)
{
    standin_kernel *kernel = (standin_kernel *)work;
    ncclComm_t comm = kernel->comm;
    if (!kernel->begun && !comm->gone)
        begin_kernel(kernel);
    if (kernel->left > 0 && !comm->gone)
        return false;
    end_running(kernel);
    return true;
}

static void drop_from(standin_op **queue, ncclComm_t comm)
{
    while (*queue)
        if ((*queue)->comm == comm)
            *queue = (*queue)->later;
        else
            queue = &(*queue)->later;
}

void standin_drop_ops(ncclComm_t comm)
{
    standin_clique *clique = comm->clique;
    for (int i = 0; i < clique->ranks * clique->ranks; i++) {
        drop_from(&clique->sends[i], comm);
        drop_from(&clique->receives[i], comm);
    }
    for (standin_round *round = clique->rounds; round; round = round->next)
        if (round->ops[comm->rank]) {
            round->ops[comm->rank] = NULL;
            round->came--;
        }
    if (comm->held) {
        standin_free_kernel(comm->held);
        comm->held = NULL;
    }
}

void standin_launch(ncclComm_t comm)
{
    struct CUstream_st *stream = standin_stream(comm->held_stream, comm->device, "ncclGroupEnd");
    if (stream && stream->capture)
        end_running(comm->held);
    if (stream)
        standin_enqueue(stream, &comm->held->work);
    comm->held = NULL;
}

ncclResult_t standin_group_start(void)
{
    if (standin_fails("ncclGroupStart"))
        return ncclSystemError;
    if (depth++ == 0) {
        grouped = NULL;
        grouped_last = &grouped;
    }
    return ncclSuccess;
}

/* Takes all ops on the first op's communicator from the list, as a kernel. */
static standin_kernel *take_kernel(void)
{
    standin_kernel *kernel = calloc(1, sizeof *kernel);
    kernel->work = (standin_work){.step = step_kernel, .clone = clone_kernel, .drop = drop_kernel};
    kernel->comm = grouped->comm;
    const cudaStream_t stream = grouped->stream;
    const bool messages = is_message(grouped);
    standin_op **from = &grouped, **to = &kernel->ops;
    while (*from) {
        standin_op *op = *from;
        if (op->comm != kernel->comm) {
            from = &op->next;
            continue;
        }
        if (op->stream != stream)
            standin_complain("a group on two streams");
        if (is_message(op) != messages)
            standin_complain("messages and collectives in one group");
        *from = op->next;
        op->next = NULL;
        op->kernel = kernel;
        *to = op;
        to = &op->next;
        kernel->left++;
    }
    return kernel;
}

/* Complains of a rank's message to itself without its receive in the same group. */
static void check_own(const standin_kernel *kernel)
{
    int sends = 0;
    for (const standin_op *op = kernel->ops; op; op = op->next)
        if (is_message(op) && op->peer == kernel->comm->rank)
            sends += op->kind == STANDIN_SEND ? 1 : -1;
    if (sends != 0)
        standin_complain("rank %d sends to itself what it does not receive in the same group", kernel->comm->rank);
}

static ncclResult_t end_group(void)
{
    ncclResult_t result = ncclSuccess;
    while (grouped) {
        const cudaStream_t stream = grouped->stream;
        standin_kernel *kernel = take_kernel();
        ncclComm_t comm = kernel->comm;
        comm->in_group = NULL;
        check_own(kernel);
        standin_done.kernels++;
        add_running(kernel);
        comm->held = kernel;
        comm->held_stream = stream;
        const ncclResult_t launched = standin_pend(comm, STANDIN_LAUNCH, "ncclGroupEnd");
        result = launched == ncclSuccess ? result : launched;
    }
    grouped_last = &grouped;
    return result;
}

static void drop_group(void)
{
    while (grouped) {
        standin_op *op = grouped;
        grouped = op->next;
        op->comm->in_group = NULL;
        op->comm->broken = ncclSystemError;
        free(op);
    }
}

ncclResult_t standin_group_end(void)
{
    const bool fails = standin_fails("ncclGroupEnd");
    standin_lock();
    ncclResult_t result = ncclSuccess;
    if (depth == 0) {
        standin_complain("ncclGroupEnd without ncclGroupStart");
        result = ncclInvalidUsage;
    } else if (--depth == 0) {
        if (fails)
            drop_group();
        result = fails ? ncclSystemError : end_group();
    }
    standin_unlock();
    return result;
}

static void check_buffer(const standin_op *op, const void *buffer, size_t blocks, const char *call)
{
    if (!standin_reaches(op->comm->device, buffer, blocks * op->count * standin_type_bytes(op->type)))
        standin_complain("%s: device %d does not reach all of %zu elements at %p", call, op->comm->device,
                         blocks * op->count, buffer);
}

/* Complains of overlapping buffers, unless one is this rank's own block of the other (in place). */
static void check_overlap(const standin_op *op, size_t send_blocks, size_t receive_blocks, const char *call)
{
    const size_t bytes = op->count * standin_type_bytes(op->type), own = (size_t)op->comm->rank * bytes;
    const char *send = op->send + (send_blocks > receive_blocks ? own : 0);
    const char *receive = op->receive + (receive_blocks > send_blocks ? own : 0);
    const bool apart =
        op->send + send_blocks * bytes <= op->receive || op->receive + receive_blocks * bytes <= op->send;
    if (send != receive && !apart)
        standin_complain("%s: buffers that overlap, but not in place", call);
}

static bool check_op(const standin_op *op, const char *call)
{
    const size_t n = (size_t)op->comm->clique->ranks;
    if (!standin_usable(op->comm, call))
        return false;
    if ((unsigned)op->type >= ncclNumTypes || (unsigned)op->op >= ncclNumOps || op->peer < 0 || op->peer >= (int)n) {
        standin_complain("%s: type %d, op %d, peer or root %d", call, (int)op->type, (int)op->op, op->peer);
        return false;
    }
    if (!standin_stream(op->stream, op->comm->device, call))
        return false;
    const size_t sends = op->kind == STANDIN_REDUCE_SCATTER ? n : 1, receives = op->kind == STANDIN_ALL_GATHER ? n : 1;
    if (op->kind != STANDIN_RECV)
        check_buffer(op, op->send, sends, call);
    if (op->kind != STANDIN_SEND)
        check_buffer(op, op->receive, receives, call);
    if (!is_message(op))
        check_overlap(op, sends, receives, call);
    return true;
}

/* Issues a call; outside a group it is a group of its own. */
static ncclResult_t issue(const standin_op *wanted, const char *call)
{
    if (standin_fails(call))
        return ncclSystemError;
    standin_lock();
    if (wanted->comm->broken != ncclSuccess && !wanted->comm->gone) {
        const ncclResult_t broken = wanted->comm->broken;
        standin_unlock();
        return broken;
    }
    if (!check_op(wanted, call)) {
        standin_unlock();
        return ncclInvalidUsage;
    }
    if (wanted->comm->in_group && wanted->comm->in_group != &depth)
        standin_complain("%s: another thread has the communicator in a group", call);
    standin_op *op = malloc(sizeof *op);
    *op = *wanted;
    op->next = op->later = NULL;
    if (depth == 0)
        grouped_last = &grouped;
    *grouped_last = op;
    grouped_last = &op->next;
    op->comm->in_group = &depth;
    const ncclResult_t result = depth == 0 ? end_group() : ncclSuccess;
    standin_unlock();
    return result;
}

ncclResult_t standin_send(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                          cudaStream_t stream)
{
    return issue(&(standin_op){.kind = STANDIN_SEND,
                               .send = data,
                               .count = count,
                               .type = type,
                               .peer = peer,
                               .comm = comm,
                               .stream = stream},
                 "ncclSend");
}

ncclResult_t standin_recv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return issue(&(standin_op){.kind = STANDIN_RECV,
                               .receive = data,
                               .count = count,
                               .type = type,
                               .peer = peer,
                               .comm = comm,
                               .stream = stream},
                 "ncclRecv");
}

ncclResult_t standin_all_gather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                                cudaStream_t stream)
{
    return issue(&(standin_op){.kind = STANDIN_ALL_GATHER,
                               .send = send,
                               .receive = receive,
                               .count = count,
                               .type = type,
                               .comm = comm,
                               .stream = stream},
                 "ncclAllGather");
}

static ncclResult_t reduce(standin_op wanted, const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, const char *call)
{
    wanted.send = send;
    wanted.receive = receive;
    wanted.count = count;
    wanted.type = type;
    wanted.op = op;
    return issue(&wanted, call);
}

ncclResult_t standin_reduce_scatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream)
{
    const standin_op wanted = {.kind = STANDIN_REDUCE_SCATTER, .comm = comm, .stream = stream};
    return reduce(wanted, send, receive, count, type, op, "ncclReduceScatter");
}

ncclResult_t standin_all_reduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream)
{
    const standin_op wanted = {.kind = STANDIN_ALL_REDUCE, .comm = comm, .stream = stream};
    return reduce(wanted, send, receive, count, type, op, "ncclAllReduce");
}

ncclResult_t standin_broadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                               ncclComm_t comm, cudaStream_t stream)
{
    return issue(&(standin_op){.kind = STANDIN_BROADCAST,
                               .send = send,
                               .receive = receive,
                               .count = count,
                               .type = type,
                               .peer = root,
                               .comm = comm,
                               .stream = stream},
                 "ncclBroadcast");
}
