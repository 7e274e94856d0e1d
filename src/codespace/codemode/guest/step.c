/* One step: read the records of the input, run what became runnable, tell what came of it. */

enum record { START = 1, TOOLS, STORE, ARGS, CATALOGUE, RUN, RESOLVE, RESOLVE_TEXT, REJECT, END };
enum { JOBS_AFTER_END = 1000 };

struct entry {
    uint32_t op, number, size;
    const uint8_t *at;
};

static uint32_t word_at(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static void start(JSContext *ctx, const struct entry *e)
{
    uint64_t seed;
    if (e->size != 8 + sizeof guest.limits)
        fatal();
    memcpy(&seed, e->at, 8);
    memcpy(&guest.limits, e->at + 8, sizeof guest.limits);
    seed += 0x9e3779b97f4a7c15; /* neighbouring seeds must not give neighbouring numbers */
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
    seed ^= seed >> 31;
    ctx->random_state = seed ? seed : 1;
}

static JSValue tool_function(JSContext *ctx, JSAtom name, uint32_t index)
{
    const char *text = JS_AtomToCString(ctx, name);
    if (!text)
        return JS_EXCEPTION;
    JSValue f = JS_NewCFunctionMagic(ctx, call_tool, text, 1, JS_CFUNC_generic_magic, index);
    JS_FreeCString(ctx, text);
    return f;
}

/* Pairs of index and name. Names of one tool that stand together share one function. */
static void set_tools(JSContext *ctx, const struct entry *e)
{
    JSValue tools = JS_NewObjectProto(ctx, guest.tools_proto), last = JS_UNDEFINED;
    uint32_t last_index = 0xffffffff;
    for (uint32_t at = 0; at < e->size;) {
        uint32_t index = word_at(e->at + at), n = word_at(e->at + at + 4);
        JSAtom name = JS_NewAtomLen(ctx, (const char *)e->at + at + 8, n);
        at += 8 + n;
        if (index != last_index) {
            JS_FreeValue(ctx, last);
            last = tool_function(ctx, name, index);
            last_index = index;
        }
        if (name == JS_ATOM_NULL || JS_IsException(last) ||
            JS_DefinePropertyValue(ctx, tools, name, js_dup(last), JS_PROP_ENUMERABLE) < 0)
            fatal();
        JS_FreeAtom(ctx, name);
    }
    JS_FreeValue(ctx, last);
    JS_PreventExtensions(ctx, tools);
    JS_FreeValue(ctx, guest.tools);
    guest.tools = tools;
    install(ctx, ctx->global_obj, "tools", js_dup(tools));
}

static void finish_thrown(JSContext *ctx);

static void set_store(JSContext *ctx, const struct entry *e)
{
    for (uint32_t at = 0; at < e->size;) {
        uint32_t key_size = word_at(e->at + at), size = word_at(e->at + at + 4);
        const char *key_text = (const char *)e->at + at + 8;
        JSAtom key = JS_NewAtomLen(ctx, key_text, key_size);
        JSValue text = JS_NewStringLen(ctx, key_text + key_size, size);
        at += 8 + key_size + size;
        if (key == JS_ATOM_NULL || JS_IsException(text) || !set_stored(ctx, key, text, false)) {
            finish_thrown(ctx); /* there is no room */
            return;
        }
        JS_FreeAtom(ctx, key);
    }
}

static void set_args(JSContext *ctx, const struct entry *e)
{
    JSValue value = json_read_frozen(ctx, e->at, e->size);
    if (JS_IsException(value)) {
        finish_thrown(ctx); /* there is no room */
        return;
    }
    JS_DefinePropertyValueStr(ctx, ctx->global_obj, "args", value, JS_PROP_CONFIGURABLE);
}

static void set_catalogue(JSContext *ctx, const struct entry *e)
{
    JS_FreeValue(ctx, guest.catalogue_text);
    guest.catalogue_text = JS_NewStringLen(ctx, (const char *)e->at, e->size);
}

/* ---- the end of a run */

static void put_stored(JSContext *ctx, JSAtom key)
{
    uint32_t mark;
    JSValue text = JS_GetProperty(ctx, guest.store, key);
    bool ok = op_begin(ctx, "store", &mark) && put_char(ctx, &outbox, ',') && put_atom(ctx, &outbox, key, true);
    if (ok && is_text(text))
        ok = put_char(ctx, &outbox, ',') && put_js_string(ctx, &outbox, text, false);
    if (!op_end(ctx, mark, ok))
        forget_exception(ctx);
    JS_FreeValue(ctx, text);
}

static void report_store(JSContext *ctx)
{
    JSPropertyEnum *keys;
    uint32_t count;
    if (JS_GetOwnPropertyNames(ctx, &keys, &count, guest.store_dirty, JS_GPN_STRING_MASK)) {
        forget_exception(ctx);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        put_stored(ctx, keys[i].atom);
    JS_FreePropertyEnum(ctx, keys, count);
}

static void finish(JSContext *ctx, enum status status)
{
    shared.status = status;
    if (status == DONE || status == EXITED)
        report_store(ctx);
    report_rest(ctx);
}

static void finish_waiting(JSContext *ctx, enum status status, const char *name, const char *message)
{
    JSValue stack = waiting_stack(ctx);
    if (JS_IsException(stack)) {
        forget_exception(ctx);
        stack = JS_UNDEFINED;
    }
    report_plain(ctx, name, message, stack);
    JS_FreeValue(ctx, stack);
    finish(ctx, status);
}

static void finish_stopped(JSContext *ctx)
{
    JSValue error = JS_GetException(ctx);
    if (guest.exiting) {
        finish(ctx, EXITED);
    } else if (JS_IsObject(error)) {
        report(ctx, "error", error);
        finish(ctx, INTERRUPTED);
    } else {
        finish_waiting(ctx, INTERRUPTED, "InternalError", "interrupted");
    }
    JS_FreeValue(ctx, error);
}

/* The run ends with the pending exception, or with its being stopped. */
static void finish_thrown(JSContext *ctx)
{
    if (guest.exiting || guest.interrupted) {
        finish_stopped(ctx);
        return;
    }
    JSValue error = JS_GetException(ctx);
    report(ctx, "error", error);
    JS_FreeValue(ctx, error);
    finish(ctx, FAILED);
}

static void finish_settled(JSContext *ctx)
{
    JSValue value = JS_PromiseResult(ctx, guest.main_promise);
    if (JS_PromiseState(ctx, guest.main_promise) == JS_PROMISE_REJECTED) {
        report(ctx, "error", value);
        finish(ctx, FAILED);
    } else if (write_return(ctx, value) && !guest.exiting && !guest.interrupted) {
        finish(ctx, DONE);
    } else {
        finish_thrown(ctx);
    }
    JS_FreeValue(ctx, value);
}

/* ---- running */

/* The place of a throw is kept by the engine until something catches; one job must not see the
   place of another's. */
static void forget_place(JSContext *ctx)
{
    JS_FreeValue(ctx, ctx->error_back_trace);
    ctx->error_back_trace = JS_UNDEFINED;
}

static bool is_settled(JSContext *ctx)
{
    return JS_PromiseState(ctx, guest.main_promise) != JS_PROMISE_PENDING;
}

/* Run the jobs. Each job is a tick, so that an interrupt among them can be replayed. When the
   script has returned, what it left in the queue gets a little time to fail audibly. */
static void drain(JSContext *ctx)
{
    JSContext *used;
    uint32_t after = 0;
    JSValue place = JS_UNDEFINED; /* of the throw that rejected the script */
    if (JS_IsUndefined(guest.main_promise) || shared.status != IDLE)
        return;
    for (;;) {
        if (is_settled(ctx) && !after++)
            place = js_dup(ctx->error_back_trace);
        if (after > JOBS_AFTER_END || !JS_IsJobPending(guest.rt))
            break;
        forget_place(ctx);
        if (tick() || JS_ExecutePendingJob(guest.rt, &used) < 0 || guest.exiting || guest.interrupted) {
            JS_FreeValue(ctx, place);
            finish_thrown(ctx);
            return;
        }
    }
    if (is_settled(ctx)) {
        forget_place(ctx);
        ctx->error_back_trace = place;
        finish_settled(ctx);
    } else if (!shared.pending) {
        finish_waiting(ctx, DEADLOCK, "Deadlock",
                       "the script waits for a promise that nothing can settle any more");
    }
}

/* ---- starting the script */

static const char *skip_blank(const char *at)
{
    for (;;) {
        while (*at == ' ' || (*at >= '\t' && *at <= '\r'))
            at++;
        if (at[0] == '/' && at[1] == '/') {
            while (*at && *at != '\n')
                at++;
        } else if (at[0] == '/' && at[1] == '*' && strstr(at + 2, "*/")) {
            at = strstr(at + 2, "*/") + 2;
        } else {
            return at;
        }
    }
}

/* `async () => …` or `(async () => …)()` may be a whole script; anything else is a body. */
static bool may_be_expression(const char *code)
{
    const char *at = skip_blank(code);
    while (*at == '(')
        at = skip_blank(at + 1);
    return !strncmp(at, "async", 5) && !lre_js_is_ident_next((uint8_t)at[5]);
}

/* The two newlines, with line -1, make the script's first line number 1, columns exact. */
static JSValue compile(JSContext *ctx, const char *before, const uint8_t *code, uint32_t n, const char *after)
{
    struct buffer text = {0};
    JSEvalOptions options = {.version = JS_EVAL_OPTIONS_VERSION, .filename = SCRIPT_NAME, .line_num = -1,
                             .eval_flags = JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY};
    JSValue compiled = JS_EXCEPTION;
    if (put_text(ctx, &text, before) && put(ctx, &text, code, n) && put(ctx, &text, after, strlen(after) + 1))
        compiled = JS_Eval2(ctx, (const char *)text.at, text.len - 1, &options);
    buffer_release(&text);
    return compiled;
}

static JSValue compile_script(JSContext *ctx, const struct entry *e)
{
    if (may_be_expression((const char *)e->at)) {
        uint32_t n = e->size;
        while (n && (e->at[n - 1] == ';' || e->at[n - 1] == ' ' || (e->at[n - 1] >= '\t' && e->at[n - 1] <= '\r')))
            n--;
        JSValue compiled = compile(ctx, "(\n\n", e->at, n, "\n)");
        if (!JS_IsException(compiled))
            return compiled;
        forget_exception(ctx);
        forget_place(ctx);
    }
    return compile(ctx, "(async function main(){\n\n", e->at, e->size, "\n})");
}

/* The promise of what a script's value comes to: a function is called, a promise is itself. */
static JSValue promise_of(JSContext *ctx, JSValue value)
{
    if (JS_IsFunction(ctx, value)) {
        guest.main_function = value;
        value = JS_Call(ctx, value, JS_UNDEFINED, 0, NULL);
    }
    if (JS_IsException(value) || JS_IsPromise(value))
        return value;
    JSValue promise = JS_NewSettledPromise(ctx, false, value);
    JS_FreeValue(ctx, value);
    return promise;
}

static void run(JSContext *ctx, const struct entry *e)
{
    JSValue compiled = compile_script(ctx, e);
    JSValue value = JS_IsException(compiled) ? compiled : JS_EvalFunction(ctx, compiled);
    JSValue promise = JS_IsException(value) ? value : promise_of(ctx, value);
    if (JS_IsException(promise) || guest.exiting || guest.interrupted) {
        JS_FreeValue(ctx, promise);
        finish_thrown(ctx);
        return;
    }
    JS_PromiseMarkAsHandled(ctx, promise);
    guest.main_promise = promise;
}

/* ---- settling */

/* Take the promise of a pending call or ask; undefined when there is none of that number. */
static JSValue take_promise(uint32_t number, struct call **out)
{
    bool is_ask = number >= ASK_BASE;
    struct calls *list = is_ask ? &guest.asks : &guest.calls;
    uint32_t index = (is_ask ? number - ASK_BASE : number) - 1;
    if (index >= list->count)
        return JS_UNDEFINED;
    JSValue promise = list->at[index].promise;
    *out = &list->at[index];
    list->at[index].promise = JS_UNDEFINED;
    if (!JS_IsUndefined(promise))
        shared.pending--;
    return promise;
}

static void move_property(JSContext *ctx, JSValueConst from, JSValueConst to, const char *name, int flags)
{
    JSValue v = JS_GetPropertyStr(ctx, from, name);
    JS_DefinePropertyValueStr(ctx, to, name, v, flags);
}

/* The ToolError of a rejected call. Its stack is the place that made the call: where the script
   awaits it is often a helper, and the call is what was wrong. */
static JSValue make_tool_error(JSContext *ctx, JSValue body, const struct entry *e, const struct call *c)
{
    if (!JS_IsObject(body))
        return body;
    JSValue error = JS_NewObjectProtoClass(ctx, guest.tool_error_proto, JS_CLASS_ERROR);
    if (!JS_IsException(error)) {
        char stack[400];
        JSValue tool = JS_GetPropertyStr(ctx, body, "tool");
        const char *name = JS_ToCString(ctx, tool);
        snprintf(stack, sizeof stack, "    at tools.%.300s (%s:%u:%u)\n", name ? name : "?", SCRIPT_NAME,
                 c->line, c->column);
        JS_FreeCString(ctx, name);
        JS_FreeValue(ctx, tool);
        JS_VALUE_GET_OBJ(error)->u.object_data = JS_NewString(ctx, stack);
        move_property(ctx, body, error, "message", JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
        move_property(ctx, body, error, "code", JS_PROP_C_W_E);
        move_property(ctx, body, error, "details", JS_PROP_C_W_E);
        move_property(ctx, body, error, "tool", JS_PROP_C_W_E);
        if (e->number < ASK_BASE)
            JS_DefinePropertyValueStr(ctx, error, "call_no", JS_NewUint32(ctx, e->number), JS_PROP_C_W_E);
    }
    JS_FreeValue(ctx, body);
    return error;
}

/* What was called: of a tool's names the last one is the original. */
static JSValue called_name(JSContext *ctx, const struct entry *e, const struct call *c)
{
    JSObject *tools = JS_IsObject(guest.tools) ? JS_VALUE_GET_OBJ(guest.tools) : NULL;
    JSAtom name = JS_ATOM_empty_string;
    if (e->number >= ASK_BASE)
        return JS_NewString(ctx, questions[c->tool]);
    for (int i = 0; tools && i < tools->shape->prop_count; i++) {
        JSValue f = tools->prop[i].u.value;
        if (JS_IsObject(f) && (uint16_t)JS_VALUE_GET_OBJ(f)->u.cfunc.magic == c->tool)
            name = get_shape_prop(tools->shape)[i].atom;
    }
    return JS_AtomToString(ctx, name);
}

/* The answer came in, but what it says has no room: an error like any other refusal. */
static JSValue make_room_error(JSContext *ctx, const struct entry *e, const struct call *c)
{
    JSValue body = JS_NewObject(ctx), details = JS_NewObject(ctx);
    if (JS_IsException(body) || JS_IsException(details)) {
        JS_FreeValue(ctx, body);
        JS_FreeValue(ctx, details);
        return JS_EXCEPTION;
    }
    JS_DefinePropertyValueStr(ctx, details, "limit", JS_NewString(ctx, "memory"), JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, details, "bytes", JS_NewUint32(ctx, e->size), JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, body, "code", JS_NewString(ctx, "LIMIT_EXCEEDED"), JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, body, "message", JS_NewString(ctx,
        "The value does not fit into the script's memory; ask for less, or raise the limit of memory."),
        JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, body, "details", details, JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, body, "tool", called_name(ctx, e, c), JS_PROP_C_W_E);
    return make_tool_error(ctx, body, e, c);
}

/* The value that a call is rejected with because its answer could not be read. */
static JSValue unreadable(JSContext *ctx, const struct entry *e, const struct call *c)
{
    JSValue thrown = JS_GetException(ctx);
    JSValue error = guest.out_of_memory ? make_room_error(ctx, e, c) : JS_EXCEPTION;
    if (JS_IsException(error)) {
        forget_exception(ctx);
        return thrown;
    }
    JS_FreeValue(ctx, thrown);
    return error;
}

/* UTF-8 as a string of the engine, which looks at each byte alone to see whether it is ASCII. */
static JSValue text_value(JSContext *ctx, const uint8_t *at, uint32_t n)
{
    uint64_t all = 0;
    uint32_t i = 0;
    for (uint64_t words[4]; n - i >= sizeof words; i += sizeof words) {
        memcpy(words, at + i, sizeof words);
        all |= (words[0] | words[1]) | (words[2] | words[3]);
    }
    while (i < n)
        all |= at[i++];
    if (n && !(all & 0x8080808080808080))
        return js_new_string8_len(ctx, (const char *)at, n);
    return JS_NewStringLen(ctx, (const char *)at, n);
}

static void settle(JSContext *ctx, const struct entry *e)
{
    struct call *c;
    JSValue promise = take_promise(e->number, &c), value;
    if (JS_IsUndefined(promise))
        return;
    bool is_reject = e->op == REJECT, before = guest.out_of_memory;
    guest.out_of_memory = false;
    if (is_reject)
        value = make_tool_error(ctx, json_read(ctx, e->at, e->size), e, c);
    else if (e->op == RESOLVE_TEXT)
        value = text_value(ctx, e->at, e->size);
    else
        value = json_read(ctx, e->at, e->size);
    if (JS_IsException(value)) {
        value = unreadable(ctx, e, c);
        is_reject = true;
    }
    guest.out_of_memory = before;
    fulfill_or_reject_promise(ctx, promise, value, is_reject);
    JS_FreeValue(ctx, value);
    JS_FreeValue(ctx, promise);
}

/* ---- the step */

static void perform(JSContext *ctx, const struct entry *e)
{
    switch (e->op) {
    case START:
        start(ctx, e);
        break;
    case TOOLS:
        set_tools(ctx, e);
        break;
    case STORE:
        set_store(ctx, e);
        break;
    case ARGS:
        set_args(ctx, e);
        break;
    case CATALOGUE:
        set_catalogue(ctx, e);
        break;
    case RUN:
        run(ctx, e);
        break;
    case RESOLVE:
    case RESOLVE_TEXT:
    case REJECT:
        settle(ctx, e);
        break;
    case END:
        finish_waiting(ctx, ENDED, "Ended", "the run was ended by its host");
        break;
    default:
        fatal();
    }
}

/* What one large input or output needed is given back: there may be a thousand VMs. */
static void give_back_outbox(void)
{
    if (outbox.cap <= 1u << 20)
        return;
    free(outbox.at);
    outbox.at = outbox_fixed;
    outbox.cap = OUTBOX_FIXED;
}

static void give_back_inbox(void)
{
    if (shared.in_ptr == (uint32_t)(uintptr_t)inbox_fixed)
        return;
    free((void *)(uintptr_t)shared.in_ptr);
    shared.in_ptr = (uint32_t)(uintptr_t)inbox_fixed;
    shared.in_cap = INBOX_FIXED;
}

static void take_clock(const uint8_t *at)
{
    double now;
    memcpy(&now, at, 8);
    if (now > clock_ms)
        clock_ms = now;
}

__attribute__((export_name("step"))) void step(void)
{
    JSContext *ctx = guest.ctx;
    const uint8_t *in = (const uint8_t *)(uintptr_t)shared.in_ptr;
    struct entry e;
    JS_UpdateStackTop(guest.rt);
    memset(known, 0, sizeof known);
    give_back_outbox();
    outbox.len = 0;
    outbox.at[outbox.len++] = '[';
    last_text.end = 0;
    if (shared.in_len >= 8)
        take_clock(in);
    for (uint32_t at = 8; at + 12 < shared.in_len && shared.status == IDLE; at += 13 + e.size) {
        e = (struct entry){word_at(in + at), word_at(in + at + 4), word_at(in + at + 8), in + at + 12};
        if (e.size > shared.in_len - at - 13)
            fatal();
        perform(ctx, &e);
        drain(ctx);
    }
    outbox.at[outbox.len++] = ']';
    shared.out_ptr = (uint32_t)(uintptr_t)outbox.at;
    shared.out_len = outbox.len;
    shared.in_len = 0;
    if (shared.in_cap > 1u << 20)
        give_back_inbox();
}

/* Make room for an input of `size` bytes; the host looks at in_cap to see whether it worked. */
__attribute__((export_name("inbox"))) void inbox(uint32_t size)
{
    void *at = size > shared.in_cap ? malloc(size) : NULL;
    if (!at)
        return;
    give_back_inbox();
    shared.in_ptr = (uint32_t)(uintptr_t)at;
    shared.in_cap = size;
}
