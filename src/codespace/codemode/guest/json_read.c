/* JSON text from the host as values of the script, without loss: an integer that a double cannot
   hold exactly is a BigInt, every key is plain data (`__proto__` too).

   FAST_JSON remembers the shape of the last object at each depth: an object with the same keys in
   the same order (a list of rows, the same tool's next result) needs no look-up of its keys. */

enum { READ_DEPTH = 1000, SHAPE_DEPTH = 16 };

struct reader {
    JSContext *ctx;
    const uint8_t *at, *end; /* *end is NUL */
    JSValue *stack;          /* values of the containers being read */
    uint32_t used, cap;
    uint32_t depth;
    bool is_frozen; /* what is made cannot be changed */
    bool is_script; /* JSON.parse: numbers are doubles, and no more than JSON is taken */
};

static JSShape *row_shapes[SHAPE_DEPTH];

static JSValue read_value(struct reader *r);

static JSValue read_fail(struct reader *r)
{
    return JS_ThrowSyntaxError(r->ctx, "the value is not JSON");
}

static inline void skip_space(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')
        r->at++;
}

static int property_flags(struct reader *r)
{
    return r->is_frozen ? JS_PROP_ENUMERABLE : JS_PROP_C_W_E;
}

/* Objects are made with frozen properties; the engine has no other frozen arrays than slow ones. */
static JSValue finished(struct reader *r, JSValue v)
{
    if (!r->is_frozen || JS_IsException(v))
        return v;
    JSObject *p = JS_VALUE_GET_OBJ(v);
    if (p->class_id == JS_CLASS_OBJECT) {
        p->extensible = false;
        return v;
    }
    JSValue frozen = js_object_seal(r->ctx, JS_UNDEFINED, 1, vc(&v), 1);
    JS_FreeValue(r->ctx, v);
    return frozen;
}

static bool keep(struct reader *r, JSValue v)
{
    if (r->used == r->cap) {
        uint32_t cap = r->cap ? r->cap * 2 : 64;
        JSValue *stack = js_realloc(r->ctx, r->stack, cap * sizeof *stack);
        if (!stack) {
            JS_FreeValue(r->ctx, v);
            return false;
        }
        r->stack = stack;
        r->cap = cap;
    }
    r->stack[r->used++] = v;
    return true;
}

static void drop(struct reader *r, uint32_t base)
{
    while (r->used > base)
        JS_FreeValue(r->ctx, r->stack[--r->used]);
}

static int hex_value(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One escape, after its backslash; -1 when it is none. */
static int read_escape(struct reader *r)
{
    static const char from[] = "bfnrt\"\\/", to[] = "\b\f\n\r\t\"\\/";
    int c = *r->at++;
    if (c == 'u') {
        int code = 0;
        for (int i = 0; i < 4; i++) {
            int digit = hex_value(*r->at++);
            if (digit < 0)
                return -1;
            code = code << 4 | digit;
        }
        return code;
    }
    const char *found = c ? strchr(from, c) : NULL;
    return found ? (uint8_t)to[found - from] : -1;
}

/* A string with escapes: decoded to UTF-16, and narrowed by the engine where it can be. */
static JSValue read_escaped(struct reader *r, const uint8_t *start)
{
    StringBuffer sb;
    if (string_buffer_init(r->ctx, &sb, r->at - start + 16))
        return JS_EXCEPTION;
    r->at = start;
    while (r->at < r->end && *r->at != '"') {
        int c = *r->at;
        if (c < 0x20)
            goto fail;
        if (c == '\\') {
            r->at++;
            c = read_escape(r);
            if (c < 0 || string_buffer_putc16(&sb, c))
                goto fail;
        } else if (c < 0x80) {
            r->at++;
            if (string_buffer_putc8(&sb, c))
                goto fail;
        } else if (string_buffer_putc(&sb, utf8_decode(r->at, &r->at))) {
            goto fail;
        }
    }
    if (r->at >= r->end)
        goto fail;
    r->at++;
    return string_buffer_end(&sb);
fail:
    string_buffer_free(&sb);
    return read_fail(r);
}

/* The string after its opening quote. */
static JSValue read_string(struct reader *r)
{
    const uint8_t *start = r->at, *p = start;
    uint64_t all = 0;
    for (uint64_t eight, bits; r->end - p >= 8; p += 8) {
        memcpy(&eight, p, 8);
        bits = special_bits(eight);
        if (bits)
            break;
        all |= eight;
    }
    while (*p >= 0x20 && *p != '"' && *p != '\\')
        all |= *p++;
    r->at = p;
    if (unlikely(*p != '"'))
        return *p == '\\' ? read_escaped(r, start) : read_fail(r);
    r->at++;
    if (p == start)
        return js_empty_string(r->ctx->rt);
    if (!(all & 0x8080808080808080))
        return js_new_string8_len(r->ctx, (const char *)start, p - start);
    return JS_NewStringLen(r->ctx, (const char *)start, p - start);
}

static JSValue read_bigint(struct reader *r, const uint8_t *start)
{
    char digits[64], *text = digits;
    size_t n = r->at - start;
    if (n >= sizeof digits && !(text = js_malloc(r->ctx, n + 1)))
        return JS_EXCEPTION;
    memcpy(text, start, n);
    text[n] = 0;
    JSBigInt *big = js_bigint_from_string(r->ctx, text, 10);
    if (text != digits)
        js_free(r->ctx, text);
    return big ? JS_CompactBigInt(r->ctx, big) : JS_EXCEPTION;
}

static JSValue read_double(struct reader *r, const uint8_t *start)
{
    JSATODTempMem temp;
    return JS_NewFloat64(r->ctx, js_atod((const char *)start, NULL, 10, 0, &temp));
}

static JSValue read_number(struct reader *r)
{
    const uint8_t *start = r->at, *p = start;
    bool negative = *p == '-';
    uint64_t n = 0;
    p += negative;
    const uint8_t *digits = p;
    while (*p >= '0' && *p <= '9')
        n = n * 10 + (*p++ - '0');
    size_t count = p - digits;
    if (!count || (count > 1 && *digits == '0'))
        return read_fail(r);
    if (*p != '.' && *p != 'e' && *p != 'E') {
        r->at = p;
        if (unlikely(count > 18 || n > 9007199254740991))
            return r->is_script ? read_double(r, start) : read_bigint(r, start);
        if (negative)
            return n ? JS_NewInt64(r->ctx, -(int64_t)n) : js_float64(-0.0);
        return JS_NewInt64(r->ctx, n);
    }
    if (*p == '.') {
        if (*++p < '0' || *p > '9')
            return read_fail(r);
        while (*p >= '0' && *p <= '9')
            p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (*p < '0' || *p > '9')
            return read_fail(r);
        while (*p >= '0' && *p <= '9')
            p++;
    }
    r->at = p;
    return read_double(r, start);
}

static JSValue read_word(struct reader *r)
{
    static const struct {
        const char *text;
        int kind;
    } words[] = {{"true", 0}, {"false", 1}, {"null", 2}, {"NaN", 3}, {"Infinity", 4}, {"-Infinity", 5}};
    for (int i = 0; i < (r->is_script ? 3 : countof(words)); i++) {
        size_t n = strlen(words[i].text);
        if (r->end - r->at < n || memcmp(r->at, words[i].text, n))
            continue;
        r->at += n;
        switch (words[i].kind) {
        case 0:
            return JS_TRUE;
        case 1:
            return JS_FALSE;
        case 2:
            return JS_NULL;
        case 3:
            return JS_NAN;
        case 4:
            return js_float64(INFINITY);
        default:
            return js_float64(-INFINITY);
        }
    }
    return read_fail(r);
}

static JSValue read_array(struct reader *r)
{
    JSContext *ctx = r->ctx;
    uint32_t base = r->used;
    skip_space(r);
    if (*r->at == ']') {
        r->at++;
        return JS_NewArray(ctx);
    }
    for (;;) {
        JSValue item = read_value(r);
        if (JS_IsException(item) || !keep(r, item))
            goto fail;
        skip_space(r);
        if (*r->at == ']')
            break;
        if (*r->at++ != ',') {
            read_fail(r);
            goto fail;
        }
    }
    r->at++;
    uint32_t count = r->used - base;
    JSValue array = JS_NewArray(ctx);
    if (JS_IsException(array))
        goto fail;
    JSObject *p = JS_VALUE_GET_OBJ(array);
    if (expand_fast_array(ctx, p, count)) {
        JS_FreeValue(ctx, array);
        goto fail;
    }
    memcpy(p->u.array.u.values, r->stack + base, count * sizeof(JSValue));
    p->u.array.count = count;
    p->prop[0].u.value = js_int32(count);
    r->used = base;
    return array;
fail:
    drop(r, base);
    return JS_EXCEPTION;
}

static JSAtom read_key(struct reader *r)
{
    JSValue key = read_string(r);
    if (JS_IsException(key))
        return JS_ATOM_NULL;
    JSAtom atom = JS_NewAtomStr(r->ctx, JS_VALUE_GET_STRING(key));
    if (atom == JS_ATOM_NULL && JS_IsUninitialized(r->ctx->rt->current_exception))
        JS_ThrowOutOfMemory(r->ctx);
    return atom;
}

/* Define one property of an object that only we know yet. The last of equal keys stays. */
static bool define(struct reader *r, JSObject *p, JSAtom key, JSValue v)
{
    JSProperty *pr;
    if (unlikely(find_own_property(&pr, p, key))) {
        set_value(r->ctx, &pr->u.value, v);
        return true;
    }
    pr = add_property(r->ctx, p, key, property_flags(r));
    if (!pr) {
        JS_FreeValue(r->ctx, v);
        return false;
    }
    pr->u.value = v;
    return true;
}

static bool read_colon(struct reader *r)
{
    skip_space(r);
    if (*r->at++ != ':') {
        read_fail(r);
        return false;
    }
    return true;
}

/* 1: another property follows; 0: the object ended; -1: an error is pending. */
static int read_separator(struct reader *r)
{
    skip_space(r);
    int c = *r->at++;
    if (c == '}')
        return 0;
    if (c == ',') {
        skip_space(r);
        if (*r->at == '"') {
            r->at++;
            return 1;
        }
    }
    read_fail(r);
    return -1;
}

/* The rest of an object, key by key, after the opening quote of a key. */
static bool read_rest(struct reader *r, JSObject *p)
{
    for (;;) {
        JSAtom key = read_key(r);
        if (key == JS_ATOM_NULL)
            return false;
        JSValue v = read_colon(r) ? read_value(r) : JS_EXCEPTION;
        bool ok = !JS_IsException(v) && define(r, p, key, v);
        JS_FreeAtom(r->ctx, key);
        if (!ok)
            return false;
        int more = read_separator(r);
        if (more <= 0)
            return more == 0;
    }
}

#ifdef FAST_JSON
/* True, and past the key, when the next key is `atom`. A key with an escape is never it. */
static inline bool key_is(struct reader *r, JSAtom atom)
{
    JSAtomStruct *s = r->ctx->rt->atom_array[atom];
    size_t n = s->len;
    if ((size_t)(r->end - r->at) <= n || r->at[n] != '"' || memcmp(r->at, str8(s), n))
        return false;
    r->at += n + 1;
    return true;
}

static bool may_remember(JSShape *sh, JSContext *ctx, int flags)
{
    if (!sh->is_hashed || sh->deleted_prop_count || sh->prop_count > 64 || !sh->prop_count)
        return false;
    for (int i = 0; i < sh->prop_count; i++) {
        JSShapeProperty *prs = &get_shape_prop(sh)[i];
        if (__JS_AtomIsTaggedInt(prs->atom) || prs->flags != flags)
            return false;
        JSAtomStruct *s = ctx->rt->atom_array[prs->atom];
        if (s->is_wide_char)
            return false;
        for (uint32_t j = 0; j < s->len; j++) {
            if (is_special(str8(s)[j]) || str8(s)[j] >= 0x80)
                return false;
        }
    }
    return true;
}

static void remember(struct reader *r, JSObject *p)
{
    if (r->depth >= SHAPE_DEPTH || row_shapes[r->depth] == p->shape || !may_remember(p->shape, r->ctx, property_flags(r)))
        return;
    js_free_shape_null(r->ctx->rt, row_shapes[r->depth]);
    row_shapes[r->depth] = js_dup_shape(p->shape);
}

/* Read values while the keys are those of `sh`, in its order. Returns how many; `*more` tells
   whether another key follows, -1 for an error. */
static int read_expected(struct reader *r, JSShape *sh, int *more)
{
    int n = 0;
    *more = 1;
    while (n < sh->prop_count && key_is(r, get_shape_prop(sh)[n].atom)) {
        JSValue v = read_colon(r) ? read_value(r) : JS_EXCEPTION;
        if (JS_IsException(v) || !keep(r, v)) {
            *more = -1;
            return n;
        }
        n++;
        *more = read_separator(r);
        if (*more != 1)
            break;
    }
    return n;
}

/* An object from the values on the stack, which are those of the first `n` keys of `sh`. */
static JSValue from_shape(struct reader *r, JSShape *sh, int n, uint32_t base)
{
    JSValue object;
    if (n == sh->prop_count) {
        object = JS_NewObjectFromShape(r->ctx, js_dup_shape(sh), JS_CLASS_OBJECT, NULL);
        if (!JS_IsException(object)) {
            JSObject *p = JS_VALUE_GET_OBJ(object);
            for (int i = 0; i < n; i++)
                p->prop[i].u.value = r->stack[base + i];
            r->used = base;
        }
        return object;
    }
    object = JS_NewObject(r->ctx);
    for (int i = 0; !JS_IsException(object) && i < n; i++) {
        JSValue v = r->stack[base + i];
        r->stack[base + i] = JS_UNDEFINED;
        if (!define(r, JS_VALUE_GET_OBJ(object), get_shape_prop(sh)[i].atom, v)) {
            JS_FreeValue(r->ctx, object);
            object = JS_EXCEPTION;
        }
    }
    drop(r, base);
    return object;
}

static JSValue read_object_fast(struct reader *r, int *more)
{
    JSShape *sh = r->depth < SHAPE_DEPTH ? row_shapes[r->depth] : NULL;
    JSObject *base_proto = JS_VALUE_GET_OBJ(r->ctx->class_proto[JS_CLASS_OBJECT]);
    *more = 1;
    if (!sh || !sh->is_hashed || sh->proto != base_proto || get_shape_prop(sh)->flags != property_flags(r))
        return JS_NewObject(r->ctx);
    uint32_t base = r->used;
    sh = js_dup_shape(sh); /* an object within may put another shape in its place */
    int n = read_expected(r, sh, more);
    JSValue object = *more < 0 ? JS_EXCEPTION : from_shape(r, sh, n, base);
    drop(r, base);
    js_free_shape(r->ctx->rt, sh);
    return object;
}
#else
static void remember(struct reader *r, JSObject *p)
{
}

static JSValue read_object_fast(struct reader *r, int *more)
{
    *more = 1;
    return JS_NewObject(r->ctx);
}
#endif

static JSValue read_object(struct reader *r)
{
    int more;
    skip_space(r);
    if (*r->at == '}') {
        r->at++;
        return JS_NewObject(r->ctx);
    }
    if (*r->at++ != '"')
        return read_fail(r);
    JSValue object = read_object_fast(r, &more);
    if (JS_IsException(object))
        return object;
    if (more > 0 && !read_rest(r, JS_VALUE_GET_OBJ(object))) {
        JS_FreeValue(r->ctx, object);
        return JS_EXCEPTION;
    }
    remember(r, JS_VALUE_GET_OBJ(object));
    return object;
}

static JSValue read_container(struct reader *r, bool is_array)
{
    if (r->depth >= READ_DEPTH || js_check_stack_overflow(r->ctx->rt, 0)) {
        if (r->is_script)
            return read_fail(r);
        return throw_limit(r->ctx, "nesting", "the value is nested deeper than %d levels", READ_DEPTH);
    }
    r->at++;
    r->depth++;
    JSValue v = finished(r, is_array ? read_array(r) : read_object(r));
    r->depth--;
    return v;
}

static JSValue read_value(struct reader *r)
{
    skip_space(r);
    switch (*r->at) {
    case '"':
        r->at++;
        return read_string(r);
    case '{':
        return read_container(r, false);
    case '[':
        return read_container(r, true);
    case '-':
        if (r->at[1] == 'I')
            return read_word(r);
        return read_number(r);
    case '0': case '1': case '2': case '3': case '4':
    case '5': case '6': case '7': case '8': case '9':
        return read_number(r);
    default:
        return read_word(r);
    }
}

static JSValue read_whole(struct reader *r)
{
    JSValue v = read_value(r);
    skip_space(r);
    if (!JS_IsException(v) && r->at != r->end) {
        JS_FreeValue(r->ctx, v);
        v = read_fail(r);
    }
    js_free(r->ctx, r->stack);
    return v;
}

/* The value of a JSON text that a NUL follows. */
static JSValue json_read(JSContext *ctx, const uint8_t *text, uint32_t n)
{
    struct reader r = {.ctx = ctx, .at = text, .end = text + n};
    return read_whole(&r);
}

/* The same, deeply frozen. */
static JSValue json_read_frozen(JSContext *ctx, const uint8_t *text, uint32_t n)
{
    struct reader r = {.ctx = ctx, .at = text, .end = text + n, .is_frozen = true};
    return read_whole(&r);
}
