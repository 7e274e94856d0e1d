/* The engine's allocator: libc's, with the size of each block in a header of its own.

   zig's libc may give a neighbour's slack to a block in use, so that malloc_usable_size of a live
   block grows; the engine then subtracts more on free than it added, and aborts. The header is
   what the engine gets to see instead. The limit is enforced here, not with JS_SetMemoryLimit, so
   that a failed allocation leaves its mark even when no error object could be made for it. */

struct header {
    uint32_t size, unused; /* 8 bytes keep the alignment */
};

static uint32_t heap_used;

static void *heap_fail(void)
{
    guest.out_of_memory = true;
    return NULL;
}

static bool heap_has(uint32_t size, uint32_t freed)
{
    uint32_t limit = guest.limits.heap_bytes;
    return size < 0x7fffffff && (!limit || heap_used - freed + size <= limit);
}

static void *heap_malloc(void *opaque, size_t size)
{
    if (!heap_has(size, 0))
        return heap_fail();
    struct header *h = malloc(size + sizeof *h);
    if (!h)
        return heap_fail();
    h->size = size;
    heap_used += size;
    return h + 1;
}

static void *heap_calloc(void *opaque, size_t count, size_t size)
{
    if (size && count > 0x7fffffff / size)
        return heap_fail();
    void *block = heap_malloc(opaque, count * size);
    if (block)
        memset(block, 0, count * size);
    return block;
}

static void heap_free(void *opaque, void *block)
{
    if (!block)
        return;
    struct header *h = (struct header *)block - 1;
    heap_used -= h->size;
    free(h);
}

static void *heap_realloc(void *opaque, void *block, size_t size)
{
    if (!block)
        return heap_malloc(opaque, size);
    struct header *h = (struct header *)block - 1;
    uint32_t before = h->size;
    if (!heap_has(size, before))
        return heap_fail();
    h = realloc(h, size + sizeof *h);
    if (!h)
        return heap_fail();
    h->size = size;
    heap_used += size - before;
    return h + 1;
}

static size_t heap_usable_size(const void *block)
{
    return block ? ((const struct header *)block - 1)->size : 0;
}

static const JSMallocFunctions heap_functions = {
    heap_calloc, heap_malloc, heap_free, heap_realloc, heap_usable_size,
};
