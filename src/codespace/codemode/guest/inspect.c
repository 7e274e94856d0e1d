/* Any value as readable text, for console and text(). It reads data properties only: no getter, no
   toJSON, no proxy trap runs, so looking at a value cannot change it. Plain data looks like JSON. */

enum { INSPECT_DEPTH = 24 };

struct inspect {
    JSContext *ctx;
    struct buffer *out;
    JSObject *path[INSPECT_DEPTH + 1];
    int depth;
};

static bool show(struct inspect *w, JSValueConst v, bool nested);

/* The own or inherited data property, borrowed; undefined for accessors and beyond proxies. */
static JSValueConst data_property(JSContext *ctx, JSObject *p, JSAtom name)
{
    for (int i = 0; p && i < 64; i++) {
        JSProperty *pr;
        if (p->class_id == JS_CLASS_PROXY)
            break;
        JSShapeProperty *prs = find_own_property(&pr, p, name);
        if (prs)
            return (prs->flags & JS_PROP_TMASK) == JS_PROP_NORMAL ? pr->u.value : JS_UNDEFINED;
        p = p->shape->proto;
    }
    return JS_UNDEFINED;
}

static bool is_text(JSValueConst v)
{
    int tag = JS_VALUE_GET_TAG(v);
    return tag == JS_TAG_STRING || tag == JS_TAG_STRING_ROPE;
}

static JSValueConst data_text(JSContext *ctx, JSObject *p, const char *name)
{
    JSAtom atom = JS_NewAtom(ctx, name);
    JSValueConst v = data_property(ctx, p, atom);
    JS_FreeAtom(ctx, atom);
    return is_text(v) ? v : JS_UNDEFINED;
}

/* The name of the constructor that made an object, borrowed; undefined for plain objects. */
static JSValueConst class_name_of(JSContext *ctx, JSObject *p)
{
    if (!p->shape->proto || p->shape->proto == JS_VALUE_GET_OBJ(ctx->class_proto[JS_CLASS_OBJECT]))
        return JS_UNDEFINED;
    JSValueConst maker = data_property(ctx, p->shape->proto, JS_ATOM_constructor);
    return JS_IsObject(maker) ? data_text(ctx, JS_VALUE_GET_OBJ(maker), "name") : JS_UNDEFINED;
}

static bool show_text(struct inspect *w, const char *text)
{
    return put_text(w->ctx, w->out, text);
}

static bool show_string(struct inspect *w, JSValueConst v, bool quoted)
{
    return put_js_string(w->ctx, w->out, v, quoted);
}

static bool show_class(struct inspect *w, JSObject *p)
{
    return put_atom(w->ctx, w->out, w->ctx->rt->class_array[p->class_id].class_name, false);
}

/* The own enumerable properties, as the inside of a JSON object. */
static bool show_properties(struct inspect *w, JSObject *p, bool *first)
{
    JSShape *sh = js_dup_shape(p->shape);
    bool ok = true;
    for (int i = 0; ok && i < sh->prop_count && p->shape == sh; i++) {
        JSShapeProperty *prs = &get_shape_prop(sh)[i];
        if (prs->atom == JS_ATOM_NULL || !(prs->flags & JS_PROP_ENUMERABLE))
            continue;
        if (!__JS_AtomIsTaggedInt(prs->atom) &&
            w->ctx->rt->atom_array[prs->atom]->atom_type != JS_ATOM_TYPE_STRING)
            continue;
        ok = (*first || put_char(w->ctx, w->out, ',')) && put_atom(w->ctx, w->out, prs->atom, true) &&
             put_char(w->ctx, w->out, ':');
        *first = false;
        if (!ok)
            break;
        if ((prs->flags & JS_PROP_TMASK) == JS_PROP_NORMAL)
            ok = show(w, p->prop[i].u.value, true);
        else
            ok = show_text(w, "[Getter]");
    }
    js_free_shape(w->ctx->rt, sh);
    return ok;
}

static bool show_object(struct inspect *w, JSObject *p)
{
    JSValueConst name = class_name_of(w->ctx, p);
    bool first = true;
    if (p->class_id != JS_CLASS_OBJECT && p->class_id < JS_CLASS_INIT_COUNT && !is_text(name)) {
        if (!show_class(w, p) || !put_char(w->ctx, w->out, ' '))
            return false;
    } else if (is_text(name)) {
        if (!show_string(w, name, false) || !put_char(w->ctx, w->out, ' '))
            return false;
    }
    return put_char(w->ctx, w->out, '{') && show_properties(w, p, &first) && put_char(w->ctx, w->out, '}');
}

static bool show_elements(struct inspect *w, JSObject *p)
{
    JSContext *ctx = w->ctx;
    uint32_t holes = 0, length = p->u.array.count;
    if (!p->fast_array) /* sparse: its length may be in the thousands of millions */
        return show_object(w, p);
    if (!put_char(ctx, w->out, '['))
        return false;
    for (uint32_t i = 0; i < length && i < p->u.array.count; i++) {
        if ((i && !put_char(ctx, w->out, ',')) || !show(w, p->u.array.u.values[i], true))
            return false;
    }
    if (JS_VALUE_GET_TAG(p->prop[0].u.value) == JS_TAG_INT)
        holes = JS_VALUE_GET_INT(p->prop[0].u.value) - length;
    if (holes && !(show_text(w, length ? ",<" : "<") && put_decimal(ctx, w->out, holes) &&
                   show_text(w, " empty>")))
        return false;
    return put_char(ctx, w->out, ']');
}

static bool show_map(struct inspect *w, JSObject *p, bool is_map)
{
    JSContext *ctx = w->ctx;
    JSMapState *s = p->u.map_state;
    struct list_head *el;
    bool first = true;
    if (!show_text(w, is_map ? "Map(" : "Set(") || !put_decimal(ctx, w->out, s->record_count) ||
        !show_text(w, ") {"))
        return false;
    list_for_each(el, &s->records) {
        JSMapRecord *r = list_entry(el, JSMapRecord, link);
        if (r->empty)
            continue;
        if ((!first && !show_text(w, ", ")) || !show(w, r->key, true))
            return false;
        if (is_map && !(show_text(w, " => ") && show(w, r->value, true)))
            return false;
        first = false;
    }
    return put_char(ctx, w->out, '}');
}

/* Name, message and stack of an error; inside other values only the first two. */
static bool show_error(struct inspect *w, JSObject *p, bool nested)
{
    JSContext *ctx = w->ctx;
    JSValueConst name = data_text(ctx, p, "name"), message = data_text(ctx, p, "message");
    bool first = true;
    if (nested && !put_char(ctx, w->out, '['))
        return false;
    if (!(is_text(name) ? show_string(w, name, false) : show_text(w, "Error")))
        return false;
    if (is_text(message) && JS_VALUE_GET_TAG(message) == JS_TAG_STRING &&
        JS_VALUE_GET_STRING(message)->len &&
        !(show_text(w, ": ") && show_string(w, message, false)))
        return false;
    if (nested)
        return put_char(ctx, w->out, ']');
    if (is_text(p->u.object_data)) {
        if (!put_char(ctx, w->out, '\n') || !show_string(w, p->u.object_data, false))
            return false;
        if (w->out->len && w->out->at[w->out->len - 1] == '\n')
            w->out->len--;
    }
    uint32_t mark = w->out->len;
    if (!show_text(w, " {") || !show_properties(w, p, &first))
        return false;
    if (first) {
        w->out->len = mark;
        return true;
    }
    return put_char(ctx, w->out, '}');
}

static bool show_function(struct inspect *w, JSObject *p)
{
    JSValueConst name = data_text(w->ctx, p, "name");
    if (!show_text(w, "[Function"))
        return false;
    if (is_text(name) && JS_VALUE_GET_TAG(name) == JS_TAG_STRING && JS_VALUE_GET_STRING(name)->len &&
        !(show_text(w, ": ") && show_string(w, name, false)))
        return false;
    return put_char(w->ctx, w->out, ']');
}

static bool show_promise(struct inspect *w, JSObject *p)
{
    JSPromiseData *s = p->u.promise_data;
    if (s->promise_state == JS_PROMISE_PENDING)
        return show_text(w, "Promise {<pending>}");
    return show_text(w, s->promise_state == JS_PROMISE_REJECTED ? "Promise {<rejected> " : "Promise {") &&
           show(w, s->promise_result, true) && put_char(w->ctx, w->out, '}');
}

/* Bytes and numbers, dates, regular expressions: what the engine itself can say of them. */
static bool show_converted(struct inspect *w, JSValue text, const char *before, const char *after)
{
    if (JS_IsException(text)) {
        JS_FreeValue(w->ctx, JS_GetException(w->ctx));
        text = JS_UNDEFINED;
    }
    bool ok = show_text(w, before) && (!is_text(text) || show_string(w, text, false)) &&
              show_text(w, after);
    JS_FreeValue(w->ctx, text);
    return ok;
}

static bool show_typed_array(struct inspect *w, JSObject *p)
{
    uint32_t length = typed_array_length(p);
    JSValueConst self = JS_MKPTR(JS_TAG_OBJECT, p);
    if (!show_class(w, p) || !put_char(w->ctx, w->out, '(') || !put_decimal(w->ctx, w->out, length) ||
        !show_text(w, ") ["))
        return false;
    for (uint32_t i = 0; i < length; i++) {
        JSValue item = JS_GetPropertyUint32(w->ctx, self, i);
        bool ok = (!i || put_char(w->ctx, w->out, ',')) && show(w, item, true);
        JS_FreeValue(w->ctx, item);
        if (!ok)
            return false;
    }
    return put_char(w->ctx, w->out, ']');
}

static bool show_regexp(struct inspect *w, JSObject *p)
{
    static const char letters[] = "gimsuyd";
    int flags = lre_get_flags(str8(p->u.regexp.bytecode));
    if (!put_char(w->ctx, w->out, '/') ||
        !show_string(w, JS_MKPTR(JS_TAG_STRING, p->u.regexp.pattern), false) ||
        !put_char(w->ctx, w->out, '/'))
        return false;
    for (int i = 0; letters[i]; i++) {
        if (flags >> i & 1 && !put_char(w->ctx, w->out, letters[i]))
            return false;
    }
    return true;
}

static bool show_kind(struct inspect *w, JSObject *p, bool nested)
{
    JSContext *ctx = w->ctx;
    JSValueConst self = JS_MKPTR(JS_TAG_OBJECT, p);
    switch (p->class_id) {
    case JS_CLASS_ARRAY:
        return show_elements(w, p);
    case JS_CLASS_MAP:
    case JS_CLASS_SET:
        return show_map(w, p, p->class_id == JS_CLASS_MAP);
    case JS_CLASS_ERROR:
        return show_error(w, p, nested);
    case JS_CLASS_DATE:
        return show_converted(w, get_date_string(ctx, self, 0, NULL, 0x23), nested ? "\"" : "",
                              nested ? "\"" : "");
    case JS_CLASS_REGEXP:
        return show_regexp(w, p);
    case JS_CLASS_PROMISE:
        return show_promise(w, p);
    case JS_CLASS_PROXY:
        return show_text(w, "[Proxy]");
    case JS_CLASS_NUMBER:
    case JS_CLASS_STRING:
    case JS_CLASS_BOOLEAN:
    case JS_CLASS_BIG_INT:
        return show(w, p->u.object_data, true);
    default:
        if (is_typed_array(p->class_id) && !typed_array_is_oob(p))
            return show_typed_array(w, p);
        return JS_IsFunction(ctx, self) ? show_function(w, p) : show_object(w, p);
    }
}

static bool show_nested(struct inspect *w, JSObject *p, bool nested)
{
    for (int i = 0; i < w->depth; i++) {
        if (w->path[i] == p)
            return show_text(w, "[Circular]");
    }
    if (w->depth >= INSPECT_DEPTH)
        return show_text(w, p->class_id == JS_CLASS_ARRAY ? "[Array]" : "[Object]");
    if (js_check_stack_overflow(w->ctx->rt, 4096))
        return show_text(w, "[Deep]");
    w->path[w->depth++] = p;
    bool ok = show_kind(w, p, nested);
    w->depth--;
    return ok;
}

/* A BigInt beyond this is not converted: that takes long without polling, and Python's JSON
   reader takes 4300 digits at most. */
enum { BIGINT_MAX_LIMBS = 440 };

static bool bigint_is_long(JSValueConst v)
{
    return JS_VALUE_GET_TAG(v) == JS_TAG_BIG_INT &&
           ((JSBigInt *)JS_VALUE_GET_PTR(v))->len > BIGINT_MAX_LIMBS;
}

static bool show_number(struct inspect *w, JSValueConst v)
{
    if (bigint_is_long(v))
        return show_text(w, "[BigInt]");
    return show_converted(w, JS_ToString(w->ctx, v), "", JS_IsBigInt(v) ? "n" : "");
}

static bool show_symbol(struct inspect *w, JSValueConst v)
{
    JSAtom atom = JS_ValueToAtom(w->ctx, v);
    bool ok = show_text(w, "Symbol(") && put_atom(w->ctx, w->out, atom, false) &&
              put_char(w->ctx, w->out, ')');
    JS_FreeAtom(w->ctx, atom);
    return ok;
}

static bool show(struct inspect *w, JSValueConst v, bool nested)
{
    switch (JS_VALUE_GET_NORM_TAG(v)) {
    case JS_TAG_STRING:
    case JS_TAG_STRING_ROPE:
        return show_string(w, v, nested);
    case JS_TAG_UNDEFINED:
        return show_text(w, "undefined");
    case JS_TAG_NULL:
        return show_text(w, "null");
    case JS_TAG_BOOL:
        return show_text(w, JS_VALUE_GET_BOOL(v) ? "true" : "false");
    case JS_TAG_SYMBOL:
        return show_symbol(w, v);
    case JS_TAG_OBJECT:
        return show_nested(w, JS_VALUE_GET_OBJ(v), nested);
    case JS_TAG_INT:
    case JS_TAG_FLOAT64:
    case JS_TAG_SHORT_BIG_INT:
    case JS_TAG_BIG_INT:
        return show_number(w, v);
    default:
        return show_text(w, "<uninitialized>");
    }
}

static bool inspect(JSContext *ctx, struct buffer *out, JSValueConst v)
{
    struct inspect w = {.ctx = ctx, .out = out};
    return show(&w, v, false);
}
