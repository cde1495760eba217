/**
 * @file
 * For tessera.hpp: contexts, profiles, and communicators with their memory.
 */
#ifndef TESSERA_CPP_COMM_HPP
#define TESSERA_CPP_COMM_HPP

#include <tessera/comm.h>
#include <tessera/context.h>
#include <tessera/cpp/base.hpp>
#include <tessera/profile.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tessera
{

/** The choices of a host program; an empty one stands for the defaults. */
class context : public shared<tsr_context, tsr_context_retain, tsr_context_destroy>
{
  public:
    using shared::shared;

    static context create(const tsr_context_options &options)
    {
        context made;
        check(tsr_context_create(&options, made.out()));
        return made;
    }
};

/** A measured cost profile. */
class profile : public shared<tsr_profile, tsr_profile_retain, tsr_profile_destroy>
{
  public:
    using shared::shared;

    static profile parse(const std::string &text)
    {
        profile made;
        check(tsr_profile_parse(text.c_str(), made.out()));
        return made;
    }
    std::string to_string() const
    {
        return detail::printed([this](char *text, std::size_t capacity) {
            return tsr_profile_print(get(), text, capacity);
        });
    }
};

class comm;

/** One rank's end of a communicator that somebody else owns: a rank's main gets one. */
class comm_ref
{
  public:
    comm_ref(tsr_comm *borrowed) noexcept : comm_(borrowed) {}
    comm_ref(const comm &owned) noexcept;

    tsr_comm *get() const noexcept
    {
        return comm_;
    }
    int rank() const noexcept
    {
        return tsr_comm_rank(comm_);
    }
    int size() const noexcept
    {
        return tsr_comm_size(comm_);
    }
    const char *engine() const noexcept
    {
        return tsr_comm_engine(comm_);
    }
    /** Collective. */
    void barrier() const
    {
        check(tsr_comm_barrier(comm_));
    }
    /** Collective: ranks of equal `color` form a communicator; a negative color gets an empty one.
     */
    comm split(int color, int key = 0) const;
    /** Ends every wait; does not communicate. */
    void abort() const noexcept
    {
        tsr_comm_abort(comm_);
    }

  private:
    tsr_comm *comm_;
};

/** Owns one rank's end of a communicator. */
class comm : public owner<tsr_comm, tsr_comm_destroy>
{
  public:
    using owner::owner;

    /** One handle for each rank, for programs with threads of their own. */
    static std::vector<comm> create_threads(int nranks,
                                            const tsr_threads_options *options = nullptr)
    {
        std::vector<tsr_comm *> made(static_cast<std::size_t>(std::max(nranks, 1)));
        std::vector<comm> ranks(made.size());
        check(tsr_comm_create_threads(nranks, options, made.data()));
        for (std::size_t i = 0; i < made.size(); i++)
            ranks[i].reset(made[i]);
        return ranks;
    }

    int rank() const noexcept
    {
        return tsr_comm_rank(get());
    }
    int size() const noexcept
    {
        return tsr_comm_size(get());
    }
    /** Collective. */
    void barrier() const
    {
        check(tsr_comm_barrier(get()));
    }
    /** Collective: comm_ref::split(). */
    comm split(int color, int key = 0) const
    {
        return comm_ref(*this).split(color, key);
    }
};

inline comm_ref::comm_ref(const comm &owned) noexcept : comm_(owned.get()) {}

inline comm comm_ref::split(int color, int key) const
{
    comm made;
    check(tsr_comm_split(comm_, color, key, made.out()));
    return made;
}

/** Memory that peers can reach, aligned for workspaces. It goes before its communicator does. */
class comm_memory
{
  public:
    comm_memory() noexcept = default;
    /** Collective. */
    comm_memory(comm_ref comm, std::size_t bytes) : comm_(comm.get()), bytes_(bytes)
    {
        check(tsr_comm_alloc(comm_, bytes, &memory_));
    }
    comm_memory(comm_memory &&other) noexcept
    {
        swap(other);
    }
    comm_memory &operator=(comm_memory &&other) noexcept
    {
        comm_memory(std::move(other)).swap(*this);
        return *this;
    }
    comm_memory(const comm_memory &) = delete;
    comm_memory &operator=(const comm_memory &) = delete;
    ~comm_memory()
    {
        if (comm_)
            tsr_comm_free(comm_, memory_, bytes_);
    }

    span<std::byte> bytes() const noexcept
    {
        return {static_cast<std::byte *>(memory_), bytes_};
    }
    /** As many elements of type T as fit. */
    template <typename T> span<T> as() const noexcept
    {
        return {static_cast<T *>(memory_), bytes_ / sizeof(T)};
    }

  private:
    void swap(comm_memory &other) noexcept
    {
        std::swap(comm_, other.comm_);
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
    }

    tsr_comm *comm_ = nullptr;
    void *memory_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace tessera

#endif
