#include "files_support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

int support_count_names(const char *folder)
{
    int count = 0;
    DIR *const names = opendir(folder);
    assert_non_null(names);
    while (readdir(names))
        count++;
    closedir(names);
    return count;
}
