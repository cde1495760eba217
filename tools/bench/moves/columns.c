#include "bench/moves/columns.h"

#include "cli/report.h"

static void explain_row(const move_bench *b, const move_figures *f)
{
    say("# payload %lld bytes at %.2f GB/s; %.2f of the best plain copy (%s, %.2f GB/s), %.2f of the limit\n",
        (long long)b->result.bytes, 1e-9 * f->bandwidth, f->of_peak, f->peak_copy, 1e-9 * f->peak_bandwidth,
        f->of_limit);
    if (place_enqueues(b->setup.place))
        say("# enqueuing takes the host %.2f us a call\n", 1e6 * f->enqueue.median);
}

void columns_begin(const move_bench *b, const move_figures *f, bool explain)
{
    const move_setup *const s = &b->setup;
    say("# %s %s -> %s on mesh %s, engine %s, device %s, %s%s\n", b->way->bench, s->names.from, s->names.to,
        s->names.mesh, place_engine(s->place), place_device_name(s->place), mode_name(s->request.mode),
        b->way->new_results ? ", new results" : "");
    if (explain)
        explain_row(b, f);
    say("#%13s %13s %8s %6s %11s %8s %8s %8s %8s %8s %8s %8s\n", "size", "count", "type", "redop", "time", "algbw",
        "busbw", "#wrong", "ratio", "of_peak", "of_limit", "noise");
    say("#%13s %13s %8s %6s %11s %8s %8s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)");
}

void columns_name_shape(const move_bench *b)
{
    char text[SHAPE_TEXT_BYTES];
    print_shape(b->setup.request.shape.ndim, b->setup.request.shape.size, text);
    say("# shape %s\n", text);
}

void columns_print(const move_bench *b, const move_figures *f)
{
    const tsr_dtype dtype = b->setup.request.dtype;
    char wrong[24] = "N/A", ratio[16] = "-";
    if (b->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)f->wrong);
    if (f->ratio >= 0)
        snprintf(ratio, sizeof ratio, "%.3f", f->ratio);
    say(" %13lld %13lld %8s %6s %11.3f %8.2f %8.2f %8s %8s %8.2f %8.2f %8.2f\n", (long long)f->size,
        (long long)(f->size / (int64_t)tsr_dtype_bytes(dtype)), tsr_dtype_name(dtype), f->reduction,
        1e6 * f->time.median, 1e-9 * f->algbw, 1e-9 * f->busbw, wrong, ratio, f->of_peak, f->of_limit,
        spread_noise(f->time));
}
