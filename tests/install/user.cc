// The same headers from C++, and a linear layer's rule: the second library.
#include <tessera/sys/comm.h>
#include <tessera/sys/device.h>
#include <tessera/tessera.h>

#include <cstdint>
#include <cstdio>

namespace
{

struct Layout {
    tsr_layout *value = nullptr;
    Layout() = default;
    Layout(const tsr_mesh *mesh, const char *placements, int64_t rows, int64_t columns)
    {
        const int64_t shape[] = {rows, columns};
        if (tsr_layout_parse(mesh, placements, 2, shape, TSR_F32, &value) != TSR_OK)
            std::fprintf(stderr, "%s\n", tsr_status_message());
    }
    ~Layout()
    {
        tsr_layout_destroy(value);
    }
};

} // namespace

int main()
{
    tsr_mesh *mesh = nullptr;
    if (tsr_mesh_parse(nullptr, nullptr, "tp=4", &mesh) != TSR_OK)
        return 1;
    char text[16] = "";
    {
        const Layout x(mesh, "R", 8, 32), w(mesh, "S(0)", 64, 32);
        Layout y;
        if (x.value != nullptr && w.value != nullptr &&
            tsr_linear_propagate(x.value, w.value, nullptr, &y.value) == TSR_OK)
            tsr_layout_print(y.value, text, sizeof text);
    }
    tsr_mesh_destroy(mesh);
    std::printf("tessera %s %s\n", tsr_version(), text);
    return text[0] == 'S' ? 0 : 1;
}
