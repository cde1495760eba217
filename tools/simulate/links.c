#include "simulate/links.h"

#include "bench/calibrate/calibration.h"

#include <stdlib.h>

/* True if a rank below `r` is on the node of `r`. */
static bool has_mate_before(const struct timed_row *rows, int r)
{
    for (int before = 0; before < r; before++)
        if (rows[before].node == rows[r].node)
            return true;
    return false;
}

/* Counts the nodes by the rows of a move between nodes; without such moves there is one node. */
static int count_nodes(const calibration *c, int ranks)
{
    int count = 0;
    if (c->count == c->inside)
        return 1;
    for (int r = 0; r < ranks; r++)
        count += !has_mate_before(c->moves[c->inside]->rows, r);
    return count;
}

static int measure(place *p, measured_links *links)
{
    const calibration_request request = calibration_usual(links->ranks, links->mode);
    calibration *const c = calloc(1, sizeof *c);
    int status = place_agree(p, c ? EXIT_DONE : complain(EXIT_REFUSED, "there is no memory for a calibration"));
    if (status == EXIT_DONE)
        status = calibrate(p, &request, c);
    if (status == EXIT_DONE) {
        links->has_inside = c->inside > 0;
        links->node_count = count_nodes(c, links->ranks);
    }
    if (c) {
        links->profile = tsr_profile_retain(c->measured);
        links->inside = c->error[0];
        links->between = c->error[1];
        calibration_finish(c);
    }
    free(c);
    return status;
}

static int add(links_book *book, place *p, int ranks, tsr_mode mode)
{
    measured_links *const links = calloc(1, sizeof *links);
    int status = place_agree(p, links ? EXIT_DONE
                                      : complain(EXIT_REFUSED, "there is no memory for the links of %d ranks", ranks));
    if (status == EXIT_DONE) {
        *links = (measured_links){.ranks = ranks, .mode = mode, .next = book->first};
        status = measure(p, links);
    }
    if (status == EXIT_DONE)
        book->first = links;
    else
        free(links);
    return status;
}

int links_book_look_up(links_book *book, place *p, int ranks, tsr_mode mode, const measured_links **out)
{
    const measured_links *found = book->first;
    while (found && (found->ranks != ranks || found->mode != mode))
        found = found->next;
    const int status = found ? EXIT_DONE : add(book, p, ranks, mode);
    if (status == EXIT_DONE)
        *out = found ? found : book->first;
    return status;
}

void links_book_finish(links_book *book)
{
    while (book->first) {
        measured_links *const links = book->first;
        book->first = links->next;
        tsr_profile_destroy(links->profile);
        free(links);
    }
}
