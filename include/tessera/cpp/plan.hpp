/**
 * @file
 * For tessera.hpp: redistributions and layers that are planned once.
 */
#ifndef TESSERA_CPP_PLAN_HPP
#define TESSERA_CPP_PLAN_HPP

#include <tessera/cpp/layout.hpp>
#include <tessera/explain.h>
#include <tessera/linear.h>
#include <tessera/plan.h>
#include <tessera/saved.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera
{

/** A redistribution, planned once and executed many times. */
class plan : public shared<tsr_plan, tsr_plan_retain, tsr_plan_destroy>
{
  public:
    using shared::shared;

    /** Does not communicate. */
    static plan create(const layout &source, const layout &destination,
                       const tsr_plan_options &options = TSR_PLAN_OPTIONS_INIT)
    {
        plan made;
        check(tsr_plan_create(source.get(), destination.get(), &options, made.out()));
        return made;
    }
    /** From bytes of save(), for rank `rank`. Does not communicate. */
    static plan load(span<const std::byte> saved, std::int64_t rank, const context &choices = {})
    {
        plan made;
        check(tsr_plan_load(choices.get(), saved.data(), saved.size(), rank, made.out()));
        return made;
    }

    std::size_t workspace_bytes() const noexcept
    {
        return tsr_plan_workspace_bytes(get());
    }
    std::int64_t bytes_received() const noexcept
    {
        return tsr_plan_bytes_received(get());
    }
    std::int64_t bytes_sent() const noexcept
    {
        return tsr_plan_bytes_sent(get());
    }
    bool in_place() const noexcept
    {
        return tsr_plan_in_place(get()) != 0;
    }
    tsr_plan_figures figures() const
    {
        tsr_plan_figures of;
        check(tsr_plan_figures_of(get(), &of));
        return of;
    }
    /** The plan in words. */
    std::string describe() const
    {
        std::size_t length = 0;
        check(tsr_plan_describe(get(), nullptr, 0, &length));
        std::string text(length, '\0');
        check(tsr_plan_describe(get(), &text[0], length + 1, &length));
        return text;
    }
    std::vector<std::byte> save() const
    {
        std::size_t size = 0;
        check(tsr_plan_save(get(), nullptr, 0, &size));
        std::vector<std::byte> bytes(size);
        check(tsr_plan_save(get(), bytes.data(), bytes.size(), &size));
        return bytes;
    }

    /** Collective: once before the first execution over `comm`. */
    void prepare(comm_ref comm) const
    {
        check(tsr_plan_prepare(get(), comm.get()));
    }
    /** Collective over the plan's ranks. The workspace is aligned to 64, as comm_memory is. */
    void execute(comm_ref comm, const tsr_tensor &source, const tsr_tensor &destination,
                 span<std::byte> workspace = {}, tsr_stream stream = nullptr) const
    {
        check(tsr_plan_execute(get(), comm.get(), &source, &destination, workspace.data(),
                               workspace.size(), stream));
    }
    /** Collective: the first half of execute(). */
    void start(comm_ref comm, const tsr_tensor &source, const tsr_tensor &destination,
               span<std::byte> workspace = {}, tsr_stream stream = nullptr) const
    {
        check(tsr_plan_start(get(), comm.get(), &source, &destination, workspace.data(),
                             workspace.size(), stream));
    }
    /** Collective: the second half of execute(). */
    void finish(comm_ref comm) const
    {
        check(tsr_plan_finish(get(), comm.get()));
    }
};

/** A forward layer, planned once and executed many times. */
class linear_plan : public owner<tsr_linear_plan, tsr_linear_plan_destroy>
{
  public:
    using owner::owner;

    /** Collective. `b` may be empty; `y` empty: the rule's own layout. */
    static linear_plan create(const layout &x, const layout &w, const layout &b, const layout &y,
                              tsr_device device = tsr_device_host())
    {
        linear_plan made;
        check(tsr_linear_plan_create_on(x.get(), w.get(), b.get(), y.get(), device, made.out()));
        return made;
    }
    layout result() const noexcept
    {
        return layout::share(tsr_linear_plan_result(get()));
    }
    std::size_t workspace_bytes() const noexcept
    {
        return tsr_linear_plan_workspace_bytes(get());
    }
    /** Collective: one forward pass. `b` is nullptr exactly where the plan has no bias. */
    void execute(const tsr_tensor &x, const tsr_tensor &w, const tsr_tensor *b, const tsr_tensor &y,
                 span<std::byte> workspace, tsr_stream stream = nullptr) const
    {
        check(tsr_linear_plan_execute(get(), &x, &w, b, &y, workspace.data(), workspace.size(),
                                      stream));
    }
};

/** The backward of a layer, planned once and executed many times. */
class linear_backward_plan
    : public owner<tsr_linear_backward_plan, tsr_linear_backward_plan_destroy>
{
  public:
    using owner::owner;

    /** Collective. `b` may be empty where `db` is; `dy` empty: the gradient layout of the rule's
     * own y; of `dx`, `dw` and `db`, those that are empty are not computed. */
    static linear_backward_plan create(const layout &x, const layout &w, const layout &b,
                                       const layout &dy, const layout &dx, const layout &dw,
                                       const layout &db, tsr_device device = tsr_device_host())
    {
        linear_backward_plan made;
        check(tsr_linear_backward_plan_create(x.get(), w.get(), b.get(), dy.get(), dx.get(),
                                              dw.get(), db.get(), device, made.out()));
        return made;
    }
    /** The layout that dy is expected in. */
    layout source() const noexcept
    {
        return layout::share(tsr_linear_backward_plan_source(get()));
    }
    std::size_t workspace_bytes() const noexcept
    {
        return tsr_linear_backward_plan_workspace_bytes(get());
    }
    /** Collective: one backward pass; pointers as in the C call. */
    void execute(const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor &dy,
                 const tsr_tensor *dx, const tsr_tensor *dw, const tsr_tensor *db,
                 span<std::byte> workspace, tsr_stream stream = nullptr) const
    {
        check(tsr_linear_backward_plan_execute(get(), x, w, &dy, dx, dw, db, workspace.data(),
                                               workspace.size(), stream));
    }
};

} // namespace tessera

#endif
