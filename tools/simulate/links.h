/** The links of this machine, measured once for each number of ranks and mode: ranks share it, and the two modes move differently. */
#ifndef TESSERA_TOOLS_SIMULATE_LINKS_H
#define TESSERA_TOOLS_SIMULATE_LINKS_H

#include "bench/calibrate/fit.h"
#include "place/place.h"

typedef struct measured_links {
    int ranks;
    tsr_mode mode;
    tsr_cost_profile profile;
    fit_error inside, between; /**< of the profile itself, over the moves that it was fitted to; 0 where nothing was measured */
    bool has_inside;           /**< some node has several of the ranks */
    int node_count;            /**< how many nodes the ranks are on; links between nodes are measured on several */
    struct measured_links *next;
} measured_links;

/** Those that were measured so far, the latest first; begins with NULL. */
typedef struct links_book {
    measured_links *first;
} links_book;

/** Collective over the place: finds them in the book, or measures them, for about four seconds; every process finds the
 * same. They stay where they are until links_book_finish(). Returns the tool's exit status. */
int links_book_look_up(links_book *book, place *p, int ranks, tsr_mode mode, const measured_links **out);
void links_book_finish(links_book *book);

#endif
