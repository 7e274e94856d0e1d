// What models expect beside ECMAScript, in plain JavaScript. It stands in the image of every VM and
// never touches the bridge: whatever a script does to it, it does to itself.
(() => {
  "use strict";
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});

  // ---- errors of tools
  class ToolError extends Error {
    constructor(code, message, details) {
      super(message);
      this.code = code;
      this.details = details;
    }
    toJSON() {
      const {name, message, code, details, tool, call_no} = this;
      return {name, code, message, details, tool, call_no};
    }
  }
  Object.defineProperty(ToolError.prototype, "name", {value: "ToolError", writable: true, configurable: true});
  define("ToolError", ToolError);

  // ---- structuredClone
  const uncloneable = what => { throw new DOMException(`${what} could not be cloned.`, "DataCloneError"); };
  const classes = {__proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError};

  const cloneError = (value, seen) => {
    const copy = Object.create((classes[value.name] ?? Error).prototype);
    const made = new Error(String(value.message));
    Object.setPrototypeOf(made, Object.getPrototypeOf(copy));
    seen.set(value, made);
    Object.defineProperty(made, "stack", {value: value.stack, writable: true, configurable: true});
    if ("cause" in value) Object.defineProperty(made, "cause", {value: clone(value.cause, seen), writable: true, configurable: true});
    return made;
  };

  const keep = (seen, value, copy) => (seen.set(value, copy), copy);

  const cloneView = (value, seen) => {
    const buffer = clone(value.buffer, seen);
    const length = value instanceof DataView ? value.byteLength : value.length;
    return keep(seen, value, new value.constructor(buffer, value.byteOffset, length));
  };

  const cloneSpecial = (value, seen) => {
    switch (Object.prototype.toString.call(value)) {
      case "[object Date]": return keep(seen, value, new Date(value.getTime()));
      case "[object RegExp]": return keep(seen, value, new RegExp(value.source, value.flags));
      case "[object Boolean]": case "[object Number]": case "[object String]": case "[object BigInt]":
        return keep(seen, value, Object(value.valueOf()));
      case "[object ArrayBuffer]": return keep(seen, value, value.slice(0));
    }
    if (value instanceof Map) {
      const copy = keep(seen, value, new Map());
      for (const [k, v] of value) copy.set(clone(k, seen), clone(v, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(seen, value, new Set());
      for (const v of value) copy.add(clone(v, seen));
      return copy;
    }
    if (value instanceof Error) return cloneError(value, seen);
    if (ArrayBuffer.isView(value)) return cloneView(value, seen);
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef)
      uncloneable(`A ${value.constructor.name}`);
    return undefined;
  };

  const clone = (value, seen) => {
    if (typeof value === "function") uncloneable(`Function ${value.name || "(anonymous)"}`);
    if (typeof value === "symbol") uncloneable(String(value));
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const special = cloneSpecial(value, seen);
    if (special !== undefined) return special;
    const copy = keep(seen, value, Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value))
      Object.defineProperty(copy, key, {value: clone(value[key], seen), writable: true, enumerable: true, configurable: true});
    return copy;
  };

  define("structuredClone", function structuredClone(value) {
    if (!arguments.length) throw new TypeError("structuredClone takes a value");
    return clone(value, new Map());
  });

  // ---- text and bytes
  const utf8Labels = new Set(["utf-8", "utf8", "unicode-1-1-utf-8"]);

  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") {
      const from = String(text).toWellFormed();
      const out = new Uint8Array(from.length * 3);
      return out.slice(0, this.encodeInto(from, out).written);
    }
    encodeInto(text, out) {
      let read = 0, at = 0;
      for (const part of String(text).toWellFormed()) {
        const c = part.codePointAt(0), size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (at + size > out.length) break;
        if (size === 1) out[at++] = c;
        else {
          out[at++] = (size === 2 ? 0xc0 : size === 3 ? 0xe0 : 0xf0) | (c >> 6 * (size - 1));
          for (let i = size - 2; i >= 0; i--) out[at++] = 0x80 | ((c >> 6 * i) & 63);
        }
        read += part.length;
      }
      return {read, written: at};
    }
  }
  define("TextEncoder", TextEncoder);

  const bytesOf = source =>
    source === undefined ? new Uint8Array(0)
      : ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
      : new Uint8Array(source);

  // One character at `at`: [code point, bytes used]. A maximal wrong part is one U+FFFD.
  const decodeOne = (b, at) => {
    const c = b[at];
    if (c < 0x80) return [c, 1];
    const size = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (!size) return [-1, 1];
    let code = c & (0x7f >> size);
    for (let i = 1; i < size; i++) {
      const next = b[at + i];
      const low = i > 1 ? 0x80 : c === 0xe0 ? 0xa0 : c === 0xf0 ? 0x90 : 0x80;
      const high = i > 1 ? 0xbf : c === 0xed ? 0x9f : c === 0xf4 ? 0x8f : 0xbf;
      if (!(next >= low && next <= high)) return [-1, i, next === undefined];
      code = (code << 6) | (next & 63);
    }
    return [code, size];
  };

  class TextDecoder {
    #fatal; #ignoreBOM; #rest = new Uint8Array(0); #started = false;
    constructor(label = "utf-8", {fatal = false, ignoreBOM = false} = {}) {
      if (!utf8Labels.has(String(label).trim().toLowerCase())) throw new RangeError("only UTF-8 is supported");
      this.#fatal = Boolean(fatal);
      this.#ignoreBOM = Boolean(ignoreBOM);
    }
    get encoding() { return "utf-8"; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    #join(bytes) {
      if (!this.#rest.length) return bytes;
      const all = new Uint8Array(this.#rest.length + bytes.length);
      all.set(this.#rest);
      all.set(bytes, this.#rest.length);
      return all;
    }
    decode(source, {stream = false} = {}) {
      const bytes = this.#join(bytesOf(source)), parts = [];
      let at = 0;
      this.#rest = new Uint8Array(0);
      while (at < bytes.length) {
        const [code, used, cut] = decodeOne(bytes, at);
        if (cut && stream) {
          this.#rest = bytes.slice(at);
          break;
        }
        if (code < 0 && this.#fatal) throw new TypeError("the bytes are not UTF-8");
        at += used;
        if (code === 0xfeff && !this.#started && !this.#ignoreBOM) { this.#started = true; continue; }
        this.#started = true;
        parts.push(String.fromCodePoint(code < 0 ? 0xfffd : code));
      }
      if (!stream) this.#started = false;
      return parts.join("");
    }
  }
  define("TextDecoder", TextDecoder);

  // ---- URLs
  const encoder = new TextEncoder(), decoder = new TextDecoder();
  const percent = byte => "%" + byte.toString(16).toUpperCase().padStart(2, "0");
  const escapeWith = (text, plain) => {
    let out = "";
    for (const byte of encoder.encode(text)) {
      const c = String.fromCharCode(byte);
      out += byte < 0x80 && plain(c) ? c : percent(byte);
    }
    return out;
  };
  const unescape = text => {
    if (!text.includes("%")) return text;
    const out = [];
    const bytes = encoder.encode(text);
    for (let i = 0; i < bytes.length; i++) {
      const hex = bytes[i] === 37 ? String.fromCharCode(bytes[i + 1] ?? 0, bytes[i + 2] ?? 0) : "";
      if (/^[0-9a-f]{2}$/i.test(hex)) { out.push(parseInt(hex, 16)); i += 2; }
      else out.push(bytes[i]);
    }
    return decoder.decode(new Uint8Array(out));
  };
  const printable = c => c > " " && c <= "~";
  const inFragment = c => printable(c) && !"\"<>`".includes(c);
  const inQuery = c => printable(c) && !"\"#<>".includes(c);
  const inSpecialQuery = c => inQuery(c) && c !== "'";
  const inPath = c => inQuery(c) && !"?^`{}".includes(c);
  const inUser = c => inPath(c) && !"/:;=@[\\]|".includes(c);
  const inForm = c => /[\w*.-]/.test(c);
  const formEscape = text => escapeWith(text, c => inForm(c) || c === " ").replaceAll(" ", "+");
  const formUnescape = text => unescape(text.replaceAll("+", " "));

  class URLSearchParams {
    #pairs = []; #changed = null;
    constructor(init = "") {
      if (typeof init === "object" && init !== null && typeof init[Symbol.iterator] === "function") {
        for (const pair of init) {
          const [name, value, ...more] = pair;
          if (value === undefined || more.length) throw new TypeError("each pair is a name and a value");
          this.#pairs.push([String(name), String(value)]);
        }
      } else if (typeof init === "object" && init !== null) {
        for (const name of Object.keys(init)) this.#pairs.push([name, String(init[name])]);
      } else this.#parse(String(init));
    }
    #parse(text) {
      this.#pairs = text.replace(/^\?/, "").split("&").filter(Boolean).map(part => {
        const at = part.indexOf("=");
        return at < 0 ? [formUnescape(part), ""] : [formUnescape(part.slice(0, at)), formUnescape(part.slice(at + 1))];
      });
    }
    #touch() { this.#changed?.(); }
    static _of(text, changed) {
      const made = new URLSearchParams(text);
      made.#changed = changed;
      return made;
    }
    static _reset(params, text) { params.#parse(text); }
    get size() { return this.#pairs.length; }
    append(name, value) { this.#pairs.push([String(name), String(value)]); this.#touch(); }
    delete(name, value) {
      this.#pairs = this.#pairs.filter(p => p[0] !== String(name) || (value !== undefined && p[1] !== String(value)));
      this.#touch();
    }
    get(name) { return this.#pairs.find(p => p[0] === String(name))?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(p => p[0] === String(name)).map(p => p[1]); }
    has(name, value) { return this.#pairs.some(p => p[0] === String(name) && (value === undefined || p[1] === String(value))); }
    set(name, value) {
      const at = this.#pairs.findIndex(p => p[0] === String(name));
      if (at < 0) this.#pairs.push([String(name), String(value)]);
      else {
        this.#pairs[at][1] = String(value);
        this.#pairs = this.#pairs.filter((p, i) => i <= at || p[0] !== String(name));
      }
      this.#touch();
    }
    sort() { this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)); this.#touch(); }
    forEach(f, self) { for (const [name, value] of this.#pairs) f.call(self, value, name, this); }
    *entries() { for (const [name, value] of this.#pairs) yield [name, value]; }
    *keys() { for (const [name] of this.#pairs) yield name; }
    *values() { for (const [, value] of this.#pairs) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#pairs.map(([name, value]) => `${formEscape(name)}=${formEscape(value)}`).join("&"); }
    toJSON() { return this.toString(); }
    get [Symbol.toStringTag]() { return "URLSearchParams"; }
  }
  const attach = URLSearchParams._of, reset = URLSearchParams._reset;
  delete URLSearchParams._of;
  delete URLSearchParams._reset;
  define("URLSearchParams", URLSearchParams);

  const ports = {__proto__: null, "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": ""};
  const invalid = text => { throw new TypeError(`Invalid URL: '${text}'`); };

  const readIpv4 = host => {
    const parts = host.replace(/\.$/, "").split(".");
    if (!/^(0x[0-9a-f]*|\d+)$/i.test(parts.at(-1))) return host;
    const numbers = parts.map(p => /^0x[0-9a-f]*$/i.test(p) ? parseInt(p.slice(2) || "0", 16)
      : /^0[0-7]+$/.test(p) ? parseInt(p, 8) : /^\d+$/.test(p) ? Number(p) : NaN);
    const last = numbers.pop();
    if (numbers.length > 3 || numbers.some(n => !(n < 256)) || !(last < 256 ** (4 - numbers.length))) return null;
    const value = numbers.reduce((sum, n, i) => sum + n * 256 ** (3 - i), last);
    return [24, 16, 8, 0].map(shift => Math.floor(value / 2 ** shift) % 256).join(".");
  };

  const readIpv6 = text => {
    const halves = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (all, a, b, c, d) =>
      [a, b, c, d].some(n => n > 255) ? "x" : ((a << 8) | b).toString(16) + ":" + ((c << 8) | d).toString(16)).split("::");
    if (halves.length > 2) return null;
    const [head, tail] = halves.map(half => (half ? half.split(":") : []));
    const missing = 8 - head.length - (tail?.length ?? 0);
    if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
    const words = halves.length === 2 ? [...head, ...new Array(missing).fill("0"), ...tail] : head;
    if (words.some(w => !/^[0-9a-f]{1,4}$/i.test(w))) return null;
    const plain = words.map(w => parseInt(w, 16).toString(16));
    let best = [0, 0];
    for (let i = 0; i < 8; i++) {
      let n = 0;
      while (plain[i + n] === "0") n++;
      if (n > best[1]) best = [i, n];
      i += n;
    }
    if (best[1] < 2) return plain.join(":");
    return `${plain.slice(0, best[0]).join(":")}::${plain.slice(best[0] + best[1]).join(":")}`;
  };

  const readHost = (text, special, whole) => {
    if (text.startsWith("[")) {
      const inner = text.endsWith("]") ? readIpv6(text.slice(1, -1)) : null;
      return inner === null ? invalid(whole) : `[${inner}]`;
    }
    if (!special) return /[\0\t\n\r #/<>?@[\\\]^|]/.test(text) ? invalid(whole) : escapeWith(text, c => c >= " " && c <= "~");
    const host = unescape(text).normalize("NFKC").toLowerCase();
    if (!host || /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(host)) invalid(whole);
    const ascii = host.split(".").map(label => (/^[\0-\x7f]*$/.test(label) ? label : "xn--" + punycode(label))).join(".");
    return readIpv4(ascii) ?? invalid(whole);
  };

  const punycode = label => { // RFC 3492
    const points = Array.from(label, c => c.codePointAt(0));
    let out = points.filter(c => c < 128).map(c => String.fromCodePoint(c)).join("");
    const basic = out.length;
    if (basic) out += "-";
    const digit = d => String.fromCharCode(d < 26 ? d + 97 : d + 22);
    let n = 128, delta = 0, bias = 72, done = basic;
    while (done < points.length) {
      const next = Math.min(...points.filter(c => c >= n));
      delta += (next - n) * (done + 1);
      n = next;
      for (const c of points) {
        if (c < n) delta++;
        if (c !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
          if (q < t) break;
          out += digit(t + ((q - t) % (36 - t)));
          q = Math.floor((q - t) / (36 - t));
        }
        out += digit(q);
        delta = done === basic ? Math.floor(delta / 700) : delta >> 1;
        delta += Math.floor(delta / (done + 1));
        bias = 0;
        for (; delta > 455; bias += 36) delta = Math.floor(delta / 35);
        bias += Math.floor((36 * delta) / (delta + 38));
        delta = 0;
        done++;
      }
      delta++;
      n++;
    }
    return out;
  };

  const readPath = (path, special) => {
    const out = [], parts = (special ? path.replaceAll("\\", "/") : path).replace(/^\//, "").split("/");
    parts.forEach((part, i) => {
      const plain = part.replace(/%2e/gi, "."), last = i === parts.length - 1;
      if (plain === "..") { out.pop(); if (last) out.push(""); }
      else if (plain === ".") { if (last) out.push(""); }
      else out.push(escapeWith(part, c => c === "%" || inPath(c)));
    });
    return "/" + out.join("/");
  };

  const readAuthority = (u, text, whole) => {
    const at = text.lastIndexOf("@");
    if (at >= 0) {
      const [, user, password = ""] = /^([^:]*):?([^]*)$/.exec(text.slice(0, at));
      u.username = escapeWith(user, c => c === "%" || inUser(c));
      u.password = escapeWith(password, c => c === "%" || inUser(c));
      text = text.slice(at + 1);
    }
    const [, host, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(text) ?? invalid(whole);
    if (!host && (u.special ? u.protocol !== "file:" : at >= 0 || port)) invalid(whole);
    u.host = host ? readHost(host, u.special, whole) : "";
    if (u.protocol === "file:" && u.host === "localhost") u.host = "";
    if (port && Number(port) > 65535) invalid(whole);
    u.port = port && String(Number(port)) !== ports[u.protocol] ? String(Number(port)) : "";
  };

  const readTail = (u, text, base) => {
    const [, path, query, hash] = /^([^?#]*)(\?[^#]*)?(#[^]*)?$/.exec(text);
    u.hash = hash && hash !== "#" ? "#" + escapeWith(hash.slice(1), c => c === "%" || inFragment(c)) : "";
    u.search = query && query !== "?" ? "?" + escapeWith(query.slice(1), u.special ? inSpecialQuery : inQuery) : "";
    if (u.opaque) { u.path = escapeWith(path, c => c >= " " && c <= "~"); return; }
    if (!base || path.startsWith("/") || (u.special && path.startsWith("\\")))
      u.path = path || u.special ? readPath(path, u.special) : "";
    else if (path) u.path = readPath(base.path.replace(/[^/]*$/, "") + path, u.special);
    else { u.path = base.path; if (query === undefined) u.search = base.search; }
  };

  const parseUrl = (input, base) => {
    const whole = String(input);
    const text = whole.replace(/^[\0-\x20]+|[\0-\x20]+$/g, "").replace(/[\t\n\r]/g, "");
    const scheme = /^([a-z][a-z0-9+.-]*:)([^]*)$/i.exec(text);
    const protocol = scheme?.[1].toLowerCase();
    const relative = !scheme || (base && protocol === base.protocol && base.special && !/^[/\\]/.test(scheme[2]));
    if (relative) {
      if (!base || (base.opaque && !text.startsWith("#"))) invalid(whole);
      const rest = scheme ? scheme[2] : text, u = {...base, hash: ""};
      const authority = (u.special ? /^[/\\]{2}([^/\\?#]*)([^]*)$/ : /^\/\/([^/?#]*)([^]*)$/).exec(rest);
      if (!authority) { readTail(u, rest, base); return u; }
      u.username = u.password = "";
      readAuthority(u, authority[1], whole);
      readTail(u, authority[2], null);
      return u;
    }
    const special = protocol in ports, rest = scheme[2];
    const u = {protocol, special, username: "", password: "", host: "", port: "", path: "", search: "", hash: "", opaque: false, slashes: true};
    const authority = (special && protocol !== "file:" ? /^[/\\]*([^/\\?#]*)([^]*)$/
      : special ? /^[/\\]{2}([^/\\?#]*)([^]*)$/ : /^\/\/([^/?#]*)([^]*)$/).exec(rest);
    if (authority) {
      readAuthority(u, authority[1], whole);
      readTail(u, authority[2], null);
      return u;
    }
    u.slashes = special;
    u.opaque = !special && !rest.startsWith("/");
    readTail(u, rest, null);
    return u;
  };

  class URL {
    #u; #params = null;
    constructor(input, base) { this.#u = parseUrl(input, base === undefined ? undefined : parseUrl(base)); }
    static canParse(input, base) { try { new URL(input, base); return true; } catch { return false; } }
    static parse(input, base) { try { return new URL(input, base); } catch { return null; } }
    #again(change) { try { change(); } catch (error) { if (!(error instanceof TypeError)) throw error; } }
    get href() {
      const u = this.#u;
      const user = u.username || u.password ? u.username + (u.password ? ":" + u.password : "") + "@" : "";
      return u.protocol + (u.slashes ? "//" + user + this.host : "") + u.path + u.search + u.hash;
    }
    set href(value) {
      this.#u = parseUrl(value);
      if (this.#params) reset(this.#params, this.#u.search);
    }
    get origin() { return this.#u.special && this.protocol !== "file:" ? `${this.protocol}//${this.host}` : "null"; }
    get protocol() { return this.#u.protocol; }
    set protocol(value) {
      const next = /^[a-z][a-z0-9+.-]*/i.exec(String(value))?.[0].toLowerCase() + ":";
      if (next in ports === this.#u.special && next !== "undefined:") {
        this.#u.protocol = next;
        if (this.#u.port === ports[next]) this.#u.port = "";
      }
    }
    get username() { return this.#u.username; }
    set username(value) { if (this.#u.host) this.#u.username = escapeWith(String(value), inUser); }
    get password() { return this.#u.password; }
    set password(value) { if (this.#u.host) this.#u.password = escapeWith(String(value), inUser); }
    get host() { return this.#u.host + (this.#u.port ? ":" + this.#u.port : ""); }
    set host(value) {
      const {username, password} = this.#u;
      this.#again(() => { const u = {...this.#u, username: "", password: ""}; readAuthority(u, String(value).split(/[/?#]/)[0], value); this.#u = {...u, username, password}; });
    }
    get hostname() { return this.#u.host; }
    set hostname(value) { this.#again(() => { this.#u.host = readHost(String(value), this.#u.special, value); }); }
    get port() { return this.#u.port; }
    set port(value) {
      const text = /^\d*/.exec(String(value))[0];
      if (String(value) === "") this.#u.port = "";
      else if (text && Number(text) < 65536) this.#u.port = String(Number(text)) === ports[this.protocol] ? "" : String(Number(text));
    }
    get pathname() { return this.#u.path; }
    set pathname(value) { if (!this.#u.opaque) this.#u.path = readPath(String(value), this.#u.special); }
    get search() { return this.#u.search; }
    set search(value) {
      const text = String(value).replace(/^\?/, "");
      this.#u.search = text ? "?" + escapeWith(text, this.#u.special ? inSpecialQuery : inQuery) : "";
      if (this.#params) reset(this.#params, this.#u.search);
    }
    get hash() { return this.#u.hash; }
    set hash(value) {
      const text = String(value).replace(/^#/, "");
      this.#u.hash = text ? "#" + escapeWith(text, c => c === "%" || inFragment(c)) : "";
    }
    get searchParams() {
      return (this.#params ??= attach(this.#u.search, () => {
        const text = this.#params.toString();
        this.#u.search = text ? "?" + text : "";
      }));
    }
    toString() { return this.href; }
    toJSON() { return this.href; }
    get [Symbol.toStringTag]() { return "URL"; }
  }
  define("URL", URL);
})();
