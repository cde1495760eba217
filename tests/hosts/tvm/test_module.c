/* The module of TVM-FFI in a host without Python: layouts, plans, and moves of rank threads. */
#include "host.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, ROWS = 6, COLUMNS = 7, COUNT = ROWS * COLUMNS };

static host module;
static const char *module_path;

static TVMFFIAny make_layout(const char *mesh, const char *text, const char *format)
{
    const int64_t sizes[] = {ROWS, COLUMNS};
    const TVMFFIAny shape = host_shape(sizes, 2);
    const TVMFFIAny arguments[] = {host_text(mesh), shape, host_text("f32"), host_text(text),
                                   format ? host_text(format) : host_none()};
    const TVMFFIAny layout = host_call(&module, "layout", arguments, 5);
    host_drop(shape);
    return layout;
}

static void expect_text(const char *function, const TVMFFIAny *arguments, int32_t count, const char *wanted)
{
    const TVMFFIAny text = host_call(&module, function, arguments, count);
    assert_string_equal(host_text_of(&text), wanted);
    host_drop(text);
}

static void layouts_are_parsed_and_printed(void **state)
{
    (void)state;
    const TVMFFIAny layout = make_layout("dp=2,tp=2", "{devices=[2,2]<=[4]}", "hlo");
    expect_text("print_layout", (const TVMFFIAny[]){layout}, 1, "S(0),S(1)");
    expect_text("print_layout", (const TVMFFIAny[]){layout, host_text("hlo")}, 2, "{devices=[2,2]<=[4]}");
    expect_text("print_layout", (const TVMFFIAny[]){layout, host_text("jax")}, 2, "PartitionSpec('dp', 'tp')");
    for (int64_t rank = 0; rank < RANKS; rank++) {
        const TVMFFIAny arguments[] = {layout, host_int(rank)};
        const TVMFFIAny shape = host_call(&module, "local_shape", arguments, 2);
        const TVMFFIAny offset = host_call(&module, "local_offset", arguments, 2);
        assert_int_equal(host_size_of(&shape, 0), 3);
        assert_int_equal(host_size_of(&shape, 1), rank % 2 == 0 ? 4 : 3);
        assert_int_equal(host_size_of(&offset, 0), rank / 2 * 3);
        assert_int_equal(host_size_of(&offset, 1), rank % 2 * 4);
        host_drop(shape);
        host_drop(offset);
    }
    host_drop(layout);
}

static void plans_have_figures_and_are_saved(void **state)
{
    (void)state;
    const TVMFFIAny rows = make_layout("4", "S(0)", NULL), all = make_layout("4", "R", NULL);
    const TVMFFIAny arguments[] = {rows, all, host_int(1)};
    const TVMFFIAny plan = host_call(&module, "plan", arguments, 3);
    const TVMFFIAny saved = host_call(&module, "save_plan", &plan, 1);
    const TVMFFIAny again = host_call(&module, "load_plan", (const TVMFFIAny[]){saved, host_int(1)}, 2);
    const TVMFFIAny plans[] = {plan, again};
    for (int i = 0; i < 2; i++) {
        const TVMFFIAny bytes = host_call(&module, "plan_bytes", &plans[i], 1);
        const TVMFFIAny messages = host_call(&module, "plan_messages", &plans[i], 1);
        const TVMFFIAny workspace = host_call(&module, "plan_workspace", &plans[i], 1);
        const TVMFFIAny text = host_call(&module, "describe_plan", &plans[i], 1);
        assert_int_equal(host_size_of(&bytes, 0), 4 * COLUMNS * 4); /* it has 2 rows of 6 */
        assert_int_equal(host_size_of(&bytes, 1), 2 * COLUMNS * 4 * 3);
        assert_int_equal(host_size_of(&messages, 0), 2); /* the last rank has nothing */
        assert_int_equal(host_size_of(&messages, 1), 3);
        assert_int_equal(workspace.v_int64, 0);
        assert_non_null(strstr(host_text_of(&text), "redistribute f32 6x7 S(0) on mesh 4 -> "));
        host_drop(bytes);
        host_drop(messages);
        host_drop(text);
    }
    host_drop(plan);
    host_drop(saved);
    host_drop(again);
    host_drop(rows);
    host_drop(all);
}

/* A rank's part of the tensor whose element with global number g is g. */
typedef struct part {
    float memory[COUNT];
    int64_t shape[2];
    DLTensor tensor;
} part;

static void fill_part(part *p, const TVMFFIAny *layout, int rank, bool values)
{
    const TVMFFIAny arguments[] = {*layout, host_int(rank)};
    const TVMFFIAny shape = host_call(&module, "local_shape", arguments, 2);
    const TVMFFIAny offset = host_call(&module, "local_offset", arguments, 2);
    memset(p, 0, sizeof *p);
    for (size_t d = 0; d < 2; d++)
        p->shape[d] = host_size_of(&shape, d);
    for (int64_t i = 0; i < p->shape[0] && values; i++)
        for (int64_t j = 0; j < p->shape[1]; j++)
            p->memory[i * p->shape[1] + j] =
                (float)((host_size_of(&offset, 0) + i) * COLUMNS + host_size_of(&offset, 1) + j);
    p->tensor = (DLTensor){.data = p->memory, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}};
    p->tensor.shape = p->shape;
    host_drop(shape);
    host_drop(offset);
}

/* Both sides of a move from S(0) to S(1) on 2 x 2 ranks, and what must arrive. */
typedef struct scene {
    TVMFFIAny from, to, ranks;
    part sources[RANKS], destinations[RANKS], wanted[RANKS];
} scene;

static void set_scene(scene *s)
{
    const TVMFFIAny count = host_int(RANKS);
    s->from = make_layout("2x2", "S(0),S(0)", NULL);
    s->to = make_layout("2x2", "S(1),R", NULL);
    s->ranks = host_call(&module, "ranks", &count, 1);
    for (int r = 0; r < RANKS; r++) {
        fill_part(&s->sources[r], &s->from, r, true);
        fill_part(&s->destinations[r], &s->to, r, false);
        fill_part(&s->wanted[r], &s->to, r, true);
    }
}

static void end_scene(scene *s)
{
    host_drop(s->from);
    host_drop(s->to);
    host_drop(s->ranks);
}

static TVMFFIAny list_parts(part *parts)
{
    TVMFFIAny values[RANKS];
    for (int r = 0; r < RANKS; r++)
        values[r] = host_tensor(&parts[r].tensor);
    return host_list(values, RANKS);
}

/* The move has arrived; the destinations are cleared for the next one. */
static void expect_moved(scene *s)
{
    for (int r = 0; r < RANKS; r++) {
        assert_memory_equal(s->destinations[r].memory, s->wanted[r].memory, sizeof s->wanted[r].memory);
        memset(s->destinations[r].memory, 0, sizeof s->destinations[r].memory);
    }
}

static void all_ranks_move_in_one_call(void **state)
{
    static scene s;
    (void)state;
    set_scene(&s);
    const TVMFFIAny sources = list_parts(s.sources), destinations = list_parts(s.destinations);
    const TVMFFIAny whole[] = {s.ranks, s.from, s.to, sources, destinations};
    const TVMFFIAny move = host_call(&module, "move", whole, 3);
    const TVMFFIAny run[] = {move, sources, destinations};
    for (int i = 0; i < 3; i++) {
        host_drop(host_call(&module, "run", run, 3));
        expect_moved(&s);
    }
    host_drop(host_call(&module, "redistribute", whole, 5));
    expect_moved(&s);
    end_scene(&s); /* a move keeps the ranks */
    host_drop(host_call(&module, "run", run, 3));
    expect_moved(&s);
    host_drop(move);
    host_drop(sources);
    host_drop(destinations);
}

/* A rank in a thread of the host's. */
typedef struct actor {
    pthread_t thread;
    TVMFFIAny move;
    scene *scene;
    int rank;
    bool whole; /* it brings both tensors */
    bool moved;
    char message[1200];
} actor;

static void *act(void *arg)
{
    actor *const a = arg;
    TVMFFIAny nothing = host_none();
    const TVMFFIAny arguments[] = {a->move, host_int(a->rank), host_tensor(&a->scene->sources[a->rank].tensor),
                                   a->whole ? host_tensor(&a->scene->destinations[a->rank].tensor) : host_int(3)};
    a->moved = host_try(&module, "run_rank", arguments, 4, &nothing, a->message, sizeof a->message);
    return NULL;
}

static void play(actor *actors, scene *s, TVMFFIAny move, int without)
{
    for (int r = 0; r < RANKS; r++) {
        actors[r] = (actor){.move = move, .scene = s, .rank = r, .whole = r != without};
        assert_int_equal(pthread_create(&actors[r].thread, NULL, act, &actors[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_join(actors[r].thread, NULL), 0);
}

/* Calls a bound function, whose rank is a tensor. */
static void *act_bound(void *arg)
{
    actor *const a = arg;
    TVMFFIAny nothing = host_none();
    int32_t rank = a->rank;
    DLTensor number = {.data = &rank, .device = {kDLCPU, 0}, .dtype = {kDLInt, 32, 1}};
    TVMFFIAny arguments[] = {host_tensor(&number), host_tensor(&a->scene->sources[rank].tensor),
                             host_tensor(&a->scene->destinations[rank].tensor)};
    a->moved = TVMFFIFunctionCall(a->move.v_obj, arguments, 3, &nothing) == 0;
    return NULL;
}

/* A bound function counts its own arguments. */
static void expect_bound_takes_three(TVMFFIAny function)
{
    const TVMFFIAny one = host_none();
    TVMFFIAny nothing = host_none();
    char kind[200], message[200];
    assert_int_not_equal(TVMFFIFunctionCall(function.v_obj, (TVMFFIAny *)(uintptr_t)&one, 1, &nothing), 0);
    host_take_error(kind, message, sizeof kind);
    assert_string_equal(kind, "TypeError");
    assert_string_equal(message, "a bound move: 1 arguments: it takes 3");
}

static void play_bound(scene *s, TVMFFIAny function)
{
    actor actors[RANKS];
    for (int r = 0; r < RANKS; r++) {
        actors[r] = (actor){.move = function, .scene = s, .rank = r};
        assert_int_equal(pthread_create(&actors[r].thread, NULL, act_bound, &actors[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(pthread_join(actors[r].thread, NULL), 0);
        assert_true(actors[r].moved);
    }
    expect_moved(s);
}

static void each_rank_may_have_a_thread_of_the_hosts(void **state)
{
    static scene s;
    static actor actors[RANKS];
    (void)state;
    set_scene(&s);
    const TVMFFIAny plan = host_call(&module, "plan", (const TVMFFIAny[]){s.from, s.to, host_int(0)}, 3);
    const TVMFFIAny saved = host_call(&module, "save_plan", &plan, 1);
    const TVMFFIAny move = host_call(&module, "load_move", (const TVMFFIAny[]){s.ranks, saved}, 2);
    for (int i = 0; i < 3; i++) {
        play(actors, &s, move, -1);
        for (int r = 0; r < RANKS; r++)
            assert_true(actors[r].moved);
        expect_moved(&s);
    }
    play(actors, &s, move, 2); /* one rank's tensor is refused, and the others hear of it */
    for (int r = 0; r < RANKS; r++) {
        assert_false(actors[r].moved);
        assert_non_null(strstr(actors[r].message, r == 2 ? "destination is int: it must be a tensor" : "rank 2"));
    }
    for (int r = 0; r < RANKS; r++)
        memset(s.destinations[r].memory, 0, sizeof s.destinations[r].memory);
    const TVMFFIAny bound = host_call(&module, "bind", &move, 1);
    host_drop(move); /* a bound function keeps the move */
    expect_bound_takes_three(bound);
    play_bound(&s, bound);
    host_drop(bound);
    host_drop(plan);
    host_drop(saved);
    end_scene(&s);
}

/* Whoever has an object needs the module's code, also after the module was dropped. */
static void objects_outlive_their_module(void **state)
{
    static scene s;
    (void)state;
    set_scene(&s);
    const TVMFFIAny move = host_call(&module, "move", (const TVMFFIAny[]){s.ranks, s.from, s.to}, 3);
    const TVMFFIAny bound = host_call(&module, "bind", &move, 1);
    host_drop(module.module);
    play_bound(&s, bound);
    host_drop(bound);
    host_drop(move);
    end_scene(&s);
    module = host_load(module_path);
}

static void a_late_rank_is_given_up(void **state)
{
    static scene s;
    (void)state;
    set_scene(&s);
    const TVMFFIAny ranks = host_call(&module, "ranks", (const TVMFFIAny[]){host_int(RANKS), host_int(50)}, 2);
    const TVMFFIAny move = host_call(&module, "move", (const TVMFFIAny[]){ranks, s.from, s.to}, 3);
    const TVMFFIAny alone[] = {move, host_int(1), host_tensor(&s.sources[1].tensor),
                               host_tensor(&s.destinations[1].tensor)};
    host_fails(&module, "run_rank", alone, 4, "RuntimeError", "50 ms");
    const TVMFFIAny outside[] = {move, host_int(RANKS), alone[2], alone[3]};
    host_fails(&module, "run_rank", outside, 4, "ValueError", "rank 4: the move's are from 0 to 3");
    host_drop(move);
    host_drop(ranks);
    end_scene(&s);
}

static void bad_arguments_are_errors_with_a_kind(void **state)
{
    const int64_t sizes[] = {4, 4, 4, 4, 4, 4, 4, 4, 4};
    (void)state;
    const TVMFFIAny shape = host_shape(sizes, 2), long_shape = host_shape(sizes, 9),
                    layout = make_layout("4", "R", NULL);
    const TVMFFIAny mesh = host_text("4"), dtype = host_text("f32"), one = host_int(1);
    host_fails(&module, "layout", (const TVMFFIAny[]){mesh}, 1, "TypeError", "layout: 1 arguments: it takes 4 to 5");
    host_fails(&module, "layout", (const TVMFFIAny[]){one, shape, dtype, mesh}, 4, "TypeError",
               "argument 1, mesh, is int: it must be a str");
    host_fails(&module, "layout", (const TVMFFIAny[]){mesh, one, dtype, mesh}, 4, "TypeError",
               "argument 2, shape, is int: it must be a list or a tuple");
    host_fails(&module, "layout", (const TVMFFIAny[]){mesh, long_shape, dtype, mesh}, 4, "ValueError",
               "shape, has 9 sizes: at most 8");
    host_fails(&module, "layout", (const TVMFFIAny[]){mesh, shape, host_text("f31"), host_text("R")}, 4, "ValueError",
               "f31");
    host_fails(&module, "layout", (const TVMFFIAny[]){mesh, shape, dtype, host_text("S(2)")}, 4, "ValueError",
               "shard dim 2");
    host_fails(&module, "layout", (const TVMFFIAny[]){mesh, shape, dtype, mesh, host_text("xml")}, 5, "ValueError",
               "xml");
    host_fails(&module, "local_shape", (const TVMFFIAny[]){layout, host_int(4)}, 2, "ValueError", "rank 4 is not in");
    host_fails(&module, "local_shape", (const TVMFFIAny[]){mesh, one}, 2, "TypeError", "it must be tessera.Layout");
    host_fails(&module, "plan", (const TVMFFIAny[]){layout, layout, host_int(-1)}, 3, "ValueError", "rank -1");
    host_fails(&module, "load_plan", (const TVMFFIAny[]){mesh, one}, 2, "TypeError", "it must be bytes");
    host_fails(&module, "ranks", (const TVMFFIAny[]){host_int(0)}, 1, "ValueError", "0 ranks");
    host_fails(&module, "ranks", (const TVMFFIAny[]){one, host_int(-1)}, 2, "ValueError", "-1 ms");
    const TVMFFIAny partial = make_layout("4", "P(max)", NULL);
    host_fails(&module, "print_layout", (const TVMFFIAny[]){partial, host_text("hlo")}, 2, "NotImplementedError",
               "P(max)");
    host_drop(partial);
    host_drop(layout);
    host_drop(shape);
    host_drop(long_shape);
}

static void bad_tensors_are_refused_by_name(void **state)
{
    static scene s;
    (void)state;
    set_scene(&s);
    const TVMFFIAny sources = list_parts(s.sources), destinations = list_parts(s.destinations);
    const TVMFFIAny move = host_call(&module, "move", (const TVMFFIAny[]){s.ranks, s.from, s.to}, 3);
    const TVMFFIAny run[] = {move, sources, destinations}, two = host_int(2),
                    pair = host_call(&module, "ranks", &two, 1);
    host_fails(&module, "move", (const TVMFFIAny[]){pair, s.from, s.to}, 3, "ValueError",
               "the source's mesh has 4 ranks, of which 2 are among the 2");
    host_fails(&module, "run", (const TVMFFIAny[]){move, move, destinations}, 3, "TypeError", "it must be a list");
    s.sources[1].tensor.dtype.bits = 31;
    host_fails(&module, "run", run, 3, "NotImplementedError", "run: sources[1]: DLPack: no dtype is code 2 of 31 bits");
    s.sources[1].tensor.dtype.bits = 64;
    host_fails(&module, "run", run, 3, "ValueError", "rank 1: src is of f64");
    s.sources[1].tensor.dtype.bits = 32;
    s.destinations[3].tensor.device = (DLDevice){kDLCUDA, 5};
    host_fails(&module, "run", run, 3, "NotImplementedError", "destinations[3]: DLPack: a tensor on device 5 of CUDA");
    s.destinations[3].tensor.device = (DLDevice){kDLCPU, 0};
    s.destinations[0].shape[0] = 5;
    host_fails(&module, "run", run, 3, "ValueError", "rank 0: dst has local shape 5x4");
    s.destinations[0].shape[0] = ROWS;
    host_drop(host_call(&module, "run", run, 3));
    expect_moved(&s);
    host_drop(pair);
    host_drop(move);
    host_drop(sources);
    host_drop(destinations);
    end_scene(&s);
}

static void the_ccl_needs_a_worker_of_disco(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        host_drop(host_call(&module, "register_ccl", NULL, 0));
    const char *const name = "runtime.disco.tessera.sync_worker", *const other = "runtime.disco.tessera.allgather";
    const TVMFFIByteArray bytes = {name, strlen(name)}, reduce = {other, strlen(other)};
    const TVMFFIAny arguments[] = {host_none(), host_int(0), host_none()};
    TVMFFIObjectHandle function = NULL;
    TVMFFIAny nothing = host_none();
    char kind[200], message[200];
    assert_int_equal(TVMFFIFunctionGetGlobal(&bytes, &function), 0);
    assert_int_equal(TVMFFIFunctionCall(function, NULL, 0, &nothing), 0);
    assert_int_equal(TVMFFIObjectDecRef(function), 0);
    assert_int_equal(TVMFFIFunctionGetGlobal(&reduce, &function), 0);
    assert_int_not_equal(TVMFFIFunctionCall(function, (TVMFFIAny *)(uintptr_t)arguments, 3, &nothing), 0);
    assert_int_equal(TVMFFIObjectDecRef(function), 0);
    host_take_error(kind, message, sizeof kind);
    assert_non_null(strstr(message, "this thread is not a worker"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_outlive_their_module),
        cmocka_unit_test(layouts_are_parsed_and_printed),  cmocka_unit_test(plans_have_figures_and_are_saved),
        cmocka_unit_test(all_ranks_move_in_one_call),      cmocka_unit_test(each_rank_may_have_a_thread_of_the_hosts),
        cmocka_unit_test(a_late_rank_is_given_up),         cmocka_unit_test(bad_arguments_are_errors_with_a_kind),
        cmocka_unit_test(bad_tensors_are_refused_by_name), cmocka_unit_test(the_ccl_needs_a_worker_of_disco),
    };
    if (argc != 2)
        return 2;
    module_path = argv[1];
    module = host_load(module_path);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    host_drop(module.module);
    return failed;
}
