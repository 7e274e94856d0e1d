/* Values that leave the VM, as JSON without loss: BigInt as an integer, undefined properties
   dropped, and a TypeError that names the path for whatever JSON cannot hold. toJSON is honoured.

   FAST_JSON adds a short way for plain objects and arrays, whose properties are read where they
   stand. The long way alone gives the same text; a differential test holds them together. */

/* One level of the value being written: the chain gives the path, and finds cycles. */
struct level {
    struct level *up;
    JSObject *object;
    JSAtom key;      /* of an object's property, else JS_ATOM_NULL ... */
    uint32_t index;  /* ... and an array's index is here */
};

struct writer {
    JSContext *ctx;
    struct buffer *out;
    const char *root; /* how the path begins: "arguments", "result" */
    struct level *top;
    uint32_t depth;
};

static bool write_value(struct writer *w, JSValueConst v);

/* The path to the value being written, cut at the front when it is long. */
static void path_text(struct writer *w, char *out, size_t size)
{
    struct level *chain[12];
    int n = 0;
    struct level *l = w->top;
    for (; l && n < countof(chain); l = l->up)
        chain[n++] = l;
    size_t len = snprintf(out, size, "%s%s", w->root, l ? "…" : "");
    while (n-- > 0 && len + 8 < size) {
        if (chain[n]->key == JS_ATOM_NULL) {
            len += snprintf(out + len, size - len, "[%u]", chain[n]->index);
        } else {
            const char *key = JS_AtomToCString(w->ctx, chain[n]->key);
            len += snprintf(out + len, size - len, ".%.40s", key ? key : "?");
            JS_FreeCString(w->ctx, key);
        }
    }
}

static bool refuse(struct writer *w, const char *what)
{
    char path[160];
    path_text(w, path, sizeof path);
    JS_ThrowTypeError(w->ctx, "%s is %s", path, what);
    return false;
}

static bool write_double(struct writer *w, double d)
{
    if (!isfinite(d))
        return refuse(w, isnan(d) ? "NaN, which JSON cannot hold" : "infinite, which JSON cannot hold");
    if (!buffer_room(w->ctx, w->out, 64))
        return false;
    char *to = (char *)w->out->at + w->out->len;
    JSDTOATempMem temp;
    if (d == (double)(int64_t)d && fabs(d) < 9007199254740992.0)
        w->out->len += i64toa(to, (int64_t)d);
    else
        w->out->len += js_dtoa(to, d, 10, 0, JS_DTOA_FORMAT_FREE, &temp);
    return true;
}

static bool write_bigint(struct writer *w, JSValueConst v)
{
    if (bigint_is_long(v))
        return refuse(w, "a BigInt of more than 4000 digits");
    JSValue text = JS_ToString(w->ctx, v);
    if (JS_IsException(text))
        return false;
    bool ok = put_js_string(w->ctx, w->out, text, false);
    JS_FreeValue(w->ctx, text);
    return ok;
}

/* The key of the value being written, as toJSON gets it. */
static JSValue key_value(struct writer *w)
{
    if (!w->top)
        return js_empty_string(w->ctx->rt);
    if (w->top->key != JS_ATOM_NULL)
        return JS_AtomToString(w->ctx, w->top->key);
    char digits[16];
    return js_new_string8_len(w->ctx, digits, u32toa(digits, w->top->index));
}

static bool is_plain(JSContext *ctx, JSObject *p)
{
    if (p->class_id != JS_CLASS_OBJECT && p->class_id != JS_CLASS_ARRAY)
        return false;
    JSObject *base = JS_VALUE_GET_OBJ(ctx->class_proto[JS_CLASS_OBJECT]);
    JSObject *proto = p->shape->proto;
    if (proto && proto != base) {
        if (proto != JS_VALUE_GET_OBJ(ctx->class_proto[JS_CLASS_ARRAY]) || proto->shape->proto != base ||
            find_own_property1(proto, JS_ATOM_toJSON))
            return false;
    }
    return !find_own_property1(p, JS_ATOM_toJSON) && (!proto || !find_own_property1(base, JS_ATOM_toJSON));
}

/* What toJSON makes of an object; the object itself, with a new reference, when it has none. */
static JSValue without_to_json(struct writer *w, JSValueConst v)
{
    JSContext *ctx = w->ctx;
    if (is_plain(ctx, JS_VALUE_GET_OBJ(v)))
        return js_dup(v);
    JSValue method = JS_GetProperty(ctx, v, JS_ATOM_toJSON);
    if (JS_IsException(method) || !JS_IsFunction(ctx, method)) {
        bool failed = JS_IsException(method);
        JS_FreeValue(ctx, method);
        return failed ? JS_EXCEPTION : js_dup(v);
    }
    JSValue key = key_value(w);
    JSValue made = JS_IsException(key) ? JS_EXCEPTION : JS_Call(ctx, method, v, 1, vc(&key));
    JS_FreeValue(ctx, key);
    JS_FreeValue(ctx, method);
    return made;
}

/* Why an object is not JSON, or NULL when it may be written. */
static const char *why_not(JSContext *ctx, JSObject *p)
{
    switch (p->class_id) {
    case JS_CLASS_PROMISE:
        return "a Promise; await it first";
    case JS_CLASS_MAP:
        return "a Map; use Object.fromEntries(map) or [...map]";
    case JS_CLASS_SET:
        return "a Set; use [...set]";
    case JS_CLASS_WEAKMAP:
    case JS_CLASS_WEAKSET:
    case JS_CLASS_WEAK_REF:
    case JS_CLASS_FINALIZATION_REGISTRY:
        return "a weak collection, which JSON cannot hold";
    case JS_CLASS_SYMBOL:
        return "a symbol, which JSON cannot hold";
    case JS_CLASS_REGEXP:
        return "a RegExp; use String(regexp)";
    case JS_CLASS_ARRAY_BUFFER:
    case JS_CLASS_DATAVIEW:
        return "an ArrayBuffer; use Array.from(new Uint8Array(buffer))";
    case JS_CLASS_OBJECT:
    case JS_CLASS_ARRAY:
    case JS_CLASS_ERROR:
    case JS_CLASS_ARGUMENTS:
    case JS_CLASS_MAPPED_ARGUMENTS:
    case JS_CLASS_PROXY:
    case JS_CLASS_DATE:
    case JS_CLASS_DOM_EXCEPTION:
        return NULL;
    }
    if (is_typed_array(p->class_id))
        return "a typed array; use Array.from(it)";
    if ((p->class_id >= JS_CLASS_ITERATOR && p->class_id <= JS_CLASS_GENERATOR) ||
        p->class_id == JS_CLASS_ASYNC_GENERATOR)
        return "an iterator; use [...it]";
    return NULL;
}

static bool write_key(struct writer *w, JSAtom key, bool *first)
{
    if (!*first && !put_char(w->ctx, w->out, ','))
        return false;
    *first = false;
    return put_atom(w->ctx, w->out, key, true) && put_char(w->ctx, w->out, ':');
}

/* One property: nothing for undefined, also for an undefined that toJSON made. */
static bool write_property(struct writer *w, JSAtom key, JSValueConst v, bool *first)
{
    w->top->key = key;
    if (JS_IsUndefined(v))
        return true;
    if (JS_VALUE_GET_TAG(v) != JS_TAG_OBJECT)
        return write_key(w, key, first) && write_value(w, v);
    JSValue made = without_to_json(w, v);
    bool ok = !JS_IsException(made);
    if (ok && !JS_IsUndefined(made))
        ok = write_key(w, key, first) && write_value(w, made);
    JS_FreeValue(w->ctx, made);
    return ok;
}

static bool write_listed(struct writer *w, JSValueConst v, bool *first)
{
    JSContext *ctx = w->ctx;
    JSPropertyEnum *keys;
    uint32_t count, i;
    bool ok = true;
    if (JS_GetOwnPropertyNames(ctx, &keys, &count, v, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY))
        return false;
    for (i = 0; ok && i < count; i++) {
        JSValue item = js_poll_interrupts(ctx) ? JS_EXCEPTION : JS_GetProperty(ctx, v, keys[i].atom);
        ok = !JS_IsException(item) && write_property(w, keys[i].atom, item, first);
        JS_FreeValue(ctx, item);
    }
    JS_FreePropertyEnum(ctx, keys, count);
    return ok;
}

#ifdef FAST_JSON
/* True when the enumerable properties, in the order of the shape, are what Object.keys gives and
   reading them runs no code. A hashed shape is never changed while we hold a reference to it. */
static bool is_simple(JSObject *p)
{
    JSShape *sh = p->shape;
    if (p->class_id != JS_CLASS_OBJECT || p->is_exotic || !sh->is_hashed || sh->deleted_prop_count)
        return false;
    JSShapeProperty *prs = get_shape_prop(sh);
    for (int i = 0; i < sh->prop_count; i++, prs++) {
        if (__JS_AtomIsTaggedInt(prs->atom) || (prs->flags & JS_PROP_TMASK) != JS_PROP_NORMAL)
            return false;
    }
    return true;
}

static bool write_simple(struct writer *w, JSObject *p, bool *first)
{
    JSContext *ctx = w->ctx;
    JSShape *sh = js_dup_shape(p->shape);
    bool ok = true;
    for (int i = 0; ok && i < sh->prop_count; i++) {
        JSShapeProperty *prs = &get_shape_prop(sh)[i];
        if (!(prs->flags & JS_PROP_ENUMERABLE) ||
            ctx->rt->atom_array[prs->atom]->atom_type != JS_ATOM_TYPE_STRING)
            continue;
        JSValue item;
        if (likely(p->shape == sh)) /* a getter or toJSON below may have changed the object */
            item = js_dup(p->prop[i].u.value);
        else
            item = JS_GetProperty(ctx, JS_MKPTR(JS_TAG_OBJECT, p), prs->atom);
        ok = !JS_IsException(item) && write_property(w, prs->atom, item, first);
        JS_FreeValue(ctx, item);
    }
    js_free_shape(ctx->rt, sh);
    return ok;
}
#else
static bool is_simple(JSObject *p)
{
    return false;
}

static bool write_simple(struct writer *w, JSObject *p, bool *first)
{
    return false;
}
#endif

/* An error has its data where Object.keys does not look: name and message come first. */
static bool write_error_head(struct writer *w, JSObject *p, bool *first)
{
    static const char *const names[] = {"name", "message"};
    for (int i = 0; i < countof(names); i++) {
        JSValueConst v = data_text(w->ctx, p, names[i]);
        JSAtom key = JS_NewAtom(w->ctx, names[i]);
        bool own = find_own_property1(p, key) &&
                   find_own_property1(p, key)->flags & JS_PROP_ENUMERABLE;
        bool ok = own || !is_text(v) || write_property(w, key, v, first);
        JS_FreeAtom(w->ctx, key);
        if (!ok)
            return false;
    }
    return true;
}

static bool write_object(struct writer *w, JSValueConst v)
{
    JSObject *p = JS_VALUE_GET_OBJ(v);
    bool first = true;
    if (!put_char(w->ctx, w->out, '{'))
        return false;
    if (p->class_id == JS_CLASS_ERROR && !write_error_head(w, p, &first))
        return false;
    if (!(is_simple(p) ? write_simple(w, p, &first) : write_listed(w, v, &first)))
        return false;
    return put_char(w->ctx, w->out, '}');
}

static JSValue element(struct writer *w, JSValueConst v, uint32_t i)
{
#ifdef FAST_JSON
    JSObject *p = JS_VALUE_GET_OBJ(v);
    if (p->class_id == JS_CLASS_ARRAY && p->fast_array && i < p->u.array.count)
        return js_dup(p->u.array.u.values[i]);
#endif
    if (js_poll_interrupts(w->ctx))
        return JS_EXCEPTION;
    return JS_GetPropertyInt64(w->ctx, v, i);
}

static bool write_array(struct writer *w, JSValueConst v)
{
    int64_t length;
    if (js_get_length64(w->ctx, &length, v) || !put_char(w->ctx, w->out, '['))
        return false;
    w->top->key = JS_ATOM_NULL;
    for (int64_t i = 0; i < length; i++) {
        if (i && !put_char(w->ctx, w->out, ','))
            return false;
        w->top->key = JS_ATOM_NULL;
        w->top->index = i;
        JSValue item = element(w, v, i);
        if (JS_VALUE_GET_TAG(item) == JS_TAG_OBJECT) {
            JSValue made = without_to_json(w, item);
            JS_FreeValue(w->ctx, item);
            item = made;
        }
        bool ok = !JS_IsException(item) &&
                  (JS_IsUndefined(item) ? put_text(w->ctx, w->out, "null") : write_value(w, item));
        JS_FreeValue(w->ctx, item);
        if (!ok)
            return false;
    }
    return put_char(w->ctx, w->out, ']');
}

static bool write_boxed(struct writer *w, JSValueConst v)
{
    JSValue inner;
    switch (JS_VALUE_GET_OBJ(v)->class_id) {
    case JS_CLASS_NUMBER:
        inner = JS_ToNumber(w->ctx, v);
        break;
    case JS_CLASS_STRING:
        inner = JS_ToString(w->ctx, v);
        break;
    default:
        inner = js_dup(JS_VALUE_GET_OBJ(v)->u.object_data);
    }
    bool ok = !JS_IsException(inner) && write_value(w, inner);
    JS_FreeValue(w->ctx, inner);
    return ok;
}

static bool write_container(struct writer *w, JSValueConst v)
{
    JSObject *p = JS_VALUE_GET_OBJ(v);
    for (struct level *l = w->top; l; l = l->up) {
        if (l->object == p)
            return refuse(w, "part of a cycle, which JSON cannot hold");
    }
    if (w->depth >= guest.limits.nesting || js_check_stack_overflow(w->ctx->rt, 0)) {
        char path[160];
        path_text(w, path, sizeof path);
        throw_limit(w->ctx, "nesting", "%s is nested deeper than %u levels", path, guest.limits.nesting);
        return false;
    }
    int is_array = js_is_array(w->ctx, v);
    if (is_array < 0)
        return false;
    struct level level = {.up = w->top, .object = p, .key = JS_ATOM_NULL};
    w->top = &level;
    w->depth++;
    bool ok = is_array ? write_array(w, v) : write_object(w, v);
    w->depth--;
    w->top = level.up;
    return ok;
}

/* An object whose toJSON has been asked already. */
static bool write_any_object(struct writer *w, JSValueConst v)
{
    JSObject *p = JS_VALUE_GET_OBJ(v);
    if (JS_IsFunction(w->ctx, v))
        return refuse(w, "a function, which JSON cannot hold");
    switch (p->class_id) {
    case JS_CLASS_NUMBER:
    case JS_CLASS_STRING:
    case JS_CLASS_BOOLEAN:
    case JS_CLASS_BIG_INT:
        return write_boxed(w, v);
    }
    const char *reason = why_not(w->ctx, p);
    return reason ? refuse(w, reason) : write_container(w, v);
}

static bool write_value(struct writer *w, JSValueConst v)
{
    switch (JS_VALUE_GET_NORM_TAG(v)) {
    case JS_TAG_STRING:
    case JS_TAG_STRING_ROPE:
        return put_js_string(w->ctx, w->out, v, true);
    case JS_TAG_INT:
        if (!buffer_room(w->ctx, w->out, 16))
            return false;
        w->out->len += i32toa((char *)w->out->at + w->out->len, JS_VALUE_GET_INT(v));
        return true;
    case JS_TAG_FLOAT64:
        return write_double(w, JS_VALUE_GET_FLOAT64(v));
    case JS_TAG_BOOL:
        return put_text(w->ctx, w->out, JS_VALUE_GET_BOOL(v) ? "true" : "false");
    case JS_TAG_NULL:
    case JS_TAG_UNDEFINED:
        return put_text(w->ctx, w->out, "null");
    case JS_TAG_SHORT_BIG_INT:
    case JS_TAG_BIG_INT:
        return write_bigint(w, v);
    case JS_TAG_SYMBOL:
        return refuse(w, "a symbol, which JSON cannot hold");
    case JS_TAG_OBJECT:
        return write_any_object(w, v);
    default:
        return refuse(w, "not a value");
    }
}

/* Write `v` as JSON text; an error is pending when that fails. Script code may run in it. */
static bool json_write(JSContext *ctx, struct buffer *out, JSValueConst v, const char *root)
{
    struct writer w = {.ctx = ctx, .out = out, .root = root};
    if (JS_VALUE_GET_TAG(v) != JS_TAG_OBJECT)
        return write_value(&w, v);
    JSValue made = without_to_json(&w, v);
    bool ok = !JS_IsException(made) && write_value(&w, made);
    JS_FreeValue(ctx, made);
    return ok;
}
