/**
 * @file
 * Tessera: sharded tensors on device meshes.
 *
 * @par Ownership
 * An object that a call makes (create, from, parse, split, slice, with, ..) belongs to the caller.
 * The caller frees it with the object's destroy function, which takes NULL too. The result of an
 * accessor belongs to the object and lives as long as it. Contexts, meshes, layouts, plans and
 * dtensors are reference-counted. They retain the objects that they are given, and copy arrays and
 * text. Outputs are written only on success.
 *
 * @par Communicators
 * A communicator's handle ends with tsr_comm_destroy(), not with the last reference. Meshes and
 * dtensors over it can still be read and destroyed, in any order and by any thread; calls that
 * communicate over it return TSR_ERROR_STATE. A mesh of tsr_mesh_split() owns its communicator,
 * which ends with the last object that refers to the mesh or to one made of it.
 *
 * @par Threads
 * Contexts, meshes, layouts and plans are immutable: any thread may use them at any time. A rank is
 * its communicator handle, never the calling thread. One call may be in flight per handle; a second
 * one is refused (TSR_ERROR_STATE). A dtensor belongs to its mesh's handle. Every rank makes the
 * same collective calls in the same order (SPMD).
 *
 * @par Streams
 * A call that takes a stream is done in that stream's order. On the host there is one stream, NULL,
 * and a call is done when it returns. On a device with streams the call is enqueued: the host waits
 * for the hosts of peers, never for the device. A call that moves data and takes no stream works on
 * the device's default stream (NULL).
 *
 * @par Order on a stream
 * Work that a rank's stream held before the call comes first, also for peers that read the rank's
 * memory. Work that the stream is given afterwards follows all that peers do in that memory. So a
 * call's memory must stay as it is until the stream has passed the call. On the same stream it may
 * be written or freed at once; on another stream, after an event or a wait.
 *
 * @par Devices
 * All memory of a call is on one kind of device on all ranks; each rank chooses which device of
 * that kind. Rank threads capture a call into a graph together: all their streams are forked from
 * one capture and joined to it. A driver may be destroyed before communicators, meshes and dtensors
 * that have used it; it is freed with the last of them. A stream must live until every call that
 * was started on it is finished.
 *
 * @par Errors
 * Every call that can fail returns a tsr_status; tsr_status_message() has the sentence. The library
 * never aborts, exits or prints uninvited.
 *
 * @par Sizes
 * Sizes and offsets are int64_t elements unless a name says bytes. Tensors are row-major; a linear
 * weight is (out_features, in_features).
 */
#ifndef TESSERA_H
#define TESSERA_H

#include <tessera/attention.h>
#include <tessera/comm.h>
#include <tessera/context.h>
#include <tessera/cost.h>
#include <tessera/dlpack.h>
#include <tessera/dtensor.h>
#include <tessera/dtype.h>
#include <tessera/executable.h>
#include <tessera/experts.h>
#include <tessera/explain.h>
#include <tessera/indexing.h>
#include <tessera/layout.h>
#include <tessera/linear.h>
#include <tessera/losses.h>
#include <tessera/mesh.h>
#include <tessera/mesh_comm.h>
#include <tessera/mixture.h>
#include <tessera/nodes.h>
#include <tessera/norms.h>
#include <tessera/ops.h>
#include <tessera/optimizer.h>
#include <tessera/order.h>
#include <tessera/parallel_plan.h>
#include <tessera/placement.h>
#include <tessera/plan.h>
#include <tessera/pointwise.h>
#include <tessera/products.h>
#include <tessera/profile.h>
#include <tessera/program.h>
#include <tessera/program_ops.h>
#include <tessera/random.h>
#include <tessera/reductions.h>
#include <tessera/relabel.h>
#include <tessera/replicas.h>
#include <tessera/rows.h>
#include <tessera/run.h>
#include <tessera/saved.h>
#include <tessera/saved_program.h>
#include <tessera/sharding.h>
#include <tessera/sparse.h>
#include <tessera/status.h>
#include <tessera/sync.h>
#include <tessera/tensor.h>
#include <tessera/values.h>
#include <tessera/varying.h>
#include <tessera/version.h>
#include <tessera/views.h>

#endif
