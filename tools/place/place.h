/**
 * Where a command's ranks run and where their tensors lie: --engine and --device, understood. Ranks are threads of this process (threads,
 * nccl), or one is this process (mpi, under a launcher).
 */
#ifndef TESSERA_TOOLS_PLACE_PLACE_H
#define TESSERA_TOOLS_PLACE_PLACE_H

#include "command.h"

#include <tessera/sys/device.h>
#include <tessera/tessera.h>

typedef struct place place;

/** From --engine (without it: processes, where a launcher started several, else threads) and --device; the caller closes what it got.
 * Returns the tool's exit status: what this machine lacks is refused with the reason. */
int place_open(const tool_arguments *given, place **out);
void place_close(place *p);

const char *place_engine(const place *p);
const char *place_device_name(const place *p);

/** --mode, as moves here go: without it (NULL) in the engine's own mode; one that the engine does not have is refused. Returns the tool's
 * exit status. */
int place_parse_mode(const place *p, const char *text, tsr_mode *out);

/** True if this process prints: always, but for a launched process whose rank is not 0. */
bool place_speaks(const place *p);

/** How many ranks a launcher started, or 0: as many as are asked for. A mesh must hold so many. */
int place_launched(const place *p);

/** How many ranks to run for a mesh: as many as were launched, else up to its largest. Returns the tool's exit status: other meshes than
 * fit are refused. */
int place_count_ranks(const place *p, const tsr_mesh *mesh, int *out);

/** What a rank runs; its communicator is freed when it returns. */
typedef tsr_status place_body(tsr_comm *comm, void *arg);

/** Runs `body` on every rank: of `ranks` threads, or on this process' own rank. The first failure, with its sentence. One run at a time. */
tsr_status place_run(place *p, int ranks, place_body *body, void *arg);

/** Between runs, where ranks are processes: collective, for what each does by itself, as with its files. `status` is this rank's, after its
 * complaint. Returns it if it is a failure, else a failure, with the sentence of the lowest rank that failed, if there is one. NULL is
 * fine, and agrees. */
int place_agree(const place *p, int status);

/** The device of rank `rank`'s tensors, and the stream on which they are worked on (NULL on the host), while that rank's body runs. Ranks
 * that share a GPU differ in the stream. */
tsr_device place_device(const place *p, int rank);
tsr_stream place_stream(const place *p, int rank);

/** The operations of the rank's device, and what they take as `self`. Borrowed. */
const tsr_device_table *place_table(const place *p, int rank, void **self);

/** True if calls on the device only enqueue. */
bool place_enqueues(const place *p);

/** Waits until this rank's stream is idle; at once on the host. */
tsr_status place_settle(const place *p, int rank);

/** Memory of the rank's device, for what `comm` carries: collective on the host, where peers may share it. Released by the rank, before its
 * body returns; NULL is fine. */
tsr_status place_allocate(const place *p, tsr_comm *comm, size_t bytes, void **out);
void place_release(const place *p, tsr_comm *comm, void *memory, size_t bytes);

/** Copies within the rank's device; done in the order of its stream. */
tsr_status place_copy(const place *p, int rank, void *dst, const void *src, size_t bytes);

/** Copies between host memory and the rank's device; done on return. */
tsr_status place_upload(const place *p, int rank, void *device, const void *host, size_t bytes);
tsr_status place_download(const place *p, int rank, void *host, const void *device, size_t bytes);

/** Collective: rank r's row of `row_bytes` becomes everybody's row r, where ranks do not share memory. */
tsr_status place_share(const place *p, tsr_comm *comm, void *rows, size_t row_bytes);

#endif
