/**
 * Where a command's ranks run and where their tensors lie, by --engine and --device. Ranks are
 * threads of this process (threads, nccl), or this process is one rank (mpi, under a launcher).
 */
#ifndef TESSERA_TOOLS_PLACE_PLACE_H
#define TESSERA_TOOLS_PLACE_PLACE_H

#include "command.h"

#include <tessera/sys/device.h>
#include <tessera/tessera.h>

typedef struct place place;

/** Opens the place of --engine and --device. Without --engine it is mpi if a launcher started
 * several processes, else threads. The caller closes it. Returns the tool's exit status:
 * EXIT_REFUSED, with the reason, for an engine or device that this machine lacks. */
int place_open(const tool_arguments *given, place **out);
void place_close(place *p);

const char *place_engine(const place *p);
const char *place_device_name(const place *p);

/** The mode of moves by the value of --mode; NULL: the engine's default. Returns the tool's exit
 * status: EXIT_REFUSED for a mode that the engine does not have. */
int place_parse_mode(const place *p, const char *text, tsr_mode *out);

/** True if this process prints: false only for a launched process whose rank is not 0. */
bool place_speaks(const place *p);

/** The number of ranks that a launcher started, which a mesh must have; 0 if ranks are threads, in
 * any number. */
int place_launched(const place *p);

/** The number of ranks to run for a mesh, or a move between two meshes: their largest rank plus
 * one. `to_mesh` may be NULL. Returns the tool's exit status: EXIT_REFUSED if another number of
 * ranks was launched. */
int place_count_ranks(const place *p, const tsr_mesh *mesh, const tsr_mesh *to_mesh, int *out);

/** The main function of a rank; place_run() frees `comm` when it has returned. */
typedef tsr_status place_body(tsr_comm *comm, void *arg);

/** Runs `body` on every rank: on `ranks` threads, or on this process's own rank. Returns the first
 * failure, with its sentence. One run at a time. */
tsr_status place_run(place *p, int ranks, place_body *body, void *arg);

/** Lets the processes of a launcher agree on a failure between runs, as after reading files;
 * collective. `status` is this rank's exit status, after its complaint. A failure is returned as it
 * is; EXIT_DONE becomes EXIT_REFUSED if another rank failed, with the sentence of the lowest rank
 * that did. Without a launcher, or for NULL, returns `status`. */
int place_agree(const place *p, int status);

/** The device of the tensors of `rank`. Ranks may share a device. */
tsr_device place_device(const place *p, int rank);

/** The stream of `rank`, its own, while its body runs; NULL on a device without streams, such as
 * the host. */
tsr_stream place_stream(const place *p, int rank);

/** The operations of the rank's device, and their argument `self`. Borrowed. */
const tsr_device_table *place_table(const place *p, int rank, void **self);

/** True if the device has memory of its own, and work that may only be enqueued; false on the
 * host. */
bool place_enqueues(const place *p);

/** Waits until this rank's stream is idle; returns at once on the host. */
tsr_status place_settle(const place *p, int rank);

/** Memory of the rank's device, for moves over `comm`. Collective on the host, where peers may
 * access it. The rank releases it before its body returns, with the same `bytes`; releasing NULL is
 * fine. */
tsr_status place_allocate(const place *p, tsr_comm *comm, size_t bytes, void **out);
void place_release(const place *p, tsr_comm *comm, void *memory, size_t bytes);

/** Copies within the rank's device, in the order of its stream. */
tsr_status place_copy(const place *p, int rank, void *dst, const void *src, size_t bytes);

/** Copies between host memory and the rank's device; complete on return. */
tsr_status place_upload(const place *p, int rank, void *device, const void *host, size_t bytes);
tsr_status place_download(const place *p, int rank, void *host, const void *device, size_t bytes);

/** Collective: gives every rank all rows, row r from rank r, each of `row_bytes` on the host. Does
 * nothing where ranks are threads and share `rows`. */
tsr_status place_share(const place *p, tsr_comm *comm, void *rows, size_t row_bytes);

#endif
