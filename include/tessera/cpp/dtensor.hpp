/**
 * @file
 * For tessera.hpp: sharded tensors, and linear layers on them.
 */
#ifndef TESSERA_CPP_DTENSOR_HPP
#define TESSERA_CPP_DTENSOR_HPP

#include <tessera/cpp/layout.hpp>
#include <tessera/dtensor.h>
#include <tessera/linear.h>

#include <cstdint>
#include <string>

namespace tessera
{

/** A sharded tensor: a layout and this rank's local tensor. Copies share both. */
class dtensor : public shared<tsr_dtensor, tsr_dtensor_retain, tsr_dtensor_destroy>
{
  public:
    using shared::shared;

    /** Every rank has the global tensor, of any strides, and keeps its own part. Does not
     * communicate. */
    static dtensor distribute(const tsr_tensor &global, const mesh &ranks,
                              const std::string &placements)
    {
        dtensor made;
        check(tsr_distribute(&global, ranks.get(), placements.c_str(), made.out()));
        return made;
    }
    /** distribute() of contiguous elements. Does not communicate. */
    template <typename Range>
    static dtensor distribute(const Range &global, const shape &sizes, const mesh &ranks,
                              const std::string &placements)
    {
        return distribute(tensor(global, sizes), ranks, placements);
    }
    /** Collective: distributes the global tensor of rank `source`. */
    static dtensor distribute_from(int source, const tsr_tensor &global, const mesh &ranks,
                                   span<const tsr_placement> placements)
    {
        dtensor made;
        tsr_distribute_options options = TSR_DISTRIBUTE_OPTIONS_INIT;
        options.source_rank = source;
        check(tsr_distribute_tensor(&global, ranks.get(), detail::fitting(placements, ranks.get()),
                                    &options, made.out()));
        return made;
    }
    /** Each rank reads its part of a file. Does not communicate. */
    static dtensor distribute_file(const std::string &path, std::int64_t offset, tsr_dtype dtype,
                                   const tessera::layout &wanted)
    {
        dtensor made;
        check(tsr_distribute_file(path.c_str(), offset, dtype, wanted.get(), nullptr, made.out()));
        return made;
    }
    /** Over the caller's memory, which is borrowed. Does not communicate. */
    static dtensor from_local(const tsr_tensor &local, const tessera::layout &of)
    {
        dtensor made;
        check(tsr_dtensor_from_local(&local, of.get(), nullptr, made.out()));
        return made;
    }
    /** Collective: from_local() that compares the layouts of all ranks. */
    static dtensor from_local_checked(const tsr_tensor &local, const tessera::layout &of)
    {
        dtensor made;
        tsr_from_local_options options = TSR_FROM_LOCAL_OPTIONS_INIT;
        options.check = 1;
        check(tsr_dtensor_from_local(&local, of.get(), &options, made.out()));
        return made;
    }
    /** Uninitialised, as a destination. Does not communicate. */
    static dtensor create(const tessera::layout &of, tsr_device device = tsr_device_host())
    {
        dtensor made;
        check(tsr_dtensor_create(of.get(), device, made.out()));
        return made;
    }

    tessera::layout layout() const noexcept
    {
        return tessera::layout::share(tsr_dtensor_layout(get()));
    }
    /** This rank's local tensor; valid as long as the dtensor. */
    tsr_tensor to_local() const noexcept
    {
        return tsr_dtensor_to_local(get());
    }
    /** The elements of this rank's local tensor, as elements() checks them. */
    template <typename T> span<T> to_local() const
    {
        return elements<T>(to_local());
    }

    /** Collective: the same tensor in another layout, in new memory. */
    dtensor redistribute_to(const std::string &placements) const
    {
        dtensor made;
        check(tsr_redistribute_to(get(), placements.c_str(), made.out()));
        return made;
    }
    /** Collective: redistribute_to() with placements as values. */
    dtensor redistribute(span<const tsr_placement> placements) const
    {
        dtensor made;
        check(tsr_redistribute(get(), fitting(placements), made.out()));
        return made;
    }
    /** Collective: writes this tensor into `destination`, in its layout. */
    void redistribute_into(const dtensor &destination, tsr_stream stream = nullptr) const
    {
        check(tsr_redistribute_into(get(), destination.get(), stream));
    }
    /** Collective: changes this tensor itself, and so all copies of this owner. */
    void redistribute_in_place(span<const tsr_placement> placements, tsr_stream stream = nullptr)
    {
        check(tsr_redistribute_in_place(get(), fitting(placements), stream));
    }
    /** Collective: the backward of a redistribution from `source`; this is the gradient of its
     * result. */
    dtensor redistribute_backward(const tessera::layout &source) const
    {
        dtensor made;
        check(tsr_redistribute_backward(get(), source.get(), made.out()));
        return made;
    }
    /** Collective: the whole tensor on every rank of the mesh. */
    dtensor full_tensor() const
    {
        dtensor made;
        check(tsr_full_tensor(get(), made.out()));
        return made;
    }

  private:
    const tsr_placement *fitting(span<const tsr_placement> placements) const
    {
        return detail::fitting(placements, tsr_layout_mesh(tsr_dtensor_layout(get())));
    }
};

namespace detail
{

/** Placements of a result, or NULL for none, by the mesh of `operand`. */
inline const tsr_placement *wanted(span<const tsr_placement> placements, const dtensor &operand)
{
    return placements.empty()
               ? nullptr
               : fitting(placements, tsr_layout_mesh(tsr_dtensor_layout(operand.get())));
}

} // namespace detail

/** y = x w^T + b in the rule's own layout; `b` may be empty. Does not communicate. */
inline dtensor linear(const dtensor &x, const dtensor &w, const dtensor &b = {})
{
    dtensor y;
    check(tsr_linear(x.get(), w.get(), b.get(), nullptr, y.out()));
    return y;
}

/** Collective: linear() with y redistributed to these placements. */
inline dtensor linear_to(span<const tsr_placement> placements, const dtensor &x, const dtensor &w,
                         const dtensor &b = {})
{
    dtensor y;
    check(tsr_linear(x.get(), w.get(), b.get(),
                     detail::fitting(placements, tsr_layout_mesh(tsr_dtensor_layout(x.get()))),
                     y.out()));
    return y;
}

/** What linear_backward() returns. */
struct gradients {
    dtensor x, w, b; /**< b is empty where the layer has no bias */
};

/** Collective: gradients of linear(). Empty placements: the operand's own gradient layout. */
inline gradients linear_backward(const dtensor &x, const dtensor &w, const dtensor &b,
                                 const dtensor &dy, span<const tsr_placement> dx = {},
                                 span<const tsr_placement> dw = {},
                                 span<const tsr_placement> db = {})
{
    gradients made;
    check(tsr_linear_backward(x.get(), w.get(), b.get(), dy.get(), detail::wanted(dx, x),
                              detail::wanted(dw, w), b ? detail::wanted(db, b) : nullptr,
                              made.x.out(), made.w.out(), b ? made.b.out() : nullptr));
    return made;
}

} // namespace tessera

#endif
