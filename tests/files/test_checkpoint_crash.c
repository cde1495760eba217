/* A save that is killed, or whose file operations fail, at each of its operations: the folder has
 * the last checkpoint or the new one, whole, and the next save removes what was left. */
#include "checkpoint_support.h"
#include "comm_suite.h"

#include <tessera/checkpoint.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What happens at an operation on files. */
typedef enum mishap {
    NOTHING,
    FAILURE, /* of this operation */
    LASTING, /* of it and all later ones */
    KILL     /* of the process */
} mishap;

static mishap planned;
static atomic_int operations_left = -1; /* until the mishap */

/* True if the operation fails. */
static bool meets_mishap(void)
{
    if (planned == NOTHING)
        return false;
    const int left = atomic_fetch_sub(&operations_left, 1);
    if (left > 1 || (left < 1 && planned != LASTING))
        return false;
    if (planned == KILL)
        kill(getpid(), SIGKILL);
    errno = EIO;
    return true;
}

/* Each stands in for the C library's function of its name, in the libraries too. */
#define REAL(name) __extension__((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

#pragma GCC visibility push(default)

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
    return meets_mishap() ? -1 : REAL(pwrite)(file, bytes, count, at);
}

/* Brings nothing to the disk: the system outlives the test. */
int fsync(int file)
{
    (void)file;
    return meets_mishap() ? -1 : 0;
}

int ftruncate(int file, off_t size)
{
    return meets_mishap() ? -1 : REAL(ftruncate)(file, size);
}

int rename(const char *from, const char *to)
{
    return meets_mishap() ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    return meets_mishap() ? -1 : REAL(mkdir)(path, mode);
}

int unlinkat(int folder, const char *path, int flags)
{
    return meets_mishap() ? -1 : REAL(unlinkat)(folder, path, flags);
}

#pragma GCC visibility pop

/* Of the third tensor ranks have short runs, which they exchange before they write. */
enum { TENSORS = 3, MOST = 64 * 600 };

static const int64_t shapes[TENSORS][2] = {{6, 50}, {6, 50}, {64, 600}};

typedef struct saving {
    char folder[FOLDER_BYTES];
    int value; /* of all elements, and the step */
    bool apart, dcp;
    bool may_fail;
    bool saved;
} saving;

static tsr_status make(tsr_comm *comm, int value, tsr_mesh **mesh, tsr_dtensor *x[TENSORS])
{
    static const char *const placements[] = {"S(0)", "R", "S(1)"};
    float *const values = malloc(MOST * sizeof *values);
    CHECK(values);
    for (int j = 0; j < MOST; j++)
        values[j] = (float)value;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", mesh));
    for (int i = 0; i < TENSORS; i++) {
        const tsr_tensor whole = tsr_tensor_contiguous(values, TSR_F32, 2, shapes[i]);
        TSR_TRY(tsr_distribute(&whole, *mesh, placements[i], &x[i]));
    }
    free(values);
    return TSR_OK;
}

static void destroy(tsr_mesh *mesh, tsr_dtensor *const x[TENSORS])
{
    for (int i = 0; i < TENSORS; i++)
        tsr_dtensor_destroy(x[i]);
    tsr_mesh_destroy(mesh);
}

static tsr_status save(tsr_comm *comm, void *arg)
{
    saving *const s = arg;
    tsr_mesh *mesh;
    tsr_dtensor *x[TENSORS];
    tsr_checkpoint_saving *going;
    TSR_TRY(make(comm, s->value, &mesh, x));
    const tsr_safetensors_tensor tensors[] = {
        {"x", x[0], TSR_DTYPE_NONE}, {"y", x[1], TSR_DTYPE_NONE}, {"z", x[2], TSR_DTYPE_NONE}};
    const tsr_checkpoint_number step = {"step", s->value};
    const tsr_checkpoint_save_options options = {sizeof options, 1000, 0, NULL, 1, &step, s->dcp};
    tsr_status status;
    if (s->apart) {
        status = tsr_checkpoint_start(comm, s->folder, TENSORS, tensors, &options, &going);
        if (status == TSR_OK)
            status = tsr_checkpoint_finish(going);
    } else {
        status = tsr_checkpoint_save(comm, s->folder, TENSORS, tensors, &options);
    }
    if (!s->may_fail)
        TSR_TRY(status);
    int64_t saved[2] = {status == TSR_OK, status != TSR_OK};
    TSR_TRY(tsr_comm_all_reduce(comm, saved, saved, 2, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    CHECK(saved[0] == 0 || saved[1] == 0); /* all ranks hear of a failure */
    if (tsr_comm_rank(comm) == 0)
        s->saved = status == TSR_OK;
    destroy(mesh, x);
    return TSR_OK;
}

/* Loads the checkpoint, which is that of `arg`'s value or, if it may have failed, of the one
 * before. */
static tsr_status load(tsr_comm *comm, void *arg)
{
    const saving *const s = arg;
    tsr_mesh *mesh;
    tsr_dtensor *x[TENSORS];
    TSR_TRY(make(comm, 0, &mesh, x));
    const tsr_safetensors_target targets[] = {{"x", x[0]}, {"y", x[1]}, {"z", x[2]}};
    tsr_checkpoint_number step = {"step", 0};
    const tsr_checkpoint_load_options options = {sizeof options, 0, NULL, 1, &step, NULL};
    TSR_TRY(tsr_checkpoint_load(comm, s->folder, TENSORS, targets, &options));
    CHECK(step.value == s->value || (s->may_fail && step.value == s->value - 1));
    for (int i = 0; i < TENSORS; i++) {
        const tsr_tensor local = tsr_dtensor_to_local(x[i]);
        for (int64_t j = 0; j < local.shape[0] * local.shape[1]; j++)
            CHECK(((const float *)local.data)[j] == (float)step.value);
    }
    destroy(mesh, x);
    return TSR_OK;
}

/* Saves in a process of its own that is killed at operation `at`. True: it was. */
static bool is_killed(saving *s, int at)
{
    const pid_t child = fork();
    if (child == 0) {
        planned = KILL;
        operations_left = at;
        _exit(tsr_threads_run(2, save, s, NULL) == TSR_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void begin(saving *s, const char *kind)
{
    name_folder(kind, s->folder);
    s->value = 1;
    s->may_fail = false;
    suite_run(2, save, s);
}

static void a_save_that_is_killed_leaves_the_last_checkpoint(void **state)
{
    (void)state;
    saving s = {.apart = false};
    begin(&s, "killed");
    for (int at = 1, killed = 1; killed; at++) {
        s.value++;
        s.may_fail = true;
        s.apart = at % 2 == 0;
        killed = is_killed(&s, at);
        assert_true(killed || at > 15);
        s.may_fail = killed;
        suite_run(2, load, &s);
        s.may_fail = false;
        suite_run(2, save, &s);
        suite_run(2, load, &s);
    }
    assert_int_equal(count_files(s.folder), 4); /* three files and the index: all else is removed */
    suite_run(1, remove_folder, "killed");
}

static void try_mishap(saving *s, mishap what, bool apart)
{
    for (int at = 1;; at++) {
        s->value++;
        s->may_fail = true;
        s->apart = apart;
        planned = what;
        operations_left = at;
        suite_run(2, save, s);
        planned = NOTHING;
        const bool met = operations_left < 1;
        assert_true(met || (s->saved && at > 15));
        s->may_fail = !s->saved;
        suite_run(2, load, s);
        s->may_fail = false;
        if (!met)
            break;
        suite_run(2, save, s);
        assert_int_equal(count_files(s->folder), 4);
    }
}

static void a_save_that_fails_leaves_the_last_checkpoint(void **state)
{
    (void)state;
    saving s = {.apart = false};
    begin(&s, "failed");
    for (int apart = 0; apart < 2; apart++) {
        try_mishap(&s, FAILURE, apart);
        try_mishap(&s, LASTING, apart);
    }
    suite_run(1, remove_folder, "failed");
}

/* A new folder each time: of a save that was killed there is none, or a whole one. */
static void a_save_in_the_form_of_pytorch_is_there_or_not(void **state)
{
    (void)state;
    struct stat facts;
    saving s = {.dcp = true, .value = 1};
    name_folder("boxes", s.folder);
    for (int at = 1, killed = 1; killed; at++) {
        killed = is_killed(&s, at);
        const bool there = stat(s.folder, &facts) == 0;
        assert_true(there || killed);
        if (there) {
            suite_run(2, load, &s);
            suite_run(1, remove_folder, "boxes");
        }
    }
    suite_run(2, save, &s); /* removes what killed ones left */
    suite_run(1, remove_folder, "boxes");
    char command[2 * FOLDER_BYTES];
    snprintf(command, sizeof command, "! ls -d %s* 2>/dev/null", s.folder);
    assert_int_equal(system(command), 0);
}

int main(int count, char **arguments)
{
    suite_start(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_that_is_killed_leaves_the_last_checkpoint),
        cmocka_unit_test(a_save_that_fails_leaves_the_last_checkpoint),
        cmocka_unit_test(a_save_in_the_form_of_pytorch_is_there_or_not),
    };
    return cmocka_run_group_tests_name("checkpoints after a crash", tests, NULL, NULL);
}
