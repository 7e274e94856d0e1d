/* All that the guest remembers besides the engine's own state, and the struct shared with the
   host. `struct shared` is mirrored in wasm.py; a change here is a change there. */

enum { INBOX_FIXED = 65536, OUTBOX_FIXED = 65536, OUTBOX_RESERVE = 32768, UNHANDLED_MAX = 1000 };

enum status { IDLE, DONE, FAILED, DEADLOCK, INTERRUPTED, EXITED, ENDED };

struct shared {
    uint32_t in_ptr, in_cap, in_len; /* the step's input: written by the host */
    uint32_t out_ptr, out_len;       /* the step's output: written by the guest */
    uint32_t status, pending;
    uint32_t interrupt;              /* set by the host, from any thread; never cleared */
    uint32_t tick_limit;             /* set by the host: interrupt at this tick; 0: none */
    uint32_t ticks;                  /* polls of the interrupt handler, over the whole life */
};

static struct shared shared;
static uint8_t inbox_fixed[INBOX_FIXED];

struct limits { /* mirrors protocol.Limits */
    uint32_t arguments_bytes, value_bytes, output_bytes, calls;
    uint32_t store_value_chars, store_total_chars, nesting, heap_bytes;
};

/* A call that was made: its promise while it is pending, and the place that made it. */
struct call {
    JSValue promise; /* undefined once settled */
    uint32_t line, column;
    uint32_t tool; /* its index; of an ask: which question */
};

struct calls {
    struct call *at; /* number 1 is at[0] */
    uint32_t count, cap;
};

struct rejection {
    JSValue promise, reason;
};

static struct {
    JSRuntime *rt;
    JSContext *ctx;
    struct limits limits;
    bool exiting;     /* exit() was called: nothing may run any more */
    bool interrupted; /* the handler said stop: nothing may run any more */
    bool out_of_memory;
    struct calls calls, asks;
    uint32_t output_bytes;
    uint32_t store_chars;
    JSValue main_function, main_promise;
    JSValue tool_error_proto;
    JSValue tools_proto;      /* of `tools`: says that a tool is unknown */
    JSValue tools;
    JSValue catalogue_text;   /* JSON of ALL_TOOLS until it is asked for */
    JSValue catalogue;
    JSValue store;            /* key → JSON text, undefined when deleted */
    JSValue store_dirty;      /* keys that this run wrote */
    JSValue limit_error;      /* the last error made for a broken limit ... */
    const char *limit_name;   /* ... and the limit's name */
    struct rejection unhandled[UNHANDLED_MAX];
    uint32_t unhandled_count, unhandled_lost;
    uint32_t made_line, made_column; /* where the script made its last promise */
    JSClassID tools_class;
} guest;

#define ASK_BASE 0x80000000u
#define SCRIPT_NAME "script.js"

/* Throw the RangeError of a broken limit, and remember which one it was. */
static JSValue throw_limit(JSContext *ctx, const char *limit, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    JS_ThrowRangeError(ctx, "%s", text);
    JS_FreeValue(ctx, guest.limit_error);
    guest.limit_error = js_dup(ctx->rt->current_exception);
    guest.limit_name = limit;
    return JS_EXCEPTION;
}

/* True when the script may not run on; an error that cannot be caught is then pending. */
static bool must_stop(JSContext *ctx)
{
    if (!guest.exiting && !guest.interrupted)
        return false;
    JS_ThrowInternalError(ctx, guest.exiting ? "exit" : "interrupted");
    JS_SetUncatchableError(ctx, ctx->rt->current_exception);
    return true;
}
