/** Layouts that differ in what their cuts are called, but not in what ranks own. */
#ifndef TSR_OPS_PROGRAMS_RENAME_H
#define TSR_OPS_PROGRAMS_RENAME_H

#include <tessera/layout.h>

/** The layout `own` with its cuts called as those of `like`, a layout of the same tensor on the same
 * mesh, if every coordinate owns the same under both; else, or if they are called alike, `*out` is
 * NULL. The caller owns it. */
tsr_status tsr_layout_renamed(const tsr_layout *own, const tsr_layout *like, tsr_layout **out);

#endif
