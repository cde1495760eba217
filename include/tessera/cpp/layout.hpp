/**
 * @file
 * For tessera.hpp: meshes and layouts.
 */
#ifndef TESSERA_CPP_LAYOUT_HPP
#define TESSERA_CPP_LAYOUT_HPP

#include <tessera/cpp/comm.hpp>
#include <tessera/layout.h>

#include <array>
#include <cstdint>
#include <string>

namespace tessera
{

/** A grid of ranks. None of its calls communicates. */
class mesh : public shared<tsr_mesh, tsr_mesh_retain, tsr_mesh_destroy>
{
  public:
    using shared::shared;

    /** A mesh over `comm` from text such as "dp=2,tp=4". */
    static mesh parse(comm_ref comm, const std::string &text)
    {
        mesh made;
        check(tsr_mesh_parse(comm.get(), nullptr, text.c_str(), made.out()));
        return made;
    }
    /** A mesh without a communicator, for planning. */
    static mesh parse_abstract(const std::string &text, const context &choices = {})
    {
        mesh made;
        check(tsr_mesh_parse(nullptr, choices.get(), text.c_str(), made.out()));
        return made;
    }
    /** Shares a mesh that a C call lends. */
    static mesh share(const tsr_mesh *borrowed) noexcept
    {
        return mesh(retained(borrowed));
    }

    int ndim() const noexcept
    {
        return tsr_mesh_ndim(get());
    }
    std::int64_t size(int dim) const noexcept
    {
        return tsr_mesh_size(get(), dim);
    }
    std::int64_t count() const noexcept
    {
        return tsr_mesh_count(get());
    }
    /** The index of the dim with that name. */
    int find(const std::string &name) const
    {
        int dim = 0;
        check(tsr_mesh_find(get(), name.c_str(), &dim));
        return dim;
    }
    mesh slice(const std::string &dims) const
    {
        mesh made;
        check(tsr_mesh_slice(get(), dims.c_str(), made.out()));
        return made;
    }
    mesh flatten(const std::string &dims) const
    {
        mesh made;
        check(tsr_mesh_flatten(get(), dims.c_str(), made.out()));
        return made;
    }
    mesh with_nodes(const tsr_nodes &nodes) const
    {
        mesh made;
        check(tsr_mesh_with_nodes(get(), &nodes, made.out()));
        return made;
    }
    std::string to_string() const
    {
        return detail::printed([this](char *text, std::size_t capacity) {
            return tsr_mesh_print(get(), text, capacity);
        });
    }
};

/** Where every element of a tensor lies. None of its calls communicates. */
class layout : public shared<tsr_layout, tsr_layout_retain, tsr_layout_destroy>
{
  public:
    using shared::shared;

    /** The placements are text, such as "S(0),R". */
    static layout parse(const tessera::mesh &ranks, const std::string &placements,
                        const tessera::shape &sizes, tsr_dtype dtype)
    {
        layout made;
        check(tsr_layout_parse(ranks.get(), placements.c_str(), sizes.ndim(), sizes.data(), dtype,
                               made.out()));
        return made;
    }
    static layout create(const tessera::mesh &ranks, span<const tsr_placement> placements,
                         const tessera::shape &sizes, tsr_dtype dtype)
    {
        layout made;
        check(tsr_layout_create(ranks.get(), detail::fitting(placements, ranks.get()), sizes.ndim(),
                                sizes.data(), dtype, made.out()));
        return made;
    }
    /** Shares a layout that a C call lends. */
    static layout share(const tsr_layout *borrowed) noexcept
    {
        return layout(retained(borrowed));
    }

    tessera::mesh mesh() const noexcept
    {
        return tessera::mesh::share(tsr_layout_mesh(get()));
    }
    tsr_dtype dtype() const noexcept
    {
        return tsr_layout_dtype(get());
    }
    /** The shape of the whole tensor. */
    tessera::shape shape() const
    {
        return span<const std::int64_t>(tsr_layout_shape(get()),
                                        static_cast<std::size_t>(tsr_layout_ndim(get())));
    }
    /** The shape of this rank's part. */
    tessera::shape local_shape() const
    {
        std::array<std::int64_t, TSR_MAX_DIMS> sizes{};
        check(tsr_layout_local(get(), nullptr, sizes.data(), nullptr));
        return span<const std::int64_t>(sizes.data(),
                                        static_cast<std::size_t>(tsr_layout_ndim(get())));
    }
    /** One for each dim of the mesh; borrowed. */
    span<const tsr_placement> placements() const noexcept
    {
        return {tsr_layout_placements(get()),
                static_cast<std::size_t>(tsr_mesh_ndim(tsr_layout_mesh(get())))};
    }
    /** The layout of gradients. */
    layout gradient() const
    {
        layout made;
        check(tsr_layout_gradient(get(), made.out()));
        return made;
    }
    /** The placements as text. */
    std::string to_string() const
    {
        return detail::printed([this](char *text, std::size_t capacity) {
            return tsr_layout_print(get(), text, capacity);
        });
    }
    friend bool operator==(const layout &a, const layout &b) noexcept
    {
        return tsr_layout_equal(a.get(), b.get()) != 0;
    }
    friend bool operator!=(const layout &a, const layout &b) noexcept
    {
        return !(a == b);
    }
};

} // namespace tessera

#endif
