/* A script's own JSON.stringify and JSON.parse, the short way: plain data without replacer, indent
   or reviver. No code of the script runs on it, so whatever is unusual (a toJSON, an accessor, a
   proxy, a cycle, bad syntax) is given to the engine from the start, as if nothing had happened.
   A differential test holds the two ways together. */

enum { PLAIN_DEPTH = 200, KNOWN_SHAPES = 16 };

struct plain {
    JSContext *ctx;
    StringBuffer text;
    JSObject *proto;                /* the last whose chain had no toJSON */
    JSShape *shapes[KNOWN_SHAPES];  /* by depth: the last that were plain */
};

static bool write_plain(struct plain *w, JSValueConst v, uint32_t depth);

static inline bool plain_bytes(struct plain *w, const void *bytes, uint32_t n)
{
    StringBuffer *s = &w->text;
    if (unlikely(s->is_wide_char || s->size - s->len < (int)n))
        return !string_buffer_write8(s, bytes, n);
    memcpy(str8(s->str) + s->len, bytes, n);
    s->len += n;
    return true;
}

static inline bool plain_char(struct plain *w, char c)
{
    return plain_bytes(w, &c, 1);
}

static bool plain_escape(struct plain *w, uint32_t c)
{
    char text[6];
    return plain_bytes(w, text, escape_text(text, c));
}

static bool plain_quoted8(struct plain *w, const uint8_t *s, uint32_t n)
{
    for (uint32_t i = 0;;) {
        uint32_t run = plain_run(s + i, n - i);
        if (run && !plain_bytes(w, s + i, run))
            return false;
        i += run;
        if (i == n)
            return true;
        if (!plain_escape(w, s[i++]))
            return false;
    }
}

static bool plain_quoted16(struct plain *w, const uint16_t *s, uint32_t n)
{
    for (uint32_t i = 0, start = 0;; i++) {
        bool half = i < n && s[i] >= 0xd800 && s[i] <= 0xdfff;
        if (half && s[i] < 0xdc00 && i + 1 < n && s[i + 1] >= 0xdc00 && s[i + 1] <= 0xdfff) {
            i++;
            continue;
        }
        if (i < n && !half && !is_special(s[i]))
            continue;
        if (i > start && string_buffer_write16(&w->text, s + start, i - start))
            return false;
        if (i == n)
            return true;
        if (!plain_escape(w, s[i]))
            return false;
        start = i + 1;
    }
}

static bool plain_quoted(struct plain *w, JSString *s)
{
    return plain_char(w, '"') &&
           (s->is_wide_char ? plain_quoted16(w, str16(s), s->len) : plain_quoted8(w, str8(s), s->len)) &&
           plain_char(w, '"');
}

static bool plain_string(struct plain *w, JSValueConst v)
{
    if (likely(JS_VALUE_GET_TAG(v) == JS_TAG_STRING))
        return plain_quoted(w, JS_VALUE_GET_STRING(v));
    JSValue flat = JS_ToString(w->ctx, v);
    bool ok = !JS_IsException(flat) && plain_quoted(w, JS_VALUE_GET_STRING(flat));
    JS_FreeValue(w->ctx, flat);
    return ok;
}

static bool plain_double(struct plain *w, double d)
{
    char digits[64];
    JSDTOATempMem temp;
    if (!isfinite(d))
        return plain_bytes(w, "null", 4);
    if (d == (double)(int64_t)d && fabs(d) < 9007199254740992.0)
        return plain_bytes(w, digits, i64toa(digits, (int64_t)d));
    return plain_bytes(w, digits, js_dtoa(digits, d, 10, 0, JS_DTOA_FORMAT_FREE, &temp));
}

/* What JSON.stringify leaves out of objects, and makes null in arrays. */
static bool is_left_out(JSContext *ctx, JSValueConst v)
{
    int tag = JS_VALUE_GET_TAG(v);
    return tag == JS_TAG_UNDEFINED || tag == JS_TAG_SYMBOL || (tag == JS_TAG_OBJECT && JS_IsFunction(ctx, v));
}

static bool has_to_json(struct plain *w, JSObject *p)
{
    if (find_own_property1(p, JS_ATOM_toJSON))
        return true;
    for (JSObject *up = p->shape->proto; up && up != w->proto; up = up->shape->proto) {
        if ((up->is_exotic && up->class_id != JS_CLASS_ARRAY) || find_own_property1(up, JS_ATOM_toJSON))
            return true;
    }
    w->proto = p->shape->proto;
    return false;
}

/* True when the properties, in the order of the shape, are what Object.keys gives. */
static bool is_ordered(JSObject *p)
{
    JSShape *sh = p->shape;
    JSShapeProperty *prs = get_shape_prop(sh);
    if (p->is_exotic || sh->deleted_prop_count)
        return false;
    for (int i = 0; i < sh->prop_count; i++, prs++) {
        if (__JS_AtomIsTaggedInt(prs->atom) || (prs->flags & JS_PROP_TMASK) != JS_PROP_NORMAL)
            return false;
    }
    return true;
}

static bool plain_object(struct plain *w, JSObject *p, uint32_t depth)
{
    JSContext *ctx = w->ctx;
    JSShape *sh = p->shape;
    bool first = true;
    if (depth >= KNOWN_SHAPES || w->shapes[depth] != sh) {
        if (!is_ordered(p) || has_to_json(w, p))
            return false;
        if (depth < KNOWN_SHAPES)
            w->shapes[depth] = sh;
    }
    if (!plain_char(w, '{'))
        return false;
    for (int i = 0; i < sh->prop_count; i++) {
        JSShapeProperty *prs = &get_shape_prop(sh)[i];
        JSValueConst v = p->prop[i].u.value;
        JSAtomStruct *key = ctx->rt->atom_array[prs->atom];
        if (!(prs->flags & JS_PROP_ENUMERABLE) || key->atom_type != JS_ATOM_TYPE_STRING || is_left_out(ctx, v))
            continue;
        if (!(first || plain_char(w, ',')) || !plain_quoted(w, key) || !plain_char(w, ':') ||
            !write_plain(w, v, depth + 1))
            return false;
        first = false;
    }
    return plain_char(w, '}');
}

static bool plain_array(struct plain *w, JSObject *p, uint32_t depth)
{
    JSValueConst length = p->prop[0].u.value;
    if (!p->fast_array || JS_VALUE_GET_TAG(length) != JS_TAG_INT ||
        JS_VALUE_GET_INT(length) != p->u.array.count || has_to_json(w, p) || !plain_char(w, '['))
        return false;
    for (uint32_t i = 0; i < p->u.array.count; i++) {
        JSValueConst v = p->u.array.u.values[i];
        if (i && !plain_char(w, ','))
            return false;
        if (!(is_left_out(w->ctx, v) ? plain_bytes(w, "null", 4) : write_plain(w, v, depth + 1)))
            return false;
    }
    return plain_char(w, ']');
}

static bool write_plain(struct plain *w, JSValueConst v, uint32_t depth)
{
    char digits[16];
    switch (JS_VALUE_GET_NORM_TAG(v)) {
    case JS_TAG_STRING:
    case JS_TAG_STRING_ROPE:
        return plain_string(w, v);
    case JS_TAG_INT:
        return plain_bytes(w, digits, i32toa(digits, JS_VALUE_GET_INT(v)));
    case JS_TAG_FLOAT64:
        return plain_double(w, JS_VALUE_GET_FLOAT64(v));
    case JS_TAG_BOOL:
        return JS_VALUE_GET_BOOL(v) ? plain_bytes(w, "true", 4) : plain_bytes(w, "false", 5);
    case JS_TAG_NULL:
        return plain_bytes(w, "null", 4);
    case JS_TAG_OBJECT:
        if (depth >= PLAIN_DEPTH)
            return false;
        JSObject *p = JS_VALUE_GET_OBJ(v);
        if (p->class_id == JS_CLASS_OBJECT)
            return plain_object(w, p, depth);
        return p->class_id == JS_CLASS_ARRAY && plain_array(w, p, depth);
    default:
        return false;
    }
}

/* JSON.stringify(value) */
static JSValue json_stringify(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    if (JS_VALUE_GET_TAG(argv[0]) != JS_TAG_OBJECT || !JS_IsUndefined(argv[1]) || !JS_IsUndefined(argv[2]))
        return js_json_stringify(ctx, this_val, argc, argv);
    struct plain w = {.ctx = ctx};
    if (string_buffer_init(ctx, &w.text, 128))
        return JS_EXCEPTION;
    if (write_plain(&w, argv[0], 0))
        return string_buffer_end(&w.text);
    string_buffer_free(&w.text);
    if (!JS_IsUninitialized(ctx->rt->current_exception))
        return JS_EXCEPTION; /* no memory */
    return js_json_stringify(ctx, this_val, argc, argv);
}

/* JSON.parse(text) */
static JSValue json_parse(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    size_t n;
    if (!is_text(argv[0]) || JS_IsFunction(ctx, argv[1]))
        return js_json_parse(ctx, this_val, argc, argv);
    const char *text = JS_ToCStringLen(ctx, &n, argv[0]);
    if (!text)
        return JS_EXCEPTION;
    const uint8_t *at = (const uint8_t *)text;
    struct reader r = {.ctx = ctx, .at = at, .end = at + n, .is_script = true};
    JSValue v = read_whole(&r);
    JS_FreeCString(ctx, text);
    if (!JS_IsException(v))
        return v;
    forget_exception(ctx);
    return js_json_parse(ctx, this_val, argc, argv);
}
