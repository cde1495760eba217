#include "place/place.h"

#include "cli/parse.h"
#include "place/engines.h"
#include "place/launch_advice.h"

#include <tessera/sys/library.h>

#include <stdlib.h>
#include <string.h>

struct place {
    const engine *engine;
    const device_kind *device;
    cuda_facts cuda;            /* gathered if the engine or the device needs GPUs */
    tsr_device_driver *plugged; /* of a shared object; NULL: another device */
    int plugged_count;
    int rank, launched;
    tsr_stream *streams; /* of the current run, one for each rank; NULL on the host */
};

static bool of_gpus(const place *p)
{
    return p->engine->of_gpus || p->device->of_gpus;
}

static int choose(const tool_arguments *given, place *p)
{
    const char *const engine_name = given->value[OPT_ENGINE], *const device_name = given->value[OPT_DEVICE];
    p->engine = engine_find(engine_name ? engine_name : tsr_launch_get().ranks > 1 ? "mpi" : "threads");
    p->device = device_find(device_name ? device_name : "host");
    if (!p->engine)
        return complain_about_engine(engine_name);
    if (!p->device)
        return complain_about_device(device_name);
    return EXIT_DONE;
}

static int look_for_engine(const place *p)
{
    const char *const reason = p->engine->missing(p->engine->of_gpus ? &p->cuda : NULL);
    if (reason)
        return complain(EXIT_REFUSED, "--engine %s cannot be used: %s", p->engine->name, reason);
    return EXIT_DONE;
}

static int plug_in(const char *path, place *p)
{
    const char *reason = NULL;
    void *self;
    if (tsr_device_driver_load(NULL, path, &p->plugged) != TSR_OK)
        return complain(EXIT_REFUSED, "--device %s", tsr_status_message());
    if (tsr_device_driver_table(p->plugged, &self)->count(self, &p->plugged_count, &reason) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (p->plugged_count < 1)
        return complain(EXIT_REFUSED, "--device %s cannot be used: %s", path, reason ? reason : "there is none");
    return EXIT_DONE;
}

static int look_for_device(const tool_arguments *given, place *p)
{
    if (p->device->plugged)
        return plug_in(given->value[OPT_DEVICE], p);
    if (p->device->of_gpus && p->cuda.count == 0)
        return complain(EXIT_REFUSED, "--device %s cannot be used: %s", p->device->name, p->cuda.reason);
    return EXIT_DONE;
}

static int join(place *p)
{
    if (!p->engine->join)
        return EXIT_DONE;
    return p->engine->join(&p->rank, &p->launched) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

/* Ranks of a launcher join before anything else can fail: from then on only rank 0 prints. */
static int open_place(const tool_arguments *given, place *p)
{
    int status = choose(given, p);
    if (status != EXIT_DONE)
        return status;
    if (of_gpus(p))
        cuda_gather(&p->cuda);
    status = look_for_engine(p);
    if (status == EXIT_DONE)
        status = join(p);
    return status == EXIT_DONE ? look_for_device(given, p) : status;
}

int place_open(const tool_arguments *given, place **out)
{
    place *const p = calloc(1, sizeof *p);
    if (!p)
        return complain(EXIT_REFUSED, "there is no memory for what --engine and --device mean");
    const int status = open_place(given, p);
    if (status == EXIT_DONE)
        *out = p;
    else
        place_close(p);
    return status;
}

void place_close(place *p)
{
    if (!p)
        return;
    cuda_release(&p->cuda);
    tsr_device_driver_destroy(p->plugged);
    free(p);
}

const char *place_engine(const place *p)
{
    return p->engine->name;
}

const char *place_device_name(const place *p)
{
    return p->plugged ? tsr_device_driver_table(p->plugged, NULL)->name : p->device->name;
}

int place_parse_mode(const place *p, const char *text, tsr_mode *out)
{
    tsr_mode mode;
    const int status = parse_mode(text, &mode);
    if (status != EXIT_DONE)
        return status;
    if (p->engine->sends && text && mode != TSR_MODE_MESSAGE)
        return complain(EXIT_REFUSED, "--mode %s: ranks of --engine %s send messages and do nothing else", text,
                        p->engine->name);
    *out = p->engine->sends ? TSR_MODE_MESSAGE : mode;
    return EXIT_DONE;
}

bool place_speaks(const place *p)
{
    return p->rank == 0;
}

int place_launched(const place *p)
{
    return p->launched;
}

int place_count_ranks(const place *p, const tsr_mesh *mesh, const tsr_mesh *to_mesh, int *out)
{
    int ranks, to_ranks = 0;
    int status = count_rank_threads(mesh, &ranks);
    if (status == EXIT_DONE && to_mesh)
        status = count_rank_threads(to_mesh, &to_ranks);
    if (status != EXIT_DONE)
        return status;
    ranks = to_ranks > ranks ? to_ranks : ranks;
    if (p->launched > 0 && ranks != p->launched) {
        char advice[LAUNCH_ADVICE_BYTES];
        launch_advice(ranks, p->launched, advice);
        return complain(EXIT_REFUSED, "the mesh goes up to rank %d, but %s", ranks - 1, advice);
    }
    *out = ranks;
    return EXIT_DONE;
}

tsr_device place_device(const place *p, int rank)
{
    if (p->plugged)
        return (tsr_device){p->plugged, rank % p->plugged_count};
    if (!p->device->of_gpus)
        return tsr_device_host();
    return (tsr_device){p->cuda.driver, rank % p->cuda.count};
}

tsr_stream place_stream(const place *p, int rank)
{
    return p->streams ? p->streams[rank] : NULL;
}

bool place_enqueues(const place *p)
{
    return p->plugged || p->device->of_gpus;
}

const tsr_device_table *place_table(const place *p, int rank, void **self)
{
    return tsr_device_driver_table(place_device(p, rank).driver, self);
}

/* The argument of run_on_stream(). */
typedef struct run {
    place *place;
    place_body *body;
    void *arg;
} run;

/* Runs a rank's body with a stream of its own, and waits for the stream at the end. */
static tsr_status run_on_stream(tsr_comm *comm, void *arg)
{
    const run *const r = arg;
    const int rank = tsr_comm_rank(comm), index = place_device(r->place, rank).index;
    void *self;
    const tsr_device_table *const table = place_table(r->place, rank, &self);
    tsr_stream *const stream = &r->place->streams[rank];
    if (table->stream_create)
        TSR_TRY(table->stream_create(self, index, stream));
    tsr_status status = r->body(comm, r->arg);
    if (status == TSR_OK)
        status = place_settle(r->place, rank);
    if (table->stream_create)
        table->stream_destroy(self, index, *stream);
    *stream = NULL;
    return status;
}

tsr_status place_run(place *p, int ranks, place_body *body, void *arg)
{
    const cuda_facts *const cuda = p->engine->of_gpus ? &p->cuda : NULL;
    if (!place_enqueues(p))
        return p->engine->run(ranks, body, arg, cuda);
    run r = {p, body, arg};
    p->streams = calloc((size_t)ranks, sizeof *p->streams);
    if (!p->streams)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the streams of %d ranks", ranks);
    const tsr_status status = p->engine->run(ranks, run_on_stream, &r, cuda);
    free(p->streams);
    p->streams = NULL;
    return status;
}

/* Returns the exit status of this rank, in `arg`, as a status with the last complaint. */
static tsr_status say_how_it_ended(tsr_comm *comm, void *arg)
{
    (void)comm;
    return *(const int *)arg == EXIT_DONE ? TSR_OK : tsr_status_set(TSR_ERROR_PEER, "%s", complaint());
}

int place_agree(const place *p, int status)
{
    if (!p || p->launched == 0 || p->engine->run(p->launched, say_how_it_ended, &status, NULL) == TSR_OK)
        return status;
    return status == EXIT_DONE ? complain_status(EXIT_REFUSED) : status;
}

tsr_status place_settle(const place *p, int rank)
{
    void *self;
    if (!place_enqueues(p))
        return TSR_OK;
    const tsr_device_table *const table = place_table(p, rank, &self);
    if (!table->stream_synchronize)
        return TSR_OK;
    return table->stream_synchronize(self, place_device(p, rank).index, place_stream(p, rank));
}

tsr_status place_allocate(const place *p, tsr_comm *comm, size_t bytes, void **out)
{
    const int rank = tsr_comm_rank(comm);
    void *self;
    if (!place_enqueues(p))
        return tsr_comm_alloc(comm, bytes, out);
    return place_table(p, rank, &self)->alloc(self, place_device(p, rank).index, bytes, NULL, out);
}

void place_release(const place *p, tsr_comm *comm, void *memory, size_t bytes)
{
    const int rank = tsr_comm_rank(comm);
    void *self;
    if (!place_enqueues(p))
        tsr_comm_free(comm, memory, bytes);
    else if (memory)
        place_table(p, rank, &self)->free(self, place_device(p, rank).index, memory, bytes, NULL);
}

static tsr_status copy(const place *p, int rank, void *dst, const void *src, size_t bytes, tsr_copy_kind kind)
{
    void *self;
    if (bytes == 0)
        return TSR_OK;
    const tsr_device_table *const table = place_table(p, rank, &self);
    return table->copy(self, place_device(p, rank).index, dst, src, bytes, kind, place_stream(p, rank));
}

tsr_status place_copy(const place *p, int rank, void *dst, const void *src, size_t bytes)
{
    return copy(p, rank, dst, src, bytes, TSR_COPY_WITHIN);
}

tsr_status place_upload(const place *p, int rank, void *device, const void *host, size_t bytes)
{
    TSR_TRY(copy(p, rank, device, host, bytes, TSR_COPY_FROM_HOST));
    return place_settle(p, rank);
}

tsr_status place_download(const place *p, int rank, void *host, const void *device, size_t bytes)
{
    TSR_TRY(copy(p, rank, host, device, bytes, TSR_COPY_TO_HOST));
    return place_settle(p, rank);
}

tsr_status place_share(const place *p, tsr_comm *comm, void *rows, size_t row_bytes)
{
    if (p->launched == 0)
        return TSR_OK;
    const char *const own = (const char *)rows + (size_t)tsr_comm_rank(comm) * row_bytes;
    return tsr_comm_all_gather(comm, own, rows, (int64_t)row_bytes, NULL, TSR_U8, tsr_device_host(), NULL);
}
