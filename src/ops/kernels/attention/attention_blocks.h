/* The loops of attention_kernels.h for one dtype. attention_kernels.c includes this file once for
 * f32 and once for f64, with the type REAL, the unsigned INTEGER of its bits, PIECE of them in a
 * vector, and the polynomial powers of 2^r; FUNCTION(name) is the name with the dtype in front. */

typedef REAL FUNCTION(piece) __attribute__((vector_size(VECTOR)));
typedef INTEGER FUNCTION(words) __attribute__((vector_size(VECTOR)));
#define piece FUNCTION(piece)
#define words FUNCTION(words)

static inline INLINE piece FUNCTION(load)(const REAL *at)
{
    piece value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline INLINE void FUNCTION(store)(piece value, REAL *to)
{
    memcpy(to, &value, sizeof value);
}

/* `a` where the condition holds, which is all ones or zeros in each lane, else `b`. */
static inline INLINE piece FUNCTION(choose)(words condition, piece a, piece b)
{
    return (piece)((condition & (words)a) | (~condition & (words)b));
}

static inline INLINE piece FUNCTION(larger)(piece a, piece b)
{
    return FUNCTION(choose)((words)(a > b), a, b);
}

/* 2^x for x of at most 0, or NaN: below the exponents of normal numbers it is 0. */
static inline INLINE piece FUNCTION(exp2)(piece x)
{
    const piece shifted = x + MAGIC, r = x - (shifted - MAGIC);
    piece p = FUNCTION(powers)[0] + (piece){0};
    UNROLLED_ALL for (size_t i = 1; i < sizeof FUNCTION(powers) / sizeof(REAL); i++) p = p * r + FUNCTION(powers)[i];
    const words power = ((words)shifted + BIAS) << MANTISSA;
    return (piece)(~(words)(x < LEAST_EXPONENT) & (words)(p * (piece)power));
}

/*
 * A product of matrices: c[i][j] is, or grows by, the sum over t of a[i][t] b[t][j]. Rows of a are
 * `a_step` elements apart; if `crossed` those of its transpose, whose columns i are contiguous.
 * The number of columns is a multiple of TSR_ATTENTION_PAD.
 */
struct FUNCTION(product) {
    int64_t rows, columns, terms;
    const REAL *a, *b;
    REAL *c;
    int64_t a_step, b_step, c_step;
    int crossed, adds;
};
typedef struct FUNCTION(product) FUNCTION(product);
#define product FUNCTION(product)

/* Rows i to i + rows - 1, and `vectors` vectors of columns from j on. Counts are constants, so that
 * sums stay in registers. */
static inline INLINE void FUNCTION(multiply_tile)(const product *m, int64_t i, int64_t j, int rows, int vectors,
                                                  int crossed)
{
    piece sum[2 * ROWS][VECTORS];
    const REAL *a[2 * ROWS];
    const REAL *b = m->b + j;
    REAL *const c = m->c + i * m->c_step + j;
    const int64_t terms = m->terms, a_step = m->a_step, b_step = m->b_step, c_step = m->c_step;
    UNROLLED for (int r = 0; r < rows; r++)
    {
        a[r] = crossed ? m->a + i + r : m->a + (i + r) * a_step;
        UNROLLED for (int v = 0; v < vectors; v++) sum[r][v] =
            m->adds ? FUNCTION(load)(c + r * c_step + v * PIECE) : (piece){0};
    }
    for (int64_t t = 0; t < terms; t++) {
        piece columns[VECTORS];
        UNROLLED for (int v = 0; v < vectors; v++) columns[v] = FUNCTION(load)(b + v * PIECE);
        UNROLLED for (int r = 0; r < rows; r++)
        {
            const REAL factor = crossed ? a[0][t * a_step + r] : a[r][t];
            UNROLLED for (int v = 0; v < vectors; v++) sum[r][v] += factor * columns[v];
        }
        b += b_step;
    }
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < vectors; v++)
        FUNCTION(store)(sum[r][v], c + r * c_step + v * PIECE);
}

/* With one vector of columns there are twice as many rows, so that enough sums are on their way. */
static inline INLINE void FUNCTION(multiply_columns)(const product *m, int64_t j, int rows, int vectors, int crossed)
{
    int64_t i = 0;
    for (; i + rows <= m->rows; i += rows)
        FUNCTION(multiply_tile)(m, i, j, rows, vectors, crossed);
    for (; i + 2 <= m->rows; i += 2)
        FUNCTION(multiply_tile)(m, i, j, 2, vectors, crossed);
    if (i < m->rows)
        FUNCTION(multiply_tile)(m, i, j, 1, vectors, crossed);
}

static inline INLINE void FUNCTION(multiply_all)(const product *m, int crossed)
{
    int64_t j = 0;
    for (; j + VECTORS * PIECE <= m->columns; j += (int64_t)VECTORS * PIECE)
        FUNCTION(multiply_columns)(m, j, ROWS, VECTORS, crossed);
    for (; j < m->columns; j += PIECE)
        FUNCTION(multiply_columns)(m, j, 2 * ROWS, 1, crossed);
}

static void FUNCTION(multiply)(const product *m)
{
    if (m->crossed)
        FUNCTION(multiply_all)(m, 1);
    else
        FUNCTION(multiply_all)(m, 0);
}

/* A tile becomes the products of a chunk's rows and a block's turned rows. */
static void FUNCTION(fill_tile)(const tsr_attention_block *b, const tsr_attention_chunk *c, tsr_attention_rows rows,
                                const void *turned, int64_t terms, void *tile)
{
    const product m = {.rows = c->count,
                       .columns = b->lanes,
                       .terms = terms,
                       .a = rows.at,
                       .a_step = rows.step,
                       .b = turned,
                       .b_step = TSR_ATTENTION_LANES,
                       .c = tile,
                       .c_step = TSR_ATTENTION_LANES};
    FUNCTION(multiply)(&m);
}

/* Adds the products of a tile's columns and a chunk's rows to the block's out. */
static void FUNCTION(add_to_out)(const tsr_attention_block *b, const tsr_attention_chunk *c, const void *tile,
                                 tsr_attention_rows rows, int64_t width)
{
    const product m = {.rows = b->used,
                       .columns = width,
                       .terms = c->count,
                       .a = tile,
                       .a_step = TSR_ATTENTION_LANES,
                       .b = rows.at,
                       .b_step = rows.step,
                       .c = b->out,
                       .c_step = width,
                       .crossed = 1,
                       .adds = 1};
    FUNCTION(multiply)(&m);
}

/* Adds the products of a tile's rows and a block's rows to rows of the chunk. */
static void FUNCTION(add_to_rows)(const tsr_attention_block *b, const tsr_attention_chunk *c, const void *tile,
                                  const void *rows, int64_t width, tsr_attention_rows to)
{
    const product m = {.rows = c->count,
                       .columns = width,
                       .terms = b->lanes,
                       .a = tile,
                       .a_step = TSR_ATTENTION_LANES,
                       .b = rows,
                       .b_step = width,
                       .c = to.at,
                       .c_step = to.step,
                       .adds = 1};
    FUNCTION(multiply)(&m);
}

static void FUNCTION(turn)(const REAL *from, int64_t lanes, int64_t width, REAL factor, REAL *to)
{
    for (int64_t lane = 0; lane < lanes; lane++)
        for (int64_t i = 0; i < width; i++)
            to[i * TSR_ATTENTION_LANES + lane] = from[lane * width + i] * factor;
}

static void FUNCTION(begin)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    REAL *const largest = b->largest;
    (void)c;
    FUNCTION(turn)(b->queries, b->lanes, b->width, (REAL)b->scale, b->turned_queries);
    if (b->douts)
        FUNCTION(turn)(b->douts, b->lanes, b->value_width, 1, b->turned_douts);
    for (int64_t lane = 0; lane < b->lanes; lane++)
        largest[lane] = -(REAL)INFINITY;
    memset(b->sum, 0, (size_t)b->lanes * sizeof(REAL));
    if (b->delta)
        memset(b->delta, 0, (size_t)b->lanes * sizeof(REAL));
}

/* Adds the mask to scores. */
static void FUNCTION(add_mask)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    const REAL *const mask = c->mask;
    for (int64_t key = 0; key < c->count && mask; key++) {
        REAL *const scores = (REAL *)c->weights + key * TSR_ATTENTION_LANES;
        for (int64_t lane = 0; lane < b->used; lane++)
            scores[lane] += mask[lane * TSR_ATTENTION_KEYS + key] * LOG2_E;
    }
}

/* Adds the mask, and gives scores of keys that a query does not attend -infinity. */
static void FUNCTION(mask)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    const piece never = -(REAL)INFINITY + (piece){0};
    FUNCTION(add_mask)(b, c);
    if (b->last_begin <= c->first && b->first_end >= c->first + c->count)
        return;
    for (int64_t lane = 0; lane < b->lanes; lane += PIECE) {
        words begin, end;
        REAL *at = (REAL *)c->weights + lane;
        for (int i = 0; i < PIECE; i++) {
            const int64_t from = b->begin[lane + i] - c->first, to = b->end[lane + i] - c->first;
            begin[i] = (INTEGER)(from < 0 ? 0 : from > c->count ? c->count : from);
            end[i] = (INTEGER)(to < 0 ? 0 : to > c->count ? c->count : to);
        }
        for (int64_t key = 0; key < c->count; key++, at += TSR_ATTENTION_LANES) {
            const words own = (INTEGER)key + (words){0}, attended = (words)(own >= begin) & (words)(own < end);
            FUNCTION(store)(FUNCTION(choose)(attended, FUNCTION(load)(at), never), at);
        }
    }
}

/* The exponent to which weights are relative: 0 where no key is attended. */
static inline INLINE piece FUNCTION(finite)(piece largest)
{
    return FUNCTION(choose)((words)(largest == -(REAL)INFINITY), (piece){0}, largest);
}

/* Makes weights from the scores of a vector of lanes, and returns their sum. */
static inline INLINE piece FUNCTION(weigh_lanes)(int64_t count, REAL *at, piece base)
{
    piece sum = {0};
    for (int64_t key = 0; key < count; key++, at += TSR_ATTENTION_LANES) {
        const piece weight = FUNCTION(exp2)(FUNCTION(load)(at) - base);
        sum += weight;
        FUNCTION(store)(weight, at);
    }
    return sum;
}

/* Makes weights from scores and adds them to the block's sums; `factors` are by what the sums of
 * earlier chunks shrink. */
static void FUNCTION(weigh)(const tsr_attention_block *b, const tsr_attention_chunk *c, REAL *factors)
{
    REAL *const largest = b->largest, *const sums = b->sum;
    FUNCTION(mask)(b, c);
    for (int64_t lane = 0; lane < b->lanes; lane += PIECE) {
        REAL *const tile = (REAL *)c->weights + lane;
        const piece before = FUNCTION(load)(largest + lane);
        piece top = before;
        for (int64_t key = 0; key < c->count; key++) {
            const piece score = FUNCTION(load)(tile + key * TSR_ATTENTION_LANES);
            top = FUNCTION(larger)(score, top);
        }
        const piece base = FUNCTION(finite)(top), factor = FUNCTION(exp2)(before - base);
        const piece sum = FUNCTION(weigh_lanes)(c->count, tile, base);
        FUNCTION(store)(FUNCTION(load)(sums + lane) * factor + sum, sums + lane);
        FUNCTION(store)(top, largest + lane);
        FUNCTION(store)(factor, factors + lane);
    }
}

static void FUNCTION(attend)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    REAL factors[TSR_ATTENTION_LANES];
    FUNCTION(fill_tile)(b, c, c->k, b->turned_queries, b->width, c->weights);
    FUNCTION(weigh)(b, c, factors);
    for (int64_t lane = 0; lane < b->used; lane++) {
        REAL *const row = (REAL *)b->out + lane * b->value_width;
        for (int64_t i = 0; i < b->value_width && factors[lane] != 1; i++)
            row[i] *= factors[lane];
    }
    FUNCTION(add_to_out)(b, c, c->weights, c->v, b->value_width);
}

static void FUNCTION(measure)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    REAL factors[TSR_ATTENTION_LANES], *const delta = b->delta;
    FUNCTION(fill_tile)(b, c, c->k, b->turned_queries, b->width, c->weights);
    FUNCTION(weigh)(b, c, factors);
    memcpy(c->largest, b->largest, (size_t)b->lanes * sizeof(REAL));
    FUNCTION(fill_tile)(b, c, c->v, b->turned_douts, b->value_width, c->slopes);
    for (int64_t lane = 0; lane < b->lanes; lane += PIECE) {
        const REAL *weight = (const REAL *)c->weights + lane, *slope = (const REAL *)c->slopes + lane;
        piece sum = {0};
        for (int64_t key = 0; key < c->count; key++, weight += TSR_ATTENTION_LANES, slope += TSR_ATTENTION_LANES)
            sum += FUNCTION(load)(weight) * FUNCTION(load)(slope);
        const piece before = FUNCTION(load)(delta + lane) * FUNCTION(load)(factors + lane);
        FUNCTION(store)(before + sum, delta + lane);
    }
}

static void FUNCTION(recall)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    const REAL *const largest = b->largest;
    FUNCTION(fill_tile)(b, c, c->k, b->turned_queries, b->width, c->weights);
    FUNCTION(mask)(b, c);
    for (int64_t lane = 0; lane < b->lanes; lane += PIECE) {
        const piece base = FUNCTION(finite)(FUNCTION(load)(largest + lane));
        FUNCTION(weigh_lanes)(c->count, (REAL *)c->weights + lane, base);
    }
    memcpy(c->largest, b->largest, (size_t)b->lanes * sizeof(REAL));
    FUNCTION(fill_tile)(b, c, c->v, b->turned_douts, b->value_width, c->slopes);
}

static void FUNCTION(differentiate)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    const REAL *const largest = b->largest, *const own = c->largest, *const inverse = b->sum, *const delta = b->delta;
    const REAL scale = (REAL)b->slope;
    for (int64_t lane = 0; lane < b->lanes; lane += PIECE) {
        REAL *weight = (REAL *)c->weights + lane, *slope = (REAL *)c->slopes + lane;
        const piece base = FUNCTION(finite)(FUNCTION(load)(largest + lane)), mean = FUNCTION(load)(delta + lane);
        const piece factor = FUNCTION(exp2)(FUNCTION(load)(own + lane) - base) * FUNCTION(load)(inverse + lane);
        for (int64_t key = 0; key < c->count; key++, weight += TSR_ATTENTION_LANES, slope += TSR_ATTENTION_LANES) {
            const piece p = FUNCTION(load)(weight) * factor;
            FUNCTION(store)(p, weight);
            FUNCTION(store)(p * (FUNCTION(load)(slope) - mean) * scale, slope);
        }
    }
    FUNCTION(add_to_rows)(b, c, c->weights, b->douts, b->value_width, c->dv);
    FUNCTION(add_to_rows)(b, c, c->slopes, b->queries, b->width, c->dk);
    FUNCTION(add_to_out)(b, c, c->slopes, c->k, b->width);
}

static void FUNCTION(finish)(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    REAL *const sums = b->sum, *const delta = b->delta, *const out = b->out;
    (void)c;
    for (int64_t lane = 0; lane < (delta ? b->lanes : b->used); lane++) {
        sums[lane] = sums[lane] == 0 ? 0 : 1 / sums[lane];
        if (delta)
            delta[lane] *= sums[lane];
        for (int64_t i = 0; i < b->value_width && !delta; i++)
            out[lane * b->value_width + i] *= sums[lane];
    }
}

static void FUNCTION(merge)(const void *records, int64_t stride, int ranks, int64_t count, void *largest, void *inverse,
                            void *values)
{
    REAL top = -(REAL)INFINITY, sum = 0, *const to = values;
    for (int rank = 0; rank < ranks; rank++) {
        const REAL *const record = (const REAL *)((const char *)records + rank * stride);
        top = record[0] > top ? record[0] : top;
    }
    memset(values, 0, (size_t)count * sizeof(REAL));
    for (int rank = 0; rank < ranks; rank++) {
        const REAL *const record = (const REAL *)((const char *)records + rank * stride);
        const piece weight = FUNCTION(exp2)(record[0] - FUNCTION(finite)(top + (piece){0}));
        sum += record[1] * weight[0];
        for (int64_t i = 0; i < count; i++)
            to[i] += record[2 + i] * weight[0];
    }
    sum = sum == 0 ? 0 : 1 / sum;
    for (int64_t i = 0; i < count; i++)
        to[i] *= sum;
    memcpy(largest, &top, sizeof top);
    memcpy(inverse, &sum, sizeof sum);
}

#undef piece
#undef words
#undef product
