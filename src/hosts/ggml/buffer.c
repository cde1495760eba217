#include "hosts/ggml/buffer.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALIGNMENT = 64, PREFERRED = 1 /* MPOL_PREFERRED of numaif.h, which needs libnuma */ };

/* Weights are read from end to end for each token: with small pages, finding them takes as long as
 * reading them. */
#define HUGE_PAGE ((size_t)2 << 20)

/* Asks for pages on a NUMA node. Where the system does not know how, it chooses. */
static void prefer_node(void *pages, size_t bytes, int node)
{
    const unsigned long mask = 1ul << node;
    (void)syscall(SYS_mbind, pages, bytes, PREFERRED, &mask, 8 * sizeof mask + 1, 0);
}

static char *map(size_t bytes)
{
    void *const pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* A huge page more is mapped than is wanted, and what lies outside is unmapped again. */
static char *map_huge(size_t bytes)
{
    char *const wide = bytes <= SIZE_MAX - HUGE_PAGE ? map(bytes + HUGE_PAGE) : NULL;
    if (!wide)
        return NULL;
    const size_t before = -(uintptr_t)wide % HUGE_PAGE;
    if (before > 0)
        (void)munmap(wide, before);
    (void)munmap(wide + before + bytes, HUGE_PAGE - before);
    /* Fails where huge pages are switched off. */
    (void)madvise(wide + before, bytes, MADV_HUGEPAGE);
    return wide + before;
}

/* The bytes that are mapped for a buffer: whole huge pages, or at least a byte. */
static size_t mapped_bytes(size_t size)
{
    if (size >= HUGE_PAGE && size <= SIZE_MAX - HUGE_PAGE)
        return (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    return size > 0 ? size : 1;
}

static void free_buffer(ggml_backend_buffer_t buffer)
{
    (void)munmap(buffer->context, mapped_bytes(buffer->size));
}

static void *get_base(ggml_backend_buffer_t buffer)
{
    return buffer->context;
}

static void memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                          size_t size)
{
    (void)buffer;
    memset((char *)tensor->data + offset, value, size);
}

static void set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                       size_t size)
{
    (void)buffer;
    memcpy((char *)tensor->data + offset, data, size);
}

static void get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                       size_t size)
{
    (void)buffer;
    memcpy(data, (const char *)tensor->data + offset, size);
}

static bool copy_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *source, struct ggml_tensor *target)
{
    (void)buffer;
    if (!tsr_ggml_tensor_is_near(source))
        return false;
    memcpy(target->data, source->data, ggml_nbytes(source));
    return true;
}

static void clear(ggml_backend_buffer_t buffer, uint8_t value)
{
    memset(buffer->context, value, buffer->size);
}

static const struct ggml_backend_buffer_i functions = {
    .free_buffer = free_buffer,
    .get_base = get_base,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .cpy_tensor = copy_tensor,
    .clear = clear,
};

static const char *get_name(ggml_backend_buffer_type_t type)
{
    return ((const tsr_ggml_device *)type->context)->name;
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size)
{
    const tsr_ggml_device *const device = type->context;
    const size_t bytes = mapped_bytes(size);
    char *const pages = bytes < HUGE_PAGE ? map(bytes) : map_huge(bytes);
    if (!pages)
        return NULL;
    if (device->place.node >= 0)
        prefer_node(pages, bytes, device->place.node);
    return ggml_backend_buffer_init(type, functions, pages, size);
}

static size_t get_alignment(ggml_backend_buffer_type_t type)
{
    (void)type;
    return ALIGNMENT;
}

void tsr_ggml_buffer_type_init(struct ggml_backend_buffer_type *type, tsr_ggml_device *device)
{
    *type = (struct ggml_backend_buffer_type){
        .iface = {.get_name = get_name, .alloc_buffer = alloc_buffer, .get_alignment = get_alignment},
        .device = &device->device,
        .context = device,
    };
}

bool tsr_ggml_tensor_is_near(const struct ggml_tensor *tensor)
{
    const struct ggml_backend_buffer *const buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return buffer && (buffer->iface.free_buffer == free_buffer || buffer->buft->iface.is_host);
}
