/**
 * @file
 * Tessera: sharded tensors on device meshes.
 *
 * Ownership. An object that a call makes (create, from, parse, split, slice, with, ..) is the
 * caller's, who frees it with the object's destroy; destroying NULL is fine. Accessors borrow: what
 * they give out lives as long as the object. Contexts, meshes, layouts, plans and dtensors are
 * reference-counted and retain what they refer to; arrays and text that they are given are copied.
 * A communicator's handle is ended by tsr_comm_destroy(), not by the last reference: what lies over
 * it can be read and destroyed afterwards, in any order and by any thread, while calls that
 * communicate say that it is gone (TSR_ERROR_STATE). Outputs are written only on success.
 *
 * Threads. Contexts, meshes, layouts and plans are immutable: any thread may use them at once. A
 * rank is its communicator handle, never the calling thread; one call may be in flight per handle
 * (a second one is refused, TSR_ERROR_STATE), and dtensors belong to their mesh's handle. Every
 * rank makes the same collective calls in the same order (SPMD).
 *
 * Streams. A call that takes a stream is done in that stream's order. On the host there is one
 * stream, NULL, and a call is done when it returns. On a device with streams it is enqueued: the
 * host waits for the hosts of peers, never for the device. What a rank's stream held when the call
 * was made comes first, also for peers that read its memory, and what it is given afterwards
 * follows all that they do there. So memory stays as it is until the stream has passed the call: to
 * write it again, or to free it, on the same stream is right at once, on another one after an event
 * or a wait. Calls that move and take no stream work on the device's default one (NULL). All memory
 * of a call is on one kind of device on all ranks; which one of the kind is each rank's own choice.
 * Rank threads capture a call into a graph together, all streams forked from one capture and joined
 * to it.
 *
 * Lifetimes. A driver may be destroyed before communicators, meshes and dtensors that have used it,
 * and goes with the last of them; a stream lives as long as a call that was started on it is not
 * finished.
 *
 * Errors. Every fallible call returns a tsr_status; tsr_status_message() has the sentence. The
 * library never aborts, exits or prints uninvited.
 *
 * Sizes and offsets are int64_t elements unless a name says bytes. Tensors are row-major; a linear
 * weight is (out_features, in_features).
 */
#ifndef TESSERA_H
#define TESSERA_H

#include <tessera/comm.h>
#include <tessera/context.h>
#include <tessera/cost.h>
#include <tessera/dtensor.h>
#include <tessera/dtype.h>
#include <tessera/explain.h>
#include <tessera/layout.h>
#include <tessera/linear.h>
#include <tessera/mesh.h>
#include <tessera/nodes.h>
#include <tessera/placement.h>
#include <tessera/plan.h>
#include <tessera/profile.h>
#include <tessera/relabel.h>
#include <tessera/saved.h>
#include <tessera/status.h>
#include <tessera/tensor.h>
#include <tessera/version.h>

#endif
