/* Growing byte buffers outside the engine's heap, and the outbox: one JSON array of operations.
   An operation is written whole or not at all, so the outbox is valid JSON at any time. */

struct buffer {
    uint8_t *at;
    uint32_t len, cap, max;
    const char *limit;     /* what is broken when `max` is passed: a name ... */
    const char *message;   /* ... and a sentence */
};

static uint8_t outbox_fixed[OUTBOX_FIXED];
static struct buffer outbox = {outbox_fixed, 0, OUTBOX_FIXED, 0, NULL, NULL};

static void buffer_release(struct buffer *b)
{
    if (b->at != outbox_fixed)
        free(b->at);
    b->at = NULL;
    b->len = b->cap = 0;
}

/* Make room for `more` bytes; an error is pending when that fails. */
static no_inline bool buffer_grow(JSContext *ctx, struct buffer *b, uint32_t more)
{
    uint64_t want = (uint64_t)b->len + more;
    if (b->max && want > b->max) {
        throw_limit(ctx, b->limit, "%s (%u)", b->message, b->max);
        return false;
    }
    uint64_t cap = b->cap < 256 ? 256 : b->cap;
    while (cap < want)
        cap *= 2;
    if (b->max && cap > b->max)
        cap = b->max;
    uint8_t *at = NULL;
    if (cap < 0x7fffffff)
        at = b->at == outbox_fixed ? malloc(cap) : realloc(b->at, cap);
    if (!at) {
        heap_fail();
        JS_ThrowOutOfMemory(ctx);
        return false;
    }
    if (b->at == outbox_fixed)
        memcpy(at, outbox_fixed, b->len);
    b->at = at;
    b->cap = cap;
    return true;
}

static inline bool buffer_room(JSContext *ctx, struct buffer *b, uint32_t more)
{
    return likely(b->cap - b->len >= more) || buffer_grow(ctx, b, more);
}

static bool put(JSContext *ctx, struct buffer *b, const void *bytes, uint32_t n)
{
    if (!buffer_room(ctx, b, n))
        return false;
    memcpy(b->at + b->len, bytes, n);
    b->len += n;
    return true;
}

static inline bool put_char(JSContext *ctx, struct buffer *b, char c)
{
    if (!buffer_room(ctx, b, 1))
        return false;
    b->at[b->len++] = c;
    return true;
}

static bool put_text(JSContext *ctx, struct buffer *b, const char *text)
{
    return put(ctx, b, text, strlen(text));
}

static bool put_decimal(JSContext *ctx, struct buffer *b, uint32_t value)
{
    char digits[16];
    return put(ctx, b, digits, u32toa(digits, value));
}

static const char hex_digits[] = "0123456789abcdef";

/* A UTF-16 unit as JSON escapes it; returns the length. */
static uint32_t escape_text(char text[6], uint32_t c)
{
    static const char from[] = "\b\f\n\r\t\"\\", to[] = "bfnrt\"\\";
    const char *found = c && c < 0x80 ? strchr(from, c) : NULL;
    text[0] = '\\';
    text[1] = found ? to[found - from] : 'u';
    for (int i = 0; i < 4; i++)
        text[2 + i] = hex_digits[c >> (12 - 4 * i) & 15];
    return found ? 2 : 6;
}

static bool put_escape(JSContext *ctx, struct buffer *b, uint32_t c)
{
    char text[6];
    return put(ctx, b, text, escape_text(text, c));
}

static inline bool is_special(uint32_t c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

/* The high bits of those of eight bytes that a JSON string cannot hold as they are. */
static inline uint64_t special_bits(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101, highs = ones << 7;
    uint64_t quote = eight ^ ones * '"', slash = eight ^ ones * '\\';
    return (((eight - ones * 0x20) & ~eight) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs;
}

/* How many bytes at the start of `s` a JSON string holds as they are. */
static inline uint32_t plain_run(const uint8_t *s, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight, bits;
        memcpy(&eight, s + i, 8);
        bits = special_bits(eight);
        if (bits)
            return i + __builtin_ctzll(bits) / 8;
    }
    while (i < n && !is_special(s[i]))
        i++;
    return i;
}

/* UTF-8 text as it stands between the quotes of a JSON string. */
static bool put_inside(JSContext *ctx, struct buffer *b, const uint8_t *text, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t plain = plain_run(text + i, n - i);
        if (!put(ctx, b, text + i, plain))
            return false;
        i += plain;
        if (i < n && !put_escape(ctx, b, text[i]))
            return false;
    }
    return true;
}

/* UTF-8 text as a JSON string, with its quotes. */
static bool put_quoted(JSContext *ctx, struct buffer *b, const uint8_t *text, uint32_t n)
{
    return buffer_room(ctx, b, n + 2) && put_char(ctx, b, '"') && put_inside(ctx, b, text, n) &&
           put_char(ctx, b, '"');
}

/* One character of a script's string as UTF-8; half of a pair alone becomes U+FFFD. */
static inline uint32_t utf16_next(const uint16_t *at, uint32_t i, uint32_t n, uint32_t *used)
{
    uint32_t c = at[i];
    *used = 1;
    if (likely(c < 0xd800 || c > 0xdfff))
        return c;
    if (c < 0xdc00 && i + 1 < n && at[i + 1] >= 0xdc00 && at[i + 1] <= 0xdfff) {
        *used = 2;
        return 0x10000 + ((c - 0xd800) << 10) + (at[i + 1] - 0xdc00);
    }
    return 0xfffd;
}

static inline uint8_t *utf8_put(uint8_t *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = c;
    } else if (c < 0x800) {
        *to++ = 0xc0 | c >> 6;
        *to++ = 0x80 | (c & 63);
    } else if (c < 0x10000) {
        *to++ = 0xe0 | c >> 12;
        *to++ = 0x80 | (c >> 6 & 63);
        *to++ = 0x80 | (c & 63);
    } else {
        *to++ = 0xf0 | c >> 18;
        *to++ = 0x80 | (c >> 12 & 63);
        *to++ = 0x80 | (c >> 6 & 63);
        *to++ = 0x80 | (c & 63);
    }
    return to;
}

/* A string of the engine as UTF-8; with `quoted`, as a JSON string. */
static bool put_string8(JSContext *ctx, struct buffer *b, const uint8_t *s, uint32_t n, bool quoted)
{
    uint32_t i = 0;
    while (i < n) {
        uint32_t start = i; /* a run of plain ASCII is copied as it is */
        while (i < n && s[i] < 0x80 && !(quoted && is_special(s[i])))
            i++;
        if (i > start && !put(ctx, b, s + start, i - start))
            return false;
        if (i == n)
            break;
        if (s[i] < 0x80) {
            if (!put_escape(ctx, b, s[i++]))
                return false;
            continue;
        }
        if (!buffer_room(ctx, b, 2))
            return false;
        b->len = utf8_put(b->at + b->len, s[i++]) - b->at;
    }
    return true;
}

static bool put_string16(JSContext *ctx, struct buffer *b, const uint16_t *s, uint32_t n, bool quoted)
{
    for (uint32_t i = 0, used; i < n; i += used) {
        uint32_t c = utf16_next(s, i, n, &used);
        if (unlikely(quoted && is_special(c))) {
            if (!put_escape(ctx, b, c))
                return false;
            continue;
        }
        if (!buffer_room(ctx, b, 4))
            return false;
        b->len = utf8_put(b->at + b->len, c) - b->at;
    }
    return true;
}

static bool put_js_string(JSContext *ctx, struct buffer *b, JSValueConst v, bool quoted)
{
    JSValue flat = JS_UNDEFINED;
    if (JS_VALUE_GET_TAG(v) != JS_TAG_STRING) { /* a rope */
        flat = JS_ToString(ctx, v);
        if (JS_IsException(flat))
            return false;
        v = flat;
    }
    JSString *s = JS_VALUE_GET_STRING(v);
    bool ok = !quoted || put_char(ctx, b, '"');
    if (ok)
        ok = s->is_wide_char ? put_string16(ctx, b, str16(s), s->len, quoted)
                             : put_string8(ctx, b, str8(s), s->len, quoted);
    if (ok && quoted)
        ok = put_char(ctx, b, '"');
    JS_FreeValue(ctx, flat);
    return ok;
}

static bool put_atom(JSContext *ctx, struct buffer *b, JSAtom atom, bool quoted)
{
    if (__JS_AtomIsTaggedInt(atom)) {
        return (!quoted || put_char(ctx, b, '"')) && put_decimal(ctx, b, __JS_AtomToUInt32(atom)) &&
               (!quoted || put_char(ctx, b, '"'));
    }
    JSAtomStruct *s = ctx->rt->atom_array[atom];
    return put_js_string(ctx, b, JS_MKPTR(JS_TAG_STRING, s), quoted);
}

/* Begin an operation; `*mark` is where op_end goes back to when it cannot be written whole. */
static bool op_begin(JSContext *ctx, const char *name, uint32_t *mark)
{
    *mark = outbox.len;
    if (outbox.len > 1 && !put_char(ctx, &outbox, ','))
        return false;
    return put_text(ctx, &outbox, "[\"") && put_text(ctx, &outbox, name) && put_char(ctx, &outbox, '"');
}

/* End an operation well, or take it back. Between operations there is always room for the error
   that ends the run: it must be writable when there is no memory left. */
static bool op_end(JSContext *ctx, uint32_t mark, bool ok)
{
    ok = ok && put_char(ctx, &outbox, ']') && buffer_room(ctx, &outbox, OUTBOX_RESERVE);
    if (!ok)
        outbox.len = mark;
    return ok;
}
