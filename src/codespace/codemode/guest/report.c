/* What the host is told of errors: read from data properties, so that a hostile error object
   cannot run code, throw, or lie about where it was thrown. */

enum { STACK_MAX = 2000, MESSAGE_MAX = 2000, SHORT_MAX = 100 };

struct problem {
    JSValueConst name, message, stack, code; /* borrowed; undefined when absent */
    const char *plain_name, *plain_message;  /* used when the above are absent */
    const char *limit;
    uint32_t line, column, call_no;
    struct buffer *text; /* the message when it had to be made */
};

/* A string of the engine as a JSON string, cut to `max` units. It goes straight to the outbox,
   whose reserve holds it also when there is no memory left. */
static bool put_cut(JSContext *ctx, JSValueConst v, uint32_t max)
{
    JSValue flat = js_dup(v);
    if (JS_VALUE_GET_TAG(v) != JS_TAG_STRING) { /* a rope */
        flat = JS_ToString(ctx, v);
        if (JS_IsException(flat)) {
            JS_FreeValue(ctx, JS_GetException(ctx));
            return put_text(ctx, &outbox, "\"\"");
        }
    }
    JSString *s = JS_VALUE_GET_STRING(flat);
    uint32_t n = s->len < max ? s->len : max;
    bool ok = put_char(ctx, &outbox, '"') &&
              (s->is_wide_char ? put_string16(ctx, &outbox, str16(s), n, true)
                               : put_string8(ctx, &outbox, str8(s), n, true)) &&
              put_char(ctx, &outbox, '"');
    JS_FreeValue(ctx, flat);
    return ok;
}

/* The first place in the script that a stack names. Frames look like `at f (script.js:2:15)`. */
static void find_place(const char *stack, uint32_t *line, uint32_t *column)
{
    const char *at = stack;
    while ((at = strstr(at, SCRIPT_NAME ":"))) {
        char *next;
        at += strlen(SCRIPT_NAME ":");
        *line = strtoul(at, &next, 10);
        if (*next == ':')
            *column = strtoul(next + 1, NULL, 10);
        if (*line)
            return;
    }
}

static void find_place_of(JSContext *ctx, JSValueConst stack, struct problem *p)
{
    const char *text = is_text(stack) ? JS_ToCString(ctx, stack) : NULL;
    if (text)
        find_place(text, &p->line, &p->column);
    else if (is_text(stack))
        JS_FreeValue(ctx, JS_GetException(ctx));
    JS_FreeCString(ctx, text);
}

static uint32_t data_number(JSContext *ctx, JSObject *p, const char *name)
{
    JSAtom atom = JS_NewAtom(ctx, name);
    JSValueConst v = data_property(ctx, p, atom);
    JS_FreeAtom(ctx, atom);
    return JS_VALUE_GET_TAG(v) == JS_TAG_INT ? JS_VALUE_GET_INT(v) : 0;
}

static bool text_is(JSContext *ctx, JSValueConst v, const char *expected)
{
    if (JS_VALUE_GET_TAG(v) != JS_TAG_STRING)
        return false;
    JSString *s = JS_VALUE_GET_STRING(v);
    return !s->is_wide_char && s->len == strlen(expected) && !memcmp(str8(s), expected, s->len);
}

static bool is_tool_error(JSObject *p)
{
    return !JS_IsUndefined(guest.tool_error_proto) &&
           p->shape->proto == JS_VALUE_GET_OBJ(guest.tool_error_proto);
}

/* There was no memory left to make the error with. */
static void describe_memory(struct problem *out)
{
    out->name = out->message = JS_UNDEFINED;
    out->plain_name = "InternalError";
    out->plain_message = "out of memory";
    out->limit = "memory";
}

static void describe_error(JSContext *ctx, JSObject *p, struct problem *out)
{
    out->name = data_text(ctx, p, "name");
    out->message = data_text(ctx, p, "message");
    out->stack = data_property(ctx, p, JS_ATOM_stack);
    if (p->class_id == JS_CLASS_ERROR && is_text(p->u.object_data))
        out->stack = p->u.object_data;
    find_place_of(ctx, out->stack, out);
    out->plain_name = "Error";
    if (p->class_id != JS_CLASS_ERROR && !is_text(out->message)) {
        inspect(ctx, out->text, JS_MKPTR(JS_TAG_OBJECT, p));
        out->plain_name = "";
    }
    if (is_tool_error(p)) {
        out->code = data_text(ctx, p, "code");
        out->call_no = data_number(ctx, p, "call_no");
    }
    JSValueConst limit = guest.limit_error;
    if (JS_VALUE_GET_TAG(limit) == JS_TAG_OBJECT && JS_VALUE_GET_OBJ(limit) == p)
        out->limit = guest.limit_name;
    else if (guest.out_of_memory && text_is(ctx, out->message, "out of memory"))
        out->limit = "memory";
    else if (guest.out_of_memory && text_is(ctx, out->message, "Invalid error message"))
        describe_memory(out); /* what the engine says when that did not fit */
    else if (text_is(ctx, out->message, "Maximum call stack size exceeded"))
        out->limit = "stack";
}

/* A thrown value that is no error has no stack; the engine keeps the place of the last throw. */
static void describe_value(JSContext *ctx, JSValueConst v, struct problem *out)
{
    out->plain_name = "";
    out->stack = ctx->error_back_trace;
    find_place_of(ctx, out->stack, out);
    /* Some of the engine's functions fail for want of memory and throw nothing. */
    if (JS_IsUninitialized(v) || (JS_IsNull(v) && guest.out_of_memory)) {
        describe_memory(out);
    } else if (is_text(v)) {
        out->message = v;
    } else {
        inspect(ctx, out->text, v);
    }
}

static bool put_problem_text(JSContext *ctx, JSValueConst v, const char *plain, uint32_t max)
{
    if (is_text(v))
        return put_cut(ctx, v, max);
    return put_quoted(ctx, &outbox, (const uint8_t *)plain, strlen(plain));
}

static bool put_message(JSContext *ctx, struct problem *p)
{
    if (is_text(p->message) || !p->text->len)
        return put_problem_text(ctx, p->message, p->plain_message ? p->plain_message : "", MESSAGE_MAX);
    uint32_t n = p->text->len < MESSAGE_MAX ? p->text->len : MESSAGE_MAX;
    while (n && n < p->text->len && (p->text->at[n] & 0xc0) == 0x80)
        n--;
    return put_quoted(ctx, &outbox, p->text->at, n);
}

static bool put_number(JSContext *ctx, uint32_t value)
{
    return put_char(ctx, &outbox, ',') && put_decimal(ctx, &outbox, value);
}

static bool put_problem(JSContext *ctx, struct problem *p)
{
    return put_char(ctx, &outbox, ',') && put_problem_text(ctx, p->name, p->plain_name, SHORT_MAX) &&
           put_char(ctx, &outbox, ',') && put_message(ctx, p) && put_number(ctx, p->line) &&
           put_number(ctx, p->column) && put_char(ctx, &outbox, ',') &&
           put_problem_text(ctx, p->stack, "", STACK_MAX) && put_number(ctx, p->call_no) &&
           put_char(ctx, &outbox, ',') && put_problem_text(ctx, p->code, "", SHORT_MAX) &&
           put_char(ctx, &outbox, ',') &&
           put_quoted(ctx, &outbox, (const uint8_t *)p->limit, strlen(p->limit));
}

static void forget_exception(JSContext *ctx)
{
    JS_FreeValue(ctx, JS_GetException(ctx));
}

/* Report the thrown value `v` as the operation `name`. */
static void report(JSContext *ctx, const char *name, JSValueConst v)
{
    uint32_t mark;
    struct buffer text = {.max = 65536, .limit = "message", .message = "the message is too long"};
    struct problem p = {.name = JS_UNDEFINED, .message = JS_UNDEFINED, .stack = JS_UNDEFINED,
                        .code = JS_UNDEFINED, .plain_name = "", .limit = "", .text = &text};
    if (JS_VALUE_GET_TAG(v) == JS_TAG_OBJECT)
        describe_error(ctx, JS_VALUE_GET_OBJ(v), &p);
    else
        describe_value(ctx, v, &p);
    if (!op_end(ctx, mark, op_begin(ctx, name, &mark) && put_problem(ctx, &p)))
        forget_exception(ctx);
    buffer_release(&text);
}

/* Report an error of our own, with no thrown value behind it. */
static void report_plain(JSContext *ctx, const char *name, const char *message, JSValueConst stack)
{
    uint32_t mark;
    struct buffer text = {0};
    struct problem p = {.name = JS_UNDEFINED, .message = JS_UNDEFINED, .stack = stack,
                        .code = JS_UNDEFINED, .plain_name = name, .plain_message = message,
                        .limit = "", .text = &text};
    find_place_of(ctx, stack, &p);
    if (!op_end(ctx, mark, op_begin(ctx, "error", &mark) && put_problem(ctx, &p)))
        forget_exception(ctx);
}

/* The async functions that wait, the newest first, as a stack. */
static JSValue waiting_stack(JSContext *ctx)
{
    JSAsyncFunctionData *found[32];
    uint32_t count = 0;
    struct list_head *el;
    struct buffer text = {0};
    list_for_each(el, &ctx->rt->gc_obj_list) {
        JSGCObjectHeader *h = list_entry(el, JSGCObjectHeader, link);
        JSAsyncFunctionData *s = (JSAsyncFunctionData *)h;
        if (JS_GC_TYPE(h) == JS_GC_OBJ_TYPE_ASYNC_FUNCTION && s->is_active)
            found[count++ % countof(found)] = s;
    }
    for (uint32_t i = 0; i < count && i < 8; i++) {
        JSStackFrame *sf = &found[(count - 1 - i) % countof(found)]->func_state.frame;
        if (JS_VALUE_GET_TAG(sf->cur_func) != JS_TAG_OBJECT || !sf->cur_pc)
            continue;
        JSFunctionBytecode *b = JS_VALUE_GET_OBJ(sf->cur_func)->u.func.function_bytecode;
        int column, line = find_line_num(ctx, b, sf->cur_pc - b->byte_code_buf - 1, &column);
        char place[64];
        snprintf(place, sizeof place, " (%s:%d:%d)\n", SCRIPT_NAME, line, column);
        JSValueConst name = data_text(ctx, JS_VALUE_GET_OBJ(sf->cur_func), "name");
        bool ok = put_text(ctx, &text, "    at ") &&
                  (is_text(name) ? put_js_string(ctx, &text, name, false)
                                 : put_text(ctx, &text, "<anonymous>")) &&
                  put_text(ctx, &text, place);
        if (!ok)
            forget_exception(ctx);
    }
    if (!count && guest.made_line) {
        char place[64];
        snprintf(place, sizeof place, "    at new Promise (%s:%u:%u)\n", SCRIPT_NAME, guest.made_line,
                 guest.made_column);
        if (!put_text(ctx, &text, place))
            forget_exception(ctx);
    }
    JSValue stack = JS_NewStringLen(ctx, (char *)text.at, text.len);
    buffer_release(&text);
    return stack;
}

/* Called by the engine when a promise is rejected unhandled, and when that is made good. */
static void track_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason,
                            bool is_handled, void *opaque)
{
    if (!is_handled) {
        if (guest.unhandled_count == UNHANDLED_MAX) {
            guest.unhandled_lost++;
            return;
        }
        struct rejection *r = &guest.unhandled[guest.unhandled_count++];
        r->promise = js_dup(promise);
        r->reason = js_dup(reason);
        return;
    }
    for (uint32_t i = guest.unhandled_count; i-- > 0;) {
        struct rejection *r = &guest.unhandled[i];
        if (JS_VALUE_GET_PTR(r->promise) != JS_VALUE_GET_PTR(promise))
            continue;
        struct rejection gone = *r;
        memmove(r, r + 1, (guest.unhandled_count - i - 1) * sizeof *r);
        guest.unhandled_count--;
        JS_FreeValue(ctx, gone.promise);
        JS_FreeValue(ctx, gone.reason);
        return;
    }
    if (guest.unhandled_lost)
        guest.unhandled_lost--;
}

static void put_simple_op(JSContext *ctx, const char *name, const uint32_t *numbers, int count)
{
    uint32_t mark;
    bool ok = op_begin(ctx, name, &mark);
    for (int i = 0; ok && i < count; i++)
        ok = put_number(ctx, numbers[i]);
    if (!op_end(ctx, mark, ok))
        forget_exception(ctx);
}

/* What is left open when the run ends: calls without an answer, rejections nobody handled. */
static void report_rest(JSContext *ctx)
{
    for (uint32_t i = 0; i < guest.calls.count; i++) {
        struct call *c = &guest.calls.at[i];
        if (!JS_IsUndefined(c->promise))
            put_simple_op(ctx, "pending", (uint32_t[]){i + 1, c->line, c->column}, 3);
    }
    for (uint32_t i = 0; i < guest.unhandled_count; i++)
        report(ctx, "unhandled", guest.unhandled[i].reason);
    if (guest.unhandled_lost)
        put_simple_op(ctx, "lost", &guest.unhandled_lost, 1);
}
