/** A rank's main function in C++ (ended_frames.cc). */
#ifndef TESTS_COMM_ENDED_FRAMES_H
#define TESTS_COMM_ENDED_FRAMES_H

#include <tessera/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Splits `comm`, throws and catches an exception past the group's frame, then ends the thread of
 * rank 1 within a frame whose object destroys the group: by pthread_exit() or, with `*arg` not 0,
 * by cancelling it while it waits. The other ranks wait for it. */
tsr_status ended_frames_main(tsr_comm *comm, void *arg);

/** The number of these objects that were destroyed. */
int ended_frames_gone(void);

#ifdef __cplusplus
}
#endif

#endif
