/* Programs on devices that fail, or are refused: on every rank with a sentence, and no rank waits
 * for ever. */
#include "device_cases.h"
#include "layers.h"
#include "message_engine.h"
#include "queued_trial.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* More calls than a run makes. */
#define MOST 400

/* A run that is open, on a mesh of its own. */
typedef struct opened {
    tsr_mesh *mesh;
    device_run r;
} opened;

static tsr_status open_run(tsr_comm *comm, const queued_trial *t, const device_running *on, opened *out)
{
    *out = (opened){.mesh = NULL};
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &out->mesh));
    return device_run_open(comm, out->mesh, t->c, on, &out->r);
}

static void close_run(opened *o)
{
    device_run_close(&o->r);
    tsr_mesh_destroy(o->mesh);
}

/* What prepare refuses: words of the sentence. */
typedef struct refusal {
    queued_trial t;
    const char *words;
} refusal;

static tsr_status expect_refused(tsr_comm *comm, void *arg)
{
    const refusal *const x = arg;
    opened o;
    tsr_status status = open_run(comm, &x->t, &x->t.on, &o);
    if (status == TSR_OK)
        status = layer_expect_status(x->t.c->name, device_run_prepare(&o.r), TSR_ERROR_UNSUPPORTED, x->words);
    close_run(&o);
    return status;
}

static void refuse(const device_case *c, const tsr_device_table *table, const char *lacks, const char *words)
{
    refusal x = {.t = {.c = c, .mesh = "2"}, .words = words};
    queued_start(&x.t, table, false);
    async_lack(x.t.machine, lacks);
    queued_run(&x.t, expect_refused);
    queued_stop(&x.t);
}

static void record_softmax(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    (void)arg;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){3, 4}, "S(1)");
    tsr_output(p, "y", tsr_op_softmax(p, x, 1), NULL);
}

static void ops_without_a_kernel_are_refused_by_name_before_anything_runs(void **state)
{
    static const device_case softmax = {"softmax", record_softmax, NULL, 0};
    (void)state;
    refuse(&device_mlp, async_ops_table(true), "relu", "relu: device \"async\" has no kernel of relu");
    refuse(&device_mlp, async_ops_table(false), "linear", "device \"async\" has no kernel of linear");
    refuse(&device_llama, async_table(), NULL, "device \"async\" has no kernel of embedding");
    refuse(&softmax, async_ops_table(true), NULL, "op 0, softmax: a factor of the rule");
}

/* A store whose position the program computes, or which ops read too. */
static void record_position(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    tsr_layout *layout;
    if (tsr_layout_parse(mesh, "R", 1, (const int64_t[]){9}, TSR_F32, &layout) != TSR_OK)
        return;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 1, (const int64_t[]){3}, NULL);
    const tsr_value given = tsr_input(p, "given", mesh, TSR_I64, 0, NULL, NULL);
    const tsr_value twice = tsr_op_add(p, given, given), cache = tsr_state(p, "cache", layout);
    tsr_layout_destroy(layout);
    tsr_op_store(p, cache, x, arg ? given : twice);
    tsr_output(p, "twice", twice, NULL);
}

static void positions_that_lie_on_the_device_are_refused(void **state)
{
    static const device_case computed = {"computed", record_position, NULL, 3},
                             shared = {"shared", record_position, "shared", 3};
    (void)state;
    refuse(&computed, async_ops_table(true), NULL, "store: the program computes the position");
    refuse(&shared, async_ops_table(true), NULL, "add: input \"given\" is the position of a store");
}

/* Prepares where rank 1 is on the host. */
static tsr_status prepare_apart(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    opened o;
    tsr_status status = open_run(comm, t, tsr_comm_rank(comm) == 1 ? NULL : &t->on, &o);
    if (status == TSR_OK)
        status = layer_expect_status("apart", device_run_prepare(&o.r), TSR_ERROR_PEER, "different kinds of device");
    close_run(&o);
    return status;
}

/* Prepares where rank 1 asks for a device that is not there. */
static tsr_status prepare_far(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    const bool is_one = tsr_comm_rank(comm) == 1;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    options.device = (tsr_device){t->on.driver, is_one ? 2 : 0};
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    t->c->record(p, mesh, NULL);
    TSR_TRY(tsr_compile(p, &options, &x));
    const tsr_status status =
        layer_expect_status("far", tsr_executable_prepare(x, comm), is_one ? TSR_ERROR_UNAVAILABLE : TSR_ERROR_PEER,
                            "device async:2 is not there, of 2");
    options.device.index = -1;
    EXPECT(tsr_compile(p, &options, &x) == TSR_ERROR_ARGUMENT, "a device of index -1 was taken");
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    return status;
}

static void ranks_have_devices_of_one_kind_that_are_there(void **state)
{
    queued_trial t = {.c = &device_mlp, .mesh = "2"};
    (void)state;
    queued_start(&t, async_ops_table(true), false);
    queued_run(&t, prepare_apart);
    queued_run(&t, prepare_far);
    queued_stop(&t);
}

/* Runs with a tensor that rank 1 gives elsewhere. */
static tsr_status give_elsewhere(device_run *r, tsr_tensor *given, tsr_tensor elsewhere, const char *words)
{
    const bool is_one = tsr_comm_rank(r->comm) == 1;
    const tsr_tensor kept = *given;
    *given = is_one ? elsewhere : kept;
    const tsr_status status = layer_expect_status(
        "elsewhere", device_run_enqueue(r), is_one ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, is_one ? words : "rank 1");
    *given = kept;
    return status;
}

static tsr_status give_wrong(opened *on, opened *host)
{
    TSR_TRY(give_elsewhere(&on->r, &on->r.inputs[0], host->r.inputs[0],
                           "input \"x\" lies on the host, but must lie on device async:1"));
    TSR_TRY(give_elsewhere(&on->r, &on->r.outputs[0], host->r.outputs[0],
                           "output \"y\" lies on the host, but must lie on device async:1"));
    TSR_TRY(give_elsewhere(&host->r, &host->r.inputs[0], on->r.inputs[0],
                           "input \"x\" lies on device async:1, but must lie on the host"));
    TSR_TRY(layer_expect_status("bind", tsr_executable_bind(on->r.x, "up", host->r.named[2]), TSR_ERROR_ARGUMENT,
                                "\"up\" lies on the host, but the executable runs on device async:"));
    TSR_TRY(layer_expect_status("bind", tsr_executable_bind(host->r.x, "up", on->r.named[2]), TSR_ERROR_ARGUMENT,
                                "but the executable runs on the host"));
    TSR_TRY(device_run_enqueue(&on->r));
    return device_run_finish(&on->r);
}

static tsr_status run_elsewhere(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    opened on, host = {.mesh = NULL};
    tsr_status status = open_run(comm, t, &t->on, &on);
    if (status == TSR_OK)
        status = open_run(comm, t, NULL, &host);
    if (status == TSR_OK)
        status = device_run_prepare(&on.r);
    if (status == TSR_OK)
        status = device_run_prepare(&host.r);
    if (status == TSR_OK)
        status = give_wrong(&on, &host);
    close_run(&on);
    close_run(&host);
    return status;
}

static void tensors_that_lie_elsewhere_are_refused_with_both_places(void **state)
{
    queued_trial t = {.c = &device_mlp, .mesh = "2"};
    (void)state;
    queued_start(&t, async_ops_table(true), false);
    queued_run(&t, run_elsewhere);
    queued_stop(&t);
}

/* A position on the device is refused; one beyond the state's end is told before the store. */
static tsr_status run_positions(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    int64_t far = 7;
    opened o;
    tsr_status status = open_run(comm, t, &t->on, &o);
    if (status == TSR_OK)
        status = device_run_prepare(&o.r);
    const tsr_tensor kept = o.r.inputs[1];
    o.r.inputs[1] = tsr_tensor_contiguous(&far, TSR_I64, 0, NULL);
    if (status == TSR_OK)
        status = layer_expect_status("far", device_run_enqueue(&o.r), TSR_ERROR_ARGUMENT, "position is 7");
    o.r.inputs[1] = kept;
    o.r.inputs[1].device = o.r.device;
    if (status == TSR_OK)
        status = layer_expect_status("device", device_run_enqueue(&o.r), TSR_ERROR_ARGUMENT,
                                     "input \"position\" lies on device async:0, but must lie on the host");
    close_run(&o);
    return status;
}

static void positions_of_stores_are_given_on_the_host(void **state)
{
    queued_trial t = {.c = &device_states, .mesh = "1"};
    (void)state;
    queued_start(&t, async_ops_table(true), false);
    queued_run(&t, run_positions);
    queued_stop(&t);
}

/* Ids that are out of range are told by the run after, once the device has found them. */
static void record_ids(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    (void)arg;
    const tsr_value ids = tsr_input(p, "ids", mesh, TSR_I64, 1, (const int64_t[]){4}, NULL);
    const tsr_value table = device_parameter(p, "table", mesh, "R", 2, 5, 3);
    tsr_output(p, "y", tsr_op_embedding(p, table, ids), NULL);
}

/* Lets the device do its work, of which the host does not hear: the default stream waits. */
static tsr_status let_work(const device_run *r)
{
    void *event;
    const int index = r->device.index;
    TSR_TRY(r->table->event_create(r->self, index, &event));
    TSR_TRY(r->table->event_record(r->self, index, event, r->stream));
    TSR_TRY(r->table->event_wait(r->self, index, event, NULL));
    r->table->event_destroy(r->self, index, event);
    return r->table->stream_synchronize(r->self, index, NULL);
}

static tsr_status run_ids(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    opened o;
    tsr_status status = open_run(comm, t, &t->on, &o);
    if (status == TSR_OK)
        status = device_run_prepare(&o.r);
    if (status == TSR_OK)
        status = device_run_enqueue(&o.r);
    if (status == TSR_OK)
        status = let_work(&o.r);
    if (status == TSR_OK)
        status = layer_expect_status("the next run", device_run_enqueue(&o.r), TSR_ERROR_STATE,
                                     "the device found this in an earlier");
    if (status == TSR_OK)
        status = device_run_enqueue(&o.r);
    if (status == TSR_OK)
        status = layer_expect_status("the wait", device_run_finish(&o.r), TSR_ERROR_STATE, "embedding: ids");
    close_run(&o);
    return status;
}

static void ids_that_only_the_device_reads_are_told_by_the_next_run(void **state)
{
    static const device_case ids = {"ids", record_ids, NULL, 9};
    (void)state;
    queued_trial t = {.c = &ids, .mesh = "1"};
    queued_start(&t, async_ops_table(true), true);
    queued_run(&t, run_ids);
    queued_stop(&t);
}

/* A call of the device that fails, the first, the second and so on, in a run on two ranks. */
typedef struct drill {
    queued_trial t;
    async_call call;
    int failures;
} drill;

/* One rank fails by itself at most; the others hear of it, or have done their part. */
static tsr_status judge(tsr_comm *comm, tsr_status status, bool *failed)
{
    const bool own = status == TSR_ERROR_DEVICE || status == TSR_ERROR_MEMORY;
    int32_t counts[] = {own, status != TSR_OK, status != TSR_OK && !own && status != TSR_ERROR_PEER};
    if (counts[2])
        fprintf(stderr, "rank %d: %s: %s\n", tsr_comm_rank(comm), tsr_status_name(status), tsr_status_message());
    TSR_TRY(tsr_comm_all_reduce(comm, counts, counts, 3, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    *failed = counts[1] > 0;
    EXPECT(counts[2] == 0 && (!counts[1] || counts[0] == 1), "%d ranks failed, of which %d by themselves", counts[1],
           counts[0]);
    return TSR_OK;
}

static tsr_status fail_each(tsr_comm *comm, drill *d, device_run *r)
{
    const bool arms = tsr_comm_rank(comm) == 0;
    bool failed = true;
    for (int nth = 1; failed; nth++) {
        EXPECT(nth < MOST, "after %d failures the run still does not get through", nth);
        TSR_TRY(tsr_comm_barrier(comm));
        if (arms)
            async_fail(d->t.machine, d->call, nth);
        TSR_TRY(tsr_comm_barrier(comm));
        const tsr_status status = device_run_enqueue(r);
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        TSR_TRY(tsr_comm_barrier(comm));
        if (arms)
            async_fail(d->t.machine, d->call, 0);
        tsr_status_restore(&kept, status);
        TSR_TRY(judge(comm, status, &failed));
        /* A stream that was not made to wait for a peer's may run ahead of it. */
        TSR_TRY(device_run_finish(r));
        TSR_TRY(tsr_comm_barrier(comm));
        if (arms)
            d->failures = nth - 1;
    }
    return TSR_OK;
}

static tsr_status run_drill(tsr_comm *comm, void *arg)
{
    drill *const d = arg;
    opened on, host = {.mesh = NULL};
    tsr_status status = open_run(comm, &d->t, &d->t.on, &on);
    if (status == TSR_OK)
        status = open_run(comm, &d->t, NULL, &host);
    if (status == TSR_OK)
        status = device_run_prepare(&on.r);
    if (status == TSR_OK)
        status = device_run_prepare(&host.r);
    if (status == TSR_OK)
        status = device_run_enqueue(&host.r);
    if (status == TSR_OK)
        status = device_run_enqueue(&on.r); /* makes the events that communicators keep */
    if (status == TSR_OK)
        status = fail_each(comm, d, &on.r);
    if (status == TSR_OK)
        status = device_run_compare(d->t.c, &on.r, &host.r);
    close_run(&on);
    close_run(&host);
    return status;
}

static void a_call_that_fails_on_one_rank_leaves_no_rank_waiting(void **state)
{
    static const async_call calls[] = {ASYNC_LAUNCH, ASYNC_GEMM,         ASYNC_COPY_BOXES,
                                       ASYNC_REDUCE, ASYNC_EVENT_RECORD, ASYNC_EVENT_WAIT};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        drill d = {.t = {.c = &device_mlp, .mesh = "2"}, .call = calls[i]};
        queued_start(&d.t, async_ops_table(true), false);
        queued_run(&d.t, run_drill);
        assert_true(d.failures > 0);
        queued_stop(&d.t);
    }
}

/* Prepares while the `nth` call of a kind fails. `*failed`: one did. */
static tsr_status prepare_failing(tsr_comm *comm, const drill *d, int nth, const device_run *r, bool *failed)
{
    const bool arms = tsr_comm_rank(comm) == 0;
    tsr_kept_sentence kept;
    TSR_TRY(tsr_comm_barrier(comm));
    if (arms)
        async_fail(d->t.machine, d->call, nth);
    TSR_TRY(tsr_comm_barrier(comm));
    const tsr_status status = tsr_executable_prepare(r->x, comm);
    tsr_status_keep(&kept);
    TSR_TRY(tsr_comm_barrier(comm));
    if (arms)
        async_fail(d->t.machine, d->call, 0);
    tsr_status_restore(&kept, status);
    return judge(comm, status, failed);
}

/* A preparation that failed, then one that does not, and a run. */
static tsr_status prepare_again(tsr_comm *comm, drill *d, int nth, opened *on, const opened *host, bool *failed)
{
    TSR_TRY(prepare_failing(comm, d, nth, &on->r, failed));
    if (*failed && tsr_comm_rank(comm) == 0)
        d->failures++;
    TSR_TRY(device_run_prepare(&on->r));
    TSR_TRY(device_run_enqueue(&on->r));
    TSR_TRY(device_run_finish(&on->r));
    return device_run_compare(d->t.c, &on->r, &host->r);
}

static tsr_status run_preparations(tsr_comm *comm, void *arg)
{
    drill *const d = arg;
    opened host;
    bool failed = true;
    tsr_status status = open_run(comm, &d->t, NULL, &host);
    if (status == TSR_OK)
        status = device_run_prepare(&host.r);
    if (status == TSR_OK)
        status = device_run_enqueue(&host.r);
    for (int nth = 1; status == TSR_OK && failed && nth < MOST; nth++) {
        opened on;
        status = open_run(comm, &d->t, &d->t.on, &on);
        if (status == TSR_OK)
            status = prepare_again(comm, d, nth, &on, &host, &failed);
        close_run(&on);
    }
    close_run(&host);
    return status;
}

static void a_preparation_that_failed_leaves_nothing_undone(void **state)
{
    static const async_call calls[] = {ASYNC_ALLOC, ASYNC_FILL, ASYNC_SYNCHRONIZE};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        drill d = {.t = {.c = &device_mlp, .mesh = "2"}, .call = calls[i]};
        queued_start(&d.t, async_ops_table(true), false);
        queued_run(&d.t, run_preparations);
        assert_true(d.failures > 0);
        queued_stop(&d.t);
    }
}

/* By messages, peers are not told on devices with streams: rank 1, which has no memory for its
 * first run, ends the communicator. */
static tsr_status run_by_messages(tsr_comm *comm, void *arg)
{
    const queued_trial *const t = arg;
    const bool is_one = tsr_comm_rank(comm) == 1;
    opened o;
    tsr_status status = open_run(comm, t, &t->on, &o);
    if (status == TSR_OK)
        status = device_run_prepare(&o.r);
    const tsr_stream own = o.r.stream;
    o.r.stream = NULL;
    o.r.bytes = is_one ? 0 : o.r.bytes;
    if (status == TSR_OK)
        status =
            layer_expect_status("by messages", device_run_enqueue(&o.r), is_one ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                                is_one ? "the executable wants" : "rank 1");
    o.r.stream = own;
    close_run(&o);
    return status;
}

static void by_messages_a_rank_that_fails_ends_the_communicator(void **state)
{
    queued_trial t = {.c = &device_mlp, .mesh = "2"};
    (void)state;
    queued_start(&t, async_ops_table(true), false);
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.timeout_ms = 10000;
    const tsr_status status = message_engine_run(2, run_by_messages, &t, &threads);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    queued_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_without_a_kernel_are_refused_by_name_before_anything_runs),
        cmocka_unit_test(positions_that_lie_on_the_device_are_refused),
        cmocka_unit_test(ranks_have_devices_of_one_kind_that_are_there),
        cmocka_unit_test(tensors_that_lie_elsewhere_are_refused_with_both_places),
        cmocka_unit_test(positions_of_stores_are_given_on_the_host),
        cmocka_unit_test(ids_that_only_the_device_reads_are_told_by_the_next_run),
        cmocka_unit_test(by_messages_a_rank_that_fails_ends_the_communicator),
        cmocka_unit_test(a_call_that_fails_on_one_rank_leaves_no_rank_waiting),
        cmocka_unit_test(a_preparation_that_failed_leaves_nothing_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
