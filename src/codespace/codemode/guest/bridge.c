/* The globals that a script has besides ECMAScript: each is a C function that writes an operation,
   or makes a promise that a later step settles. */

/* Finding a line walks the function's table, so a step's last answers are kept. */
static struct {
    JSFunctionBytecode *b;
    uint32_t pc, length, line, column;
} known[8];

/* The call of a bytecode function nearest to us: where the script wrote what runs now. */
static void find_caller(JSContext *ctx, uint32_t *line, uint32_t *column)
{
    *line = *column = 0;
    for (JSStackFrame *sf = ctx->rt->current_stack_frame; sf; sf = sf->prev_frame) {
        if (JS_VALUE_GET_TAG(sf->cur_func) != JS_TAG_OBJECT)
            continue;
        JSObject *p = JS_VALUE_GET_OBJ(sf->cur_func);
        if (!js_class_has_bytecode(p->class_id) || !sf->cur_pc)
            continue;
        JSFunctionBytecode *b = p->u.func.function_bytecode;
        uint32_t pc = sf->cur_pc - b->byte_code_buf - 1;
        uint32_t slot = (pc ^ (uint32_t)(uintptr_t)b >> 4) % countof(known);
        if (known[slot].b != b || known[slot].pc != pc || known[slot].length != b->pc2line_len) {
            int found;
            known[slot].line = find_line_num(ctx, b, pc, &found);
            known[slot].column = found;
            known[slot].b = b;
            known[slot].length = b->pc2line_len;
            known[slot].pc = pc;
        }
        *line = known[slot].line;
        *column = known[slot].column;
        return;
    }
}

/* A pending promise of the engine, without resolving functions. */
static JSValue new_promise(JSContext *ctx)
{
    JSValue promise = JS_NewObjectClass(ctx, JS_CLASS_PROMISE);
    if (JS_IsException(promise))
        return promise;
    JSPromiseData *s = js_mallocz(ctx, sizeof *s);
    if (!s) {
        JS_FreeValue(ctx, promise);
        return JS_EXCEPTION;
    }
    s->promise_state = JS_PROMISE_PENDING;
    init_list_head(&s->promise_reactions[0]);
    init_list_head(&s->promise_reactions[1]);
    s->promise_result = JS_UNDEFINED;
    JS_SetOpaqueInternal(promise, s);
    return promise;
}

/* The pending error as a rejected promise; an error that cannot be caught stays pending. */
static JSValue rejected(JSContext *ctx)
{
    if (JS_IsUncatchableError(ctx->rt->current_exception))
        return JS_EXCEPTION;
    JSValue error = JS_GetException(ctx), promise = new_promise(ctx);
    if (!JS_IsException(promise))
        fulfill_or_reject_promise(ctx, promise, error, true);
    JS_FreeValue(ctx, error);
    return promise;
}

static struct call *add_call(JSContext *ctx, struct calls *list)
{
    if (list->count == list->cap) {
        uint32_t cap = list->cap ? list->cap * 2 : 32;
        struct call *at = js_realloc(ctx, list->at, cap * sizeof *at);
        if (!at)
            return NULL;
        list->at = at;
        list->cap = cap;
    }
    struct call *c = &list->at[list->count++];
    *c = (struct call){.promise = JS_UNDEFINED};
    return c;
}

/* Give the last call of the list its promise; with `ok` false, forget the call. */
static JSValue finish_call(JSContext *ctx, struct calls *list, uint32_t mark, bool ok)
{
    JSValue promise = ok ? new_promise(ctx) : JS_EXCEPTION;
    if (!op_end(ctx, mark, !JS_IsException(promise))) {
        JS_FreeValue(ctx, promise);
        list->count--;
        return rejected(ctx);
    }
    list->at[list->count - 1].promise = js_dup(promise);
    shared.pending++;
    return promise;
}

/* tools.<name>(args?, options?) */
static JSValue call_tool(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv, int tool)
{
    struct buffer text = {.max = guest.limits.arguments_bytes, .limit = "arguments",
                          .message = "the arguments are larger than argument_bytes allows"};
    struct buffer options = text;
    uint32_t mark;
    if (must_stop(ctx))
        return JS_EXCEPTION;
    if (guest.calls.count >= guest.limits.calls)
        return throw_limit(ctx, "calls", "a run may make %u calls (max_calls); this one is over the limit",
                           guest.limits.calls);
    bool has_options = argc > 1 && !JS_IsUndefined(argv[1]);
    bool has_args = argc > 0 && !JS_IsUndefined(argv[0]);
    /* Script code may run here, and call tools itself: nothing of this call exists yet. */
    bool ok = (!has_args || json_write(ctx, &text, argv[0], "arguments")) &&
              (!has_options || json_write(ctx, &options, argv[1], "options"));
    struct call *c = ok && !must_stop(ctx) ? add_call(ctx, &guest.calls) : NULL;
    JSValue promise = JS_EXCEPTION;
    if (c) {
        c->tool = (uint16_t)tool;
        find_caller(ctx, &c->line, &c->column);
        ok = op_begin(ctx, "call", &mark) && put_number(ctx, guest.calls.count) &&
             put_number(ctx, (uint16_t)tool) && put_number(ctx, c->line) && put_number(ctx, c->column);
        if (ok && has_args)
            ok = put_char(ctx, &outbox, ',') && put(ctx, &outbox, text.at, text.len);
        if (ok && has_options)
            ok = put_text(ctx, &outbox, has_args ? "," : ",{},") && put(ctx, &outbox, options.at, options.len);
        promise = finish_call(ctx, &guest.calls, mark, ok);
    }
    buffer_release(&text);
    buffer_release(&options);
    return c ? promise : rejected(ctx);
}

static const char *const questions[] = {"searchTools", "describeTool", "describeNamespace"};

/* searchTools and its like: a question to the host about the tools. */
static JSValue ask(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv, int which)
{
    struct buffer text = {.max = guest.limits.arguments_bytes, .limit = "arguments",
                          .message = "the arguments are larger than argument_bytes allows"};
    uint32_t mark;
    if (must_stop(ctx))
        return JS_EXCEPTION;
    if (guest.asks.count >= guest.limits.calls)
        return throw_limit(ctx, "calls", "a run may ask %u times (max_calls)", guest.limits.calls);
    bool ok = true;
    for (int i = 0; ok && i < argc && i < 2; i++)
        ok = put_char(ctx, &text, ',') && json_write(ctx, &text, argv[i], "arguments");
    struct call *c = ok && !must_stop(ctx) ? add_call(ctx, &guest.asks) : NULL;
    JSValue promise = JS_EXCEPTION;
    if (c) {
        c->tool = which;
        find_caller(ctx, &c->line, &c->column);
        ok = op_begin(ctx, "ask", &mark) && put_number(ctx, ASK_BASE + guest.asks.count) &&
             put_text(ctx, &outbox, ",\"") && put_text(ctx, &outbox, questions[which]) &&
             put_char(ctx, &outbox, '"') && put(ctx, &outbox, text.at, text.len);
        promise = finish_call(ctx, &guest.asks, mark, ok);
    }
    buffer_release(&text);
    return c ? promise : rejected(ctx);
}

static bool count_output(JSContext *ctx, uint32_t bytes)
{
    if (bytes > guest.limits.output_bytes - guest.output_bytes) {
        throw_limit(ctx, "output", "a run may write %u bytes of output (written_bytes)", guest.limits.output_bytes);
        return false;
    }
    guest.output_bytes += bytes;
    return true;
}

static bool is_container(JSContext *ctx, JSValueConst v)
{
    return JS_VALUE_GET_TAG(v) == JS_TAG_OBJECT && !JS_IsFunction(ctx, v) &&
           JS_VALUE_GET_OBJ(v)->class_id != JS_CLASS_ERROR;
}

/* text() shows JSON where the value is JSON, so that it can be read back. */
static bool show_for_text(JSContext *ctx, struct buffer *out, JSValueConst v)
{
    uint32_t mark = out->len;
    if (is_container(ctx, v)) {
        if (json_write(ctx, out, v, "value"))
            return true;
        if (JS_IsUncatchableError(ctx->rt->current_exception))
            return false;
        forget_exception(ctx);
        out->len = mark;
    }
    return inspect(ctx, out, v);
}

/* Where the last piece of output ends in the outbox, and its level. */
static struct {
    uint32_t end;
    int level;
} last_text;

/* A piece of output. One that follows another of its level is a further line of that: the host has
   far less to do for one long text than for many short ones. */
static bool put_output(JSContext *ctx, const struct buffer *text, int level)
{
    uint32_t mark = outbox.len;
    bool more = last_text.end == mark && last_text.level == level;
    bool ok;
    if (more) {
        outbox.len -= strlen("\"]");
        ok = put_text(ctx, &outbox, "\\n") && put_inside(ctx, &outbox, text->at, text->len) &&
             put_char(ctx, &outbox, '"');
    } else {
        ok = op_begin(ctx, "text", &mark) && put_number(ctx, level) && put_char(ctx, &outbox, ',') &&
             put_quoted(ctx, &outbox, text->at, text->len);
    }
    ok = op_end(ctx, mark, ok);
    if (ok) {
        last_text.end = outbox.len;
        last_text.level = level;
    } else if (more) {
        memcpy(outbox.at + mark - strlen("\"]"), "\"]", strlen("\"]"));
    }
    return ok;
}

/* text(value) is level 0; console's functions are the others. */
static JSValue write_text(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv, int level)
{
    struct buffer text = {.max = guest.limits.output_bytes, .limit = "output",
                          .message = "one piece of output is larger than written_bytes allows"};
    if (must_stop(ctx))
        return JS_EXCEPTION;
    bool ok = true;
    for (int i = 0; ok && i < argc; i++) {
        ok = (!i || put_char(ctx, &text, ' ')) &&
             (level ? inspect(ctx, &text, argv[i]) : show_for_text(ctx, &text, argv[i]));
    }
    ok = ok && !must_stop(ctx) && count_output(ctx, text.len + 8) && put_output(ctx, &text, level);
    buffer_release(&text);
    return ok ? JS_UNDEFINED : JS_EXCEPTION;
}

static bool is_base64(const char *s, size_t n)
{
    if (!n || n % 4)
        return false;
    n -= s[n - 1] == '=';
    n -= s[n - 1] == '=';
    for (size_t i = 0; i < n; i++) {
        if (!(s[i] >= 'A' && s[i] <= 'Z') && !(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '0' && s[i] <= '9') &&
            s[i] != '+' && s[i] != '/')
            return false;
    }
    return true;
}

static bool is_image_type(const char *s, size_t n)
{
    static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
    for (int i = 0; i < countof(types); i++) {
        if (n == strlen(types[i]) && !memcmp(s, types[i], n))
            return true;
    }
    return false;
}

/* 1: the property is text that passes the test; 0: it is not; -1: an error is pending. It is read
   this once: a getter could give another value when the block is written. */
static int take_text(JSContext *ctx, JSValueConst block, const char *name, bool test(const char *, size_t),
                     JSValue *out)
{
    size_t n;
    *out = JS_GetPropertyStr(ctx, block, name);
    const char *text = is_text(*out) ? JS_ToCStringLen(ctx, &n, *out) : NULL;
    int result = text ? test(text, n) : JS_IsException(*out) || is_text(*out) ? -1 : 0;
    JS_FreeCString(ctx, text);
    return result;
}

static bool put_image(JSContext *ctx, struct buffer *out, JSValueConst data, JSValueConst mime)
{
    return put_text(ctx, out, "{\"type\":\"image\",\"data\":") && put_js_string(ctx, out, data, true) &&
           put_text(ctx, out, ",\"mimeType\":") && put_js_string(ctx, out, mime, true) &&
           put_char(ctx, out, '}');
}

/* image({type: "image", data, mimeType}) */
static JSValue write_image(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    struct buffer text = {.max = guest.limits.output_bytes, .limit = "output",
                          .message = "one piece of output is larger than written_bytes allows"};
    uint32_t mark;
    if (must_stop(ctx))
        return JS_EXCEPTION;
    JSValue data = JS_UNDEFINED, mime = JS_UNDEFINED;
    int has_data = JS_IsObject(argv[0]) ? take_text(ctx, argv[0], "data", is_base64, &data) : 0;
    int has_mime = has_data > 0 ? take_text(ctx, argv[0], "mimeType", is_image_type, &mime) : has_data;
    if (!has_mime)
        JS_ThrowTypeError(ctx, has_data ? "mimeType of image() is image/png, image/jpeg, image/gif or image/webp"
                                        : "image() takes {type: \"image\", data: base64, mimeType}");
    bool ok = has_mime > 0 && put_image(ctx, &text, data, mime) && !must_stop(ctx) && count_output(ctx, text.len);
    if (ok) {
        ok = op_begin(ctx, "image", &mark) && put_char(ctx, &outbox, ',') &&
             put(ctx, &outbox, text.at, text.len);
        ok = op_end(ctx, mark, ok);
    }
    buffer_release(&text);
    JS_FreeValue(ctx, data);
    JS_FreeValue(ctx, mime);
    return ok ? JS_UNDEFINED : JS_EXCEPTION;
}

static uint32_t count_chars(const struct buffer *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->len; i++)
        n += (b->at[i] & 0xc0) != 0x80;
    return n;
}

static uint32_t stored_chars(JSContext *ctx, JSValueConst text)
{
    return JS_VALUE_GET_TAG(text) == JS_TAG_STRING ? JS_VALUE_GET_STRING(text)->len : 0;
}

/* Put JSON text (undefined: a deletion) under a key, if the whole store then fits. What was stored
   before is taken as it is, and may shrink: the limit may have been higher then. */
static bool set_stored(JSContext *ctx, JSAtom key, JSValue text, bool dirty)
{
    JSValue before = JS_GetProperty(ctx, guest.store, key);
    uint64_t chars = (uint64_t)guest.store_chars + stored_chars(ctx, text) - stored_chars(ctx, before);
    JS_FreeValue(ctx, before);
    if (dirty && chars > guest.limits.store_total_chars && chars > guest.store_chars) {
        JS_FreeValue(ctx, text);
        throw_limit(ctx, "store", "the whole store may hold %u characters of JSON (store_total_chars)",
                    guest.limits.store_total_chars);
        return false;
    }
    guest.store_chars = chars;
    return JS_DefinePropertyValue(ctx, guest.store, key, text, JS_PROP_C_W_E) >= 0 &&
           (!dirty || JS_DefinePropertyValue(ctx, guest.store_dirty, key, JS_TRUE, JS_PROP_C_W_E) >= 0);
}

/* Half of a pair alone could not be told from another half when the key leaves the VM. */
static bool has_half_pair(JSString *s)
{
    for (uint32_t i = 0, used; s->is_wide_char && i < s->len; i += used) {
        if (utf16_next(str16(s), i, s->len, &used) == 0xfffd && str16(s)[i] != 0xfffd)
            return true;
    }
    return false;
}

static JSAtom store_key(JSContext *ctx, JSValueConst v)
{
    const char *reason = "a key of the store is a string of at most 1000 characters";
    if (is_text(v)) {
        JSAtom key = JS_ValueToAtom(ctx, v);
        JSString *s = key == JS_ATOM_NULL || __JS_AtomIsTaggedInt(key) ? NULL : ctx->rt->atom_array[key];
        if (!s || (s->len <= 1000 && !has_half_pair(s)))
            return key;
        if (s->len <= 1000)
            reason = "a key of the store may not hold half of a surrogate pair";
        JS_FreeAtom(ctx, key);
    }
    JS_ThrowTypeError(ctx, "%s", reason);
    return JS_ATOM_NULL;
}

static JSValue store_set(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    struct buffer text = {0};
    if (must_stop(ctx))
        return JS_EXCEPTION;
    text.max = guest.limits.store_value_chars * 4;
    text.limit = "store";
    text.message = "the value is larger than store_value_chars allows";
    bool delete = JS_IsUndefined(argv[1]);
    bool ok = delete || json_write(ctx, &text, argv[1], "value");
    if (ok && count_chars(&text) > guest.limits.store_value_chars) {
        throw_limit(ctx, "store", "one value of the store may have %u characters of JSON (store_value_chars)",
                    guest.limits.store_value_chars);
        ok = false;
    }
    JSAtom key = ok ? store_key(ctx, argv[0]) : JS_ATOM_NULL;
    ok = key != JS_ATOM_NULL;
    JSValue json = ok && !delete ? JS_NewStringLen(ctx, (char *)text.at, text.len) : JS_UNDEFINED;
    buffer_release(&text);
    ok = ok && !JS_IsException(json) && set_stored(ctx, key, json, true);
    JS_FreeAtom(ctx, key);
    return ok ? JS_UNDEFINED : JS_EXCEPTION;
}

static JSValue store_get(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    size_t n;
    JSAtom key = store_key(ctx, argv[0]);
    if (key == JS_ATOM_NULL)
        return JS_EXCEPTION;
    JSValue text = JS_GetProperty(ctx, guest.store, key);
    JS_FreeAtom(ctx, key);
    if (!is_text(text))
        return text;
    const char *json = JS_ToCStringLen(ctx, &n, text);
    JSValue v = json ? json_read(ctx, (const uint8_t *)json, n) : JS_EXCEPTION;
    JS_FreeCString(ctx, json);
    JS_FreeValue(ctx, text);
    return v;
}

/* Write the value that a run ends with; an error is pending when it cannot be. */
static bool write_return(JSContext *ctx, JSValueConst v)
{
    struct buffer text = {.max = guest.limits.value_bytes, .limit = "value",
                          .message = "the returned value is larger than result_bytes allows"};
    uint32_t mark;
    bool ok = JS_IsUndefined(v) || json_write(ctx, &text, v, "result");
    if (ok) {
        ok = op_begin(ctx, "return", &mark) &&
             (JS_IsUndefined(v) || (put_char(ctx, &outbox, ',') && put(ctx, &outbox, text.at, text.len)));
        ok = op_end(ctx, mark, ok);
    }
    buffer_release(&text);
    return ok;
}

/* exit(value?): after this nothing runs, so its error is one that cannot be caught. */
static JSValue script_exit(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    if (must_stop(ctx) || !write_return(ctx, argv[0]))
        return JS_EXCEPTION;
    guest.exiting = true;
    must_stop(ctx);
    return JS_EXCEPTION;
}

static JSValue get_catalogue(JSContext *ctx, JSValueConst this_val)
{
    if (is_text(guest.catalogue_text)) {
        size_t n;
        const char *json = JS_ToCStringLen(ctx, &n, guest.catalogue_text);
        JSValue v = json ? json_read(ctx, (const uint8_t *)json, n) : JS_EXCEPTION;
        JS_FreeCString(ctx, json);
        if (JS_IsException(v))
            return v;
        JS_FreeValue(ctx, guest.catalogue_text);
        guest.catalogue_text = JS_UNDEFINED;
        guest.catalogue = v;
    }
    return js_dup(guest.catalogue);
}

/* Names that are asked of any object, by the language or by habit: absent, not unknown tools. */
static bool is_ordinary_name(JSContext *ctx, JSAtom atom)
{
    static const char *const names[] = {"then", "toJSON", "length", "name", "prototype", "catch", "finally"};
    if (__JS_AtomIsTaggedInt(atom) || ctx->rt->atom_array[atom]->atom_type != JS_ATOM_TYPE_STRING)
        return true;
    for (int i = 0; i < countof(names); i++) {
        if (text_is(ctx, JS_MKPTR(JS_TAG_STRING, ctx->rt->atom_array[atom]), names[i]))
            return true;
    }
    return find_own_property1(JS_VALUE_GET_OBJ(ctx->class_proto[JS_CLASS_OBJECT]), atom) != NULL;
}

/* The number of edits between two names, at most `most`; long names count as far apart. */
static int distance(const char *a, const char *b, int most)
{
    int row[65], n = strlen(a), m = strlen(b);
    if (n > 64 || m > 64 || abs(n - m) > most)
        return most + 1;
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int cost = corner + ((a[i - 1] | 32) != (b[j - 1] | 32));
            corner = row[j];
            cost = row[j] + 1 < cost ? row[j] + 1 : cost;
            row[j] = row[j - 1] + 1 < cost ? row[j - 1] + 1 : cost;
        }
    }
    return row[m];
}

/* Up to three names of tools that the unknown one may have meant. */
static void near_names(JSContext *ctx, const char *name, char *out, size_t size)
{
    JSShape *sh = JS_VALUE_GET_OBJ(guest.tools)->shape;
    size_t len = 0, n = strlen(name);
    int most = n < 4 ? 1 : n / 3 + 1, found = 0;
    *out = 0;
    for (int i = 0; i < sh->prop_count && found < 3; i++) {
        const char *other = JS_AtomToCString(ctx, get_shape_prop(sh)[i].atom);
        if (!other)
            continue;
        bool is_near = distance(name, other, most) <= most || (n >= 4 && strstr(other, name)) ||
                       (strlen(other) >= 4 && strstr(name, other));
        if (is_near && len + strlen(other) + 8 < size) {
            len += snprintf(out + len, size - len, "%s%s", found ? ", " : "; did you mean ", other);
            found++;
        }
        JS_FreeCString(ctx, other);
    }
}

/* Reading a name that is no tool: a TypeError that says so, better than "not a function". */
static JSValue unknown_tool(JSContext *ctx, JSValueConst object, JSAtom atom, JSValueConst receiver)
{
    char hint[140];
    if (is_ordinary_name(ctx, atom) || must_stop(ctx))
        return guest.exiting || guest.interrupted ? JS_EXCEPTION : JS_UNDEFINED;
    const char *name = JS_AtomToCString(ctx, atom);
    if (!name)
        return JS_EXCEPTION;
    near_names(ctx, name, hint, sizeof hint);
    JS_ThrowTypeError(ctx, "unknown tool '%.60s'%s", name, hint);
    JS_FreeCString(ctx, name);
    return JS_EXCEPTION;
}

static int no_such_property(JSContext *ctx, JSValueConst object, JSAtom atom)
{
    return false;
}

static int no_own_property(JSContext *ctx, JSPropertyDescriptor *desc, JSValueConst object, JSAtom atom)
{
    return false;
}

static JSClassExoticMethods tools_exotic = {
    .get_own_property = no_own_property,
    .has_property = no_such_property,
    .get_property = unknown_tool,
};

static const JSClassDef tools_class = {"Tools", .exotic = &tools_exotic};
