/**
 * @file
 * What links cost: the model by which plans are compared and timed.
 *
 * @par Model
 * For each kind of link that a plan uses, it takes steps * latency + bytes / bandwidth. The kinds
 * run at the same time, so that the slower one counts. Inside a node, the bytes are all that the
 * busiest rank receives: data from another node passes through the rank's own link too. Between
 * nodes, they are the bytes that the busiest node receives from others. This is Hockney's model (R.
 * W. Hockney, Parallel Computing 20, 1994) with one term per level. Under it, no detour through
 * another layout makes a move without Partial quicker.
 *
 * @par Text form
 * In the variable TSR_COST and in files, a profile is
 *
 *     inside=5e-7,1.6e10 between=5e-6,1.25e10   # seconds, bytes a second
 *
 * Each kind appears at most once; a kind that is left out is that of tsr_cost_default(). Spaces,
 * tabs and newlines separate them, and a comment goes from # to the end of its line. Numbers have a
 * decimal point in every locale. Tables of what a rank's own work costs (profile.h) may follow;
 * they are read and passed over here. Nothing here communicates; any thread may call.
 */
#ifndef TESSERA_COST_H
#define TESSERA_COST_H

#include <tessera/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The cost of one kind of link. */
typedef struct tsr_link {
    double latency;   /**< seconds per step that uses the link */
    double bandwidth; /**< bytes per second */
} tsr_link;

/** Costs of both kinds of link; a plain value. Latencies are finite and at least 0, inside at most
 * that of between. Bandwidths are finite and above 0. */
typedef struct tsr_cost_profile {
    tsr_link inside;  /**< within a node: into one rank */
    tsr_link between; /**< between nodes: into one node */
} tsr_cost_profile;

/** The costs that are assumed where nothing was measured. Inside: 0.5 us and 16 GB/s, as measured
 * with two rank threads of one process, for two barriers with a tiny copy and for large copies.
 * Between: 5 us and 12.5 GB/s, a network of 100 Gb/s. */
TSR_API tsr_cost_profile tsr_cost_default(void);

/** Reads a profile from text. TSR_ERROR_ARGUMENT: the text is not a profile, and the sentence
 * points at the character, or its numbers break a rule of tsr_cost_profile. */
TSR_API tsr_status tsr_cost_parse(const char *text, tsr_cost_profile *out);

/** Writes a profile in one line, with the fewest digits that tsr_cost_parse() reads back as the
 * same numbers. Like snprintf(), it returns the length of the whole text and writes at most
 * `capacity` bytes of it, the last NUL (`text` may be NULL where `capacity` is 0). */
TSR_API size_t tsr_cost_print(const tsr_cost_profile *profile, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
