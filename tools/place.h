/**
 * Where a command's ranks run and where their tensors lie: --engine and --device, understood. Ranks are threads of this process (threads,
 * nccl), or one is this process (mpi, under a launcher).
 */
#ifndef TESSERA_TOOLS_PLACE_H
#define TESSERA_TOOLS_PLACE_H

#include "command.h"

#include <tessera/tessera.h>

typedef struct place place;

/** From --engine and --device; the caller closes what it got. Returns the tool's exit status: what this machine lacks is refused with the
 * reason. */
int place_open(const tool_arguments *given, place **out);
void place_close(place *p);

const char *place_engine(const place *p);
const char *place_device_name(const place *p);

/** True if this process prints: always, but for a launched process whose rank is not 0. */
bool place_speaks(const place *p);

/** How many ranks a launcher started, or 0: as many as are asked for. A mesh must hold so many. */
int place_launched(const place *p);

/** What a rank runs; its communicator is freed when it returns. */
typedef tsr_status place_body(tsr_comm *comm, void *arg);

/** Runs `body` on every rank: of `ranks` threads, or on this process' own rank. The first failure, with its sentence. */
tsr_status place_run(place *p, int ranks, place_body *body, void *arg);

/** The device of rank `rank`'s tensors, and the stream on which they are worked on (NULL on the host). */
tsr_device place_device(const place *p, int rank);
tsr_stream place_stream(const place *p, int rank);

/** Waits until this rank's stream is idle; at once on the host. */
tsr_status place_settle(const place *p, int rank);

/** Copies between host memory and the rank's device; done on return. */
tsr_status place_upload(const place *p, int rank, void *device, const void *host, size_t bytes);
tsr_status place_download(const place *p, int rank, void *host, const void *device, size_t bytes);

/** Collective: rank r's row of `row_bytes` becomes everybody's row r, where ranks do not share memory. */
tsr_status place_share(const place *p, tsr_comm *comm, void *rows, size_t row_bytes);

#endif
