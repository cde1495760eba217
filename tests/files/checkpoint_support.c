#include "checkpoint_support.h"

#include "comm_suite.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

void name_folder(const char *kind, char path[FOLDER_BYTES])
{
    snprintf(path, FOLDER_BYTES, "/tmp/tessera-checkpoint-%d-%s-%s", (int)getppid(), suite_engine->name, kind);
}

int count_files(const char *folder)
{
    int count = 0;
    DIR *const open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));)
        count += entry->d_name[0] != '.' || (entry->d_name[1] != '\0' && entry->d_name[1] != '.');
    if (open)
        closedir(open);
    return count;
}

tsr_status remove_folder(tsr_comm *comm, void *arg)
{
    char path[FOLDER_BYTES];
    (void)comm;
    name_folder(arg, path);
    DIR *const folder = opendir(path);
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    CHECK(rmdir(path) == 0);
    return TSR_OK;
}
