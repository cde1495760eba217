/** The links of this machine, measured once for each number of ranks and mode: ranks share the
 * machine, and the two modes move differently. */
#ifndef TESSERA_TOOLS_SIMULATE_LINKS_H
#define TESSERA_TOOLS_SIMULATE_LINKS_H

#include "bench/calibrate/fit.h"
#include "place/place.h"

typedef struct measured_links {
    int ranks;
    tsr_mode mode;
    tsr_profile *profile;
    /** errors of the profile over the moves that it was fitted to; 0: links were not measured */
    fit_error inside, between;
    bool has_inside; /**< links inside a node were measured: a node has several of the ranks */
    int node_count;  /**< number of nodes that the ranks are on; links between nodes are measured if it is above 1 */
    struct measured_links *next;
} measured_links;

/** All links measured so far, the latest first; begins zeroed. */
typedef struct links_book {
    measured_links *first;
} links_book;

/** Finds the links for `ranks` and `mode` in the book, or measures them, in about four seconds.
 * Collective over the place; every process gets the same. `*out` is valid until
 * links_book_finish(). Returns the tool's exit status. */
int links_book_look_up(links_book *book, place *p, int ranks, tsr_mode mode, const measured_links **out);
void links_book_finish(links_book *book);

#endif
