#include "rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void number_add_to(number *sum, number term)
{
    *sum = number_add(*sum, term);
}

rows rows_make(int64_t count, int64_t width)
{
    const rows made = {count, width, calloc((size_t)(count * width) + 1, sizeof(double)),
                       calloc((size_t)count + 1, sizeof(double))};
    assert_true(made.v && made.e);
    return made;
}

void rows_free(rows x)
{
    free(x.v);
    free(x.e);
}

rows rows_one(rows x, int64_t row)
{
    return (rows){1, x.width, x.v + row * x.width, x.e + row};
}

/* The same elements in rows of heads: what a row lacks is at least what each head does. */
rows rows_of_heads(rows x, int64_t heads)
{
    rows made = rows_make(x.count * heads, x.width / heads);
    memcpy(made.v, x.v, (size_t)(x.count * x.width) * sizeof(double));
    for (int64_t i = 0; i < made.count; i++)
        made.e[i] = x.e[i / heads];
    return made;
}

/* Heads, joined to rows: the square of a row's norm is the sum of those of its heads. */
rows rows_of_tokens(rows x, int64_t heads)
{
    rows made = rows_make(x.count / heads, x.width * heads);
    memcpy(made.v, x.v, (size_t)(x.count * x.width) * sizeof(double));
    for (int64_t i = 0; i < x.count; i++)
        made.e[i / heads] = hypot(made.e[i / heads], x.e[i]);
    return made;
}

double rows_size(int64_t n, const double *x)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    return sqrt(squares);
}

/* sum += term, row by row. */
void rows_add(rows sum, rows term)
{
    for (int64_t t = 0; t < sum.count; t++) {
        for (int64_t i = 0; i < sum.width; i++)
            sum.v[t * sum.width + i] += term.v[t * sum.width + i];
        sum.e[t] += term.e[t] + NUMBER_U * rows_size(sum.width, sum.v + t * sum.width);
    }
}

static void square(int64_t n, double *a, double *room)
{
    memset(room, 0, (size_t)(n * n) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++)
                room[i * n + j] += a[i * n + k] * a[k * n + j];
    memcpy(a, room, (size_t)(n * n) * sizeof(double));
}

static double norm_of(const number *w, int64_t out, int64_t in)
{
    const int64_t n = in;
    double *const g = calloc((size_t)(n * n), sizeof(double)), *const room = calloc((size_t)(n * n), sizeof(double));
    assert_true(g && room);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                g[i * n + j] += w[o * in + i].value * w[o * in + j].value;
    for (int i = 0; i < 3; i++)
        square(n, g, room);
    const double norm = pow(rows_size(n * n, g), 1.0 / 16);
    free(g);
    free(room);
    return norm;
}

dense dense_with(number *w, number *dw, int64_t out, int64_t in)
{
    return (dense){in, out, w, dw, NULL, NULL, norm_of(w, out, in)};
}

/* e(y) = |W| e(x) + |gamma_n sums of sizes|, and a rounding for the bias. */
rows dense_forward(const dense *d, rows x)
{
    const rows y = rows_make(x.count, d->out);
    for (int64_t t = 0; t < x.count; t++) {
        double rounded = 0;
        for (int64_t o = 0; o < d->out; o++) {
            double sum = 0, sizes = 0;
            for (int64_t i = 0; i < d->in; i++) {
                const double term = d->w[o * d->in + i].value * x.v[t * d->in + i];
                sum += term;
                sizes += fabs(term);
            }
            y.v[t * d->out + o] = sum + (d->b ? d->b[o].value : 0);
            rounded = hypot(rounded, number_gamma(d->in + 1) * (sizes + (d->b ? fabs(d->b[o].value) : 0)));
        }
        y.e[t] = d->norm * x.e[t] + rounded;
    }
    return y;
}

/* Adds the gradient of a row's products to that of an element: a is of one row, b of the other. */
static void add_products(number *sum, rows a, int64_t i, rows b, int64_t j)
{
    number added = {0, 0};
    double sizes = 0;
    for (int64_t t = 0; t < a.count; t++) {
        const double x = a.v[t * a.width + i], y = b.v[t * b.width + j];
        added.value += x * y;
        sizes += fabs(x * y);
        added.error += fabs(x) * b.e[t] + fabs(y) * a.e[t];
    }
    added.error += number_gamma(a.count) * sizes;
    number_add_to(sum, added);
}

/* Adds to the weight's gradients, and returns that of x: e(dx) = |W| e(dy) + |gamma_n sizes|. */
rows dense_backward(const dense *d, rows x, rows dy)
{
    const rows dx = rows_make(x.count, d->in);
    for (int64_t t = 0; t < x.count; t++) {
        double rounded = 0;
        for (int64_t i = 0; i < d->in; i++) {
            double sizes = 0;
            for (int64_t o = 0; o < d->out; o++) {
                const double term = d->w[o * d->in + i].value * dy.v[t * d->out + o];
                dx.v[t * d->in + i] += term;
                sizes += fabs(term);
            }
            rounded = hypot(rounded, number_gamma(d->out) * sizes);
        }
        dx.e[t] = d->norm * dy.e[t] + rounded;
    }
    for (int64_t o = 0; o < d->out; o++) {
        for (int64_t i = 0; i < d->in; i++)
            add_products(&d->dw[o * d->in + i], dy, o, x, i);
        for (int64_t t = 0; t < x.count && d->db; t++)
            number_add_to(&d->db[o], (number){dy.v[t * d->out + o], dy.e[t]});
    }
    return dx;
}

/* What norms need of a row: r = 1 / sqrt(mean x^2 + epsilon), and its relative rounding error, half
 * of that of the mean and some for the rest. */
typedef struct root {
    double r, rounding, most; /* most: of the weight */
} root;

static root root_of(const number *w, double epsilon, int64_t n, const double *x)
{
    const double squares = rows_size(n, x);
    root made = {1 / sqrt(squares * squares / (double)n + epsilon),
                 number_gamma(n + 2) / 2 + 2 * NUMBER_ULPS * NUMBER_U, 0};
    for (int64_t i = 0; i < n; i++)
        made.most = fmax(made.most, fabs(w[i].value));
    return made;
}

/* y = w x r. The Jacobian is w r (1 - h h^T / n) with h = x r, and |h|^2 <= n:
 * e(y) = |w| r e(x) + .. */
rows rows_norm(const number *w, double epsilon, rows x)
{
    const rows y = rows_make(x.count, x.width);
    for (int64_t t = 0; t < x.count; t++) {
        const double *const at = x.v + t * x.width;
        const root k = root_of(w, epsilon, x.width, at);
        for (int64_t i = 0; i < x.width; i++)
            y.v[t * x.width + i] = at[i] * k.r * w[i].value;
        y.e[t] = k.most * k.r * x.e[t] + k.rounding * rows_size(x.width, y.v + t * x.width);
    }
    return y;
}

/* With h = x r and g = w dy: dw = dy h, and dx = r z, z = g - h m, m = h g / n. The error of z is
 * that of g, as 1 - h h^T / n has norm 1, with e(h) (|m| + |g| |h| / n) and roundings; e(r) is at
 * most
 * r^2 e(x) / sqrt(n), with roundings. */
rows rows_norm_backward(const number *w, number *dw, double epsilon, rows x, rows dy)
{
    const int64_t n = x.width;
    const rows dx = rows_make(x.count, n), h = rows_make(x.count, n);
    double *const g = calloc((size_t)n, sizeof(double)), *const z = calloc((size_t)n, sizeof(double));
    assert_true(g && z);
    for (int64_t t = 0; t < x.count; t++) {
        const root k = root_of(w, epsilon, n, x.v + t * n);
        double *const ht = h.v + t * n, m = 0, sizes = 0;
        for (int64_t i = 0; i < n; i++) {
            ht[i] = x.v[t * n + i] * k.r;
            g[i] = w[i].value * dy.v[t * n + i];
            m += ht[i] * g[i] / (double)n;
            sizes += fabs(ht[i] * g[i]) / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            z[i] = g[i] - ht[i] * m;
            dx.v[t * n + i] = k.r * z[i];
        }
        const double hs = rows_size(n, ht), gs = rows_size(n, g), u = 4 * NUMBER_U;
        h.e[t] = k.r * x.e[t] + k.rounding * hs;
        const double ez = k.most * dy.e[t] + h.e[t] * (fabs(m) + gs * hs / (double)n) +
                          hs * number_gamma(n + 2) * sizes + u * (gs + hs * fabs(m));
        const double er = k.r * k.r * x.e[t] / sqrt((double)n) + k.rounding * k.r;
        dx.e[t] = k.r * ez + er * rows_size(n, z) + u * rows_size(n, dx.v + t * n);
    }
    for (int64_t i = 0; i < n; i++)
        add_products(&dw[i], dy, i, h, i);
    free(g);
    free(z);
    rows_free(h);
    return dx;
}

/* Turns halves of rows (tokens x heads, dim) to their positions, or back, in place: an angle lacks
 * some ulps of itself, and lengths stay. */
void rows_rope(double theta, int64_t length, int64_t heads, bool back, rows x)
{
    const int64_t half = x.width / 2;
    for (int64_t row = 0; row < x.count; row++) {
        const double position = (double)(row / heads % length);
        for (int64_t k = 0; k < half; k++) {
            double *const a = &x.v[row * x.width + k], *const b = a + half;
            const double turn = position * pow(theta, -2 * (double)k / (double)x.width);
            const double c = cos(turn), s = back ? -sin(turn) : sin(turn), first = *a * c - *b * s;
            *b = *b * c + *a * s;
            *a = first;
        }
        x.e[row] += (2 * NUMBER_ULPS + 4 + NUMBER_ULPS * position) * NUMBER_U * rows_size(x.width, x.v + row * x.width);
    }
}

/* Makes softmax of n numbers in place. Sums may be merged by maxima, with an exponential and two
 * products for each of n merges. */
void number_softmax(int64_t n, number *x)
{
    const number one = number_of(1);
    double most = x[0].value;
    for (int64_t i = 1; i < n; i++)
        most = fmax(most, x[i].value);
    for (int64_t i = 0; i < n; i++) {
        const double below = x[i].value - most;
        x[i] = number_exp((number){below, x[i].error + NUMBER_U * fabs(below)});
        x[i].error += (NUMBER_ULPS + 2) * number_gamma(n) * x[i].value;
    }
    const number inverse = number_inverse(number_dot(n, x, 1, &one, 0));
    for (int64_t i = 0; i < n; i++)
        x[i] = number_times(x[i], inverse);
}

/* The gradient of what softmax was made of, in place of that of softmax. */
void number_softmax_backward(int64_t n, const number *y, number *dy)
{
    const number sum = number_dot(n, y, 1, dy, 1);
    for (int64_t i = 0; i < n; i++)
        dy[i] = number_times(y[i], number_subtract(dy[i], sum));
}

/* The product of two rows: |a| e(b) + |b| e(a) + gamma_n sizes. */
number rows_inner(rows a, int64_t i, rows b, int64_t j)
{
    const int64_t n = a.width;
    const double *const x = a.v + i * n, *const y = b.v + j * n;
    double sum = 0, sizes = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += x[k] * y[k];
        sizes += fabs(x[k] * y[k]);
    }
    return (number){sum, rows_size(n, x) * b.e[j] + rows_size(n, y) * a.e[i] + number_gamma(n) * sizes};
}

/* Adds a row times a number to a row that is a sum of at most `terms` such: e = |f| e(row) +
 * e(f) |row|
 * and gamma_terms of the size of each. */
void rows_add_scaled(rows sum, int64_t i, number f, rows x, int64_t j, int64_t terms)
{
    const int64_t n = x.width;
    for (int64_t k = 0; k < n; k++)
        sum.v[i * n + k] += f.value * x.v[j * n + k];
    sum.e[i] +=
        fabs(f.value) * x.e[j] + (f.error + number_gamma(terms + 1) * fabs(f.value)) * rows_size(n, x.v + j * n);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu_slope(double x)
{
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
}

/* e(h) = max |silu'(g) u| e(g) + max |silu(g)| e(u), and roundings. */
rows gated_forward(gated *l, rows x)
{
    l->g = dense_forward(&l->gate, x);
    l->u = dense_forward(&l->up, x);
    l->h = rows_make(x.count, l->gate.out);
    for (int64_t t = 0; t < x.count; t++) {
        double by_g = 0, by_u = 0;
        for (int64_t i = t * l->h.width; i < (t + 1) * l->h.width; i++) {
            const double s = l->g.v[i] * sigmoid(l->g.v[i]);
            l->h.v[i] = s * l->u.v[i];
            by_g = fmax(by_g, fabs(silu_slope(l->g.v[i]) * l->u.v[i]));
            by_u = fmax(by_u, fabs(s));
        }
        l->h.e[t] = by_g * l->g.e[t] + by_u * l->u.e[t] +
                    (NUMBER_ULPS + 2) * NUMBER_U * rows_size(l->h.width, l->h.v + t * l->h.width);
    }
    return dense_forward(&l->down, l->h);
}

/* du = dh silu(g), dg = dh u silu'(g), and errors by their derivatives; |silu''| is at most 1/2. A
 * slope is a sum of two terms below 2, each with some ulps. */
rows gated_backward(const gated *l, rows x, rows dy)
{
    const rows dh = dense_backward(&l->down, l->h, dy), dg = rows_make(x.count, l->h.width),
               du = rows_make(x.count, l->h.width);
    const double ulps = (2 * NUMBER_ULPS + 6) * NUMBER_U;
    for (int64_t t = 0; t < x.count; t++) {
        double s = 0, su = 0, ds = 0, du_most = 0, d = 0;
        for (int64_t i = t * dh.width; i < (t + 1) * dh.width; i++) {
            const double of = l->g.v[i] * sigmoid(l->g.v[i]), slope = silu_slope(l->g.v[i]);
            du.v[i] = dh.v[i] * of;
            dg.v[i] = dh.v[i] * l->u.v[i] * slope;
            s = fmax(s, fabs(of));
            su = fmax(su, fabs(slope * l->u.v[i]));
            ds = fmax(ds, fabs(dh.v[i] * slope));
            du_most = fmax(du_most, fabs(dh.v[i] * l->u.v[i]));
            d = hypot(d, dh.v[i] * l->u.v[i]);
        }
        du.e[t] = s * dh.e[t] + ds * l->g.e[t] + ulps * rows_size(du.width, du.v + t * du.width);
        dg.e[t] = su * dh.e[t] + ds * l->u.e[t] + du_most / 2 * l->g.e[t] + 2 * ulps * d;
    }
    const rows dx = dense_backward(&l->gate, x, dg), other = dense_backward(&l->up, x, du);
    rows_add(dx, other);
    rows_free(dh);
    rows_free(dg);
    rows_free(du);
    rows_free(other);
    return dx;
}

void gated_free(const gated *l)
{
    rows_free(l->g);
    rows_free(l->u);
    rows_free(l->h);
}
