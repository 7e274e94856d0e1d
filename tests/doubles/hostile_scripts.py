"""Scripts that want to hang, fill, crash or confuse. None may harm another run."""

SPINNING = {
    "while true": "while (true) {}",
    "catch and go on": "for (;;) { try { while (true) {} } catch {} finally { continue } }",
    "microtasks": "while (true) await null",
    "then chains": "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
    "regex": "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
    "never polls": "return new Array(2 ** 32 - 1).join('').length",
    "waits for the clock": "const t = Date.now(); while (Date.now() < t + 50);",
    "calls without end": "while (true) await tools.echo({a: 1})",
    "searches without end": "while (true) await searchTools('echo')",
}
FILLING = {
    "arrays": "const a = []; for (;;) a.push(new Array(100000).fill('x'))",
    "strings": "let s = 'x'; for (;;) s += s",
    "buffers": "const a = []; for (;;) a.push(new ArrayBuffer(1e6))",
    "promises": "const a = []; for (;;) a.push(new Promise(() => {}))",
    "logs": "for (;;) console.log('x'.repeat(1000))",
    "calls": "for (;;) tools.echo({a: 1})",
    "large calls": "for (;;) tools.echo({a: 'x'.repeat(500000)})",
    "rejections": "for (let i = 0; i < 1e5; i++) Promise.reject(Error('no')); await tools.echo()",
    "store": "for (let i = 0; ; i++) store('k' + i, 'x'.repeat(1000))",
    "questions": "for (;;) describeTool('echo')",
    "images": "for (;;) image({type: 'image', data: 'A'.repeat(10000), mimeType: 'image/png'})",
}
CRASHING = {
    "recursion": "const f = () => f() + 1; f()",
    "deep json": "let v = []; for (let i = 0; i < 1e5; i++) v = [v]; return v",
    "deep source": "return eval('['.repeat(1e5))",
    "throws a proxy": "const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); throw proxy",
    "hostile getters": "throw Object.create(Error.prototype, {message: {get() { throw 1 }}})",
    "thenable tools": "Object.prototype.then = f => f(1); return await tools.echo({})",
    "broken promise": "Promise.prototype.constructor = null; Promise.prototype.then = 1; "
    "return await tools.echo({})",
    "broken json": "JSON.parse = JSON.stringify = () => { throw 1 }; return await tools.echo({})",
    "unclosed": "const f = () => {",
    "wrapper": "}); throw 1; (async function () {",
    "symbol": "throw Symbol('x')",
    "wrong surrogate": "text('\\ud800'); return await tools.echo({['\\udc00']: '\\ud800'})",
    "returns itself": "const a = {}; a.a = a; return a",
    "exits in a getter": "return {get a() { exit(1) }}",
}
