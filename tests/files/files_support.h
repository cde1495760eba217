/** What tests of files have in common. */
#ifndef FILES_SUPPORT_H
#define FILES_SUPPORT_H

/** The number of names in a folder, "." and ".." among them. Fails the test if the folder cannot be
 * read. */
int support_count_names(const char *folder);

#endif
