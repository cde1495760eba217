/**
 * @file
 * What links cost: the model by which plans are compared and timed.
 *
 * A plan takes, for each kind of link that it uses, steps * latency + bytes / bandwidth, and the
 * kinds run at once: the slower counts. Inside a node the bytes are all that the busiest rank
 * receives, for what comes from another node passes through its link too; between nodes those that
 * the busiest node receives from others (Hockney's model, R. W. Hockney, Parallel Computing 20,
 * 1994, with one term a level). By it no layout in between makes a move without Partial quicker.
 *
 * As text, in the variable TSR_COST and in files, a profile is
 *
 *     inside=5e-7,1.6e10 between=5e-6,1.25e10   # seconds, bytes a second
 *
 * Each kind stands there at most once, a kind that is left out is that of tsr_cost_default().
 * Spaces, tabs and newlines part them, and a comment goes from # to the end of its line. Numbers
 * have a decimal point in every locale. A text may go on with tables of what a rank's own work
 * costs (profile.h), which are read and passed over here. Nothing here communicates; any thread may
 * call.
 */
#ifndef TESSERA_COST_H
#define TESSERA_COST_H

#include <stddef.h>
#include <tessera/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One kind of link. */
typedef struct tsr_link {
    double latency;   /**< seconds a step in which it is used */
    double bandwidth; /**< bytes a second */
} tsr_link;

/** A value: copied where it is given. Latencies are finite, from 0 up, and inside no greater than
 * between; bandwidths finite and above 0. */
typedef struct tsr_cost_profile {
    tsr_link inside;  /**< a node: into one rank */
    tsr_link between; /**< nodes: into one node */
} tsr_cost_profile;

/** What is assumed where nobody measured. Inside: 0.5 us and 16 GB/s, what two rank threads of one
 * process were measured to need for two barriers and a tiny copy, and to reach in large copies.
 * Between: 5 us and 12.5 GB/s, a network of 100 Gb/s. */
TSR_API tsr_cost_profile tsr_cost_default(void);

/** Reads a profile. TSR_ERROR_ARGUMENT: the text is none, pointing at the character, or the profile
 * is not as it must be (see there). */
TSR_API tsr_status tsr_cost_parse(const char *text, tsr_cost_profile *out);

/** Writes a profile in one line, with the fewest digits that tsr_cost_parse() reads back as the
 * same numbers. In the manner of snprintf: returns the length of the whole text, and writes at most
 * `capacity` bytes of it, the last NUL (`text` may be NULL where that is 0). */
TSR_API size_t tsr_cost_print(const tsr_cost_profile *profile, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
