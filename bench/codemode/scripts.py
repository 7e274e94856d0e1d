"""The scripts that every engine runs, in JavaScript and in the Python dialect of two of them."""

import json

CALLS = 1000
RICH_CALLS = 200
QUERY = {
    "query": "errors of the last hour " * 4,
    "filters": {"levels": ["warn", "error"], "service": {"name": "billing", "all": True}},
    "limit": 20,
}
RESULT = {
    "items": [
        {
            "id": number,
            "title": f"Entry number {number}",
            "weight": number * 0.37,
            "tags": ["a", "b"],
        }
        for number in range(20)
    ]
}
ROWS = 100_000
TEXT_CHARS = 1 << 20

SCRIPTS: dict[str, object] = {
    "result": RESULT,
    "seq": f"let sum = 0; for (let i = 0; i < {CALLS}; i++) sum += (await tools.tool({{a: i}})).a;"
    " return sum",
    "conc": f"const all = Array.from({{length: {CALLS}}}, (_, i) => tools.tool({{a: i}}));"
    " return (await Promise.all(all)).length",
    "real": f"let sum = 0; for (let i = 0; i < {RICH_CALLS}; i++)"
    f" sum += (await tools.real({json.dumps(QUERY)})).items.length; return sum",
    "mb": "return (await tools.mb({})).length",
    "objs": "return (await tools.objs({})).filter(row => row.id % 2).length",
    "loop": "let sum = 0; for (let i = 0; i < 5e6; i++) sum += i % 7; return sum",
    "mix": "const rows = Array.from({length: 20000}, (_, i) =>"
    " ({id: i, name: `row ${i}`, key: i % 97})); const groups = {};"
    " for (const row of rows) (groups[row.key] ??= []).push(row.name.toUpperCase());"
    " let size = 0; for (const names of Object.values(groups)) size += names.sort().join().length;"
    " return size + JSON.parse(JSON.stringify(rows)).length",
    "rec": "let depth = 0; const down = () => { depth++; down(); };"
    " try { down() } catch (error) { return `${error.name} at ${depth}` }",
    "py": {
        "seq": f"total = 0\nfor i in range({CALLS}):\n    total += (await tool(i))['a']\ntotal\n",
        "conc": f"import asyncio\nlen(await asyncio.gather(*[tool(i) for i in range({CALLS})]))\n",
        "real": f"total = 0\nfor i in range({RICH_CALLS}):\n    found = await real({QUERY!r})\n"
        "    total += len(found['items'])\ntotal\n",
        "mb": "len(await mb())\n",
        "objs": "len([row for row in await objs() if row['id'] % 2])\n",
        "loop": "total = 0\nfor i in range(5000000):\n    total += i % 7\ntotal\n",
        "mix": "import json\n"
        "rows = [{'id': i, 'name': 'row ' + str(i), 'key': i % 97} for i in range(20000)]\n"
        "groups = {}\nfor row in rows:\n    if row['key'] not in groups:\n"
        "        groups[row['key']] = []\n    groups[row['key']].append(row['name'].upper())\n"
        "size = 0\nfor names in groups.values():\n    size += len(','.join(sorted(names)))\n"
        "size + len(json.loads(json.dumps(rows)))\n",
        "rec": "def down(depth):\n    return down(depth + 1)\n"
        "answer = ''\ntry:\n    down(0)\nexcept RecursionError:\n"
        "    answer = 'RecursionError'\nanswer\n",
    },
}
