/* What every VM starts from: made once at build time, and kept as the image of the module. */

static void install(JSContext *ctx, JSValueConst on, const char *name, JSValue value)
{
    JS_DefinePropertyValueStr(ctx, on, name, value, JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
}

static void install_function(JSContext *ctx, JSValueConst on, const char *name, JSCFunction *f, int length)
{
    install(ctx, on, name, JS_NewCFunction(ctx, f, name, length));
}

static void install_magic(JSContext *ctx, JSValueConst on, const char *name, JSCFunctionMagic *f,
                          int length, int magic)
{
    install(ctx, on, name, JS_NewCFunctionMagic(ctx, f, name, length, JS_CFUNC_generic_magic, magic));
}

static void install_console(JSContext *ctx, JSValueConst global)
{
    static const char *const levels[] = {"log", "info", "warn", "error", "debug"};
    JSValue console = JS_NewObject(ctx);
    for (int i = 0; i < countof(levels); i++)
        install_magic(ctx, console, levels[i], write_text, 1, i + 1);
    install(ctx, global, "console", console);
}

static void install_json(JSContext *ctx, JSValueConst global)
{
    JSValue json = JS_GetPropertyStr(ctx, global, "JSON");
    install_function(ctx, json, "stringify", json_stringify, 3);
    install_function(ctx, json, "parse", json_parse, 2);
    JS_FreeValue(ctx, json);
}

static void install_globals(JSContext *ctx, JSValueConst global)
{
    install_magic(ctx, global, "text", write_text, 1, 0);
    install_console(ctx, global);
#ifdef FAST_JSON
    install_json(ctx, global);
#endif
    install_function(ctx, global, "image", write_image, 1);
    install_function(ctx, global, "store", store_set, 2);
    install_function(ctx, global, "load", store_get, 1);
    install_function(ctx, global, "exit", script_exit, 1);
    for (int i = 0; i < countof(questions); i++)
        install_magic(ctx, global, questions[i], ask, 1, i);
    JSAtom name = JS_NewAtom(ctx, "ALL_TOOLS");
    JSCFunctionType getter = {.getter = get_catalogue};
    JS_DefinePropertyGetSet(ctx, global, name,
                            JS_NewCFunction2(ctx, getter.generic, "get ALL_TOOLS", 0, JS_CFUNC_getter, 0),
                            JS_UNDEFINED, JS_PROP_CONFIGURABLE);
    JS_FreeAtom(ctx, name);
}

static void remove_global(JSContext *ctx, JSValueConst global, const char *name)
{
    JSAtom atom = JS_NewAtom(ctx, name);
    JS_DeleteProperty(ctx, global, atom, 0);
    JS_FreeAtom(ctx, atom);
}

/* Count a tick; true when the script must stop. The count stands still from then on: given as
   tick_limit, it stops a replay at the very same place. */
static bool tick(void)
{
    if (guest.interrupted || guest.exiting)
        return true;
    shared.ticks++;
    if (*(volatile uint32_t *)&shared.interrupt || (shared.tick_limit && shared.ticks >= shared.tick_limit))
        guest.interrupted = true;
    return guest.interrupted;
}

/* Called by the engine every so many jumps; a thousand make it quick to stop. */
static int on_interrupt(JSRuntime *rt, void *opaque)
{
    guest.ctx->interrupt_counter = 1000;
    return tick();
}

/* A function that waits for a promise which nothing refers to is gone at once, and with it the
   place where it waits: then the place where the promise was made is the best there is. */
static void on_promise(JSContext *ctx, JSPromiseHookType type, JSValueConst promise, JSValueConst parent,
                       void *opaque)
{
    if (type == JS_PROMISE_HOOK_INIT)
        find_caller(ctx, &guest.made_line, &guest.made_column);
}

static const char library[] = {
#embed "library.js"
    , 0};

static void fatal(void)
{
    __builtin_trap();
}

static JSContext *new_context(JSRuntime *rt)
{
    JSContext *ctx = JS_NewContextRaw(rt);
    if (!ctx || JS_AddIntrinsicBaseObjects(ctx) || JS_AddIntrinsicDate(ctx) || JS_AddIntrinsicEval(ctx) ||
        JS_AddIntrinsicRegExp(ctx) || JS_AddIntrinsicJSON(ctx) || JS_AddIntrinsicProxy(ctx) ||
        JS_AddIntrinsicMapSet(ctx) || JS_AddIntrinsicTypedArrays(ctx) || JS_AddIntrinsicPromise(ctx) ||
        JS_AddIntrinsicWeakRef(ctx) || JS_AddIntrinsicAToB(ctx))
        fatal();
    return ctx;
}

/* The object behind `tools` before a host gave any: it only knows that a tool is unknown. */
static void boot_tools(JSContext *ctx)
{
    guest.tools_class = 0;
    JS_NewClassID(guest.rt, &guest.tools_class);
    if (JS_NewClass(guest.rt, guest.tools_class, &tools_class))
        fatal();
    guest.tools_proto = JS_NewObjectProtoClass(ctx, JS_NULL, guest.tools_class);
    guest.tools = JS_NewObjectProto(ctx, guest.tools_proto);
}

static void boot_library(JSContext *ctx, JSValueConst global)
{
    JSValue done = JS_Eval(ctx, library, sizeof library - 1, "library.js", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(done))
        fatal();
    JS_FreeValue(ctx, done);
    JSValue maker = JS_GetPropertyStr(ctx, global, "ToolError");
    guest.tool_error_proto = JS_GetPropertyStr(ctx, maker, "prototype");
    JS_FreeValue(ctx, maker);
}

/* A script's own data must not be strewn over the image: it would make a page of each VM's own out
   of every page that has a hole. Blocks that the start-up left free are never given out again, and
   the lists of what comes later do not go through what was there before. */
static void close_arenas(JSArenaState *s)
{
    struct list_head *el, *next;
    for (int i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++) {
        list_for_each_safe(el, next, &s->free_arena_list[i]) {
            list_del(el);
            init_list_head(el); /* it is taken out once more when its last block is freed */
        }
        list_del(&s->arena_list[i]); /* a ring without a head is left */
        init_list_head(&s->arena_list[i]);
    }
}

static void close_holes(void)
{
    char *end = malloc(65536), *block;
    for (size_t size = 32768; size >= 16; size /= 2) {
        while ((block = malloc(size)) && block < end)
            ;
        free(block);
    }
    free(end);
}

__attribute__((export_name("boot"))) void boot(void)
{
    static const char *const absent[] = {"SharedArrayBuffer", "Atomics", "performance", "navigator", "gc"};
    shared = (struct shared){.in_ptr = (uint32_t)(uintptr_t)inbox_fixed, .in_cap = INBOX_FIXED};
    guest.limits = (struct limits){1u << 20, 1u << 24, 1u << 24, 5000, 262144, 1u << 20, 400, 0};
    guest.rt = JS_NewRuntime2(&heap_functions, NULL);
    if (!guest.rt)
        fatal();
    JS_SetMaxStackSize(guest.rt, 900 * 1024);
    JSContext *ctx = guest.ctx = new_context(guest.rt);
    JSValue global = JS_GetGlobalObject(ctx);
    guest.main_function = guest.main_promise = guest.catalogue_text = guest.limit_error = JS_UNDEFINED;
    guest.catalogue = JS_NewArray(ctx);
    guest.store = JS_NewObjectProto(ctx, JS_NULL);
    guest.store_dirty = JS_NewObjectProto(ctx, JS_NULL);
    boot_tools(ctx);
    install_globals(ctx, global);
    install(ctx, global, "tools", js_dup(guest.tools));
    JSValue args = JS_NewObject(ctx);
    JS_FreeValue(ctx, js_object_seal(ctx, JS_UNDEFINED, 1, vc(&args), 1));
    JS_DefinePropertyValueStr(ctx, global, "args", args, JS_PROP_CONFIGURABLE);
    for (int i = 0; i < countof(absent); i++)
        remove_global(ctx, global, absent[i]);
    boot_library(ctx, global);
    JS_FreeValue(ctx, global);
    JS_SetInterruptHandler(guest.rt, on_interrupt, NULL);
    JS_SetHostPromiseRejectionTracker(guest.rt, track_rejection, NULL);
    JS_SetPromiseHook(guest.rt, on_promise, NULL);
    JS_RunGC(guest.rt);
    close_arenas(&guest.rt->arena_state);
    close_holes();
}

/* Where the struct shared with the host is; the build asks once and writes it down. */
__attribute__((export_name("shared_address"))) struct shared *shared_address(void)
{
    return &shared;
}
