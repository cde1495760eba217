/**
 * @file
 * For tessera.hpp: spans, the exception, element types, shapes, owners.
 */
#ifndef TESSERA_CPP_BASE_HPP
#define TESSERA_CPP_BASE_HPP

#include <tessera/mesh.h>
#include <tessera/placement.h>
#include <tessera/tensor.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L && defined(__has_include)
#if __has_include(<span>)
#include <span>
#endif
#endif

namespace tessera
{

#if defined(__cpp_lib_span)
/** std::span, where there is one. */
template <typename T> using span = std::span<T>;
#else
/** A view of elements that lie one after the other, with what programs use most of std::span. */
template <typename T> class span
{
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using size_type = std::size_t;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    /** Of a vector, an array, a span of elements without const: of what std::data() and std::size()
     * take. */
    template <
        typename Range,
        typename = std::enable_if_t<std::is_convertible_v<
            std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))> (*)[], T (*)[]>>>
    constexpr span(Range &&range) noexcept(noexcept(std::data(range)))
        : data_(std::data(range)), size_(std::size(range))
    {
    }

    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr std::size_t size_bytes() const noexcept
    {
        return size_ * sizeof(T);
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t index) const noexcept
    {
        return data_[index];
    }
    constexpr T &front() const noexcept
    {
        return data_[0];
    }
    constexpr T &back() const noexcept
    {
        return data_[size_ - 1];
    }
    constexpr span first(std::size_t count) const noexcept
    {
        return {data_, count};
    }
    constexpr span subspan(std::size_t offset) const noexcept
    {
        return {data_ + offset, size_ - offset};
    }
    constexpr span subspan(std::size_t offset, std::size_t count) const noexcept
    {
        return {data_ + offset, count};
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

/** What a call that failed returned: whose fault it is, and the sentence, which is what(). */
class error : public std::runtime_error
{
  public:
    error(tsr_status status, const std::string &sentence)
        : std::runtime_error(sentence), status_(status)
    {
    }
    tsr_status status() const noexcept
    {
        return status_;
    }

  private:
    tsr_status status_;
};

/** Throws what a C call has just returned on this thread, unless that is TSR_OK. */
inline void check(tsr_status status)
{
    if (status != TSR_OK)
        throw error(status, tsr_status_message());
}

/** The dtype of elements of type T, as dtype_of<T>::value. Specialise it for a type of your own,
 * such as a bf16. */
template <typename T, typename = void> struct dtype_of;

template <> struct dtype_of<double> : std::integral_constant<tsr_dtype, TSR_F64> {
};
template <> struct dtype_of<float> : std::integral_constant<tsr_dtype, TSR_F32> {
};
template <> struct dtype_of<bool> : std::integral_constant<tsr_dtype, TSR_BOOL> {
};
template <> struct dtype_of<std::complex<float>> : std::integral_constant<tsr_dtype, TSR_C64> {
};
template <> struct dtype_of<std::complex<double>> : std::integral_constant<tsr_dtype, TSR_C128> {
};
template <typename T>
struct dtype_of<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
    : std::integral_constant<tsr_dtype, sizeof(T) == 8   ? (std::is_signed_v<T> ? TSR_I64 : TSR_U64)
                                        : sizeof(T) == 4 ? (std::is_signed_v<T> ? TSR_I32 : TSR_U32)
                                        : sizeof(T) == 2
                                            ? (std::is_signed_v<T> ? TSR_I16 : TSR_U16)
                                            : (std::is_signed_v<T> ? TSR_I8 : TSR_U8)> {
};

/** The sizes of a tensor's dims, as a plain value: {2, 4}; {} for a scalar. */
class shape
{
  public:
    shape() noexcept = default;
    shape(std::initializer_list<std::int64_t> sizes) : shape(sizes.begin(), sizes.size()) {}
    /** Of a vector, an array, a span. */
    template <typename Range, typename = std::enable_if_t<
                                  std::is_convertible_v<const Range &, span<const std::int64_t>>>>
    shape(const Range &sizes) : shape(std::data(sizes), std::size(sizes))
    {
    }

    int ndim() const noexcept
    {
        return ndim_;
    }
    const std::int64_t *data() const noexcept
    {
        return sizes_.data();
    }
    const std::int64_t *begin() const noexcept
    {
        return data();
    }
    const std::int64_t *end() const noexcept
    {
        return data() + ndim_;
    }
    std::int64_t operator[](std::size_t dim) const noexcept
    {
        return sizes_[dim];
    }
    friend bool operator==(const shape &a, const shape &b) noexcept
    {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }
    friend bool operator!=(const shape &a, const shape &b) noexcept
    {
        return !(a == b);
    }

  private:
    shape(const std::int64_t *sizes, std::size_t count)
    {
        if (count > TSR_MAX_DIMS)
            throw error(TSR_ERROR_ARGUMENT, "a shape of " + std::to_string(count) +
                                                " dims: a tensor has at most " +
                                                std::to_string(TSR_MAX_DIMS));
        std::copy(sizes, sizes + count, sizes_.begin());
        ndim_ = static_cast<int>(count);
    }

    int ndim_ = 0;
    std::array<std::int64_t, TSR_MAX_DIMS> sizes_{};
};

/** Holds one C object and frees it; can only be moved. Also for objects without a class here:
 * `tessera::owner<tsr_mpi_job, tsr_mpi_job_destroy> job; check(tsr_mpi_job_create(job.out()));` */
template <typename T, void (*Destroy)(T *)> class owner
{
  public:
    owner() noexcept = default;
    explicit owner(T *taken) noexcept : held_(taken) {}
    owner(owner &&other) noexcept : held_(other.release()) {}
    owner &operator=(owner &&other) noexcept
    {
        reset(other.release());
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner()
    {
        Destroy(held_);
    }

    /** The object, for C calls; still this owner's. nullptr: it holds nothing. */
    T *get() const noexcept
    {
        return held_;
    }
    explicit operator bool() const noexcept
    {
        return held_ != nullptr;
    }
    /** Hands the object over to the caller. */
    T *release() noexcept
    {
        return std::exchange(held_, nullptr);
    }
    /** Frees the object, and holds `taken`. */
    void reset(T *taken = nullptr) noexcept
    {
        Destroy(std::exchange(held_, taken));
    }
    /** Frees the object, and is where a C call writes the next one: `f(.., mesh.out())`. */
    T **out() noexcept
    {
        reset();
        return &held_;
    }

  private:
    T *held_ = nullptr;
};

/** An owner whose copies share one object. */
template <typename T, T *(*Retain)(T *), void (*Destroy)(T *)>
class shared : public owner<T, Destroy>
{
  public:
    shared() noexcept = default;
    explicit shared(T *taken) noexcept : owner<T, Destroy>(taken) {}
    shared(shared &&) noexcept = default;
    shared &operator=(shared &&) noexcept = default;
    shared(const shared &other) noexcept : shared(retained(other.get())) {}
    shared &operator=(const shared &other) noexcept
    {
        this->reset(retained(other.get()));
        return *this;
    }
    ~shared() = default;

  protected:
    /** A reference of one's own to a borrowed object. Only the count of references changes. */
    static T *retained(const T *borrowed) noexcept
    {
        return borrowed ? Retain(const_cast<T *>(borrowed)) : nullptr;
    }
};

namespace detail
{

/** The text that a C call prints as snprintf() does. */
template <typename Print> std::string printed(Print print)
{
    std::string text(print(nullptr, std::size_t{0}), '\0');
    print(&text[0], text.size() + 1);
    return text;
}

/** A C array of placements, of which the length was not checked: one for each dim of the mesh. */
inline const tsr_placement *fitting(span<const tsr_placement> placements, const tsr_mesh *mesh)
{
    const auto dims = static_cast<std::size_t>(tsr_mesh_ndim(mesh));
    if (placements.size() != dims)
        throw error(TSR_ERROR_ARGUMENT,
                    "placements: there are " + std::to_string(placements.size()) +
                        ", but the mesh has " + std::to_string(dims) + " dims, and each wants one");
    return placements.data();
}

} // namespace detail

/** A view of a tensor on the host over `data`, which is borrowed, as a C call takes it. Throws if
 * the shape does not have as many elements as `data`. A view of const elements is for calls that
 * only read it. */
template <typename Range> tsr_tensor tensor(Range &&data, const shape &sizes)
{
    using element = std::remove_pointer_t<decltype(std::data(data))>;
    using value = std::remove_cv_t<element>;
    tsr_tensor view = tsr_tensor_contiguous(const_cast<value *>(std::data(data)),
                                            dtype_of<value>::value, sizes.ndim(), sizes.data());
    std::int64_t count = 0;
    check(tsr_tensor_count(&view, &count));
    if (static_cast<std::uint64_t>(count) != std::size(data))
        throw error(TSR_ERROR_ARGUMENT, "data has " + std::to_string(std::size(data)) +
                                            " elements, but its shape has " +
                                            std::to_string(count));
    return view;
}

/** The elements of a contiguous tensor in host memory, borrowed. Throws if they are not of type T,
 * not contiguous, or on a device. */
template <typename T> span<T> elements(const tsr_tensor &view)
{
    using value = std::remove_cv_t<T>;
    if (view.dtype != dtype_of<value>::value)
        throw error(TSR_ERROR_ARGUMENT, std::string("elements: the tensor has ") +
                                            tsr_dtype_name(view.dtype) + ", not " +
                                            tsr_dtype_name(dtype_of<value>::value));
    if (view.device.driver)
        throw error(TSR_ERROR_ARGUMENT,
                    "elements: the tensor is on a device; copy it to the host first");
    if (!tsr_tensor_is_contiguous(&view))
        throw error(TSR_ERROR_ARGUMENT,
                    "elements: the tensor is not contiguous; go by its strides");
    std::int64_t count = 0;
    check(tsr_tensor_count(&view, &count));
    return {static_cast<T *>(view.data), static_cast<std::size_t>(count)};
}

} // namespace tessera

#endif
