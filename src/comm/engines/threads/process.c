#include "comm/engines/threads/process.h"

#include "base/checked.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The beginning of a file; "" if it cannot be read. */
static void read_line(const char *path, char *line, size_t capacity)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, line, capacity - 1) : 0;
    line[length > 0 ? length : 0] = '\0';
    if (file >= 0)
        close(file);
}

/* The 20th field of a line whose second is a name in parentheses (proc(5), num_threads). */
int64_t tsr_process_threads(void)
{
    char line[1024];
    read_line("/proc/self/stat", line, sizeof line);
    const char *at = strrchr(line, ')');
    for (int field = 2; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at, NULL, 10) : 0;
}

/* Thread ids are below pid_max, and threads-max limits how many threads there are (proc(5)). */
int64_t tsr_process_most_threads(void)
{
    char line[64];
    read_line("/proc/sys/kernel/pid_max", line, sizeof line);
    const int64_t numbers = strtoll(line, NULL, 10);
    read_line("/proc/sys/kernel/threads-max", line, sizeof line);
    const int64_t threads = strtoll(line, NULL, 10);
    return numbers > 0 && threads > 0 ? tsr_min_i64(numbers, threads) : tsr_max_i64(numbers, threads);
}
