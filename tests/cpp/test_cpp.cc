/* tessera.hpp: what README's page of use does, owners, errors, spans, exceptions in ranks. TAP,
 * since cmocka's assertions leave by longjmp(), past destructors. */
#include <tessera/tessera.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <pthread.h>
#include <string>
#include <type_traits>
#include <vector>

namespace
{

int count = 0, failed = 0;

void hold(bool holds, const char *fact)
{
    std::printf("%sok %d - %s\n", holds ? "" : "not ", ++count, fact);
    failed += !holds;
}

/* The call throws a tessera::error of this status whose sentence has `words`. */
template <typename Call> void refused(Call call, tsr_status status, const std::string &words, const char *fact)
{
    std::string what = "nothing was thrown";
    bool holds = false;
    try {
        call();
    } catch (const tessera::error &failure) {
        what = std::string(tsr_status_name(failure.status())) + ": " + failure.what();
        holds = failure.status() == status && what.find(words) != std::string::npos;
    }
    hold(holds, fact);
    if (!holds)
        std::fprintf(stderr, "%s: %s\n", fact, what.c_str());
}

std::vector<float> numbers(std::size_t size)
{
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; i++)
        values[i] = static_cast<float>(i % 5);
    return values;
}

/* Four ranks, of which the last has no features. */
void test_mlp()
{
    const std::vector<float> values = numbers(24);
    const tessera::span<const float> all(values);
    std::vector<float> result;
    std::array<std::int64_t, 4> features{};
    tessera::threads_run(4, [&](tessera::comm_ref comm) {
        const auto mesh = tessera::mesh::parse(comm, "tp=4");
        const auto x = tessera::dtensor::distribute(all.first(8), {2, 4}, mesh, "R");
        const auto up = tessera::dtensor::distribute(values, {6, 4}, mesh, "S(0)");
        const auto down = tessera::dtensor::distribute(values, {4, 6}, mesh, "S(1)");
        const auto h = tessera::linear(x, up);
        const auto y = tessera::linear(h, down).redistribute_to("R");
        features[static_cast<std::size_t>(comm.rank())] = h.layout().local_shape()[1];
        if (comm.rank() == 0) {
            const auto local = y.to_local<float>();
            result.assign(local.begin(), local.end());
        }
    });
    hold(result == std::vector<float>{135, 109, 128, 167, 145, 148, 166, 174}, "an MLP has README's result");
    hold(features == std::array<std::int64_t, 4>{2, 2, 2, 0}, "a layout tells each rank's shape");
}

void test_gradients()
{
    const std::vector<float> values = numbers(24);
    std::atomic<int> right{0};
    tessera::threads_run(2, [&](tessera::comm_ref comm) {
        const auto mesh = tessera::mesh::parse(comm, "2");
        const tsr_placement whole[] = {tsr_replicate()}, rows[] = {tsr_shard(0)};
        const auto x = tessera::dtensor::distribute(tessera::span<const float>(values).first(8), {2, 4}, mesh, "R");
        const auto w = tessera::dtensor::distribute(values, {6, 4}, mesh, "S(0)");
        const auto y = tessera::linear_to(whole, x, w);
        const auto made = tessera::linear_backward(x, w, {}, y.redistribute_to("S(1)"), whole, rows);
        right += made.x && made.w && !made.b && made.x.layout().shape() == tessera::shape{2, 4} &&
                 made.w.layout() == w.layout() && y.layout() != x.layout();
    });
    hold(right == 2, "a layer has gradients of what it has");
}

void test_errors()
{
    const auto mesh = tessera::mesh::parse_abstract("dp=2,tp=2");
    refused([] { tessera::mesh::parse_abstract("dp=2,"); }, TSR_ERROR_ARGUMENT, "\"dp=2,\"",
            "an error has the status and the sentence");
    refused(
        [&] {
            tessera::layout::parse(mesh, "S(2),R", {4, 4}, TSR_F32);
        },
        TSR_ERROR_ARGUMENT, "4x4 has 2 dims", "a layout that cannot be is refused");
    const tsr_placement one[] = {tsr_shard(0)};
    refused(
        [&] {
            tessera::layout::create(mesh, one, {4, 4}, TSR_F32);
        },
        TSR_ERROR_ARGUMENT, "there are 1, but the mesh has 2", "placements are as many as the mesh has dims");
    std::vector<float> values(6);
    refused(
        [&] {
            tessera::tensor(values, {2, 4});
        },
        TSR_ERROR_ARGUMENT, "data has 6 elements, but its shape has 8", "a shape has as many elements as its data");
    refused([&] { tessera::elements<double>(tessera::tensor(values, {6})); }, TSR_ERROR_ARGUMENT, "f32, not f64",
            "elements are of the tensor's type");
    refused([] { tessera::shape(std::vector<std::int64_t>(9, 1)); }, TSR_ERROR_ARGUMENT, "at most 8",
            "a shape has at most 8 dims");
    const auto strided = [&] {
        tsr_tensor view = tessera::tensor(values, {2, 3});
        view.shape[1] = 2;
        return tessera::elements<float>(view);
    };
    refused(strided, TSR_ERROR_ARGUMENT, "not contiguous", "a span is of contiguous elements");
}

void test_owners()
{
    static_assert(!std::is_copy_constructible_v<tessera::comm> && std::is_nothrow_move_constructible_v<tessera::comm>);
    static_assert(!std::is_copy_assignable_v<tessera::linear_plan> &&
                  !std::is_copy_constructible_v<tessera::comm_memory>);
    static_assert(std::is_copy_constructible_v<tessera::dtensor> && std::is_nothrow_move_assignable_v<tessera::mesh>);
    static_assert(!std::is_convertible_v<tsr_mesh *, tessera::mesh>);

    auto mesh = tessera::mesh::parse_abstract("dp=2,tp=3");
    auto copy = mesh;
    hold(copy.get() == mesh.get(), "copies share one object");
    const auto moved = std::move(mesh);
    hold(moved.get() == copy.get() && !mesh, "a move leaves nothing behind");
    mesh = moved;
    const auto &itself = mesh;
    mesh = itself;
    hold(mesh && mesh.count() == 6 && mesh.size(mesh.find("tp")) == 3, "an owner may be assigned to itself");
    copy.reset();
    hold(!copy && moved.to_string() == "dp=2,tp=3" && moved.flatten("").ndim() == 1 && moved.slice("tp").count() == 3,
         "an object stays with its other owners");
    tessera::check(tsr_mesh_parse(nullptr, nullptr, "4", copy.out()));
    hold(copy.count() == 4, "C calls write into owners");

    const auto layout = tessera::layout::parse(moved, "S(0),R", {8, 2}, TSR_F64);
    copy.reset(tessera::layout(layout).mesh().release());
    hold(copy.get() == layout.mesh().get() && layout.placements().size() == 2 && layout.dtype() == TSR_F64 &&
             layout.gradient() == layout && layout.to_string() == "S(0),R",
         "a layout shares its mesh");

    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.kernels = "portable";
    const auto context = tessera::context::create(options);
    hold(tsr_mesh_context(tessera::mesh::parse_abstract("2", context).get()) == context.get(),
         "a mesh is of a context");
    const auto profile = tessera::profile::parse("inside=1e-6,1e9 between=1e-5,1e8");
    const std::string text = profile.to_string();
    hold(text != tessera::profile::parse("").to_string() && text == tessera::profile::parse(text).to_string(),
         "a profile is read and printed");
}

void test_spans()
{
    std::vector<int> values = {1, 2, 3};
    const int array[] = {4, 5};
    const tessera::span<int> some(values);
    const tessera::span<const int> read(some), few(array), none;
    hold(read.data() == values.data() && read.size() == 3 && few.size() == 2 && none.empty(),
         "spans are of vectors, arrays and spans");
    hold(some.front() == 1 && some.back() == 3 && some[1] == 2 && some.first(1).size() == 1 &&
             some.subspan(1).size() == 2 && some.subspan(1, 1).back() == 2 && some.size_bytes() == 3 * sizeof(int),
         "spans have parts");
    static_assert(!std::is_convertible_v<const std::vector<int> &, tessera::span<int>>);
    static_assert(tessera::dtype_of<std::int16_t>::value == TSR_I16 &&
                  tessera::dtype_of<unsigned long>::value == TSR_U64 && tessera::dtype_of<bool>::value == TSR_BOOL);
}

/* A plan by bytes that were saved, in workspace that peers reach, in two halves. */
void test_plans()
{
    std::vector<std::int32_t> values(16);
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = static_cast<std::int32_t>(i);
    std::atomic<int> right{0};
    tessera::threads_run(2, [&](tessera::comm_ref comm) {
        const auto mesh = tessera::mesh::parse(comm, "2");
        const auto columns = tessera::layout::parse(mesh, "S(1)", {4, 4}, TSR_I32);
        const auto rows = tessera::layout::parse(mesh, "S(0)", {4, 4}, TSR_I32);
        const auto made = tessera::plan::create(columns, rows);
        const auto plan = tessera::plan::load(made.save(), comm.rank());
        const auto x = tessera::dtensor::distribute(values, {4, 4}, mesh, "S(1)");
        const auto y = tessera::dtensor::create(rows), z = tessera::dtensor::create(rows);
        made.prepare(comm);
        const tessera::comm_memory room(comm, made.workspace_bytes());
        made.execute(comm, x.to_local(), y.to_local(), room.bytes());
        made.start(comm, x.to_local(), z.to_local(), room.bytes());
        made.finish(comm);
        const auto local = y.to_local<std::int32_t>(), again = z.to_local<std::int32_t>();
        right += local.size() == 8 && local.front() == 8 * comm.rank() && local[5] == 8 * comm.rank() + 5 &&
                 std::equal(local.begin(), local.end(), again.begin()) && plan.bytes_received() == 16 &&
                 plan.bytes_sent() == 16 && made.figures().bytes_kept == 16 && !made.in_place() &&
                 made.describe().find("exchange") != std::string::npos;
    });
    hold(right == 2, "plans are made, saved and executed");

    right = 0;
    const std::vector<float> numbers_of_x = numbers(8), numbers_of_w = numbers(24);
    tessera::threads_run(2, [&](tessera::comm_ref comm) {
        const auto mesh = tessera::mesh::parse(comm, "2");
        const auto x = tessera::dtensor::distribute(numbers_of_x, {2, 4}, mesh, "R");
        const auto w = tessera::dtensor::distribute(numbers_of_w, {6, 4}, mesh, "S(0)");
        auto created = tessera::linear_plan::create(x.layout(), w.layout(), {}, {});
        const auto plan = std::move(created);
        const auto y = tessera::dtensor::create(plan.result());
        const tessera::comm_memory room(comm, plan.workspace_bytes());
        plan.execute(x.to_local(), w.to_local(), nullptr, y.to_local(), room.bytes());
        const auto back = tessera::linear_backward_plan::create(x.layout(), w.layout(), {}, {}, x.layout(), {}, {});
        const auto dx = tessera::dtensor::create(x.layout());
        const tessera::comm_memory more(comm, back.workspace_bytes());
        const tsr_tensor local_w = w.to_local(), local_dx = dx.to_local();
        back.execute(nullptr, &local_w, y.to_local(), &local_dx, nullptr, nullptr, more.bytes());
        const auto expected = tessera::linear_backward(x, w, {}, y);
        right += tessera::linear(x, w).to_local<float>()[2] == y.to_local<float>()[2] &&
                 expected.x.to_local<float>()[7] == dx.to_local<float>()[7] && back.source() == y.layout();
    });
    hold(right == 2, "layers are planned and executed, forward and backward");
}

void test_tensors()
{
    std::atomic<int> right{0};
    tessera::threads_run(3, [&](tessera::comm_ref comm) {
        const auto mesh = tessera::mesh::parse(comm, "3");
        std::vector<double> own(2, comm.rank());
        const auto layout = tessera::layout::parse(mesh, "S(0)", {6}, TSR_F64);
        const auto x = tessera::dtensor::from_local_checked(tessera::tensor(own, {2}), layout);
        const auto borrowed = tessera::dtensor::from_local(tessera::tensor(own, {2}), layout);
        const auto whole = x.full_tensor();
        const tsr_placement copies[] = {tsr_replicate()}, parts[] = {tsr_shard(0)};
        auto y = borrowed.redistribute(copies);
        y.redistribute_in_place(copies);
        const auto from = tessera::dtensor::distribute_from(1, whole.to_local(), mesh, parts);
        const auto into = tessera::dtensor::create(y.layout());
        from.redistribute_into(into);
        const auto dx = y.redistribute_backward(layout);
        right += borrowed.to_local<double>().data() == own.data() && whole.to_local<double>()[5] == 2 &&
                 into.to_local<const double>()[3] == 1 && dx.to_local<double>()[0] == comm.rank() &&
                 from.layout() == layout;
    });
    hold(right == 3, "tensors are made of local ones and moved in every way");
}

void test_comms()
{
    auto ranks = tessera::comm::create_threads(1);
    const auto whole = std::move(ranks.front());
    whole.barrier();
    const auto part = whole.split(0);
    hold(part.size() == 1 && part.rank() == 0 && !whole.split(-1) &&
             tessera::comm_ref(part).engine() == std::string("threads"),
         "communicators of threads are made and split");
    refused([] { tessera::comm::create_threads(0); }, TSR_ERROR_ARGUMENT, "nranks", "a communicator has ranks");
    std::atomic<int> ended{0};
    refused(
        [&] {
            tessera::threads_run(2, [&](tessera::comm_ref comm) {
                if (comm.rank() == 1)
                    comm.abort();
                try {
                    comm.barrier();
                } catch (const tessera::error &) {
                    ended++;
                    throw;
                }
            });
        },
        TSR_ERROR_PEER, "", "an abort ends every rank");
    hold(ended == 2, "the ends of ranks are seen by handlers");
}

struct gone {
    std::atomic<int> &number;

    ~gone()
    {
        number++;
    }
};

struct strange {
    int value;
};

/* Ranks of which one fails while its peers wait for it. */
template <typename Fail> void run_and_fail(std::atomic<int> &ended, Fail fail)
{
    tessera::threads_run(3, [&](tessera::comm_ref comm) {
        const gone leaving{ended};
        const auto mesh = tessera::mesh::parse(comm, "3");
        if (comm.rank() == 1)
            fail();
        comm.barrier();
    });
}

void test_exceptions()
{
    std::atomic<int> ended{0};
    refused([&] { run_and_fail(ended, [] { tessera::mesh::parse_abstract("3x"); }); }, TSR_ERROR_ARGUMENT,
            "rank 1: ", "an error of a rank is thrown outside, with the rank");
    refused([&] { run_and_fail(ended, [] { throw tessera::error(TSR_ERROR_IO, "no such model"); }); }, TSR_ERROR_IO,
            "rank 1: no such model", "an error in a program's own words is thrown outside");
    refused([&] { run_and_fail(ended, [] { throw tessera::error(TSR_OK, "nothing"); }); }, TSR_ERROR_STATE,
            "rank 1: nothing", "an error is a failure whatever its status");
    std::string what;
    try {
        run_and_fail(ended, [] { static_cast<void>(std::vector<int>(3).at(7)); });
    } catch (const std::out_of_range &failure) {
        what = failure.what();
    }
    hold(!what.empty(), "an exception of another type is the same one outside");
    int value = 0;
    try {
        run_and_fail(ended, [] { throw strange{42}; });
    } catch (const strange &failure) {
        value = failure.value;
    }
    hold(value == 42, "an exception may be of any type");
    hold(ended == 15, "every rank comes to its end");

    refused([] { tessera::threads_run(2, [](tessera::comm_ref comm) { return comm.rank() ? TSR_ERROR_IO : TSR_OK; }); },
            TSR_ERROR_IO, "rank 1: returned io without a sentence", "a rank may return a status");
    refused([] { tessera::threads_run(0, [](tessera::comm_ref) {}); }, TSR_ERROR_ARGUMENT, "nranks",
            "a run that cannot be is refused");
    const auto owned = std::make_unique<int>(3);
    int sum = 0;
    auto once = [&sum, kept = std::make_unique<int>(4)](tessera::comm_ref) { sum += *kept; };
    tessera::threads_run(1, once);
    tessera::threads_run(1, [&](tessera::comm_ref) { sum += *owned; });
    hold(sum == 7, "a rank's program may be a callable that cannot be copied");
}

/* A main for C calls; a thread that ends by pthread_exit(). */
void test_c_mains()
{
    auto fail = [](tessera::comm_ref) { throw std::runtime_error("the disk is full"); };
    refused([&] { tessera::check(tsr_threads_run(1, tessera::rank_main<decltype(fail)>, &fail, nullptr)); },
            TSR_ERROR_STATE, "rank 0: the disk is full", "an exception becomes a status for C");
    auto odd = [](tessera::comm_ref) { throw 7; };
    refused([&] { tessera::check(tsr_threads_run(1, tessera::rank_main<decltype(odd)>, &odd, nullptr)); },
            TSR_ERROR_STATE, "no std::exception", "an exception without words becomes a status");
    auto starve = [](tessera::comm_ref) { throw std::bad_alloc(); };
    refused([&] { tessera::check(tsr_threads_run(1, tessera::rank_main<decltype(starve)>, &starve, nullptr)); },
            TSR_ERROR_MEMORY, "rank 0: ", "std::bad_alloc becomes TSR_ERROR_MEMORY");
    std::atomic<int> ended{0};
    refused([&] { run_and_fail(ended, [] { pthread_exit(nullptr); }); }, TSR_ERROR_STATE, "rank 1",
            "a rank may end its thread");
    hold(ended == 3, "the end of a thread runs destructors");
}

} // namespace

int main()
{
    test_mlp();
    test_gradients();
    test_errors();
    test_owners();
    test_spans();
    test_plans();
    test_tensors();
    test_comms();
    test_exceptions();
    test_c_mains();
    std::printf("1..%d\n", count);
    return failed ? 1 : 0;
}
