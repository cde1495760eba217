
#include "comm/engines/mpi/node/node.h"

#include "comm/engines/mpi/node/heap.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define REASON 256

/* Bytes: of all files together at most; of one file at most and at least; before the heap in each
 * file. */
#define SPAN   ((size_t)1 << 44)
#define MOST   ((size_t)1 << 38)
#define LEAST  ((size_t)1 << 30)
#define HEADER 4096

/* Where mappings are tried: far from where kernels put libraries, stacks and heaps, on processors
 * with 47 or more bits of address. */
#define FIRST_ADDRESS ((uintptr_t)1 << 45)
#define LAST_ADDRESS  ((uintptr_t)1 << 47)

/* Mappings are tried at addresses this far apart, or as far as they need; each world that exists at
 * the same time has its own. */
#define STRIDE ((size_t)1 << 40)

/* How many addresses reserve_anywhere() tries. */
#define ATTEMPTS 8

/* On processors with fewer bits files are smaller by this factor, and the kernel chooses the
 * address. */
#define LESS 256

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* The start of every rank's file. */
typedef struct header {
    uint64_t token;       /* random: by it ranks that open the file know that it is the right one */
    _Atomic(int) aborter; /* used in rank 0's file only: 1 + the rank that has aborted; 0: none */
    tsr_mpi_resident resident;
} header;

_Static_assert(sizeof(header) <= HEADER, "what begins a file has its place");

/* How other ranks find a rank's file. */
typedef struct address_card {
    uint64_t token;
    int32_t process, descriptor; /* `descriptor` below 0: the rank could not make a file */
} address_card;

struct tsr_mpi_node {
    tsr_context *context;
    int rank, ranks, references;
    char *base;
    size_t room; /* bytes of each rank's file */
    pthread_mutex_t lock;
    tsr_mpi_heap heap;
    tsr_keeper keeper; /* of the heap */
};

static header *header_of(const tsr_mpi_node *node, int rank)
{
    return (header *)(node->base + (size_t)rank * node->room);
}

static size_t span_of(const tsr_mpi_node *node)
{
    return (size_t)node->ranks * node->room;
}

static void fail(char *reason, const char *what)
{
    if (reason[0] == '\0')
        snprintf(reason, REASON, "%s: %s", what, strerror(errno));
}

/* Collective: `*yes` becomes true if it is true on every rank. */
static tsr_status agree_with_mates(const tsr_mpi_together *together, tsr_mpi_mates *mates, bool *yes)
{
    int64_t all = 0;
    TSR_TRY(tsr_mpi_mates_least(together, mates, *yes, &all));
    *yes = all != 0;
    return TSR_OK;
}

static bool reserve_addresses(tsr_mpi_node *node, uintptr_t at)
{
    void *const wanted = (void *)at;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
    void *const got = mmap(wanted, span_of(node), PROT_NONE, flags, -1, 0);
    node->base = got == MAP_FAILED ? NULL : got;
    /* Kernels before 4.17 take the address only as a hint. */
    if (!node->base || !at || got == wanted)
        return node->base != NULL;
    munmap(got, span_of(node));
    node->base = NULL;
    return false;
}

/* Bytes of the machine's memory; 0: not known. */
static size_t count_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

/* A size that no rank's file outgrows: at least twice the machine's memory, as a power of two from
 * LEAST to MOST. */
static size_t count_useful(void)
{
    size_t useful = LEAST;
    while (useful < MOST && useful / 2 < count_memory())
        useful *= 2;
    return useful;
}

/* At most RLIMIT_FSIZE: a longer file would raise a signal, whose default ends the program. */
static size_t limit_files(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)
        return (size_t)limit.rlim_cur;
    return bytes;
}

/* Collective: sets node->room, the same on all ranks; 0, with a reason, if a rank cannot have LEAST
 * bytes. */
static tsr_status find_room(const tsr_mpi_together *together, tsr_mpi_node *node, tsr_mpi_mates *mates, char *reason)
{
    const size_t share = SPAN / (size_t)node->ranks, useful = count_useful(),
                 mine = limit_files(useful < share ? useful : share);
    int64_t least = 0;
    TSR_TRY(tsr_mpi_mates_least(together, mates, (int64_t)mine, &least));
    node->room = (size_t)least >= LEAST ? (size_t)least & ~(size_t)0xffff : 0;
    if (node->room == 0)
        snprintf(reason, REASON, "a rank's files may have %lld bytes (RLIMIT_FSIZE), or ranks are too many",
                 (long long)least);
    return TSR_OK;
}

/* Collective. `mine`: this rank has reserved the addresses; `*done`: all ranks have. If not all
 * have, a rank that has gives them back. */
static tsr_status settle_place(const tsr_mpi_together *together, tsr_mpi_node *node, tsr_mpi_mates *mates, bool mine,
                               bool *done)
{
    *done = mine;
    TSR_TRY(agree_with_mates(together, mates, done));
    if (mine && !*done) {
        munmap(node->base, span_of(node));
        node->base = NULL;
    }
    return TSR_OK;
}

/* Collective: tries one address after the other. */
static tsr_status reserve_far_away(const tsr_mpi_together *together, tsr_mpi_node *node, tsr_mpi_mates *mates,
                                   bool *done)
{
    const size_t stride = span_of(node) > STRIDE ? span_of(node) : STRIDE;
    for (uintptr_t at = FIRST_ADDRESS; at + span_of(node) < LAST_ADDRESS && !*done; at += stride)
        TSR_TRY(settle_place(together, node, mates, reserve_addresses(node, at), done));
    return TSR_OK;
}

/* Collective: tries addresses that rank 0's kernel chooses, for smaller files. */
static tsr_status reserve_anywhere(const tsr_mpi_together *together, tsr_mpi_node *node, tsr_mpi_mates *mates,
                                   bool *done)
{
    node->room = node->room / LESS & ~(size_t)0xffff;
    for (int attempt = 0; attempt < ATTEMPTS && !*done; attempt++) {
        int64_t at = INT64_MAX;
        bool mine = node->rank == 0 && reserve_addresses(node, 0);
        TSR_TRY(
            tsr_mpi_mates_least(together, mates, node->rank == 0 ? (int64_t)(uintptr_t)node->base : INT64_MAX, &at));
        if (node->rank > 0 && at > 0)
            mine = reserve_addresses(node, (uintptr_t)at);
        TSR_TRY(settle_place(together, node, mates, mine, done));
    }
    return TSR_OK;
}

/* Makes this rank's file and fills in its card. Returns the descriptor; -1 if it failed. */
static int make_file(const tsr_mpi_node *node, address_card *card, char *reason)
{
    const int file = memfd_create("tessera", MFD_CLOEXEC);
    card->descriptor = -1;
    card->process = (int32_t)getpid();
    if (file < 0) {
        fail(reason, "memfd_create");
        return -1;
    }
    if (getrandom(&card->token, sizeof card->token, 0) != sizeof card->token ||
        ftruncate(file, (off_t)node->room) != 0 ||
        pwrite(file, &card->token, sizeof card->token, 0) != sizeof card->token) {
        fail(reason, "a file in memory cannot be made as large as it may become");
        close(file);
        return -1;
    }
    card->descriptor = file;
    return file;
}

/* If processes do not share a numbering, the path leads to another file, which may be anything: so
 * it is read before it is mapped. */
static bool is_meant(int file, const address_card *card, char *reason)
{
    uint64_t token = 0;
    if (pread(file, &token, sizeof token, 0) == sizeof token && token == card->token)
        return true;
    snprintf(reason, REASON, "processes of one node do not see each other under /proc");
    return false;
}

static bool map_file(const tsr_mpi_node *node, int rank, const address_card *card, char *reason)
{
    char path[64];
    if (card->descriptor < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)card->process, (int)card->descriptor);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        fail(reason, path);
        return false;
    }
    bool done = is_meant(file, card, reason);
    if (done && mmap(header_of(node, rank), node->room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                     file, 0) == MAP_FAILED) {
        fail(reason, "mmap");
        done = false;
    }
    close(file);
    return done;
}

/* Collective: maps the files of all ranks. A rank's descriptor stays open until all ranks have
 * opened it. */
static tsr_status map_files(const tsr_mpi_together *together, tsr_mpi_node *node, tsr_mpi_mates *mates,
                            address_card *cards, char *reason, bool *done)
{
    address_card mine = {0};
    const int file = make_file(node, &mine, reason);
    tsr_status status = tsr_mpi_mates_gather(together, mates, &mine, cards, sizeof mine);
    *done = status == TSR_OK;
    for (int r = 0; r < node->ranks && *done; r++)
        *done = map_file(node, r, &cards[r], reason);
    if (*done)
        tsr_mpi_resident_introduce(&header_of(node, node->rank)->resident, mates->ranks[mates->place]);
    if (status == TSR_OK)
        status = agree_with_mates(together, mates, done);
    if (file >= 0)
        close(file);
    return status;
}

static void free_node(tsr_mpi_node *node)
{
    tsr_context *context = node->context;
    tsr_keeper_remove(context, &node->keeper);
    tsr_mpi_heap_finish(&node->heap);
    if (node->base)
        munmap(node->base, span_of(node));
    pthread_mutex_destroy(&node->lock);
    tsr_release(context, node);
    tsr_context_destroy(context);
}

/* Makes the part that needs no peer. NULL: there is no memory. */
static tsr_mpi_node *make_node(tsr_context *context, int rank, int ranks)
{
    tsr_mpi_node *node;
    if (tsr_allocate(context, sizeof *node, (void **)&node) != TSR_OK)
        return NULL;
    *node = (tsr_mpi_node){.rank = rank, .ranks = ranks, .references = 1};
    if (pthread_mutex_init(&node->lock, NULL) != 0) {
        tsr_release(context, node);
        return NULL;
    }
    node->context = tsr_context_retain(context);
    return node;
}

static size_t trim(void *self)
{
    tsr_mpi_node *const node = self;
    pthread_mutex_lock(&node->lock);
    const size_t bytes = tsr_mpi_heap_trim(&node->heap);
    pthread_mutex_unlock(&node->lock);
    return bytes;
}

/* The system cannot take back shared memory that heaps keep, so all ranks of the node together keep
 * at most an eighth of its memory. */
static void open_heap(tsr_mpi_node *node)
{
    const size_t share = count_memory() / 8 / (size_t)node->ranks,
                 allowed = tsr_context_kept_statistics(node->context).most_bytes;
    const size_t most_kept = share < allowed ? share : allowed;
    tsr_mpi_heap_init(&node->heap, node->context, (char *)header_of(node, node->rank) + HEADER, node->room - HEADER,
                      most_kept);
    node->keeper = (tsr_keeper){.trim = trim, .self = node};
    tsr_keeper_add(node->context, &node->keeper);
}

static tsr_status share_files(const tsr_mpi_together *together, tsr_mpi_node *node, tsr_mpi_mates *mates,
                              address_card *cards, char *reason, bool *done)
{
    *done = false;
    TSR_TRY(find_room(together, node, mates, reason));
    if (node->room == 0)
        return TSR_OK;
    TSR_TRY(reserve_far_away(together, node, mates, done));
    if (!*done)
        TSR_TRY(reserve_anywhere(together, node, mates, done));
    if (!*done) {
        snprintf(reason, REASON, "there is no room for shared memory at the same address in all processes");
        return TSR_OK;
    }
    TSR_TRY(map_files(together, node, mates, cards, reason, done));
    if (*done)
        open_heap(node);
    return TSR_OK;
}

tsr_status tsr_mpi_node_create(const tsr_mpi_together *together, tsr_mpi_mates *mates, tsr_mpi_node **out, char *reason)
{
    tsr_context *context = together->context;
    void *cards = NULL;
    reason[0] = '\0';
    tsr_mpi_node *node = make_node(context, mates->place, mates->count);
    bool done = node && tsr_allocate(context, (size_t)mates->count * sizeof(address_card), &cards) == TSR_OK;
    if (!done)
        snprintf(reason, REASON, "no memory");
    tsr_status status = agree_with_mates(together, mates, &done);
    if (status == TSR_OK && done)
        status = share_files(together, node, mates, cards, reason, &done);
    tsr_release(context, cards);
    if (status == TSR_OK && done) {
        *out = node;
        return TSR_OK;
    }
    if (node)
        free_node(node);
    if (reason[0] == '\0')
        snprintf(reason, REASON, "another rank of the node cannot share memory");
    *out = NULL;
    return status;
}

tsr_mpi_node *tsr_mpi_node_retain(tsr_mpi_node *node)
{
    pthread_mutex_lock(&node->lock);
    node->references++;
    pthread_mutex_unlock(&node->lock);
    return node;
}

void tsr_mpi_node_release(tsr_mpi_node *node)
{
    pthread_mutex_lock(&node->lock);
    const bool last = --node->references == 0;
    pthread_mutex_unlock(&node->lock);
    if (last)
        free_node(node);
}

tsr_status tsr_mpi_node_alloc(tsr_mpi_node *node, size_t bytes, void **out)
{
    pthread_mutex_lock(&node->lock);
    const tsr_status status = tsr_mpi_heap_alloc(&node->heap, bytes, out);
    pthread_mutex_unlock(&node->lock);
    return status;
}

void tsr_mpi_node_free(tsr_mpi_node *node, void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&node->lock);
    tsr_mpi_heap_free(&node->heap, memory);
    pthread_mutex_unlock(&node->lock);
}

void tsr_mpi_node_free_later(tsr_mpi_node *node, void *memory, const int32_t *left, int32_t count)
{
    pthread_mutex_lock(&node->lock);
    tsr_mpi_heap_retire(&node->heap, memory, left, count);
    pthread_mutex_unlock(&node->lock);
}

bool tsr_mpi_node_holds(const tsr_mpi_node *node, const void *memory, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)node->base, at = (uintptr_t)memory;
    return at >= begin && at - begin < span_of(node) && bytes <= span_of(node) - (at - begin);
}

int tsr_mpi_node_ranks(const tsr_mpi_node *node)
{
    return node->ranks;
}

tsr_mpi_residents tsr_mpi_node_residents(const tsr_mpi_node *node)
{
    return (tsr_mpi_residents){(char *)&header_of(node, 0)->resident, node->room, node->ranks};
}

void tsr_mpi_node_abort(tsr_mpi_node *node, int who)
{
    int nobody = 0;
    atomic_compare_exchange_strong(&header_of(node, 0)->aborter, &nobody, who + 1);
}

int tsr_mpi_node_aborter(const tsr_mpi_node *node)
{
    return atomic_load(&header_of(node, 0)->aborter) - 1;
}
